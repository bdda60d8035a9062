//! Rows of a table by token id. The gradient adds rows in the order of the tokens.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::simd::vectorized;
use super::{has_device_kernels, host};

/// Minimum number of values that a task writes.
const BLOCK: usize = 1 << 15;

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
        let mut out = host::room(ids.len() * width);
        let tokens = BLOCK.div_ceil(width.max(1));
        let tasks = out.par_chunks_mut((tokens * width).max(1)).zip(ids.par_chunks(tokens));
        tasks.for_each(|(out, ids)| {
            for (row, id) in out.chunks_exact_mut(width).zip(ids) {
                match id {
                    Some(id) => row.copy_from_slice(&table[*id as usize * width..][..width]),
                    None => row.fill(0.0),
                }
            }
        });
        host::tensor(out, [ids.len(), width], DType::F32)
    }

    fn rows_backward(
        gradient: FloatTensor<Self>,
        ids: Arc<[Option<u32>]>,
        vocabulary: usize,
    ) -> FloatTensor<Self> {
        let width = gradient.shape()[1];
        let gradient = host::values(&gradient);
        // Zeros of the allocator: it clears a large table past the caches, or need not.
        let mut out = vec![0f32; vocabulary * width];
        // A task sums whole rows, in the order of the tokens: the result does not depend on the
        // number of tasks.
        let tasks = 2 * rayon::current_num_threads();
        let rows = vocabulary.div_ceil(tasks).max(BLOCK.div_ceil(width.max(1)));
        out.par_chunks_mut((rows * width).max(1)).enumerate().for_each(|(task, sums)| {
            sum_rows(sums, task * rows, width, &ids, &gradient);
        });
        host::tensor(out, [vocabulary, width], DType::F32)
    }
}

vectorized! {
    /// Adds to the table's gradient, from row `first` on. `gradient` has a row of `width` values for
    /// each id.
    fn sum_rows(sums: &mut [f32], first: usize, width: usize, ids: &[Option<u32>], gradient: &[f32]) {
        let _ = FMA;
        let rows = sums.len() / width;
        for (id, row) in ids.iter().zip(gradient.chunks_exact(width)) {
            let Some(id) = id else { continue };
            // The difference wraps around for a row before the first one.
            let at = (*id as usize).wrapping_sub(first);
            if at < rows {
                let sum = &mut sums[at * width..][..width];
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
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

    /// Tables of one task and of several; the first row is used most often.
    #[test]
    fn rows_of_several_tasks_are_those_of_a_plain_loop_bit_for_bit() {
        let device = Device::flex().autodiff();
        for (vocabulary, width, tokens) in [(7, 3, 40), (3000, 50, 2500), (1300, 129, 700), (5, 20_000, 9)] {
            let draw = |i: usize, stream: usize| ((i * 7919 + stream * 31) % 10_007) as f32 / 10_007.0 - 0.3;
            let id = |i: usize| if i.is_multiple_of(3) { 0 } else { (i * 104_729) % vocabulary };
            let ids: Vec<Option<u32>> =
                (0..tokens).map(|i| if i % 11 == 5 { None } else { Some(id(i) as u32) }).collect();
            let [table, upstream] = [vocabulary, tokens].map(|rows| {
                let values: Vec<f32> = (0..rows * width).map(|i| draw(i, rows)).collect();
                values
            });
            let (mut due, mut due_gradient) = (vec![0f32; tokens * width], vec![0f32; vocabulary * width]);
            for (token, id) in ids.iter().enumerate() {
                let Some(id) = id else { continue };
                for column in 0..width {
                    due[token * width + column] = table[*id as usize * width + column];
                    due_gradient[*id as usize * width + column] += upstream[token * width + column];
                }
            }
            let tensor =
                |values, rows| Tensor::<2>::from_data(TensorData::new(values, [rows, width]), &device);
            let table = tensor(table, vocabulary).require_grad();
            let y = embedding(table.clone(), &ids);
            let gradients = (y.clone() * tensor(upstream, tokens)).sum().backward();
            assert!(host_values(y.inner()) == due, "{vocabulary} x {width}");
            assert!(host_values(table.grad(&gradients).unwrap()) == due_gradient, "{vocabulary} x {width}");
        }
    }

    #[test]
    fn tokens_are_sorted_by_id_and_keep_their_order() {
        let (tokens, begins) = sorted(&[Some(2), None, Some(0), Some(2), Some(3)], 5);
        assert_eq!(tokens, [2, 0, 3, 4]);
        assert_eq!(begins, [0, 1, 1, 3, 4, 4]);
    }
}
