//! Reference files with results of another framework. `docs/align.md` describes their layout.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use zoo_models::Packed;
use zoo_models::parameters::ParameterValues;
use zoo_models::tasks::translation::PairBatch;
use zoo_recipes::tasks::translation::{TokenLossSpec, TokenSearchSpec, TranslationModelSpec};
use zoo_recipes::{OptimizerSpec, untrusted};

/// Reason why a file cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// Name of the file.
        file: String,
        source: std::io::Error,
    },
    /// The file does not have the layout of `docs/align.md`.
    #[error("`{file}`: {problem}\nhint: docs/align.md describes the layout")]
    Layout {
        /// Name of the file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
}

/// The JSON in the metadata key `zoo`.
#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// Version of the layout; 1.
    pub layout: u32,
    /// Program that wrote the file.
    #[serde(default)]
    pub producer: String,
    /// The model, as in a recipe's `[model]`.
    pub model: TranslationModelSpec,
    /// The loss, as in a recipe's `[loss]`.
    pub loss: TokenLossSpec,
    /// Size and special ids of the vocabulary, which both sides share.
    pub vocabulary: DescribedVocabulary,
    /// The optimizer, as in a recipe's `[train.optimizer]`.
    #[serde(default)]
    pub optimizer: Option<OptimizerSpec>,
    /// Learning rate of the update.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// Maximum global norm of the gradients.
    #[serde(default)]
    pub clip_norm: Option<f64>,
    /// Searches by name.
    #[serde(default)]
    pub searches: BTreeMap<String, TokenSearchSpec>,
}

/// Vocabulary of a reference; see [`Description::vocabulary`].
#[derive(Debug, Clone, Deserialize)]
pub struct DescribedVocabulary {
    /// Number of rows.
    pub size: usize,
    /// Id of the padding token.
    pub pad: u32,
    /// Id of the begin token.
    pub begin: u32,
    /// Id of the end token.
    pub end: u32,
}

/// A reference file.
#[derive(Debug)]
pub struct Reference {
    file: String,
    /// The description in the file's metadata.
    pub description: Description,
    pub(super) tensors: BTreeMap<String, Values>,
}

#[derive(Debug, Clone)]
pub(super) struct Values {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Reference {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, AlignError> {
        let file = path.display().to_string();
        let bytes =
            untrusted::read(path).map_err(|source| AlignError::Read { file: file.clone(), source })?;
        Self::parse(&file, &bytes)
    }

    /// Parses a file's bytes. `file` is its name in messages.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, AlignError> {
        let file = file.to_owned();
        let layout = |problem: String| AlignError::Layout { file: file.clone(), problem };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| layout(e.to_string()))?;
        let description = metadata.metadata().as_ref().and_then(|m| m.get("zoo"));
        let description = description.ok_or_else(|| layout("the metadata has no key `zoo`".into()))?;
        let description: Description =
            serde_json::from_str(description).map_err(|e| layout(format!("metadata key `zoo`: {e}")))?;
        if description.layout != 1 {
            return Err(layout(format!("layout {} is not known; this version reads 1", description.layout)));
        }
        let attends = description.model.decoder.has_one_attention();
        for (name, search) in &description.searches {
            if search.hypotheses() == 0 || search.counts_attention() && !attends {
                return Err(layout(format!(
                    "searches.{name}: a beam of 0, or a coverage without the one attention of a recurrent decoder"
                )));
            }
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| layout(e.to_string()))?;
        let mut found = BTreeMap::new();
        for (name, view) in tensors.iter() {
            let data = view.data();
            let values: Vec<f64> = match view.dtype() {
                Dtype::F32 => data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
                Dtype::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
                Dtype::I32 => data.as_chunks().0.iter().map(|b| f64::from(i32::from_le_bytes(*b))).collect(),
                Dtype::I64 => data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
                other => {
                    return Err(layout(format!(
                        "tensor `{name}` is {other:?}; F32, F64, I32 and I64 are read"
                    )));
                }
            };
            found.insert(name.to_string(), Values { shape: view.shape().to_vec(), values });
        }
        Ok(Self { file, description, tensors: found })
    }

    pub(super) fn layout(&self, problem: String) -> AlignError {
        AlignError::Layout { file: self.file.clone(), problem }
    }

    pub(super) fn tensor(&self, name: &str) -> Result<&Values, AlignError> {
        self.tensors.get(name).ok_or_else(|| self.layout(format!("tensor `{name}` is missing")))
    }

    pub(super) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Values)> {
        self.tensors.iter().filter_map(move |(name, values)| Some((name.strip_prefix(prefix)?, values)))
    }

    /// Ids of one side (`source` or `target`), without padding.
    pub(super) fn sequences(&self, side: &str) -> Result<Packed, AlignError> {
        let name = format!("inputs/{side}");
        let (ids, lengths) = (self.tensor(&name)?, self.tensor(&format!("{name}_lengths"))?);
        let &[rows, columns] = ids.shape.as_slice() else {
            return Err(self.layout(format!("`{name}` must be [batch, length]")));
        };
        if lengths.values.len() != rows || lengths.values.iter().any(|&n| n < 1.0 || n > columns as f64) {
            return Err(self.layout(format!("`{name}_lengths` must be {rows} numbers from 1 to {columns}")));
        }
        let size = self.description.vocabulary.size as f64;
        if let Some(id) = ids.values.iter().find(|&&id| id < 0.0 || id >= size) {
            return Err(self.layout(format!("`{name}` has id {id}, outside of the vocabulary of {size}")));
        }
        let sequences = ids.values.chunks(columns.max(1)).zip(&lengths.values);
        let sequences =
            sequences.map(|(row, &n)| row[..n as usize].iter().map(|&id| id as u32).collect::<Vec<_>>());
        Ok(Packed::new(&sequences.collect::<Vec<_>>()))
    }

    pub(super) fn batch(&self) -> Result<PairBatch, AlignError> {
        let (source, target) = (self.sequences("source")?, self.sequences("target")?);
        if source.lengths.len() != target.lengths.len() {
            return Err(self.layout("`inputs/source` and `inputs/target` have unlike batch sizes".into()));
        }
        let target_positions = self.tensor("inputs/target")?.values.len() as u64;
        Ok(PairBatch { source, target, language: 0, target_positions })
    }
}

impl Values {
    pub(super) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |a, x| a.max(x.abs()))
    }

    pub(super) fn parameter(&self, path: &str) -> ParameterValues {
        let values = self.values.iter().map(|&x| x as f32).collect();
        ParameterValues { path: path.to_string(), shape: self.shape.clone(), values }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use safetensors::tensor::TensorView;
    use serde_json::{Value, json};

    use super::*;

    /// The error for a Transformer fixture whose searches are replaced by `search`.
    fn said_of(search: &Value) -> String {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/search_postnorm_fairseq.safetensors");
        let bytes = std::fs::read(file).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let mut description: Value =
            serde_json::from_str(&metadata.metadata().as_ref().unwrap()["zoo"]).unwrap();
        description["searches"] = json!({ "mine": search });
        let metadata = HashMap::from([("zoo".to_owned(), description.to_string())]);
        let bytes = safetensors::serialize(Vec::<(String, TensorView<'_>)>::new(), Some(metadata)).unwrap();
        Reference::parse("file", &bytes).map(|_| ()).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn searches_that_cannot_be_run_are_refused() {
        let gnmt = |beam: u32, coverage: f64| {
            json!({"kind": "gnmt-beam", "beam": beam, "alpha": 0.6, "constant": 5.0, "coverage": coverage,
                "max_length": {"factor": 0.0, "extra": 9}})
        };
        let refused = "searches.mine: a beam of 0, or a coverage";
        assert!(said_of(&gnmt(0, 0.0)).contains(refused));
        assert!(said_of(&gnmt(4, 0.1)).contains(refused), "a Transformer has not one attention");
        assert!(!said_of(&gnmt(4, 0.0)).contains(refused));
    }
}
