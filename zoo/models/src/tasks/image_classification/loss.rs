//! Cross-entropy of a classifier, as defined by a recipe's `[loss]`, and scores for evaluation.

use zoo_recipes::tasks::image_classification::ClassifierLossSpec;

use super::{Classifier, PictureBatch};
use crate::Pass;
use crate::contract::{Objective, Term};
use crate::nn::{class_counts, class_scores, class_terms};

/// The training objective of classifiers: `loss` is minimised; `top1`, the number of right answers,
/// is reported. Both are divided by the number of pictures.
#[derive(Debug, Clone)]
pub struct ClassifierLoss {
    spec: ClassifierLossSpec,
}

impl ClassifierLoss {
    /// Builds the objective from a recipe's loss settings.
    pub fn new(spec: &ClassifierLossSpec) -> Self {
        Self { spec: spec.clone() }
    }
}

impl Objective<Classifier, PictureBatch> for ClassifierLoss {
    fn counts(&self, batch: &PictureBatch) -> Vec<(&'static str, f64)> {
        class_counts(batch.len())
    }

    fn terms(&self, model: &Classifier, batch: &PictureBatch, pass: &mut Pass) -> Vec<Term> {
        let logits = model.forward(batch.pixels(&model.device()), pass);
        match self.spec {
            ClassifierLossSpec::CrossEntropy {} => class_terms(logits, &batch.labels, pass),
        }
    }
}

/// Scores of each picture: FP32 logits, on the host.
pub fn scores(model: &Classifier, batch: &PictureBatch, pass: &mut Pass) -> Vec<Vec<f32>> {
    class_scores(model.forward(batch.pixels(&model.device()), pass))
}
