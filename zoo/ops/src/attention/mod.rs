//! Scaled dot-product attention over packed sequences of different lengths (Vaswani et al. 2017,
//! section 3.2).
//!
//! Rows of all sequences are concatenated without padding: q `[query rows, width]`, k and v
//! `[key rows, width]`. A [`Segment`] defines which query rows attend to which key rows. Softmax is
//! FP32, or of the half type of the pass if `Islands::softmax` is false; the scores of 256 query rows
//! are held at once. If q, k and v have a half type, so have the operands and results of all
//! products: scores, weights and their gradients are rounded. Several segments may share keys if no gradient is computed (the hypotheses
//! of a beam share their source).

mod heads;
mod segments;

#[cfg(feature = "cubecl")]
pub(super) use segments::padded;
pub use segments::{Segment, Segments};

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{Bool, Int, Tensor, TensorData, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::dropout::Mask;
use super::observed::observed;
use super::rounding::Half;
use super::{dropout, fp32, has_device_kernels, has_own_kernels, host};
use crate::Pass;
use crate::precision::{matmul, to_f32};
use heads::Head;
pub(super) use heads::{multiplied, softmax};

/// Arguments of the kernels besides tensors.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) segments: Segments,
    pub(super) heads: usize,
    pub(super) mask: Option<Mask>,
    /// Type of the softmax, if it is not FP32.
    softmax: Option<Half>,
}

impl Plan {
    /// `heads` heads over these segments; `mask` is the dropout mask of the weights.
    pub(super) fn new(segments: &Segments, heads: usize, mask: Option<Mask>) -> Self {
        Self { segments: segments.clone(), heads, mask, softmax: None }
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait AttentionOp: Backend {
    /// Attention output `[query rows, width]`.
    #[fusion(dtype = q, shape = q)]
    fn attended(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self>;

    /// Gradients of q, k and v.
    #[fusion(meta = |q, k, v, _, _| (q.clone(), k.clone(), v.clone()))]
    fn attended_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl AttentionOp for Flex {
    fn attended(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        let (shape, dtype) = (q.shape(), q.dtype());
        let (width, half) = (shape[1], Half::of(dtype));
        let (q, k, v) = (host::values(&q), host::values(&k), host::values(&v));
        let mut out = host::room(q.len());
        let list = &plan.segments.list;
        let pieces = split_rows(&mut out, list.iter().map(|s| s.queries * width));
        pieces.into_par_iter().zip(list.par_iter()).for_each(|(out, segment)| {
            let head = |head| Head { segment, plan: &plan, width, head, half };
            (0..plan.heads).for_each(|i| head(i).forward(out, &q, &k, &v));
        });
        host::tensor(out, shape, dtype)
    }

    fn attended_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (q_shape, k_shape, dtype) = (q.shape(), k.shape(), q.dtype());
        let (width, half) = (q_shape[1], Half::of(dtype));
        let (q, k, v, gradient) =
            (host::values(&q), host::values(&k), host::values(&v), host::values(&gradient));
        let (mut dq, mut dk, mut dv) = (host::room(q.len()), host::room(k.len()), host::room(v.len()));
        let list = &plan.segments.list;
        let queries = split_rows(&mut dq, list.iter().map(|s| s.queries * width));
        let keys = split_rows(&mut dk, list.iter().map(|s| s.keys * width));
        let values = split_rows(&mut dv, list.iter().map(|s| s.keys * width));
        let pieces: Vec<_> = queries.into_iter().zip(keys).zip(values).collect();
        pieces.into_par_iter().zip(list.par_iter()).for_each(|(((dq, dk), dv), segment)| {
            let head = |head| Head { segment, plan: &plan, width, head, half };
            (0..plan.heads).for_each(|i| head(i).backward([dq, dk, dv], [&q, &k, &v, &gradient]));
        });
        (
            host::tensor(dq, q_shape, dtype),
            host::tensor(dk, k_shape.clone(), dtype),
            host::tensor(dv, k_shape, dtype),
        )
    }
}

/// Splits a buffer into consecutive pieces.
pub(super) fn split_rows(mut rest: &mut [f32], lengths: impl Iterator<Item = usize>) -> Vec<&mut [f32]> {
    lengths
        .map(|length| {
            let (piece, tail) = std::mem::take(&mut rest).split_at_mut(length);
            rest = tail;
            piece
        })
        .collect()
}

impl<B: AttentionOp, C: CheckpointStrategy> AttentionOp for Autodiff<B, C> {
    fn attended(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Attended;
        impl<B: AttentionOp> Backward<B, 3> for Attended {
            type State = ([FloatTensor<B>; 3], Plan);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let ([q, k, v], plan) = ops.state;
                let (dq, dk, dv) = B::attended_backward(q, k, v, gradient, plan);
                for (parent, gradient) in ops.parents.into_iter().zip([dq, dk, dv]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((q, q_node), (k, k_node), (v, v_node)) = (q.into_parts(), k.into_parts(), v.into_parts());
        match Attended.prepare::<C>([q_node, k_node, v_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                assert!(plan.segments.keys_are_disjoint(), "a gradient needs every key row in one segment");
                let state = ([q.clone(), k.clone(), v.clone()], plan.clone());
                prep.finish(state, B::attended(q, k, v, plan))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::attended(q, k, v, plan)),
        }
    }

    fn attended_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Attention with `heads` heads, in the type that q, k and v share. `rate` is the drop rate of the
/// weights.
///
/// # Panics
/// If `heads` does not divide the width, or if types differ.
pub fn attention(
    q: Tensor<2>,
    k: Tensor<2>,
    v: Tensor<2>,
    segments: &Segments,
    heads: usize,
    rate: f64,
    pass: &mut Pass,
) -> Tensor<2> {
    assert_eq!(q.dims()[1] % heads, 0, "heads divide the width");
    assert!(q.dtype() == k.dtype() && k.dtype() == v.dtype(), "q, k and v have one type");
    let site = pass.output("attention", &q);
    let mut plan = Plan::new(segments, heads, Mask::draw(rate, pass));
    if !pass.islands().softmax {
        assert!(pass.islands().suit(&q.device()), "only the CPU computes softmax without FP32");
        plan.softmax = Half::of(q.dtype());
    }
    // The CPU kernel consists of products, which a CPU without AVX2 does not support.
    let without = has_own_kernels(&q.device()) && !fp32::available();
    let out = match has_device_kernels(&q.device()) && !without {
        true => {
            let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
            Tensor::from_dispatch(Dispatch::attended(q, k, v, plan))
        }
        false => composed(q, k, v, &plan),
    };
    observed(out, site)
}

/// Composition with padding to `[sequences, heads, length, size]`, with the same mask elements as
/// the kernel.
pub(super) fn composed(q: Tensor<2>, k: Tensor<2>, v: Tensor<2>, plan: &Plan) -> Tensor<2> {
    let list = &plan.segments.list;
    let device = q.device();
    let [rows, width] = q.dims();
    let (n, heads, size) = (list.len(), plan.heads, width / plan.heads);
    let queries = list.iter().map(|s| s.queries).max().unwrap_or(0);
    let keys = plan.segments.longest_key;

    let mut query_rows = Vec::with_capacity(n * queries);
    let mut key_rows = Vec::with_capacity(n * keys);
    let mut hidden = Vec::with_capacity(n * queries * keys);
    let mut first = Vec::with_capacity(n * queries);
    let mut back = vec![0i32; rows];
    for (s, segment) in list.iter().enumerate() {
        for i in 0..queries {
            // Places where a sequence has no row are masked below.
            let row = (segment.query + i.min(segment.queries.saturating_sub(1))).min(rows - 1);
            query_rows.push(row as i32);
            first.push((row * heads * keys) as i32);
            if i < segment.queries {
                back[row] = (s * queries + i) as i32;
            }
            let visible = if i < segment.queries { plan.segments.visible(segment, i) } else { segment.keys };
            hidden.extend((0..keys).map(|t| t >= visible));
        }
        let row = |t: usize| (segment.key + t.min(segment.keys.saturating_sub(1))).min(k.dims()[0] - 1);
        key_rows.extend((0..keys).map(|t| row(t) as i32));
    }
    let ints = |values: Vec<i32>| {
        let len = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [len]), &device)
    };
    let split = |x: Tensor<2>, rows: &[i32], length: usize| {
        x.select(0, ints(rows.to_vec())).reshape([n, length, heads, size]).swap_dims(1, 2)
    };
    let q = split(q * (1.0 / (size as f64).sqrt()), &query_rows, queries);
    let (k, v) = (split(k, &key_rows, keys), split(v, &key_rows, keys));
    let hidden = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [n, 1, queries, keys]), &device);
    let hidden = hidden.expand([n, heads, queries, keys]);
    let scores = to_f32(matmul(q, k.swap_dims(2, 3))).mask_fill(hidden.clone(), -1e9);
    // Rows that attend to nothing get 0 again.
    let mut weights = activation::softmax(scores, 3).mask_fill(hidden, 0.0);
    if let Some(mask) = plan.mask {
        let inner = device.clone().inner();
        let row = Tensor::<1, Int>::from_data(TensorData::new(first, [n * queries]), &inner)
            .reshape([n, 1, queries, 1]);
        let head =
            (Tensor::<1, Int>::arange(0..heads as i64, &inner) * keys as i32).reshape([1, heads, 1, 1]);
        let t = Tensor::<1, Int>::arange(0..keys as i64, &inner).reshape([1, 1, 1, keys]);
        let shape = [n, heads, queries, keys];
        let elements = row.expand(shape) + head.expand(shape) + t.expand(shape);
        weights = dropout::composed(weights, elements, mask);
    }
    let mixed = matmul(weights.cast(v.dtype()), v).swap_dims(1, 2).reshape([n * queries, width]);
    mixed.select(0, ints(back))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::Islands;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;

    fn draw(stream: u64, rows: usize, device: &Device) -> Tensor<2> {
        let key = Key::new(8, stream, 0);
        let values: Vec<f32> = (0..rows * 24).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, [rows, 24]), device).require_grad()
    }

    /// Values and gradients of q, k and v, by the kernel or by the composition.
    fn run(own: bool, segments: &Segments, rows: usize, key_rows: usize, rate: f64) -> Vec<Vec<f32>> {
        let device = Device::flex().autodiff();
        let (q, k, v) = (draw(1, rows, &device), draw(2, key_rows, &device), draw(3, key_rows, &device));
        let weights = draw(4, rows, &device).inner();
        let mut pass = Pass::training(Compute::FP32, 1, 5);
        let out = if own {
            attention(q.clone(), k.clone(), v.clone(), segments, 3, rate, &mut pass)
        } else {
            let plan = Plan::new(segments, 3, Mask::draw(rate, &mut pass));
            composed(q.clone(), k.clone(), v.clone(), &plan)
        };
        let grads = (out.clone() * Tensor::from_inner(weights)).sum().backward();
        let mut values = vec![host_values(out.inner())];
        values.extend([q, k, v].map(|x| host_values(x.grad(&grads).unwrap())));
        values
    }

    fn both(segments: &Segments, rows: usize, key_rows: usize, rate: f64) -> [Vec<Vec<f32>>; 2] {
        [true, false].map(|own| run(own, segments, rows, key_rows, rate))
    }

    /// FP32 sums of up to 301 products of order 1, in different orders.
    fn assert_close([own, composed]: [Vec<Vec<f32>>; 2]) {
        for (own, composed) in own.iter().zip(&composed) {
            for (a, b) in own.iter().zip(composed) {
                assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }

    #[test]
    fn self_attention_agrees_with_its_composition() {
        let lengths = [5u32, 1, 41, 17];
        for causal in [false, true] {
            assert_close(both(&Segments::own(&lengths, causal), 64, 64, 0.0));
        }
    }

    #[test]
    fn cross_attention_with_dropout_agrees_with_its_composition() {
        assert_close(both(&Segments::across(&[5, 1, 20], &[7, 33, 2]), 26, 42, 0.4));
    }

    /// FP16, causal, with dropout, longer than one block of queries.
    #[test]
    fn softmax_without_fp32_is_near_that_of_fp32() {
        let device = Device::flex().autodiff();
        let f16 = Compute(burn::tensor::FloatDType::F16);
        let segments = Segments::own(&[3, 301], true);
        let of = |softmax: bool| {
            let [q, k, v] = [1, 2, 3].map(|stream| draw(stream, 304, &device));
            let mut pass = Pass::training(f16, 1, 5).with_islands(Islands { softmax, ..Islands::ALL });
            let [a, b, c] = [&q, &k, &v].map(|x| f16.cast(x.clone()));
            let out = to_f32(attention(a, b, c, &segments, 3, 0.2, &mut pass));
            let grads = (out.clone() * Tensor::from_inner(draw(4, 304, &device).inner())).sum().backward();
            let mut values = vec![host_values(out.inner())];
            values.extend([q, k, v].map(|x| host_values(x.grad(&grads).unwrap())));
            values
        };
        for (found, due) in of(false).iter().zip(&of(true)) {
            let largest = due.iter().fold(0f32, |m, x| m.max(x.abs()));
            let furthest = found.iter().zip(due).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(furthest > 0.0 && furthest < 0.01 * largest, "{furthest} of {largest}");
        }
    }

    /// More rows than one block of queries, and of keys.
    #[test]
    fn long_sequences_agree_with_their_composition() {
        assert_close(both(&Segments::own(&[3, 301], true), 304, 304, 0.1));
        assert_close(both(&Segments::across(&[290], &[270]), 290, 270, 0.0));
    }

    #[test]
    fn a_sequence_may_be_empty() {
        let segments = Segments::across(&[4, 0, 2], &[5, 3, 0]);
        assert_close(both(&segments, 6, 8, 0.0));
        let values = run(true, &segments, 6, 8, 0.0);
        let [with, dq, dk, dv] = &values[..] else { panic!("an output and three gradients") };
        assert!(with[4 * 24..].iter().chain(&dq[4 * 24..]).all(|&x| x == 0.0));
        assert!(dk[5 * 24..].iter().chain(&dv[5 * 24..]).all(|&x| x == 0.0));
        assert!(with[..4 * 24].iter().all(|&x| x != 0.0));
    }

    #[test]
    fn causal_rows_do_not_see_later_keys() {
        let device = Device::flex().autodiff();
        let segments = Segments::own(&[6], true);
        let mut pass = Pass::evaluation(Compute::FP32);
        let (q, k, v) =
            (draw(1, 6, &device).inner(), draw(2, 6, &device).inner(), draw(3, 6, &device).inner());
        let full = host_values(attention(q.clone(), k.clone(), v.clone(), &segments, 3, 0.0, &mut pass));
        let changed = v.slice_assign([5..6, 0..24], Tensor::ones([1, 24], &Device::flex()) * 100.0);
        let other = host_values(attention(q, k, changed, &segments, 3, 0.0, &mut pass));
        assert_eq!(full[..5 * 24], other[..5 * 24]);
        assert_ne!(full[5 * 24..], other[5 * 24..]);
    }

    #[test]
    fn hypotheses_may_share_their_source() {
        let device = Device::flex().autodiff();
        let shared =
            Segments::new((0..3).map(|i| Segment { query: i, queries: 1, key: 2, keys: 4 }).collect(), false);
        let mut pass = Pass::evaluation(Compute::FP32);
        let (q, k, v) =
            (draw(1, 3, &device).inner(), draw(2, 9, &device).inner(), draw(3, 9, &device).inner());
        let out = host_values(attention(q.clone(), k.clone(), v.clone(), &shared, 3, 0.0, &mut pass));
        let alone = Segments::new(vec![Segment { query: 0, queries: 1, key: 2, keys: 4 }], false);
        let first = host_values(attention(q.narrow(0, 2, 1), k, v, &alone, 3, 0.0, &mut pass));
        assert_eq!(out[2 * 24..], first[..]);
    }
}
