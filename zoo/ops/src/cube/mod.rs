//! The custom operations on CUDA and wgpu: kernels in CubeCL, with one launch where Burn's tensor
//! operations take several.
//!
//! Sums are FP32 in an order that the shape alone determines, without atomics: every run gives
//! bitwise equal results.
//!
//! Kernels get every size as a scalar and never call `len()`. It counts the values that the
//! argument's handle spans, and with TF32 CubeCL pads the rows of tensors, so that a vector of 96
//! numbers spans 128.

mod attention;
mod batch_norm;
mod columns;
mod convolution;
mod cross_entropy;
mod dropout;
mod embedding;
mod layer_norm;
mod magnitude;
mod product;
mod recurrent;
mod rows;

use burn::backend::TensorMetadata;
use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeCount;
use cubecl::ir::ElemType;
use cubecl::prelude::{BufferArg, VectorSize};
use cubecl::server::Handle;

/// Number of units of a cube.
const UNITS: usize = 256;

/// An uninitialised row-major tensor on the device of `like`. Burn's own allocations may have padded
/// rows on CUDA.
fn room(like: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape.into(), dtype)
}

/// The values of a tensor in row-major order, as an argument that a kernel reads. A tensor with
/// another layout is copied.
///
/// The argument ends with the last value, even if Burn has padded the allocation: a kernel that
/// calls `len()` in spite of the rule above gets the number of values.
fn values(x: &CubeTensor) -> BufferArg {
    let x = into_contiguous(x.clone());
    let count = x.shape().num_elements();
    let padding = x.handle.size_in_used().saturating_sub((count * x.dtype.size()) as u64);
    // SAFETY: the handle belongs to these values; `offset_end` adds to the offset of the handle.
    unsafe { BufferArg::from_raw_parts(x.handle.clone().offset_end(padding), count) }
}

/// The output argument of a kernel: a tensor made by [`room`], never a copy of one.
fn output(x: &CubeTensor) -> BufferArg {
    assert!(
        x.is_contiguous(),
        "a kernel would write rows of {:?} beside those of {:?}",
        x.shape(),
        x.meta.strides()
    );
    x.clone().into_buffer_arg()
}

fn element(x: &CubeTensor) -> ElemType {
    dtype_to_storage_type(x.dtype)
}

/// Numbers from the host, as an argument that a kernel reads.
fn numbers(like: &CubeTensor, numbers: &[u32]) -> BufferArg {
    Numbers::new(like, numbers).argument()
}

/// Numbers from the host for several kernels.
struct Numbers {
    handle: Handle,
    count: usize,
}

impl Numbers {
    fn new(like: &CubeTensor, numbers: &[u32]) -> Self {
        let handle = like.client.create_from_slice(bytemuck::cast_slice(numbers));
        Self { handle, count: numbers.len() }
    }

    fn argument(&self) -> BufferArg {
        // SAFETY: the handle belongs to these numbers.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), self.count) }
    }
}

/// Number of values of these tensors that a unit can load at once: a power of two that divides the
/// number of values.
fn width(tensors: &[&CubeTensor]) -> VectorSize {
    let n = tensors[0].shape().num_elements();
    let most = tensors.iter().map(|x| 16 / x.dtype.size()).min().unwrap_or(1);
    let most = most.min(tensors[0].client.properties().hardware.max_vector_size);
    (0..=most.ilog2()).rev().map(|power| 1 << power).find(|width| n.is_multiple_of(*width)).unwrap_or(1)
}

/// A count of cubes, in two dimensions if it exceeds the limit of one.
fn cubes(count: usize, like: &CubeTensor) -> CubeCount {
    let most = like.client.properties().hardware.max_cube_count.0 as usize;
    let rows = count.div_ceil(most).max(1);
    CubeCount::Static(count.div_ceil(rows) as u32, rows as u32, 1)
}
