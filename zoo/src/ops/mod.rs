//! Own operations, one file each: the CPU kernel, the analytic gradient, the same thing in tensor operations for every other
//! backend, and the tests that hold the two together.
//!
//! On the CPU backend (Flex) an operation is a node of its own in the autodiff graph, and so it is on CUDA and wgpu where
//! `cube` has kernels for it. Elsewhere it is composed of Burn's tensor operations and differentiated by Burn.

mod agreement;
mod attention;
mod attentive;
mod batch_norm;
mod context;
mod convolution;
mod cross_entropy;
mod ctc;
#[cfg(feature = "cubecl")]
mod cube;
mod dropout;
mod embedding;
mod fp32;
mod gated;
mod halves;
mod host;
mod launches;
mod layer_norm;
mod linear;
mod magnitude;
mod recurrent;
mod relu;
mod residual;
mod rounding;
mod simd;
mod stored;

pub use agreement::{Agreement, agreements, difference};
pub use attention::{Segment, Segments, attention};
pub use attentive::{
    AttentiveLayer, AttentiveSpec, AttentiveWeights, Hearing, Looking, Source, attentive_lstm,
};
pub use batch_norm::{Normalization, Rows, Statistics, batch_norm, batch_norm_by};
pub use context::context;
pub use convolution::{Axis, Geometry, convolution};
pub use cross_entropy::{SmoothedTargets, cross_entropy};
pub use ctc::{Utterances, ctc};
pub use dropout::dropout;
pub use embedding::embedding;
pub use gated::gated;
pub use halves::{Instruction, instruction as bf16_instruction};
pub use launches::count as count_launches;
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use magnitude::magnitudes;
pub use recurrent::{Sequences, gru, lstm, lstm_dropping_states};
pub use relu::relu_dropout;
pub use residual::add_dropped;
pub use stored::stored;

use burn::backend::DispatchDevice;
use burn::tensor::Device;

/// Do the own kernels of every operation run here?
pub fn has_own_kernels(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// Do own kernels run here of the operations that have them in CubeCL, too? With CubeCL, other devices than the CPU are its own; 256
/// units a cube, which the kernels take, are what every device of CUDA's and WebGPU's has.
fn has_device_kernels(device: &Device) -> bool {
    cfg!(feature = "cubecl") || has_own_kernels(device)
}
