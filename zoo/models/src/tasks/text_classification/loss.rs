//! Cross-entropy of a classifier of texts, as defined by a recipe's `[loss]`, and scores for
//! evaluation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{TextBatch, TextModel};
use crate::Pass;
use crate::contract::{Objective, Running, Term};
use crate::nn::{class_counts, class_scores, class_terms};

/// The training objective of classifiers of texts: `loss` is minimised; `top1`, the number of right
/// answers, is reported. Both are divided by the number of texts.
///
/// A binary cross-entropy of one output z is the cross-entropy of the two scores 0 and z, so both
/// losses of a recipe are this one.
#[derive(Debug, Clone, Default)]
pub struct TextLoss {
    /// Parts of a cross-validation that the batches of this update belong to.
    trained: Arc<Mutex<BTreeSet<u32>>>,
}

impl TextLoss {
    fn taken(&self) -> BTreeSet<u32> {
        std::mem::take(&mut *self.trained.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Objective<TextModel, TextBatch> for TextLoss {
    fn counts(&self, batch: &TextBatch) -> Vec<(&'static str, f64)> {
        class_counts(batch.len())
    }

    fn terms(&self, model: &TextModel, batch: &TextBatch, pass: &mut Pass) -> Vec<Term> {
        if pass.is_training() {
            self.trained.lock().unwrap_or_else(PoisonError::into_inner).insert(batch.fold);
        }
        class_terms(model.forward(batch, pass), &batch.labels, pass)
    }
}

/// Rescales the rows of dense layers after every accepted update, where the recipe sets their norm.
impl Running<TextModel> for TextLoss {
    fn commit(&self, model: TextModel) -> TextModel {
        model.with_row_norms(&self.taken())
    }

    fn discard(&self) {
        self.taken();
    }
}

/// Scores of each text: FP32 logits of all classes, on the host.
pub fn scores(model: &TextModel, batch: &TextBatch, pass: &mut Pass) -> Vec<Vec<f32>> {
    class_scores(model.forward(batch, pass))
}
