//! Opening of a device before Burn does, with other properties than its runtime reports, and with
//! tensors whose rows follow each other without padding.
//!
//! CubeCL keeps one server per device, which serves all users of the device. The first user creates
//! it. Burn's tensors therefore use a server that is created and registered here. Its properties
//! decide which kernels may run.
//!
//! On CUDA, CubeCL pads rows whose bytes are neither a power of two nor a multiple of 512. Custom
//! kernels read rows without padding, so every padded tensor would be copied before they read it.
//! Only loads by the tensor memory accelerator (TMA) need aligned rows; both are removed together.

use std::sync::Arc;

use burn::backend::{Device, DeviceService};
use cubecl::client::Client;
use cubecl::ir::features::Features;
use cubecl::ir::{DeviceProperties, ElemType, FloatKind};
use cubecl::server::{Server, ServerUtilities};
use cubecl_runtime::runtime::Runtime;
use cubecl_server::allocator::ContiguousMemoryLayoutPolicy;

/// The device is already open, so its properties can no longer change.
#[derive(Debug)]
pub struct AlreadyOpen;

/// Opens a device without padded rows and TMA, after applying `change` to its properties.
///
/// # Errors
/// This process has already opened the device.
pub fn open_with<R: Runtime>(
    device: &R::Device,
    change: impl FnOnce(&mut DeviceProperties),
) -> Result<Client, AlreadyOpen> {
    let mut server = <R::Server as DeviceService>::init(device.to_id());
    adapt(&mut server, change);
    Client::try_init(device.to_id(), server).map_err(|_| AlreadyOpen)
}

fn adapt<S: Server>(server: &mut S, change: impl FnOnce(&mut DeviceProperties)) {
    let shared = Server::utilities(server);
    assert_eq!(Arc::strong_count(&shared), 2, "the server's and ours: nobody else reads them yet");
    let mut properties = (*shared.properties).clone();
    change(&mut properties);
    properties.features.tma.clear();
    let utilities: *mut ServerUtilities = Arc::as_ptr(&shared).cast_mut();
    // SAFETY: there are two pointers to this value. One is `shared`, which is not used while the
    // reference lives. The other is in `server`, which is borrowed exclusively and therefore not in
    // use elsewhere. The pointer may write, because `Arc::as_ptr` does not go through a reference.
    let utilities = unsafe { &mut *utilities };
    utilities.properties_hash = properties.checksum();
    utilities.layout_policy =
        Box::new(ContiguousMemoryLayoutPolicy::new(properties.memory.alignment as usize));
    utilities.properties = Arc::new(properties);
}

/// Removes TF32 from the features of a device: the type, and the shapes of matrix instructions on
/// it. CubeCL's kernel selection (`adjust_dtypes` of cubek-matmul 0.3.1, for products and
/// convolutions) rounds FP32 operands to TF32 if the device has this type. Without it, no matrix
/// instruction has FP32 operands, so tensor cores and their loads (TMA) are used only for half
/// types.
pub fn without_tf32(features: &mut Features) {
    let tf32 = ElemType::Float(FloatKind::TF32);
    let keeps = |a: ElemType, b: ElemType| a != tf32 && b != tf32;
    features.types.elem.remove(&tf32);
    features.matmul.cmma.retain(|shape| keeps(shape.a_type, shape.b_type));
    features.matmul.mma.retain(|shape| keeps(shape.a_type, shape.b_type));
    features.matmul.cube_mma.retain(|shape| keeps(shape.a_type, shape.b_type));
}

#[cfg(test)]
mod tests {
    use cubecl::ir::features::{MmaConfig, TypeUsage};

    use super::*;

    #[test]
    fn only_tf32_is_taken_away() {
        let [tf32, bf16, fp32] = [FloatKind::TF32, FloatKind::BF16, FloatKind::F32].map(ElemType::Float);
        let shape =
            |operand, k| MmaConfig { a_type: operand, b_type: operand, cd_type: fp32, m: 16, n: 16, k };
        let mut features = Features::default();
        for (operand, k) in [(tf32, 8), (bf16, 16)] {
            features.types.elem.insert(operand, TypeUsage::Conversion.into());
            features.matmul.cmma.insert(shape(operand, k));
            features.matmul.mma.insert(shape(operand, k));
        }
        without_tf32(&mut features);
        assert_eq!(features.types.elem.keys().collect::<Vec<_>>(), [&bf16]);
        for left in [&features.matmul.cmma, &features.matmul.mma] {
            assert_eq!(left.iter().collect::<Vec<_>>(), [&shape(bf16, 16)]);
        }
    }

    /// On CUDA, this test would need a card. wgpu devices are opened by the same code.
    #[cfg(feature = "wgpu-unfused")]
    #[test]
    fn burn_meets_the_device_that_was_opened_here() {
        use burn::tensor::{DType, Device as BurnDevice, DeviceKind, DeviceType};
        use cubecl::wgpu::{WgpuDevice, WgpuRuntime};

        if BurnDevice::enumerate(DeviceType::Wgpu).into_iter().next().is_none() {
            println!("skipped: wgpu finds no graphics card");
            return;
        }
        let without_f16 = |properties: &mut DeviceProperties| {
            properties.features.types.elem.remove(&ElemType::Float(FloatKind::F16));
        };
        let device = WgpuDevice::default();
        open_with::<WgpuRuntime>(&device, without_f16).unwrap();
        let burns = BurnDevice::wgpu(DeviceKind::DefaultDevice);
        assert!(!burns.supports_dtype(DType::F16) && burns.supports_dtype(DType::F32));
        let twice = burn::tensor::Tensor::<1>::from_data([1.5f32, -2.0], &burns) * 2.0;
        assert_eq!(zoo_models::parameters::host_values(twice), [3.0, -4.0]);
        assert!(open_with::<WgpuRuntime>(&device, |_| ()).is_err(), "it is too late for another change");
    }
}
