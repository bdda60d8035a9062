//! Input of sequence models: the tokens of all sequences of a batch, concatenated without padding.

/// Token sequences of different lengths, concatenated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packed {
    /// Tokens of all sequences, concatenated.
    pub tokens: Vec<u32>,
    /// Number of tokens of each sequence.
    pub lengths: Vec<u32>,
}

impl Packed {
    /// Concatenates separate sequences.
    pub fn new<S: AsRef<[u32]>>(sequences: &[S]) -> Self {
        Self {
            tokens: sequences.iter().flat_map(|s| s.as_ref().iter().copied()).collect(),
            lengths: sequences.iter().map(|s| s.as_ref().len() as u32).collect(),
        }
    }

    /// Iterates over the sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.tokens.as_slice();
        self.lengths.iter().map(move |&length| {
            let (sequence, tail) = rest.split_at(length as usize);
            rest = tail;
            sequence
        })
    }
}
