use burn::tensor::{Device, TensorData};

use super::*;

const BOTH: [NovogradVariant; 2] = [NovogradVariant::Published, NovogradVariant::AsCoded];

fn settings(variant: NovogradVariant) -> NovogradSettings {
    NovogradSettings {
        beta1: 0.95,
        beta2: 0.5,
        epsilon: 0.1,
        weight_decay: 0.01,
        grad_averaging: false,
        variant,
    }
}

fn place(path: &str) -> Place<'_> {
    Place { path, shape: &[2], embedding: false }
}

fn step(rule: &mut Novograd, w: Flat, g: [f32; 2], factor: f32) -> Flat {
    rule.begin();
    rule.step(place("w"), 0.5, w, Gradient::new(Flat::Host(g.to_vec()), factor))
}

fn near(found: &Flat, expected: [f64; 2]) {
    for (found, expected) in found.to_vec().iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}

/// By hand: |(3, 4)| = 5, |(0, -1)| = 1.
#[test]
fn the_two_variants_follow_their_formulas() {
    let start = [1.0f64, -2.0];
    // First update: v = 25 for both; the norms are 5 + 0.1 and sqrt(25.1). Second update,
    // published: v = 0.5 * 25 + 0.5 * 1 = 13, norm sqrt(13) + 0.1. As coded: norm sqrt(1.1).
    let norms = [[5.1, 13f64.sqrt() + 0.1], [25.1f64.sqrt(), 1.1f64.sqrt()]];
    for (variant, norms) in BOTH.into_iter().zip(norms) {
        let (mut w, mut m) = (start, [0.0; 2]);
        let mut rule = Novograd::new(settings(variant));
        let mut found = Flat::Host(start.map(|w| w as f32).to_vec());
        for (g, norm) in [[3.0f64, 4.0], [0.0, -1.0]].into_iter().zip(norms) {
            for i in 0..2 {
                m[i] = 0.95 * m[i] + g[i] / norm + 0.01 * w[i];
                w[i] -= 0.5 * m[i];
            }
            found = step(&mut rule, found, g.map(|g| g as f32), 1.0);
            near(&found, w);
        }
    }
}

#[test]
fn averaging_takes_its_share_of_gradient_and_decay() {
    let averaged = NovogradSettings { grad_averaging: true, ..settings(NovogradVariant::Published) };
    let mut rule = Novograd::new(averaged);
    let w = step(&mut rule, Flat::Host(vec![1.0, -2.0]), [3.0, 4.0], 1.0);
    let m = [0.05 * (3.0 / 5.1 + 0.01), 0.05 * (4.0 / 5.1 - 0.02)];
    near(&w, [1.0 - 0.5 * m[0], -2.0 - 0.5 * m[1]]);
}

#[test]
fn beta2_does_nothing_as_coded_and_something_as_published() {
    let run = |variant, beta2| {
        let mut rule = Novograd::new(NovogradSettings { beta2, ..settings(variant) });
        let first = step(&mut rule, Flat::Host(vec![1.0, 2.0]), [1.0, 0.5], 1.0);
        step(&mut rule, first, [0.1, 0.2], 1.0).to_vec()
    };
    assert_eq!(run(NovogradVariant::AsCoded, 0.5), run(NovogradVariant::AsCoded, 0.99));
    assert_ne!(run(NovogradVariant::Published, 0.5), run(NovogradVariant::Published, 0.99));
}

#[test]
fn a_clipped_gradient_has_the_norm_that_clipping_left() {
    for variant in BOTH {
        let (mut one, mut other) = (Novograd::new(settings(variant)), Novograd::new(settings(variant)));
        let a = step(&mut one, Flat::Host(vec![1.0, 2.0]), [8.0, 6.0], 0.25);
        let b = step(&mut other, Flat::Host(vec![1.0, 2.0]), [2.0, 1.5], 1.0);
        assert_eq!(a.to_vec(), b.to_vec());
        assert_eq!(one.export(), other.export());
    }
}

#[test]
fn a_gradient_of_zeros_moves_by_decay_alone_and_the_next_one_counts_as_the_first() {
    for variant in BOTH {
        let mut rule = Novograd::new(settings(variant));
        let w = step(&mut rule, Flat::Host(vec![1.0, -2.0]), [0.0, 0.0], 1.0);
        near(&w, [1.0 - 0.5 * 0.01, -2.0 + 0.5 * 0.02]);
        step(&mut rule, w, [3.0, 4.0], 1.0);
        if variant == NovogradVariant::Published {
            let v = rule.export().moments.into_iter().find(|moment| moment.name == "second").unwrap();
            assert_eq!(v.values, [25.0]);
        }
    }
}

#[test]
fn each_parameter_has_a_norm_of_its_own() {
    let mut rule = Novograd::new(settings(NovogradVariant::Published));
    rule.begin();
    for (path, g) in [("a", 1.0f32), ("b", 1000.0)] {
        let gradient = Gradient::new(Flat::Host(vec![g, 0.0]), 1.0);
        let w = rule.step(place(path), 0.5, Flat::Host(vec![0.0, 0.0]), gradient);
        // Both moved by nearly the whole rate, whatever the size of the gradient.
        assert!((w.to_vec()[0] + 0.5).abs() < 0.05, "{path}: {:?}", w.to_vec());
    }
}

#[test]
fn the_tensor_path_agrees_with_the_host_path() {
    let n = 40_000;
    let noise = |seed: usize| -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5).collect()
    };
    let tensor =
        |values: Vec<f32>| Flat::Device(Tensor::from_data(TensorData::new(values, [n]), &Device::flex()));
    for variant in BOTH {
        let (mut host, mut device) = (Novograd::new(settings(variant)), Novograd::new(settings(variant)));
        let (mut a, mut b) = (Flat::Host(noise(1)), tensor(noise(1)));
        for update in 0..4 {
            host.begin();
            device.begin();
            a = host.step(place("w"), 1e-2, a, Gradient::new(Flat::Host(noise(update + 2)), 0.3));
            b = device.step(place("w"), 1e-2, b, Gradient::new(tensor(noise(update + 2)), 0.3));
        }
        // The sums of squares were rounded differently.
        for (a, b) in a.to_vec().iter().zip(b.to_vec()) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        let (a, b) = (host.export(), device.export());
        let names = |state: &OptimizerState| -> Vec<(String, usize)> {
            state.moments.iter().map(|m| (m.name.clone(), m.values.len())).collect()
        };
        assert_eq!(names(&a), names(&b));
    }
}

#[test]
fn a_restored_state_goes_on_bit_for_bit() {
    for variant in BOTH {
        let run = |restart: bool| {
            let mut rule = Novograd::new(settings(variant));
            let mut w = Flat::Host(vec![1.0, -2.0]);
            for update in 0..6u8 {
                if restart && update == 3 {
                    let state = rule.export();
                    rule = Novograd::new(settings(variant));
                    rule.import(state.clone()).unwrap();
                    assert_eq!(rule.export(), state, "what is not yet moved to a device is kept as well");
                }
                w = step(&mut rule, w, [0.1 * f32::from(update), -0.3], 0.7);
            }
            (w.to_vec(), rule.export())
        };
        assert_eq!(run(true), run(false));
    }
}

#[test]
fn a_state_of_the_other_variant_is_refused() {
    let state = |variant| {
        let mut rule = Novograd::new(settings(variant));
        step(&mut rule, Flat::Host(vec![1.0, -2.0]), [0.1, 0.2], 1.0);
        rule.export()
    };
    let mut published = Novograd::new(settings(NovogradVariant::Published));
    assert!(matches!(
        published.import(state(NovogradVariant::AsCoded)),
        Err(OptimizerError::MissingMoment { moment: "second", .. })
    ));
    let mut coded = Novograd::new(settings(NovogradVariant::AsCoded));
    assert_eq!(
        coded.import(state(NovogradVariant::Published)),
        Err(OptimizerError::UnknownMoment("second".into()))
    );
    let mut damaged = state(NovogradVariant::Published);
    damaged.moments[1].values.push(0.0);
    assert!(published.import(damaged).is_err());
}
