//! Batches of one shape, as written in `--shape`.

use std::fmt;
use std::str::FromStr;

/// Maximum tokens of one side of a batch, well below the limit of 32-bit indices.
const MOST: u64 = 16_777_216;

/// A batch of examples of one length, for comparison with programs that pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Examples per batch. A batch makes an update.
    pub sentences: u32,
    /// Length of each example: tokens of either side, frames, or rows of a picture.
    pub tokens: u32,
}

impl Shape {
    /// This shape with `sentences` examples, limited to the maximum.
    pub fn with(self, sentences: u32) -> Self {
        let most = MOST / u64::from(self.tokens);
        Self { sentences: sentences.min(most as u32), ..self }
    }

    /// Whether a batch of this shape can be made: examples, at least two tokens each, and 16
    /// million at most together.
    pub fn is_usable(&self) -> bool {
        let all = u64::from(self.sentences) * u64::from(self.tokens);
        self.sentences > 0 && self.tokens > 1 && all <= MOST
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(sentences, tokens)| {
            Some(Self { sentences: sentences.parse().ok()?, tokens: tokens.parse().ok()? })
        });
        let problem = || "give sentences x tokens, 16 million at most together, e.g. 64x56".to_owned();
        numbers.filter(Self::is_usable).ok_or_else(problem)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.sentences, self.tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_and_written() {
        let shape: Shape = "64x56".parse().unwrap();
        assert_eq!((shape, shape.to_string()), (Shape { sentences: 64, tokens: 56 }, "64x56".to_owned()));
        for text in ["64", "0x5", "3x1", "x", "4x99999999", "4000000000x2"] {
            assert!(text.parse::<Shape>().unwrap_err().contains("64x56"), "{text}");
        }
    }

    #[test]
    fn a_shape_stays_within_the_limit() {
        let shape = Shape { sentences: 64, tokens: 56 };
        assert_eq!(shape.with(2), Shape { sentences: 2, tokens: 56 });
        assert!(shape.with(u32::MAX).is_usable());
    }
}
