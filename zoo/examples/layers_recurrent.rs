//! Times recurrent layers, forward and backward, in each mode: one JSON object a line, for tests/reference/layers_recurrent.py's beside it.
//!
//! `cargo run --release --example layers_recurrent [-- repetitions [layer]]`

use std::time::Instant;

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use zoo_models::Pass;
use zoo_models::nn::{BiLstm, Biases, Gru, Init, Lstm};
use zoo_models::ops::Sequences;
use zoo_models::precision::{Compute, to_f32};
use zoo_models::random::Key;

/// Name, hidden and input units, sequences, steps.
const LAYERS: [(&str, usize, usize, usize); 4] = [
    ("lstm-512", 512, 16, 100),
    ("lstm-1024", 1024, 32, 50),
    ("gru-512", 512, 16, 100),
    ("bilstm-512", 512, 16, 100),
];

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    let wanted = std::env::args().nth(2);
    let device = Device::flex().autodiff();
    let layers = LAYERS.into_iter().filter(|layer| wanted.as_deref().is_none_or(|name| name == layer.0));
    for (name, width, count, steps) in layers {
        for (mode, compute) in [("fp32", Compute::FP32), ("bf16", Compute(FloatDType::BF16))] {
            let init = Init::new(1, &device);
            let bound = (width as f64).sqrt().recip();
            let key = Key::new(1, 2, 3);
            let rows = count * steps;
            let values: Vec<f32> = (0..rows * width).map(|i| key.normal(i as u32)).collect();
            let x: Tensor<2> = Tensor::from_data(TensorData::new(values, [rows, width]), &device);
            let sequences = Sequences::new(&vec![steps as u32; count]);
            let pass = Pass::evaluation(compute);
            let run: Box<dyn Fn(Tensor<2>) -> Tensor<2>> = match name {
                "gru-512" => {
                    let layer = Gru::new(&init, width, width, Biases::Two, bound);
                    Box::new(move |x| layer.forward(x, &sequences, None, &pass).0)
                }
                "bilstm-512" => {
                    let layer = BiLstm::new(&init, width, width, Biases::Two, bound, None);
                    Box::new(move |x| layer.forward(x, &sequences, None, &pass).0)
                }
                _ => {
                    let layer = Lstm::new(&init, width, width, Biases::Two, bound, None);
                    Box::new(move |x| layer.forward(x, &sequences, None, &pass).0)
                }
            };
            let mut best = f64::INFINITY;
            for _ in 0..repetitions {
                let x = x.clone().detach().require_grad();
                let start = Instant::now();
                let grads = to_f32(run(x.clone())).sum().backward();
                assert!(x.grad(&grads).is_some());
                best = best.min(start.elapsed().as_secs_f64());
            }
            println!(
                "{}",
                serde_json::json!({
                    "layer": name, "mode": mode, "forward_backward_seconds": best, "unit": "tokens", "work": rows,
                })
            );
        }
    }
}
