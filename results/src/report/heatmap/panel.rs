//! The matrices of an image.

use std::borrow::Cow;

use thiserror::Error;

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeatmapError {
    /// The values do not fill whole columns.
    #[error(
        "{values} values do not fill {columns} columns\nhint: give one or more whole columns, one after the other"
    )]
    Shape {
        /// Number of values given.
        values: usize,
        /// Stated number of columns.
        columns: usize,
    },
    /// There are no panels, or too many.
    #[error("{0} panels\nhint: a picture has 1 to 8")]
    Panels(usize),
    /// The image exceeds the maximum size of a PNG.
    #[error("the picture is too large\nhint: cut it")]
    TooLarge,
    /// The encoder failed; its message.
    #[error("the picture cannot be written: {0}\nhint: this is a defect of the program; please report it")]
    Encoding(String),
}

/// One matrix of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel<'a> {
    pub(super) title: String,
    pub(super) values: Cow<'a, [f32]>,
    pub(super) columns: usize,
}

impl<'a> Panel<'a> {
    /// A panel of values `[columns, rows]`, column after column, the memory layout of `[frames,
    /// mels]` and `[decoder steps, symbols]`. Columns run from left to right, and the rows of each
    /// column from bottom to top. Values that are not finite stay white.
    ///
    /// # Errors
    /// There are no values, or the last column is incomplete.
    pub fn new(title: &str, values: impl Into<Cow<'a, [f32]>>, columns: usize) -> Result<Self, HeatmapError> {
        let values = values.into();
        if values.is_empty() || columns == 0 || !values.len().is_multiple_of(columns) {
            return Err(HeatmapError::Shape { values: values.len(), columns });
        }
        Ok(Self { title: title.to_owned(), values, columns })
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// The value at a column and a row, from the left and from the bottom.
    pub(super) fn cell(&self, column: usize, row: usize) -> f32 {
        self.values[column * self.rows() + row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_matrix_is_an_error() {
        for (values, columns) in [(&[][..], 0), (&[], 1), (&[1.0; 4], 0), (&[1.0; 4], 3), (&[1.0; 4], 5)] {
            let error = Panel::new("", values, columns).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
    }
}
