//! Initial weights from a run or a file, instead of fresh ones.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::module::Module;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_models::parameters::{self, ParameterValues};
use zoo_recipes::TransferSpec;
use zoo_results::exit::Exit;
use zoo_training::weights;
use zoo_training::weights::transfer::{Taken, transfer};

use super::evaluate::evaluated_weights;
use super::folder::Run;
use crate::error::{Failure, Result};

/// Initial weights and where they came from.
#[derive(Debug, Clone)]
pub struct InitialWeights {
    /// SHA-256 of names, shapes and values. It is part of a run's key.
    pub digest: String,
    /// Whether the user named the weights, and not the recipe.
    pub given: bool,
    /// The run that the weights are of; `None` if they are of a file.
    pub run: Option<Run>,
    from: PathBuf,
    weights: Arc<Vec<ParameterValues>>,
}

/// The run that a run took weights from, for its card and the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the recipe.
    pub recipe: String,
    /// Arm of the run.
    pub arm: String,
    /// Tier of the run; `None` is the published size.
    pub tier: Option<String>,
    /// Seed of the run.
    pub seed: u64,
    /// SHA-256 of names, shapes and values of all its weights.
    pub sha256: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recipe, arm, tier, seed, sha256 } = self;
        let tier = tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
        write!(f, "weights of {recipe}{tier}, {arm} seed {seed}, sha256:{sha256}")
    }
}

impl InitialWeights {
    /// Loads weights that the user named: of a run (the weights that its recipe evaluates) or of a
    /// file (a checkpoint, safetensors or PyTorch file).
    pub fn load(place: &Path) -> Result<Self> {
        if place.is_dir() {
            return Ok(Self { given: true, ..Self::of_run(place)? });
        }
        let weights = weights::read(place).map_err(|e| Failure::new(Exit::Data, e.to_string()))?;
        Ok(Self::new(weights, place, None, true))
    }

    /// The weights that the recipe of a run evaluates.
    pub fn of_run(folder: &Path) -> Result<Self> {
        let (run, recipe) = Run::open(folder)?;
        let weights = evaluated_weights(&run, &recipe)?.values;
        Ok(Self::new(weights, folder, Some(run), false))
    }

    /// The file or the run's folder that the weights are of.
    pub fn place(&self) -> &Path {
        &self.from
    }

    fn new(weights: Vec<ParameterValues>, from: &Path, run: Option<Run>, given: bool) -> Self {
        let mut hash = Sha256::new();
        let mut sorted: Vec<&ParameterValues> = weights.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        for p in sorted {
            hash.update(format!("{} {:?} ", p.path, p.shape));
            p.values.iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        let digest = hex::encode(hash.finalize());
        Self { digest, given, run, from: from.to_owned(), weights: Arc::new(weights) }
    }

    /// The weights as `--set` would name them, for records: a run with weights that the user named
    /// reproduces nothing. `None` if the recipe names them.
    pub fn change(&self) -> Option<String> {
        self.given.then(|| format!("init-from=sha256:{}", &self.digest[..16]))
    }

    /// The run that the weights are of.
    pub fn origin(&self) -> Option<Origin> {
        let card = &self.run.as_ref()?.card;
        Some(Origin {
            recipe: card.recipe.clone(),
            arm: card.arm.clone(),
            tier: card.tier.clone(),
            seed: card.seed,
            sha256: self.digest.clone(),
        })
    }

    /// Puts the weights into a model. All parameters must be there, in their shapes, and no others.
    /// With the `train.transfer` of a recipe, only those that it names are put, and the result says
    /// which.
    pub fn put_into<M: Module>(&self, model: M, named: Option<&TransferSpec>) -> Result<(M, Option<Taken>)> {
        let failure = |e: String| Failure::new(Exit::Data, format!("{}: {e}", self.from.display()));
        if let Some(TransferSpec { parameters, .. }) = named {
            let (model, taken) =
                transfer(model, &self.weights, parameters).map_err(|e| failure(e.to_string()))?;
            return Ok((model, Some(taken)));
        }
        let weights = weights::without_tied_copies(self.weights.to_vec(), &parameters::shapes(&model));
        let model = parameters::import(model, weights).map_err(|e| failure(e.to_string()))?;
        Ok((model, None))
    }
}
