//! Flex tensors as slices, whatever their float type and layout.

use std::borrow::Cow;

use burn::tensor::{DType, Shape, TensorData, bf16, f16};
use burn_flex::FlexTensor;

/// The values in FP32, row-major; borrowed where they are that already.
pub fn values(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    match tensor.dtype() {
        DType::F32 => match tensor.as_slice::<f32>() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(tensor.to_contiguous().as_slice::<f32>().expect("contiguous f32").to_vec()),
        },
        DType::BF16 => Cow::Owned(widen::<bf16>(tensor, bf16::to_f32)),
        DType::F16 => Cow::Owned(widen::<f16>(tensor, f16::to_f32)),
        other => panic!("own operations take f32, f16 and bf16, not {other:?}"),
    }
}

fn widen<E: burn::tensor::Element + bytemuck::Pod>(tensor: &FlexTensor, to_f32: fn(E) -> f32) -> Vec<f32> {
    let contiguous;
    let slice = match tensor.as_slice::<E>() {
        Some(slice) => slice,
        None => {
            contiguous = tensor.to_contiguous();
            contiguous.as_slice::<E>().expect("contiguous")
        }
    };
    slice.iter().map(|&x| to_f32(x)).collect()
}

/// A tensor of the given float type from FP32 values.
pub fn tensor(values: Vec<f32>, shape: impl Into<Shape>, dtype: DType) -> FlexTensor {
    let shape: Shape = shape.into();
    let data = match dtype {
        DType::F32 => TensorData::new(values, shape),
        DType::BF16 => TensorData::new(values.into_iter().map(bf16::from_f32).collect::<Vec<_>>(), shape),
        DType::F16 => TensorData::new(values.into_iter().map(f16::from_f32).collect::<Vec<_>>(), shape),
        other => panic!("own operations make f32, f16 and bf16, not {other:?}"),
    };
    FlexTensor::from_data(data)
}

/// Takes the FP32 values out of a tensor, without a copy where nothing else holds it.
pub fn into_values(tensor: FlexTensor) -> Vec<f32> {
    if tensor.dtype() == DType::F32 && tensor.is_contiguous() && tensor.layout().start_offset() == 0 {
        return tensor.into_data().try_into_vec::<f32>().expect("an f32 tensor has f32 data");
    }
    values(&tensor).into_owned()
}

/// Uninitialised room for n values, to be written before it is read.
///
/// Zeroed memory costs a pass over it; kernels here write every element.
pub fn room(n: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(n);
    // SAFETY: f32 has no invalid bit pattern and every caller writes all n elements before reading one.
    #[allow(clippy::uninit_vec)]
    unsafe {
        values.set_len(n);
    }
    values
}
