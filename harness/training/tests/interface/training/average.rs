//! The exponential mean of the weights equals a plain sum over the weights after each update of a
//! run without a mean; and validation uses the mean.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::toy::*;
use zoo_models::parameters::ParameterValues;
use zoo_recipes::EvaluatedWeights;
use zoo_training::checkpoint::Checkpoint;
use zoo_training::{Outcome, TrainError, TrainSettings, Trainer};

/// Share of itself that a mean keeps.
const KEEP: f64 = 0.8;

type Weights = BTreeMap<String, Vec<f32>>;

/// One update is skipped: it moves neither the weights nor the mean.
fn source() -> ToySource {
    ToySource { factors: BTreeMap::from([((1, 0), f32::INFINITY)]), dropout_off: false }
}

fn new(settings: TrainSettings) -> Trainer<Toy, Batch> {
    trainer(settings, phase(&ADAM, &warm_up(), &backoff(1024.0)))
}

fn averaging(folder: &Path) -> TrainSettings {
    TrainSettings { ema: Some(KEEP), evaluate: EvaluatedWeights::Last, ..settings(folder) }
}

fn by_path(values: Vec<ParameterValues>) -> Weights {
    values.into_iter().map(|p| (p.path, p.values)).collect()
}

/// The mean after each update, by the formula, from the weights of a run without a mean.
fn plain() -> Vec<Weights> {
    let folder = tempfile::tempdir().unwrap();
    let every = EvaluatedWeights::MeanOfLast { checkpoints: 100, every_updates: 1 };
    let mut trainer = new(TrainSettings { evaluate: every, ..settings(folder.path()) });
    let mut mean = weights(trainer.model());
    run(&mut trainer, &mut source());
    let (keep, rest) = (KEEP as f32, (1.0 - KEEP) as f32);
    let mut means = vec![mean.clone()];
    for kept in &trainer.state().kept_weights {
        let now = by_path(Checkpoint::read(&folder.path().join(&kept.file)).unwrap().weights);
        for (path, values) in &mut mean {
            values.iter_mut().zip(&now[path]).for_each(|(m, w)| *m = *m * keep + w * rest);
        }
        means.push(mean.clone());
    }
    assert_eq!((means.len(), trainer.state().counters.skipped), (19, 1));
    means
}

#[test]
fn the_mean_is_that_of_a_plain_computation_and_is_what_is_validated_and_evaluated() {
    let means = plain();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new(averaging(folder.path()));
    let mut validated = Vec::new();
    let mut validation = |model: &Toy, _| {
        validated.push(weights(model));
        Ok(seen(1.0))
    };
    let stop = AtomicBool::new(false);
    trainer.run(&mut source(), Some(&mut validation), &mut Watch::default(), None, &stop).unwrap();
    let found = by_path(trainer.folder().evaluated(&EvaluatedWeights::Last).unwrap().weights);
    assert_eq!(found, means[18]);
    assert_ne!(found, weights(trainer.model()), "the weights themselves go on from where they are");
    assert!(validated.len() > 3 && validated.iter().all(|weights| means.contains(weights)));
    // A checkpoint of a run with a mean evaluates to that mean.
    let newest = trainer.folder().states().unwrap().remove(0);
    assert_eq!(by_path(Checkpoint::read(&newest).unwrap().into_evaluated()), means[18]);
}

#[test]
fn the_best_weights_are_those_of_the_mean() {
    let means = plain();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new(TrainSettings { evaluate: BEST, ..averaging(folder.path()) });
    run(&mut trainer, &mut source());
    let best = trainer.folder().evaluated(&BEST).unwrap();
    assert_eq!(by_path(best.weights), means[best.updates[0] as usize]);
}

#[test]
fn a_run_stopped_after_any_update_goes_on_with_the_same_mean() {
    let means = plain();
    for after in 1..18 {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut watch = Watch { stop_after: Some((after, &stop)), ..Watch::default() };
        let outcome = run_logged(&mut new(averaging(folder.path())), &mut source(), &mut watch, &stop);
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{after}: {outcome:?}");
        let mut trainer = new(averaging(folder.path()));
        assert_eq!(trainer.resume().unwrap(), Vec::<String>::new());
        run(&mut trainer, &mut source());
        let found = by_path(trainer.folder().evaluated(&EvaluatedWeights::Last).unwrap().weights);
        assert_eq!(found, means[18], "stopped after {after}");
    }
}

#[test]
fn a_checkpoint_without_a_mean_is_none_of_such_a_run() {
    let folder = tempfile::tempdir().unwrap();
    run(&mut new(TrainSettings { ema: None, ..averaging(folder.path()) }), &mut source());
    let error = new(averaging(folder.path())).resume().unwrap_err();
    assert!(matches!(&error, TrainError::OtherRun { what, .. } if what.contains("mean")), "{error}");
}

#[test]
fn parameters_of_no_mean_are_evaluated_as_they_are_also_after_a_stop() {
    let means = plain();
    let of = |folder: &Path| TrainSettings { ema_of: vec!["hidden".to_owned()], ..averaging(folder) };
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut watch = Watch { stop_after: Some((7, &stop)), ..Watch::default() };
    run_logged(&mut new(of(folder.path())), &mut source(), &mut watch, &stop);
    let mut trainer = new(of(folder.path()));
    assert_eq!(trainer.resume().unwrap(), Vec::<String>::new());
    run(&mut trainer, &mut source());
    let found = by_path(trainer.folder().evaluated(&EvaluatedWeights::Last).unwrap().weights);
    let last = weights(trainer.model());
    assert_eq!(found.keys().collect::<Vec<_>>(), last.keys().collect::<Vec<_>>());
    for (path, values) in &found {
        let due = if path == "hidden" { &means[18] } else { &last };
        assert_eq!(values, &due[path], "{path}");
    }
    assert_ne!(found["hidden"], last["hidden"]);
}
