//! Token sequences in one piece of memory, and in a file.

use sha2::{Digest, Sha256};

use super::translation::PreparedSplit;

/// Sequences of token ids, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sequences {
    tokens: Vec<u32>,
    /// Where each sequence ends.
    ends: Vec<usize>,
}

impl Sequences {
    /// Adds a sequence at the end.
    pub fn push(&mut self, sequence: &[u32]) {
        self.tokens.extend_from_slice(sequence);
        self.ends.push(self.tokens.len());
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Sequence `index`; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<&[u32]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        self.tokens.get(start..end)
    }

    /// All sequences in turn.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All tokens of all sequences.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Length of the longest sequence; 0 where there is none.
    pub fn longest(&self) -> usize {
        self.iter().map(<[u32]>::len).max().unwrap_or(0)
    }
}

impl<S: AsRef<[u32]>> FromIterator<S> for Sequences {
    fn from_iter<I: IntoIterator<Item = S>>(sequences: I) -> Self {
        let mut all = Self::default();
        for sequence in sequences {
            all.push(sequence.as_ref());
        }
        all
    }
}

const MAGIC: &[u8; 8] = b"ZOOPAIR1";
const DIGEST: usize = 32;

/// The ids of a split: magic, number of pairs and bytes a token (u32 each), then per pair its line, source length and
/// target length (u32), then all source and all target tokens (u16 or u32), then the SHA-256 of all of it. Little
/// endian.
pub(super) fn to_bytes(split: &PreparedSplit) -> Vec<u8> {
    let largest = split.source.tokens().iter().chain(split.target.tokens()).max().copied().unwrap_or(0);
    let width: u32 = if largest <= u32::from(u16::MAX) { 2 } else { 4 };
    let mut bytes = MAGIC.to_vec();
    let mut put = |number: u32| bytes.extend(number.to_le_bytes());
    put(split.lines.len() as u32);
    put(width);
    for (line, (source, target)) in split.lines.iter().zip(split.source.iter().zip(split.target.iter())) {
        put(*line);
        put(source.len() as u32);
        put(target.len() as u32);
    }
    for token in split.source.tokens().iter().chain(split.target.tokens()) {
        bytes.extend(&token.to_le_bytes()[..width as usize]);
    }
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

/// Reads what [`to_bytes`] writes: sources, targets and lines. `rows` are the sizes of the vocabularies, which no id
/// may reach. The error says what is wrong.
pub(super) fn from_bytes(
    bytes: &[u8],
    rows: (u32, u32),
) -> Result<(Sequences, Sequences, Vec<u32>), &'static str> {
    let short = "it is too short";
    let (body, digest) = bytes.split_at(bytes.len().checked_sub(DIGEST).ok_or(short)?);
    if Sha256::digest(body)[..] != *digest {
        return Err("its checksum is wrong");
    }
    let mut rest = body.strip_prefix(MAGIC).ok_or("it does not hold ids")?;
    let mut number = || -> Result<u32, &'static str> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or(short)?;
        rest = tail;
        Ok(u32::from_le_bytes(*head))
    };
    let (pairs, width) = (number()?, number()?);
    let mut lines = Vec::new();
    let mut lengths = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        lines.push(number()?);
        lengths.0.push(number()? as usize);
        lengths.1.push(number()? as usize);
    }
    let tokens: Vec<u32> = match width {
        2 => rest.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))).collect(),
        4 => rest.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        _ => return Err("its tokens have an unknown size"),
    };
    let (sources, targets) = (lengths.0.iter().sum::<usize>(), lengths.1.iter().sum::<usize>());
    if tokens.len() != sources + targets || tokens.len() * width as usize != rest.len() {
        return Err("its lengths do not fit its tokens");
    }
    let (source, target) = tokens.split_at(sources);
    if source.iter().any(|&id| id >= rows.0) || target.iter().any(|&id| id >= rows.1) {
        return Err("it has ids beyond the vocabulary");
    }
    Ok((cut(source, &lengths.0), cut(target, &lengths.1), lines))
}

fn cut(mut tokens: &[u32], lengths: &[usize]) -> Sequences {
    let mut sequences = Sequences::default();
    for &length in lengths {
        let (sequence, rest) = tokens.split_at(length);
        sequences.push(sequence);
        tokens = rest;
    }
    sequences
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_come_out_as_they_went_in() {
        let all: Sequences = [vec![1, 2], vec![], vec![3]].into_iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), [&[1, 2][..], &[], &[3]]);
        assert_eq!((all.len(), all.longest(), all.get(3)), (3, 2, None));
        assert_eq!(Sequences::default().longest(), 0);
    }

    proptest! {
        #[test]
        fn ids_survive_the_way_through_bytes_and_no_flipped_bit_is_missed(
            pairs in prop::collection::vec(
                (prop::collection::vec(0_u32..70_000, 0..9), prop::collection::vec(0_u32..9, 0..9)), 0..9),
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let split = PreparedSplit {
                source: pairs.iter().map(|(source, _)| source).collect(),
                target: pairs.iter().map(|(_, target)| target).collect(),
                lines: (0..pairs.len() as u32).map(|line| line * 3).collect(),
                ..PreparedSplit::default()
            };
            let mut bytes = to_bytes(&split);
            let read = from_bytes(&bytes, (70_000, 9));
            prop_assert_eq!(read, Ok((split.source.clone(), split.target.clone(), split.lines.clone())));
            if split.target.tokens().contains(&8) {
                prop_assert_eq!(from_bytes(&bytes, (70_000, 8)), Err("it has ids beyond the vocabulary"));
            }
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(from_bytes(&bytes, (70_000, 9)).is_err());
            prop_assert!(from_bytes(&bytes[..at], (70_000, 9)).is_err());
        }
    }
}
