//! The attention loop as one operation of the backend and of autodiff.

use std::sync::{Arc, PoisonError};

use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::Plan;
use super::backward::backward;
use super::forward::{Given, Sizes, forward};
use crate::host;

/// Gradients of all inputs, in order.
type Ten<B> = (
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
);

/// The operation on backends with custom kernels. With one layer, empty tensors take the place of
/// the second.
#[backend_extension(Flex, Autodiff)]
#[allow(clippy::too_many_arguments)]
pub trait AttentiveOp: Backend {
    /// The results of [`super::attentive_lstm`], concatenated.
    fn attentive(
        gates: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        second_bias: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        query: FloatTensor<Self>,
        filter: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self>;

    /// Gradients of the inputs, from the outputs and their gradient. The gates are not needed
    /// again.
    #[allow(clippy::type_complexity)]
    fn attentive_backward(
        out: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        second_bias: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        query: FloatTensor<Self>,
        filter: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        plan: Plan,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    );
}

/// Values of the parameters and the source.
struct Read<'a>([std::borrow::Cow<'a, [f32]>; 9]);

impl<'a> Read<'a> {
    fn new(tensors: [&'a FlexTensor; 9]) -> Self {
        Self(tensors.map(host::values))
    }

    fn given(&self) -> Given<'_> {
        let [first, second, second_bias, keys, values, query, filter, bias, vector] = &self.0;
        let layers = [first, second].into_iter().filter(|weight| !weight.is_empty());
        Given {
            layers: layers.map(|weight| &**weight).collect(),
            second_bias,
            keys,
            values,
            query,
            filter,
            bias,
            vector,
        }
    }
}

impl AttentiveOp for Flex {
    fn attentive(
        gates: FlexTensor,
        first: FlexTensor,
        second: FlexTensor,
        second_bias: FlexTensor,
        keys: FlexTensor,
        values: FlexTensor,
        query: FlexTensor,
        filter: FlexTensor,
        bias: FlexTensor,
        vector: FlexTensor,
        plan: Plan,
    ) -> FlexTensor {
        let (units, hidden, width) = (query.shape()[0], query.shape()[1], values.shape()[1]);
        let sizes = Sizes::new(gates.shape()[0], hidden, units, width, &plan.lengths);
        let read =
            Read::new([&first, &second, &second_bias, &keys, &values, &query, &filter, &bias, &vector]);
        let done = forward(host::into_values(gates), &read.given(), &sizes, &plan);
        if let Some(slot) = &plan.kept {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done.kept);
        }
        let mut out = done.out;
        out.extend_from_slice(&done.weights);
        let values = out.len();
        host::stored(out, [values])
    }

    fn attentive_backward(
        out: FlexTensor,
        gradient: FlexTensor,
        first: FlexTensor,
        second: FlexTensor,
        second_bias: FlexTensor,
        keys: FlexTensor,
        values: FlexTensor,
        query: FlexTensor,
        filter: FlexTensor,
        bias: FlexTensor,
        vector: FlexTensor,
        plan: Plan,
    ) -> Ten<Self> {
        let (units, hidden, width) = (query.shape()[0], query.shape()[1], values.shape()[1]);
        // A row of `out` for each step of each sequence, and for each step a weight of each row of
        // the sources.
        let (all, count) = (keys.shape()[0], plan.lengths.len());
        let steps = out.shape()[0] / (count * (hidden + width) + all);
        let sizes = Sizes::new(count * steps, hidden, units, width, &plan.lengths);
        let read =
            Read::new([&first, &second, &second_bias, &keys, &values, &query, &filter, &bias, &vector]);
        let slot = plan.kept.as_ref().expect("the forward pass was tracked");
        let kept = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = kept.expect("one backward pass of a forward pass");
        let (out, gradient) = (host::values(&out), host::values(&gradient));
        let first_weight = count * steps * (hidden + width);
        let (came, of) = (out.split_at(first_weight), gradient.split_at(first_weight));
        let found = backward(came, of, kept, &read.given(), &sizes, &plan);
        let mut layers = found.layers.into_iter();
        let like = |values: Vec<f32>, tensor: &FlexTensor| host::stored(values, tensor.shape());
        (
            host::stored(found.gates, [count * steps, 4 * hidden]),
            like(layers.next().unwrap_or_default(), &first),
            like(layers.next().unwrap_or_default(), &second),
            like(found.second_bias, &second_bias),
            like(found.keys, &keys),
            like(found.values, &values),
            like(found.query, &query),
            like(found.filter, &filter),
            like(found.bias, &bias),
            like(found.vector, &vector),
        )
    }
}

impl<B: AttentiveOp, C: CheckpointStrategy> AttentiveOp for Autodiff<B, C> {
    fn attentive(
        gates: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        second_bias: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        query: FloatTensor<Self>,
        filter: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        mut plan: Plan,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Looked;
        impl<B: AttentiveOp> Backward<B, 10> for Looked {
            type State = (FloatTensor<B>, [FloatTensor<B>; 9], Plan);
            fn backward(self, ops: Ops<Self::State, 10>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (out, given, plan) = ops.state;
                let [first, second, second_bias, keys, values, query, filter, bias, vector] = given;
                let (g, w1, w2, b2, k, v, q, f, b, n) = B::attentive_backward(
                    out,
                    gradient,
                    first,
                    second,
                    second_bias,
                    keys,
                    values,
                    query,
                    filter,
                    bias,
                    vector,
                    plan,
                );
                for (parent, gradient) in ops.parents.into_iter().zip([g, w1, w2, b2, k, v, q, f, b, n]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let mut nodes = Vec::with_capacity(10);
        let mut inner = |tensor: FloatTensor<Self>| {
            let (tensor, node) = tensor.into_parts();
            nodes.push(node);
            tensor
        };
        let gates = inner(gates);
        let given = [first, second, second_bias, keys, values, query, filter, bias, vector].map(&mut inner);
        let nodes = nodes.try_into().unwrap_or_else(|_| unreachable!("ten went in"));
        let run = |gates: FloatTensor<B>, given: [FloatTensor<B>; 9], plan: Plan| {
            let [first, second, second_bias, keys, values, query, filter, bias, vector] = given;
            B::attentive(gates, first, second, second_bias, keys, values, query, filter, bias, vector, plan)
        };
        match Looked.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                plan.kept = Some(Arc::default());
                let out = run(gates, given.clone(), plan.clone());
                prep.finish((out.clone(), given, plan), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(run(gates, given, plan)),
        }
    }

    fn attentive_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Plan,
    ) -> Ten<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}
