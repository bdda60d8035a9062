//! Dropout whose mask is a function of (seed, site, micro-step, element). No mask is stored, and a
//! resumed run draws the same masks.
//!
//! Kept elements are divided by 1 - rate ("inverted" dropout, after Srivastava et al. 2014).

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{Int, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::simd::vectorized;
use super::{has_device_kernels, host};
use crate::Pass;
use crate::random::Key;

/// A mask: element i is kept if `key.bits(i) >= threshold`, and is then multiplied by `scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask {
    pub key: Key,
    pub threshold: u32,
    pub scale: f32,
}

impl Mask {
    /// The mask for a drop rate in [0, 1).
    pub fn new(key: Key, rate: f64) -> Self {
        Self { key, threshold: (rate * 4_294_967_296.0) as u32, scale: (1.0 / (1.0 - rate)) as f32 }
    }

    /// The mask of the pass's next dropout site; `None` in evaluation or when the rate is 0.
    pub fn draw(rate: f64, pass: &mut Pass) -> Option<Self> {
        if rate == 0.0 { None } else { pass.dropout_key().map(|key| Self::new(key, rate)) }
    }

    /// Factor of an element: 0 or `scale`.
    #[inline(always)]
    pub fn factor(self, element: u32) -> f32 {
        if self.key.bits(element) >= self.threshold { self.scale } else { 0.0 }
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait DropoutOp: Backend {
    /// x times its mask.
    #[fusion(dtype = x, shape = x)]
    fn masked(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self>;
}

impl DropoutOp for Flex {
    fn masked(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let values = host::Source::new(&x);
        host::build(x.shape(), x.dtype(), |first, out| {
            values.read(first, out);
            apply(out, first as u32, mask);
        })
    }
}

vectorized! {
    /// Multiplies values by the mask, starting at element `first`.
    pub(super) fn apply(values: &mut [f32], first: u32, mask: Mask) {
        let _ = FMA;
        for (i, x) in values.iter_mut().enumerate() {
            *x *= mask.factor(first.wrapping_add(i as u32));
        }
    }
}

impl<B: DropoutOp, C: CheckpointStrategy> DropoutOp for Autodiff<B, C> {
    fn masked(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Masked;
        impl<B: DropoutOp> Backward<B, 1> for Masked {
            type State = Mask;
            fn backward(self, ops: Ops<Mask, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::masked(gradient, ops.state));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Masked.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(mask, B::masked(x, mask)),
            OpsKind::UnTracked(prep) => prep.finish(B::masked(x, mask)),
        }
    }
}

/// Drops elements of `x` (any shape) with the given rate; the identity in evaluation or when the
/// rate is 0.
pub fn dropout<const D: usize>(x: Tensor<D>, rate: f64, pass: &mut Pass) -> Tensor<D> {
    let Some(mask) = Mask::draw(rate, pass) else { return x };
    if has_device_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::masked(x.into_dispatch(), mask));
    }
    masked_in_order(x, mask)
}

/// Composition of tensor operations, with elements numbered in their order.
pub(super) fn masked_in_order<const D: usize>(x: Tensor<D>, mask: Mask) -> Tensor<D> {
    let n = x.shape().num_elements() as i64;
    let elements = Tensor::<1, Int>::arange(0..n, &x.device().inner()).reshape(x.shape());
    composed(x, elements, mask)
}

/// Composition of tensor operations; `elements` are the element numbers of the mask.
pub(super) fn composed<const D: usize>(x: Tensor<D>, elements: Tensor<D, Int>, mask: Mask) -> Tensor<D> {
    let kept = kept_on_device(elements, mask).float().cast(x.dtype());
    let kept = if x.device().is_autodiff() { Tensor::from_inner(kept) } else { kept };
    x * kept * mask.scale
}

/// `key.bits(element) >= threshold` in wrapping 32-bit integer operations on the device.
fn kept_on_device<const D: usize>(elements: Tensor<D, Int>, mask: Mask) -> Tensor<D, burn::tensor::Bool> {
    let (low, high) = mask.key.halves();
    let shift = |x: Tensor<D, Int>, by: u32| {
        // A logical shift: an arithmetic shift with the copies of the sign bit removed.
        x.bitwise_right_shift_scalar(by as i32).bitwise_and_scalar((u32::MAX >> by) as i32)
    };
    let mix = |x: Tensor<D, Int>| {
        let x = x.clone().bitwise_xor(shift(x, 16)).mul_scalar(0x7feb_352du32 as i32);
        let x = x.clone().bitwise_xor(shift(x, 15)).mul_scalar(0x846c_a68bu32 as i32);
        x.clone().bitwise_xor(shift(x, 16))
    };
    let bits = mix(mix(elements.bitwise_xor_scalar(low as i32)).add_scalar(high as i32));
    // Unsigned order equals signed order with the top bit flipped.
    bits.bitwise_xor_scalar(i32::MIN).greater_equal_elem((mask.threshold ^ 0x8000_0000) as i32)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;

    #[test]
    fn keeps_the_stated_share_and_the_mean() {
        let n = 100_000;
        let x = Tensor::<1>::ones([n], &Device::flex());
        let mut pass = Pass::training(Compute::FP32, 1, 0);
        let y = host_values(dropout(x, 0.3, &mut pass));
        let kept = y.iter().filter(|&&v| v != 0.0).count() as f64 / n as f64;
        assert!((kept - 0.7).abs() < 4.0 * (0.21f64 / n as f64).sqrt());
        assert!(y.iter().all(|&v| v == 0.0 || v == 1.0 / 0.7f32));
    }

    /// So an update in another type has the same masks.
    #[test]
    fn masks_do_not_depend_on_the_type() {
        use burn::tensor::FloatDType;
        let kept = |compute: Compute| -> Vec<bool> {
            let x = compute.cast(Tensor::<1>::ones([5000], &Device::flex()));
            let y = dropout(x, 0.5, &mut Pass::training(compute, 3, 9));
            host_values(y).into_iter().map(|value| value != 0.0).collect()
        };
        let masks = [Compute::FP32, Compute(FloatDType::F16), Compute(FloatDType::BF16)].map(kept);
        assert!(masks[0].contains(&true) && masks[0].contains(&false));
        assert!(masks[1..].iter().all(|mask| *mask == masks[0]));
    }

    #[test]
    fn gradient_is_the_same_mask_and_sites_and_steps_differ() {
        let device = Device::flex().autodiff();
        let x = Tensor::<1>::ones([5000], &device).require_grad();
        let mut pass = Pass::training(Compute::FP32, 3, 9);
        let y = dropout(x.clone(), 0.5, &mut pass);
        let mask = host_values(y.clone().inner());
        let gradient = host_values(x.grad(&y.sum().backward()).unwrap());
        assert_eq!(mask, gradient);
        let second = host_values(dropout(x.clone(), 0.5, &mut pass).inner());
        assert_ne!(mask, second);
        let again = host_values(dropout(x.clone(), 0.5, &mut Pass::training(Compute::FP32, 3, 9)).inner());
        assert_eq!(mask, again);
        let later = host_values(dropout(x.clone(), 0.5, &mut Pass::training(Compute::FP32, 3, 10)).inner());
        assert_ne!(mask, later);
        let off = host_values(dropout(x, 0.5, &mut Pass::evaluation(Compute::FP32)).inner());
        assert!(off.iter().all(|&v| v == 1.0));
    }
}
