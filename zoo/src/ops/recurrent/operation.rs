//! The recurrence as one operation of the backend and of autodiff.

use std::sync::{Arc, Mutex};

use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::DType;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::backward::{Given, backward};
use super::cells::{Gru, Lstm};
use super::forward::forward;
use super::{Kind, Sequences};
use crate::ops::host;
use crate::ops::linear::Products;

/// What the kernels need besides tensors.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub sequences: Sequences,
    pub with: Products,
    /// Type of the outputs.
    pub out: DType,
}

/// The operation on backends with own kernels, for CPUs with the instructions for it.
#[backend_extension(Flex, Autodiff)]
pub trait RecurrentOp: Backend {
    /// Gates [rows, gates x hidden] FP32 or bf16; weight [gates x hidden, hidden], bias [gates x hidden] (or [0]: none) and initial states
    /// [states x sequences, hidden] (or [0, hidden]: zeros) FP32 -> outputs [rows, hidden], last states.
    fn recurrent(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The same, and what the backward pass needs: gates as they acted, what cells kept, outputs, all FP32.
    #[allow(clippy::type_complexity)]
    fn recurrent_kept(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of gates (in their type), weight, bias ([0] where there is none) and initial states ([0, hidden] where there are none).
    /// `of_out` may be [0, hidden]: zeros.
    #[allow(clippy::too_many_arguments)]
    fn recurrent_backward(
        gates: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        of_out: FloatTensor<Self>,
        of_last: FloatTensor<Self>,
        biased: bool,
        gates_type: DType,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl RecurrentOp for Flex {
    fn recurrent(
        gates: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        initial: FlexTensor,
        plan: Plan,
    ) -> (FlexTensor, FlexTensor) {
        let (out, last, ..) = Self::recurrent_kept(gates, weight, bias, initial, plan);
        (out, last)
    }

    fn recurrent_kept(
        gates: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        initial: FlexTensor,
        plan: Plan,
    ) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
        let (rows, hidden, width) = (gates.shape()[0], weight.shape()[1], weight.shape()[0]);
        let states = plan.kind.states() * plan.sequences.count();
        let gates = host::into_values(gates);
        let (weight, bias, initial) = (host::values(&weight), host::values(&bias), host::values(&initial));
        let walk = match plan.kind {
            Kind::Lstm => forward::<Lstm, 4>,
            Kind::Gru => forward::<Gru, 3>,
        };
        let done = walk(gates, &weight, &bias, &initial, hidden, &plan.sequences, plan.with);
        let wide = host::stored(done.out, [rows, hidden]);
        let out = match plan.out {
            DType::F32 => wide.clone(),
            other => host::tensor(host::values(&wide).into_owned(), [rows, hidden], other),
        };
        (
            out,
            host::stored(done.last, [states, hidden]),
            host::stored(done.gates, [rows, width]),
            host::stored(done.kept, [rows, hidden]),
            wide,
        )
    }

    fn recurrent_backward(
        gates: FlexTensor,
        kept: FlexTensor,
        out: FlexTensor,
        weight: FlexTensor,
        initial: FlexTensor,
        of_out: FlexTensor,
        of_last: FlexTensor,
        biased: bool,
        gates_type: DType,
        plan: Plan,
    ) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
        let (shape, hidden) = (gates.shape(), weight.shape()[1]);
        let of_out = if of_out.is_contiguous() { of_out } else { of_out.to_contiguous() };
        let (weight_values, initial_values) = (host::values(&weight), host::values(&initial));
        let given = Given {
            gates: host::into_values(gates),
            kept: host::into_values(kept),
            out: &host::values(&out),
            weight: &weight_values,
            biased,
            initial: &initial_values,
            of_out: (of_out.shape()[0] > 0).then(|| host::Source::new(&of_out)),
            of_last: &host::values(&of_last),
        };
        let walk = match plan.kind {
            Kind::Lstm => backward::<Lstm, 4>,
            Kind::Gru => backward::<Gru, 3>,
        };
        let found = walk(given, hidden, &plan.sequences, plan.with);
        let biases = found.bias.len();
        (
            host::tensor(found.gates, shape, gates_type),
            host::stored(found.weight, weight.shape()),
            host::stored(found.bias, [biases]),
            host::stored(found.initial, initial.shape()),
        )
    }
}

/// What the forward pass leaves for the backward pass.
#[derive(Debug, Clone)]
struct Saved<B: Backend> {
    gates: FloatTensor<B>,
    kept: FloatTensor<B>,
    out: FloatTensor<B>,
    weight: FloatTensor<B>,
    initial: FloatTensor<B>,
    biased: bool,
    gates_type: DType,
    plan: Plan,
    of_out: Arrived<B>,
}

/// The gradient of the outputs, on its way from their node to the node of the whole.
type Arrived<B> = Arc<Mutex<Option<FloatTensor<B>>>>;

impl<B: RecurrentOp, C: CheckpointStrategy> RecurrentOp for Autodiff<B, C> {
    /// A node has one output. The whole has two, and is the node of the last states; the node of the outputs is a child of it that
    /// passes its gradient by.
    fn recurrent(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Whole;
        impl<B: RecurrentOp> Backward<B, 4> for Whole {
            type State = Saved<B>;
            fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
                let of_last = grads.consume::<B>(&ops.node);
                let saved = ops.state;
                let of_out = saved.of_out.lock().expect("no task panics with it").take();
                let of_out = of_out.unwrap_or_else(|| {
                    let hidden = saved.weight.shape()[1];
                    B::float_zeros([0, hidden].into(), &of_last.device(), DType::F32.into())
                });
                let (dx, dw, db, ds) = B::recurrent_backward(
                    saved.gates,
                    saved.kept,
                    saved.out,
                    saved.weight,
                    saved.initial,
                    of_out,
                    of_last,
                    saved.biased,
                    saved.gates_type,
                    saved.plan,
                );
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dw, db, ds]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        #[derive(Debug)]
        struct Outputs;
        impl<B: RecurrentOp> Backward<B, 1> for Outputs {
            type State = (Arrived<B>, FloatTensor<B>);
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (arrived, last) = ops.state;
                *arrived.lock().expect("no task panics with it") = Some(gradient);
                if let [Some(whole)] = ops.parents {
                    let nothing = B::float_zeros(last.shape(), &last.device(), DType::F32.into());
                    grads.register::<B>(whole.id, nothing);
                }
            }
        }
        let ((gates, gates_node), (weight, weight_node)) = (gates.into_parts(), weight.into_parts());
        let ((bias, bias_node), (initial, initial_node)) = (bias.into_parts(), initial.into_parts());
        let nodes = [gates_node, weight_node, bias_node, initial_node];
        match Whole.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (biased, gates_type) = (bias.shape()[0] > 0, gates.dtype());
                let (out, last, gates, kept, wide) =
                    B::recurrent_kept(gates, weight.clone(), bias, initial.clone(), plan.clone());
                let of_out = Arrived::<B>::default();
                let arriving = of_out.clone();
                let saved =
                    Saved { gates, kept, out: wide, weight, initial, biased, gates_type, plan, of_out };
                let whole = prep.finish(saved, last);
                let (last, node) = whole.clone().into_parts();
                match Outputs.prepare::<C>([node]).compute_bound().stateful() {
                    OpsKind::Tracked(prep) => (prep.finish((arriving, last), out), whole),
                    OpsKind::UnTracked(prep) => (prep.finish(out), whole),
                }
            }
            OpsKind::UnTracked(prep) => {
                let (out, last) = B::recurrent(gates, weight, bias, initial, plan);
                (<Self as burn::backend::AutodiffBackend>::from_inner(out), prep.finish(last))
            }
        }
    }

    fn recurrent_kept(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("what is kept for a backward pass is kept by the inner backend")
    }

    fn recurrent_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: bool,
        _: DType,
        _: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}
