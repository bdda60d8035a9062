//! Observation of layers' outputs and of their gradients.
//!
//! A forward pass may have an [`Observation`] (see [`Pass::observed`](crate::Pass::observed)). Then
//! the operations with a weight, and attention, hand the gradient of their output to its receiver
//! when the backward pass computes it: linear layers, convolutions, LSTM, GRU, attention and the
//! attentive decoder loop. A receiver may ask for the output's values, too; it is handed these in
//! the forward pass. Norms, activation functions, embeddings and sums are not observed. Values and
//! gradients are the same with and without an observation.
//!
//! An output has the name of the operation's weight: the path of the parameter without `.weight`.
//! Outputs of several calls with one weight, such as the steps of a loop, share its name. An
//! operation without a parameter of the module is named by its kind and its number among these, in
//! the order of the calls.
//!
//! Only devices with the CPU kernels are observed.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension, tensor::FloatTensor};
use burn::module::Module;
use burn::tensor::Tensor;
use burn_autodiff::NodeId;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::identity::node;
use super::{has_own_kernels, host, parameters};

/// Receiver of the gradients of layers' outputs, and of the outputs if it asks for them.
pub trait OutputReceiver: Debug + Send + Sync {
    /// Whether [`Self::computed`] is called. If not, the values of an output are not read.
    fn wants_values(&self) -> bool {
        false
    }

    /// Called in the forward pass with the values of an output, in FP32.
    fn computed(&self, _layer: &str, _values: &[f32]) {}

    /// Called in the backward pass with the gradient of an output, in FP32. It is that of the loss
    /// that the backward pass started from, so a loss scale is in it.
    fn received(&self, layer: &str, gradient: &[f32]);
}

/// The observation of one forward pass and its backward pass. Clones share their state.
#[derive(Debug, Clone)]
pub struct Observation {
    receiver: Arc<dyn OutputReceiver>,
    names: Arc<Mutex<Names>>,
}

/// Names of outputs.
#[derive(Debug, Default)]
struct Names {
    of_parameters: HashMap<NodeId, String>,
    /// Number of outputs of each kind that have no parameter.
    unnamed: HashMap<&'static str, usize>,
}

impl Observation {
    /// An observation of a pass of this module.
    pub fn of<M: Module>(module: &M, receiver: Arc<dyn OutputReceiver>) -> Self {
        let named = parameters::nodes(module).into_iter().map(|(path, node)| {
            let layer = path.strip_suffix(".weight").unwrap_or(&path);
            (node, layer.to_owned())
        });
        let names = Names { of_parameters: named.collect(), ..Names::default() };
        Self { receiver, names: Arc::new(Mutex::new(names)) }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a tensor that was computed from a parameter the parameter's name.
    pub(crate) fn derive<const D: usize, const E: usize>(&self, from: &Tensor<D>, to: &Tensor<E>) {
        let mut names = self.names();
        if let (Some(from), Some(to)) = (node(from), node(to))
            && let Some(name) = names.of_parameters.get(&from).cloned()
        {
            names.of_parameters.insert(to, name);
        }
    }

    /// The output of an operation with this weight, or with this input if it has no weight. `None` on
    /// a device that is not observed.
    pub(crate) fn output<const D: usize>(&self, kind: &'static str, weight: &Tensor<D>) -> Option<Site> {
        if !has_own_kernels(&weight.device()) {
            return None;
        }
        let mut names = self.names();
        let layer = match node(weight).and_then(|weight| names.of_parameters.get(&weight).cloned()) {
            Some(name) => name,
            None => {
                let number = names.unnamed.entry(kind).or_default();
                *number += 1;
                format!("{kind} {number}")
            }
        };
        Some(Site { layer: layer.into(), receiver: Arc::clone(&self.receiver) })
    }
}

/// An observed output.
#[derive(Debug, Clone)]
pub struct Site {
    layer: Arc<str>,
    receiver: Arc<dyn OutputReceiver>,
}

/// The output `out` of an operation. With a site, its gradient is handed to the site's receiver, and
/// its values if the receiver asks for them.
pub fn observed<const D: usize>(out: Tensor<D>, site: Option<Site>) -> Tensor<D> {
    match site {
        Some(site) => Tensor::from_dispatch(Dispatch::watched(out.into_dispatch(), site)),
        None => out,
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait ObservedOp: Backend {
    /// x. Its values go to the receiver if it asks for them. Under autodiff, its gradient goes to the
    /// receiver.
    fn watched(x: FloatTensor<Self>, site: Site) -> FloatTensor<Self>;

    /// The gradient, which is handed to the receiver.
    fn handed_over(gradient: FloatTensor<Self>, site: Site) -> FloatTensor<Self>;
}

impl ObservedOp for Flex {
    fn watched(x: FloatTensor<Self>, site: Site) -> FloatTensor<Self> {
        if site.receiver.wants_values() {
            site.receiver.computed(&site.layer, &host::values(&x));
        }
        x
    }

    fn handed_over(gradient: FloatTensor<Self>, site: Site) -> FloatTensor<Self> {
        site.receiver.received(&site.layer, &host::values(&gradient));
        gradient
    }
}

impl<B: ObservedOp, C: CheckpointStrategy> ObservedOp for Autodiff<B, C> {
    fn watched(x: FloatTensor<Self>, site: Site) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Watched;
        impl<B: ObservedOp> Backward<B, 1> for Watched {
            type State = Site;
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = B::handed_over(grads.consume::<B>(&ops.node), ops.state);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, gradient);
                }
            }
        }
        let (x, node) = x.into_parts();
        let x = B::watched(x, site.clone());
        match Watched.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(site, x),
            OpsKind::UnTracked(prep) => prep.finish(x),
        }
    }

    fn handed_over(_: FloatTensor<Self>, _: Site) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::{Device, FloatDType, TensorData};

    use super::*;
    use crate::Pass;
    use crate::parameters::host_values;
    use crate::precision::{Compute, to_f32};
    use crate::random::Key;
    use crate::{
        AttentiveLayer, AttentiveSpec, AttentiveWeights, Axis, Geometry, Segments, Sequences, Source,
        attention, attentive_lstm, convolution, gru, linear, lstm,
    };

    /// Layers with their values, in order.
    type Layers = Mutex<Vec<(String, Vec<f32>)>>;

    /// Everything that is received.
    #[derive(Debug, Default)]
    struct Received {
        gradients: Layers,
        /// Values of outputs; `None` if they are not asked for.
        values: Option<Layers>,
    }

    impl Received {
        fn with_values() -> Self {
            Self { values: Some(Mutex::default()), ..Self::default() }
        }

        fn take(&self) -> Vec<(String, Vec<f32>)> {
            std::mem::take(&mut *self.gradients.lock().unwrap())
        }

        fn take_values(&self) -> Vec<(String, Vec<f32>)> {
            std::mem::take(&mut *self.values.as_ref().unwrap().lock().unwrap())
        }
    }

    impl OutputReceiver for Received {
        fn wants_values(&self) -> bool {
            self.values.is_some()
        }

        fn computed(&self, layer: &str, values: &[f32]) {
            let all = self.values.as_ref().expect("not asked for");
            all.lock().unwrap().push((layer.to_owned(), values.to_vec()));
        }

        fn received(&self, layer: &str, gradient: &[f32]) {
            self.gradients.lock().unwrap().push((layer.to_owned(), gradient.to_vec()));
        }
    }

    #[derive(Module, Debug)]
    struct Layer {
        weight: Param<Tensor<2>>,
    }

    /// Two linear layers and an LSTM's recurrent weight.
    #[derive(Module, Debug)]
    struct Small {
        first: Layer,
        second: Layer,
        weight_hh: Param<Tensor<2>>,
    }

    fn draw<const D: usize>(stream: u64, shape: [usize; D]) -> Tensor<D> {
        let key = Key::new(5, stream, 0);
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
    }

    impl Small {
        fn new() -> Self {
            let layer = |stream, shape| Layer { weight: Param::from_tensor(draw(stream, shape)) };
            let weight_hh = Param::from_tensor(draw(3, [8, 2]));
            Self { first: layer(1, [4, 2]), second: layer(2, [8, 4]), weight_hh }
        }
    }

    fn observing(module: &Small, compute: Compute) -> (Arc<Received>, Pass) {
        observing_with(module, compute, Received::default())
    }

    fn observing_with(module: &Small, compute: Compute, received: Received) -> (Arc<Received>, Pass) {
        let received = Arc::new(received);
        let observation = Observation::of(module, received.clone());
        (received, Pass::training(compute, 1, 1).observed(observation))
    }

    /// y = W2 W1 x, and the loss is the sum of y times given factors: the gradient of y is the
    /// factors, and that of W1 x is W2' times them.
    #[test]
    fn gradients_of_linear_layers_are_those_worked_out_by_hand() {
        let module = Small::new();
        let (received, pass) = observing(&module, Compute::FP32);
        let x = Tensor::<2>::from_data([[1.0f32, -2.0]], &Device::flex().autodiff());
        let y = linear(
            linear(x, module.first.weight.val(), None, &pass),
            module.second.weight.val(),
            None,
            &pass,
        );
        let factors: Vec<f32> = (0..8u8).map(|i| f32::from(i) - 3.0).collect();
        let upstream = Tensor::<2>::from_data(TensorData::new(factors.clone(), [1, 8]), &y.device());
        assert!(received.take().is_empty(), "the forward pass hands over nothing");
        (y * upstream).sum().backward();
        let weight = host_values(module.second.weight.val().inner());
        let inner: Vec<f32> =
            (0..4).map(|column| (0..8).map(|row| weight[4 * row + column] * factors[row]).sum()).collect();
        let found = received.take();
        assert_eq!(found.iter().map(|(layer, _)| layer.as_str()).collect::<Vec<_>>(), ["second", "first"]);
        assert_eq!(found[0].1, factors);
        let close = found[1].1.iter().zip(&inner).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(close && found[1].1.len() == 4, "{:?} {inner:?}", found[1].1);
    }

    #[test]
    fn values_of_outputs_are_handed_over_in_the_order_of_the_forward_pass() {
        let module = Small::new();
        let (received, pass) = observing_with(&module, Compute::FP32, Received::with_values());
        let x = Tensor::<2>::from_data([[1.0f32, -2.0]], &Device::flex().autodiff());
        let first = linear(x, module.first.weight.val(), None, &pass);
        let second = linear(first.clone(), module.second.weight.val(), None, &pass);
        let due = [("first", host_values(first.inner())), ("second", host_values(second.inner()))];
        assert_eq!(received.take_values(), due.map(|(layer, values)| (layer.to_owned(), values)));
        assert!(received.take().is_empty(), "there are no gradients yet");
    }

    /// Loss and gradients of a small network of linear layers, an LSTM and attention.
    fn run(module: &Small, mut pass: Pass) -> Vec<Vec<f32>> {
        let x = draw(4, [6, 2]);
        let inner = linear(x, module.first.weight.val(), None, &pass);
        let gates = linear(inner.clone(), module.second.weight.val(), None, &pass);
        let (out, _) = lstm(gates, module.weight_hh.val(), None, &Sequences::new(&[4, 2]), &pass);
        let mixed =
            attention(inner.clone(), inner.clone(), inner, &Segments::own(&[4, 2], true), 2, 0.0, &mut pass);
        let mixed = to_f32(mixed);
        let loss = to_f32(out).sum() + (mixed.clone() * mixed).sum();
        let grads = loss.clone().backward();
        let weights = [module.first.weight.val(), module.second.weight.val(), module.weight_hh.val()];
        let gradients = weights.map(|weight| host_values(weight.grad(&grads).unwrap()));
        [vec![host_values(loss.inner())], gradients.into()].concat()
    }

    #[test]
    fn an_observed_pass_has_the_bits_of_an_unobserved_one() {
        for compute in [Compute::FP32, Compute(FloatDType::F16)] {
            let module = Small::new();
            let (received, pass) = observing(&module, compute);
            assert_eq!(run(&module, pass), run(&module, Pass::training(compute, 1, 1)));
            let mut layers: Vec<(String, usize)> =
                received.take().into_iter().map(|(layer, gradient)| (layer, gradient.len())).collect();
            layers.sort();
            let due = [("attention 1", 24), ("first", 24), ("second", 48), ("weight_hh", 12)];
            assert_eq!(layers, due.map(|(layer, values)| (layer.to_owned(), values)));

            let (received, pass) = observing_with(&module, compute, Received::with_values());
            assert_eq!(run(&module, pass), run(&module, Pass::training(compute, 1, 1)));
            let forward: Vec<(String, usize)> =
                received.take_values().into_iter().map(|(layer, values)| (layer, values.len())).collect();
            let due = [("first", 24), ("second", 48), ("weight_hh", 12), ("attention 1", 24)];
            assert_eq!(forward, due.map(|(layer, values)| (layer.to_owned(), values)));
        }
    }

    #[test]
    fn a_tensor_that_is_derived_from_a_parameter_may_have_its_name() {
        let module = Small::new();
        let doubled = |pass: &Pass, named: bool| {
            let weight = module.first.weight.val();
            let twice = weight.clone() * 2.0;
            if named {
                pass.derived(&weight, &twice);
            }
            linear(draw(4, [3, 2]), twice, None, pass).sum().backward();
        };
        let (received, pass) = observing(&module, Compute::FP32);
        doubled(&pass, false);
        doubled(&pass, true);
        let layers: Vec<String> = received.take().into_iter().map(|(layer, _)| layer).collect();
        assert_eq!(layers, ["linear 1", "first"]);
    }

    #[test]
    fn every_other_operation_with_a_weight_is_observed() {
        let (received, mut pass) = observing(&Small::new(), Compute::FP32);
        let geometry = Geometry { axes: [Axis::default(), Axis::default()], groups: 1 };
        let of_pictures =
            convolution(draw(6, [1, 1, 5, 2]), draw(7, [3, 2, 1, 2]).require_grad(), None, geometry, &pass);
        let (states, _) =
            gru(draw(8, [3, 6]), draw(9, [6, 2]).require_grad(), None, None, &Sequences::new(&[3]), &pass);
        let weights = AttentiveWeights {
            layers: vec![AttentiveLayer { weight: draw(10, [8, 4]), bias: None }],
            query: draw(11, [3, 2]),
            filter: draw(12, [3, 1]),
            bias: draw(13, [3]),
            vector: draw(14, [3]),
        };
        let source = Source { keys: draw(15, [4, 3]), values: draw(16, [4, 2]), lengths: vec![4] };
        let spec = AttentiveSpec { channels: 1, dropout: 0.0, state_dropout: false };
        let (looked, _) = attentive_lstm(draw(17, [3, 8]).require_grad(), &weights, &source, spec, &mut pass);
        (of_pictures.sum() + states.sum() + looked.sum()).backward();
        let mut found: Vec<(String, usize)> =
            received.take().into_iter().map(|(layer, gradient)| (layer, gradient.len())).collect();
        found.sort();
        let due = [("attentive 1", 12), ("convolution 1", 12), ("gru 1", 6)];
        assert_eq!(found, due.map(|(layer, values)| (layer.to_owned(), values)));
    }
}
