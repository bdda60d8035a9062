//! Connectionist temporal classification (Graves et al. 2006): the negative log-likelihood of
//! labels, summed over all their alignments with frames. It computes in FP32 for any type of logits
//! and includes the softmax.
//!
//! The loss and its gradient, `softmax - occupancy`, take one pass over alphas and one over betas.
//! Log-probabilities are kept in FP64, so that thousands of frames do not lose precision. The terms
//! that are added to the largest of two or three are FP32.

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

/// Labels of a batch of utterances, and the positions of their frames.
#[derive(Debug, Clone)]
pub struct Utterances {
    list: Arc<[Utterance]>,
    labels: Arc<[u32]>,
    blank: u32,
    optional: Option<u32>,
}

/// Positions of one utterance.
#[derive(Debug, Clone, Copy)]
struct Utterance {
    /// First row of its logits.
    row: usize,
    frames: usize,
    /// Index of its first label.
    label: usize,
    labels: usize,
}

impl Utterances {
    /// Takes label sequences, and for each the first row and the number of rows of its logits.
    /// `blank` is the class of no label.
    ///
    /// # Panics
    /// If the number of positions differs from the number of label sequences, or a label is the
    /// blank.
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

    /// Makes a label optional wherever it occurs, such as a silence between words. The likelihood
    /// then sums over all choices. (A lexicon with optional silence of probability 1/2 gives the
    /// same result, times 1/2 for every choice.)
    ///
    /// # Panics
    /// If the label occurs twice in succession.
    pub fn with_optional(mut self, label: u32) -> Self {
        let twice = |utterance: &Utterance| self.labels(utterance).windows(2).any(|pair| pair == [label; 2]);
        assert!(!self.list.iter().any(twice), "an optional label beside itself");
        self.optional = Some(label);
        self
    }

    /// Number of utterances with an alignment: they have a frame for every label, and one for a
    /// blank between two equal labels. The others have no loss and no gradient (PyTorch's
    /// `zero_infinity`).
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
        // Between two equal labels, an optional label separates them as well as a blank.
        utterance.frames >= least
    }

    fn aligned(&self, utterance: &Utterance) -> align::Labels<'_> {
        align::Labels { list: self.labels(utterance), blank: self.blank, optional: self.optional }
    }

    /// Checks that the logits have all rows and classes.
    ///
    /// # Panics
    /// If rows or classes are missing.
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
    /// logits `[rows, classes]` -> `[1]`: the sum of the losses.
    fn ctc_sum(logits: FloatTensor<Self>, utterances: Utterances) -> FloatTensor<Self>;

    /// The sum of the losses, and the gradient of the logits; 0 for rows outside all utterances. No
    /// two utterances share a row.
    fn ctc_sum_and_gradient(
        logits: FloatTensor<Self>,
        utterances: Utterances,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the logits times the gradient of the sum.
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
        // The rows of each utterance, in the order of the rows.
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

/// Negative log-likelihood of the utterances' labels given `logits` `[rows, classes]` of any float
/// type, summed over the utterances that have an alignment ([`Utterances::alignable`]): `[1]`,
/// FP32.
///
/// # Panics
/// If the logits lack rows or classes of the utterances.
pub fn ctc(logits: Tensor<2>, utterances: &Utterances) -> Tensor<1> {
    utterances.check(logits.dims());
    if has_own_kernels(&logits.device()) {
        return Tensor::from_dispatch(Dispatch::ctc_sum(logits.into_dispatch(), utterances.clone()));
    }
    composed::ctc(logits, utterances)
}
