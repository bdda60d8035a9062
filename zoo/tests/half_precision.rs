//! FP16 on a CPU is what PyTorch makes of operands and results that are rounded to FP16 at the same places.
//!
//! The fixture's sums are FP64 and ours FP32; both are rounded to FP16 once. They differ where a sum lies so near to the middle
//! between two FP16 that the error of the FP32 sum decides: by one unit then, in at most one element in a hundred here. Whatever was
//! lost below the smallest FP16 is 0 in both.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData, f16};
use safetensors::SafeTensors;
use serde::Deserialize;
use zoo_models::Pass;
use zoo_models::ops::{Axis, Geometry, Segments, attention, convolution, linear};
use zoo_models::parameters;
use zoo_models::precision::{Compute, to_f32};

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
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/half_precision.safetensors");
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

    /// Runs one case and holds its output and all gradients to the fixture.
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

    fn same<const D: usize>(&self, name: &str, found: Tensor<D>) {
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
            assert!(units <= 1, "{name}: {found}, not {due}");
            apart += usize::from(units > 0);
        }
        println!("{name}: {apart} of {} one unit apart", due.len());
        assert!(apart * 100 <= due.len(), "{name}: {apart} of {} are one unit apart", due.len());
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

/// Products with gradients are where FP16 loses them: a case that loses none would show nothing.
#[test]
fn small_gradients_are_lost_as_pytorch_loses_them() {
    let fixture = Fixture::read();
    for (name, (_, values)) in &fixture.tensors {
        if name.contains("_small/d") && !name.ends_with("bias") {
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
