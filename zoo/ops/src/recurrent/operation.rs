//! The recurrence as one operation of the backend and of autodiff.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::DType;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::backward::{Given, backward};
use super::cells::{Gru, HardLstm, Lstm};
use super::forward::forward;
use super::{Kind, Sequences};
use crate::dropout::Mask;
use crate::host;
use crate::linear::Products;
use crate::precision::Compute;

/// Arguments of the kernels besides tensors.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub sequences: Sequences,
    /// Type of the products and of the outputs. A CPU must have the instructions for it.
    pub compute: Compute,
    /// Whether there is a bias; otherwise any tensor takes its place.
    pub biased: bool,
    /// Whether there are initial states; otherwise any tensor takes their place.
    pub given: bool,
    /// Dropout mask of the outputs, which the next step reads after dropout. Only on a CPU.
    pub mask: Option<Mask>,
}

impl Plan {
    fn products(&self) -> Products {
        Products::of(self.compute).expect("the instructions were looked for")
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RecurrentOp: Backend {
    /// Gates `[rows, gates x hidden]` FP32 or half; weight `[gates x hidden, hidden]`, bias
    /// `[gates x hidden]` and initial states `[states x sequences, hidden]` FP32 -> outputs
    /// `[rows, hidden]`, last states.
    #[fusion(meta = |gates, weight, _, _, plan| metadata::outputs(gates, weight, plan))]
    fn recurrent(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The results of `recurrent`, and the values that the backward pass needs: gates after their
    /// activations, kept values of cells, and outputs, all FP32.
    #[allow(clippy::type_complexity)]
    #[fusion(meta = |gates, weight, _, _, plan| metadata::kept(gates, weight, plan))]
    fn recurrent_kept(
        gates: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of gates (in their type), weight, bias and initial states; any tensor in place of
    /// a missing bias or state. If not `asked`, outputs have no gradient, and any tensor takes its
    /// place.
    #[fusion(meta = |gates, _, _, weight, initial, _, of_last, _, gates_type, plan| {
        metadata::gradients(gates, weight, initial, of_last, *gates_type, plan)
    })]
    #[allow(clippy::too_many_arguments)]
    fn recurrent_backward(
        gates: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        initial: FloatTensor<Self>,
        of_out: FloatTensor<Self>,
        of_last: FloatTensor<Self>,
        asked: bool,
        gates_type: DType,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Shapes and types of the results, which fusion needs before they are computed.
#[cfg(feature = "fusion")]
mod metadata {
    use burn::backend::fusion::custom::TensorSpec;
    use burn::tensor::DType;

    use super::Plan;

    fn wide(shape: [usize; 2]) -> TensorSpec {
        TensorSpec::new(shape.into(), DType::F32)
    }

    pub fn outputs(gates: &TensorSpec, weight: &TensorSpec, plan: &Plan) -> (TensorSpec, TensorSpec) {
        let (rows, hidden) = (gates.shape[0], weight.shape[1]);
        let out = TensorSpec::new([rows, hidden].into(), DType::from(plan.compute.0));
        (out, wide([plan.kind.states() * plan.sequences.count(), hidden]))
    }

    pub fn kept(
        gates: &TensorSpec,
        weight: &TensorSpec,
        plan: &Plan,
    ) -> (TensorSpec, TensorSpec, TensorSpec, TensorSpec, TensorSpec) {
        let (rows, [width, hidden]) = (gates.shape[0], [weight.shape[0], weight.shape[1]]);
        let (out, last) = outputs(gates, weight, plan);
        (out, last, wide([rows, width]), wide([rows, hidden]), wide([rows, hidden]))
    }

    pub fn gradients(
        gates: &TensorSpec,
        weight: &TensorSpec,
        initial: &TensorSpec,
        of_last: &TensorSpec,
        gates_type: DType,
        plan: &Plan,
    ) -> (TensorSpec, TensorSpec, TensorSpec, TensorSpec) {
        let bias = if plan.biased { [weight.shape[0]].into() } else { of_last.shape.clone() };
        let initial = if plan.given { initial } else { of_last };
        (
            TensorSpec::new(gates.shape.clone(), gates_type),
            wide([weight.shape[0], weight.shape[1]]),
            TensorSpec::new(bias, DType::F32),
            TensorSpec::new(initial.shape.clone(), DType::F32),
        )
    }
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
        let weight = host::values(&weight);
        let bias = if plan.biased { host::values(&bias) } else { Cow::default() };
        let initial = if plan.given { host::values(&initial) } else { Cow::default() };
        let walk = match plan.kind {
            Kind::Lstm => forward::<Lstm, 4>,
            Kind::HardLstm => forward::<HardLstm, 4>,
            Kind::Gru => forward::<Gru, 3>,
        };
        let done =
            walk(gates, &weight, &bias, &initial, hidden, (&plan.sequences, plan.mask), plan.products());
        let wide = host::stored(done.out, [rows, hidden]);
        let out = match DType::from(plan.compute.0) {
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
        asked: bool,
        gates_type: DType,
        plan: Plan,
    ) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
        let (shape, hidden) = (gates.shape(), weight.shape()[1]);
        let of_out = if of_out.is_contiguous() { of_out } else { of_out.to_contiguous() };
        let weight_values = host::values(&weight);
        let initial_values = if plan.given { host::values(&initial) } else { Cow::default() };
        let given = Given {
            gates: host::into_values(gates),
            kept: host::into_values(kept),
            out: &host::values(&out),
            weight: &weight_values,
            biased: plan.biased,
            initial: &initial_values,
            of_out: asked.then(|| host::Source::new(&of_out)),
            of_last: &host::values(&of_last),
        };
        let walk = match plan.kind {
            Kind::Lstm => backward::<Lstm, 4>,
            Kind::HardLstm => backward::<HardLstm, 4>,
            Kind::Gru => backward::<Gru, 3>,
        };
        let found = walk(given, hidden, (&plan.sequences, plan.mask), plan.products());
        let (biases, initial) = (found.bias.len(), [found.initial.len() / hidden, hidden]);
        (
            host::tensor(found.gates, shape, gates_type),
            host::stored(found.weight, weight.shape()),
            host::stored(found.bias, [biases]),
            host::stored(found.initial, initial),
        )
    }
}

/// Values of the forward pass that the backward pass needs.
#[derive(Debug, Clone)]
struct Saved<B: Backend> {
    gates: FloatTensor<B>,
    kept: FloatTensor<B>,
    out: FloatTensor<B>,
    weight: FloatTensor<B>,
    initial: FloatTensor<B>,
    gates_type: DType,
    plan: Plan,
    of_out: Arrived<B>,
}

/// The gradient of the outputs, passed from their node to the node of the whole operation.
type Arrived<B> = Arc<Mutex<Option<FloatTensor<B>>>>;

impl<B: RecurrentOp, C: CheckpointStrategy> RecurrentOp for Autodiff<B, C> {
    /// A node has one output, but the operation has two. Its node is that of the last states. The
    /// node of the outputs is a child that passes its gradient to it.
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
                let asked = of_out.is_some();
                let of_out = of_out.unwrap_or_else(|| of_last.clone());
                let (dx, dw, db, ds) = B::recurrent_backward(
                    saved.gates,
                    saved.kept,
                    saved.out,
                    saved.weight,
                    saved.initial,
                    of_out,
                    of_last,
                    asked,
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
                let gates_type = gates.dtype();
                let (out, last, gates, kept, wide) =
                    B::recurrent_kept(gates, weight.clone(), bias, initial.clone(), plan.clone());
                let of_out = Arrived::<B>::default();
                let arriving = of_out.clone();
                let saved = Saved { gates, kept, out: wide, weight, initial, gates_type, plan, of_out };
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
