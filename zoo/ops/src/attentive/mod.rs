//! LSTM layers with a location-sensitive attention in their loop. The first layer receives, besides
//! its input, the attention context of the step before. The last layer queries the attention, which
//! also reads its previous weights (Chorowski et al. 2015; Shen et al. 2018).
//!
//! The score of a row of the source is v · tanh(key + W query + b + filter * weights). The last
//! term is a convolution over the weights of the steps before: their sum and, with two channels,
//! the weights of the last step as the first channel. For autodiff all steps are one operation. The
//! hidden layer of the scores has steps x source rows x units values. It is not stored: the
//! backward pass recomputes it.
//!
//! All sequences of a batch run all steps, and their results are independent. Products of the
//! layers and of the query are in the compute type; location, scores, softmax and sums are FP32. In
//! fp16, values carried from step to step are rounded: outputs, cells, contexts, and the gradients
//! of gates and cells.

mod backward;
pub(super) mod composed;
mod forward;
mod listen;
mod operation;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::dropout::Mask;
use super::linear::Products;
use super::observed::observed;
use super::{fp32, has_own_kernels};
use crate::Pass;
use crate::precision::Compute;
pub use composed::{Hearing, Looking};
pub(super) use operation::AttentiveOp;

/// A layer in the loop.
#[derive(Debug, Clone)]
pub struct AttentiveLayer {
    /// Shape `[4 hidden, input + hidden]`: gates i, f, g, o for the input from inside the loop (the
    /// context, or the layer below) and for the layer's own last output.
    pub weight: Tensor<2>,
    /// Shape `[4 hidden]`. The bias of the first layer is part of the gates from outside the loop.
    pub bias: Option<Tensor<1>>,
}

/// The loop's parameters, FP32.
#[derive(Debug, Clone)]
pub struct AttentiveWeights {
    /// One or two layers.
    pub layers: Vec<AttentiveLayer>,
    /// W `[units, hidden]`.
    pub query: Tensor<2>,
    /// Shape `[units, channels x taps]`: one channel for the sum of all weights so far, or one for
    /// the last step's weights before it. Tap (taps - 1) / 2 is at the scored row.
    pub filter: Tensor<2>,
    /// b `[units]`.
    pub bias: Tensor<1>,
    /// v `[units]`.
    pub vector: Tensor<1>,
}

/// Sources of a batch, with their rows concatenated.
#[derive(Debug, Clone)]
pub struct Source {
    /// `[rows, units]` FP32.
    pub keys: Tensor<2>,
    /// `[rows, width]` FP32.
    pub values: Tensor<2>,
    /// Number of rows of each source; at least one.
    pub lengths: Vec<u32>,
}

/// Settings of the loop.
#[derive(Debug, Clone, Copy)]
pub struct AttentiveSpec {
    /// Number of channels of the location filter.
    pub channels: usize,
    /// Drop rate of the layers' outputs.
    pub dropout: f64,
    /// Whether dropout also applies to the state.
    pub state_dropout: bool,
}

/// Arguments of the kernels besides tensors.
#[derive(Debug, Clone)]
pub struct Plan {
    pub lengths: Vec<u32>,
    pub channels: usize,
    /// Dropout mask of each layer.
    pub masks: Vec<Option<Mask>>,
    pub state_dropout: bool,
    pub compute: Compute,
    /// Values that the forward pass stores for the backward pass.
    pub kept: Option<Arc<Mutex<Option<forward::Kept>>>>,
}

impl Plan {
    fn products(&self) -> Products {
        Products::of(self.compute).expect("the instructions were looked for")
    }
}

/// Runs all steps of all sequences. `gates` `[sequences x steps, 4 hidden]` FP32, with the steps of
/// a sequence consecutive, is the contribution from outside the loop to the first layer's gates,
/// including every bias. Returns the last layer's outputs concatenated with the contexts
/// `[sequences x steps, hidden + width]` FP32, and the attention weights over the rows of all
/// sources in each step `[steps, rows]`.
///
/// # Panics
/// If shapes do not fit.
pub fn attentive_lstm(
    gates: Tensor<2>,
    weights: &AttentiveWeights,
    source: &Source,
    spec: AttentiveSpec,
    pass: &mut Pass,
) -> (Tensor<2>, Tensor<2>) {
    let masks: Vec<_> = weights.layers.iter().map(|_| Mask::draw(spec.dropout, pass)).collect();
    let hidden = weights.query.dims()[1];
    assert!(matches!(weights.layers.len(), 1 | 2), "one layer or two");
    assert_eq!(gates.dims()[1], 4 * hidden, "a gate of each kind for each unit");
    assert!(gates.dims()[0].is_multiple_of(source.lengths.len().max(1)), "as many steps for each source");
    assert!(source.lengths.iter().all(|&length| length > 0), "a source has rows");
    let rows: u32 = source.lengths.iter().sum();
    assert_eq!(source.keys.dims()[0], rows as usize, "a key for each row");
    assert_eq!(source.values.dims()[0], rows as usize, "a value for each row");
    let plan = Plan {
        lengths: source.lengths.clone(),
        channels: spec.channels,
        masks,
        state_dropout: spec.state_dropout,
        compute: pass.compute,
        kept: None,
    };
    let site = pass.output("attentive", &weights.layers[0].weight);
    let empty = gates.dims()[0] == 0;
    let own = has_own_kernels(&gates.device()) && fp32::available();
    if !own || empty || Products::of(pass.compute).is_none() {
        let (out, looks) = composed::attentive(gates, weights, source, &plan);
        return (observed(out, site), looks);
    }
    let (device, sequence_steps, width) = (gates.device(), gates.dims()[0], source.values.dims()[1]);
    let nothing = || Tensor::<2>::empty([0, 0], &device);
    let none = || Tensor::<1>::empty([0], &device);
    let second = weights.layers.get(1);
    let out = Dispatch::attentive(
        gates.into_dispatch(),
        weights.layers[0].weight.clone().into_dispatch(),
        second.map_or_else(nothing, |layer| layer.weight.clone()).into_dispatch(),
        second.and_then(|layer| layer.bias.clone()).unwrap_or_else(none).into_dispatch(),
        source.keys.clone().into_dispatch(),
        source.values.clone().into_dispatch(),
        weights.query.clone().into_dispatch(),
        weights.filter.clone().into_dispatch(),
        weights.bias.clone().into_dispatch(),
        weights.vector.clone().into_dispatch(),
        plan,
    );
    let out = Tensor::<1>::from_dispatch(out);
    let (columns, steps) = (hidden + width, sequence_steps / source.lengths.len());
    let first_weight = sequence_steps * columns;
    let looks = out.clone().narrow(0, first_weight, steps * rows as usize);
    let out = out.narrow(0, 0, first_weight).reshape([sequence_steps, columns]);
    (observed(out, site), looks.reshape([steps, rows as usize]))
}
