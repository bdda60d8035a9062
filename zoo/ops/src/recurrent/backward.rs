//! Backward pass through time: gradients of the gates step by step, then those of the weight in one
//! product.

use burn::tensor::f16;
use rayon::prelude::*;

use super::cells::{Cell, Place};
use super::sequences::Sequences;
use super::tasks::{Shared, by_units};
use super::weight::{Packed, Sums};
use crate::dropout::{self, Mask};
use crate::fp32::{self, Matrix, Start};
use crate::halves::{self, Operand, Values};
use crate::host;
use crate::linear::{Products, column_sums};
use crate::simd;

/// Results of the forward pass, and the gradients of its outputs.
pub struct Given<'a> {
    /// As in `forward`.
    pub gates: Vec<f32>,
    pub kept: Vec<f32>,
    /// Outputs in FP32.
    pub out: &'a [f32],
    pub weight: &'a [f32],
    pub biased: bool,
    pub initial: &'a [f32],
    /// Gradient of the outputs; `None` for zeros.
    pub of_out: Option<host::Source<'a>>,
    /// Gradient of the last states.
    pub of_last: &'a [f32],
}

/// Gradients, with the shapes of their tensors.
pub struct Gradients {
    pub gates: Vec<f32>,
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub initial: Vec<f32>,
}

/// Gradients of the input's part of the gates, the weight, the bias, and the initial states.
pub fn backward<C: Cell<GATES>, const GATES: usize>(
    given: Given,
    hidden: usize,
    (sequences, mask): (&Sequences, Option<Mask>),
    with: Products,
) -> Gradients {
    let Given { mut gates, mut kept, out, weight, biased, initial, of_out, of_last } = given;
    let width = GATES * hidden;
    let [mut of_h, mut carry] = super::initial_states(of_last, sequences, hidden);
    let [first_h, first_cell] = super::initial_states(initial, sequences, hidden);
    let first = if C::TAKES_KEPT { &first_cell } else { &first_h };
    let columns = Packed::columns(with, weight, width, hidden);
    // Gradients of the recurrent part of the current step, in the order of the sequences.
    let mut of_step: Vec<f32> = host::room(sequences.count() * width);
    let mut walk = || {
        let mut later: Option<(usize, Packed)> = None;
        for step in (0..sequences.steps()).rev() {
            let active = sequences.active(step);
            let (shared_h, shared_carry) = (Shared::new(&mut of_h, hidden), Shared::new(&mut carry, hidden));
            let (shared_kept, shared_gates) =
                (Shared::new(&mut kept, hidden), Shared::new(&mut gates, width));
            let shared_step = Shared::new(&mut of_step, width);
            by_units(hidden, active * width * hidden, |units| {
                let sums =
                    later.as_ref().map(|(n, rows)| (*n, Sums::new(rows, &columns, units.clone(), &[])));
                let mut arriving = vec![0f32; units.len()];
                for sequence in 0..active {
                    let row = sequences.row(sequence, step);
                    // SAFETY: a task touches its own units alone, and each part once at a time.
                    unsafe {
                        let gradient = match &sums {
                            Some((n, sums)) if sequence < *n => sums.row(sequence),
                            _ => shared_h.part(sequence, units.clone()),
                        };
                        match &of_out {
                            Some(of_out) => {
                                of_out.read(row * hidden + units.start, &mut arriving);
                                simd::add(&mut arriving, gradient);
                            }
                            None => arriving.copy_from_slice(gradient),
                        }
                        if let Some(mask) = mask {
                            dropout::apply(&mut arriving, (row * hidden + units.start) as u32, mask);
                        }
                        let mut parts: [&mut [f32]; GATES] = std::array::from_fn(|gate| {
                            shared_gates.part(row, gate * hidden + units.start..gate * hidden + units.end)
                        });
                        let before: &[f32] = match step.checked_sub(1) {
                            None => &first[sequence * hidden..][units.clone()],
                            Some(step) => {
                                let row = sequences.row(sequence, step);
                                match C::TAKES_KEPT {
                                    true => shared_kept.part(row, units.clone()),
                                    false => &out[row * hidden..][units.clone()],
                                }
                            }
                        };
                        let kept = shared_kept.part(row, units.clone());
                        let carry = shared_carry.part(sequence, units.clone());
                        C::backward(parts.each_mut().map(|part| &mut **part), kept, before, &arriving, carry);
                        parts.iter_mut().for_each(|part| with.keep(part));
                        with.keep(kept);
                        with.keep(carry);
                        for (gate, part) in parts.iter().enumerate() {
                            let from = if C::recurrent(gate) == Place::Kept { &*kept } else { &**part };
                            let to = gate * hidden + units.start..gate * hidden + units.end;
                            shared_step.part(sequence, to).copy_from_slice(from);
                        }
                    }
                }
            });
            later = Some((active, Packed::rows(with, &of_step[..active * width], active, width)));
        }
        // Gradients of the initial states.
        if let Some((active, rows)) = later.filter(|_| !initial.is_empty()) {
            let shared = Shared::new(&mut of_h, hidden);
            by_units(hidden, active * width * hidden, |units| {
                let sums = Sums::new(&rows, &columns, units.clone(), &[]);
                for sequence in 0..active {
                    // SAFETY: a task writes its own units alone.
                    let to = unsafe { shared.part(sequence, units.clone()) };
                    to.copy_from_slice(sums.row(sequence));
                }
            });
        }
    };
    rayon::scope(|_| walk());

    let mut of_initial = Vec::new();
    if !initial.is_empty() {
        if !C::TAKES_KEPT {
            simd::add(&mut of_h, &carry);
        }
        sequences.restore(&of_h, hidden, &mut of_initial);
        if C::TAKES_KEPT {
            sequences.restore(&carry, hidden, &mut of_initial);
        }
    }
    let of_weight =
        weight_gradient::<C, GATES>(&gates, &kept, &before(out, &first_h, sequences), hidden, with);
    let bias = if biased { bias_gradient::<C, GATES>(&gates, &kept, hidden, with) } else { Vec::new() };
    Gradients { gates, weight: of_weight, bias, initial: of_initial }
}

/// For each row, the output of the step before, or the initial one: `[rows, hidden]`.
fn before(out: &[f32], first: &[f32], sequences: &Sequences) -> Vec<f32> {
    let hidden = out.len() / sequences.rows().max(1);
    let mut before = host::room(out.len());
    before.par_chunks_mut(hidden.max(1)).zip(sequences.previous()).for_each(|(to, previous)| {
        to.copy_from_slice(match previous {
            Ok(row) => &out[row * hidden..][..hidden],
            Err(sequence) => &first[sequence * hidden..][..hidden],
        });
    });
    before
}

/// Gradient of the weight `[gates x hidden, hidden]`: one product over all rows, or one for each
/// place where gradients are stored.
fn weight_gradient<C: Cell<GATES>, const GATES: usize>(
    gates: &[f32],
    kept: &[f32],
    before: &[f32],
    hidden: usize,
    with: Products,
) -> Vec<f32> {
    let (rows, width) = (before.len() / hidden.max(1), GATES * hidden);
    let shared = (0..GATES).take_while(|&gate| C::recurrent(gate) == Place::Gate).count() * hidden;
    let mut out = host::room(width * hidden);
    let (first, second) = out.split_at_mut(shared * hidden);
    for (to, from, lanes, stride) in [(first, gates, shared, width), (second, kept, width - shared, hidden)] {
        if lanes == 0 {
            continue;
        }
        match with {
            Products::Fp32 => {
                let gradient = Matrix::columns(from, rows, lanes, stride);
                fp32::product(to, &gradient, &Matrix::columns(before, rows, hidden, hidden), Start::Zero);
            }
            Products::Bf16(with) => {
                let gradient = Operand::part(Values::F32(from), rows, lanes, stride).transpose();
                let before = Operand::new(Values::F32(before), rows, hidden);
                to.copy_from_slice(&halves::product::<f32>(with, gradient, before, None));
            }
            Products::Fp16 => {
                let gradient = Operand::part(Values::F32(from), rows, lanes, stride).transpose();
                let before = Operand::new(Values::F32(before), rows, hidden);
                to.copy_from_slice(&halves::product_in_vectors::<f16, f32>(gradient, before, None));
            }
        }
    }
    out
}

/// Gradient of the bias `[gates x hidden]`.
fn bias_gradient<C: Cell<GATES>, const GATES: usize>(
    gates: &[f32],
    kept: &[f32],
    hidden: usize,
    with: Products,
) -> Vec<f32> {
    let sums_of = |values: &[f32], columns: usize| {
        let rows = values.len() / columns.max(1);
        column_sums(&host::Source::Wide(values.into()), rows, columns)
    };
    let (of_gates, of_kept) = (sums_of(gates, GATES * hidden), sums_of(kept, hidden));
    let mut sums: Vec<f32> = (0..GATES)
        .flat_map(|gate| match C::recurrent(gate) {
            Place::Gate => &of_gates[gate * hidden..][..hidden],
            Place::Kept => &of_kept[..],
        })
        .copied()
        .collect();
    with.round(&mut sums);
    sums
}
