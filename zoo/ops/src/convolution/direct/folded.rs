//! Gradient of the input as one product for each image, whose rows are then added up where the
//! patches overlap.
//!
//! The direct algorithm gives an input's channels the lanes of a panel. With few channels most
//! lanes are idle, and with a kernel that is large for the image it multiplies zeros at the
//! borders. Here the lanes are all values of a patch, and nothing is multiplied by a zero; the
//! price is the addition of the patches.

use rayon::prelude::*;

use super::panels::Panels;
use crate::convolution::geometry::Shapes;
use crate::convolution::products::{self, Fp32};
use crate::fp32::avx512::COLUMNS;
use crate::fp32::{Matrix, Packed, Start, product_strip};
use crate::host::{Source, room};
use crate::simd::vectorized;

/// Number of images below which too few tasks share the work.
const IMAGES: usize = 8;
/// Values of patches that stay in the second-level cache.
const PATCHES: usize = 1 << 16;
/// Time to add a value of a patch, in multiplications of an idle or busy lane.
const ADDITION: usize = 4;

/// Whether this takes less time than the direct algorithm: by at least a fifth, in multiplications
/// of lanes.
pub fn suits(shapes: &Shapes) -> bool {
    let [images, _, across, channels] = shapes.input;
    let [_, tall, wide, _] = shapes.output;
    let [out, _, high, broad] = shapes.weight;
    let [rows, columns] = shapes.reads();
    if shapes.geometry.groups > 1 || images < IMAGES || !columns.adjacent() {
        return false;
    }
    let lanes = Panels::of(channels).lanes();
    let direct = rows.count * high * (across * broad).div_ceil(columns.step) * out * lanes;
    let values = shapes.taps() * channels;
    let folded = tall * wide * (out * values.next_multiple_of(COLUMNS) + ADDITION * values);
    folded * 5 < direct * 4
}

/// Gradient of the input, `[input positions, channels]`, for a geometry that [`suits`].
pub fn input_gradient(shapes: &Shapes, gradient: &Source, weight: &[f32]) -> Vec<f32> {
    let [_, height, across, channels] = shapes.input;
    let [_, tall, wide, out] = shapes.output;
    let values = shapes.taps() * channels;
    let [rows, columns] = shapes.reads();
    let weight = products::taps_first::<f32, Fp32>(shapes, weight);
    let weight = Packed::columns(&Matrix::columns(&weight, out, values, values));
    let gradient = products::image::<f32, Fp32>(gradient, shapes.output, &[]);
    let mut found = room(shapes.input.iter().product());
    // Rows of outputs whose patches are multiplied at once.
    let at_once = (PATCHES / (wide * values).max(1)).clamp(1, tall);
    let row = Row {
        wide: across,
        channels,
        step: columns.step,
        before: columns.taps[0].1,
        taps: columns.taps.len(),
        patch: values,
    };
    let rooms = || room::<f32>(at_once * wide * values);
    found.par_chunks_mut((height * across * channels).max(1)).enumerate().for_each_init(
        rooms,
        |patches, (image, to)| {
            to.fill(0.0);
            let gradient = &gradient.values()[image * tall * wide * out..][..tall * wide * out];
            for first in (0..tall).step_by(at_once) {
                let some = at_once.min(tall - first);
                let positions = some * wide;
                let gradient = &gradient[first * wide * out..][..positions * out];
                let patches = &mut patches[..positions * values];
                let gradient = Packed::rows(&Matrix::rows(gradient, positions, out, out));
                product_strip(patches, &gradient, &weight, 0..values, Start::Zero);
                for (y, patches) in patches.chunks_exact(wide * values).enumerate() {
                    let y = ((first + y) * rows.step) as isize;
                    for (tap, offset) in &rows.taps {
                        if (0..height as isize).contains(&(y + offset)) {
                            let line = (y + offset) as usize * across * channels;
                            let to = &mut to[line..][..across * channels];
                            add_row(to, &patches[tap * row.taps * channels..], row);
                        }
                    }
                }
            }
        },
    );
    found
}

/// How the patches of a row of outputs lie over a row of inputs.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Number of inputs.
    wide: usize,
    channels: usize,
    /// Inputs from one output's patch to the next.
    step: usize,
    /// Offset from an output's place to its first tap.
    before: isize,
    /// Number of taps, at adjacent inputs.
    taps: usize,
    /// Values of a patch.
    patch: usize,
}

vectorized! {
    /// Adds one row of taps of every patch to the inputs that it covers.
    fn add_row(to: &mut [f32], patches: &[f32], row: Row) {
        let _ = FMA;
        let Row { wide, channels, step, before, taps, patch } = row;
        for (x, patch) in patches.chunks(patch).enumerate() {
            let place = (x * step) as isize + before;
            let first = (-place).max(0) as usize;
            let end = ((wide as isize - place).max(0) as usize).min(taps);
            if first >= end {
                continue;
            }
            let at = (place + first as isize) as usize * channels;
            let from = &patch[first * channels..end * channels];
            for (to, from) in to[at..][..from.len()].iter_mut().zip(from) {
                *to += from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::geometry::{Axis, Geometry};

    #[test]
    fn it_is_for_few_channels_in_lanes_and_kernels_that_are_large_for_the_image() {
        let suits = |input, weight, padding| {
            let axis = Axis::default().padded(padding, padding);
            suits(&Shapes::new(input, weight, Geometry { axes: [axis; 2], groups: 1 }))
        };
        // LeNet's second convolution, with 6 and with 20 channels.
        assert!(suits([256, 14, 14, 6], [16, 6, 5, 5], 0));
        assert!(suits([64, 12, 12, 20], [50, 20, 5, 5], 0));
        // Lanes that are full, and a kernel that is small.
        assert!(!suits([128, 26, 26, 32], [64, 32, 3, 3], 0));
        assert!(!suits([64, 56, 56, 64], [64, 64, 3, 3], 1));
        // Too few images to share.
        assert!(!suits([2, 14, 14, 6], [16, 6, 5, 5], 0));
    }
}
