//! What tasks of text and speech know of their data and searches.

use crate::spec::{DataBlock, DataSpec, DecodeSpec, EvalSet, SearchBlock};

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
}

impl SearchBlock for DecodeSpec {
    fn language_model(&self) -> Option<&String> {
        Self::language_model(self)
    }

    fn word_list(&self) -> Option<&String> {
        Self::word_list(self)
    }

    fn lacks_language_model(&self) -> bool {
        Self::lacks_language_model(self)
    }
}
