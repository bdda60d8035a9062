//! Flex tensors as slices, for every float type and layout.

use std::borrow::Cow;

use burn::tensor::{DType, Element, Shape, TensorData, bf16, f16};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::rounding::{Half, HalfType};

/// Number of values that one task converts.
const BLOCK: usize = 1 << 15;
/// Number of values that fit in the first-level cache while they are processed in FP32.
const PART: usize = 1 << 11;

/// A tensor's values, read in parts as FP32.
pub enum Source<'a> {
    /// FP32 values, borrowed or converted as a whole from another layout or type.
    Wide(Cow<'a, [f32]>),
    /// Contiguous bf16 values.
    Bf16(&'a [bf16]),
    /// Contiguous fp16 values.
    Fp16(&'a [f16]),
}

impl<'a> Source<'a> {
    /// The values of a tensor.
    pub fn new(tensor: &'a FlexTensor) -> Self {
        let half = match tensor.dtype() {
            DType::BF16 => tensor.as_slice().map(Self::Bf16),
            DType::F16 => tensor.as_slice().map(Self::Fp16),
            _ => None,
        };
        half.unwrap_or_else(|| Self::Wide(values(tensor)))
    }

    /// All values in FP32, rounded to `half`; unrounded if it is `None`.
    pub fn rounded(self, half: Option<Half>) -> Self {
        fn widened<H: HalfType>(values: &[H]) -> Vec<f32> {
            let mut out = room(values.len());
            let blocks = out.par_chunks_mut(BLOCK).zip(values.par_chunks(BLOCK));
            blocks.for_each(|(to, from)| H::widen(to, from));
            out
        }
        let Some(half) = half else { return self };
        // Values of a half tensor are already rounded.
        Self::Wide(Cow::Owned(match self {
            Self::Bf16(values) => widened(values),
            Self::Fp16(values) => widened(values),
            Self::Wide(values) => {
                let mut values = values.into_owned();
                values.par_chunks_mut(BLOCK).for_each(|block| half.round(block));
                values
            }
        }))
    }

    /// Reads the values `first..first + to.len()`.
    pub fn read(&self, first: usize, to: &mut [f32]) {
        match self {
            Self::Wide(values) => to.copy_from_slice(&values[first..][..to.len()]),
            Self::Bf16(values) => bf16::widen(to, &values[first..][..to.len()]),
            Self::Fp16(values) => f16::widen(to, &values[first..][..to.len()]),
        }
    }

    /// `n` values from index `first` on, as FP32. `room` holds them if they have to be converted.
    pub fn part<'r>(&'r self, first: usize, n: usize, room: &'r mut Vec<f32>) -> &'r [f32] {
        match self {
            Self::Wide(values) => &values[first..][..n],
            Self::Bf16(_) | Self::Fp16(_) => {
                room.resize(n, 0.0);
                self.read(first, room);
                room
            }
        }
    }
}

/// Builds a tensor in parts: `make(first, part)` writes the FP32 values from index `first` on.
pub fn build(shape: Shape, dtype: DType, make: impl Fn(usize, &mut [f32]) + Sync) -> FlexTensor {
    match Half::of(dtype) {
        Some(Half::Bf16) => return build_half::<bf16>(shape, make),
        Some(Half::Fp16) => return build_half::<f16>(shape, make),
        None => {}
    }
    let mut out = room::<f32>(shape.num_elements());
    out.par_chunks_mut(BLOCK).enumerate().for_each(|(i, block)| {
        for (j, part) in block.chunks_mut(PART).enumerate() {
            make(i * BLOCK + j * PART, part);
        }
    });
    tensor(out, shape, dtype)
}

fn build_half<H: HalfType>(shape: Shape, make: impl Fn(usize, &mut [f32]) + Sync) -> FlexTensor {
    let mut out = room::<H>(shape.num_elements());
    out.par_chunks_mut(BLOCK).enumerate().for_each(|(i, block)| {
        let mut wide = [0f32; PART];
        for (j, part) in block.chunks_mut(PART).enumerate() {
            let wide = &mut wide[..part.len()];
            make(i * BLOCK + j * PART, wide);
            H::narrow(part, wide);
        }
    });
    stored(out, shape)
}

/// Builds a tensor in blocks of `block` values: `make(room, i, block)` writes the FP32 values of
/// block i. Also returns the results of `make`.
pub fn build_blocks<R: Send, Q: Send>(
    (shape, dtype): (Shape, DType),
    block: usize,
    rooms: impl Fn() -> R + Sync + Send,
    make: impl Fn(&mut R, usize, &mut [f32]) -> Q + Sync + Send,
) -> (FlexTensor, Vec<Q>) {
    match Half::of(dtype) {
        Some(Half::Bf16) => return half_blocks::<bf16, R, Q>(shape, block, rooms, make),
        Some(Half::Fp16) => return half_blocks::<f16, R, Q>(shape, block, rooms, make),
        None => {}
    }
    let mut out = room(shape.num_elements());
    let blocks = out.par_chunks_mut(block.max(1)).enumerate();
    let given = blocks.map_init(rooms, |room, (i, out)| make(room, i, out)).collect();
    (tensor(out, shape, dtype), given)
}

fn half_blocks<H: HalfType, R: Send, Q: Send>(
    shape: Shape,
    block: usize,
    rooms: impl Fn() -> R + Sync + Send,
    make: impl Fn(&mut R, usize, &mut [f32]) -> Q + Sync + Send,
) -> (FlexTensor, Vec<Q>) {
    let mut out = room::<H>(shape.num_elements());
    let blocks = out.par_chunks_mut(block.max(1)).enumerate();
    let blocks = blocks.map_init(
        || (rooms(), Vec::new()),
        |(room, wide), (i, out)| {
            wide.resize(out.len(), 0.0);
            let given = make(room, i, wide);
            H::narrow(out, wide);
            given
        },
    );
    let given = blocks.collect();
    (stored(out, shape), given)
}

/// The values in FP32, row-major; borrowed if the tensor stores them this way.
pub fn values(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    match tensor.dtype() {
        DType::F32 => match tensor.as_slice::<f32>() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(tensor.to_contiguous().as_slice::<f32>().expect("contiguous f32").to_vec()),
        },
        DType::BF16 => Cow::Owned(widen::<bf16>(tensor)),
        DType::F16 => Cow::Owned(widen::<f16>(tensor)),
        other => panic!("own operations take f32, f16 and bf16, not {other:?}"),
    }
}

fn widen<H: HalfType>(tensor: &FlexTensor) -> Vec<f32> {
    let contiguous;
    let slice = match tensor.as_slice::<H>() {
        Some(slice) => slice,
        None => {
            contiguous = tensor.to_contiguous();
            contiguous.as_slice::<H>().expect("contiguous")
        }
    };
    let mut out = room(slice.len());
    out.par_chunks_mut(BLOCK).zip(slice.par_chunks(BLOCK)).for_each(|(to, from)| H::widen(to, from));
    out
}

/// A tensor of the given float type from FP32 values.
pub fn tensor(values: Vec<f32>, shape: impl Into<Shape>, dtype: DType) -> FlexTensor {
    match dtype {
        DType::F32 => stored(values, shape),
        DType::BF16 => stored(narrow::<bf16>(&values), shape),
        DType::F16 => stored(narrow::<f16>(&values), shape),
        other => panic!("own operations make f32, f16 and bf16, not {other:?}"),
    }
}

fn narrow<H: HalfType>(values: &[f32]) -> Vec<H> {
    let mut out = room(values.len());
    out.par_chunks_mut(BLOCK).zip(values.par_chunks(BLOCK)).for_each(|(to, from)| H::narrow(to, from));
    out
}

/// A tensor of these values, without conversion.
pub fn stored<E: Element>(values: Vec<E>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// Takes the FP32 values out of a tensor, without a copy if it has no other reference.
pub fn into_values(tensor: FlexTensor) -> Vec<f32> {
    if tensor.dtype() == DType::F32 { into_stored(tensor) } else { values(&tensor).into_owned() }
}

/// Takes the values out of a tensor of this type, without a copy if it has no other reference.
pub fn into_stored<E: Element + bytemuck::Pod>(tensor: FlexTensor) -> Vec<E> {
    let whole = tensor.is_contiguous() && tensor.layout().start_offset() == 0;
    let tensor = if whole { tensor } else { tensor.to_contiguous() };
    tensor.into_data().try_into_vec::<E>().expect("a tensor has data of its type")
}

/// Uninitialised memory for n values, which must be written before they are read.
///
/// Zeroing would cost a pass over the memory; the kernels here write every element.
pub fn room<E: bytemuck::Pod>(n: usize) -> Vec<E> {
    let mut values = Vec::with_capacity(n);
    // SAFETY: a `Pod` has no invalid bit pattern and every caller writes all n elements before
    // reading one.
    #[allow(clippy::uninit_vec)]
    unsafe {
        values.set_len(n);
    }
    values
}
