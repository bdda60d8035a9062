//! Schedules, loss scalers and update rules against independent Python (`tests/reference/`).

use std::path::PathBuf;

use safetensors::SafeTensors;
use serde::Deserialize;
use zoo_recipes::{LossScalingSpec, OptimizerSpec, ScheduleSpec};
use zoo_training::flat::Flat;
use zoo_training::optimizer::{Place, optimizer};
use zoo_training::scaling::LossScaler;
use zoo_training::schedule::Schedule;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn schedules_equal_the_reference() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        schedule: ScheduleSpec,
        total_updates: u64,
        rates: Vec<(u64, f64)>,
    }
    #[derive(Deserialize)]
    struct Cases {
        cases: Vec<Case>,
    }
    let Cases { cases } = serde_json::from_slice(&fixture("schedules.json")).unwrap();
    assert!(cases.len() >= 26);
    for case in cases {
        let schedule = Schedule::new(&case.schedule, Some(case.total_updates)).unwrap();
        assert!(case.rates.len() >= 10);
        for (update, expected) in case.rates {
            let found = schedule.lr(update);
            // Both are FP64; powers may differ in their last bits, and decays end in a difference of near numbers.
            let allowed = 1e-12 * expected.abs() + 1e-17;
            assert!(
                (found - expected).abs() <= allowed,
                "{} at {update}: {found}, not {expected}",
                case.name
            );
        }
    }
}

#[test]
fn loss_scalers_equal_the_reference() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        scaler: LossScalingSpec,
        steps: u64,
        #[serde(default)]
        overflows: Vec<u64>,
        #[serde(default)]
        largest_gradients: Vec<Option<f64>>,
        updates: u64,
        scales: serde_json::Value,
    }
    #[derive(Deserialize)]
    struct Cases {
        cases: Vec<Case>,
    }
    let Cases { cases } = serde_json::from_slice(&fixture("scalers.json")).unwrap();
    assert!(cases.len() >= 16);
    for case in cases {
        let mut scaler = LossScaler::new(&case.scaler).unwrap();
        let mut trace = vec![scaler.scale()];
        let mut updates = 0;
        for step in 0..case.steps {
            let largest = case.largest_gradients.get(step as usize).copied();
            let finite = match largest {
                Some(largest) => largest.is_some(),
                None => !case.overflows.contains(&step),
            };
            scaler.observe(finite, largest.flatten().unwrap_or(1.0));
            trace.push(scaler.scale());
            updates += u64::from(finite);
        }
        assert_eq!(updates, case.updates, "{}", case.name);
        if case.largest_gradients.is_empty() {
            let changes: Vec<(u64, f64)> = serde_json::from_value(case.scales).unwrap();
            let expected = |step: u64| changes.iter().rev().find(|(from, _)| *from <= step).unwrap().1;
            for (step, found) in (0..).zip(&trace) {
                assert_eq!(*found, expected(step), "{} at step {step}", case.name);
            }
        } else {
            let expected: Vec<f64> = serde_json::from_value(case.scales).unwrap();
            assert_eq!(expected.len(), trace.len());
            for (step, (found, expected)) in trace.iter().zip(&expected).enumerate() {
                // The variance is a difference of near numbers.
                assert!(
                    (found / expected - 1.0).abs() < 1e-9,
                    "{} at step {step}: {found}, not {expected}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn update_rules_equal_the_reference() {
    let bytes = fixture("optimizers.safetensors");
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let text = &metadata.metadata().as_ref().unwrap()["zoo"];
    #[derive(Deserialize)]
    struct Header {
        rules: std::collections::BTreeMap<String, OptimizerSpec>,
    }
    let Header { rules } = serde_json::from_str(text).unwrap();
    assert!(rules.len() >= 13);
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values = |name: &str| -> Vec<f32> {
        let view = file.tensor(name).unwrap();
        view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let shape = file.tensor("weight").unwrap().shape().to_vec();
    let n = shape.iter().product::<usize>();
    for (name, spec) in rules {
        let gradients = values(if name.ends_with("-sparse") { "sparse_gradients" } else { "gradients" });
        let (rates, expected) = (values("learning_rates"), values(&format!("{name}/weights")));
        let mut rule = optimizer(&spec);
        let mut weight = Flat::Host(values("weight"));
        for (step, rate) in rates.iter().enumerate() {
            rule.begin();
            let place = Place { path: "embedding", shape: &shape, embedding: true };
            let gradient = Flat::Host(gradients[step * n..(step + 1) * n].to_vec());
            weight = rule.step(place, f64::from(*rate), weight, gradient, 1.0);
            for (i, (found, expected)) in weight.to_vec().iter().zip(&expected[step * n..]).enumerate() {
                // The reference is FP64, rounded; weights of about 1 take a handful of FP32 roundings here.
                let allowed = 3e-7 * expected.abs().max(1.0);
                assert!(
                    (found - expected).abs() <= allowed,
                    "{name} step {step} weight {i}: {found}, not {expected}"
                );
            }
        }
    }
}
