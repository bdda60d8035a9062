//! Operations of the zoo, one file or folder each: the CPU kernel, the analytic gradient, a
//! composition of tensor operations for every other backend, and tests that compare the two.
//!
//! On the CPU backend (Flex) an operation is one node of the autodiff graph. The same holds on CUDA
//! and wgpu where `cube` has kernels for it. Elsewhere it is composed of Burn's tensor operations
//! and differentiated by Burn.

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
mod gelu;
mod halves;
mod host;
mod identity;
mod islands;
mod launches;
mod layer_norm;
mod linear;
mod magnitude;
mod observed;
pub mod parameters;
mod pass;
mod pool;
pub mod precision;
mod probe;
#[cfg(feature = "cubecl")]
mod product;
pub mod random;
mod recurrent;
mod relu;
mod residual;
mod rounding;
mod sigmoid;
mod simd;
#[cfg(any(test, feature = "cubecl"))]
mod slices;
mod stored;
mod wide;

pub use agreement::{Agreement, agreements, difference};
pub use attention::{Segment, Segments, attention};
pub use attentive::{
    AttentiveLayer, AttentiveSpec, AttentiveWeights, Hearing, Looking, Source, attentive_lstm,
};
pub use batch_norm::{Normalization, Rows, Statistics, batch_norm, batch_norm_by};
pub use context::context;
pub use convolution::{Axis, Geometry, convolution, convolution_maximum};
pub use cross_entropy::{SmoothedTargets, cross_entropy};
pub use ctc::{Utterances, ctc};
pub use dropout::dropout;
pub use embedding::embedding;
pub use gated::gated;
pub use gelu::gelu;
pub use halves::{Instruction, instruction as bf16_instruction};
pub use islands::Islands;
pub use launches::{Launched, count as count_launches, time as time_launches};
pub use layer_norm::{layer_norm, layer_norm_by};
pub use linear::linear;
pub use magnitude::magnitudes;
pub use observed::{Observation, OutputReceiver};
pub use pass::Pass;
pub use pool::{Pooling, pool};
pub use probe::{Products, probe};
pub use recurrent::{Sequences, gru, hard_lstm, lstm, lstm_dropping_states};
pub use relu::relu_dropout;
pub use residual::add_dropped;
pub use sigmoid::sigmoid;
pub use stored::stored;
pub use wide::wide;

use burn::backend::DispatchDevice;
use burn::tensor::Device;

/// Whether this device runs the custom kernels of every operation.
pub fn has_own_kernels(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// Whether this device runs custom kernels, either the CPU ones or those written in CubeCL. With
/// CubeCL, all devices other than the CPU belong to it. The kernels use cubes of 256 units, which
/// every CUDA and WebGPU device supports.
fn has_device_kernels(device: &Device) -> bool {
    cfg!(feature = "cubecl") || has_own_kernels(device)
}
