//! Units of a model, kept in a folder, so that a text can be scored and continued without the texts
//! that number them.

use std::collections::BTreeMap;
use std::path::Path;

use zoo_recipes::tasks::language_modelling::LanguageDataSpec;

use super::error::LanguageDataError;
use super::prepared::PreparedLanguage;
use super::units::Units;
use crate::text::kept_units::{self, KeptUnitsError};

fn failed(KeptUnitsError { path, reason }: KeptUnitsError) -> LanguageDataError {
    LanguageDataError::Kept { path, reason }
}

impl PreparedLanguage {
    /// Writes the units into a folder.
    ///
    /// # Errors
    /// [`LanguageDataError::Kept`] if the file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), LanguageDataError> {
        kept_units::write(folder, self.units.names()).map_err(failed)
    }

    /// Reads what [`Self::keep`] wrote for the recipe's data. It has no splits. `None` if nothing
    /// was kept.
    ///
    /// # Errors
    /// [`LanguageDataError::Kept`] if the file was changed or cannot be read;
    /// [`LanguageDataError::NoUnknown`] if the units lack the recipe's unknown word.
    pub fn kept(data: &LanguageDataSpec, folder: &Path) -> Result<Option<Self>, LanguageDataError> {
        let Some(units) = kept_units::read(folder).map_err(failed)? else { return Ok(None) };
        Ok(Some(Self { splits: BTreeMap::new(), units: Units::of_names(&data.unit, units)? }))
    }
}
