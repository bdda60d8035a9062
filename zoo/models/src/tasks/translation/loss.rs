//! Cross-entropy of a sequence-to-sequence model, as defined by a recipe's `[loss]`.

use zoo_recipes::Smoothing;
use zoo_recipes::tasks::translation::{Denominator, TokenLossSpec};

use super::{PairBatch, Seq2Seq};
use crate::Pass;
use crate::contract::{Objective, Term};
use crate::ops::{SmoothedTargets, cross_entropy};

/// The training objective of translation recipes: `loss` is minimised, `nll` is reported.
#[derive(Debug, Clone)]
pub struct TranslationLoss {
    label_smoothing: f64,
    smoothing: Smoothing,
    denominator: Denominator,
}

impl TranslationLoss {
    /// Builds the objective from a recipe's loss settings.
    pub fn new(spec: &TokenLossSpec) -> Self {
        let TokenLossSpec::CrossEntropy { label_smoothing, smoothing, denominator } = *spec;
        Self { label_smoothing, smoothing, denominator }
    }
}

impl Objective<Seq2Seq, PairBatch> for TranslationLoss {
    fn counts(&self, batch: &PairBatch) -> Vec<(&'static str, f64)> {
        let tokens = batch.target.tokens.len() as f64;
        let loss = match self.denominator {
            Denominator::Tokens => tokens,
            Denominator::Sentences => batch.target.lengths.len() as f64,
            Denominator::Positions => batch.target_positions as f64,
        };
        vec![("loss", loss), ("nll", tokens)]
    }

    fn terms(&self, model: &Seq2Seq, batch: &PairBatch, pass: &mut Pass) -> Vec<Term> {
        let logits = model.logits(batch, pass);
        let [_, vocabulary] = logits.dims();
        let targets =
            SmoothedTargets::new(&batch.target.tokens, vocabulary, self.label_smoothing, self.smoothing)
                .in_pass(pass);
        let (loss, nll) = cross_entropy(logits, &targets);
        vec![Term { name: "loss", sum: loss, weight: 1.0 }, Term { name: "nll", sum: nll, weight: 0.0 }]
    }
}
