//! The recurrence composed of tensor operations, differentiated by Burn.

use burn::tensor::activation::{sigmoid, tanh};
use burn::tensor::{Int, Tensor, TensorData};

use super::{Kind, Sequences};
use crate::Pass;
use crate::dropout::{Mask, masked_in_order};
use crate::precision::{matmul, to_f32};
use crate::stored;

/// Composition of `super::recurrent`.
pub fn recurrent(
    kind: Kind,
    gates: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    initial: Option<Tensor<2>>,
    (sequences, mask): (&Sequences, Option<Mask>),
    pass: &Pass,
) -> (Tensor<2>, Tensor<2>) {
    let (device, hidden, count) = (gates.device(), weight.dims()[1], sequences.count());
    let ints = |values: Vec<usize>| {
        let (len, values) = (values.len(), values.into_iter().map(|i| i as i32).collect::<Vec<_>>());
        Tensor::<1, Int>::from_data(TensorData::new(values, [len]), &device)
    };
    let initial = initial.unwrap_or_else(|| Tensor::zeros([kind.states() * count, hidden], &device));
    let order = sequences.order();
    let states: Vec<Tensor<2>> = (0..kind.states())
        .map(|state| initial.clone().select(0, ints(order.iter().map(|i| i + state * count).collect())))
        .collect();
    let mut states = states;
    let kept = mask.map(|mask| masked_in_order(Tensor::ones([sequences.rows(), hidden], &device), mask));
    // Time-major: the rows of a step are consecutive.
    let mut outs = Vec::new();
    let mut place = vec![0; sequences.rows()];
    let mut written = 0;
    for step in 0..sequences.steps() {
        let active = sequences.active(step);
        let rows: Vec<usize> = (0..active).map(|sequence| sequences.row(sequence, step)).collect();
        rows.iter().enumerate().for_each(|(i, &row)| place[row] = written + i);
        written += active;
        let rows = ints(rows);
        let x = to_f32(gates.clone().select(0, rows.clone()));
        let before: Vec<Tensor<2>> = states.iter().map(|s| s.clone().narrow(0, 0, active)).collect();
        // The weight is cast in each step, so that the gradients of the casts are summed in FP32.
        let product =
            matmul(pass.compute.cast(before[0].clone()), pass.compute.cast(weight.clone()).transpose());
        let product = match &bias {
            Some(bias) => to_f32(product) + bias.clone().unsqueeze(),
            None => to_f32(product),
        };
        let part = |of: &Tensor<2>, gate: usize| of.clone().narrow(1, gate * hidden, hidden);
        let sum = |gate: usize| part(&x, gate) + part(&product, gate);
        let mut after = match kind {
            Kind::Lstm | Kind::HardLstm => {
                let gate = |x: Tensor<2>| match kind {
                    Kind::HardLstm => (x * 0.2 + 0.5).clamp(0.0, 1.0),
                    _ => sigmoid(x),
                };
                let (i, f, g, o) = (gate(sum(0)), gate(sum(1)), tanh(sum(2)), gate(sum(3)));
                let cell = f * before[1].clone() + i * g;
                vec![o * tanh(cell.clone()), cell]
            }
            Kind::Gru => {
                let (r, z) = (sigmoid(sum(0)), sigmoid(sum(1)));
                let n = tanh(part(&x, 2) + r * part(&product, 2));
                vec![n.clone() + z * (before[0].clone() - n)]
            }
        };
        if let Some(kept) = &kept {
            after[0] = after[0].clone() * kept.clone().select(0, rows);
        }
        let after: Vec<Tensor<2>> = after.into_iter().map(|x| stored(x, pass.compute)).collect();
        outs.push(after[0].clone());
        for (state, after) in states.iter_mut().zip(after) {
            // If every sequence continues, no selection is needed.
            *state = if active == count {
                after
            } else {
                Tensor::cat(vec![after, state.clone().narrow(0, active, count - active)], 0)
            };
        }
    }
    let mut back = vec![0; count];
    order.iter().enumerate().for_each(|(sorted, &given)| back[given] = sorted);
    let last = states.into_iter().map(|state| state.select(0, ints(back.clone()))).collect();
    let out = match outs.is_empty() {
        true => Tensor::zeros([0, hidden], &device),
        false => Tensor::cat(outs, 0).select(0, ints(place)),
    };
    (pass.compute.cast(out), Tensor::cat(last, 0))
}
