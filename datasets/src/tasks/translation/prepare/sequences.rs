//! Token sequences in one contiguous block of memory, and their file format.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::outputs::{FileDigest, OutputFile};

/// Sequences of token ids, stored contiguously.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sequences {
    tokens: Vec<u32>,
    /// End of each sequence in `tokens`.
    ends: Vec<usize>,
}

impl Sequences {
    fn with_capacity(sequences: usize, tokens: usize) -> Self {
        Self { tokens: Vec::with_capacity(tokens), ends: Vec::with_capacity(sequences) }
    }

    /// Appends a sequence.
    pub fn push(&mut self, sequence: &[u32]) {
        self.tokens.extend_from_slice(sequence);
        self.ends.push(self.tokens.len());
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Sequence `index`; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<&[u32]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        self.tokens.get(start..end)
    }

    /// Iterates over all sequences in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The tokens of all sequences, concatenated.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Length of the longest sequence; 0 if there are none.
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
/// Size in bytes of the header: magic, number of pairs, bytes per token.
const HEAD: usize = 16;
/// Size in bytes of a pair's entry: line, source length, target length.
const PAIR: usize = 12;

/// Writes the ids of a split. The file holds: magic, number of pairs and bytes per token (u32
/// each); for each pair its line, source length and target length (u32); all source tokens, then
/// all target tokens (u16 or u32); the SHA-256 of everything before. Little endian. The three parts
/// are separate files until the end, so a split does not need to fit in memory.
pub(super) struct IdsWriter {
    parts: [BufWriter<File>; 3],
    paths: [PathBuf; 3],
    pairs: u32,
    width: u32,
}

impl IdsWriter {
    /// Starts a file of ids below `rows`. `work` is the folder of the parts until the end.
    pub(super) fn new(work: &Path, name: &str, rows: usize) -> io::Result<Self> {
        let paths = ["lengths", "source", "target"].map(|part| work.join(format!("{name}.ids.{part}")));
        let open = |path: &Path| Ok::<_, io::Error>(BufWriter::with_capacity(1 << 16, File::create(path)?));
        let parts = [open(&paths[0])?, open(&paths[1])?, open(&paths[2])?];
        Ok(Self { parts, paths, pairs: 0, width: if rows <= 1 << 16 { 2 } else { 4 } })
    }

    /// Appends the next pair, which is line `line` of the text.
    pub(super) fn push(&mut self, line: u32, source: &[u32], target: &[u32]) -> io::Result<()> {
        for number in [line, source.len() as u32, target.len() as u32] {
            self.parts[0].write_all(&number.to_le_bytes())?;
        }
        for (part, tokens) in self.parts[1..].iter_mut().zip([source, target]) {
            for token in tokens {
                part.write_all(&token.to_le_bytes()[..self.width as usize])?;
            }
        }
        self.pairs = self.pairs.checked_add(1).ok_or_else(|| io::Error::other("more than 2^32 pairs"))?;
        Ok(())
    }

    /// Joins the parts in `file`.
    pub(super) fn finish(mut self, file: &Path) -> io::Result<FileDigest> {
        let mut out = OutputFile::create(file)?;
        // The digest covers everything before it.
        let mut inner = Sha256::new();
        let mut put = |out: &mut OutputFile, bytes: &[u8]| {
            inner.update(bytes);
            out.write_all(bytes)
        };
        put(&mut out, MAGIC)?;
        put(&mut out, &self.pairs.to_le_bytes())?;
        put(&mut out, &self.width.to_le_bytes())?;
        let mut block = vec![0; 1 << 16];
        for (part, path) in self.parts.iter_mut().zip(&self.paths) {
            part.flush()?;
            let mut part = File::open(path)?;
            loop {
                match part.read(&mut block)? {
                    0 => break,
                    n => put(&mut out, &block[..n])?,
                }
            }
            std::fs::remove_file(path)?;
        }
        out.write_all(&inner.finalize())?;
        out.finish()
    }
}

/// Sources, targets and lines.
pub(super) type Ids = (Sequences, Sequences, Vec<u32>);

/// Reads `length` bytes that [`IdsWriter`] wrote. `rows` are the sizes of the vocabularies; every
/// id must be below. The error says what is wrong. Its kind is `InvalidData` unless reading itself
/// failed.
pub(super) fn read_ids(from: impl Read, length: u64, rows: (u32, u32)) -> io::Result<Ids> {
    let bad = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let short = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => bad("it is too short"),
        _ => e,
    };
    let mut from = Digested { inner: BufReader::with_capacity(1 << 16, from), sha256: Sha256::new() };
    let mut head = [0; HEAD];
    from.read_exact(&mut head).map_err(short)?;
    if head[..8] != *MAGIC {
        return Err(bad("it does not hold ids"));
    }
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (pairs, width) = (number(&head[8..12]) as u64, number(&head[12..]));
    if width != 2 && width != 4 {
        return Err(bad("its tokens have an unknown size"));
    }
    // Check the size before memory for it is allocated.
    let room = (length as i128) - (HEAD + DIGEST) as i128 - i128::from(pairs) * PAIR as i128;
    let fits = |tokens: i128| room == tokens * i128::from(width);
    if room < 0 {
        return Err(bad("it is too short"));
    }
    let mut lines = Vec::with_capacity(pairs as usize);
    let mut lengths = Vec::with_capacity(pairs as usize);
    let mut sums = (0_u64, 0_u64);
    for _ in 0..pairs {
        let mut pair = [0; PAIR];
        from.read_exact(&mut pair).map_err(short)?;
        lines.push(number(&pair));
        let (source, target) = (number(&pair[4..]), number(&pair[8..]));
        sums = (sums.0 + u64::from(source), sums.1 + u64::from(target));
        lengths.push((source, target));
    }
    if !fits(i128::from(sums.0) + i128::from(sums.1)) {
        return Err(bad("its lengths do not fit its tokens"));
    }
    let mut side = |tokens: u64, rows: u32, length: &dyn Fn(&(u32, u32)) -> u32| -> io::Result<Sequences> {
        let mut sequences = Sequences::with_capacity(lengths.len(), tokens as usize);
        let mut bytes = Vec::new();
        for pair in &lengths {
            bytes.resize(length(pair) as usize * width as usize, 0);
            from.read_exact(&mut bytes).map_err(short)?;
            match width {
                2 => sequences
                    .tokens
                    .extend(bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])))),
                _ => sequences.tokens.extend(bytes.chunks_exact(4).map(number)),
            }
            sequences.ends.push(sequences.tokens.len());
        }
        match sequences.tokens.iter().any(|&id| id >= rows) {
            true => Err(bad("it has ids beyond the vocabulary")),
            false => Ok(sequences),
        }
    };
    let source = side(sums.0, rows.0, &|pair| pair.0)?;
    let target = side(sums.1, rows.1, &|pair| pair.1)?;
    let due = from.sha256.finalize();
    let mut digest = [0; DIGEST];
    from.inner.read_exact(&mut digest).map_err(short)?;
    if due[..] != digest {
        return Err(bad("its checksum is wrong"));
    }
    Ok((source, target, lines))
}

/// A reader that digests its bytes.
struct Digested<R> {
    inner: R,
    sha256: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.sha256.update(&buffer[..n]);
        Ok(n)
    }
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

    fn written(pairs: &[(Vec<u32>, Vec<u32>)], rows: usize) -> Vec<u8> {
        let work = tempfile::tempdir().unwrap();
        let mut writer = IdsWriter::new(work.path(), "x", rows).unwrap();
        for (line, (source, target)) in (0..).zip(pairs) {
            writer.push(line * 3, source, target).unwrap();
        }
        let file = work.path().join("x.ids");
        let digest = writer.finish(&file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(digest.sha256, crate::fetch::sha256_of(&bytes));
        assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 1, "the parts are gone");
        bytes
    }

    fn read(bytes: &[u8], rows: (u32, u32)) -> Result<Ids, String> {
        read_ids(bytes, bytes.len() as u64, rows).map_err(|e| e.to_string())
    }

    proptest! {
        #[test]
        fn ids_survive_the_way_through_a_file_and_no_flipped_bit_is_missed(
            pairs in prop::collection::vec(
                (prop::collection::vec(0_u32..70_000, 0..9), prop::collection::vec(0_u32..9, 0..9)), 0..9),
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let source: Sequences = pairs.iter().map(|(source, _)| source).collect();
            let target: Sequences = pairs.iter().map(|(_, target)| target).collect();
            let lines: Vec<u32> = (0..pairs.len() as u32).map(|line| line * 3).collect();
            let mut bytes = written(&pairs, 70_000);
            prop_assert_eq!(read(&bytes, (70_000, 9)), Ok((source, target.clone(), lines)));
            if target.tokens().contains(&8) {
                prop_assert_eq!(read(&bytes, (70_000, 8)), Err("it has ids beyond the vocabulary".to_string()));
            }
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(read(&bytes, (70_000, 9)).is_err());
            prop_assert!(read(&bytes[..at], (70_000, 9)).is_err());
        }

        #[test]
        fn small_ids_take_two_bytes(ids in prop::collection::vec(0_u32..65_536, 1..20)) {
            let bytes = written(&[(ids.clone(), vec![])], 65_536);
            prop_assert_eq!(bytes.len(), HEAD + PAIR + 2 * ids.len() + DIGEST);
            let (source, _, _) = read(&bytes, (65_536, 1)).unwrap();
            prop_assert_eq!(source.tokens(), &ids[..]);
        }
    }
}
