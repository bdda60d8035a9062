//! A run that was stopped at any point continues bitwise equal. A checkpoint in which any single
//! part was changed does not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::toy::*;
use serde_json::Value;
use zoo_recipes::{EvaluatedWeights, LossScalingSpec, OptimizerSpec};
use zoo_training::checkpoint::{Checkpoint, PhaseMoments};
use zoo_training::scaling::ScalerState;
use zoo_training::{CheckpointFolder, Ending, Outcome, RunState, TrainError, TrainSettings, Trainer};

/// Batches with an overflow in FP32, which changes the scaler's state.
fn source() -> ToySource {
    ToySource { factors: BTreeMap::from([((0, 3), f32::NAN), ((1, 6), f32::INFINITY)]), dropout_off: false }
}

fn new(settings: TrainSettings) -> Trainer<Toy, Batch> {
    trainer(settings, phase(&ADAM, &warm_up(), &backoff(1024.0)).clipped(Some(2.0)))
}

/// Everything that must be equal at the end of two runs: weights, moments, state and log, except
/// times.
#[derive(Debug, PartialEq)]
struct End {
    weights: BTreeMap<String, Vec<f32>>,
    moments: Vec<PhaseMoments>,
    state: Value,
    averaged: BTreeMap<String, Vec<f32>>,
    log: Vec<Value>,
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.shift_remove("seconds");
            map.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

fn end_of(trainer: &Trainer<Toy, Batch>, folder: &Path) -> End {
    let checkpoints = CheckpointFolder::new(folder);
    let latest = checkpoints.latest().unwrap().unwrap();
    assert_eq!(latest.warnings, Vec::<String>::new());
    let mut state = serde_json::to_value(&latest.state).unwrap();
    without_times(&mut state);
    let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    let mut log: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    log.iter_mut().for_each(without_times);
    let averaged = checkpoints.evaluated(&EvaluatedWeights::MeanOfEpochs { epochs: 2 }).unwrap();
    End {
        weights: weights(trainer.model()),
        moments: latest.checkpoint.moments,
        state,
        averaged: averaged.weights.into_iter().map(|p| (p.path, p.values)).collect(),
        log,
    }
}

fn uninterrupted(folder: &Path) -> End {
    let mut trainer = new(settings(folder));
    let outcome = run_logged(&mut trainer, &mut source(), &mut Watch::default(), &AtomicBool::new(false));
    assert_eq!(outcome, Outcome::Finished(Ending::MaxUpdates));
    end_of(&trainer, folder)
}

/// Resumes like a new process: all objects are new. Runs to the end or until `after` updates of
/// this session.
fn session(folder: &Path, after: Option<usize>) -> (Trainer<Toy, Batch>, Outcome) {
    let mut trainer = new(settings(folder));
    assert_eq!(trainer.resume().unwrap(), Vec::<String>::new());
    let stop = AtomicBool::new(false);
    let mut watch = Watch { stop_after: after.map(|after| (after, &stop)), ..Watch::default() };
    let outcome = run_logged(&mut trainer, &mut source(), &mut watch, &stop);
    (trainer, outcome)
}

#[test]
fn a_run_stopped_after_any_update_goes_on_bit_for_bit() {
    let reference = tempfile::tempdir().unwrap();
    let expected = uninterrupted(reference.path());
    assert_eq!(expected.state["counters"]["update"], 18);
    assert_eq!(expected.state["counters"]["skipped"], 2);
    // Epochs of 7 batches in groups of 2, 2, 2, 1: 20 groups are 5 epochs.
    assert_eq!(expected.state["counters"]["epoch"], 5);
    assert_eq!(expected.state["counters"]["batch"], 35);
    for after in 1..20 {
        let folder = tempfile::tempdir().unwrap();
        let (_, outcome) = session(folder.path(), Some(after));
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{after}: {outcome:?}");
        let (trainer, outcome) = session(folder.path(), None);
        assert_eq!(outcome, Outcome::Finished(Ending::MaxUpdates));
        assert_eq!(end_of(&trainer, folder.path()), expected, "stopped after {after}");
    }
}

#[test]
fn a_run_stopped_after_every_update_goes_on_bit_for_bit() {
    let reference = tempfile::tempdir().unwrap();
    let expected = uninterrupted(reference.path());
    let folder = tempfile::tempdir().unwrap();
    let mut sessions = 0;
    let trainer = loop {
        sessions += 1;
        let (trainer, outcome) = session(folder.path(), Some(1));
        if outcome == Outcome::Finished(Ending::MaxUpdates) {
            break trainer;
        }
        assert!(sessions < 30);
    };
    assert!(sessions >= 19);
    assert_eq!(end_of(&trainer, folder.path()), expected);
}

#[test]
fn a_run_that_died_between_checkpoints_goes_on_from_the_last_one_and_rewrites_its_log() {
    let reference = tempfile::tempdir().unwrap();
    let expected = uninterrupted(reference.path());
    for died_after in [2, 5, 8, 11, 16] {
        let folder = tempfile::tempdir().unwrap();
        // A validation that fails, or a source that ends, stops the run without a checkpoint, as a
        // kill does.
        let mut trainer = new(settings(folder.path()));
        struct Dies(usize);
        impl zoo_training::Progress for Dies {
            fn on_update(&mut self, _: &zoo_training::UpdateReport) {
                self.0 -= 1;
                if self.0 == 0 {
                    std::panic::resume_unwind(Box::new("killed"));
                }
            }
        }
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_logged(&mut trainer, &mut source(), &mut Dies(died_after), &AtomicBool::new(false))
        }));
        assert!(died.is_err());
        // The last line is incomplete.
        use std::io::Write;
        let log = std::fs::File::options().append(true).create(true).open(folder.path().join("log.jsonl"));
        log.unwrap().write_all(b"{\"event\":\"train\",\"upd").unwrap();
        let (trainer, _) = session(folder.path(), None);
        assert_eq!(end_of(&trainer, folder.path()), expected, "died after {died_after}");
    }
}

#[test]
fn a_finished_run_does_nothing_when_called_again() {
    let folder = tempfile::tempdir().unwrap();
    let expected = uninterrupted(folder.path());
    let (trainer, outcome) = session(folder.path(), None);
    assert_eq!(outcome, Outcome::Finished(Ending::MaxUpdates));
    assert_eq!(end_of(&trainer, folder.path()), expected);
}

/// Changes the newest checkpoint; the result is intact.
fn alter(folder: &Path, change: impl FnOnce(&mut RunState, &mut Checkpoint)) {
    let mut latest = CheckpointFolder::new(folder).latest().unwrap().unwrap();
    change(&mut latest.state, &mut latest.checkpoint);
    latest.checkpoint.state = Some(latest.state);
    latest.checkpoint.write(&latest.path).unwrap();
}

type Part = (&'static str, fn(&mut RunState, &mut Checkpoint));

#[test]
fn no_part_of_a_checkpoint_can_be_left_out() {
    let reference = tempfile::tempdir().unwrap();
    let expected = uninterrupted(reference.path());
    let parts: [Part; 13] = [
        ("moments", |_, c| c.moments.clear()),
        ("first moments", |_, c| {
            c.moments[0].moments.iter_mut().filter(|m| m.name == "first").for_each(|m| m.values.fill(0.0));
        }),
        ("optimizer steps", |s, _| s.phases[0].optimizer_steps = 0),
        ("updates of the schedule", |s, _| s.phases[0].updates = 0),
        ("scale", |s, _| {
            s.phases[0].scaler = ScalerState::Backoff { scale: 1024.0, iteration: 0, last_overflow: -1 };
        }),
        ("micro-step", |s, _| s.counters.micro_step = 0),
        ("batch within the epoch", |s, _| s.counters.batch_in_epoch = 0),
        ("epoch", |s, _| s.counters.epoch = 0),
        ("update", |s, _| s.counters.update = 0),
        ("best validation", |s, _| s.best = None),
        ("kept weights of epochs", |s, _| s.kept_weights.clear()),
        ("sums of the log", |s, _| s.since_log = Default::default()),
        ("running statistics", |_, c| {
            c.weights.iter_mut().filter(|p| p.path == "mean").for_each(|p| p.values.fill(0.0));
        }),
    ];
    let control: Part = ("nothing", |_, _| {});
    for (name, remove) in std::iter::once(control).chain(parts) {
        let folder = tempfile::tempdir().unwrap();
        // In the middle of the fifth epoch, after an odd number of updates: sums for the log are
        // not empty.
        let (_, outcome) = session(folder.path(), Some(17));
        assert!(matches!(outcome, Outcome::Interrupted { .. }));
        alter(folder.path(), remove);
        let (trainer, _) = session(folder.path(), None);
        let end = end_of(&trainer, folder.path());
        assert_eq!(end == expected, name == "nothing", "left out: {name}");
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path(), Some(3));
    let refused = |settings: TrainSettings, rule: &OptimizerSpec, scaling: &LossScalingSpec| {
        let error = trainer(settings, phase(rule, &warm_up(), scaling)).resume().unwrap_err();
        assert!(error.to_string().contains("hint:"), "{error}");
        error
    };
    let mine = || settings(folder.path());
    let scaling = backoff(1024.0);
    for (other, what) in [
        (TrainSettings { fingerprint: "else".into(), ..mine() }, "recipe, arm or data"),
        (TrainSettings { seed: 4, ..mine() }, "seed"),
        (TrainSettings { batches_per_update: 3, ..mine() }, "batches per update"),
        (
            TrainSettings {
                compute: zoo_models::precision::Compute(burn::tensor::FloatDType::BF16),
                ..mine()
            },
            "compute type",
        ),
    ] {
        let error = refused(other, &ADAM, &scaling);
        assert!(matches!(&error, TrainError::OtherRun { what: found, .. } if *found == what), "{error}");
    }
    assert!(matches!(refused(mine(), &sgd(), &scaling), TrainError::Optimizer(_)));
    assert!(matches!(refused(mine(), &ADAM, &LossScalingSpec::None), TrainError::Scaling(_)));
}
