//! Recurrences over packed sequences of different lengths: LSTM and GRU.
//!
//! The input's part of the gates is one product for all steps, computed before ([`super::linear`]).
//! This module loops over the steps. Each step multiplies the states of all running sequences with
//! the recurrent weight, which is packed once, and applies the cell to the sums while they are in
//! the cache. For autodiff all steps are one operation. The backward pass computes the gradients of
//! the gates step by step, and the weight's in one product over all steps.
//!
//! Sequences are processed by falling length, so that ended ones cost nothing. The results of a
//! sequence do not depend on the others. In fp16, the products of the steps are rounded, and so are
//! the values carried between steps: outputs, cells, and the gradients of the gates and of the
//! cells; gates are FP32. In bf16, outputs and cells are carried in FP32, and rounded as operands
//! of products and as results.

mod backward;
pub(super) mod cells;
pub(super) mod composed;
mod forward;
mod operation;
mod sequences;
pub(super) mod tasks;
#[cfg(test)]
mod tests;
pub(super) mod weight;

pub use sequences::Sequences;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::dropout::Mask;
use super::linear::Products;
use super::observed::observed;
use super::{has_device_kernels, has_own_kernels};
use crate::Pass;
use crate::precision::to_f32;
pub(super) use operation::{Plan, RecurrentOp};

/// Kind of recurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Gates i, f, g, o; two states: output and cell.
    Lstm,
    /// The same with the gates 0.2 x + 0.5, within 0 and 1 (Keras 2).
    HardLstm,
    /// Gates r, z, n; one state.
    Gru,
}

impl Kind {
    /// Name of an output of this kind.
    fn name(self) -> &'static str {
        match self {
            Self::Lstm | Self::HardLstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Number of gates.
    pub(super) fn gates(self) -> usize {
        match self {
            Self::Lstm | Self::HardLstm => 4,
            Self::Gru => 3,
        }
    }

    /// Number of states.
    pub(super) fn states(self) -> usize {
        match self {
            Self::Lstm | Self::HardLstm => 2,
            Self::Gru => 1,
        }
    }
}

/// A long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates) over packed
/// sequences.
///
/// `gates` `[rows, 4 hidden]` is the input's part of the gates i, f, g, o with every bias, in any
/// float type; `weight` `[4 hidden, hidden]` is FP32. `state` is (h, c), `[sequences, hidden]`
/// each; without it both are zero. Returns the outputs `[rows, hidden]` in the compute type, and
/// the last (h, c) of each sequence in FP32.
///
/// # Panics
/// If shapes do not fit.
pub fn lstm(
    gates: Tensor<2>,
    weight: Tensor<2>,
    state: Option<(Tensor<2>, Tensor<2>)>,
    sequences: &Sequences,
    pass: &Pass,
) -> (Tensor<2>, (Tensor<2>, Tensor<2>)) {
    let initial = state.map(|(h, c)| Tensor::cat(vec![to_f32(h), to_f32(c)], 0));
    let (out, last) = recurrent(Kind::Lstm, gates, weight, None, initial, (sequences, None), pass);
    let count = sequences.count();
    (out, (last.clone().narrow(0, 0, count), last.narrow(0, count, count)))
}

/// Like [`lstm`] without initial states, with Keras 2's `hard_sigmoid` for the three gates: 0.2 x +
/// 0.5, within 0 and 1.
///
/// # Panics
/// If shapes do not fit.
pub fn hard_lstm(
    gates: Tensor<2>,
    weight: Tensor<2>,
    sequences: &Sequences,
    pass: &Pass,
) -> (Tensor<2>, (Tensor<2>, Tensor<2>)) {
    let (out, last) = recurrent(Kind::HardLstm, gates, weight, None, None, (sequences, None), pass);
    let count = sequences.count();
    (out, (last.clone().narrow(0, 0, count), last.narrow(0, count, count)))
}

/// Like [`lstm`] without initial states, with dropout of the outputs that the next step also reads
/// as its state (NVIDIA's Tacotron 2).
///
/// # Panics
/// If shapes do not fit.
pub fn lstm_dropping_states(
    gates: Tensor<2>,
    weight: Tensor<2>,
    rate: f64,
    sequences: &Sequences,
    pass: &mut Pass,
) -> Tensor<2> {
    let mask = Mask::draw(rate, pass);
    recurrent(Kind::Lstm, gates, weight, None, None, (sequences, mask), pass).0
}

/// A gated recurrent unit (Cho et al. 2014) over packed sequences. As in PyTorch and cuDNN, the
/// reset gate is applied after the recurrent product with its bias.
///
/// `gates` `[rows, 3 hidden]` is the input's part of the gates r, z, n, in any float type; `weight`
/// `[3 hidden, hidden]` and `bias` `[3 hidden]` of the recurrent part are FP32. `state` is h
/// `[sequences, hidden]`; without it h is zero. Returns the outputs `[rows, hidden]` in the compute
/// type, and the last h of each sequence in FP32.
///
/// # Panics
/// If shapes do not fit.
pub fn gru(
    gates: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    state: Option<Tensor<2>>,
    sequences: &Sequences,
    pass: &Pass,
) -> (Tensor<2>, Tensor<2>) {
    recurrent(Kind::Gru, gates, weight, bias, state.map(to_f32), (sequences, None), pass)
}

/// Runs a recurrence. `initial` and the last states are `[states x sequences, hidden]`; the mask is
/// that of the outputs `[rows, hidden]`.
pub(super) fn recurrent(
    kind: Kind,
    gates: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    initial: Option<Tensor<2>>,
    (sequences, mask): (&Sequences, Option<Mask>),
    pass: &Pass,
) -> (Tensor<2>, Tensor<2>) {
    let hidden = weight.dims()[1];
    let width = kind.gates() * hidden;
    assert_eq!(gates.dims(), [sequences.rows(), width], "one row of gates for each of the sequences' rows");
    assert_eq!(weight.dims()[0], width, "one row of weights for each gate of each unit");
    assert!(mask.is_none() || kind != Kind::Gru, "what a GRU takes over is its output");
    if let Some(initial) = &initial {
        let expected = [kind.states() * sequences.count(), hidden];
        assert_eq!(initial.dims(), expected, "one initial state for each sequence");
    }
    let site = pass.output(kind.name(), &weight);
    let device = gates.device();
    let own = match has_own_kernels(&device) {
        true => Products::of(pass.compute).is_some() && hidden > 0,
        // A GPU cannot allocate an empty buffer, and its kernels support neither dropout nor hard
        // gates.
        false => {
            let kernels = mask.is_none() && kind != Kind::HardLstm;
            has_device_kernels(&device) && sequences.rows() * hidden > 0 && kernels
        }
    };
    let (out, last) = if own {
        let (biased, given) = (bias.is_some(), initial.is_some());
        let plan = Plan { kind, sequences: sequences.clone(), compute: pass.compute, biased, given, mask };
        let nothing = weight.clone().set_require_grad(false).into_dispatch();
        let bias = bias.map_or_else(|| nothing.clone(), Tensor::into_dispatch);
        let initial = initial.map_or(nothing, Tensor::into_dispatch);
        let (out, last) =
            Dispatch::recurrent(gates.into_dispatch(), weight.into_dispatch(), bias, initial, plan);
        (Tensor::from_dispatch(out), Tensor::from_dispatch(last))
    } else {
        composed::recurrent(kind, gates, weight, bias, initial, (sequences, mask), pass)
    };
    (observed(out, site), last)
}

/// Two states `[sequences, hidden]` by falling length; zero where none are given.
fn initial_states(states: &[f32], sequences: &Sequences, hidden: usize) -> [Vec<f32>; 2] {
    let size = sequences.count() * hidden;
    [0, size].map(|from| match states.get(from..from + size) {
        Some(state) => sequences.sorted(state, hidden),
        None => vec![0.0; size],
    })
}
