//! Dropout, ReLU with dropout, and the residual sum with dropout on GPUs, with one pass over the
//! values each. The kernel draws the mask.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::dropout::{DropoutOp, Mask};
use super::super::relu::ReluOp;
use super::super::residual::ResidualOp;
use super::{UNITS, cubes, element, output, room, values, width};

/// [`Mask`] on a device.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Drawn {
    low: u32,
    high: u32,
    threshold: u32,
    scale: f32,
}

/// The argument of a kernel; without a mask, one that keeps all values unchanged.
pub fn drawn(mask: Option<Mask>) -> DrawnLaunch {
    let (low, high) = mask.map_or((0, 0), |mask| mask.key.halves());
    let (threshold, scale) = mask.map_or((0, 1.0), |mask| (mask.threshold, mask.scale));
    DrawnLaunch::new(low, high, threshold, scale)
}

/// `mix32` of [`crate::random`].
#[cube]
fn mix<N: Size>(x: Vector<u32, N>) -> Vector<u32, N> {
    let x = (x ^ (x >> Vector::new(16u32))) * Vector::new(0x7feb_352du32);
    let x = (x ^ (x >> Vector::new(15u32))) * Vector::new(0x846c_a68bu32);
    x ^ (x >> Vector::new(16u32))
}

/// The factors of the elements from `first` on: 0 or the mask's scale.
#[cube]
pub fn factors<N: Size>(mask: &Drawn, first: u32) -> Vector<f32, N> {
    let mut elements = Vector::<u32, N>::new(first);
    #[unroll]
    for i in 0..N::value() {
        elements.insert(i, first + comptime!(i as u32));
    }
    let bits = mix::<N>(mix::<N>(elements ^ Vector::new(mask.low)) + Vector::new(mask.high));
    let kept = bits.greater_equal(&Vector::new(mask.threshold));
    select_many(kept, Vector::new(mask.scale), Vector::new(0.0f32))
}

/// x, or max(x, 0) if `rectify`, times the mask; `count` vectors. NaN is kept, because overflow
/// detection relies on it.
#[cube(launch_unchecked)]
fn masked_kernel<I: Float, O: Float, N: Size>(
    x: &[Vector<I, N>],
    out: &mut [Vector<O, N>],
    count: usize,
    mask: Drawn,
    #[comptime] rectify: bool,
    #[define(I, O)] _types: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let mut x = Vector::<f32, N>::cast_from(x[ABSOLUTE_POS]);
    if rectify {
        let zero = Vector::new(0.0f32);
        x = select_many(x.less_equal(&zero), zero, x);
    }
    let first = ABSOLUTE_POS as u32 * N::value() as u32;
    out[ABSOLUTE_POS] = Vector::cast_from(x * factors::<N>(&mask, first));
}

/// With `sum`, x + y times the mask, with the product rounded to y's type. Otherwise y times the
/// mask where x > 0 or x is NaN, else 0.
#[cube(launch_unchecked)]
fn joined_kernel<I: Float, Y: Float, N: Size>(
    x: &[Vector<I, N>],
    y: &[Vector<Y, N>],
    out: &mut [Vector<I, N>],
    count: usize,
    mask: Drawn,
    #[comptime] sum: bool,
    #[define(I, Y)] _types: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let first = ABSOLUTE_POS as u32 * N::value() as u32;
    let product = Vector::<f32, N>::cast_from(y[ABSOLUTE_POS]) * factors::<N>(&mask, first);
    let x = Vector::<f32, N>::cast_from(x[ABSOLUTE_POS]);
    if sum {
        let rounded = Vector::<Y, N>::cast_from(product);
        out[ABSOLUTE_POS] = Vector::cast_from(x + Vector::cast_from(rounded));
    } else {
        let zero = Vector::new(0.0f32);
        out[ABSOLUTE_POS] = Vector::cast_from(select_many(x.less_equal(&zero), zero, product));
    }
}

/// The number of vectors of `width` values, and a grid with one unit for each.
fn grid(out: &CubeTensor, width: VectorSize) -> (usize, CubeCount, CubeDim) {
    let vectors = out.shape().num_elements() / width;
    (vectors, cubes(vectors.div_ceil(UNITS), out), CubeDim::new_1d(UNITS as u32))
}

fn masked(x: &CubeTensor, mask: Option<Mask>, rectify: bool, dtype: DType) -> CubeTensor {
    let out = room(x, x.shape(), dtype);
    let width = width(&[x, &out]);
    let (count, cubes, dim) = grid(&out, width);
    let types = [element(x), element(&out)];
    // SAFETY: a unit beyond the values ends before it reads.
    unsafe {
        masked_kernel::launch_unchecked(
            &out.client,
            cubes,
            dim,
            width,
            values(x),
            output(&out),
            count,
            drawn(mask),
            rectify,
            types,
        );
    }
    out
}

fn joined(x: &CubeTensor, y: &CubeTensor, mask: Option<Mask>, sum: bool) -> CubeTensor {
    assert_eq!(x.shape(), y.shape(), "tensors of one shape");
    let out = room(x, x.shape(), x.dtype);
    let width = width(&[x, y]);
    let (count, cubes, dim) = grid(&out, width);
    let types = [element(x), element(y)];
    // SAFETY: a unit beyond the values ends before it reads.
    unsafe {
        joined_kernel::launch_unchecked(
            &out.client,
            cubes,
            dim,
            width,
            values(x),
            values(y),
            output(&out),
            count,
            drawn(mask),
            sum,
            types,
        );
    }
    out
}

impl DropoutOp for CubeBackend {
    fn masked(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        masked(&x, Some(mask), false, x.dtype)
    }
}

impl ReluOp for CubeBackend {
    fn rectified(x: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        masked(&x, mask, true, x.dtype)
    }

    fn rectified_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        mask: Option<Mask>,
    ) -> FloatTensor<Self> {
        joined(&x, &gradient, mask, false)
    }
}

impl ResidualOp for CubeBackend {
    fn joined(x: FloatTensor<Self>, y: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        joined(&x, &y, mask, true)
    }

    fn joined_backward(gradient: FloatTensor<Self>, mask: Option<Mask>, dtype: DType) -> FloatTensor<Self> {
        masked(&gradient, mask, false, dtype)
    }
}
