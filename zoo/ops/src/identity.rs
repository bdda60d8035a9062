//! Identity of tensors in the graph of autodiff.

use std::sync::{Arc, OnceLock};

use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;
use burn_autodiff::NodeId;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;

use super::has_own_kernels;

/// A cell for the identity of a tensor.
pub type Identity = Arc<OnceLock<NodeId>>;

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait IdentityOp: Backend {
    /// x. Under autodiff, its identity is written into the cell.
    fn identified(x: FloatTensor<Self>, identity: Identity) -> FloatTensor<Self>;
}

impl IdentityOp for Flex {
    fn identified(x: FloatTensor<Self>, _: Identity) -> FloatTensor<Self> {
        x
    }
}

impl<B: IdentityOp, C: CheckpointStrategy> IdentityOp for Autodiff<B, C> {
    fn identified(x: FloatTensor<Self>, identity: Identity) -> FloatTensor<Self> {
        // A new cell is empty.
        let _ = identity.set(x.id());
        x
    }
}

/// Identity of a tensor in the graph of autodiff; `None` outside autodiff and on devices without the
/// CPU kernels. The values of a parameter have one identity until an update replaces them.
pub fn node<const D: usize>(tensor: &Tensor<D>) -> Option<NodeId> {
    if !has_own_kernels(&tensor.device()) {
        return None;
    }
    let identity = Identity::default();
    Dispatch::identified(tensor.clone().into_dispatch(), Arc::clone(&identity));
    identity.get().copied()
}
