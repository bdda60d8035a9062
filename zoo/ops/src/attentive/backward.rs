//! Backward pass through time: the gradients that the loop carries, step by step, then the gradient
//! of each weight in one product.

use burn::tensor::f16;

use super::Plan;
use super::forward::{Given, Kept, KeptLayer, Sizes, first_rows, for_each_sequence, layer_inputs};
use super::listen::{Filter, Past, Slopes};
use crate::attention::split_rows;
use crate::dropout;
use crate::fp32::{self, Matrix, Start};
use crate::halves::{self, Operand, Values};
use crate::host;
use crate::linear::{Products, column_sums};
use crate::recurrent::cells::{Cell, Lstm};
use crate::recurrent::tasks::{Shared, by_units};
use crate::recurrent::weight::{Packed, Sums};
use crate::simd;

/// Gradients, with the shapes of their tensors.
pub struct Gradients {
    pub gates: Vec<f32>,
    pub layers: Vec<Vec<f32>>,
    pub second_bias: Vec<f32>,
    pub keys: Vec<f32>,
    pub values: Vec<f32>,
    pub query: Vec<f32>,
    pub filter: Vec<f32>,
    pub bias: Vec<f32>,
    pub vector: Vec<f32>,
}

/// Backward pass. `out` `[sequences x steps, hidden + width]` and `weights` `[steps, rows]` are
/// outputs of the forward pass; `of_out` and `of_weights` are their gradients.
pub fn backward(
    (out, weights): (&[f32], &[f32]),
    (of_out, of_weights): (&[f32], &[f32]),
    kept: Kept,
    given: &Given,
    sizes: &Sizes,
    plan: &Plan,
) -> Gradients {
    let with = plan.products();
    let Sizes { batch, steps, hidden, units, width, ref rows, all } = *sizes;
    let Kept { sums, queries, mut layers } = kept;
    let filter = Filter::new(given.filter, units, plan.channels);
    let query = Packed::columns(with, given.query, units, hidden);
    let packed: Vec<Packed> = given
        .layers
        .iter()
        .enumerate()
        .map(|(i, weight)| Packed::columns(with, weight, 4 * hidden, sizes.input(i) + hidden))
        .collect();
    let firsts = first_rows(rows);
    let taps = given.filter.len();

    let (mut of_keys, mut of_values) = (vec![0f32; all * units], vec![0f32; all * width]);
    // One gradient for each sequence; they are summed in order at the end.
    let (mut of_filter, mut of_vector) = (vec![0f32; batch * taps], vec![0f32; batch * units]);
    let mut of_queries = vec![0f32; batch * steps * units];
    // Gradients carried from the next step: of the context, of the last step's weights and their
    // sum, and of each layer's state and cell.
    let mut of_context = vec![0f32; batch * width];
    let (mut of_last, mut of_sum) = (vec![0f32; all], vec![0f32; all]);
    let mut carried: Vec<[Vec<f32>; 2]> =
        layers.iter().map(|_| [vec![0f32; batch * hidden], vec![0f32; batch * hidden]]).collect();
    let nothing = vec![0f32; all];
    let mut walk = || {
        for step in (0..steps).rev() {
            let now = &weights[step * all..][..all];
            let before = if step == 0 { &nothing[..] } else { &weights[(step - 1) * all..][..all] };
            let past_sums = &sums[step * all..][..all];
            // Gradients of this step's weights: from the next step, and from the output.
            let mut slopes: Vec<f32> = of_last.iter().zip(&of_sum).map(|(a, b)| a + b).collect();
            simd::add(&mut slopes, &of_weights[step * all..][..all]);
            for sequence in 0..batch {
                let from = &of_out[sizes.row(sequence, step) * (hidden + width) + hidden..][..width];
                simd::add(&mut of_context[sequence * width..][..width], from);
            }
            let counts = || rows.iter().copied();
            let pieces: Vec<_> = split_rows(&mut slopes, counts())
                .into_iter()
                .zip(split_rows(&mut of_keys, counts().map(|n| n * units)))
                .zip(split_rows(&mut of_values, counts().map(|n| n * width)))
                .zip(split_rows(&mut of_last, counts()))
                .zip(split_rows(&mut of_sum, counts()))
                .zip(of_filter.chunks_exact_mut(taps.max(1)))
                .zip(of_vector.chunks_exact_mut(units.max(1)))
                .zip(
                    of_queries
                        .chunks_exact_mut(steps * units)
                        .map(|of_queries| &mut of_queries[step * units..][..units]),
                )
                .collect();
            for_each_sequence(pieces, 2 * all * units, |(sequence, piece)| {
                let (((((((slopes, keys), values), last), sum), filter_slopes), vector), of_query) = piece;
                let (first, n) = (firsts[sequence], rows[sequence]);
                let look = given.look(&filter, sizes, first, n);
                let past = Past { last: &before[first..][..n], sum: &past_sums[first..][..n] };
                let asked = &queries[sizes.row(sequence, step) * units..][..units];
                let of_found = &of_context[sequence * width..][..width];
                let to = Slopes { keys, values, query: of_query, vector, filter: filter_slopes, last, sum };
                look.backward(asked, past, &now[first..][..n], slopes, of_found, to);
            });
            // Gradients of the last layer's output: from the output, and from the query.
            let mut of_step = Vec::with_capacity(batch * units);
            for sequence in 0..batch {
                of_step.extend_from_slice(&of_queries[sizes.row(sequence, step) * units..][..units]);
            }
            let of_step = Packed::rows(with, &of_step, batch, units);
            let asked = Sums::new(&of_step, &query, 0..hidden, &[]);
            let mut of_output = vec![0f32; batch * hidden];
            for (sequence, to) in of_output.chunks_exact_mut(hidden).enumerate() {
                to.copy_from_slice(&of_out[sizes.row(sequence, step) * (hidden + width)..][..hidden]);
                simd::add(to, asked.row(sequence));
            }
            for i in (0..layers.len()).rev() {
                let of_input =
                    retreat(&mut layers[i], &packed[i], of_output, &mut carried[i], step, sizes, (i, plan));
                of_output = of_input;
            }
            of_context = of_output;
        }
    };
    rayon::scope(|_| walk());

    let mut of_layers = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        let below = i.checked_sub(1).map(|below| layers[below].outputs());
        let inputs = all_inputs(below, out, &layer.states, sizes, i);
        of_layers.push(weight_gradient(&layer.gates, 4 * hidden, &inputs, sizes.input(i) + hidden, with));
    }
    let of_query = match layers.last() {
        Some(last) => weight_gradient(&of_queries, units, last.outputs(), hidden, with),
        None => Vec::new(),
    };
    let sums_of = |values: &[f32], columns: usize| {
        let rows = values.len() / columns.max(1);
        let mut sums = column_sums(&host::Source::Wide(values.into()), rows, columns);
        with.keep(&mut sums);
        sums
    };
    let bias = sums_of(&of_queries, units);
    let second_bias = match layers.get(1) {
        Some(layer) if !given.second_bias.is_empty() => sums_of(&layer.gates, 4 * hidden),
        _ => Vec::new(),
    };
    let summed = |parts: &[f32], size: usize| {
        let mut sum = vec![0f32; size];
        parts.chunks_exact(size.max(1)).for_each(|part| simd::add(&mut sum, part));
        with.keep(&mut sum);
        sum
    };
    let (filter, vector) = (summed(&of_filter, taps), summed(&of_vector, units));
    Gradients {
        gates: layers.into_iter().next().map(|layer| layer.gates).unwrap_or_default(),
        layers: of_layers,
        second_bias,
        keys: of_keys,
        values: of_values,
        query: of_query,
        filter,
        bias,
        vector,
    }
}

/// One step of a layer. Writes the gradients of its gates in place, and returns the gradient of its
/// input from the loop `[sequences, input]`.
fn retreat(
    layer: &mut KeptLayer,
    weight: &Packed,
    mut of_output: Vec<f32>,
    [of_state, of_cell]: &mut [Vec<f32>; 2],
    step: usize,
    sizes: &Sizes,
    (i, plan): (usize, &Plan),
) -> Vec<f32> {
    let Sizes { batch, hidden, .. } = *sizes;
    let (input, with) = (sizes.input(i), plan.products());
    let depth = input + hidden;
    let zeros = vec![0f32; hidden];
    let mut of_gates: Vec<f32> = Vec::with_capacity(batch * 4 * hidden);
    for sequence in 0..batch {
        let row = sizes.row(sequence, step);
        let (arriving, state) =
            (&mut of_output[sequence * hidden..][..hidden], &of_state[sequence * hidden..][..hidden]);
        if plan.state_dropout {
            simd::add(arriving, state);
        }
        if let Some(mask) = plan.masks[i] {
            dropout::apply(arriving, (row * hidden) as u32, mask);
        }
        if !plan.state_dropout {
            simd::add(arriving, state);
        }
        let (before, now) = layer.cells.split_at_mut(row * hidden);
        let before = if step == 0 { &zeros[..] } else { &before[(row - 1) * hidden..] };
        let gates = &mut layer.gates[row * 4 * hidden..][..4 * hidden];
        let mut parts = gates.chunks_exact_mut(hidden);
        let parts = std::array::from_fn(|_| parts.next().expect("four gates"));
        let carry = &mut of_cell[sequence * hidden..][..hidden];
        Lstm::backward(parts, &mut now[..hidden], before, arriving, carry);
        with.keep(gates);
        with.keep(carry);
        of_gates.extend_from_slice(gates);
    }
    let of_gates = Packed::rows(with, &of_gates, batch, 4 * hidden);
    let mut of_all: Vec<f32> = host::room(batch * depth);
    let shared = Shared::new(&mut of_all, depth);
    by_units(depth, batch * depth * 4 * hidden, |columns| {
        let sums = Sums::new(&of_gates, weight, columns.clone(), &[]);
        for sequence in 0..batch {
            // SAFETY: each task writes its own columns.
            let to = unsafe { shared.part(sequence, columns.clone()) };
            to.copy_from_slice(sums.row(sequence));
        }
    });
    let mut of_input = Vec::with_capacity(batch * input);
    for (sequence, row) in of_all.chunks_exact(depth).enumerate() {
        of_input.extend_from_slice(&row[..input]);
        of_state[sequence * hidden..][..hidden].copy_from_slice(&row[input..]);
    }
    of_input
}

/// Inputs of a layer in all steps: `[sequences x steps, input + hidden]`.
fn all_inputs(below: Option<&[f32]>, out: &[f32], states: &[f32], sizes: &Sizes, i: usize) -> Vec<f32> {
    let depth = sizes.input(i) + sizes.hidden;
    let mut inputs: Vec<f32> = host::room(sizes.batch * sizes.steps * depth);
    for step in 0..sizes.steps {
        let of_step = layer_inputs(below, out, states, step, sizes);
        for (sequence, row) in of_step.chunks_exact(depth).enumerate() {
            inputs[sizes.row(sequence, step) * depth..][..depth].copy_from_slice(row);
        }
    }
    inputs
}

/// Transposed slopes `[rows, lanes]` times inputs `[rows, depth]`.
fn weight_gradient(slopes: &[f32], lanes: usize, inputs: &[f32], depth: usize, with: Products) -> Vec<f32> {
    let rows = slopes.len() / lanes.max(1);
    match with {
        Products::Fp32 => {
            let mut out = host::room(lanes * depth);
            let slopes = Matrix::columns(slopes, rows, lanes, lanes);
            fp32::product(&mut out, &slopes, &Matrix::columns(inputs, rows, depth, depth), Start::Zero);
            out
        }
        Products::Bf16(with) => {
            let slopes = Operand::new(Values::F32(slopes), rows, lanes).transpose();
            halves::product::<f32>(with, slopes, Operand::new(Values::F32(inputs), rows, depth), None)
        }
        Products::Fp16 => {
            let slopes = Operand::new(Values::F32(slopes), rows, lanes).transpose();
            let inputs = Operand::new(Values::F32(inputs), rows, depth);
            halves::product_in_vectors::<f16, f32>(slopes, inputs, None)
        }
    }
}
