//! The models of a cross-validation: one for each part of the texts.

use std::collections::BTreeSet;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::text_classification::TextClassifierSpec;

use super::{TextBatch, TextClassifier};
use crate::Pass;
use crate::nn::Init;

/// A classifier of texts, or one for each part of a cross-validation.
// A program holds one value, so the size of the variants does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum TextModel {
    /// One classifier of all texts.
    One(TextClassifier),
    /// A classifier for each part.
    Folds(Folds),
}

/// Classifiers by part. The parameters of part k are `folds.k.embedding.weight` and so on.
#[derive(Module, Debug)]
pub struct Folds {
    folds: Vec<TextClassifier>,
}

impl TextModel {
    /// Builds `folds` classifiers, one at least, for texts of `positions` positions, with
    /// embeddings of `rows` rows.
    ///
    /// # Panics
    /// If a layer does not fit its input; [`TextClassifierSpec::shapes`] reports which.
    pub fn new(
        spec: &TextClassifierSpec,
        [positions, rows]: [usize; 2],
        folds: u32,
        seed: u64,
        device: &Device,
    ) -> Self {
        let init = Init::new(seed, device);
        if folds <= 1 {
            return Self::One(TextClassifier::new(spec, positions, rows, &init));
        }
        let of = |fold: u32| TextClassifier::new(spec, positions, rows, &init.at("folds").at(fold));
        Self::Folds(Folds { folds: (0..folds).map(of).collect() })
    }

    /// The classifier of a part.
    ///
    /// # Panics
    /// If there are fewer parts.
    fn of(&self, fold: u32) -> &TextClassifier {
        match self {
            Self::One(model) => model,
            Self::Folds(parts) => &parts.folds[fold as usize],
        }
    }

    /// Device of the parameters.
    pub fn device(&self) -> Device {
        self.of(0).device()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.of(0).classes()
    }

    /// Logits `[texts, classes]` by the classifier of the batch's part, in the compute type.
    ///
    /// # Panics
    /// As [`TextClassifier::forward`], and if the batch is of a part that does not exist.
    pub fn forward(&self, batch: &TextBatch, pass: &mut Pass) -> Tensor<2> {
        self.of(batch.fold).forward(&batch.ids, batch.len(), pass)
    }

    /// The model with rows of the norms that its spec sets, in the classifiers of some parts.
    pub(super) fn with_row_norms(self, trained: &BTreeSet<u32>) -> Self {
        match self {
            Self::One(model) => Self::One(model.with_row_norms()),
            Self::Folds(Folds { folds }) => {
                let of = |(fold, model): (u32, TextClassifier)| match trained.contains(&fold) {
                    true => model.with_row_norms(),
                    false => model,
                };
                Self::Folds(Folds { folds: (0..).zip(folds).map(of).collect() })
            }
        }
    }
}
