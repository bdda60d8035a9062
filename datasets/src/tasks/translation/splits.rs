//! Text of the splits that a recipe's `[data]` block names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec};

use super::reversal::generate;
use crate::corpora::{FetchedCorpus, FetchedSplit, read_lines};
use crate::readers::{EmptyLines, LineSource, PairReader, ReadError, SplitText};

/// Name of the training split.
pub const TRAIN: &str = "train";

/// A split in one of its target languages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairSplit {
    /// Name of the split.
    pub split: String,
    /// Index of the language in [`TextReaderSpec::targets`].
    pub target: usize,
    name: String,
}

impl PairSplit {
    /// The split `split` in the language `targets[target]`.
    pub fn new(split: &str, targets: &[impl AsRef<str>], target: usize) -> Self {
        let name = match target {
            0 => split.to_string(),
            _ => format!("{split}@{}", targets[target].as_ref()),
        };
        Self { split: split.to_string(), target, name }
    }

    /// `train` for the first target language, `train@fr` for a further one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the training split.
    pub fn is_train(&self) -> bool {
        self.split == TRAIN
    }
}

/// The splits that `data` uses, each in the languages in which it is used; `train` in all
/// languages.
pub fn pair_splits(data: &TextDataSpec) -> BTreeSet<PairSplit> {
    let targets = &data.reader.targets();
    let split = |name, target| PairSplit::new(name, targets, target);
    let train = (0..targets.len()).map(|target| split(TRAIN, target));
    let evaluated = data.eval.values().flat_map(|set| {
        data.targets_of(set).into_iter().map(move |target| split(set.split.as_str(), target))
    });
    evaluated.chain(train).collect()
}

/// Reads or generates every split that `data` uses, by [`PairSplit::name`]. Pairs with an empty
/// side are skipped and counted in `train`, and kept in other splits. Paths of a user's own files
/// are relative to `base`. `corpus` is the fetched corpus if `data.corpus` names one.
pub fn read_splits(
    data: &TextDataSpec,
    base: &Path,
    corpus: Option<&FetchedCorpus>,
) -> Result<BTreeMap<String, SplitText>, ReadError> {
    let read = |split: PairSplit| {
        let text = open_split(data, base, corpus, &split)?.read_all()?;
        Ok((split.name, text))
    };
    pair_splits(data).into_iter().map(read).collect()
}

/// Opens a split to read it pair by pair; as [`read_splits`].
///
/// # Errors
/// The source of the split is not specified, or its first file cannot be opened.
pub fn open_split(
    data: &TextDataSpec,
    base: &Path,
    corpus: Option<&FetchedCorpus>,
    split: &PairSplit,
) -> Result<PairReader, ReadError> {
    let name = split.split.as_str();
    let no_text = |problem: String, hint| ReadError::NoText { split: name.to_string(), problem, hint };
    let (source, files) = match &data.reader {
        TextReaderSpec::Reversal(spec) => return Ok(PairReader::of(generate(spec, name, split.target)?)),
        TextReaderSpec::ParallelText { source, files, .. } => (source, files),
    };
    let empty = if name == TRAIN { EmptyLines::Skip } else { EmptyLines::Keep };
    match (files.get(name), corpus) {
        (Some(files), _) => {
            let target = files.target(split.target).ok_or_else(|| {
                no_text(
                    format!("`{name}` has no file in `{}`", data.reader.targets()[split.target]),
                    "name one in its `further_targets`",
                )
            })?;
            let pairs = PairReader::open(&base.join(&files.source), &base.join(target), empty)?;
            Ok(pairs.first(data.most_of(name)))
        }
        (None, Some(corpus)) => {
            let target = data.reader.targets()[split.target];
            let split = corpus.splits.get(name).ok_or_else(|| {
                no_text(
                    format!("it was not fetched with the corpus `{}`", corpus.name),
                    "see the corpus's splits with `zoo show`",
                )
            })?;
            let due = split.lines.map(|lines| (name.to_string(), lines));
            let pairs = PairReader::new(side(split, source)?, side(split, target)?, empty, due);
            Ok(pairs.first(data.most_of(name)))
        }
        (None, None) => Err(no_text(
            "the reader's `files` do not have it, and no corpus is given".into(),
            "name a corpus in data.corpus or the split's files in data.reader.files",
        )),
    }
}

/// One side's lines, the last of its files, and its language.
fn side(split: &FetchedSplit, language: &str) -> Result<(LineSource, PathBuf, String), ReadError> {
    let files =
        split.text.get(language).filter(|files| !files.is_empty()).ok_or_else(|| ReadError::NoText {
            split: split.name.clone(),
            problem: format!("the corpus does not have it in `{language}`"),
            hint: "see the corpus's languages with `zoo show`",
        })?;
    let file = files.last().map(|file| file.path.clone()).unwrap_or_default();
    Ok((LineSource::Corpus(read_lines(files)), file, language.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpora::{TextFile, TextFormat};
    use zoo_recipes::ShareSpec;
    use zoo_recipes::tasks::translation::ParallelFiles;

    fn data(files: BTreeMap<String, ParallelFiles>) -> TextDataSpec {
        let text = r#"{
            "reader": {"kind": "parallel-text", "source": "en", "target": "de"},
            "tokenizer": {"kind": "words", "specials": "fairseq"},
            "batching": {"kind": "sentences", "sentences": 2},
            "eval": {"valid": {"split": "dev", "lines": 2}}
        }"#;
        let mut data: TextDataSpec = serde_json::from_str(text).unwrap();
        if let TextReaderSpec::ParallelText { files: own, .. } = &mut data.reader {
            *own = files;
        }
        data
    }

    #[test]
    fn own_files_are_read_relative_to_the_recipe_and_empty_lines_skipped_in_training_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "x\n\n").unwrap();
        std::fs::write(folder.path().join("b"), "y\nz\n").unwrap();
        let files = ParallelFiles { source: "a".into(), target: "b".into(), further_targets: Vec::new() };
        let data = data([(TRAIN.to_string(), files.clone()), ("dev".to_string(), files)].into());
        let splits = read_splits(&data, folder.path(), None).unwrap();
        assert_eq!((splits[TRAIN].len(), splits[TRAIN].skipped_empty), (1, 1));
        assert_eq!((splits["dev"].len(), splits["dev"].skipped_empty), (2, 0));
    }

    #[test]
    fn a_share_is_of_the_first_pairs_of_each_split() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1\n2\n3\n4\n").unwrap();
        // The part that is not read may have unequal lengths or invalid text.
        std::fs::write(folder.path().join("b"), b"one\ntwo\nthree\n\xff\n\n").unwrap();
        let files = ParallelFiles { source: "a".into(), target: "b".into(), further_targets: Vec::new() };
        let mut data = data([(TRAIN.to_string(), files.clone()), ("dev".to_string(), files)].into());
        data.share = Some(ShareSpec { train: 3, eval: 1 });
        let splits = read_splits(&data, folder.path(), None).unwrap();
        assert_eq!(splits[TRAIN].target, ["one", "two", "three"]);
        assert_eq!(splits["dev"].source, ["1"]);
    }

    #[test]
    fn a_fetched_corpus_gives_its_files_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            TextFile { path, format: TextFormat::Lines }
        };
        let english = vec![file("1.en", "a\nb\n"), file("2.en", "c\n")];
        let split = |name: &str, german: &str| FetchedSplit {
            pictures: None,
            texts: None,
            recordings: None,
            name: name.into(),
            lines: None,
            text: [("en".to_string(), english.clone()), ("de".to_string(), vec![file(name, german)])].into(),
        };
        let splits =
            [(TRAIN.to_string(), split(TRAIN, "A\nB\nC\n")), ("dev".to_string(), split("dev", "A\nB\n"))];
        let corpus = FetchedCorpus { name: "c".into(), fingerprints: BTreeMap::new(), splits: splits.into() };
        let one = data(BTreeMap::new());
        let train = PairSplit::new(TRAIN, &["de"], 0);
        let train = open_split(&one, folder.path(), Some(&corpus), &train).unwrap().read_all().unwrap();
        assert_eq!((train.source, train.target.len()), (vec!["a".into(), "b".into(), "c".into()], 3));
        let error =
            read_splits(&data(BTreeMap::new()), folder.path(), Some(&corpus)).unwrap_err().to_string();
        assert!(error.contains("dev:2: ") && error.contains("2.en has 3 lines"), "{error}");
    }

    #[test]
    fn every_target_language_has_its_own_pairs() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "x\ny\n"), ("b", "X\nY\n"), ("c", "\nz\n")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let files =
            ParallelFiles { source: "a".into(), target: "b".into(), further_targets: vec!["c".into()] };
        let mut data = data([(TRAIN.to_string(), files.clone()), ("dev".to_string(), files)].into());
        let TextReaderSpec::ParallelText { further_targets, .. } = &mut data.reader else { unreachable!() };
        further_targets.push("fr".into());
        data.eval.get_mut("valid").unwrap().target = Some("fr".into());
        let splits = read_splits(&data, folder.path(), None).unwrap();
        let lines = |name: &str| (splits[name].source.join(" "), splits[name].target.join(" "));
        assert_eq!(splits.keys().collect::<Vec<_>>(), ["dev@fr", "train", "train@fr"]);
        assert_eq!(lines("train"), ("x y".into(), "X Y".into()));
        // The pair with the empty French side is skipped in the French pairs only.
        assert_eq!(lines("train@fr"), ("y".into(), "z".into()));
        assert_eq!(lines("dev@fr"), ("x y".into(), " z".into()));
    }

    #[test]
    fn a_split_that_is_nowhere_is_an_error() {
        let error = read_splits(&data(BTreeMap::new()), Path::new("."), None).unwrap_err().to_string();
        assert!(error.contains("`dev`") && error.contains("hint:"), "{error}");
    }
}
