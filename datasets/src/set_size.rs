//! The stated sizes of evaluation sets. All tasks check them in the same way.

/// An evaluation set does not have the size that the recipe states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "data.eval.{set}: its split `{split}` has {found} {what}, the recipe says {expected}\nhint: another version of the set is not comparable; check the corpus and its version"
)]
pub struct SetSizeError {
    /// Name of the evaluation set.
    pub set: String,
    /// Name of its split.
    pub split: String,
    /// The counted unit, in the plural: `lines`, `reference words`, `pictures`.
    pub what: &'static str,
    /// Actual number.
    pub found: usize,
    /// Expected number.
    pub expected: u32,
}

impl SetSizeError {
    /// Compares the number of units in an evaluation set and its split with the number in the
    /// recipe.
    ///
    /// # Errors
    /// The numbers differ.
    pub fn check(
        (set, split): (&str, &str),
        what: &'static str,
        found: usize,
        expected: u32,
    ) -> Result<(), Self> {
        match found == expected as usize {
            true => Ok(()),
            false => Err(Self { set: set.to_owned(), split: split.to_owned(), what, found, expected }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_another_size_is_named_with_both_numbers() {
        assert_eq!(SetSizeError::check(("test", "dev"), "lines", 3, 3), Ok(()));
        let error = SetSizeError::check(("test", "dev"), "lines", 2, 3).unwrap_err().to_string();
        assert!(
            error.starts_with("data.eval.test: its split `dev` has 2 lines, the recipe says 3\nhint: "),
            "{error}"
        );
    }
}
