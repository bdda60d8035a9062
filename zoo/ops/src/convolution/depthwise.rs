//! Depthwise convolution, which treats every channel separately. Sums are in registers, with
//! channels in the lanes.

use rayon::prelude::*;

use super::geometry::Shapes;
use super::patches::Image;
use super::products::{by_phases, image, taps_last};
use crate::host::{Source, room};
use crate::rounding::Half;
use crate::simd::{self, fma, vectorized};

/// Number of positions of a task. For sums over positions it is also the size of one term, so that
/// the order does not depend on the threads.
const POSITIONS: usize = 128;
/// Number of channels whose sums are in registers at once.
const CHANNELS: usize = 32;
/// Number of positions, or taps, that share loaded values.
const SHARED: usize = 4;

/// Reorders weights `[channels, taps]` to `[taps, channels]`, rounded if the operands are.
fn taps_first(shapes: &Shapes, weight: &[f32], rounded: Option<Half>) -> Vec<f32> {
    let (taps, channels) = (shapes.taps(), shapes.input[3]);
    let mut out: Vec<f32> =
        (0..taps * channels).map(|i| weight[i % channels * taps + i / channels]).collect();
    if let Some(half) = rounded {
        half.round(&mut out);
    }
    out
}

/// Operands in FP32, rounded through a half type if given.
fn operands<'a>(values: &'a Source, shapes: &Shapes, forward: bool, rounded: Option<Half>) -> Image<'a, f32> {
    let reads: Vec<_> = match forward {
        true => vec![shapes.reads()],
        false => shapes.phases().map(|phase| shapes.reads_back(phase)).collect(),
    };
    let shape = if forward { shapes.input } else { shapes.output };
    match rounded {
        None => image::<f32, super::products::Fp32>(values, shape, &reads),
        Some(half) => Image::new(shape, &reads, None, |first, to| {
            values.read(first, to);
            half.round(to);
        }),
    }
}

/// Output `[positions, channels]`.
pub fn forward(
    shapes: &Shapes,
    x: &Source,
    weight: &[f32],
    bias: Option<&[f32]>,
    rounded: Option<Half>,
) -> Vec<f32> {
    let x = operands(x, shapes, true, rounded);
    let weight = taps_first(shapes, weight, rounded);
    let bias: Vec<f32> = bias.map_or(Vec::new(), |bias| {
        let mut bias = bias.to_vec();
        if let Some(half) = rounded {
            half.round(&mut bias);
        }
        bias
    });
    let places = x.patches(&shapes.reads());
    correlated(shapes.input[3], x.values(), &places.starts, &places.offsets, &weight, &bias)
}

/// Gradient of the input, `[input positions, channels]`.
pub fn input_gradient(shapes: &Shapes, gradient: &Source, weight: &[f32], rounded: Option<Half>) -> Vec<f32> {
    let channels = shapes.input[3];
    let gradient = operands(gradient, shapes, false, rounded);
    let weight = taps_first(shapes, weight, rounded);
    by_phases(shapes, |reads| {
        let places = gradient.patches(reads);
        let [rows, columns] = reads;
        let used: Vec<f32> = rows
            .taps
            .iter()
            .flat_map(|(i, _)| columns.taps.iter().map(move |(j, _)| i * shapes.weight[3] + j))
            .flat_map(|tap| weight[tap * channels..][..channels].iter().copied())
            .collect();
        correlated(channels, gradient.values(), &places.starts, &places.offsets, &used, &[])
    })
}

/// Gradient of the weight, with its shape: `[channels, 1, kernel]`.
pub fn weight_gradient(shapes: &Shapes, x: &Source, gradient: &Source, rounded: Option<Half>) -> Vec<f32> {
    let (taps, channels) = (shapes.taps(), shapes.input[3]);
    let x = operands(x, shapes, true, rounded);
    let places = x.patches(&shapes.reads());
    let parts: Vec<Vec<f32>> = places
        .starts
        .par_chunks(POSITIONS)
        .enumerate()
        .map(|(part, starts)| {
            let mut dy = room(starts.len() * channels);
            gradient.read(part * POSITIONS * channels, &mut dy);
            if let Some(half) = rounded {
                half.round(&mut dy);
            }
            let mut sums = room(taps * channels);
            sum_products(&mut sums, &dy, x.values(), starts, &places.offsets, channels);
            sums
        })
        .collect();
    let mut sums = vec![0f32; taps * channels];
    parts.iter().for_each(|part| simd::add(&mut sums, part));
    // Treats `[taps, channels]` as the weight of one output channel.
    let one = Shapes { weight: [1, channels, shapes.weight[2], shapes.weight[3]], ..*shapes };
    taps_last(&one, sums)
}

fn correlated(
    channels: usize,
    values: &[f32],
    starts: &[usize],
    offsets: &[usize],
    weight: &[f32],
    bias: &[f32],
) -> Vec<f32> {
    let mut out = room(starts.len() * channels);
    out.par_chunks_mut(POSITIONS * channels).zip(starts.par_chunks(POSITIONS)).for_each(|(out, starts)| {
        correlate(out, values, starts, offsets, weight, bias, channels);
    });
    out
}

/// sums += a * b for `N` values, fused or not.
#[inline(always)]
fn accumulate<const FMA: bool, const N: usize>(sums: &mut [f32; N], a: &[f32], b: &[f32]) {
    let (a, b) = (a.first_chunk::<N>().expect("N values"), b.first_chunk::<N>().expect("N values"));
    for i in 0..N {
        sums[i] = fma::<FMA>(a[i], b[i], sums[i]);
    }
}

vectorized! {
    /// out `[positions, channels]` = the sum over the taps, plus bias.
    fn correlate(out: &mut [f32], values: &[f32], starts: &[usize], offsets: &[usize], weight: &[f32], bias: &[f32], channels: usize) {
        let wide = channels / CHANNELS * CHANNELS;
        for (out, starts) in out.chunks_mut(SHARED * channels).zip(starts.chunks(SHARED)) {
            for c in (0..wide).step_by(CHANNELS) {
                let mut sums = [[0f32; CHANNELS]; SHARED];
                if let [s0, s1, s2, s3] = *starts {
                    for (offset, w) in offsets.iter().zip(weight.chunks_exact(channels)) {
                        let w = &w[c..];
                        accumulate::<FMA, CHANNELS>(&mut sums[0], w, &values[s0 + offset + c..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[1], w, &values[s1 + offset + c..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[2], w, &values[s2 + offset + c..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[3], w, &values[s3 + offset + c..]);
                    }
                } else {
                    for (sums, start) in sums.iter_mut().zip(starts) {
                        for (offset, w) in offsets.iter().zip(weight.chunks_exact(channels)) {
                            accumulate::<FMA, CHANNELS>(sums, &w[c..], &values[start + offset + c..]);
                        }
                    }
                }
                for (out, sums) in out.chunks_exact_mut(channels).zip(&sums) {
                    out[c..c + CHANNELS].copy_from_slice(sums);
                }
            }
            for (out, start) in out.chunks_exact_mut(channels).zip(starts) {
                for (c, out) in out.iter_mut().enumerate().skip(wide) {
                    *out = 0.0;
                    for (t, offset) in offsets.iter().enumerate() {
                        *out = fma::<FMA>(weight[t * channels + c], values[start + offset + c], *out);
                    }
                }
                out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        }
    }

    /// sums `[taps, channels]` of dy `[positions, channels]` times the values that the taps read.
    fn sum_products(sums: &mut [f32], dy: &[f32], values: &[f32], starts: &[usize], offsets: &[usize], channels: usize) {
        let wide = channels / CHANNELS * CHANNELS;
        for (to, offsets) in sums.chunks_mut(SHARED * channels).zip(offsets.chunks(SHARED)) {
            for c in (0..wide).step_by(CHANNELS) {
                let mut sums = [[0f32; CHANNELS]; SHARED];
                if let [o0, o1, o2, o3] = *offsets {
                    for (start, dy) in starts.iter().zip(dy.chunks_exact(channels)) {
                        let (dy, from) = (&dy[c..], start + c);
                        accumulate::<FMA, CHANNELS>(&mut sums[0], dy, &values[from + o0..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[1], dy, &values[from + o1..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[2], dy, &values[from + o2..]);
                        accumulate::<FMA, CHANNELS>(&mut sums[3], dy, &values[from + o3..]);
                    }
                } else {
                    for (sums, offset) in sums.iter_mut().zip(offsets) {
                        for (start, dy) in starts.iter().zip(dy.chunks_exact(channels)) {
                            accumulate::<FMA, CHANNELS>(sums, &dy[c..], &values[start + offset + c..]);
                        }
                    }
                }
                for (to, sums) in to.chunks_exact_mut(channels).zip(&sums) {
                    to[c..c + CHANNELS].copy_from_slice(sums);
                }
            }
            for (to, offset) in to.chunks_exact_mut(channels).zip(offsets) {
                for (c, to) in to.iter_mut().enumerate().skip(wide) {
                    *to = 0.0;
                    for (start, dy) in starts.iter().zip(dy.chunks_exact(channels)) {
                        *to = fma::<FMA>(dy[c], values[start + offset + c], *to);
                    }
                }
            }
        }
    }
}
