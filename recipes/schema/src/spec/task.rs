//! The tasks: a closed set. A new task is one line of the table below, a folder of [`crate::tasks`]
//! and one of the catalog.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{Common, DataBlock, IslandsSpec, ListedTask, RecipeOf, SearchBlock};
use crate::nearest::did_you_mean;
use crate::tasks::{self, Checked};
use crate::validate::Findings;

/// Writes [`Task`] and [`Recipe`] from the table of the tasks: description, variant, and word.
macro_rules! tasks {
    ($($(#[doc = $description:literal])+ $variant:ident = $word:literal;)+) => {
        /// What a recipe's model does. The word is the folder of the catalog and the value of
        /// `recipe.task`.
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

            /// The JSON Schema of a recipe of this task.
            pub(crate) fn schema(self) -> serde_json::Value {
                match self { $(Self::$variant => RecipeOf::<tasks::$variant>::schema()),+ }
            }
        }

        /// One recipe after all overlays were applied. The blocks that all tasks have are read as
        /// if they were fields: `recipe.train`. The others have the types of the recipe's task.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Recipe {
            $($(#[doc = $description])+ $variant(Box<RecipeOf<tasks::$variant>>),)+
        }

        impl Deref for Recipe {
            type Target = Common;

            fn deref(&self) -> &Common {
                match self { $(Self::$variant(recipe) => &recipe.common),+ }
            }
        }

        impl DerefMut for Recipe {
            fn deref_mut(&mut self) -> &mut Common {
                match self { $(Self::$variant(recipe) => &mut recipe.common),+ }
            }
        }

        impl Serialize for Recipe {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(recipe) => recipe.serialize(to)),+ }
            }
        }

        impl Recipe {
            /// What all tasks know of their data.
            pub fn data(&self) -> &dyn DataBlock {
                match self { $(Self::$variant(recipe) => &recipe.data),+ }
            }

            /// Names of the searches; [`DIRECT`](super::DIRECT) in a task without searches.
            pub fn searches(&self) -> Vec<&str> {
                match self { $(Self::$variant(recipe) => recipe.searches()),+ }
            }

            /// What all tasks know of a search.
            pub fn search(&self, name: &str) -> Option<&dyn SearchBlock> {
                match self { $(Self::$variant(recipe) => recipe.search(name)),+ }
            }

            /// A search by its name, to change it.
            pub fn search_mut(&mut self, name: &str) -> Option<&mut dyn SearchBlock> {
                match self { $(Self::$variant(recipe) => recipe.search_mut(name)),+ }
            }

            /// Checks the blocks that the task selects.
            pub(crate) fn check_blocks(&self, findings: &mut Findings<'_, '_>) {
                match self { $(Self::$variant(recipe) => tasks::$variant::check(recipe, findings)),+ }
            }

            /// The FP32 islands that the model cannot train without.
            pub(crate) fn needed_islands(&self) -> IslandsSpec {
                match self { $(Self::$variant(recipe) => tasks::$variant::needed_islands(recipe)),+ }
            }

            /// Reads a recipe of a task.
            pub(super) fn of_task(task: Task, json: serde_json::Value) -> Result<Self, serde_json::Error> {
                match task { $(Task::$variant => serde_json::from_value(json).map(Self::$variant)),+ }
            }
        }

        $(impl From<RecipeOf<tasks::$variant>> for Recipe {
            fn from(recipe: RecipeOf<tasks::$variant>) -> Self {
                Self::$variant(Box::new(recipe))
            }
        }

        impl ListedTask for tasks::$variant {
            fn of(recipe: &Recipe) -> Option<&RecipeOf<Self>> {
                if let Recipe::$variant(recipe) = recipe { Some(recipe) } else { None }
            }

            fn of_mut(recipe: &mut Recipe) -> Option<&mut RecipeOf<Self>> {
                if let Recipe::$variant(recipe) = recipe { Some(recipe) } else { None }
            }

            fn take(recipe: Recipe) -> Option<RecipeOf<Self>> {
                if let Recipe::$variant(recipe) = recipe { Some(*recipe) } else { None }
            }
        })+
    };
}

tasks! {
    /// From text to text in another language.
    Translation = "translation";
    /// From recordings to text.
    SpeechRecognition = "speech-recognition";
    /// From text to spectrograms.
    SpeechSynthesis = "speech-synthesis";
    /// From a picture to one of several classes.
    ImageClassification = "image-classification";
    /// From the words or characters so far to the next one.
    LanguageModelling = "language-modelling";
    /// From a text to one of several classes.
    TextClassification = "text-classification";
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
    fn a_slip_is_answered_with_the_nearest_task() {
        let found = "translaton".parse::<Task>().unwrap_err().to_string();
        assert_eq!(found, "there is no task `translaton`\nhint: did you mean `translation`?");
    }
}
