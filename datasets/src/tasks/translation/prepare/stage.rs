//! Stages the text of a split: normalised and cleaned, in two files with one line per pair.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use md5::Md5;
use sha2::Digest;

use super::clean::Cleaner;
use super::error::PrepareError;
use super::pipeline::Treatment;
use super::prepared::{SplitReferences, SplitStatistics};
use crate::corpora::CleanSpec;
use crate::readers::{PairReader, SplitText};
use crate::tasks::translation::PairSplit;
use crate::text::bpe::{undo, words_of};
use crate::text::counts::WordCounts;
use crate::text::sentencepiece::learns_from;

/// Number of pairs that are processed at once.
pub(super) const CHUNK: usize = 1 << 14;

/// Counts of the words of the training text.
#[derive(Debug, Default)]
pub(super) struct TrainingWords {
    pub source: WordCounts,
    /// Empty if both sides are counted together.
    pub target: WordCounts,
    pub together: bool,
    pub words: WordKind,
    /// Present for text in several target languages.
    counted: Option<Counted>,
}

/// The separator of the words that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WordKind {
    /// White space of any kind.
    #[default]
    WhiteSpace,
    /// ASCII spaces.
    Spaces,
    /// ASCII spaces, in the lines from which SentencePiece learns.
    SentencePiece,
}

impl TrainingWords {
    pub fn new(words: WordKind, together: bool) -> Self {
        Self { words, together, ..Self::default() }
    }

    /// Prepares the counts for text in several target languages: a source line is counted only in
    /// the first language that has it.
    pub fn of_languages(mut self, languages: usize) -> Self {
        self.counted = (languages > 1).then(Counted::default);
        self
    }

    fn add(&mut self, source: &str, target: &str) {
        if self.counted.as_mut().is_none_or(|counted| counted.is_new(source)) {
            add_line(&mut self.source, source, self.words);
        }
        add_line(if self.together { &mut self.source } else { &mut self.target }, target, self.words);
    }
}

/// Hashes of the source lines whose words were counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    earlier: HashSet<u64>,
    here: Vec<u64>,
}

impl Counted {
    /// Whether no earlier language has the line. Equal lines within one language are all counted.
    fn is_new(&mut self, line: &str) -> bool {
        let mut hasher = std::hash::DefaultHasher::new();
        line.hash(&mut hasher);
        self.here.push(hasher.finish());
        !self.earlier.contains(&hasher.finish())
    }

    fn end_language(&mut self) {
        self.earlier.extend(self.here.drain(..));
    }
}

fn add_line(counts: &mut WordCounts, line: &str, words: WordKind) {
    match words {
        WordKind::WhiteSpace => line.split_whitespace().for_each(|word| counts.add(word, 1)),
        WordKind::SentencePiece if !learns_from(line) => {}
        WordKind::Spaces | WordKind::SentencePiece => words_of(line).for_each(|word| counts.add(word, 1)),
    }
}

/// Options for staging the text of one split.
pub(super) struct StageOrder<'a> {
    pub split: &'a PairSplit,
    pub treatment: &'a Treatment,
    pub clean: Option<&'a CleanSpec>,
    /// Keep the lines as references for scoring.
    pub references: bool,
    /// Where to count the words.
    pub counts: Option<&'a mut TrainingWords>,
}

/// A split whose text is in files.
#[derive(Debug)]
pub(super) struct StagedSplit {
    pub split: PairSplit,
    pub source: PathBuf,
    pub target: PathBuf,
    pub statistics: SplitStatistics,
    pub references: Option<SplitReferences>,
    /// MD5 of the text as it was read, one example per line, of (source, target).
    pub raw_md5: (String, String),
}

/// Writes the text of `reader` into `work`.
pub(super) fn stage(
    mut reader: PairReader,
    work: &Path,
    mut order: StageOrder<'_>,
) -> Result<StagedSplit, PrepareError> {
    let name = order.split.name();
    let paths = ["source", "target"].map(|side| work.join(format!("{name}.{side}")));
    let create = |path: &Path| -> Result<BufWriter<File>, PrepareError> {
        Ok(BufWriter::with_capacity(1 << 16, File::create(path).map_err(PrepareError::io(path))?))
    };
    let mut files = [create(&paths[0])?, create(&paths[1])?];
    let mut write = |side: usize, line: &str| -> Result<(), PrepareError> {
        let file = &mut files[side];
        let written = file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n"));
        written.map_err(PrepareError::io(&paths[side]))
    };
    let mut cleaner = order.clean.map(Cleaner::new);
    let mut statistics = SplitStatistics::default();
    let mut references = order.references.then(SplitReferences::default);
    let mut raw = (Md5::new(), Md5::new());
    while let Some(chunk) = reader.next_chunk(CHUNK)? {
        statistics.pairs_read += chunk.len() as u64;
        let SplitText { source: raw_source, target: raw_target, .. } = chunk;
        let sources = order.treatment.source.lines(&raw_source);
        let targets = order.treatment.targets[order.split.target].lines(&raw_target);
        for (index, raw_line) in raw_target.into_iter().enumerate() {
            if order.references {
                digest_line(&mut raw.0, &raw_source[index]);
                digest_line(&mut raw.1, &raw_line);
            }
            let (source, target) = (&sources[index], &targets[index]);
            let cleaned = match &mut cleaner {
                Some(cleaner) => match cleaner.pair(source, target) {
                    Some(pair) => Some(pair),
                    None => {
                        statistics.dropped_by_cleaning += 1;
                        continue;
                    }
                },
                None => None,
            };
            let (source, target) = cleaned
                .as_ref()
                .map_or((source.as_str(), target.as_str()), |(s, t)| (s.as_str(), t.as_str()));
            write(0, source)?;
            write(1, target)?;
            if let Some(counts) = &mut order.counts {
                counts.add(source, target);
            }
            if let Some(references) = &mut references {
                let words = if order.treatment.subwords { undo(target) } else { target.to_string() };
                references.normalized.push(words.split_whitespace().collect::<Vec<_>>().join(" "));
                references.raw.push(raw_line);
            }
        }
    }
    if let Some(counted) = order.counts.and_then(|counts| counts.counted.as_mut()) {
        counted.end_language();
    }
    statistics.skipped_empty = reader.skipped_empty();
    statistics.pairs_read += statistics.skipped_empty;
    for (file, path) in files.iter_mut().zip(&paths) {
        file.flush().map_err(PrepareError::io(path))?;
    }
    let [source, target] = paths;
    let raw_md5 = (hex::encode(raw.0.finalize()), hex::encode(raw.1.finalize()));
    Ok(StagedSplit { split: order.split.clone(), source, target, statistics, references, raw_md5 })
}

fn digest_line(md5: &mut Md5, line: &str) {
    md5.update(line.as_bytes());
    md5.update(b"\n");
}

/// Reads the lines of a staged file in chunks.
pub(super) struct StagedLines {
    file: BufReader<File>,
    path: PathBuf,
}

impl StagedLines {
    pub fn open(path: &Path) -> Result<Self, PrepareError> {
        let file = File::open(path).map_err(PrepareError::io(path))?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file), path: path.into() })
    }

    /// Reads at most `lines` more lines.
    pub fn next_chunk(&mut self, lines: usize) -> Result<Vec<String>, PrepareError> {
        let mut chunk = Vec::new();
        while chunk.len() < lines {
            let mut line = String::new();
            // Only a line feed ends a line, as when it was written.
            match self.file.read_line(&mut line).map_err(PrepareError::io(&self.path))? {
                0 => break,
                _ => line.pop(),
            };
            chunk.push(line);
        }
        Ok(chunk)
    }
}
