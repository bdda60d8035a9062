//! Convolution and batch norm agree with PyTorch: outputs, every gradient, running statistics.
//!
//! The fixture is computed in FP64 from values that are exact in FP32. The error of a tensor is its
//! largest difference divided by its largest value. The limit is 2e-6: sums have at most 700
//! products, each rounded to 6e-8, and errors of random sign grow with the root of their number. In
//! bf16 operands and outputs are rounded to 8 bits: the limit 2e-2 is five times the 4e-3 of one
//! rounding.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use safetensors::SafeTensors;
use serde::Deserialize;
use zoo_models::Pass;
use zoo_models::nn::{BatchNorm, BatchNormSpec, Init};
use zoo_models::ops::{Axis, Geometry, Rows, convolution};
use zoo_models::parameters::{self, ParameterValues};
use zoo_models::precision::{Compute, to_f32};

#[derive(Deserialize)]
struct Description {
    convolutions: Vec<Convolution>,
    batch_norms: Vec<Norm>,
}

#[derive(Deserialize)]
struct Convolution {
    name: String,
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [[usize; 2]; 2],
    groups: usize,
    bias: bool,
}

#[derive(Deserialize)]
struct Norm {
    name: String,
    epsilon: f64,
    momentum: f64,
    affine: bool,
    relu: bool,
}

struct Fixture {
    description: Description,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Fixture {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/convolution.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let description = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["zoo"]).unwrap();
        let values = |bytes: &[u8], size: usize| {
            let value = |x: &[u8]| match size {
                4 => f32::from_le_bytes(x.try_into().unwrap()),
                _ => i64::from_le_bytes(x.try_into().unwrap()) as f32,
            };
            bytes.chunks_exact(size).map(value).collect()
        };
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = tensors.iter().map(|(name, view)| {
            let size = view.data().len() / view.shape().iter().product::<usize>();
            (name.to_string(), (view.shape().to_vec(), values(view.data(), size)))
        });
        Self { description, tensors: tensors.collect() }
    }

    fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = &self.tensors[name];
        Tensor::from_data(TensorData::new(values.clone(), shape.clone()), device)
    }

    fn check<const D: usize>(&self, name: &str, found: Tensor<D>, limit: f64) {
        let (shape, expected) = &self.tensors[name];
        assert_eq!(&found.dims().to_vec(), shape, "{name}");
        let found = parameters::host_values(found.inner());
        let largest = expected.iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
        let error = found.iter().zip(expected).fold(0f64, |most, (a, b)| most.max(f64::from((a - b).abs())));
        assert!(error <= limit * largest, "{name}: {error} of {largest}");
    }
}

#[test]
fn convolutions_are_pytorchs() {
    let fixture = Fixture::read();
    let device = Device::flex().autodiff();
    for (compute, limit) in [(Compute::FP32, 2e-6), (Compute(FloatDType::BF16), 2e-2)] {
        for case in &fixture.description.convolutions {
            let name = |part: &str| format!("{}/{part}", case.name);
            let x = fixture.tensor::<4>(&name("x"), &device).require_grad();
            let weight = fixture.tensor::<4>(&name("weight"), &device).require_grad();
            let bias = case.bias.then(|| fixture.tensor::<1>(&name("bias"), &device).require_grad());
            let axes = [0, 1].map(|i| Axis {
                stride: case.stride[i],
                dilation: case.dilation[i],
                padding: case.padding[i],
            });
            let geometry = Geometry { axes, groups: case.groups };
            let pass = Pass::evaluation(compute);
            let y = convolution(x.clone(), weight.clone(), bias.clone(), geometry, &pass);
            assert_eq!(y.dtype(), DType::from(compute.0));
            let y = to_f32(y);
            let grads = (y.clone() * fixture.tensor(&name("upstream"), &device)).sum().backward();
            fixture.check(&name("y"), y, limit);
            fixture.check(&name("dx"), x.grad(&grads).unwrap(), limit);
            fixture.check(&name("dweight"), weight.grad(&grads).unwrap(), limit);
            if let Some(bias) = bias {
                fixture.check(&name("dbias"), bias.grad(&grads).unwrap(), limit);
            }
        }
    }
}

#[test]
fn batch_norms_are_pytorchs_in_training_and_by_running_statistics() {
    let fixture = Fixture::read();
    let device = Device::flex().autodiff();
    for case in &fixture.description.batch_norms {
        let of = |part: &str| format!("{}/{part}", case.name);
        let channels = *fixture.tensors[&of("0/x")].0.last().unwrap();
        let spec = BatchNormSpec {
            epsilon: case.epsilon,
            momentum: case.momentum,
            unbiased: true,
            affine: case.affine,
            relu: case.relu,
        };
        let layer = BatchNorm::new(&Init::new(1, &device), channels, spec);
        let weights =
            parameters::export(&layer).into_iter().map(|old| match fixture.tensors.get(&of(&old.path)) {
                Some((_, values)) => ParameterValues { values: values.clone(), ..old },
                None => old,
            });
        let weights: Vec<_> = weights.collect();
        let mut layer = parameters::import(layer, weights).unwrap();
        let rows = Rows::of(fixture.tensors[&of("counts")].1.iter().map(|&x| x != 0.0).collect());
        for step in 0..3 {
            let name = |part: &str| format!("{}/{step}/{part}", case.name);
            let x = fixture.tensor::<2>(&name("x"), &device).require_grad();
            let pass = match step < 2 {
                true => Pass::training(Compute::FP32, 0, step),
                false => Pass::evaluation(Compute::FP32),
            };
            let (y, statistics) = layer.forward(x.clone(), rows.clone(), &pass);
            let grads = (y.clone() * fixture.tensor(&name("upstream"), &device)).sum().backward();
            assert_eq!(statistics.is_some(), step < 2);
            fixture.check(&name("y"), y, 2e-6);
            fixture.check(&name("dx"), x.grad(&grads).unwrap(), 4e-6);
            if let (Some(weight), Some(bias)) = (&layer.weight, &layer.bias) {
                fixture.check(&name("dweight"), weight.val().grad(&grads).unwrap(), 2e-6);
                fixture.check(&name("dbias"), bias.val().grad(&grads).unwrap(), 2e-6);
            }
            assert!(layer.running_mean.val().grad(&grads).is_none());
            if let Some(statistics) = statistics {
                layer = layer.fold(&statistics);
            }
            fixture.check(&name("running_mean"), layer.running_mean.val(), 1e-6);
            fixture.check(&name("running_variance"), layer.running_variance.val(), 1e-6);
        }
    }
}
