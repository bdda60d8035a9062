//! One recipe: the blocks that all tasks have, and those whose types its task selects.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use super::{About, ClaimSpec, PrecisionSpec, Recipe, Task, TrainSpec};

/// The blocks that recipes of all tasks have.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Who published what, where.
    pub recipe: About,
    /// Length, seed, optimizer, schedule, regularizer, checkpoints.
    pub train: TrainSpec,
    /// Compute type, loss scaling and master weights.
    pub precision: PrecisionSpec,
    /// What was published; judged by `zoo reproduce` and `zoo judge`.
    pub claim: Vec<ClaimSpec>,
}

/// A recipe of the task `T`, after all overlays were applied. The blocks that all tasks have are
/// read as if they were fields: `recipe.train`.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeOf<T: TaskTypes> {
    /// The blocks that all tasks have.
    pub common: Common,
    /// Corpus, reader, batching, evaluation sets, and what else makes examples of it.
    pub data: T::Data,
    /// Layers.
    pub model: T::Model,
    /// Training loss.
    pub loss: T::Loss,
    /// Named searches. Empty in a task without searches.
    pub decode: BTreeMap<String, T::Search>,
}

/// A block: read from a recipe file, compared, written and described in the JSON Schema.
pub trait Block: std::fmt::Debug + Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {}

impl<B: std::fmt::Debug + Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema> Block for B {}

/// A task: the types of the blocks that it selects.
pub trait TaskTypes: std::fmt::Debug + Clone + PartialEq + Sized + 'static {
    /// Value of `recipe.task`.
    const TASK: Task;
    /// Whether outputs are searched for: whether there are `[decode.NAME]` blocks.
    const SEARCHES: bool = true;
    /// The `[data]` block.
    type Data: Block + DataBlock;
    /// The `[model]` block.
    type Model: Block;
    /// The `[loss]` block.
    type Loss: Block;
    /// A `[decode.NAME]` block.
    type Search: Block + SearchBlock;
}

/// A task of the list.
pub trait ListedTask: TaskTypes {
    /// The recipe as one of this task; `None` if it is of another task.
    fn of(recipe: &Recipe) -> Option<&RecipeOf<Self>>;

    /// As [`Self::of`], to change it.
    fn of_mut(recipe: &mut Recipe) -> Option<&mut RecipeOf<Self>>;

    /// As [`Self::of`], of a recipe that is given away.
    fn take(recipe: Recipe) -> Option<RecipeOf<Self>>;
}

/// What all tasks know of their data.
pub trait DataBlock {
    /// Name of the corpus; `None` for generated data and for the user's own files.
    fn corpus(&self) -> Option<&str>;

    /// The corpus to fetch; `None` also if the corpus lies in a folder of the user's.
    fn corpus_to_fetch(&self) -> Option<&str> {
        self.corpus().filter(|name| !name.is_empty())
    }

    /// Whether the program makes the data.
    fn is_generated(&self) -> bool;

    /// Name of the training split.
    fn training(&self) -> &str {
        "train"
    }

    /// Largest number of training examples to read; `None` for all.
    fn most_training_examples(&self) -> Option<usize> {
        None
    }

    /// Names of the evaluation sets, sorted.
    fn eval_sets(&self) -> Vec<&str>;

    /// An evaluation set; `None` if there is none of this name.
    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>>;

    /// Languages of the outputs. Empty in a task whose outputs are in no language.
    fn languages(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What it takes to make the references of an evaluation set from the recipe alone. Empty for a
    /// corpus, and for a set that does not exist.
    fn asked(&self, eval: &str) -> Vec<Asked>;

    /// Whether an evaluation set of this name exists.
    fn has_eval_set(&self, name: &str) -> bool {
        self.eval_set(name).is_some()
    }
}

/// What all tasks know of an evaluation set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalSet<'r> {
    /// Split of the corpus or reader.
    pub split: &'r str,
    /// Examples that the set must have.
    pub lines: u32,
    /// Languages of its references, if the outputs of the recipe are in several languages; one of
    /// them must be chosen to score the set.
    pub languages: Vec<&'r str>,
    /// Language that the set itself names.
    pub target: Option<&'r str>,
}

/// What a recipe asks of the machine that makes its references.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asked {
    /// Files of the recipe's author, as words.
    OwnFiles(&'static str),
    /// Generated characters.
    Characters(u64),
    /// Generated recordings.
    Recordings {
        /// Seconds of all together.
        seconds: f64,
        /// Seconds of the longest.
        longest: f64,
        /// Samples a second.
        rate_hz: u32,
    },
    /// Recordings of a corpus that are joined.
    Joined(u64),
    /// Generated numbers of pictures: pixels times channels.
    Pixels(u64),
}

/// A file that a search may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchFile {
    /// A language model.
    LanguageModel,
    /// The words that may be written.
    WordList,
}

impl SearchFile {
    /// All files that a search may read.
    pub const ALL: [Self; 2] = [Self::LanguageModel, Self::WordList];

    /// Path of the file in a search, relative to the recipe file; `None` if the search reads none.
    pub fn of(self, search: &dyn SearchBlock) -> Option<&str> {
        let path = match self {
            Self::LanguageModel => search.language_model(),
            Self::WordList => search.word_list(),
        };
        path.map(String::as_str)
    }
}

/// What all tasks know of a search.
pub trait SearchBlock {
    /// File of the search's language model, relative to the recipe file.
    fn language_model(&self) -> Option<&String> {
        None
    }

    /// File of the words that may be written, relative to the recipe file.
    fn word_list(&self) -> Option<&String> {
        None
    }

    /// Whether the search needs a language model that is not given. What is claimed of it is not
    /// run.
    fn lacks_language_model(&self) -> bool {
        false
    }

    /// Names another file in the place of one that the search reads, or of the language model that it
    /// lacks.
    fn read(&mut self, _file: SearchFile, _path: String) {}
}

/// Name in records of the outputs of a task without searches: the model's outputs are the answers.
pub const DIRECT: &str = "direct";

/// The only "search" of a task without searches.
struct Direct;

impl SearchBlock for Direct {}

/// The search of a task without searches: no recipe has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoSearch {}

impl SearchBlock for NoSearch {}

impl<T: TaskTypes> RecipeOf<T> {
    /// Names of the searches; [`DIRECT`] in a task without searches.
    pub fn searches(&self) -> Vec<&str> {
        match T::SEARCHES {
            true => self.decode.keys().map(String::as_str).collect(),
            false => vec![DIRECT],
        }
    }

    /// A search by its name.
    pub fn search(&self, name: &str) -> Option<&dyn SearchBlock> {
        match self.decode.get(name) {
            Some(search) => Some(search),
            None => (!T::SEARCHES && name == DIRECT).then_some(&Direct),
        }
    }

    /// A search by its name, to change it.
    pub fn search_mut(&mut self, name: &str) -> Option<&mut dyn SearchBlock> {
        self.decode.get_mut(name).map(|search| search as &mut dyn SearchBlock)
    }

    /// The JSON Schema of a recipe of this task.
    pub(crate) fn schema() -> Json {
        let mut schema = schemars::schema_for!(Written<T::Data, T::Model, T::Loss, T::Search>).to_value();
        if let (false, Some(blocks)) = (T::SEARCHES, schema["properties"].as_object_mut()) {
            blocks.shift_remove("decode");
        }
        schema
    }
}

impl<T: TaskTypes> Deref for RecipeOf<T> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl<T: TaskTypes> DerefMut for RecipeOf<T> {
    fn deref_mut(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// A recipe as it is read: the blocks in the order in which a recipe file has them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Recipe")]
struct Written<D, M, L, S> {
    /// Who published what, where.
    recipe: About,
    /// Corpus, reader, tokenizer, features, filters, batching, evaluation sets.
    data: D,
    /// Embedding, encoder, decoder.
    model: M,
    /// Training loss.
    loss: L,
    /// Length, seed, optimizer, schedule, regularizer, checkpoints.
    train: TrainSpec,
    /// Compute type and loss scaling.
    #[serde(default)]
    precision: PrecisionSpec,
    /// Named searches.
    #[serde(default = "no_searches::<S>")]
    decode: BTreeMap<String, S>,
    /// What was published; judged by `zoo reproduce` and `zoo judge`.
    #[serde(default)]
    claim: Vec<ClaimSpec>,
}

fn no_searches<S>() -> BTreeMap<String, S> {
    BTreeMap::new()
}

impl<'de, T: TaskTypes> Deserialize<'de> for RecipeOf<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { recipe, data, model, loss, train, precision, decode, claim } =
            Written::<T::Data, T::Model, T::Loss, T::Search>::deserialize(from)?;
        if recipe.task != T::TASK {
            return Err(D::Error::custom(format!("the recipe's task is {}, not {}", recipe.task, T::TASK)));
        }
        Ok(Self { common: Common { recipe, train, precision, claim }, data, model, loss, decode })
    }
}

impl<T: TaskTypes> Serialize for RecipeOf<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut blocks = to.serialize_struct("Recipe", if T::SEARCHES { 8 } else { 7 })?;
        blocks.serialize_field("recipe", &self.recipe)?;
        blocks.serialize_field("data", &self.data)?;
        blocks.serialize_field("model", &self.model)?;
        blocks.serialize_field("loss", &self.loss)?;
        blocks.serialize_field("train", &self.train)?;
        blocks.serialize_field("precision", &self.precision)?;
        if T::SEARCHES {
            blocks.serialize_field("decode", &self.decode)?;
        }
        blocks.serialize_field("claim", &self.claim)?;
        blocks.end()
    }
}

impl Recipe {
    /// Reads a recipe. Its task selects the types of its blocks.
    ///
    /// # Errors
    /// The task is unknown, or a block does not have the shape that the task wants.
    pub fn from_json(json: Json) -> Result<Self, serde_json::Error> {
        let task = Task::deserialize(&json["recipe"]["task"])?;
        Self::of_task(task, json)
    }

    /// One block as JSON: `data`, `model`, `loss`, `decode`, …; null if the recipe has no such
    /// block.
    pub fn block(&self, name: &str) -> Json {
        let mut json = serde_json::to_value(self).expect("a recipe has string keys only");
        json[name].take()
    }

    /// The recipe with the batches of another.
    ///
    /// # Errors
    /// The other recipe is of another task, whose batches are not known here.
    pub fn batched_as(&self, other: &Self) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::to_value(self)?;
        json["data"]["batching"] = other.block("data")["batching"].take();
        Self::from_json(json)
    }

    /// Whether a search of this name exists. See [`Recipe::searches`].
    pub fn has_search(&self, name: &str) -> bool {
        self.search(name).is_some()
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_json(Json::deserialize(from)?).map_err(D::Error::custom)
    }
}
