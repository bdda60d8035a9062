//! Runs without FP32 masters: checkpoints hold values of the compute type, and a run that was stopped
//! goes on bit for bit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::toy::*;
use burn::tensor::FloatDType;
use zoo_models::precision::Compute;
use zoo_training::checkpoint::PhaseMoments;
use zoo_training::{CheckpointFolder, Ending, Outcome, TrainSettings, Trainer};

const HALVES: [Compute; 2] = [Compute(FloatDType::F16), Compute(FloatDType::BF16)];

/// One update is skipped.
fn source() -> ToySource {
    ToySource { factors: BTreeMap::from([((1, 0), f32::INFINITY)]), dropout_off: false }
}

/// A run whose products are in one type and whose weights have the values of another.
fn new(folder: &Path, compute: Compute, weights: Compute) -> Trainer<Toy, Batch> {
    let phase = phase(&ADAM, &warm_up(), &backoff(1024.0)).clipped(Some(2.0)).with_weights(weights);
    trainer(TrainSettings { compute, ..settings(folder) }, phase)
}

type Arrays = BTreeMap<String, Vec<f32>>;

/// Weights and moments of the newest checkpoint.
fn newest(folder: &Path) -> (Arrays, Vec<PhaseMoments>) {
    let checkpoint = CheckpointFolder::new(folder).latest().unwrap().unwrap().checkpoint;
    (checkpoint.weights.into_iter().map(|p| (p.path, p.values)).collect(), checkpoint.moments)
}

fn whole(compute: Compute, weights: Compute) -> (Arrays, Vec<PhaseMoments>) {
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&mut new(folder.path(), compute, weights), &mut source());
    assert_eq!(outcome, Outcome::Finished(Ending::MaxUpdates));
    newest(folder.path())
}

fn are_of(compute: Compute, values: &[f32]) -> bool {
    let mut rounded = values.to_vec();
    compute.round(&mut rounded);
    rounded == values
}

#[test]
fn weights_have_values_of_the_compute_type_from_the_start_and_statistics_have_not() {
    for half in HALVES {
        let folder = tempfile::tempdir().unwrap();
        let begun = new(folder.path(), half, half);
        assert!(weights(begun.model()).values().all(|values| are_of(half, values)), "{half:?}");
        let (arrays, moments) = whole(half, half);
        for (path, values) in &arrays {
            assert_eq!(are_of(half, values), path != "mean", "{half:?} {path}");
        }
        assert!(moments[0].moments.iter().all(|moment| !are_of(half, &moment.values)), "{half:?}");
        let (masters, _) = whole(half, Compute::FP32);
        assert!(masters.iter().all(|(path, values)| !are_of(half, values) && arrays[path] != *values));
    }
}

#[test]
fn a_stopped_run_without_masters_goes_on_bit_for_bit() {
    for half in HALVES {
        let expected = whole(half, half);
        for after in [1, 5, 8, 17] {
            let folder = tempfile::tempdir().unwrap();
            let stop = AtomicBool::new(false);
            let mut watch = Watch { stop_after: Some((after, &stop)), ..Watch::default() };
            let mut first = new(folder.path(), half, half);
            let outcome = run_logged(&mut first, &mut source(), &mut watch, &stop);
            assert!(matches!(outcome, Outcome::Interrupted { .. }), "{after}: {outcome:?}");
            let mut second = new(folder.path(), half, half);
            assert_eq!(second.resume().unwrap(), Vec::<String>::new());
            assert_eq!(run(&mut second, &mut source()), Outcome::Finished(Ending::MaxUpdates));
            assert_eq!(newest(folder.path()), expected, "{half:?}, stopped after {after}");
        }
    }
}

#[test]
fn a_phase_has_fp32_masters_by_default() {
    let phase = phase(&ADAM, &warm_up(), &backoff(1024.0));
    assert_eq!(phase.weights, Compute::FP32);
}
