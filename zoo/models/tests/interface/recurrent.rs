//! LSTM and GRU layers agree with PyTorch, computed in FP64: packed sequences, both directions,
//! stacked layers and initial states; outputs, last states and every gradient
//! (tests/reference/recurrent_fixtures.py).

use std::collections::BTreeMap;

use burn::module::Param;
use burn::tensor::{Device, FloatDType, Gradients, Tensor, TensorData};
use safetensors::SafeTensors;
use zoo_models::Pass;
use zoo_models::nn::{Gru, Lstm, LstmState, Recurrent};
use zoo_models::ops::Sequences;
use zoo_models::parameters::host_values;
use zoo_models::precision::{Compute, to_f32};

/// Tensors of a case by name, FP32.
struct Case {
    name: String,
    lengths: Vec<u32>,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    device: Device,
}

impl Case {
    fn read(name: &str) -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/recurrent.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (mut tensors, mut lengths) = (BTreeMap::new(), Vec::new());
        for (key, view) in file.tensors() {
            let Some(key) = key.strip_prefix(&format!("{name}/")) else { continue };
            if key == "lengths" {
                let lengths_of =
                    view.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()));
                lengths = lengths_of.map(|length| length as u32).collect();
                continue;
            }
            let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            tensors.insert(key.to_owned(), (view.shape().to_vec(), values.collect()));
        }
        assert!(!lengths.is_empty(), "{name} is in the fixture");
        Self { name: name.to_owned(), lengths, tensors, device: Device::flex().autodiff() }
    }

    fn has(&self, key: &str) -> bool {
        self.tensors.contains_key(key)
    }

    /// A tracked leaf.
    fn leaf<const D: usize>(&self, key: &str) -> Tensor<D> {
        self.constant(key).require_grad()
    }

    fn constant<const D: usize>(&self, key: &str) -> Tensor<D> {
        let (shape, values) = &self.tensors[key];
        Tensor::from_data(TensorData::new(values.clone(), shape.clone()), &self.device)
    }

    fn parameter<const D: usize>(&self, key: &str) -> Param<Tensor<D>> {
        Param::from_tensor(self.constant(&format!("weights/{key}")))
    }

    fn bias(&self, key: &str) -> Option<Param<Tensor<1>>> {
        self.has(&format!("weights/{key}")).then(|| self.parameter(key))
    }

    /// Asserts that a value equals the fixture up to `limit` times the fixture's largest value.
    fn check(&self, key: &str, value: Vec<f32>, limit: f32) {
        let (_, expected) = &self.tensors[key];
        let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
        assert_eq!(value.len(), expected.len(), "{} {key}", self.name);
        for (a, b) in value.iter().zip(expected) {
            assert!((a - b).abs() <= limit * largest, "{} {key}: {a}, not {b} (of {largest})", self.name);
        }
    }

    fn check_gradient<const D: usize>(&self, key: &str, leaf: &Tensor<D>, grads: &Gradients, limit: f32) {
        let found = leaf.grad(grads).unwrap_or_else(|| panic!("{} {key} has a gradient", self.name));
        self.check(&format!("gradients/{key}"), host_values(found), limit);
    }

    /// For each layer, the PyTorch names of its directions, and whether each is backward.
    fn layers(&self) -> Vec<Vec<(String, bool)>> {
        let names = |layer: usize| {
            [(format!("l{layer}"), false), (format!("l{layer}_reverse"), true)]
                .into_iter()
                .filter(|(name, _)| self.has(&format!("weights/weight_ih_{name}")))
                .collect::<Vec<_>>()
        };
        (0..).map(names).take_while(|layer| !layer.is_empty()).collect()
    }

    /// Gradients of the sum of outputs and last states, weighted by the fixture's upstream
    /// gradients.
    fn differentiate(&self, out: Tensor<2>, states: &[(&str, Tensor<3>)]) -> Gradients {
        let mut loss = (to_f32(out) * self.constant("upstream/out")).sum();
        for (key, state) in states {
            loss = loss + (state.clone() * self.constant(&format!("upstream/{key}"))).sum();
        }
        loss.backward()
    }
}

fn row(states: &Option<Tensor<3>>, index: usize) -> Option<Tensor<2>> {
    states.as_ref().map(|states| states.clone().narrow(0, index, 1).squeeze_dim(0))
}

fn lstm(name: &str, compute: Compute, limit: f32) {
    let case = Case::read(name);
    let (sequences, pass) = (Sequences::new(&case.lengths), Pass::evaluation(compute));
    let x = case.leaf::<2>("x");
    let initial = |key: &str| case.has(key).then(|| case.leaf::<3>(key));
    let (h, c) = (initial("initial/h"), initial("initial/c"));
    let (mut rows, mut last_h, mut last_c, mut layers) = (x.clone(), vec![], vec![], vec![]);
    for directions in case.layers() {
        let mut outs = vec![];
        for (name, backwards) in directions {
            let layer = Lstm {
                weight_ih: case.parameter(&format!("weight_ih_{name}")),
                weight_hh: case.parameter(&format!("weight_hh_{name}")),
                bias_ih: case.bias(&format!("bias_ih_{name}")),
                bias_hh: case.bias(&format!("bias_hh_{name}")),
                weight_hr: None,
            };
            let state = row(&h, layers.len()).zip(row(&c, layers.len())).map(|(h, c)| LstmState { h, c });
            let sequences = if backwards { sequences.reversed() } else { sequences.clone() };
            let (out, last) = layer.forward(rows.clone(), &sequences, state, &pass);
            outs.push(out);
            last_h.push(last.h);
            last_c.push(last.c);
            layers.push((name, layer));
        }
        rows = Tensor::cat(outs, 1);
    }
    let (last_h, last_c) = (Tensor::stack(last_h, 0), Tensor::stack(last_c, 0));
    let grads = case.differentiate(rows.clone(), &[("h", last_h.clone()), ("c", last_c.clone())]);
    case.check("out", host_values(rows.inner()), limit);
    case.check("last/h", host_values(last_h.inner()), limit);
    case.check("last/c", host_values(last_c.inner()), limit);
    case.check_gradient("x", &x, &grads, limit);
    for (key, leaf) in [("initial/h", &h), ("initial/c", &c)] {
        leaf.iter().for_each(|leaf| case.check_gradient(key, leaf, &grads, limit));
    }
    for (name, layer) in layers {
        let Lstm { weight_ih, weight_hh, bias_ih, bias_hh, weight_hr: _ } = layer;
        check_weights(&case, &name, [weight_ih, weight_hh], [bias_ih, bias_hh], &grads, limit);
    }
}

fn gru(name: &str, compute: Compute, limit: f32) {
    let case = Case::read(name);
    let (sequences, pass) = (Sequences::new(&case.lengths), Pass::evaluation(compute));
    let x = case.leaf::<2>("x");
    let h = case.has("initial/h").then(|| case.leaf::<3>("initial/h"));
    let (mut rows, mut last_h, mut layers) = (x.clone(), vec![], vec![]);
    for directions in case.layers() {
        let mut outs = vec![];
        for (name, backwards) in directions {
            let layer = Gru {
                weight_ih: case.parameter(&format!("weight_ih_{name}")),
                weight_hh: case.parameter(&format!("weight_hh_{name}")),
                bias_ih: case.bias(&format!("bias_ih_{name}")),
                bias_hh: case.bias(&format!("bias_hh_{name}")),
            };
            let sequences = if backwards { sequences.reversed() } else { sequences.clone() };
            let (out, last) = layer.forward(rows.clone(), &sequences, row(&h, layers.len()), &pass);
            outs.push(out);
            last_h.push(last);
            layers.push((name, layer));
        }
        rows = Tensor::cat(outs, 1);
    }
    let last_h = Tensor::stack(last_h, 0);
    let grads = case.differentiate(rows.clone(), &[("h", last_h.clone())]);
    case.check("out", host_values(rows.inner()), limit);
    case.check("last/h", host_values(last_h.inner()), limit);
    case.check_gradient("x", &x, &grads, limit);
    h.iter().for_each(|h| case.check_gradient("initial/h", h, &grads, limit));
    for (name, layer) in layers {
        let Gru { weight_ih, weight_hh, bias_ih, bias_hh } = layer;
        check_weights(&case, &name, [weight_ih, weight_hh], [bias_ih, bias_hh], &grads, limit);
    }
}

fn check_weights(
    case: &Case,
    name: &str,
    weights: [Param<Tensor<2>>; 2],
    biases: [Option<Param<Tensor<1>>>; 2],
    grads: &Gradients,
    limit: f32,
) {
    for (side, (weight, bias)) in ["ih", "hh"].into_iter().zip(weights.into_iter().zip(biases)) {
        case.check_gradient(&format!("weights/weight_{side}_{name}"), &weight.val(), grads, limit);
        if let Some(bias) = bias {
            case.check_gradient(&format!("weights/bias_{side}_{name}"), &bias.val(), grads, limit);
        }
    }
}

/// FP64 rounded once, compared with FP32 through six steps and two layers. The largest error of
/// PyTorch's own FP32 here is 4.4e-7.
const FP32: f32 = 5e-6;

#[test]
fn lstm_layers_are_those_of_pytorch() {
    ["lstm-plain", "lstm-stacked", "lstm-unbiased"]
        .into_iter()
        .for_each(|name| lstm(name, Compute::FP32, FP32));
}

#[test]
fn gru_layers_are_those_of_pytorch() {
    ["gru-plain", "gru-stacked", "gru-unbiased"].into_iter().for_each(|name| gru(name, Compute::FP32, FP32));
}

/// Operands of products have 8 bits, and errors pass through six steps and two layers. The largest
/// error of PyTorch's bf16 here is 2.2e-2.
#[test]
fn layers_in_bf16_are_near() {
    let bf16 = Compute(FloatDType::BF16);
    ["lstm-plain", "lstm-stacked"].into_iter().for_each(|name| lstm(name, bf16, 0.05));
    ["gru-plain", "gru-stacked"].into_iter().for_each(|name| gru(name, bf16, 0.05));
}
