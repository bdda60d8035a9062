//! Locations of the files that a GPU needs at run time: the driver's library, the run-time compiler
//! and the toolkit's headers.

use std::path::{Path, PathBuf};

/// Location of a shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In a folder that the loader searches.
    Loaded(PathBuf),
    /// In the toolkit, in a folder that the loader does not search.
    Elsewhere(PathBuf),
    /// Not found.
    Missing,
}

impl Found {
    /// How to make the loader find the library; `None` if it already does.
    pub fn mend(&self) -> Option<String> {
        match self {
            Self::Loaded(_) => None,
            Self::Elsewhere(file) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                Some(format!("LD_LIBRARY_PATH={}", folder.display()))
            }
            Self::Missing => {
                Some("install it, or name its folder in LD_LIBRARY_PATH; `zoo doctor` tells more".into())
            }
        }
    }
}

/// Possible folders of a CUDA toolkit, which may not exist: CUDA_PATH, then the usual locations.
fn toolkits() -> impl Iterator<Item = PathBuf> {
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    std::env::var_os("CUDA_PATH").map(PathBuf::from).into_iter().chain(usual)
}

/// The toolkit's include folder, if it has the headers.
pub fn cuda_headers() -> Option<PathBuf> {
    toolkits().map(|toolkit| toolkit.join("include")).find(|folder| folder.join("cuda_runtime.h").is_file())
}

/// Finds a library by the start of its file name, e.g. `libnvrtc.so`.
pub fn find(name: &str) -> Found {
    let of_toolkits = toolkits().flat_map(|toolkit| ["lib64", "lib"].map(|lib| toolkit.join(lib)));
    find_in(name, loader_folders(), of_toolkits)
}

fn find_in(
    name: &str,
    loaded: impl IntoIterator<Item = PathBuf>,
    elsewhere: impl IntoIterator<Item = PathBuf>,
) -> Found {
    let first = |mut folders: Box<dyn Iterator<Item = PathBuf> + '_>| {
        folders.find_map(|folder| file_beginning_with(&folder, name))
    };
    if let Some(file) = first(Box::new(loaded.into_iter())) {
        return Found::Loaded(file);
    }
    first(Box::new(elsewhere.into_iter())).map_or(Found::Missing, Found::Elsewhere)
}

/// The first matching file by name.
fn file_beginning_with(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
    entries.filter(named).min()
}

/// Folders of the loader: LD_LIBRARY_PATH, the entries of `/etc/ld.so.conf` and the files that it
/// includes, and the default folders.
fn loader_folders() -> Vec<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&given).collect();
    let mut files = vec![PathBuf::from("/etc/ld.so.conf")];
    if let Ok(entries) = std::fs::read_dir("/etc/ld.so.conf.d") {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        folders.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    let usual = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"];
    folders.extend(usual.map(PathBuf::from));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_would_not_find_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).unwrap();
            place
        };
        let (loaded, toolkit) = (place("loaded"), place("toolkit"));
        let find =
            |name: &str| find_in(name, [loaded.clone(), folder.path().join("none")], [toolkit.clone()]);
        std::fs::write(toolkit.join("libnvrtc.so.13"), "").unwrap();
        std::fs::write(toolkit.join("libnvrtc-builtins.so"), "").unwrap();
        assert_eq!(find("libnvrtc.so"), Found::Elsewhere(toolkit.join("libnvrtc.so.13")));
        std::fs::write(loaded.join("libnvrtc.so.12"), "").unwrap();
        assert_eq!(find("libnvrtc.so"), Found::Loaded(loaded.join("libnvrtc.so.12")));
        assert_eq!(find("libcuda.so"), Found::Missing);
    }
}
