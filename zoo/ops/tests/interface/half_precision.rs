//! FP16 on a CPU equals PyTorch with values rounded to FP16 at the same places: operands and
//! results of products, the states of recurrent layers, and tensors between layers.
//!
//! The fixture's sums are FP64 and ours FP32; both are rounded to FP16 once. If a sum is close to
//! the middle between two FP16 values, the error of the FP32 sum decides, and the results differ by
//! one unit. Here this affects at most one element in a hundred. Values below the smallest FP16 are
//! 0 in both. In a recurrent layer a difference propagates to later steps, where it may grow to two
//! units.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData, f16};
use safetensors::SafeTensors;
use serde::Deserialize;
use zoo_ops::Pass;
use zoo_ops::parameters;
use zoo_ops::precision::{Compute, to_f32};
use zoo_ops::{
    Axis, Geometry, Segments, Sequences, add_dropped, attention, context, convolution, gru, layer_norm,
    linear, lstm, stored,
};

const F16: Compute = Compute(FloatDType::F16);

#[derive(Deserialize)]
struct Description {
    convolutions: Vec<Convolution>,
}

#[derive(Deserialize)]
struct Convolution {
    name: String,
    stride: [usize; 2],
    padding: [usize; 2],
    groups: usize,
}

struct Fixture {
    description: Description,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    device: Device,
}

impl Fixture {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/half_precision.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let description = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["zoo"]).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = tensors.iter().map(|(name, view)| {
            let values = view.data().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
            (name.to_string(), (view.shape().to_vec(), values.collect()))
        });
        Self { description, tensors: tensors.collect(), device: Device::flex().autodiff() }
    }

    fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        let (shape, values) = &self.tensors[name];
        Tensor::from_data(TensorData::new(values.clone(), shape.clone()), &self.device)
    }

    /// Runs one case and compares its output and all gradients with the fixture.
    fn check<const D: usize, const W: usize>(
        &self,
        case: &str,
        inputs: [&str; 3],
        run: impl Fn(Tensor<D>, Tensor<W>, Tensor<1>) -> Tensor<D>,
    ) {
        let name = |part: &str| format!("{case}/{part}");
        let first = self.tensor::<D>(&name(inputs[0])).require_grad();
        let second = self.tensor::<W>(&name(inputs[1])).require_grad();
        let third = self.tensor::<1>(&name(inputs[2])).require_grad();
        let y = run(first.clone(), second.clone(), third.clone());
        assert_eq!(y.dtype(), DType::F16);
        let y = to_f32(y);
        let grads = (y.clone() * self.tensor(&name("upstream"))).sum().backward();
        self.same(&name("y"), y.inner());
        self.same(&name(&format!("d{}", inputs[0])), first.grad(&grads).unwrap());
        self.same(&name(&format!("d{}", inputs[1])), second.grad(&grads).unwrap());
        self.same(&name(&format!("d{}", inputs[2])), third.grad(&grads).unwrap());
    }

    /// A tracked leaf of a case.
    fn leaf<const D: usize>(&self, case: &str, part: &str) -> Tensor<D> {
        self.tensor(&format!("{case}/{part}")).require_grad()
    }

    fn same<const D: usize>(&self, name: &str, found: Tensor<D>) {
        self.near(name, found, 1, 100);
    }

    /// Asserts that values differ by at most `most` units, and in at most one element of `of`.
    fn near<const D: usize>(&self, name: &str, found: Tensor<D>, most: i32, of: usize) {
        let (shape, due) = &self.tensors[name];
        assert_eq!(&found.dims().to_vec(), shape, "{name}");
        let found = parameters::host_values(found);
        let mut apart = 0;
        for (found, due) in found.iter().zip(due) {
            let bits = |x: f32| {
                assert_eq!(f16::from_f32(x).to_f32(), x, "{name}: {x} is no FP16");
                i32::from(f16::from_f32(x).to_bits() & 0x7fff) * if x < 0.0 { -1 } else { 1 }
            };
            let units = (bits(*found) - bits(*due)).abs();
            assert!(units <= most, "{name}: {found}, not {due}");
            apart += usize::from(units > 0);
        }
        println!("{name}: {apart} of {} one unit apart", due.len());
        assert!(apart * of <= due.len(), "{name}: {apart} of {} are apart", due.len());
    }
}

/// The sizes of the output's gradient.
const SIZES: [&str; 2] = ["usual", "small"];

#[test]
fn linear_is_pytorchs() {
    let fixture = Fixture::read();
    for size in SIZES {
        fixture.check(&format!("linear_{size}"), ["x", "weight", "bias"], |x, weight, bias| {
            linear(x, weight, Some(bias), &Pass::evaluation(F16))
        });
    }
}

#[test]
fn convolutions_are_pytorchs() {
    let fixture = Fixture::read();
    for case in &fixture.description.convolutions {
        let axes = [0, 1].map(|i| Axis {
            stride: case.stride[i],
            dilation: 1,
            padding: [case.padding[i], case.padding[i]],
        });
        let geometry = Geometry { axes, groups: case.groups };
        for size in SIZES {
            fixture.check(&format!("{}_{size}", case.name), ["x", "weight", "bias"], |x, weight, bias| {
                convolution(x, weight, Some(bias), geometry, &Pass::evaluation(F16))
            });
        }
    }
}

/// Ensures that the cases named `small` test underflow: most products lose some gradients, but not
/// all.
#[test]
fn the_fixture_has_gradients_below_the_smallest_fp16() {
    let fixture = Fixture::read();
    let products = [
        "linear_small",
        "conv1d_small",
        "conv2d_small",
        "depthwise_small",
        "attention_small",
        "attention_causal_small",
    ];
    for (name, (_, values)) in &fixture.tensors {
        let case = name.split('/').next().unwrap();
        if products.contains(&case) && name.contains("/d") && !name.ends_with("bias") {
            let zeros = values.iter().filter(|x| **x == 0.0).count();
            assert!(zeros * 50 > values.len() && zeros < values.len(), "{name}: {zeros} of {}", values.len());
        }
    }
}

#[test]
fn attention_is_pytorchs() {
    let fixture = Fixture::read();
    for (case, causal) in [("attention", false), ("attention_causal", true)] {
        for size in SIZES {
            let name = |part: &str| format!("{case}_{size}/{part}");
            let leaves = ["q", "k", "v"].map(|part| fixture.tensor::<2>(&name(part)).require_grad());
            let [q, k, v] = leaves.each_ref().map(|leaf| F16.cast(leaf.clone()));
            let segments = Segments::own(&[17], causal);
            let y = attention(q, k, v, &segments, 3, 0.0, &mut Pass::evaluation(F16));
            assert_eq!(y.dtype(), DType::F16);
            let y = to_f32(y);
            let grads = (y.clone() * fixture.tensor(&name("upstream"))).sum().backward();
            fixture.same(&name("y"), y.inner());
            for (leaf, part) in leaves.iter().zip(["dq", "dk", "dv"]) {
                fixture.same(&name(part), leaf.grad(&grads).unwrap());
            }
        }
    }
}

const LENGTHS: [u32; 3] = [5, 1, 3];

#[test]
fn lstm_is_pytorchs() {
    let fixture = Fixture::read();
    for size in SIZES {
        let case = format!("lstm_{size}");
        let [gates, weight] = ["gates", "weight"].map(|part| fixture.leaf::<2>(&case, part));
        let pass = Pass::evaluation(F16);
        let x = F16.cast(gates.clone());
        let (y, (_, cells)) = lstm(x, weight.clone(), None, &Sequences::new(&LENGTHS), &pass);
        let cells = parameters::host_values(cells);
        assert!(cells.iter().all(|x| f16::from_f32(*x).to_f32() == *x), "cells are FP16's");
        let grads = (to_f32(y.clone()) * fixture.tensor(&format!("{case}/upstream"))).sum().backward();
        fixture.near(&format!("{case}/y"), to_f32(y).inner(), 2, 40);
        fixture.near(&format!("{case}/dgates"), gates.grad(&grads).unwrap(), 2, 20);
        fixture.near(&format!("{case}/dweight"), weight.grad(&grads).unwrap(), 2, 20);
    }
}

#[test]
fn gru_is_pytorchs() {
    let fixture = Fixture::read();
    for size in SIZES {
        let case = format!("gru_{size}");
        let [gates, weight] = ["gates", "weight"].map(|part| fixture.leaf::<2>(&case, part));
        let bias = fixture.leaf::<1>(&case, "bias");
        let x = F16.cast(gates.clone());
        let sequences = Sequences::new(&LENGTHS);
        let (y, _) = gru(x, weight.clone(), Some(bias.clone()), None, &sequences, &Pass::evaluation(F16));
        let grads = (to_f32(y.clone()) * fixture.tensor(&format!("{case}/upstream"))).sum().backward();
        fixture.near(&format!("{case}/y"), to_f32(y).inner(), 2, 40);
        fixture.near(&format!("{case}/dgates"), gates.grad(&grads).unwrap(), 2, 20);
        fixture.near(&format!("{case}/dweight"), weight.grad(&grads).unwrap(), 2, 20);
        fixture.near(&format!("{case}/dbias"), bias.grad(&grads).unwrap(), 2, 20);
    }
}

#[test]
fn contexts_are_pytorchs() {
    let fixture = Fixture::read();
    for (kind, by_network) in [("context_products", false), ("context_network", true)] {
        for size in SIZES {
            let case = format!("{kind}_{size}");
            let leaves = ["query", "key", "value"].map(|part| fixture.leaf::<2>(&case, part));
            let network = by_network.then(|| fixture.leaf::<1>(&case, "network"));
            let [query, key, value] = leaves.each_ref().map(|leaf| F16.cast(leaf.clone()));
            let segments = Segments::across(&[9], &[13]);
            let (y, _) = context(query, key, value, network.clone(), &segments, F16);
            let grads = (y.clone() * fixture.tensor(&format!("{case}/upstream"))).sum().backward();
            fixture.same(&format!("{case}/y"), y.inner());
            for (leaf, part) in leaves.iter().zip(["dquery", "dkey", "dvalue"]) {
                fixture.near(&format!("{case}/{part}"), leaf.grad(&grads).unwrap(), 1, 40);
            }
            if let Some(network) = network {
                fixture.near(&format!("{case}/dnetwork"), network.grad(&grads).unwrap(), 1, 5);
            }
        }
    }
}

/// The residual stream, the output of a norm, and their gradients are FP16. The norm's own
/// parameters are not: it computes in FP32.
#[test]
fn what_stands_between_layers_is_pytorchs() {
    let fixture = Fixture::read();
    for size in SIZES {
        let case = format!("sublayer_{size}");
        let (x, weight) = (fixture.leaf::<2>(&case, "x"), fixture.leaf::<2>(&case, "weight"));
        let [scale, shift, bias] = ["scale", "shift", "bias"].map(|part| fixture.leaf::<1>(&case, part));
        let mut pass = Pass::evaluation(F16);
        let stream = stored(x.clone(), F16);
        let normed = stored(layer_norm(stream.clone(), scale, shift, 1e-5), F16);
        let out = linear(normed, weight.clone(), Some(bias.clone()), &pass);
        let y = stored(add_dropped(stream, out, 0.0, &mut pass), F16);
        let grads = (y.clone() * fixture.tensor(&format!("{case}/upstream"))).sum().backward();
        fixture.same(&format!("{case}/y"), y.inner());
        fixture.same(&format!("{case}/dx"), x.grad(&grads).unwrap());
        fixture.same(&format!("{case}/dweight"), weight.grad(&grads).unwrap());
        fixture.same(&format!("{case}/dbias"), bias.grad(&grads).unwrap());
    }
}
