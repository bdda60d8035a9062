//! Batches of speech, and CTC loss of an acoustic model as defined by a recipe's `[loss]`.

use burn::tensor::{Device, Tensor, TensorData};
use zoo_recipes::tasks::speech_recognition::CtcDenominator;

use super::{AcousticModel, Frames};
use crate::Pass;
use crate::contract::{Objective, Running, Term};
use crate::nn::Seen;
use crate::ops::{Utterances, ctc};

/// Features and labels of a batch of utterances.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpeechBatch {
    /// Features `[utterances, longest, features]`, zero after the end of each utterance.
    pub features: Vec<f32>,
    /// Number of frames of each utterance. At least one utterance has frames.
    pub lengths: Vec<usize>,
    /// Label ids of each utterance.
    pub labels: Vec<Vec<u32>>,
}

impl SpeechBatch {
    /// The features as a padded tensor on a device.
    pub fn frames(&self, device: &Device) -> Frames {
        let (utterances, longest) = (self.lengths.len(), self.lengths.iter().copied().max().unwrap_or(0));
        let features = self.features.len() / (utterances * longest).max(1);
        let data = TensorData::new(self.features.clone(), [utterances, longest, features]);
        Frames::new(Tensor::from_data(data, device), self.lengths.clone())
    }
}

/// The classes that are not ordinary labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CtcClasses {
    /// The CTC blank.
    pub blank: u32,
    /// A label that is optional wherever it occurs.
    pub optional: Option<u32>,
}

/// The training objective of CTC recipes. It keeps the batch-norm statistics of its passes until
/// the update is committed or discarded.
#[derive(Debug, Clone)]
pub struct CtcLoss {
    denominator: CtcDenominator,
    classes: CtcClasses,
    seen: Seen,
}

impl CtcLoss {
    /// Builds the objective from a recipe's loss settings.
    pub fn new(denominator: CtcDenominator, classes: CtcClasses) -> Self {
        Self { denominator, classes, seen: Seen::default() }
    }
}

impl Objective<AcousticModel, SpeechBatch> for CtcLoss {
    fn counts(&self, batch: &SpeechBatch) -> Vec<(&'static str, f64)> {
        let count = match self.denominator {
            CtcDenominator::Utterances => batch.lengths.len() as f64,
            CtcDenominator::Batches => 1.0,
        };
        vec![("loss", count)]
    }

    fn terms(&self, model: &AcousticModel, batch: &SpeechBatch, pass: &mut Pass) -> Vec<Term> {
        let frames = batch.frames(&model.device());
        let (logits, seen) = model.forward(frames, pass);
        if pass.is_training() {
            self.seen.push(seen);
        }
        let utterances = Utterances::new(&batch.labels, &logits.places(), self.classes.blank);
        let utterances = match self.classes.optional {
            Some(label) => utterances.with_optional(label),
            None => utterances,
        };
        vec![Term { name: "loss", sum: ctc(logits.rows(), &utterances), weight: 1.0 }]
    }
}

impl Running<AcousticModel> for CtcLoss {
    fn commit(&self, model: AcousticModel) -> AcousticModel {
        match self.seen.mean() {
            Some(mean) => model.fold(&mean),
            None => model,
        }
    }

    fn discard(&self) {
        self.seen.take();
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, ListedTask, Selection, SpeechRecognition};

    use super::*;
    use crate::parameters::{export, host_values};
    use crate::precision::Compute;

    fn model() -> AcousticModel {
        let recipe = Document::load("yesno-tdnn").unwrap().resolve(&Selection::default()).unwrap().recipe;
        let recipe = SpeechRecognition::take(recipe).unwrap();
        AcousticModel::new(recipe.model.layers(), 23, 4, 1, &Device::flex().autodiff())
    }

    fn batch() -> SpeechBatch {
        let features = (0..2 * 40 * 23).map(|i| ((i * 7 % 31) as f32 - 15.0) / 10.0);
        // The second utterance has 33 frames.
        let features = features.enumerate().map(|(i, x)| if i >= (40 + 33) * 23 { 0.0 } else { x }).collect();
        SpeechBatch { features, lengths: vec![40, 33], labels: vec![vec![0, 1, 0], vec![0, 2, 0]] }
    }

    #[test]
    fn statistics_enter_the_model_when_an_update_is_committed() {
        let loss = CtcLoss::new(CtcDenominator::Batches, CtcClasses { blank: 3, optional: Some(0) });
        let model = model();
        let mut pass = Pass::training(Compute::FP32, 1, 0);
        let terms = loss.terms(&model, &batch(), &mut pass);
        let value = host_values(terms[0].sum.clone().inner())[0];
        assert!(value.is_finite() && value > 0.0, "{value}");
        let before = export(&model);
        loss.discard();
        let model = loss.commit(model);
        assert_eq!(export(&model), before, "what was thrown away");
        loss.terms(&model, &batch(), &mut Pass::training(Compute::FP32, 1, 0));
        let model = loss.commit(model);
        let after = export(&model);
        let changed: Vec<&str> =
            before.iter().zip(&after).filter(|(a, b)| a != b).map(|(a, _)| a.path.as_str()).collect();
        assert_eq!(changed.len(), 6, "mean and variance of three norms: {changed:?}");
        let model = loss.commit(model);
        assert_eq!(export(&model), after, "once is enough");
    }

    #[test]
    fn an_update_of_several_batches_moves_statistics_once() {
        let after = |batches: usize| {
            let loss = CtcLoss::new(CtcDenominator::Batches, CtcClasses { blank: 3, optional: None });
            let model = model();
            for _ in 0..batches {
                loss.terms(&model, &batch(), &mut Pass::training(Compute::FP32, 1, 0));
            }
            export(&loss.commit(model))
        };
        // A mean of two equal values, up to rounding.
        for (one, two) in after(1).iter().zip(&after(2)) {
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * a.abs();
            assert!(one.values.iter().zip(&two.values).all(near), "{}", one.path);
        }
    }

    #[test]
    fn validation_leaves_no_statistics_and_counts_as_the_recipe_says() {
        for (denominator, count) in [(CtcDenominator::Utterances, 2.0), (CtcDenominator::Batches, 1.0)] {
            let loss = CtcLoss::new(denominator, CtcClasses { blank: 3, optional: None });
            assert_eq!(loss.counts(&batch()), [("loss", count)]);
            loss.terms(&model(), &batch(), &mut Pass::evaluation(Compute::FP32));
            assert!(loss.seen.take().is_empty());
        }
    }
}
