//! The tasks: a closed set. A new task is one line of [`Task`]'s table, and a folder of the catalog.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::did_you_mean;

/// Writes [`Task`] from its table: description, variant, word, and the kinds of decoder that its models may have.
macro_rules! tasks {
    ($($(#[doc = $description:literal])+ $variant:ident = $word:literal, decoders $decoders:expr;)+) => {
        /// What a recipe's model does. The word is the folder of the catalog and the value of `recipe.task`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Task {
            $($(#[doc = $description])+ #[serde(rename = $word)] $variant,)+
        }

        impl Task {
            /// All tasks, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word of recipes, folders and tables.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The kinds of decoder that models of this task may have: the values of `model.decoder.kind`.
            pub fn decoders(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$decoders),+ }
            }
        }
    };
}

tasks! {
    /// From text to text in another language.
    Translation = "translation", decoders ["transformer", "recurrent", "convolutional"];
    /// From recordings to text.
    SpeechRecognition = "speech-recognition", decoders ["ctc"];
    /// From text to spectrograms.
    SpeechSynthesis = "speech-synthesis", decoders ["tacotron"];
}

impl Task {
    /// The task whose models have decoders of this kind.
    pub fn of_decoder(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|task| task.decoders().contains(&kind))
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Comparison with a word, such as a filter's.
impl PartialEq<str> for Task {
    fn eq(&self, word: &str) -> bool {
        self.as_str() == word
    }
}

/// A word that is not a task; its text names the nearest one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no task `{word}`\nhint: {hint}")]
pub struct UnknownTask {
    word: String,
    hint: String,
}

impl FromStr for Task {
    type Err = UnknownTask;

    fn from_str(word: &str) -> Result<Self, UnknownTask> {
        let words = Self::ALL.iter().map(|task| task.as_str());
        let found = Self::ALL.iter().copied().find(|task| task.as_str() == word);
        found.ok_or_else(|| UnknownTask { word: word.to_owned(), hint: did_you_mean(word, words, "tasks") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_written_as_its_word_and_read_back() {
        for task in Task::ALL {
            assert_eq!(serde_json::to_value(task).unwrap(), task.as_str());
            assert_eq!(serde_json::from_value::<Task>(task.as_str().into()).unwrap(), *task);
            assert_eq!(task.as_str().parse(), Ok(*task));
            assert_eq!(format!("{task:>20}").trim_start(), task.as_str());
        }
    }

    #[test]
    fn no_two_tasks_share_a_kind_of_decoder() {
        for task in Task::ALL {
            for kind in task.decoders() {
                assert_eq!(Task::of_decoder(kind), Some(*task), "{kind}");
            }
        }
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_task() {
        let found = "translaton".parse::<Task>().unwrap_err().to_string();
        assert_eq!(found, "there is no task `translaton`\nhint: did you mean `translation`?");
    }
}
