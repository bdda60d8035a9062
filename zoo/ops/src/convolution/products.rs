//! A convolution as three products of gathered matrices, for every group of channels.
//!
//! With patches X `[positions, taps x channels]` of the input, gradients dY `[positions, out]` and
//! weights W `[out, taps x channels]`: Y = X Wᵀ and dW = dYᵀ X. The input's gradient is itself a
//! convolution of dY, by the taps in reverse. With a stride it splits into one convolution for
//! every position modulo the stride.

use std::borrow::Cow;

#[cfg(target_arch = "x86_64")]
use burn::tensor::bf16 as Bf16;
use rayon::prelude::*;

use super::geometry::{Shapes, Taps};
use super::patches::{Gathered, Image, Side};
use crate::fp32::{self, Matrix, Source as _, Start};
use crate::halves::{self, Stored};
#[cfg(target_arch = "x86_64")]
use crate::halves::{Instruction, Order};
use crate::host::{Source, room};
use crate::rounding::HalfType;

/// Multiplies two sides, with results of type `T`.
pub trait Multiply<T>: Copy + Sync {
    /// Type in which patches and weights are stored.
    type Operand: bytemuck::Pod + Send + Sync;

    /// Reads values from index `first` on.
    fn read(values: &Source, first: usize, to: &mut [Self::Operand]);

    /// All values, if they have the operand's type.
    fn whole<'a>(values: &'a Source) -> Option<&'a [Self::Operand]>;

    /// out = a b + bias in every row. Patches are the rows of a, or the columns of b.
    fn multiply(self, out: &mut [T], a: &Side<Self::Operand>, b: &Side<Self::Operand>, bias: Option<&[f32]>);
}

/// FP32 vector instructions.
#[derive(Debug, Clone, Copy)]
pub struct Fp32;

impl Multiply<f32> for Fp32 {
    type Operand = f32;

    fn read(values: &Source, first: usize, to: &mut [f32]) {
        values.read(first, to);
    }

    fn whole<'a>(values: &'a Source) -> Option<&'a [f32]> {
        match values {
            Source::Wide(values) => Some(values),
            _ => None,
        }
    }

    fn multiply(self, out: &mut [f32], a: &Side<f32>, b: &Side<f32>, bias: Option<&[f32]>) {
        let start = bias.map_or(Start::Zero, Start::Bias);
        match a {
            Side::Rows(_) => fp32::product_by_rows(out, a, b, start),
            Side::Columns(_) => fp32::product(out, a, b, start),
        }
    }
}

/// Rounded operands, f32 sums.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub struct Rounded(pub Instruction);

#[cfg(target_arch = "x86_64")]
impl<T: Stored<Bf16>> Multiply<T> for Rounded {
    type Operand = Bf16;

    fn read(values: &Source, first: usize, to: &mut [Bf16]) {
        match values {
            Source::Wide(values) => Bf16::narrow(to, &values[first..][..to.len()]),
            Source::Bf16(values) => to.copy_from_slice(&values[first..][..to.len()]),
            Source::Fp16(_) => unreachable!("products in bf16 take FP32 and bf16"),
        }
    }

    fn whole<'a>(values: &'a Source) -> Option<&'a [Bf16]> {
        match values {
            Source::Bf16(values) => Some(values),
            _ => None,
        }
    }

    fn multiply(self, out: &mut [T], a: &Side<Bf16>, b: &Side<Bf16>, bias: Option<&[f32]>) {
        match a {
            Side::Rows(_) => halves::product_by_rows(self.0, out, a, b, bias, Order::RowMajor),
            // Patches are B and are processed in strips; the gradient is packed once.
            Side::Columns(_) => halves::product_by_rows(self.0, out, b, a, bias, Order::ColumnMajor),
        }
    }
}

/// Reorders weights to `[out, taps, channels]`, because patches have their channels last.
pub fn taps_first<T, M: Multiply<T>>(shapes: &Shapes, weight: &[f32]) -> Vec<M::Operand> {
    let (taps, channels) = (shapes.taps(), shapes.weight[1]);
    let mut out = room::<M::Operand>(weight.len());
    let one = (taps * channels).max(1);
    out.par_chunks_mut(one).zip(weight.par_chunks(one)).for_each_init(
        || room::<f32>(one),
        |turned, (to, from)| {
            Matrix::rows(from, channels, taps, taps).pack(turned, channels, 0, 0..taps);
            M::read(&Source::Wide(Cow::Borrowed(turned)), 0, to);
        },
    );
    out
}

/// The images that the products read.
pub fn image<'a, T, M: Multiply<T>>(
    values: &'a Source,
    shape: [usize; 4],
    reads: &[[Taps; 2]],
) -> Image<'a, M::Operand> {
    Image::new(shape, reads, M::whole(values), |first, to| M::read(values, first, to))
}

/// Output `[positions, out]`.
pub fn forward<T: bytemuck::Pod + Send + Sync, M: Multiply<T>>(
    with: M,
    shapes: &Shapes,
    x: &Image<M::Operand>,
    weight: &[M::Operand],
    bias: Option<&[f32]>,
) -> Vec<T> {
    let [out, channels, ..] = shapes.weight;
    let (groups, depth) = (shapes.geometry.groups, shapes.taps() * channels);
    let of_group = out / groups;
    let places = x.patches(&shapes.reads());
    let (runs, run) = places.runs(channels, groups == 1);
    let starts: Vec<usize> = (0..of_group).map(|o| o * depth).collect();
    by_groups(groups, shapes.positions(), of_group, |group, to| {
        let patches = Gathered::new(&x.values()[group * channels..], &places.starts, &runs, run);
        let weight = Gathered::new(&weight[group * of_group * depth..], &starts, &[0], depth);
        let bias = bias.map(|bias| &bias[group * of_group..][..of_group]);
        with.multiply(to, &Side::Rows(patches), &Side::Rows(weight), bias);
    })
}

/// Gradient of the input, `[input positions, channels]`.
pub fn input_gradient<T: bytemuck::Pod + Send + Sync, M: Multiply<T>>(
    with: M,
    shapes: &Shapes,
    gradient: &Image<M::Operand>,
    weight: &[M::Operand],
) -> Vec<T> {
    let [out, channels, _, wide] = shapes.weight;
    let (groups, taps) = (shapes.geometry.groups, shapes.taps());
    let of_group = out / groups;
    by_phases(shapes, |reads| {
        let places = gradient.patches(reads);
        let (runs, run) = places.runs(of_group, groups == 1);
        let [rows, columns] = reads;
        let kernel = rows.taps.iter().flat_map(|(i, _)| columns.taps.iter().map(move |(j, _)| i * wide + j));
        let starts: Vec<usize> =
            kernel.flat_map(|tap| (0..of_group).map(move |o| (o * taps + tap) * channels)).collect();
        by_groups(groups, places.starts.len(), channels, |group, to| {
            let patches = Gathered::new(&gradient.values()[group * of_group..], &places.starts, &runs, run);
            let weight =
                Gathered::new(&weight[group * of_group * taps * channels..], &starts, &[0], channels);
            with.multiply(to, &Side::Rows(patches), &Side::Columns(weight), None);
        })
    })
}

/// Gradient of the weight, with its shape: `[out, channels of a group, kernel]`.
pub fn weight_gradient<M: Multiply<f32>>(
    with: M,
    shapes: &Shapes,
    x: &Image<M::Operand>,
    gradient: &Image<M::Operand>,
) -> Vec<f32> {
    let [out, channels, ..] = shapes.weight;
    let (groups, taps) = (shapes.geometry.groups, shapes.taps());
    let (of_group, depth) = (out / groups, taps * channels);
    let places = x.patches(&shapes.reads());
    let (runs, run) = places.runs(channels, groups == 1);
    let itself = [1, 2].map(|axis| Taps { count: shapes.output[axis], step: 1, taps: vec![(0, 0)] });
    let rows = gradient.patches(&itself);
    let mut found = room::<f32>(out * depth);
    for (group, to) in found.chunks_mut((of_group * depth).max(1)).enumerate() {
        let patches = Gathered::new(&x.values()[group * channels..], &places.starts, &runs, run);
        let gradient =
            Gathered::new(&gradient.values()[group * of_group..], &rows.starts, &rows.offsets, of_group);
        with.multiply(to, &Side::Columns(gradient), &Side::Columns(patches), None);
    }
    taps_last(shapes, found)
}

/// Reorders weights from `[out, taps, channels]` to PyTorch's layout.
pub fn taps_last(shapes: &Shapes, weight: Vec<f32>) -> Vec<f32> {
    let (taps, channels) = (shapes.taps(), shapes.weight[1]);
    if taps == 1 || channels == 1 {
        return weight;
    }
    let mut out = room::<f32>(weight.len());
    let one = taps * channels;
    out.par_chunks_mut(one).zip(weight.par_chunks(one)).for_each(|(to, from)| {
        Matrix::rows(from, taps, channels, channels).pack(to, taps, 0, 0..channels);
    });
    out
}

/// Rows with `width` columns for each group, side by side.
fn by_groups<T: bytemuck::Pod + Send + Sync>(
    groups: usize,
    rows: usize,
    width: usize,
    product: impl Fn(usize, &mut [T]),
) -> Vec<T> {
    let mut out = room::<T>(rows * groups * width);
    if groups == 1 {
        product(0, &mut out);
        return out;
    }
    let mut part = room::<T>(rows * width);
    for group in 0..groups {
        product(group, &mut part);
        out.par_chunks_mut((groups * width).max(1))
            .zip(part.par_chunks(width.max(1)))
            .with_min_len(256)
            .for_each(|(to, from)| to[group * width..][..width].copy_from_slice(from));
    }
    out
}

/// Combines the input's gradient from those for every position modulo the stride.
pub fn by_phases<T: bytemuck::Pod + Send + Sync>(
    shapes: &Shapes,
    of_phase: impl Fn(&[Taps; 2]) -> Vec<T>,
) -> Vec<T> {
    let [images, height, width, channels] = shapes.input;
    let [tall, wide] = shapes.geometry.axes.map(|axis| axis.stride);
    let mut parts: Vec<([Taps; 2], Vec<T>)> = shapes
        .phases()
        .map(|phase| {
            let reads = shapes.reads_back(phase);
            // No output reads these inputs.
            let unseen = reads.iter().any(|taps| taps.taps.is_empty() || taps.count == 0);
            let part = if unseen || shapes.positions() == 0 { Vec::new() } else { of_phase(&reads) };
            (reads, part)
        })
        .collect();
    if parts.len() == 1 && !parts[0].1.is_empty() {
        return parts.swap_remove(0).1;
    }
    let mut out = room::<T>(images * height * width * channels);
    out.par_chunks_mut((width * channels).max(1)).enumerate().for_each(|(row, to)| {
        let (image, y) = (row / height, row % height);
        for (x, to) in to.chunks_mut(channels).enumerate() {
            let ([rows, columns], part) = &parts[y % tall * wide + x % wide];
            let at = ((image * rows.count + y / tall) * columns.count + x / wide) * channels;
            match part.is_empty() {
                true => to.fill(T::zeroed()),
                false => to.copy_from_slice(&part[at..][..channels]),
            }
        }
    });
    out
}
