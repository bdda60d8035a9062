//! Rows of a table by token id. The gradient adds rows in the order of the tokens.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::{has_device_kernels, host};

/// The operation on backends with custom kernels. The id `None` gives a row of zeros without a
/// gradient.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait EmbeddingOp: Backend {
    /// table `[vocabulary, width]` -> `[ids, width]`.
    #[fusion(dtype = table, shape = burn::tensor::Shape::from([ids.len(), table[1]]))]
    fn rows(table: FloatTensor<Self>, ids: Arc<[Option<u32>]>) -> FloatTensor<Self>;

    /// gradient `[ids, width]` -> `[vocabulary, width]`.
    #[fusion(dtype = gradient, shape = burn::tensor::Shape::from([*vocabulary, gradient[1]]))]
    fn rows_backward(
        gradient: FloatTensor<Self>,
        ids: Arc<[Option<u32>]>,
        vocabulary: usize,
    ) -> FloatTensor<Self>;
}

impl EmbeddingOp for Flex {
    fn rows(table: FloatTensor<Self>, ids: Arc<[Option<u32>]>) -> FloatTensor<Self> {
        let width = table.shape()[1];
        let table = host::values(&table);
        let mut out = Vec::with_capacity(ids.len() * width);
        for id in ids.iter() {
            match id {
                Some(id) => out.extend_from_slice(&table[*id as usize * width..][..width]),
                None => out.resize(out.len() + width, 0.0),
            }
        }
        host::tensor(out, [ids.len(), width], DType::F32)
    }

    fn rows_backward(
        gradient: FloatTensor<Self>,
        ids: Arc<[Option<u32>]>,
        vocabulary: usize,
    ) -> FloatTensor<Self> {
        let width = gradient.shape()[1];
        let gradient = host::values(&gradient);
        let mut out = vec![0f32; vocabulary * width];
        for (id, row) in ids.iter().zip(gradient.chunks_exact(width)) {
            if let Some(id) = id {
                let sum = &mut out[*id as usize * width..][..width];
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        host::tensor(out, [vocabulary, width], DType::F32)
    }
}

impl<B: EmbeddingOp, C: CheckpointStrategy> EmbeddingOp for Autodiff<B, C> {
    fn rows(table: FloatTensor<Self>, ids: Arc<[Option<u32>]>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Rows;
        impl<B: EmbeddingOp> Backward<B, 1> for Rows {
            type State = (Arc<[Option<u32>]>, usize);
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    let (ids, vocabulary) = ops.state;
                    grads.register::<B>(parent.id, B::rows_backward(gradient, ids, vocabulary));
                }
            }
        }
        let vocabulary = table.shape()[0];
        let (table, node) = table.into_parts();
        match Rows.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((ids.clone(), vocabulary), B::rows(table, ids)),
            OpsKind::UnTracked(prep) => prep.finish(B::rows(table, ids)),
        }
    }

    fn rows_backward(_: FloatTensor<Self>, _: Arc<[Option<u32>]>, _: usize) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Indices of the tokens that have an id, sorted by id and then by position; and the start of each
/// id's range.
#[cfg(any(test, feature = "cubecl"))]
pub(super) fn sorted(ids: &[Option<u32>], vocabulary: usize) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0u32; vocabulary + 1];
    ids.iter().flatten().for_each(|&id| begins[id as usize + 1] += 1);
    for row in 0..vocabulary {
        begins[row + 1] += begins[row];
    }
    let mut next = begins.clone();
    // A buffer must not be empty: it has at least one number.
    let mut tokens = vec![0u32; (begins[vocabulary] as usize).max(1)];
    for (token, id) in (0u32..).zip(ids) {
        if let Some(id) = id {
            tokens[next[*id as usize] as usize] = token;
            next[*id as usize] += 1;
        }
    }
    (tokens, begins)
}

/// Rows of `table` `[vocabulary, width]` for each id; zeros without a gradient for `None`. FP32
/// `[ids, width]`.
///
/// # Panics
/// If an id is outside the table.
pub fn embedding(table: Tensor<2>, ids: &[Option<u32>]) -> Tensor<2> {
    let [vocabulary, _] = table.dims();
    let inside = |id: &u32| (*id as usize) < vocabulary;
    assert!(ids.iter().flatten().all(inside), "token id outside of the vocabulary of {vocabulary}");
    if has_device_kernels(&table.device()) {
        return Tensor::from_dispatch(Dispatch::rows(table.into_dispatch(), ids.into()));
    }
    composed(table, ids)
}

/// Uses `gather` instead of `select`, because its gradient is a parallel scatter on CUDA.
pub(super) fn composed(table: Tensor<2>, ids: &[Option<u32>]) -> Tensor<2> {
    let [_, width] = table.dims();
    let device = table.device();
    let n = ids.len();
    let index: Vec<i32> = ids.iter().map(|id| id.unwrap_or(0) as i32).collect();
    let index = Tensor::<2, Int>::from_data(TensorData::new(index, [n, 1]), &device).expand([n, width]);
    let keep: Vec<f32> = ids.iter().map(|id| if id.is_some() { 1.0 } else { 0.0 }).collect();
    table.gather(0, index) * Tensor::<2>::from_data(TensorData::new(keep, [n, 1]), &device)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;

    #[test]
    fn kernel_and_composition_agree_and_a_missing_id_is_zeros_without_a_gradient() {
        let device = Device::flex().autodiff();
        let ids = [Some(3), Some(1), None, Some(3), Some(3), Some(2)];
        let run = |own: bool| {
            let values: Vec<f32> = (0..20).map(|i| i as f32 * 0.5 - 3.0).collect();
            let table = Tensor::<2>::from_data(TensorData::new(values, [4, 5]), &device).require_grad();
            let y = if own { embedding(table.clone(), &ids) } else { composed(table.clone(), &ids) };
            let grads = (y.clone() * y.clone()).sum().backward();
            [host_values(y.inner()), host_values(table.grad(&grads).unwrap())]
        };
        assert_eq!(run(true), run(false));
        let [value, gradient] = run(true);
        assert!(value[10..15].iter().all(|&x| x == 0.0));
        assert!(gradient[0..5].iter().all(|&x| x == 0.0));
        assert!(gradient[15..20].iter().any(|&x| x != 0.0));
    }

    #[test]
    fn tokens_are_sorted_by_id_and_keep_their_order() {
        let (tokens, begins) = sorted(&[Some(2), None, Some(0), Some(2), Some(3)], 5);
        assert_eq!(tokens, [2, 0, 3, 4]);
        assert_eq!(begins, [0, 1, 1, 3, 4, 4]);
    }
}
