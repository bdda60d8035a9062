//! Forward pass over all steps of all sequences.

use super::cells::Cell;
use super::sequences::Sequences;
use super::tasks::{Shared, by_units};
use super::weight::{Packed, Sums};
use crate::dropout::{self, Mask};
use crate::host;
use crate::linear::Products;

/// Results of the forward pass.
pub struct Forward {
    /// Outputs `[rows, hidden]`.
    pub out: Vec<f32>,
    /// Gates after their activations, `[rows, gates x hidden]`.
    pub gates: Vec<f32>,
    /// Values kept by the cell, `[rows, hidden]`.
    pub kept: Vec<f32>,
    /// Last outputs, then last cells of an LSTM: `[sequences, hidden]` each.
    pub last: Vec<f32>,
}

/// Forward pass. `gates` `[rows, gates x hidden]` is the input's part, `weight`
/// `[gates x hidden, hidden]`, `bias` `[gates x hidden]` or empty, `initial` like
/// [`Forward::last`], or empty for zeros.
pub fn forward<C: Cell<GATES>, const GATES: usize>(
    mut gates: Vec<f32>,
    weight: &[f32],
    bias: &[f32],
    initial: &[f32],
    hidden: usize,
    (sequences, mask): (&Sequences, Option<Mask>),
    with: Products,
) -> Forward {
    let (count, rows) = (sequences.count(), sequences.rows());
    let (mut out, mut kept) = (host::room(rows * hidden), host::room(rows * hidden));
    let [mut h, first_cell] = super::initial_states(initial, sequences, hidden);
    let first = if C::TAKES_KEPT { first_cell } else { h.clone() };
    // One panel for each gate: a strip of units is a strip of every gate.
    let weights: [Packed; GATES] = std::array::from_fn(|gate| {
        Packed::transposed(with, &weight[gate * hidden * hidden..][..hidden * hidden], hidden, hidden)
    });
    let mut bias = bias.to_vec();
    with.keep(&mut bias);
    let bias: [&[f32]; GATES] =
        std::array::from_fn(|gate| if bias.is_empty() { &bias } else { &bias[gate * hidden..][..hidden] });
    let mut walk = || {
        for step in 0..sequences.steps() {
            let active = sequences.active(step);
            let before = Packed::rows(with, &h[..active * hidden], active, hidden);
            let (shared_h, shared_out) = (Shared::new(&mut h, hidden), Shared::new(&mut out, hidden));
            let (shared_kept, shared_gates) =
                (Shared::new(&mut kept, hidden), Shared::new(&mut gates, GATES * hidden));
            by_units(hidden, active * hidden * hidden * GATES, |units| {
                let sums: [Sums; GATES] = std::array::from_fn(|gate| {
                    let bias = if bias[gate].is_empty() { &[] } else { &bias[gate][units.clone()] };
                    Sums::new(&before, &weights[gate], units.clone(), bias)
                });
                for sequence in 0..active {
                    let row = sequences.row(sequence, step);
                    // SAFETY: a task touches its own units alone, and each part once at a time.
                    unsafe {
                        let gates = std::array::from_fn(|gate| {
                            shared_gates.part(row, gate * hidden + units.start..gate * hidden + units.end)
                        });
                        let before: &[f32] = match step {
                            0 => &first[sequence * hidden..][units.clone()],
                            _ => {
                                let matrix = if C::TAKES_KEPT { &shared_kept } else { &shared_out };
                                matrix.part(sequences.row(sequence, step - 1), units.clone())
                            }
                        };
                        let h = shared_h.part(sequence, units.clone());
                        let kept = shared_kept.part(row, units.clone());
                        let sums = std::array::from_fn(|gate| sums[gate].row(sequence));
                        C::forward(gates, sums, before, kept, h);
                        if let Some(mask) = mask {
                            dropout::apply(h, (row * hidden + units.start) as u32, mask);
                        }
                        with.keep(h);
                        with.keep(kept);
                        shared_out.part(row, units.clone()).copy_from_slice(h);
                    }
                }
            });
        }
    };
    // Runs on a thread of the pool, so that the steps are not handed over to it one by one.
    rayon::scope(|_| walk());

    let mut last = Vec::with_capacity(2 * h.len());
    sequences.restore(&h, hidden, &mut last);
    if C::TAKES_KEPT {
        let mut cells = first;
        for (sequence, cell) in cells.chunks_exact_mut(hidden.max(1)).enumerate().take(count) {
            if let Some(step) = sequences.last_step(sequence) {
                cell.copy_from_slice(&kept[sequences.row(sequence, step) * hidden..][..hidden]);
            }
        }
        sequences.restore(&cells, hidden, &mut last);
    }
    Forward { out, gates, kept, last }
}
