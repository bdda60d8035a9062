//! Context of a query, for the attention of recurrent decoders: softmax over scores, and the sum of
//! values weighted by it.
//!
//! A score is the product of query and key (Luong et al. 2015), or a small network of their sum, w
//! · tanh(query + key) (Bahdanau et al. 2015). Scores are not scaled, and values may have another
//! width than keys. Rows are packed, and [`Segments`] define which keys a query attends to, as in
//! [`super::attention`].
//!
//! In fp16, operands, scores, weights and results of the products are rounded, and so are their
//! gradients. The network sums in FP32, and its scores are rounded. In the other types everything
//! is FP32. The softmax is always FP32.
//!
//! The hidden layer of the network has queries x keys x units values. It is not stored: the
//! backward pass recomputes it.

use std::borrow::Cow;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{Bool, FloatDType, Int, Tensor, TensorData, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::attention::{multiplied, softmax, split_rows};
use super::fp32::{Matrix, Packed};
use super::rounding::Half;
use super::simd::{self, LANES, fma, sum_by, tanh, vectorized};
use super::{Segment, Segments, fp32, has_own_kernels, host, stored};
use crate::precision::{Compute, matmul, to_f32};

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait ContextOp: Backend {
    /// query `[query rows, units]`, key `[key rows, units]`, value `[key rows, width]`, network
    /// `[units]` (or `[0]` for product scores) -> context `[query rows, width]`, and the weights of
    /// each segment, `[queries, keys]`, concatenated.
    fn context(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        network: FloatTensor<Self>,
        segments: Segments,
        with: Rounding,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of query, key and value, in their types, and of the network (`[0]` without one).
    #[allow(clippy::too_many_arguments)]
    fn context_backward(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        network: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        segments: Segments,
        with: Rounding,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Rounding of the operands and results of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounding(Option<Half>);

impl Rounding {
    /// Rounds to fp16 for fp16; otherwise does not round.
    fn of(compute: Compute) -> Self {
        Self((compute.0 == FloatDType::F16).then_some(Half::Fp16))
    }

    fn round(self, values: &mut [f32]) {
        if let Some(half) = self.0 {
            half.round(values);
        }
    }

    /// Returns the rounded values.
    fn rounded<'v>(self, values: &'v [f32]) -> Cow<'v, [f32]> {
        match self.0 {
            None => Cow::Borrowed(values),
            Some(half) => {
                let mut values = values.to_vec();
                half.round(&mut values);
                Cow::Owned(values)
            }
        }
    }
}

/// Rows of the tensors that belong to one segment.
struct Rows<'a> {
    segment: &'a Segment,
    units: usize,
    width: usize,
    query: &'a [f32],
    key: &'a [f32],
    value: &'a [f32],
    network: &'a [f32],
    with: Rounding,
}

impl<'a> Rows<'a> {
    fn new(
        segment: &'a Segment,
        [units, width]: [usize; 2],
        [query, key, value, network]: [&'a [f32]; 4],
        with: Rounding,
    ) -> Self {
        let Segment { query: first, queries, key: first_key, keys } = *segment;
        Self {
            segment,
            units,
            width,
            query: &query[first * units..][..queries * units],
            key: &key[first_key * units..][..keys * units],
            value: &value[first_key * width..][..keys * width],
            network,
            with,
        }
    }

    fn nothing(&self) -> bool {
        self.segment.queries == 0 || self.segment.keys == 0
    }

    fn forward(&self, context: &mut [f32], weights: &mut [f32]) {
        if self.nothing() {
            return context.fill(0.0);
        }
        let Segment { queries, keys, .. } = *self.segment;
        if self.network.is_empty() {
            let key = Packed::columns(&Matrix::rows(self.key, keys, self.units, self.units));
            weights.copy_from_slice(&multiplied(
                &Matrix::rows(self.query, queries, self.units, self.units),
                &key,
            ));
        } else {
            network_scores(weights, self.query, self.key, self.network);
        }
        self.with.round(weights);
        probabilities(weights, keys);
        let value = Packed::columns(&Matrix::columns(self.value, keys, self.width, self.width));
        let weights = self.with.rounded(weights);
        context.copy_from_slice(&multiplied(&Matrix::rows(&weights, queries, keys, keys), &value));
        self.with.round(context);
    }

    /// Writes the gradients of the segment's rows and returns that of the network.
    fn backward(
        &self,
        [of_query, of_key, of_value]: [&mut [f32]; 3],
        weights: &[f32],
        gradient: &[f32],
    ) -> Vec<f32> {
        let mut of_network = vec![0f32; self.network.len()];
        if self.nothing() {
            [of_query, of_key, of_value].into_iter().for_each(|gradient| gradient.fill(0.0));
            return of_network;
        }
        let Segment { query: first, queries, keys, .. } = *self.segment;
        let (units, width) = (self.units, self.width);
        let gradient = self.with.rounded(&gradient[first * width..][..queries * width]);
        let value = Packed::columns(&Matrix::rows(self.value, keys, width, width));
        let mut slopes = multiplied(&Matrix::rows(&gradient, queries, width, width), &value);
        self.with.round(&mut slopes);
        slopes_of_scores(&mut slopes, weights, keys);
        self.with.round(&mut slopes);
        let upstream = Packed::columns(&Matrix::columns(&gradient, queries, width, width));
        let weights = self.with.rounded(weights);
        of_value.copy_from_slice(&multiplied(&Matrix::columns(&weights, queries, keys, keys), &upstream));
        if self.network.is_empty() {
            let key = Packed::columns(&Matrix::columns(self.key, keys, units, units));
            of_query.copy_from_slice(&multiplied(&Matrix::rows(&slopes, queries, keys, keys), &key));
            let query = Packed::columns(&Matrix::columns(self.query, queries, units, units));
            of_key.copy_from_slice(&multiplied(&Matrix::columns(&slopes, queries, keys, keys), &query));
        } else {
            of_query.fill(0.0);
            of_key.fill(0.0);
            network_slopes(&slopes, self.query, self.key, self.network, of_query, of_key, &mut of_network);
        }
        [of_query, of_key, of_value].into_iter().for_each(|gradient| self.with.round(gradient));
        of_network
    }
}

vectorized! {
    /// w · tanh(query + key) of every query and key.
    fn network_scores(scores: &mut [f32], query: &[f32], key: &[f32], network: &[f32]) {
        let units = network.len();
        let keys = key.len() / units;
        for (query, scores) in query.chunks_exact(units).zip(scores.chunks_exact_mut(keys)) {
            for (key, score) in key.chunks_exact(units).zip(scores) {
                let mut lanes = [0f32; LANES];
                let whole = units - units % LANES;
                for first in (0..whole).step_by(LANES) {
                    for (lane, sum) in lanes.iter_mut().enumerate() {
                        let u = first + lane;
                        *sum = fma::<FMA>(network[u], tanh::<FMA>(query[u] + key[u]), *sum);
                    }
                }
                for u in whole..units {
                    lanes[u - whole] = fma::<FMA>(network[u], tanh::<FMA>(query[u] + key[u]), lanes[u - whole]);
                }
                *score = lanes.iter().sum();
            }
        }
    }

    /// Adds the gradients of query, key and network.
    fn network_slopes(
        slopes: &[f32],
        query: &[f32],
        key: &[f32],
        network: &[f32],
        of_query: &mut [f32],
        of_key: &mut [f32],
        of_network: &mut [f32],
    ) {
        let units = network.len();
        let keys = key.len() / units;
        let rows = query.chunks_exact(units).zip(of_query.chunks_exact_mut(units)).zip(slopes.chunks_exact(keys));
        for ((query, of_query), slopes) in rows {
            let columns = key.chunks_exact(units).zip(of_key.chunks_exact_mut(units)).zip(slopes);
            for ((key, of_key), &slope) in columns {
                for u in 0..units {
                    let hidden = tanh::<FMA>(query[u] + key[u]);
                    let inner = slope * network[u] * fma::<FMA>(-hidden, hidden, 1.0);
                    of_query[u] += inner;
                    of_key[u] += inner;
                    of_network[u] = fma::<FMA>(slope, hidden, of_network[u]);
                }
            }
        }
    }

    /// Turns scores into weights, row by row.
    fn probabilities(scores: &mut [f32], keys: usize) {
        scores.chunks_exact_mut(keys).for_each(softmax::<FMA>);
    }

    /// Turns gradients of weights into gradients of scores.
    fn slopes_of_scores(slopes: &mut [f32], weights: &[f32], keys: usize) {
        let _ = FMA;
        let mut products = vec![0f32; keys];
        for (slopes, weights) in slopes.chunks_exact_mut(keys).zip(weights.chunks_exact(keys)) {
            for t in 0..keys {
                products[t] = weights[t] * slopes[t];
            }
            let shift = sum_by(&products, |x| x);
            for t in 0..keys {
                slopes[t] = weights[t] * (slopes[t] - shift);
            }
        }
    }
}

/// Number of weights of each segment.
fn sizes(segments: &Segments) -> impl Iterator<Item = usize> + '_ {
    segments.list.iter().map(|segment| segment.queries * segment.keys)
}

impl ContextOp for Flex {
    fn context(
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        network: FlexTensor,
        segments: Segments,
        with: Rounding,
    ) -> (FlexTensor, FlexTensor) {
        let (rows, sides) = (query.shape()[0], [query.shape()[1], value.shape()[1]]);
        let [query, key, value, network] = [&query, &key, &value, &network].map(host::values);
        let network = with.rounded(&network);
        let mut context = host::room(rows * sides[1]);
        let mut weights = host::room(sizes(&segments).sum());
        let contexts = split_rows(&mut context, segments.list.iter().map(|s| s.queries * sides[1]));
        let pieces: Vec<_> = contexts.into_iter().zip(split_rows(&mut weights, sizes(&segments))).collect();
        pieces.into_par_iter().zip(segments.list.par_iter()).for_each(|((context, weights), segment)| {
            Rows::new(segment, sides, [&query, &key, &value, &network], with).forward(context, weights);
        });
        let count = weights.len();
        (host::stored(context, [rows, sides[1]]), host::stored(weights, [count]))
    }

    fn context_backward(
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        network: FlexTensor,
        weights: FlexTensor,
        gradient: FlexTensor,
        segments: Segments,
        with: Rounding,
    ) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
        let sides = [query.shape()[1], value.shape()[1]];
        let of = [(query.shape(), query.dtype()), (key.shape(), key.dtype()), (value.shape(), value.dtype())];
        let [query, key, value, network] = [&query, &key, &value, &network].map(host::values);
        let network = with.rounded(&network);
        let (weights, gradient) = (host::values(&weights), host::values(&gradient));
        let [mut of_query, mut of_key, mut of_value] = [&query, &key, &value].map(|x| host::room(x.len()));
        let list = &segments.list;
        let queries = split_rows(&mut of_query, list.iter().map(|s| s.queries * sides[0]));
        let keys = split_rows(&mut of_key, list.iter().map(|s| s.keys * sides[0]));
        let values = split_rows(&mut of_value, list.iter().map(|s| s.keys * sides[1]));
        let mut rest = &weights[..];
        let weights = sizes(&segments).map(|n| {
            let (piece, tail) = rest.split_at(n);
            rest = tail;
            piece
        });
        let pieces: Vec<_> = queries.into_iter().zip(keys).zip(values).zip(weights).collect();
        let of_network: Vec<Vec<f32>> = pieces
            .into_par_iter()
            .zip(list.par_iter())
            .map(|((((of_query, of_key), of_value), weights), segment)| {
                Rows::new(segment, sides, [&query, &key, &value, &network], with).backward(
                    [of_query, of_key, of_value],
                    weights,
                    &gradient,
                )
            })
            .collect();
        // Summed in the order of the segments, independent of the order in which they finish.
        let mut sum = vec![0f32; network.len()];
        of_network.iter().for_each(|part| simd::add(&mut sum, part));
        with.round(&mut sum);
        let units = sum.len();
        let [of_query, of_key, of_value] = [of_query, of_key, of_value];
        let [q, k, v] = of;
        (
            host::tensor(of_query, q.0, q.1),
            host::tensor(of_key, k.0, k.1),
            host::tensor(of_value, v.0, v.1),
            host::stored(sum, [units]),
        )
    }
}

impl<B: ContextOp, C: CheckpointStrategy> ContextOp for Autodiff<B, C> {
    fn context(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        network: FloatTensor<Self>,
        segments: Segments,
        with: Rounding,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Asked;
        impl<B: ContextOp> Backward<B, 4> for Asked {
            type State = ([FloatTensor<B>; 5], Segments, Rounding);
            fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let ([query, key, value, network, weights], segments, with) = ops.state;
                let (q, k, v, n) =
                    B::context_backward(query, key, value, network, weights, gradient, segments, with);
                for (parent, gradient) in ops.parents.into_iter().zip([q, k, v, n]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((query, q), (key, k)) = (query.into_parts(), key.into_parts());
        let ((value, v), (network, n)) = (value.into_parts(), network.into_parts());
        let from_inner = <Self as burn::backend::AutodiffBackend>::from_inner;
        match Asked.prepare::<C>([q, k, v, n]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                assert!(segments.keys_are_disjoint(), "a gradient needs every key row in one segment");
                let inputs = [query, key, value, network];
                let [query, key, value, network] = inputs.clone();
                let (context, weights) = B::context(query, key, value, network, segments.clone(), with);
                let [query, key, value, network] = inputs;
                let state = ([query, key, value, network, weights.clone()], segments, with);
                (prep.finish(state, context), from_inner(weights))
            }
            OpsKind::UnTracked(prep) => {
                let (context, weights) = B::context(query, key, value, network, segments, with);
                (prep.finish(context), from_inner(weights))
            }
        }
    }

    fn context_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Segments,
        _: Rounding,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// The context of each query row. query `[query rows, units]`, key `[key rows, units]` and value
/// `[key rows, width]` in any float types -> context `[query rows, width]` FP32, and the weights of
/// each segment, `[queries, keys]`, concatenated. With a `network` `[units]` FP32, scores are those
/// of the network; otherwise they are products. In fp16 the inputs and the result hold FP16 values
/// ([`stored`]).
///
/// # Panics
/// If shapes do not fit, or if segments are causal.
pub fn context(
    query: Tensor<2>,
    key: Tensor<2>,
    value: Tensor<2>,
    network: Option<Tensor<1>>,
    segments: &Segments,
    compute: Compute,
) -> (Tensor<2>, Tensor<1>) {
    assert!(!segments.causal, "a decoder may look at all of the source");
    assert_eq!(query.dims()[1], key.dims()[1], "queries and keys have one width");
    assert_eq!(key.dims()[0], value.dims()[0], "a value for every key");
    if has_own_kernels(&query.device()) && fp32::available() {
        let device = query.device();
        let network = network.unwrap_or_else(|| Tensor::empty([0], &device));
        let (context, weights) = Dispatch::context(
            query.into_dispatch(),
            key.into_dispatch(),
            value.into_dispatch(),
            network.into_dispatch(),
            segments.clone(),
            Rounding::of(compute),
        );
        return (Tensor::from_dispatch(context), Tensor::from_dispatch(weights));
    }
    composed(query, key, value, network, segments, compute)
}

/// Composition with padding to `[segments, queries, keys]`.
fn composed(
    query: Tensor<2>,
    key: Tensor<2>,
    value: Tensor<2>,
    network: Option<Tensor<1>>,
    segments: &Segments,
    compute: Compute,
) -> (Tensor<2>, Tensor<1>) {
    // In fp16 a product has that type; values other than products are rounded by `stored`.
    let product = if compute.0 == FloatDType::F16 { compute } else { Compute::FP32 };
    let multiplied = |a: Tensor<3>, b: Tensor<3>| to_f32(matmul(product.cast(a), product.cast(b)));
    let [query, key, value] = [query, key, value].map(to_f32);
    let network = network.map(|network| stored(network, compute));
    let list = &segments.list;
    let device = query.device();
    let ([rows, units], [key_rows, width]) = (query.dims(), value.dims());
    let (n, queries) = (list.len(), list.iter().map(|s| s.queries).max().unwrap_or(0));
    let keys = segments.longest_key;
    if rows == 0 || keys == 0 {
        return (Tensor::zeros([rows, width], &device), Tensor::zeros([0], &device));
    }
    let (mut query_index, mut key_index) = (Vec::new(), Vec::new());
    let (mut hidden, mut places) = (Vec::new(), Vec::new());
    let mut back = vec![0i32; rows];
    for (s, segment) in list.iter().enumerate() {
        // Places where a segment has no row are masked or not read.
        for i in 0..queries {
            query_index.push((segment.query + i.min(segment.queries.saturating_sub(1))).min(rows - 1) as i32);
            if i < segment.queries {
                back[segment.query + i] = (s * queries + i) as i32;
                places.extend((0..segment.keys).map(|t| (((s * queries + i) * keys) + t) as i32));
            }
            hidden.extend((0..keys).map(|t| t >= segment.keys));
        }
        key_index.extend((0..keys).map(|t| {
            (segment.key + t.min(segment.keys.saturating_sub(1))).min(key_rows.saturating_sub(1)) as i32
        }));
    }
    let ints = |values: Vec<i32>| {
        let len = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [len]), &device)
    };
    let query = query.select(0, ints(query_index)).reshape([n, queries, units]);
    let key = key.select(0, ints(key_index.clone())).reshape([n, keys, units]);
    let value = value.select(0, ints(key_index)).reshape([n, keys, width]);
    let scores = match network {
        None => multiplied(query, key.swap_dims(1, 2)),
        Some(network) => {
            let sums = query.unsqueeze_dim::<4>(2) + key.unsqueeze_dim::<4>(1);
            stored((sums.tanh() * network.reshape([1, 1, 1, units])).sum_dim(3).squeeze_dim(3), compute)
        }
    };
    let hidden = Tensor::<3, Bool>::from_data(TensorData::new(hidden, [n, queries, keys]), &device);
    let weights = activation::softmax(scores.mask_fill(hidden.clone(), -1e9), 2).mask_fill(hidden, 0.0);
    let context = multiplied(weights.clone(), value).reshape([n * queries, width]);
    let weights = weights.reshape([n * queries * keys]).select(0, ints(places));
    (context.select(0, ints(back)), weights.detach())
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;
    use crate::random::Key;

    const UNITS: usize = 21;
    const WIDTH: usize = 10;

    fn draw<const D: usize>(stream: u64, shape: [usize; D]) -> Tensor<D> {
        let key = Key::new(8, stream, 0);
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff()).require_grad()
    }

    /// Context, weights, and the gradients of query, key, value and network.
    fn run(
        own: bool,
        network: bool,
        segments: &Segments,
        (rows, keys): (usize, usize),
        compute: Compute,
    ) -> Vec<Vec<f32>> {
        let (q, k, v) = (draw(1, [rows, UNITS]), draw(2, [keys, UNITS]), draw(3, [keys, WIDTH]));
        let w = network.then(|| draw(5, [UNITS]));
        let upstream = draw(4, [rows, WIDTH]).inner();
        let ask = if own { context } else { composed };
        let [query, key, value] = [&q, &k, &v].map(|x| stored(x.clone(), compute));
        let (context, weights) = ask(query, key, value, w.clone(), segments, compute);
        let grads = (context.clone() * Tensor::from_inner(upstream)).sum().backward();
        let mut values = vec![host_values(context.inner()), host_values(weights.inner())];
        values.extend([q, k, v].map(|x| host_values(x.grad(&grads).unwrap())));
        values.extend(w.map(|w| host_values(w.grad(&grads).unwrap())));
        values
    }

    /// FP32 sums of up to 41 x 33 products of order 1, in different orders; in fp16 up to the unit
    /// of a few roundings more.
    fn assert_agree(segments: &Segments, rows: usize, keys: usize) {
        for (compute, limit) in [(Compute::FP32, 5e-5), (Compute(FloatDType::F16), 8e-3)] {
            for network in [false, true] {
                let [own, composed] =
                    [true, false].map(|own| run(own, network, segments, (rows, keys), compute));
                assert_eq!(own.len(), if network { 6 } else { 5 });
                for (own, composed) in own.iter().zip(&composed) {
                    assert_eq!(own.len(), composed.len());
                    for (a, b) in own.iter().zip(composed) {
                        assert!((a - b).abs() < limit * (1.0 + b.abs()), "{compute:?}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn kernels_agree_with_their_composition() {
        assert_agree(&Segments::across(&[5, 1, 20], &[7, 33, 2]), 26, 42);
        assert_agree(&Segments::across(&[41], &[33]), 41, 33);
    }

    #[test]
    fn a_sequence_may_be_empty() {
        let segments = Segments::across(&[4, 0, 2], &[5, 3, 0]);
        assert_agree(&segments, 6, 8);
        let values = run(true, true, &segments, (6, 8), Compute::FP32);
        assert!(values[0][4 * WIDTH..].iter().all(|&x| x == 0.0));
        assert_eq!(values[1].len(), 20);
    }

    #[test]
    fn weights_of_a_row_sum_to_one() {
        let values = run(true, true, &Segments::across(&[2, 3], &[4, 6]), (5, 10), Compute::FP32);
        let (first, second) = values[1].split_at(8);
        for row in first.chunks(4).chain(second.chunks(6)) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn hypotheses_may_share_their_source() {
        let shared = (0..3).map(|i| Segment { query: i, queries: 1, key: 2, keys: 4 }).collect();
        let (q, k, v) =
            (draw(1, [3, UNITS]).inner(), draw(2, [9, UNITS]).inner(), draw(3, [9, WIDTH]).inner());
        let all =
            context(q.clone(), k.clone(), v.clone(), None, &Segments::new(shared, false), Compute::FP32).0;
        let one = Segments::new(vec![Segment { query: 0, queries: 1, key: 2, keys: 4 }], false);
        let alone = context(q.narrow(0, 2, 1), k, v, None, &one, Compute::FP32).0;
        assert_eq!(host_values(all)[2 * WIDTH..], host_values(alone)[..]);
    }
}
