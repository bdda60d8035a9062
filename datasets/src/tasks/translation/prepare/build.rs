//! Prepares a corpus of any size. Text goes from file to file; only the words and their counts are
//! in memory.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use zoo_recipes::tasks::translation::{TextDataSpec, TextFilterSpec, TextReaderSpec, TooLong};
use zoo_recipes::{Specials, TextTokenizerSpec};

use super::error::PrepareError;
use super::outputs::{FileDigest, OutputFile};
use super::pieces::Pieces;
use super::pipeline::{Segmenter, TextPipeline, Treatment, with_specials};
use super::prepared::{PrepareOptions, SplitReferences, SplitStatistics};
use super::sequences::IdsWriter;
use super::shuffle::shuffle_pairs;
use super::stage::{CHUNK, StageOrder, StagedLines, StagedSplit, TrainingWords, WordKind, stage};
use super::surroundings::{PrepareStep, Surroundings};
use crate::corpora::Preparation;
use crate::readers::PairReader;
use crate::tasks::translation::{PairSplit, TRAIN};
use crate::text::bpe::{Encoder, learn_from_counts};
use crate::text::counts::WordCounts;
use crate::text::sentencepiece::{SentencePiece, TrainerError, learn_from_counts as learn_pieces};
use crate::text::vocabulary::{SpecialIds, Vocabulary};

/// Digests and statistics of the written files, for the manifest.
pub(super) struct Built {
    pub files: BTreeMap<String, String>,
    pub splits: BTreeMap<String, SplitStatistics>,
}

/// Prepares `splits` into `folder`, which is empty and used by this process only. `open` opens the
/// text of each split.
pub(super) fn build(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
    surroundings: &Surroundings<'_>,
    splits: &[PairSplit],
    open: &mut dyn FnMut(&PairSplit) -> Result<PairReader, PrepareError>,
) -> Result<Built, PrepareError> {
    splits.iter().try_for_each(|split| check_name(&split.split))?;
    let work =
        tempfile::Builder::new().prefix(".work-").tempdir_in(folder).map_err(PrepareError::io(folder))?;
    let builder = Builder { folder, work: work.path(), data, options, surroundings };
    let mut counts = builder.word_counts();
    let mut staged = Vec::new();
    for split in splits {
        (surroundings.progress)(PrepareStep::Text(split.name()));
        staged.push(builder.stage(split, open(split)?, &mut counts)?);
    }
    if !splits.iter().any(PairSplit::is_train) {
        return Err(PrepareError::MissingSplit {
            split: TRAIN.into(),
            user: "training".into(),
            known: splits.iter().map(|split| format!("`{}`", split.name())).collect::<Vec<_>>().join(", "),
        });
    }
    for train in staged.iter().filter(|staged| staged.split.is_train()) {
        let SplitStatistics { pairs_read, skipped_empty, dropped_by_cleaning, .. } = train.statistics;
        if pairs_read == skipped_empty + dropped_by_cleaning {
            return Err(nothing_to_train_on(&train.split, pairs_read));
        }
        if let Some(seed) = surroundings.preparation.and_then(|preparation| preparation.shuffle) {
            (surroundings.progress)(PrepareStep::Shuffle);
            shuffle_pairs(&train.source, &train.target, seed, work.path())
                .map_err(PrepareError::io(work.path()))?;
        }
    }
    let mut built = Built { files: BTreeMap::new(), splits: BTreeMap::new() };
    (surroundings.progress)(PrepareStep::Learn);
    let pipeline = builder.learn(counts)?;
    builder.save_pipeline(&pipeline, &mut built)?;
    for staged in staged {
        (surroundings.progress)(PrepareStep::Encode(staged.split.name()));
        builder.encode(&pipeline, staged, &mut built)?;
    }
    drop(work);
    Ok(built)
}

fn nothing_to_train_on(split: &PairSplit, read: u64) -> PrepareError {
    PrepareError::NothingToTrainOn { split: split.name().into(), read }
}

fn check_name(name: &str) -> Result<(), PrepareError> {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.is_empty() || name.starts_with('.') || !name.chars().all(valid) {
        true => Err(PrepareError::SplitName(name.into())),
        false => Ok(()),
    }
}

struct Builder<'a> {
    folder: &'a Path,
    work: &'a Path,
    data: &'a TextDataSpec,
    options: PrepareOptions,
    surroundings: &'a Surroundings<'a>,
}

impl Builder<'_> {
    fn preparation(&self) -> Option<&Preparation> {
        self.surroundings.preparation
    }

    fn word_counts(&self) -> TrainingWords {
        let words = match &self.data.tokenizer {
            TextTokenizerSpec::Words { joint, .. } => TrainingWords::new(WordKind::WhiteSpace, *joint),
            TextTokenizerSpec::SubwordNmt { joined_dictionary, .. } => {
                TrainingWords::new(WordKind::Spaces, *joined_dictionary)
            }
            TextTokenizerSpec::SentencePiece { joint, .. } => {
                TrainingWords::new(WordKind::SentencePiece, *joint)
            }
        };
        words.of_languages(self.data.reader.targets().len())
    }

    fn stage(
        &self,
        split: &PairSplit,
        reader: PairReader,
        counts: &mut TrainingWords,
    ) -> Result<StagedSplit, PrepareError> {
        let own = self.preparation().and_then(|preparation| preparation.normalize.get(&split.split));
        let treatment = Treatment::of(self.data, own.map(Vec::as_slice))?;
        let clean = self.preparation().and_then(|preparation| preparation.clean.as_ref());
        let train = split.is_train();
        // A model that is given does not need the counts.
        let given = matches!(&self.data.tokenizer, TextTokenizerSpec::SentencePiece { model: Some(_), .. });
        let order = StageOrder {
            split,
            treatment: &treatment,
            clean: clean.filter(|clean| clean.splits.contains(&split.split)),
            references: !train,
            counts: (train && !given).then_some(counts),
        };
        stage(reader, self.work, order)
    }

    /// Learns sub-words and vocabularies from the words of the training text.
    fn learn(&self, counts: TrainingWords) -> Result<TextPipeline, PrepareError> {
        let begin = (self.data.begin_token_in_source, self.options.begin_token_in_target);
        let treatment = Treatment::of(self.data, None)?;
        let (segmenter, vocabularies) = match &self.data.tokenizer {
            TextTokenizerSpec::Words {
                specials,
                pad_vocabulary_to,
                max_vocabulary,
                max_target_vocabulary,
                min_count,
                ..
            } => {
                let least = u64::from(min_count.unwrap_or(0));
                let side = |words: &WordCounts, most: Option<u32>| {
                    let often = words.iter().filter(|(_, count)| *count >= least);
                    let words = often.map(|(word, count)| (word.to_string(), count)).collect();
                    Arc::new(Vocabulary::from_counts(words, *specials, *pad_vocabulary_to, most))
                };
                let source = side(&counts.source, *max_vocabulary);
                let target = match counts.together {
                    true => source.clone(),
                    false => side(&counts.target, max_target_vocabulary.or(*max_vocabulary)),
                };
                (Segmenter::Words, (source, target))
            }
            TextTokenizerSpec::SubwordNmt { merges, specials, pad_vocabulary_to, max_vocabulary, .. } => {
                let codes = learn_from_counts(&[&counts.source, &counts.target], *merges as usize);
                let encoder = Encoder::new(&codes);
                let side = |words: &WordCounts| {
                    let tokens = token_counts(&encoder, words);
                    Arc::new(Vocabulary::from_counts(tokens, *specials, *pad_vocabulary_to, *max_vocabulary))
                };
                let source = side(&counts.source);
                let target = if counts.together { source.clone() } else { side(&counts.target) };
                (Segmenter::subword_nmt(codes), (source, target))
            }
            TextTokenizerSpec::SentencePiece { pieces, joint, specials, model } => {
                let (source, target) = match model {
                    Some(model) => {
                        let file = self.surroundings.base.join(model);
                        let pieces =
                            Pieces::new(SentencePiece::load(&file)?, *specials, Some(*pieces), &file)?;
                        let both = Arc::new(pieces);
                        (both.clone(), both)
                    }
                    None if *joint => {
                        let both = self.learnt_pieces(counts.source, *pieces, *specials)?;
                        (both.clone(), both)
                    }
                    None => {
                        let side = |words| self.learnt_pieces(words, *pieces, *specials);
                        (side(counts.source)?, side(counts.target)?)
                    }
                };
                let vocabularies = (source.vocabulary().clone(), target.vocabulary().clone());
                (Segmenter::SentencePiece { source, target }, vocabularies)
            }
        };
        Ok(TextPipeline::new(treatment, segmenter, vocabularies, begin))
    }

    /// A share of the text may give fewer pieces than the whole text. In that case the model has as
    /// many as the share gives.
    fn learnt_pieces(
        &self,
        words: WordCounts,
        pieces: u32,
        layout: Specials,
    ) -> Result<Arc<Pieces>, PrepareError> {
        let specials = SpecialIds::of(layout);
        let shared = self.data.share.is_some().then(|| words.clone());
        let model = match (learn_pieces(words, pieces, specials), shared) {
            (Err(TrainerError::TooMany { found, .. }), Some(words)) => {
                learn_pieces(words, found as u32, specials)?
            }
            (model, _) => model?,
        };
        Ok(Arc::new(Pieces::new(model, layout, None, Path::new("the learnt model"))?.learnt_here()))
    }

    fn save_pipeline(&self, pipeline: &TextPipeline, built: &mut Built) -> Result<(), PrepareError> {
        pipeline.files().into_iter().try_for_each(|(name, bytes)| self.save(&name, &bytes, built))
    }

    fn save(&self, name: &str, bytes: &[u8], built: &mut Built) -> Result<(), PrepareError> {
        self.write(name, built, |file| std::io::Write::write_all(file, bytes)).map(|_| ())
    }

    fn write(
        &self,
        name: &str,
        built: &mut Built,
        fill: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
    ) -> Result<FileDigest, PrepareError> {
        let path = self.folder.join(name);
        let written = OutputFile::create(&path).and_then(|mut file| {
            fill(&mut file)?;
            file.finish()
        });
        let digest = written.map_err(PrepareError::io(&path))?;
        built.files.insert(name.into(), digest.sha256.clone());
        Ok(digest)
    }

    /// Writes the tokens and ids of a split, and checks them against the published digests.
    fn encode(
        &self,
        pipeline: &TextPipeline,
        staged: StagedSplit,
        built: &mut Built,
    ) -> Result<(), PrepareError> {
        let name = staged.split.name().to_string();
        let no_filter = TextFilterSpec::default();
        let filter = if staged.split.is_train() { &self.data.filter } else { &no_filter };
        let mut statistics = staged.statistics;
        let rows = pipeline.source.len().max(pipeline.target.len());
        let work_error = PrepareError::io(self.work);
        let mut ids = IdsWriter::new(self.work, &name, rows).map_err(work_error)?;
        let mut lines = [StagedLines::open(&staged.source)?, StagedLines::open(&staged.target)?];
        let paths: [PathBuf; 2] = ["source", "target"].map(|side| self.folder.join(format!("{name}.{side}")));
        let create = |path: &Path| OutputFile::create(path).map_err(PrepareError::io(path));
        let mut texts = [create(&paths[0])?, create(&paths[1])?];
        let mut line = 0_u32;
        loop {
            let (sources, targets) = (lines[0].next_chunk(CHUNK)?, lines[1].next_chunk(CHUNK)?);
            if sources.is_empty() {
                break;
            }
            let (sources, targets) = (pipeline.tokens_source(&sources), pipeline.tokens_target(&targets));
            for (side, tokens) in [&sources, &targets].into_iter().enumerate() {
                let write = |text: &mut OutputFile| tokens.iter().try_for_each(|(_, t)| text.line(t));
                write(&mut texts[side]).map_err(PrepareError::io(&paths[side]))?;
            }
            for ((source, _), (target, _)) in sources.into_iter().zip(targets) {
                if let Some((source, target)) = number(pipeline, filter, &source, &target, &mut statistics) {
                    ids.push(line, &source, &target).map_err(PrepareError::io(self.work))?;
                }
                line = line.checked_add(1).ok_or(PrepareError::TooManyLines(name.clone()))?;
            }
        }
        if staged.split.is_train() && statistics.pairs == 0 {
            return Err(nothing_to_train_on(&staged.split, statistics.pairs_read));
        }
        let mut digests = Vec::new();
        for (text, path) in texts.into_iter().zip(&paths) {
            digests.push(text.finish().map_err(PrepareError::io(path))?);
        }
        for (side, digest) in ["source", "target"].into_iter().zip(&digests) {
            built.files.insert(format!("{name}.{side}"), digest.sha256.clone());
        }
        self.check_published(&staged.split, &digests[0].md5, &digests[1].md5, &staged.raw_md5)?;
        let ids_name = format!("{name}.ids");
        let ids_path = self.folder.join(&ids_name);
        let digest = ids.finish(&ids_path).map_err(PrepareError::io(&ids_path))?;
        built.files.insert(ids_name, digest.sha256);
        if let Some(SplitReferences { raw, normalized }) = &staged.references {
            for (kind, lines) in [("raw", raw), ("normalized", normalized)] {
                self.write(&format!("{name}.{kind}"), built, |file| {
                    lines.iter().try_for_each(|line| file.line(line))
                })?;
            }
        }
        for file in [&staged.source, &staged.target] {
            std::fs::remove_file(file).map_err(PrepareError::io(file))?;
        }
        built.splits.insert(name, statistics);
        Ok(())
    }

    /// Compares prepared text with the digests that were published for this tokenizer.
    fn check_published(
        &self,
        split: &PairSplit,
        source: &str,
        target: &str,
        raw: &(String, String),
    ) -> Result<(), PrepareError> {
        let Some(preparation) = self.preparation().filter(|p| p.makes_the_tokens_of(&self.data.tokenizer))
        else {
            return Ok(());
        };
        let TextReaderSpec::ParallelText { source: from, .. } = &self.data.reader else {
            return Ok(());
        };
        let to = self.data.reader.targets()[split.target];
        for (file, published) in preparation.md5.get(&split.split).into_iter().flatten() {
            let found = match file.strip_prefix("raw.") {
                Some(language) if language == from => &raw.0,
                Some(language) if language == to => &raw.1,
                None if file == from => source,
                None if file == to => target,
                _ => continue,
            };
            if found != published {
                return Err(PrepareError::NotAsPublished {
                    split: split.split.clone(),
                    file: file.clone(),
                    found: found.to_string(),
                    published: published.clone(),
                    by: preparation.source.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Number of occurrences of each token in the encoded text of these words.
fn token_counts(encoder: &Encoder, words: &WordCounts) -> BTreeMap<String, u64> {
    let words: Vec<(&str, u64)> = words.iter().collect();
    let mut counts: HashMap<String, u64> = HashMap::new();
    for some in words.chunks(1 << 16) {
        let encoded: Vec<(String, u64)> =
            some.par_iter().map(|(word, count)| (encoder.word(word), *count)).collect();
        for (word, count) in encoded {
            // A word may hold white space other than ASCII spaces.
            for token in word.split_whitespace() {
                match counts.get_mut(token) {
                    Some(sum) => *sum += count,
                    None => {
                        counts.insert(token.to_string(), count);
                    }
                }
            }
        }
    }
    counts.into_iter().collect()
}

/// Adds the special tokens to a pair and counts it. Returns `None` if the pair is dropped.
fn number(
    pipeline: &TextPipeline,
    filter: &TextFilterSpec,
    source: &[u32],
    target: &[u32],
    statistics: &mut SplitStatistics,
) -> Option<(Vec<u32>, Vec<u32>)> {
    if let Some(most) = filter.max_ratio {
        let (shorter, longer) = (source.len().min(target.len()), source.len().max(target.len()));
        if longer as f64 > most * shorter as f64 {
            statistics.dropped_unequal += 1;
            return None;
        }
    }
    let cut = filter.too_long == TooLong::Truncate;
    let before_target = u32::from(pipeline.begins_before_target());
    let max_source = filter.max_source_tokens;
    let max_target = filter.max_target_tokens.map(|limit| limit.saturating_sub(before_target));
    let within = |limit: Option<u32>| limit.filter(|_| cut);
    let (source, cut_source) =
        with_specials(source, &pipeline.source, pipeline.begin_in_source, within(max_source));
    let (target, cut_target) =
        with_specials(target, &pipeline.target, pipeline.begin_in_target, within(max_target));
    let too_long = |sequence: &[u32], limit: Option<u32>| limit.is_some_and(|l| sequence.len() > l as usize);
    if !cut && (too_long(&source, max_source) || too_long(&target, max_target)) {
        statistics.dropped_too_long += 1;
        return None;
    }
    let unknown = |sequence: &[u32], vocabulary: &Vocabulary| {
        let unknown = vocabulary.specials().unknown;
        sequence.iter().filter(|&&id| id == unknown).count() as u64
    };
    statistics.pairs += 1;
    statistics.truncated_source += u64::from(cut_source);
    statistics.truncated_target += u64::from(cut_target);
    statistics.source_tokens += source.len() as u64;
    statistics.target_tokens += target.len() as u64;
    statistics.source_unknown += unknown(&source, &pipeline.source);
    statistics.target_unknown += unknown(&target, &pipeline.target);
    statistics.longest_source = statistics.longest_source.max(source.len() as u64);
    statistics.longest_target = statistics.longest_target.max(target.len() as u64);
    Some((source, target))
}
