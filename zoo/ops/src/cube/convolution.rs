//! Convolutions on GPUs: patches as rows of a matrix, and their products.

use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::convolution::geometry::{Axis, Shapes};
use super::super::convolution::unfolded::{UnfoldedOp, Unfolding};
use super::super::slices::{STEP, rows_of_part};
use super::product::{multiply, multiply_into, summed, view};
use super::{UNITS, cubes, element, output, room, values};

/// Where the patches come from, along one axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Reads {
    /// Number of patches.
    count: u32,
    /// Number of positions that they are read from.
    positions: u32,
    taps: u32,
    stride: u32,
    dilation: u32,
    /// Zeros before the first position of the input.
    before: u32,
}

/// A source of patches: the input of a convolution for its outputs, or the gradient of the outputs for
/// the input (`back`).
struct Patches {
    source: CubeTensor,
    /// Channels of the source.
    channels: usize,
    /// Number of rows: one for each patch.
    rows: usize,
    /// Values of a row: taps and channels.
    columns: usize,
    along: [[u32; 6]; 2],
    back: bool,
}

impl Patches {
    fn new(source: CubeTensor, shapes: &Shapes, back: bool) -> Self {
        let (of, from) = match back {
            true => (shapes.input, shapes.output),
            false => (shapes.output, shapes.input),
        };
        let along = [0, 1].map(|i| {
            let Axis { stride, dilation, padding } = shapes.geometry.axes[i];
            [of[1 + i], from[1 + i], shapes.weight[2 + i], stride, dilation, padding[0]]
                .map(|size| u32::try_from(size).expect("an axis of fewer than 2^32 positions"))
        });
        let (rows, columns) = (of[..3].iter().product(), shapes.taps() * from[3]);
        Self { source: into_contiguous(source), channels: from[3], rows, columns, along, back }
    }

    /// The first row and the number of rows of each part.
    fn parts(&self, of: &Unfolding) -> Vec<[usize; 2]> {
        let step = rows_of_part(of.most, self.columns * self.source.dtype.size());
        (0..self.rows).step_by(step).map(|first| [first, step.min(self.rows - first)]).collect()
    }

    /// Some of the rows, `[count, columns]`.
    fn unfold(&self, [first, count]: [usize; 2]) -> CubeTensor {
        let out = room(&self.source, [count, self.columns], self.source.dtype);
        let properties = self.source.client.properties();
        let most = (16 / out.dtype.size()).min(properties.hardware.max_vector_size);
        let width = (0..=most.ilog2()).rev().map(|power| 1 << power);
        let width = width.into_iter().find(|width| self.channels.is_multiple_of(*width)).unwrap_or(1);
        let vectors = count * self.columns / width;
        let along = |i: usize| {
            let [count, positions, taps, stride, dilation, before] = self.along[i];
            ReadsLaunch::new(count, positions, taps, stride, dilation, before)
        };
        // SAFETY: a unit beyond the values does nothing, and a patch reads inside the source only.
        unsafe {
            unfold_kernel::launch_unchecked(
                &out.client,
                cubes(vectors.div_ceil(UNITS), &out),
                CubeDim::new_1d(UNITS as u32),
                width,
                values(&self.source),
                output(&out),
                vectors,
                first,
                self.channels / width,
                along(0),
                along(1),
                self.back,
                element(&out),
            );
        }
        out
    }

    /// The patches times a matrix `[columns, n]`, as rows of `out`.
    fn times(&self, matrix: &CubeTensor, n: usize, out: &CubeTensor, of: &Unfolding) {
        for part @ [first, count] in self.parts(of) {
            let rows = view(out, first * n, [count, n], [n, 1]);
            multiply(self.unfold(part), matrix.clone(), rows);
        }
    }
}

/// The position that tap `tap` of patch `patch` reads; `u32::MAX` outside.
#[cube]
fn position(along: &Reads, patch: usize, tap: usize, #[comptime] back: bool) -> u32 {
    let mut found = u32::MAX.runtime();
    let reach = tap as u32 * along.dilation;
    if back {
        let padded = patch as u32 + along.before;
        // Of no meaning below 0.
        let place = padded - reach;
        let rest = place % along.stride;
        if padded >= reach && rest == 0 {
            found = place / along.stride;
        }
    } else {
        let padded = patch as u32 * along.stride + reach;
        if padded >= along.before {
            found = padded - along.before;
        }
    }
    select(found < along.positions, found, u32::MAX)
}

/// `count` vectors of patches from row `first` on; `vectors` of them have the channels of a position.
#[cube(launch_unchecked)]
fn unfold_kernel<F: Float, N: Size>(
    x: &[Vector<F, N>],
    out: &mut [Vector<F, N>],
    count: usize,
    first: usize,
    vectors: usize,
    rows: Reads,
    columns: Reads,
    #[comptime] back: bool,
    #[define(F)] _type: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (vector, place) = (ABSOLUTE_POS % vectors, ABSOLUTE_POS / vectors);
    let (j, place) = (place % columns.taps as usize, place / columns.taps as usize);
    let (i, place) = (place % rows.taps as usize, place / rows.taps as usize + first);
    let (column, place) = (place % columns.count as usize, place / columns.count as usize);
    let (row, image) = (place % rows.count as usize, place / rows.count as usize);
    let (y, z) = (position(&rows, row, i, back), position(&columns, column, j, back));
    let mut patch = Vector::<F, N>::new(F::new(0.0));
    if y != u32::MAX && z != u32::MAX {
        let line = image * rows.positions as usize + y as usize;
        patch = x[(line * columns.positions as usize + z as usize) * vectors + vector];
    }
    out[ABSOLUTE_POS] = patch;
}

impl UnfoldedOp for CubeBackend {
    fn unfolded(x: FloatTensor<Self>, weight: FloatTensor<Self>, of: Unfolding) -> FloatTensor<Self> {
        let out = room(&x, of.shapes.output, x.dtype);
        Patches::new(x, &of.shapes, false).times(&weight, of.shapes.output[3], &out, &of);
        out
    }

    fn unfolded_input(
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        of: Unfolding,
    ) -> FloatTensor<Self> {
        let ([_, n], taps) = (of.weight(), of.shapes.taps());
        let channels = of.shapes.input[3];
        // A row of patches has the output channels of each tap.
        let weight = into_contiguous(weight);
        let weight = into_contiguous(view(&weight, 0, [taps, n, channels], [channels * n, 1, n]));
        let weight = view(&weight, 0, [taps * n, channels], [channels, 1]);
        let out = room(&gradient, of.shapes.input, gradient.dtype);
        Patches::new(gradient, &of.shapes, true).times(&weight, channels, &out, &of);
        out
    }

    fn unfolded_weight(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        of: Unfolding,
    ) -> FloatTensor<Self> {
        let [columns, n] = of.weight();
        let gradient = into_contiguous(gradient);
        let out = room(&gradient, [columns, n], gradient.dtype);
        let patches = Patches::new(x, &of.shapes, false);
        let parts = patches.parts(&of);
        let product = |part @ [first, count]: [usize; 2], out: &CubeTensor| {
            let terms = patches.unfold(part);
            let terms = view(&terms, 0, [columns, count], [1, columns]);
            multiply_into(&terms, &view(&gradient, first * n, [count, n], [n, 1]), out);
        };
        if let [part] = parts[..] {
            product(part, &out);
            return out;
        }
        // FP32 sums of the parts, each where every device can read.
        let pitch = (columns * n).next_multiple_of(STEP);
        let sums = room(&gradient, [parts.len(), pitch], DType::F32);
        for (i, part) in parts.iter().enumerate() {
            product(*part, &view(&sums, i * pitch, [columns, n], [n, 1]));
        }
        summed(&sums, parts.len(), pitch, None, &out);
        out
    }
}
