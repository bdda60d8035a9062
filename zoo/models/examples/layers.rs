//! Times layers, forward and backward, with each type of products. `tests/reference/fast_layers.py`
//! has the same layers in PyTorch, and `ci/bench-vs-pytorch.sh` prints both side by side.
//!
//!     cargo run --release --workspace --example layers -- \
//!         [--repetitions N] [--mode fp32|bf16] [LAYER…]
//!
//! Prints one line of JSON for each layer and mode; `seconds` is the median of the repetitions.

use std::time::Instant;

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_models::Pass;
use zoo_models::nn::{
    Attention, BatchNorm, BatchNormSpec, Biases, Bidirectional, Channels, Conv1d, Conv2d, ConvInit,
    FeedForward, Gru, Init, LayerNorm, Lstm, Recurrent,
};
use zoo_models::ops::{
    Axis, Rows, Segments, Sequences, SmoothedTargets, Utterances, cross_entropy, ctc, dropout, embedding,
};
use zoo_models::precision::Compute;
use zoo_models::random::Key;
use zoo_recipes::{LinearInit, Smoothing};

// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), String> {
    let mut wanted = Vec::new();
    let (mut repetitions, mut modes) = (10, vec![Compute::FP32, Compute(FloatDType::BF16)]);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--repetitions" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                repetitions = number.ok_or("--repetitions takes a number")?;
            }
            "--mode" => {
                let name = arguments.next().unwrap_or_default();
                modes.retain(|mode| mode.name() == name);
            }
            layer => wanted.push(layer.to_owned()),
        }
    }
    // Keeps freed memory, as the program does: `mi_option_purge_delay`. SAFETY: an option of the
    // allocator, set before other threads start.
    unsafe { libmimalloc_sys::mi_option_set(15, -1) };
    let bench = Bench { wanted, repetitions, modes, device: Device::flex().autodiff() };
    bench.transformer();
    bench.recurrent();
    bench.convolutional();
    Ok(())
}

struct Bench {
    wanted: Vec<String>,
    repetitions: usize,
    modes: Vec<Compute>,
    device: Device,
}

impl Bench {
    fn draw<const D: usize>(&self, shape: [usize; D]) -> Tensor<D> {
        let key = Key::new(1, 0, 0);
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name)
    }

    /// Times the layer's output and the gradients of its input and parameters, with a gradient of
    /// ones. The input is in the compute type, like the output of a previous layer.
    fn time<const D: usize>(
        &self,
        name: &str,
        shape: [usize; D],
        layer: impl Fn(Tensor<D>, &mut Pass) -> Tensor<D>,
    ) {
        if !self.wants(name) {
            return;
        }
        let drawn = self.draw(shape);
        for &compute in &self.modes {
            let x = compute.cast(drawn.clone());
            self.report(name, compute, || {
                let x = x.clone().detach().require_grad();
                let y = layer(x.clone(), &mut Pass::training(compute, 1, 1));
                let gradients = y.backward();
                assert!(x.grad(&gradients).is_some());
            });
        }
    }

    fn report(&self, name: &str, compute: Compute, run: impl Fn()) {
        let once = |_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        };
        (0..2).map(once).for_each(drop);
        let mut seconds: Vec<f64> = (0..self.repetitions.max(1)).map(once).collect();
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        println!(r#"{{"layer": "{name}", "mode": "{}", "seconds": {median:.6}}}"#, compute.name());
    }

    fn transformer(&self) {
        let init = Init::new(1, &self.device);
        let layer = FeedForward::new(&init, 512, 2048, 0.1);
        self.time("feed-forward-512-2048", [1024, 512], |x, pass| layer.forward(x, pass));
        let layer = Attention::new(&init, [512, 512], 8, true, LinearInit::XavierUniform, 0.1);
        let segments = Segments::own(&[64; 16], false);
        self.time("attention-512-8", [1024, 512], |x, pass| layer.to_itself(x, &segments, pass));
        let layer = LayerNorm::new(&init, 512, 1e-5);
        self.time("layer-norm-512", [4096, 512], |x, _| layer.forward(x));
        self.time("dropout", [4096, 2048], |x, pass| dropout(x, 0.1, pass));

        let targets: Vec<u32> = (0..1024).map(|i| i * 31 % 32_000).collect();
        let targets = SmoothedTargets::new(&targets, 32_000, 0.1, Smoothing::AllClasses);
        self.time("cross-entropy-32000", [1024, 32_000], |x, _| cross_entropy(x, &targets).0.unsqueeze());

        // Twelve seconds of speech each, labelled with characters.
        let labels: Vec<Vec<u32>> =
            (0..32).map(|i| (0..180 + i % 5).map(|j| (i + j * j) * 7 % 28).collect()).collect();
        let frames: Vec<(usize, usize)> = (0..32).map(|i| (i * 600, 600)).collect();
        let utterances = Utterances::new(&labels, &frames, 28);
        self.time("ctc-29", [32 * 600, 29], |x, _| ctc(x, &utterances).unsqueeze());

        let table = self.draw([32_000, 512]).require_grad();
        let ids: Vec<Option<u32>> = (0..2048).map(|i| Some(i * 7919 % 32_000)).collect();
        if self.wants("embedding-32000-512") && self.modes.contains(&Compute::FP32) {
            self.report("embedding-32000-512", Compute::FP32, || {
                let gradients = embedding(table.clone(), &ids).backward();
                assert!(table.grad(&gradients).is_some());
            });
        }
    }

    fn recurrent(&self) {
        let init = Init::new(1, &self.device);
        for (name, width, count, steps) in [
            ("lstm-512", 512, 16, 100),
            ("lstm-1024", 1024, 32, 50),
            ("gru-512", 512, 16, 100),
            ("bilstm-512", 512, 16, 100),
        ] {
            let bound = (width as f64).sqrt().recip();
            let sequences = Sequences::new(&vec![steps; count]);
            let shape = [count * steps as usize, width];
            match name.split_once('-') {
                Some(("gru", _)) => {
                    let layer = Gru::new(&init, width, width, Biases::Two, bound);
                    self.time(name, shape, |x, pass| layer.forward(x, &sequences, None, pass).0);
                }
                Some(("bilstm", _)) => {
                    let layer = Bidirectional::new(&init, |init| {
                        Lstm::new(init, width, width, Biases::Two, bound, None)
                    });
                    self.time(name, shape, |x, pass| layer.forward(x, &sequences, None, pass).0);
                }
                _ => {
                    let layer = Lstm::new(&init, width, width, Biases::Two, bound, None);
                    self.time(name, shape, |x, pass| layer.forward(x, &sequences, None, pass).0);
                }
            }
        }
    }

    fn convolutional(&self) {
        let init = Init::new(1, &self.device);
        let axis = Axis::default();
        let sequence = |name: &str, channels: Channels, kernel: usize, time: Axis, shape: [usize; 3]| {
            let layer = Conv1d::new(&init, channels, kernel, time, true, ConvInit::Kaiming);
            self.time(name, shape, |x, pass| layer.forward(x, pass));
        };
        sequence("conv1d-256-k11", Channels::new(256, 256), 11, axis.centred(11), [8, 800, 256]);
        let dilated = axis.dilated(2).centred(29);
        sequence("conv1d-896-k29-d2", Channels::new(896, 896), 29, dilated, [4, 200, 896]);
        let depthwise = Channels { input: 256, output: 256, groups: 256 };
        sequence("conv1d-depthwise-256-k11", depthwise, 11, axis.centred(11), [8, 800, 256]);

        let image =
            |name: &str, channels: Channels, kernel: [usize; 2], axes: [Axis; 2], shape: [usize; 4]| {
                let layer = Conv2d::new(&init, channels, kernel, axes, true, ConvInit::Kaiming);
                self.time(name, shape, |x, pass| layer.forward(x, pass));
            };
        let square = [axis.centred(3), axis.centred(3)];
        image("conv2d-64-3x3", Channels::new(64, 64), [3, 3], square, [8, 56, 56, 64]);
        // The second convolution of DeepSpeech 2: height is frequency, width is time.
        let deep = [axis.strided(2).centred(21), axis.centred(11)];
        image("conv2d-32-21x11-s2", Channels::new(32, 32), [21, 11], deep, [4, 81, 200, 32]);
        image("conv2d-256-64-1x1", Channels::new(256, 64), [1, 1], [axis, axis], [8, 56, 56, 256]);

        let layer = BatchNorm::new(&init, 256, BatchNormSpec::default());
        self.time("batch-norm-256", [8 * 800, 256], |x, pass| layer.forward(x, Rows::all(), pass).0);
    }
}
