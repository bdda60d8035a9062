//! Label-smoothed cross-entropy on GPUs: one cube for each row of logits.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::cross_entropy::{CrossEntropyOp, SmoothedTargets};
use super::rows::{LEAST, Sharing, largest, sum};
use super::{cubes, element, numbers, output, room, values};

/// Moments of the logits of a unit or of a row.
#[derive(CubeType, Clone, Copy)]
struct Moments {
    /// The largest logit.
    largest: f32,
    /// The sum of exp(x - largest).
    mass: f32,
    /// The plain sum.
    sum: f32,
}

/// Moments of the row that begins at `first`; the logits are read once.
#[cube]
fn moments<F: Float>(
    logits: &[F],
    first: usize,
    vocabulary: usize,
    scratch: &mut Shared<[f32]>,
    #[comptime] sharing: Sharing,
) -> Moments {
    let mut top = f32::new(LEAST);
    let mut mass = f32::new(0.0);
    let mut plain = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < vocabulary {
        let x = f32::cast_from(logits[first + i]);
        plain += x;
        if x > top {
            mass = mass * (top - x).exp() + 1.0;
            top = x;
        } else {
            // A NaN also reaches this line, and is kept.
            mass += (x - top).exp();
        }
        i += comptime!(sharing.units);
    }
    let row_top = largest(top, scratch, sharing);
    let row_mass = sum(mass * (top - row_top).exp(), scratch, sharing);
    let row_sum = sum(plain, scratch, sharing);
    Moments { largest: row_top, mass: row_mass, sum: row_sum }
}

/// The smoothed and the plain loss, `[rows, 2]`.
#[cube(launch_unchecked)]
fn loss_kernel<F: Float>(
    logits: &[F],
    classes: &[u32],
    losses: &mut [f32],
    rows: usize,
    vocabulary: usize,
    slope: f32,
    other_mass: f32,
    constant: f32,
    #[comptime] sharing: Sharing,
    #[define(F)] _type: ElemType,
) {
    let row = CUBE_POS;
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    if row < rows {
        let first = row * vocabulary;
        let m = moments::<F>(logits, first, vocabulary, &mut scratch, sharing);
        if UNIT_POS == 0 {
            let lse = m.largest + m.mass.ln();
            let true_logit = f32::cast_from(logits[first + classes[row] as usize]);
            losses[2 * row] = lse - slope * true_logit - other_mass * m.sum - constant;
            losses[2 * row + 1] = lse - true_logit;
        }
    }
}

/// Sums `[rows, 2]` to `[2]`, with one cube.
#[cube(launch_unchecked)]
fn total_kernel(losses: &[f32], totals: &mut [f32], rows: usize, #[comptime] sharing: Sharing) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    let mut smooth = f32::new(0.0);
    let mut plain = f32::new(0.0);
    let mut row = UNIT_POS_X as usize;
    while row < rows {
        smooth += losses[2 * row];
        plain += losses[2 * row + 1];
        row += comptime!(sharing.units);
    }
    let smooth = sum(smooth, &mut scratch, sharing);
    let plain = sum(plain, &mut scratch, sharing);
    if UNIT_POS == 0 {
        totals[0] = smooth;
        totals[1] = plain;
    }
}

/// Gradient of the logits, given the gradients of the two totals.
#[cube(launch_unchecked)]
fn loss_backward_kernel<F: Float>(
    logits: &[F],
    classes: &[u32],
    gradient: &[f32],
    out: &mut [F],
    rows: usize,
    vocabulary: usize,
    slope: f32,
    other_mass: f32,
    #[comptime] sharing: Sharing,
    #[define(F)] _type: ElemType,
) {
    let row = CUBE_POS;
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    if row < rows {
        let first = row * vocabulary;
        let m = moments::<F>(logits, first, vocabulary, &mut scratch, sharing);
        let (smooth, plain) = (gradient[0], gradient[1]);
        let factor = (smooth + plain) / m.mass;
        let shift = smooth * other_mass;
        let class = classes[row] as usize;
        let mut i = UNIT_POS_X as usize;
        while i < vocabulary {
            let mut slant = (f32::cast_from(logits[first + i]) - m.largest).exp() * factor - shift;
            if i == class {
                slant -= smooth * slope + plain;
            }
            out[first + i] = F::cast_from(slant);
            i += comptime!(sharing.units);
        }
    }
}

impl CrossEntropyOp for CubeBackend {
    fn loss(logits: FloatTensor<Self>, targets: SmoothedTargets) -> FloatTensor<Self> {
        let [rows, vocabulary] = logits.shape().dims();
        let sharing = Sharing::long();
        let losses = room(&logits, [rows, 2], DType::F32);
        let totals = room(&logits, [2], DType::F32);
        // SAFETY: a cube beyond the rows does nothing, and classes are inside the vocabulary.
        unsafe {
            loss_kernel::launch_unchecked(
                &logits.client,
                cubes(rows, &logits),
                sharing.dim(),
                values(&logits),
                numbers(&logits, &targets.classes),
                output(&losses),
                rows,
                vocabulary,
                (targets.true_mass - targets.other_mass) as f32,
                targets.other_mass as f32,
                targets.constant as f32,
                sharing,
                element(&logits),
            );
            total_kernel::launch_unchecked(
                &logits.client,
                CubeCount::Static(1, 1, 1),
                sharing.dim(),
                values(&losses),
                output(&totals),
                rows,
                sharing,
            );
        }
        totals
    }

    fn loss_backward(
        logits: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        targets: SmoothedTargets,
    ) -> FloatTensor<Self> {
        let [rows, vocabulary] = logits.shape().dims();
        let sharing = Sharing::long();
        let out: CubeTensor = room(&logits, [rows, vocabulary], logits.dtype);
        // SAFETY: a cube beyond the rows does nothing.
        unsafe {
            loss_backward_kernel::launch_unchecked(
                &logits.client,
                cubes(rows, &logits),
                sharing.dim(),
                values(&logits),
                numbers(&logits, &targets.classes),
                values(&gradient),
                output(&out),
                rows,
                vocabulary,
                (targets.true_mass - targets.other_mass) as f32,
                targets.other_mass as f32,
                sharing,
                element(&logits),
            );
        }
        out
    }
}
