//! What sequence models read: tokens of all sequences behind each other, without padding.

/// Sequences of unlike length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packed {
    /// All tokens.
    pub tokens: Vec<u32>,
    /// Tokens of each sequence.
    pub lengths: Vec<u32>,
}

impl Packed {
    /// From separate sequences.
    pub fn new<S: AsRef<[u32]>>(sequences: &[S]) -> Self {
        Self {
            tokens: sequences.iter().flat_map(|s| s.as_ref().iter().copied()).collect(),
            lengths: sequences.iter().map(|s| s.as_ref().len() as u32).collect(),
        }
    }

    /// Each sequence.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.tokens.as_slice();
        self.lengths.iter().map(move |&length| {
            let (sequence, tail) = rest.split_at(length as usize);
            rest = tail;
            sequence
        })
    }
}

/// Sources and the targets to be predicted. Both end with the end token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PairBatch {
    /// What is read.
    pub source: Packed,
    /// What is written.
    pub target: Packed,
    /// Index of the target language: which decoder writes it.
    pub language: usize,
    /// Target positions of the padded batch as published: the denominator of losses that count padding.
    pub target_positions: u64,
}
