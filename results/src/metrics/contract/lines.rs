//! Lines of text: their case, their white space, and streams of them.

use std::borrow::Cow;

use super::error::ScoreError;

/// Treatment of case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// Case is kept.
    #[default]
    Mixed,
    /// Both sides are lower-cased.
    Lower,
}

impl Case {
    /// The part of a signature.
    pub(crate) fn part(self) -> (&'static str, String) {
        ("case", if self == Case::Lower { "lc" } else { "mixed" }.to_string())
    }
}

/// Checks that all streams have the same number of lines: one hypothesis per line, and one
/// reference per line and stream.
pub(crate) fn check_streams<S: AsRef<[String]>>(
    hypotheses: &[String],
    references: &[S],
) -> Result<(), ScoreError> {
    if hypotheses.is_empty() {
        return Err(ScoreError::NoHypotheses);
    }
    if references.is_empty() {
        return Err(ScoreError::NoReferences);
    }
    for (i, stream) in references.iter().enumerate() {
        let stream = stream.as_ref();
        if stream.len() != hypotheses.len() {
            return Err(ScoreError::LengthMismatch {
                stream: i + 1,
                hypotheses: hypotheses.len(),
                references: stream.len(),
            });
        }
    }
    Ok(())
}

/// White space as in Python's `str.split`: Unicode white space, and the separators U+001C to
/// U+001F.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || is_separator(c)
}

/// The separators U+001C to U+001F, which Rust does not treat as white space.
pub(crate) fn is_separator(c: char) -> bool {
    ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The text with U+001C to U+001F replaced by spaces.
pub(crate) fn separators_to_spaces(text: &str) -> Cow<'_, str> {
    if text.contains(is_separator) {
        Cow::Owned(text.replace(is_separator, " "))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_white_space_as_they_are_in_python() {
        for c in ['\u{1c}', '\u{1d}', '\u{1e}', '\u{1f}'] {
            assert!(!c.is_whitespace() && is_space(c));
        }
        assert!(!is_space('\u{1b}') && !is_space('\u{200b}') && is_space('\u{a0}') && is_space('\u{85}'));
    }

    #[test]
    fn uneven_streams_are_refused() {
        let two = vec!["a".to_string(), "b".to_string()];
        let one = vec!["a".to_string()];
        assert_eq!(check_streams(&[], &[Vec::new()]), Err(ScoreError::NoHypotheses));
        assert_eq!(check_streams::<Vec<String>>(&two, &[]), Err(ScoreError::NoReferences));
        let e = check_streams(&two, &[two.clone(), one.clone()]).unwrap_err().to_string();
        assert!(e.starts_with("reference stream 2 has 1 lines, the hypotheses have 2"), "{e}");
        assert!(check_streams(&one, std::slice::from_ref(&two)).is_err());
        check_streams(&two, std::slice::from_ref(&two)).unwrap();
    }
}
