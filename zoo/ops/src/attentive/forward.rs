//! Forward pass over all steps of all sequences.

use rayon::prelude::*;

use super::Plan;
use super::listen::{Filter, Look, Past};
use crate::attention::split_rows;
use crate::dropout::{self, Mask};
use crate::host;
use crate::linear::Products;
use crate::recurrent::cells::{Cell, Lstm};
use crate::recurrent::tasks::{Shared, by_units};
use crate::recurrent::weight::{Packed, Sums};

/// Values of the parameters and sources.
pub struct Given<'a> {
    /// Weight of each layer: `[4 hidden, input + hidden]`.
    pub layers: Vec<&'a [f32]>,
    /// Bias of the second layer: `[4 hidden]`, or empty.
    pub second_bias: &'a [f32],
    pub keys: &'a [f32],
    pub values: &'a [f32],
    pub query: &'a [f32],
    pub filter: &'a [f32],
    pub bias: &'a [f32],
    pub vector: &'a [f32],
}

impl Given<'_> {
    /// The source with `n` rows from row `first` on.
    pub fn look<'b>(&'b self, filter: &'b Filter, sizes: &Sizes, first: usize, n: usize) -> Look<'b> {
        let (units, width) = (sizes.units, sizes.width);
        Look {
            keys: &self.keys[first * units..][..n * units],
            values: &self.values[first * width..][..n * width],
            filter,
            vector: self.vector,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Sizes {
    pub batch: usize,
    pub steps: usize,
    pub hidden: usize,
    pub units: usize,
    pub width: usize,
    /// Number of rows of each source.
    pub rows: Vec<usize>,
    /// Number of rows of all sources.
    pub all: usize,
}

impl Sizes {
    pub fn new(steps_in_all: usize, hidden: usize, units: usize, width: usize, lengths: &[u32]) -> Self {
        let rows: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
        let (batch, all) = (rows.len(), rows.iter().sum());
        Self { batch, steps: steps_in_all / batch.max(1), hidden, units, width, rows, all }
    }

    /// Row of a step of a sequence.
    pub fn row(&self, sequence: usize, step: usize) -> usize {
        sequence * self.steps + step
    }

    /// Width of a layer's input from inside the loop.
    pub fn input(&self, layer: usize) -> usize {
        if layer == 0 { self.width } else { self.hidden }
    }
}

/// Values of a layer that the backward pass needs: `[sequences x steps, ...]`.
#[derive(Debug, Clone)]
pub struct KeptLayer {
    /// Gates after their activations, 4 hidden.
    pub gates: Vec<f32>,
    /// Cells, hidden.
    pub cells: Vec<f32>,
    /// Outputs that the next step reads as state.
    pub states: Vec<f32>,
    /// Outputs after dropout, if they differ from the states.
    pub dropped: Option<Vec<f32>>,
}

impl KeptLayer {
    pub fn outputs(&self) -> &[f32] {
        self.dropped.as_deref().unwrap_or(&self.states)
    }
}

/// Results of the forward pass.
pub struct Forward {
    /// Outputs and contexts `[sequences x steps, hidden + width]`.
    pub out: Vec<f32>,
    /// Attention weights `[steps, rows]`.
    pub weights: Vec<f32>,
    pub kept: Kept,
}

/// Values that the backward pass needs besides the outputs.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Sums of the attention weights before each step `[steps, rows]`.
    pub sums: Vec<f32>,
    /// Queries with the bias `[sequences x steps, units]`.
    pub queries: Vec<f32>,
    pub layers: Vec<KeptLayer>,
}

/// Forward pass. `gates` `[sequences x steps, 4 hidden]` is the contribution from outside the loop
/// to the first layer's gates.
pub fn forward(gates: Vec<f32>, given: &Given, sizes: &Sizes, plan: &Plan) -> Forward {
    let with = plan.products();
    let Sizes { batch, steps, hidden, units, width, ref rows, all } = *sizes;
    let count = batch * steps;
    let filter = Filter::new(given.filter, units, plan.channels);
    let query = Packed::transposed(with, given.query, units, hidden);
    let mut bias = given.bias.to_vec();
    with.keep(&mut bias);
    let second_gates = (given.layers.len() > 1).then(|| {
        let mut bias = given.second_bias.to_vec();
        with.keep(&mut bias);
        let mut gates = vec![0f32; count * 4 * hidden];
        if !bias.is_empty() {
            gates.par_chunks_mut(4 * hidden).for_each(|row| row.copy_from_slice(&bias));
        }
        gates
    });
    let own_dropped = |mask: &Option<Mask>| mask.is_some() && !plan.state_dropout;
    let mut layers: Vec<KeptLayer> = std::iter::once(gates)
        .chain(second_gates)
        .zip(&plan.masks)
        .map(|(gates, mask)| KeptLayer {
            gates,
            cells: host::room(count * hidden),
            states: host::room(count * hidden),
            dropped: own_dropped(mask).then(|| host::room(count * hidden)),
        })
        .collect();
    let packed: Vec<[Packed; 4]> =
        given.layers.iter().enumerate().map(|(i, weight)| gate_panels(with, weight, sizes, i)).collect();
    let mut out = vec![0f32; count * (hidden + width)];
    let mut queries: Vec<f32> = host::room(count * units);
    let (mut weights, mut sums) = (vec![0f32; steps * all], vec![0f32; steps * all]);
    let nothing = vec![0f32; all];
    let mut walk = || {
        for step in 0..steps {
            for (i, weight) in packed.iter().enumerate() {
                let (below, from) = layers.split_at_mut(i);
                let below = below.last().map(|layer| layer.outputs());
                advance(&mut from[0], weight, below, &out, step, sizes, (i, plan), with);
            }
            let Some(last) = layers.last() else { return };
            let asked = gathered(last.outputs(), hidden, step, sizes);
            let asked = Sums::new(&Packed::rows(with, &asked, batch, hidden), &query, 0..units, &bias);
            for sequence in 0..batch {
                let row = sizes.row(sequence, step);
                queries[row * units..][..units].copy_from_slice(asked.row(sequence));
                let to = &mut out[row * (hidden + width)..][..hidden];
                to.copy_from_slice(&last.outputs()[row * hidden..][..hidden]);
            }
            let (before, now) = weights.split_at_mut(step * all);
            let before = if step == 0 { &nothing[..] } else { &before[(step - 1) * all..] };
            let past_sums = &sums[step * all..][..all];
            let founds = out
                .chunks_exact_mut(steps * (hidden + width))
                .map(|rows| &mut rows[step * (hidden + width) + hidden..][..width]);
            let pieces: Vec<_> =
                split_rows(&mut now[..all], rows.iter().copied()).into_iter().zip(founds).collect();
            let firsts = first_rows(rows);
            let listen = |(sequence, (weights, found)): (usize, (&mut [f32], &mut [f32]))| {
                let (first, n) = (firsts[sequence], rows[sequence]);
                let look = given.look(&filter, sizes, first, n);
                let past = Past { last: &before[first..][..n], sum: &past_sums[first..][..n] };
                let query = &queries[sizes.row(sequence, step) * units..][..units];
                look.forward(query, past, weights, found);
                with.keep(found);
            };
            for_each_sequence(pieces, all * units, listen);
            if step + 1 < steps {
                let (past, next) = sums.split_at_mut((step + 1) * all);
                let past = &past[step * all..];
                let now = &weights[step * all..][..all];
                for ((next, past), now) in next.iter_mut().zip(past).zip(now) {
                    *next = past + now;
                }
            }
        }
    };
    rayon::scope(|_| walk());
    Forward { out, weights, kept: Kept { sums, queries, layers } }
}

/// Work, in hidden units of scores, below which one thread does it all.
const ALONE: usize = 1 << 14;

/// Runs a task for every sequence, on all threads if the work is large enough.
pub fn for_each_sequence<T: Send>(pieces: Vec<T>, work: usize, task: impl Fn((usize, T)) + Send + Sync) {
    match work < ALONE {
        true => pieces.into_iter().enumerate().for_each(task),
        false => pieces.into_par_iter().enumerate().for_each(task),
    }
}

/// First row of each source.
pub fn first_rows(rows: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let mut first_of = |n: usize| {
        end += n;
        end - n
    };
    rows.iter().map(|&n| first_of(n)).collect()
}

/// A layer's weight, packed as one panel for each gate.
fn gate_panels(with: Products, weight: &[f32], sizes: &Sizes, layer: usize) -> [Packed; 4] {
    let depth = sizes.input(layer) + sizes.hidden;
    let size = sizes.hidden * depth;
    std::array::from_fn(|gate| Packed::transposed(with, &weight[gate * size..][..size], sizes.hidden, depth))
}

/// Rows of one step of all sequences, concatenated.
fn gathered(values: &[f32], width: usize, step: usize, sizes: &Sizes) -> Vec<f32> {
    let mut rows = Vec::with_capacity(sizes.batch * width);
    for sequence in 0..sizes.batch {
        rows.extend_from_slice(&values[sizes.row(sequence, step) * width..][..width]);
    }
    rows
}

/// Input of a layer in a step, besides the contribution from outside the loop: the context of the
/// step before, or the output of the layer below, and its own state. Shape
/// `[sequences, input + hidden]`.
pub fn layer_inputs(
    below: Option<&[f32]>,
    out: &[f32],
    states: &[f32],
    step: usize,
    sizes: &Sizes,
) -> Vec<f32> {
    let Sizes { batch, hidden, width, .. } = *sizes;
    let mut inputs = Vec::with_capacity(batch * (hidden + width.max(hidden)));
    for sequence in 0..batch {
        let row = sizes.row(sequence, step);
        match below {
            Some(below) => inputs.extend_from_slice(&below[row * hidden..][..hidden]),
            None if step == 0 => inputs.resize(inputs.len() + width, 0.0),
            None => inputs.extend_from_slice(&out[(row - 1) * (hidden + width) + hidden..][..width]),
        }
        match step {
            0 => inputs.resize(inputs.len() + hidden, 0.0),
            _ => inputs.extend_from_slice(&states[(row - 1) * hidden..][..hidden]),
        }
    }
    inputs
}

/// One step of a layer.
#[allow(clippy::too_many_arguments)]
fn advance(
    layer: &mut KeptLayer,
    weight: &[Packed; 4],
    below: Option<&[f32]>,
    out: &[f32],
    step: usize,
    sizes: &Sizes,
    (i, plan): (usize, &Plan),
    with: Products,
) {
    let Sizes { batch, hidden, .. } = *sizes;
    let depth = sizes.input(i) + hidden;
    let inputs = layer_inputs(below, out, &layer.states, step, sizes);
    let inputs = Packed::rows(with, &inputs, batch, depth);
    let shared_gates = Shared::new(&mut layer.gates, 4 * hidden);
    let shared_cells = Shared::new(&mut layer.cells, hidden);
    let shared_states = Shared::new(&mut layer.states, hidden);
    let zeros = vec![0f32; hidden];
    by_units(hidden, batch * depth * hidden * 4, |units| {
        let sums: [Sums; 4] =
            std::array::from_fn(|gate| Sums::new(&inputs, &weight[gate], units.clone(), &[]));
        for sequence in 0..batch {
            let row = sizes.row(sequence, step);
            // SAFETY: a task touches its own units alone, and each part once at a time.
            unsafe {
                let gates = std::array::from_fn(|gate| {
                    shared_gates.part(row, gate * hidden + units.start..gate * hidden + units.end)
                });
                let before: &[f32] = match step {
                    0 => &zeros[units.clone()],
                    _ => shared_cells.part(row - 1, units.clone()),
                };
                let sums = std::array::from_fn(|gate| sums[gate].row(sequence));
                let cell = shared_cells.part(row, units.clone());
                let state = shared_states.part(row, units.clone());
                Lstm::forward(gates, sums, before, cell, state);
                with.keep(cell);
                with.keep(state);
            }
        }
    });
    let Some(mask) = plan.masks[i] else { return };
    for sequence in 0..batch {
        let first = sizes.row(sequence, step) * hidden;
        let state = first..first + hidden;
        let to = match &mut layer.dropped {
            Some(dropped) => {
                dropped[state.clone()].copy_from_slice(&layer.states[state.clone()]);
                &mut dropped[state]
            }
            None => &mut layer.states[state],
        };
        dropout::apply(to, first as u32, mask);
        with.keep(to);
    }
}
