//! Matrix products on GPUs: Burn's kernels, tuned in FP32 and chosen in advance in half precision.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;
use cubecl::zspace::metadata::Metadata;

use super::super::product::{ProductOp, shape_of};
use super::super::slices::Slices;
use super::{UNITS, cubes, element, output, room, values};

/// The product a b of equal leading dimensions, row-major, so that a kernel can overwrite it.
pub(super) fn product(a: &CubeTensor, b: &CubeTensor) -> CubeTensor {
    let (left, right) = (a.shape(), b.shape());
    let out = room(a, shape_of(&left, &right), a.dtype);
    multiply_into(a, b, &out);
    out
}

/// Writes the product a b into a row-major tensor of its type or FP32.
pub(super) fn multiply_into(a: &CubeTensor, b: &CubeTensor, out: &CubeTensor) {
    let (left, right) = (a.shape(), b.shape());
    let is_matrix = left.num_dims() == 2;
    match is_matrix.then(|| Slices::of(left[0], left[1], right[1])).flatten() {
        Some(slices) => add_slices(a, b, out, slices),
        None => multiply(a.clone(), b.clone(), out.clone()),
    }
}

/// [`multiply_into`] without slices.
pub(super) fn multiply(a: CubeTensor, b: CubeTensor, out: CubeTensor) {
    let strategy = match a.dtype {
        DType::F32 => MatmulStrategy::Autotune,
        _ => MatmulStrategy::Cube,
    };
    let dtype = out.dtype;
    matmul(a, b, Some(out), strategy, dtype).expect("a product of matching shapes");
}

/// The sum of the products of slices, which are FP32.
fn add_slices(a: &CubeTensor, b: &CubeTensor, out: &CubeTensor, slices: Slices) {
    let Slices { count, size, rest } = slices;
    let [m, n] = out.shape().dims();
    let parts = room(a, [count, m, n], DType::F32);
    let ([rows, terms], [terms_of_b, columns]) = (strides(a), strides(b));
    multiply(
        view(a, 0, [count, m, size], [size * terms, rows, terms]),
        view(b, 0, [count, size, n], [size * terms_of_b, terms_of_b, columns]),
        parts.clone(),
    );
    let last = (rest > 0).then(|| {
        let (first, last) = (count * size, room(a, [1, m, n], DType::F32));
        multiply(
            view(a, first * terms, [1, m, rest], [rest * terms, rows, terms]),
            view(b, first * terms_of_b, [1, rest, n], [rest * terms_of_b, terms_of_b, columns]),
            last.clone(),
        );
        last
    });
    summed(&parts, count, m * n, last.as_ref(), out);
}

/// Adds `number` FP32 parts, which begin `pitch` values after each other, and the last one.
pub(super) fn summed(
    parts: &CubeTensor,
    number: usize,
    pitch: usize,
    last: Option<&CubeTensor>,
    out: &CubeTensor,
) {
    let count = out.shape().num_elements();
    // SAFETY: a unit beyond the values does nothing.
    unsafe {
        summed_kernel::launch_unchecked(
            &out.client,
            cubes(count.div_ceil(UNITS), out),
            CubeDim::new_1d(UNITS as u32),
            values(parts),
            values(last.unwrap_or(parts)),
            output(out),
            count,
            number,
            pitch,
            last.is_some(),
            element(out),
        );
    }
}

fn strides(x: &CubeTensor) -> [usize; 2] {
    let strides = x.meta.strides();
    [strides[0], strides[1]]
}

/// The values of `x` from number `first` on, by other strides.
pub(super) fn view<const D: usize>(
    x: &CubeTensor,
    first: usize,
    shape: [usize; D],
    strides: [usize; D],
) -> CubeTensor {
    let handle = x.handle.clone().offset_start((first * x.dtype.size()) as u64);
    let metadata = Metadata::new(Shape::from(shape), strides);
    CubeTensor::new(x.client.clone(), handle, metadata, x.device.clone(), x.dtype)
}

/// The sums of `count` values over `number` parts, in their order, and the last one if there is one.
/// A part begins `pitch` values after the one before.
#[cube(launch_unchecked)]
fn summed_kernel<F: Float>(
    parts: &[f32],
    last: &[f32],
    out: &mut [F],
    count: usize,
    number: usize,
    pitch: usize,
    #[comptime] has_last: bool,
    #[define(F)] _type: ElemType,
) {
    if ABSOLUTE_POS < count {
        let mut sum = parts[ABSOLUTE_POS];
        let mut part = 1usize;
        while part < number {
            sum += parts[part * pitch + ABSOLUTE_POS];
            part += 1;
        }
        if has_last {
            sum += last[ABSOLUTE_POS];
        }
        out[ABSOLUTE_POS] = F::cast_from(sum);
    }
}

impl ProductOp for CubeBackend {
    fn multiplied(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        product(&a, &b)
    }
}
