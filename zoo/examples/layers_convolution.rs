//! Times convolutions and batch norm, forward and backward: one JSON object a line. `tests/reference/layers_convolution.py` prints
//! the same of PyTorch.
//!
//!     cargo run --release --workspace --example layers_convolution [REPETITIONS] [NAME]

use std::time::Instant;

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_models::Pass;
use zoo_models::nn::{BatchNorm, BatchNormSpec, Channels, Conv1d, Conv2d, ConvInit, Init};
use zoo_models::ops::{Axis, Rows};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::random::Key;

fn draw<const D: usize>(stream: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let key = Key::new(1, stream, 0);
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The shortest of so many.
fn seconds(repetitions: usize, mut run: impl FnMut()) -> f64 {
    run();
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..repetitions).map(once).fold(f64::INFINITY, f64::min)
}

struct Report {
    repetitions: usize,
    only: Option<String>,
}

impl Report {
    /// Times y = layer(x) and the gradients for an upstream gradient of ones.
    fn time<const D: usize>(
        &self,
        name: &str,
        shape: [usize; D],
        work: usize,
        layer: impl Fn(Tensor<D>, &Pass) -> Tensor<D>,
    ) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let device = Device::flex().autodiff();
        let x = draw(1, shape, &device);
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            let pass = Pass::training(compute, 0, 0);
            // What comes in is in the compute type, as from the layer before.
            let x = compute.cast(x.clone()).require_grad();
            let best = seconds(self.repetitions, || {
                std::hint::black_box(to_f32(layer(x.clone(), &pass)).sum().backward());
            });
            println!(
                "{{\"layer\": \"{name}\", \"mode\": \"{}\", \"forward_backward_seconds\": {best:.6}, \
                 \"unit\": \"floating-point operations\", \"work\": {work}}}",
                compute.name()
            );
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let repetitions = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let report = Report { repetitions, only: arguments.next() };
    let device = Device::flex().autodiff();
    let init = Init::new(1, &device);

    let conv1d = |name: &str, channels: Channels, kernel: usize, time: Axis, batch: usize, steps: usize| {
        let layer = Conv1d::new(&init, channels, kernel, time, true, ConvInit::Kaiming);
        let terms = channels.input / channels.groups * kernel * channels.output;
        let work = 6 * batch * layer.steps(steps) * terms;
        report.time(name, [batch, steps, channels.input], work, |x, pass| layer.forward(x, pass));
    };
    let axis = Axis::default();
    conv1d("conv1d 256-256 k11", Channels::new(256, 256), 11, axis.centred(11), 8, 800);
    conv1d("conv1d 896-896 k29 d2", Channels::new(896, 896), 29, axis.dilated(2).centred(29), 4, 200);
    let depthwise = Channels { input: 256, output: 256, groups: 256 };
    conv1d("conv1d depthwise 256 k11", depthwise, 11, axis.centred(11), 8, 800);

    let conv2d = |name: &str, channels: Channels, kernel: [usize; 2], axes: [Axis; 2], shape: [usize; 4]| {
        let layer = Conv2d::new(&init, channels, kernel, axes, true, ConvInit::Kaiming);
        let [height, width] = layer.positions([shape[1], shape[2]]);
        let work = 6 * shape[0] * height * width * channels.input * kernel[0] * kernel[1] * channels.output;
        report.time(name, shape, work, |x, pass| layer.forward(x, pass));
    };
    let square = [axis.centred(3), axis.centred(3)];
    conv2d("conv2d 64-64 3x3", Channels::new(64, 64), [3, 3], square, [8, 56, 56, 64]);
    // DeepSpeech 2's second: height is frequency (81 bins of 161 by the first), width is time.
    let deep = [axis.strided(2).centred(21), axis.centred(11)];
    conv2d("conv2d 32-32 21x11 s2x1", Channels::new(32, 32), [21, 11], deep, [4, 81, 200, 32]);
    conv2d("conv2d 256-64 1x1", Channels::new(256, 64), [1, 1], [axis, axis], [8, 56, 56, 256]);

    let layer = BatchNorm::new(&init, 256, BatchNormSpec::default());
    report.time("batch norm 256", [8 * 800, 256], 8 * 800 * 256, |x, pass| {
        layer.forward(x, Rows::all(), pass).0
    });
}
