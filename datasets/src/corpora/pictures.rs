//! Splits of pictures: the files of the pixels and classes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::error::CorpusError;
use super::files::FileDefinition;
use crate::image::{IdxPictures, read_idx_labels, read_idx_pictures};

/// The pictures of a split, in the order of their files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PicturesDefinition {
    /// Two IDX files, gzipped or not: grey pictures of one size, and one byte per picture with the
    /// number of its class.
    Idx {
        /// Name of the file with the pictures.
        images: String,
        /// Name of the file with the class numbers.
        labels: String,
        /// Names of the classes, by number from 0.
        classes: Vec<String>,
    },
}

impl PicturesDefinition {
    /// Names of the split's files.
    pub(super) fn files(&self) -> [&String; 2] {
        let Self::Idx { images, labels, .. } = self;
        [images, labels]
    }

    pub(super) fn check(&self, files: &BTreeMap<String, FileDefinition>) -> Result<(), String> {
        for file in self.files() {
            match files.get(file) {
                None => return Err(format!("there is no [file.{file:?}]")),
                Some(FileDefinition { unpack: Some(_), .. }) => {
                    return Err(format!("{file:?} is an archive; IDX files are read as they are"));
                }
                Some(_) => {}
            }
        }
        let Self::Idx { images, labels, classes } = self;
        if images == labels {
            return Err(format!("`pictures.images` and `pictures.labels` are the same file, {images:?}"));
        }
        let names: BTreeSet<&str> = classes.iter().map(|name| name.trim()).collect();
        if names.contains("") || names.len() != classes.len() || !(1..=256).contains(&classes.len()) {
            return Err("`pictures.classes` must be 1 to 256 different names".into());
        }
        Ok(())
    }
}

/// The pictures of a split in a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPictures {
    /// Name of the split.
    pub split: String,
    /// Expected number of pictures, if known.
    pub count: Option<u64>,
    /// Path of the IDX file with the pictures.
    pub images: PathBuf,
    /// Path of the IDX file with the class numbers.
    pub labels: PathBuf,
    /// Names of the classes, by number.
    pub classes: Vec<String>,
}

/// Pictures with their classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledPictures {
    /// The pictures.
    pub pictures: IdxPictures,
    /// Class number of each picture.
    pub labels: Vec<u8>,
}

impl FetchedPictures {
    pub(super) fn new(
        split: &str,
        count: Option<u64>,
        definition: &PicturesDefinition,
        paths: &BTreeMap<&str, PathBuf>,
    ) -> Self {
        let PicturesDefinition::Idx { images, labels, classes } = definition;
        let [images, labels] = [images, labels].map(|file| paths[file.as_str()].clone());
        Self { split: split.into(), count, images, labels, classes: classes.clone() }
    }

    /// Reads all pictures and their classes.
    ///
    /// # Errors
    /// [`CorpusError::Pictures`] if a file cannot be read; [`CorpusError::PictureCount`] if the
    /// number of pictures or of class numbers is not the expected one;
    /// [`CorpusError::PictureClass`] for a number without a class.
    pub fn read(&self) -> Result<LabelledPictures, CorpusError> {
        let error = |source| CorpusError::Pictures { split: self.split.clone(), source };
        let pictures = read_idx_pictures(&self.images).map_err(error)?;
        let labels = read_idx_labels(&self.labels).map_err(error)?;
        let counted = [("pictures", pictures.len() as u64), ("labels", labels.len() as u64)];
        let expected = self.count.unwrap_or(pictures.len() as u64);
        if let Some((what, actual)) = counted.into_iter().find(|(_, actual)| *actual != expected) {
            let split = self.split.clone();
            return Err(CorpusError::PictureCount { split, what, expected, actual });
        }
        let without = labels.iter().position(|label| usize::from(*label) >= self.classes.len());
        if let Some(picture) = without {
            let (path, class, classes) = (self.labels.clone(), labels[picture], self.classes.len());
            return Err(CorpusError::PictureClass { path, picture, class, classes });
        }
        Ok(LabelledPictures { pictures, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(folder: &std::path::Path, pictures: u8, labels: &[u8]) -> FetchedPictures {
        let place = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).unwrap();
            folder.join(name)
        };
        let count = labels.len() as u8;
        FetchedPictures {
            split: "train".into(),
            count: Some(2),
            images: place(
                "images",
                &[
                    &[0, 0, 8, 3, 0, 0, 0, pictures, 0, 0, 0, 1, 0, 0, 0, 1],
                    vec![7; pictures.into()].as_slice(),
                ]
                .concat(),
            ),
            labels: place("labels", &[&[0, 0, 8, 1, 0, 0, 0, count], labels].concat()),
            classes: vec!["a".into(), "b".into()],
        }
    }

    #[test]
    fn pictures_and_labels_must_be_as_many_as_stated_and_of_known_classes() {
        let folder = tempfile::tempdir().unwrap();
        let read = |pictures, labels: &[u8]| fetched(folder.path(), pictures, labels).read();
        assert_eq!(read(2, &[1, 0]).unwrap().labels, [1, 0]);
        let message = |pictures, labels: &[u8]| read(pictures, labels).unwrap_err().to_string();
        assert!(message(3, &[1, 0]).contains("split \"train\" has 3 pictures, expected 2"));
        assert!(message(2, &[1]).contains("split \"train\" has 1 labels, expected 2"));
        assert!(message(2, &[1, 2]).contains("labels: picture 1 is of class 2, there are 2 classes"));
        std::fs::remove_file(folder.path().join("images")).unwrap();
        let mut gone = fetched(folder.path(), 2, &[0, 0]);
        gone.images = folder.path().join("gone");
        assert!(gone.read().unwrap_err().to_string().contains("split \"train\": "));
    }
}
