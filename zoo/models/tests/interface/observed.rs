//! An observed layer has the path of its parameter, also where its weight is computed from it.

use std::sync::{Arc, Mutex};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_models::Pass;
use zoo_models::nn::{Channels, Conv1d, ConvInit, Init, NormalizedConv1d, NormalizedLinear};
use zoo_models::ops::{Axis, Observation, OutputReceiver};
use zoo_models::precision::Compute;

#[derive(Module, Debug)]
struct Layers {
    convolution: Conv1d,
    normalized: NormalizedConv1d,
    linear: NormalizedLinear,
}

#[derive(Debug, Default)]
struct Named(Mutex<Vec<String>>);

impl OutputReceiver for Named {
    fn received(&self, layer: &str, _: &[f32]) {
        self.0.lock().unwrap().push(layer.to_owned());
    }
}

#[test]
fn layers_with_derived_weights_have_their_parameters_names() {
    let device = Device::flex().autodiff();
    let init = Init::new(1, &device);
    let layers = Layers {
        convolution: Conv1d::new(&init, Channels::new(2, 2), 3, Axis::default(), true, ConvInit::Torch),
        normalized: NormalizedConv1d::new(&init, [2, 3], 2, Axis::default(), 0.2),
        linear: NormalizedLinear::new(&init, 3, 2, 0.5),
    };
    let named = Arc::new(Named::default());
    let pass = Pass::training(Compute::FP32, 1, 1).observed(Observation::of(&layers, named.clone()));
    let x = layers.convolution.forward(Tensor::ones([1, 6, 2], &device), &pass);
    let x = layers.normalized.forward(x, &pass).reshape([3, 3]);
    layers.linear.forward(x, &pass).sum().backward();
    let found = named.0.lock().unwrap().clone();
    assert_eq!(found, ["linear.direction", "normalized.direction", "convolution"]);
}
