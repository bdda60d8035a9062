//! What all tasks know of the data of a language model.

use super::{LanguageDataSpec, LanguageReaderSpec};
use crate::spec::{Asked, DataBlock, EvalSet, Generated};

/// Characters of a line of the toy, at most.
const BABBLE_LINE: u64 = 36;

impl LanguageDataSpec {
    /// The numbers of lines of the toy; `None` for other readers.
    pub(super) fn made(&self) -> Option<Generated> {
        match self.reader {
            LanguageReaderSpec::Babble { train, valid, test, .. } => Some(Generated { train, valid, test }),
            LanguageReaderSpec::Text { .. } => None,
        }
    }
}

impl DataBlock for LanguageDataSpec {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn is_generated(&self) -> bool {
        self.made().is_some()
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        match (self.made(), self.eval.get(eval)) {
            (_, None) => Vec::new(),
            (Some(made), Some(set)) => {
                vec![Asked::Characters(u64::from(made.of(&set.split)).saturating_mul(BABBLE_LINE))]
            }
            _ if self.corpus.is_none() => vec![Asked::OwnFiles("text files")],
            _ => Vec::new(),
        }
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.share.map(|share| share.train as usize)
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        Some(EvalSet { split: &set.split, lines: set.lines, languages: Vec::new(), target: None })
    }
}
