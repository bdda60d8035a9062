//! Default location of the home folder, if neither `--home` nor `ZOO_HOME` is set.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Failure, Result};

/// Absolute path of the home folder. Creates nothing.
///
/// # Errors
/// `--home` is empty, or the platform does not define a folder for data.
pub fn resolve(chosen: Option<&Path>) -> Result<PathBuf> {
    let home = match chosen {
        Some(path) if path.as_os_str().is_empty() => return Err(Failure::usage("--home is empty")),
        Some(path) => path.to_owned(),
        None => platform_folder(&|name| env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
            Failure::usage("this platform names no folder for data")
                .hint("give --home FOLDER, or set ZOO_HOME")
        })?,
    };
    std::path::absolute(&home).map_err(|error| Failure::io("resolve", &home, &error))
}

/// `$XDG_DATA_HOME/zoo` or `~/.local/share/zoo`, and the corresponding folders on macOS and
/// Windows.
fn platform_folder(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let folder = if cfg!(windows) {
        absolute("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        absolute("HOME")?.join("Library/Application Support")
    } else {
        absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?
    };
    Some(folder.join("zoo"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_platform_decides() {
        let folder = |variables: &'static [(&str, &str)]| {
            platform_folder(&move |name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(folder(&[("HOME", "/h")]), Some("/h/.local/share/zoo".into()));
        assert_eq!(folder(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Some("/d/zoo".into()));
        // The XDG specification requires ignoring relative paths.
        assert_eq!(folder(&[("HOME", "/h"), ("XDG_DATA_HOME", "d")]), Some("/h/.local/share/zoo".into()));
        assert_eq!(folder(&[]), None);
    }
}
