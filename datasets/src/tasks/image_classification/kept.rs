//! Names of a model's classes, kept in a folder, so that a picture can be classified without the
//! training pictures.

use std::path::Path;

use super::error::PictureDataError;
use super::prepared::PreparedPictures;
use crate::text::kept_units::{self, KeptUnitsError};

fn failed(KeptUnitsError { path, reason }: KeptUnitsError) -> PictureDataError {
    PictureDataError::Kept { path, reason }
}

impl PreparedPictures {
    /// Writes the names of the classes into a folder.
    ///
    /// # Errors
    /// [`PictureDataError::Kept`] if the file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), PictureDataError> {
        kept_units::write(folder, &self.classes).map_err(failed)
    }
}

/// Names of the classes that [`PreparedPictures::keep`] wrote into a folder, in the order of their
/// numbers; `None` if nothing was kept. `expected` is the recipe's number of classes.
///
/// # Errors
/// [`PictureDataError::Kept`] if the file cannot be read, was changed, or has another number of
/// classes.
pub fn kept_classes(folder: &Path, expected: u32) -> Result<Option<Vec<String>>, PictureDataError> {
    let Some(names) = kept_units::read(folder).map_err(failed)? else { return Ok(None) };
    if names.len() != expected as usize {
        let reason = format!("it names {} classes, the recipe has {expected}", names.len());
        return Err(PictureDataError::Kept { path: folder.into(), reason });
    }
    Ok(Some(names))
}
