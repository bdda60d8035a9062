//! Connectionist temporal classification (Graves et al. 2006): the negative log-likelihood of labels, summed over all their alignments
//! to frames. FP32 whatever the logits are, the softmax inside.
//!
//! The loss and its gradient, `softmax - occupancy`, come from one pass over alphas and one over betas. Logarithms of probabilities are
//! kept in FP64, so that thousands of frames lose nothing; what is added to the largest of two or three is FP32.

mod align;
mod composed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::{has_own_kernels, host};

/// What utterances say, and where their frames are.
#[derive(Debug, Clone)]
pub struct Utterances {
    list: Arc<[Utterance]>,
    labels: Arc<[u32]>,
    blank: u32,
    optional: Option<u32>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
struct Utterance {
    /// First row of its logits.
    row: usize,
    frames: usize,
    /// First of its labels.
    label: usize,
    labels: usize,
}

impl Utterances {
    /// Of labels, and the first row and the rows of the logits of each; `blank` is the class that is no label.
    ///
    /// # Panics
    /// If there are not as many places as label sequences, or a label is the blank.
    pub fn new<L: AsRef<[u32]>>(labels: &[L], frames: &[(usize, usize)], blank: u32) -> Self {
        assert_eq!(labels.len(), frames.len(), "frames for every label sequence");
        let (mut list, mut all) = (Vec::with_capacity(labels.len()), Vec::new());
        for (labels, &(row, frames)) in labels.iter().zip(frames) {
            let labels = labels.as_ref();
            list.push(Utterance { row, frames, label: all.len(), labels: labels.len() });
            all.extend_from_slice(labels);
        }
        assert!(!all.contains(&blank), "the blank is no label");
        Self { list: list.into(), labels: all.into(), blank, optional: None }
    }

    /// With a label that may be said or not wherever it stands, as a silence between words: the likelihood is that of all ways. (A
    /// lexicon with optional silence of probability 1/2 gives the same, times 1/2 for every choice.)
    ///
    /// # Panics
    /// If it stands twice side by side.
    pub fn with_optional(mut self, label: u32) -> Self {
        let twice = |utterance: &Utterance| self.labels(utterance).windows(2).any(|pair| pair == [label; 2]);
        assert!(!self.list.iter().any(twice), "an optional label beside itself");
        self.optional = Some(label);
        self
    }

    /// How many have an alignment: a frame for every label, and one for a blank between two that are equal. The others have no loss
    /// and no gradient (PyTorch's `zero_infinity`).
    pub fn alignable(&self) -> usize {
        self.list.iter().filter(|utterance| self.has_alignment(utterance)).count()
    }

    fn labels(&self, utterance: &Utterance) -> &[u32] {
        &self.labels[utterance.label..][..utterance.labels]
    }

    fn has_alignment(&self, utterance: &Utterance) -> bool {
        let said = |label: &&u32| self.optional != Some(**label);
        let (mut least, mut before) = (0, None);
        for label in self.labels(utterance).iter().filter(said) {
            least += 1 + usize::from(before == Some(label));
            before = Some(label);
        }
        // Between two that are equal an optional label parts them as well as a blank.
        utterance.frames >= least
    }

    fn aligned(&self, utterance: &Utterance) -> align::Labels<'_> {
        align::Labels { list: self.labels(utterance), blank: self.blank, optional: self.optional }
    }

    /// # Panics
    /// If rows or classes are not there.
    fn check(&self, [rows, classes]: [usize; 2]) {
        assert!(self.list.iter().all(|utterance| utterance.row + utterance.frames <= rows), "rows of logits");
        let classes = classes as u32;
        assert!(
            self.blank < classes && self.labels.iter().all(|&label| label < classes),
            "classes of logits"
        );
    }
}

/// The operation on the CPU.
#[backend_extension(Flex, Autodiff)]
pub trait CtcOp: Backend {
    /// logits [rows, classes] -> [1]: the losses' sum.
    fn ctc_sum(logits: FloatTensor<Self>, utterances: Utterances) -> FloatTensor<Self>;

    /// The same, and the gradient of the logits; 0 for rows that are no utterance's. No two utterances share a row.
    fn ctc_sum_and_gradient(
        logits: FloatTensor<Self>,
        utterances: Utterances,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// That gradient, given the one of the sum.
    fn ctc_gradient_times(gradient: FloatTensor<Self>, factor: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl CtcOp for Flex {
    fn ctc_sum(logits: FloatTensor<Self>, utterances: Utterances) -> FloatTensor<Self> {
        let (classes, logits) = (logits.shape()[1], host::values(&logits));
        let losses: Vec<f64> = utterances
            .list
            .par_iter()
            .filter(|utterance| utterances.has_alignment(utterance))
            .map_init(align::Room::default, |room, utterance| {
                let logits = &logits[utterance.row * classes..][..utterance.frames * classes];
                room.loss(logits, classes, utterances.aligned(utterance))
            })
            .collect();
        host::tensor(vec![losses.iter().sum::<f64>() as f32], [1], DType::F32)
    }

    fn ctc_sum_and_gradient(
        logits: FloatTensor<Self>,
        utterances: Utterances,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (shape, dtype) = (logits.shape(), logits.dtype());
        let (classes, logits) = (shape[1], host::values(&logits));
        let mut gradient = vec![0f32; logits.len()];
        // Each utterance's rows, in the order of the rows.
        let mut order: Vec<&Utterance> = utterances.list.iter().collect();
        order.sort_by_key(|utterance| utterance.row);
        let (mut rest, mut begin) = (gradient.as_mut_slice(), 0);
        let mut parts = Vec::with_capacity(order.len());
        for utterance in order {
            let (_, from) = rest.split_at_mut((utterance.row - begin) * classes);
            let (part, next) = from.split_at_mut(utterance.frames * classes);
            parts.push((utterance, part));
            (rest, begin) = (next, utterance.row + utterance.frames);
        }
        let losses: Vec<f64> = parts
            .into_par_iter()
            .filter(|(utterance, _)| utterances.has_alignment(utterance))
            .map_init(align::Room::default, |room, (utterance, part)| {
                let logits = &logits[utterance.row * classes..][..part.len()];
                let labels = utterances.aligned(utterance);
                let loss = room.loss(logits, classes, labels);
                room.gradient(part, classes, labels, loss);
                loss
            })
            .collect();
        let sum = host::tensor(vec![losses.iter().sum::<f64>() as f32], [1], DType::F32);
        (sum, host::tensor(gradient, shape, dtype))
    }

    fn ctc_gradient_times(gradient: FloatTensor<Self>, factor: FloatTensor<Self>) -> FloatTensor<Self> {
        let (shape, dtype, factor) = (gradient.shape(), gradient.dtype(), host::values(&factor)[0]);
        let mut values = host::into_values(gradient);
        values.iter_mut().for_each(|x| *x *= factor);
        host::tensor(values, shape, dtype)
    }
}

impl<B: CtcOp, C: CheckpointStrategy> CtcOp for Autodiff<B, C> {
    fn ctc_sum(logits: FloatTensor<Self>, utterances: Utterances) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Aligned;
        impl<B: CtcOp> Backward<B, 1> for Aligned {
            type State = FloatTensor<B>;
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let factor = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::ctc_gradient_times(ops.state, factor));
                }
            }
        }
        let (logits, node) = logits.into_parts();
        match Aligned.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (sum, gradient) = B::ctc_sum_and_gradient(logits, utterances);
                prep.finish(gradient, sum)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::ctc_sum(logits, utterances)),
        }
    }

    fn ctc_sum_and_gradient(_: FloatTensor<Self>, _: Utterances) -> (FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: the gradient is the inner backend's")
    }

    fn ctc_gradient_times(_: FloatTensor<Self>, _: FloatTensor<Self>) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Negative log-likelihood of the utterances' labels given `logits` [rows, classes] of any float type, summed over those that have an
/// alignment ([`Utterances::alignable`]): [1], FP32.
///
/// # Panics
/// If rows or classes that the utterances name are not there.
pub fn ctc(logits: Tensor<2>, utterances: &Utterances) -> Tensor<1> {
    utterances.check(logits.dims());
    if has_own_kernels(&logits.device()) {
        return Tensor::from_dispatch(Dispatch::ctc_sum(logits.into_dispatch(), utterances.clone()));
    }
    composed::ctc(logits, utterances)
}
