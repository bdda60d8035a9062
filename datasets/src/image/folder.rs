//! A folder of pictures: `root/CLASS/NAME.png`, `.jpg` or `.jpeg`.
//!
//! Classes and names are sorted by their bytes, as in torchvision's `ImageFolder`, so a class has
//! the same number on every machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted::hint_or;

use super::decode::decode;
use super::error::PictureError;
use super::picture::Picture;

/// Maximum number of pictures in a folder. ImageNet's 21,841 classes have 14.2 million.
const MOST_PICTURES: usize = 1 << 24;

/// Why a folder cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A folder, or an entry of one, could not be read.
    #[error("{}: {source}\nhint: {}", path.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// Path of the folder or entry.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The root has no class folders, or a class has no pictures.
    #[error("{}: there is no {missing}\nhint: pictures lie in ROOT/CLASS/NAME.png, .jpg or .jpeg", path.display())]
    Empty {
        /// Path of the folder.
        path: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// A name is not UTF-8, or an entry is neither a picture nor a class folder.
    #[error("{}: {what}\nhint: pictures lie in ROOT/CLASS/NAME.png, .jpg or .jpeg", path.display())]
    Entry {
        /// Path of the entry.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// There are more pictures than the limit.
    #[error("{}: more than {limit} pictures\nhint: name a folder of one data set", path.display())]
    TooMany {
        /// Path of the root.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
}

/// One picture of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedPicture {
    /// The number of its class in [`PictureFolder::classes`].
    pub class: u32,
    /// Name of its file.
    pub name: String,
}

/// The classes and files of a folder of pictures. No picture has been opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureFolder {
    root: PathBuf,
    classes: Vec<String>,
    pictures: Vec<ListedPicture>,
}

impl PictureFolder {
    /// Lists the pictures below `root`. Hidden entries and files with other endings are skipped. A
    /// link is followed only if its target is within `root`.
    ///
    /// # Errors
    /// [`FolderError`]; also for a link that leaves the root, a folder within a class, and a class
    /// without pictures.
    pub fn list(root: &Path) -> Result<Self, FolderError> {
        let real = fs::canonicalize(root).map_err(io_error(root))?;
        let mut classes = Vec::new();
        for name in names(root)? {
            let path = root.join(&name);
            if target(&path, &real)?.is_dir() {
                classes.push(name);
            }
        }
        if classes.is_empty() {
            return Err(FolderError::Empty { path: root.into(), missing: "folder of a class" });
        }
        let mut pictures = Vec::new();
        for (class, folder) in (0..).zip(&classes) {
            let folder = root.join(folder);
            let before = pictures.len();
            for name in names(&folder)? {
                let path = folder.join(&name);
                let target = target(&path, &real)?;
                if target.is_dir() {
                    let what = "a folder within a class";
                    return Err(FolderError::Entry { path, what });
                }
                if is_picture(&name) {
                    if !target.is_file() {
                        let what = "it is named as a picture and is not a regular file";
                        return Err(FolderError::Entry { path, what });
                    }
                    pictures.push(ListedPicture { class, name });
                }
            }
            if pictures.len() == before {
                return Err(FolderError::Empty { path: folder, missing: "picture" });
            }
            if pictures.len() > MOST_PICTURES {
                return Err(FolderError::TooMany { path: root.into(), limit: MOST_PICTURES });
            }
        }
        Ok(Self { root: root.into(), classes, pictures })
    }

    /// Names of the classes, sorted.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The pictures, class by class, sorted by name.
    pub fn pictures(&self) -> &[ListedPicture] {
        &self.pictures
    }

    /// Path of a picture; `None` if the folder does not have its class.
    pub fn path(&self, picture: &ListedPicture) -> Option<PathBuf> {
        let class = self.classes.get(picture.class as usize)?;
        Some(self.root.join(class).join(&picture.name))
    }

    /// Decodes the picture at `index` of [`Self::pictures`]; `None` if `index` is beyond the last.
    ///
    /// # Errors
    /// [`PictureError`], which names the file.
    pub fn read(&self, index: usize) -> Option<Result<Picture, PictureError>> {
        self.path(self.pictures.get(index)?).map(|file| decode(&file))
    }
}

fn is_picture(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["png", "jpg", "jpeg"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    move |source| FolderError::Io { path: path.into(), source }
}

/// Names of the entries of a folder, sorted, without hidden ones.
fn names(folder: &Path) -> Result<Vec<String>, FolderError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let entry = entry.map_err(io_error(folder))?;
        let name = entry.file_name().into_string();
        let name =
            name.map_err(|_| FolderError::Entry { path: entry.path(), what: "its name is not UTF-8" })?;
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Metadata of an entry or, for a link, of its target within the root `real`.
fn target(path: &Path, real: &Path) -> Result<fs::Metadata, FolderError> {
    let own = fs::symlink_metadata(path).map_err(io_error(path))?;
    if !own.is_symlink() {
        return Ok(own);
    }
    let target = fs::canonicalize(path).map_err(io_error(path))?;
    if !target.starts_with(real) {
        return Err(FolderError::Entry { path: path.into(), what: "a link that leads out of the folder" });
    }
    fs::metadata(&target).map_err(io_error(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn classes_and_names_are_sorted_by_their_bytes() {
        let root = folder(&[
            "zebra/2.PNG",
            "zebra/10.jpg",
            "Ant/b.jpeg",
            "ant/c.png",
            "ant/notes.txt",
            "ant/.hidden.png",
            ".git/x.png",
            "list.csv",
        ]);
        let listed = PictureFolder::list(root.path()).unwrap();
        assert_eq!(listed.classes(), ["Ant", "ant", "zebra"]);
        let pictures: Vec<_> = listed.pictures().iter().map(|p| (p.class, p.name.as_str())).collect();
        assert_eq!(pictures, [(0, "b.jpeg"), (1, "c.png"), (2, "10.jpg"), (2, "2.PNG")]);
        assert!(listed.path(&listed.pictures()[1]).unwrap().ends_with("ant/c.png"));
        assert!(listed.path(&ListedPicture { class: 3, name: String::new() }).is_none());
        // The error for an unreadable picture names its file.
        let error = listed.read(2).unwrap().unwrap_err().to_string();
        assert!(error.contains("zebra/10.jpg: truncated: it is empty"), "{error}");
        assert!(listed.read(4).is_none());
    }

    #[test]
    fn folders_of_another_layout_are_refused() {
        let message = |files: &[&str]| PictureFolder::list(folder(files).path()).unwrap_err().to_string();
        assert!(message(&["a.png"]).contains("there is no folder of a class"));
        assert!(message(&["a/b.png", "c/d.txt"]).contains("c: there is no picture"));
        assert!(message(&["a/b/c.png"]).contains("b: a folder within a class"));
        assert!(PictureFolder::list(Path::new("no-such-folder")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_within_the_root_alone() {
        use std::os::unix::fs::symlink;
        let (root, outside) = (folder(&["a/1.png"]), folder(&["b/2.png"]));
        symlink(root.path().join("a/1.png"), root.path().join("a/2.png")).unwrap();
        symlink(root.path().join("a"), root.path().join("c")).unwrap();
        let listed = PictureFolder::list(root.path()).unwrap();
        assert_eq!((listed.classes().len(), listed.pictures().len()), (2, 4));
        symlink(outside.path().join("b/2.png"), root.path().join("a/3.png")).unwrap();
        let error = PictureFolder::list(root.path()).unwrap_err().to_string();
        assert!(error.contains("a/3.png: a link that leads out"), "{error}");
        fs::remove_file(root.path().join("a/3.png")).unwrap();
        symlink(outside.path(), root.path().join("d")).unwrap();
        assert!(PictureFolder::list(root.path()).unwrap_err().to_string().contains("/d: a link"));
    }
}
