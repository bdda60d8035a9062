//! Shuffles pairs of lines, in the same random order on both sides, with little memory.
//!
//! Pair `i` gets a key of 64 bits, a function of (seed, i) alone, and pairs are sorted by key. They
//! are distributed to files by the upper part of their keys, and each file is then sorted in
//! memory. The order does not depend on the number of files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use crate::random::{Purpose, RandomStream};

/// Bytes of text that are sorted in memory at once.
const BUCKET: u64 = 64 << 20;

fn key(seed: u64, index: u64) -> u64 {
    let mut stream = RandomStream::new(seed, Purpose::CorpusOrder, index);
    u64::from(stream.next_u32()) << 32 | u64::from(stream.next_u32())
}

/// Shuffles the lines of two files of equal length in place, both in the same order. `work` is an
/// empty folder.
pub(super) fn shuffle_pairs(source: &Path, target: &Path, seed: u64, work: &Path) -> io::Result<()> {
    let bytes = source.metadata()?.len() + target.metadata()?.len();
    shuffle_in(source, target, seed, work, bytes.div_ceil(BUCKET).clamp(1, 512))
}

fn shuffle_in(source: &Path, target: &Path, seed: u64, work: &Path, buckets: u64) -> io::Result<()> {
    let place = |bucket: u64| work.join(format!("bucket-{bucket}"));
    let mut files: Vec<BufWriter<File>> = (0..buckets)
        .map(|bucket| Ok(BufWriter::new(File::create(place(bucket))?)))
        .collect::<io::Result<_>>()?;
    let mut sides = [BufReader::new(File::open(source)?), BufReader::new(File::open(target)?)];
    let mut lines = [Vec::new(), Vec::new()];
    for index in 0.. {
        for (side, line) in sides.iter_mut().zip(&mut lines) {
            line.clear();
            side.read_until(b'\n', line)?;
        }
        if lines.iter().all(Vec::is_empty) {
            break;
        }
        let key = key(seed, index);
        let bucket = ((u128::from(key) * u128::from(buckets)) >> 64) as usize;
        let file = &mut files[bucket];
        file.write_all(&key.to_le_bytes())?;
        for line in &lines {
            file.write_all(&(line.len() as u64).to_le_bytes())?;
        }
        lines.iter().try_for_each(|line| file.write_all(line))?;
    }
    files.into_iter().try_for_each(|mut file| file.flush())?;
    drop(sides);
    let mut sides = [BufWriter::new(File::create(source)?), BufWriter::new(File::create(target)?)];
    for bucket in 0..buckets {
        let mut bytes = Vec::new();
        File::open(place(bucket))?.read_to_end(&mut bytes)?;
        std::fs::remove_file(place(bucket))?;
        let mut records = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let number = |at: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[at..at + 8]);
                u64::from_le_bytes(word)
            };
            let (source, target) = (number(at + 8) as usize, number(at + 16) as usize);
            records.push((number(at), at + 24, source, target));
            at += 24 + source + target;
        }
        // The sort is stable: pairs with equal keys stay in the order of the text.
        records.sort_by_key(|(key, ..)| *key);
        for (_, start, source, target) in records {
            sides[0].write_all(&bytes[start..start + source])?;
            sides[1].write_all(&bytes[start + source..start + source + target])?;
        }
    }
    sides.iter_mut().try_for_each(Write::flush)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(pairs: usize, seed: u64, buckets: u64) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("s"), dir.path().join("t"));
        let text = |letter: char| (0..pairs).map(|i| format!("{letter}{i}\n")).collect::<String>();
        std::fs::write(&source, text('s')).unwrap();
        std::fs::write(&target, text('t')).unwrap();
        shuffle_in(&source, &target, seed, dir.path(), buckets).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no bucket is left");
        let lines = |file| -> Vec<String> {
            std::fs::read_to_string(file).unwrap().lines().map(String::from).collect()
        };
        lines(&source).into_iter().zip(lines(&target)).collect()
    }

    #[test]
    fn pairs_stay_together_and_none_is_lost() {
        let pairs = shuffled(1000, 1, 7);
        assert!(pairs.iter().all(|(source, target)| source[1..] == target[1..]));
        let mut numbers: Vec<usize> = pairs.iter().map(|(s, _)| s[1..].parse().unwrap()).collect();
        assert_ne!(numbers, (0..1000).collect::<Vec<_>>());
        // About half of all neighbours are in ascending order.
        let rising = numbers.windows(2).filter(|w| w[0] < w[1]).count();
        assert!((420..580).contains(&rising), "{rising}");
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_depends_on_the_seed_alone() {
        assert_eq!(shuffled(500, 1, 1), shuffled(500, 1, 13));
        assert_ne!(shuffled(500, 1, 1), shuffled(500, 2, 1));
        let first: Vec<String> = shuffled(8, 1, 3).into_iter().map(|(s, _)| s).collect();
        assert_eq!(first.len(), 8);
        assert!(shuffled(0, 1, 3).is_empty());
    }
}
