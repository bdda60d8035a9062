//! The files that a recipe itself names.

use std::path::Path;

use sha2::{Digest, Sha256};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::image_classification::{PictureDataSpec, PictureReaderSpec};

use super::error::PictureDataError;
use crate::image::{PictureError, PictureFolder, read_idx_labels};

/// Number of training pictures in the recipe's own files; `None` if it names none.
///
/// # Errors
/// A file or folder cannot be read.
pub fn own_pictures(data: &PictureDataSpec, base: &Path) -> Result<Option<usize>, PictureDataError> {
    let training = data.training();
    Ok(match &data.reader {
        PictureReaderSpec::Idx { files } => match files.get(training) {
            Some(files) => Some(read_idx_labels(&base.join(&files.labels))?.len()),
            None => None,
        },
        PictureReaderSpec::ImageFolder { folders } => match folders.get(training) {
            Some(folder) => Some(PictureFolder::list(&base.join(folder))?.pictures().len()),
            None => None,
        },
        PictureReaderSpec::Stripes { train, .. } => Some(*train as usize),
    })
}

/// Path and SHA-256 of every file that the recipe itself names. The hash of a folder covers the
/// names and the contents of its pictures.
///
/// # Errors
/// A file or folder cannot be read.
pub fn own_stamps(data: &PictureDataSpec, base: &Path) -> Result<Vec<(String, String)>, PictureDataError> {
    let mut stamps = Vec::new();
    match &data.reader {
        PictureReaderSpec::Idx { files } => {
            for file in files.values().flat_map(|files| [&files.images, &files.labels]) {
                let path = base.join(file);
                let digest = hex::encode(Sha256::digest(read(&path)?));
                stamps.push((path.display().to_string(), digest));
            }
        }
        PictureReaderSpec::ImageFolder { folders } => {
            for folder in folders.values().map(|folder| base.join(folder)) {
                let listed = PictureFolder::list(&folder)?;
                let mut hash = Sha256::new();
                for (picture, path) in
                    listed.pictures().iter().filter_map(|one| Some((one, listed.path(one)?)))
                {
                    hash.update(format!("{}/{}\n", listed.classes()[picture.class as usize], picture.name));
                    hash.update(Sha256::digest(read(&path)?));
                }
                stamps.push((folder.display().to_string(), hex::encode(hash.finalize())));
            }
        }
        PictureReaderSpec::Stripes { .. } => {}
    }
    Ok(stamps)
}

fn read(path: &Path) -> Result<Vec<u8>, PictureDataError> {
    zoo_recipes::untrusted::read(path)
        .map_err(|source| PictureError::Io { file: path.to_path_buf(), source }.into())
}
