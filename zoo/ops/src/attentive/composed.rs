//! The attention loop composed of tensor operations, differentiated by Burn; and single steps of
//! the loop, for free-running inference.

use burn::tensor::activation::{sigmoid, softmax, tanh};
use burn::tensor::module::conv1d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Bool, Int, Tensor, TensorData};

use super::{AttentiveWeights, Plan, Source};
use crate::Pass;
use crate::dropout::masked_in_order;
use crate::precision::{Compute, matmul, to_f32};
use crate::stored;

/// Sources of a batch, padded.
#[derive(Debug, Clone)]
pub struct Looking {
    /// Shape `[sequences, longest, units]`.
    keys: Tensor<3>,
    /// Shape `[sequences, longest, width]`.
    values: Tensor<3>,
    /// Mask of padded rows, `[sequences, longest]`.
    hidden: Tensor<2, Bool>,
    /// Positions of the rows of all sources among the padded rows.
    places: Tensor<1, Int>,
}

impl Looking {
    /// Pads sources whose rows are concatenated.
    pub fn new(source: &Source) -> Self {
        let device = source.keys.device();
        let count = source.lengths.len();
        let longest = source.lengths.iter().copied().max().unwrap_or(0) as usize;
        let (mut from, mut hidden, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        for (i, &length) in source.lengths.iter().enumerate() {
            let length = length as usize;
            // Places where a source has no row are masked.
            from.extend((0..longest).map(|row| (first + row.min(length.saturating_sub(1))) as i32));
            hidden.extend((0..longest).map(|row| row >= length));
            places.extend((0..length).map(|row| (i * longest + row) as i32));
            first += length;
        }
        let ints = |values: Vec<i32>| {
            let len = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [len]), &device)
        };
        let from = ints(from);
        let padded = |x: &Tensor<2>| {
            let width = x.dims()[1];
            x.clone().select(0, from.clone()).reshape([count, longest, width])
        };
        Self {
            keys: padded(&source.keys),
            values: padded(&source.values),
            hidden: Tensor::from_data(TensorData::new(hidden, [count, longest]), &device),
            places: ints(places),
        }
    }

    fn start(&self) -> Tensor<2> {
        let [count, longest, _] = self.keys.dims();
        Tensor::zeros([count, longest], &self.keys.device())
    }
}

/// State of the loop for a batch of sequences.
#[derive(Debug, Clone)]
pub struct Hearing {
    /// Output and cell of each layer, `[sequences, hidden]`; `None` before the first step.
    layers: Vec<Option<[Tensor<2>; 2]>>,
    /// Context of the last step, `[sequences, width]`.
    found: Option<Tensor<2>>,
    /// Attention weights of the last step, `[sequences, longest]`.
    last: Tensor<2>,
    /// Sum of the attention weights of all steps, `[sequences, longest]`.
    sum: Tensor<2>,
}

impl Hearing {
    /// State before the first step.
    pub fn new(weights: &AttentiveWeights, looking: &Looking) -> Self {
        Self {
            layers: vec![None; weights.layers.len()],
            found: None,
            last: looking.start(),
            sum: looking.start(),
        }
    }

    /// Attention weights of the last step, `[sequences, longest]`.
    pub fn weights(&self) -> Tensor<2> {
        self.last.clone()
    }

    /// One step without dropout: `gates` `[sequences, 4 hidden]` from outside the loop -> output
    /// and context `[sequences, hidden + width]`.
    pub fn step(
        &mut self,
        gates: Tensor<2>,
        weights: &AttentiveWeights,
        looking: &Looking,
        channels: usize,
        pass: &Pass,
    ) -> Tensor<2> {
        self.go(gates, weights, looking, channels, pass.compute, |_, out| (out.clone(), out))
    }

    /// One step. `dropped` returns a layer's state and its output after dropout.
    fn go(
        &mut self,
        gates: Tensor<2>,
        weights: &AttentiveWeights,
        looking: &Looking,
        channels: usize,
        compute: Compute,
        dropped: impl Fn(usize, Tensor<2>) -> (Tensor<2>, Tensor<2>),
    ) -> Tensor<2> {
        let (device, count) = (gates.device(), gates.dims()[0]);
        let [units, hidden] = weights.query.dims();
        let width = looking.values.dims()[2];
        let zeros = |width: usize| Tensor::<2>::zeros([count, width], &device);
        let mut outside = Some(gates);
        let mut inside = self.found.take().unwrap_or_else(|| zeros(width));
        for (i, layer) in weights.layers.iter().enumerate() {
            let [state, cell] = self.layers[i].take().unwrap_or_else(|| [zeros(hidden), zeros(hidden)]);
            let read = Tensor::cat(vec![inside, state], 1);
            // The weight is cast in each step, so that the gradients of the casts are summed in
            // FP32.
            let product = to_f32(matmul(compute.cast(read), compute.cast(layer.weight.clone()).transpose()));
            let product = match (outside.take(), &layer.bias) {
                (Some(outside), _) => product + to_f32(outside),
                (None, Some(bias)) => product + bias.clone().unsqueeze(),
                (None, None) => product,
            };
            let gate = |gate: usize| product.clone().narrow(1, gate * hidden, hidden);
            let cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * tanh(gate(2));
            let (state, out) = dropped(i, stored(sigmoid(gate(3)) * tanh(cell.clone()), compute));
            let [state, out, cell] = [state, out, cell].map(|x| stored(x, compute));
            self.layers[i] = Some([state, cell]);
            inside = out;
        }
        let query = matmul(compute.cast(inside.clone()), compute.cast(weights.query.clone()).transpose());
        let query = to_f32(query) + weights.bias.clone().unsqueeze();
        let taps = weights.filter.dims()[1] / channels;
        let past = match channels {
            1 => self.sum.clone().unsqueeze_dim::<3>(1),
            _ => Tensor::stack(vec![self.last.clone(), self.sum.clone()], 1),
        };
        let longest = past.dims()[2];
        let edge = |n: usize| Tensor::<3>::zeros([count, channels, n], &device);
        let past = Tensor::cat(vec![edge((taps - 1) / 2), past, edge(taps / 2)], 2);
        let filter = weights.filter.clone().reshape([units, channels, taps]);
        let location = conv1d(past, filter, None, ConvOptions::new([1], [0], [1], 1)).swap_dims(1, 2);
        let sums = looking.keys.clone() + query.unsqueeze_dim::<3>(1) + location;
        let scores = (tanh(sums) * weights.vector.clone().reshape([1, 1, units])).sum_dim(2);
        let scores = scores.reshape([count, longest]).mask_fill(looking.hidden.clone(), -1e9);
        let now = softmax(scores, 1).mask_fill(looking.hidden.clone(), 0.0);
        let found = matmul(now.clone().unsqueeze_dim::<3>(1), looking.values.clone()).reshape([count, width]);
        let found = stored(found, compute);
        self.sum = self.sum.clone() + now.clone();
        self.last = now;
        self.found = Some(found.clone());
        Tensor::cat(vec![inside, found], 1)
    }
}

/// Composition of [`super::attentive_lstm`].
pub fn attentive(
    gates: Tensor<2>,
    weights: &AttentiveWeights,
    source: &Source,
    plan: &Plan,
) -> (Tensor<2>, Tensor<2>) {
    let device = gates.device();
    let [hidden, width] = [weights.query.dims()[1], source.values.dims()[1]];
    let (rows, count) = (gates.dims()[0], source.lengths.len());
    let all = source.keys.dims()[0];
    if rows == 0 {
        return (Tensor::zeros([0, hidden + width], &device), Tensor::zeros([0, all], &device));
    }
    let steps = rows / count;
    // Dropout factors of each layer's outputs, numbered in the order of the outputs.
    let masks: Vec<Option<Tensor<2>>> = plan
        .masks
        .iter()
        .map(|mask| mask.map(|mask| masked_in_order(Tensor::ones([rows, hidden], &device), mask)))
        .collect();
    let rows_of = |step: usize| {
        let rows: Vec<i32> = (0..count).map(|sequence| (sequence * steps + step) as i32).collect();
        Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &device)
    };
    let looking = Looking::new(source);
    let mut hearing = Hearing::new(weights, &looking);
    let (mut outs, mut looks) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let of_step = rows_of(step);
        let dropped = |layer: usize, out: Tensor<2>| match &masks[layer] {
            None => (out.clone(), out),
            Some(mask) => {
                let dropped = out.clone() * mask.clone().select(0, of_step.clone());
                (if plan.state_dropout { dropped.clone() } else { out }, dropped)
            }
        };
        let gates = gates.clone().select(0, of_step.clone());
        outs.push(hearing.go(gates, weights, &looking, plan.channels, plan.compute, dropped));
        let longest = hearing.last.dims()[1];
        let look = hearing.last.clone().reshape([count * longest]).select(0, looking.places.clone());
        looks.push(look.unsqueeze_dim::<2>(0));
    }
    // Reorders rows so that the steps of a sequence are consecutive.
    let back: Vec<i32> = (0..rows).map(|row| ((row % steps) * count + row / steps) as i32).collect();
    let back = Tensor::<1, Int>::from_data(TensorData::new(back, [rows]), &device);
    (Tensor::cat(outs, 0).select(0, back), Tensor::cat(looks, 0))
}
