//! Initial weights from a run or a file, instead of fresh ones.

use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use sha2::{Digest, Sha256};
use zoo_models::parameters::{self, ParameterValues};
use zoo_results::exit::Exit;
use zoo_training::weights;

use super::evaluate::evaluated_weights;
use super::folder::Run;
use crate::error::{Failure, Result};

/// Initial weights and where they came from.
#[derive(Debug, Clone)]
pub struct InitialWeights {
    /// SHA-256 of names, shapes and values. It is part of a run's key.
    pub digest: String,
    from: String,
    weights: Arc<Vec<ParameterValues>>,
}

impl InitialWeights {
    /// Loads weights from a run (the weights that its recipe evaluates) or from a file (a
    /// checkpoint, safetensors or PyTorch file).
    pub fn load(place: &Path) -> Result<Self> {
        let weights = if place.is_dir() {
            let (run, recipe) = Run::open(place)?;
            evaluated_weights(&run, &recipe)?.values
        } else {
            weights::read(place).map_err(|e| Failure::new(Exit::Data, e.to_string()))?
        };
        let mut hash = Sha256::new();
        let mut sorted: Vec<&ParameterValues> = weights.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        for p in sorted {
            hash.update(format!("{} {:?} ", p.path, p.shape));
            p.values.iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        let digest = hex::encode(hash.finalize());
        Ok(Self { digest, from: place.display().to_string(), weights: Arc::new(weights) })
    }

    /// Puts the weights into a model. All parameters must be there, in their shapes, and no others.
    pub fn put_into<M: Module>(&self, model: M) -> Result<M> {
        let weights = weights::without_tied_copies(self.weights.to_vec(), &parameters::shapes(&model));
        parameters::import(model, weights)
            .map_err(|e| Failure::new(Exit::Data, format!("{}: {e}", self.from)))
    }
}
