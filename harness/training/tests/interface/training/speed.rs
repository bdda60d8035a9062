//! Measurements. Run them with `cargo test --release -p zoo-training --test interface -- --ignored
//! --nocapture speed`.

use std::time::Instant;

use zoo_training::flat::{Flat, measure};
use zoo_training::optimizer::{Gradient, Place, optimizer};

use super::toy::ADAM;

#[test]
#[ignore = "a measurement: it means nothing on a busy machine"]
fn adam_on_four_million_parameters() {
    const N: usize = 4 << 20;
    let mut rule = optimizer(&ADAM);
    let mut weight = Flat::Host((0..N).map(|i| (i % 1000) as f32 * 1e-3).collect());
    let gradient = Flat::Host((0..N).map(|i| (i % 777) as f32 * 1e-4 - 0.03).collect());
    let (mut step, mut norm) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..10 {
        let gradient = gradient.clone();
        let start = Instant::now();
        measure(&[&gradient], Vec::new());
        norm = norm.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        rule.begin();
        weight = rule.step(
            Place { path: "w", shape: &[N], embedding: false },
            1e-3,
            weight,
            Gradient::new(gradient, 0.5),
        );
        step = step.min(start.elapsed().as_secs_f64());
    }
    println!("Adam on {N} parameters: step {:.1} ms, norm {:.1} ms", step * 1e3, norm * 1e3);
    assert!(step < 0.05, "{step} s");
}
