//! What tasks of text and speech know of their data.

use crate::spec::{Asked, AudioManifestSpec, DataBlock, DataSpec, EvalSet, ReaderSpec, TokenizerSpec};

impl DataBlock for DataSpec {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn corpus_to_fetch(&self) -> Option<&str> {
        Self::corpus_to_fetch(self)
    }

    fn is_generated(&self) -> bool {
        self.reader.is_generated()
    }

    fn training(&self) -> &str {
        Self::training(self)
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.most_of(Self::training(self))
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        let targets = self.reader.targets();
        let languages = set.targets_among(&targets).into_iter().filter_map(|at| targets.get(at).copied());
        Some(EvalSet {
            split: &set.split,
            lines: set.lines,
            languages: languages.collect(),
            target: set.target.as_deref(),
        })
    }

    fn languages(&self) -> Vec<&str> {
        self.reader.targets()
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        let Some(set) = self.eval.get(eval) else { return Vec::new() };
        let mut asked = Vec::new();
        if let TokenizerSpec::SentencePiece { model: Some(_), .. } = &self.tokenizer {
            asked.push(Asked::OwnFiles("a SentencePiece model"));
        }
        match &self.reader {
            ReaderSpec::Reversal { max_length, train, valid, test, .. } => {
                let lines = u64::from(of_split(&set.split, *train, *valid, *test));
                asked.push(Asked::Characters(lines * 2 * u64::from(*max_length)));
            }
            ReaderSpec::Tones(tones) => {
                let letters = f64::from(tones.most_words) * (f64::from(tones.longest_word) + 1.0);
                let longest = letters * tones.letter_ms / 1000.0;
                let utterances = of_split(&set.split, tones.train, tones.valid, tones.test);
                let seconds = longest * f64::from(utterances);
                asked.push(Asked::Recordings { seconds, longest, rate_hz: tones.sample_rate_hz });
            }
            ReaderSpec::ParallelText { files, .. } if !files.is_empty() => {
                asked.push(Asked::OwnFiles("files"));
            }
            ReaderSpec::AudioManifest(AudioManifestSpec { files, folder, join, .. }) => {
                if !files.is_empty() || folder.is_some() {
                    asked.push(Asked::OwnFiles("files"));
                }
                if let Some(join) = join {
                    let utterances = u64::from(join.utterances.get(&set.split).copied().unwrap_or(0));
                    asked.push(Asked::Joined(utterances * u64::from(join.most)));
                }
            }
            ReaderSpec::ParallelText { .. } => {}
        }
        asked
    }
}

/// Number of generated examples of a split.
fn of_split(split: &str, train: u32, valid: u32, test: u32) -> u32 {
    match split {
        "train" => train,
        "valid" => valid,
        _ => test,
    }
}
