//! Checkpoints on disk: damage is detected and located, two states are kept, means are correct; and
//! how runs end.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use super::toy::*;
use zoo_models::parameters;
use zoo_recipes::{Clock, Direction, EvaluatedWeights, LossScalingSpec, Moment, ScheduleSpec};
use zoo_training::checkpoint::{Checkpoint, CheckpointError, read_state};
use zoo_training::{Asked, Ending, Outcome, Score, Seen, Silent, TrainSettings, Trainer};

fn new(settings: TrainSettings) -> Trainer<Toy, Batch> {
    trainer(settings, phase(&ADAM, &warm_up(), &backoff(1024.0)))
}

fn names(folder: &std::path::Path, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
}

#[test]
fn a_checkpoint_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let mut weights = parameters::export(&Toy::new(1));
    // Values that a careless conversion would change.
    weights[0].values[0] = f32::MIN_POSITIVE / 8.0;
    weights[0].values[1] = -0.0;
    weights[0].values[2] = 1.0 + f32::EPSILON;
    let mut trainer = new(settings(folder.path()));
    run(&mut trainer, &mut ToySource::default());
    let state = trainer.state().clone();
    let checkpoint = Checkpoint { state: Some(state.clone()), ..Checkpoint::of_weights(weights) };
    let path = folder.path().join("a.safetensors");
    let mut before = names(folder.path(), "");
    let first = checkpoint.write(&path).unwrap();
    let read = Checkpoint::read_checked(&path, &first).unwrap();
    assert_eq!(read_state(&path).unwrap(), Some(state));
    let bits = |c: &Checkpoint| -> BTreeMap<String, Vec<u32>> {
        c.weights.iter().map(|p| (p.path.clone(), p.values.iter().map(|x| x.to_bits()).collect())).collect()
    };
    assert_eq!(bits(&read), bits(&checkpoint));
    assert_eq!(checkpoint.write(&path).unwrap(), first, "the same checkpoint is the same file");
    before.insert(0, "a.safetensors".to_owned());
    assert_eq!(names(folder.path(), ""), before, "nothing but the checkpoint is left");
}

#[test]
fn any_flipped_byte_and_any_missing_end_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new(settings(folder.path()));
    run(&mut trainer, &mut ToySource::default());
    let path = trainer.folder().states().unwrap().remove(0);
    let whole = fs::read(&path).unwrap();
    assert!(Checkpoint::read(&path).is_ok());
    let copy = folder.path().join("copy.safetensors");
    // One byte at a time: all at both ends, every seventh in between.
    let places =
        (0..whole.len()).filter(|place| place.is_multiple_of(7) || *place < 64 || whole.len() - place < 64);
    for place in places {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&copy, &bytes).unwrap();
        let error =
            Checkpoint::read(&copy).expect_err(&format!("byte {place} of {} was flipped", whole.len()));
        assert!(error.to_string().contains("copy.safetensors"), "{error}");
    }
    // The error names the last array of the file.
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&copy, &bytes).unwrap();
    let error = Checkpoint::read(&copy).unwrap_err().to_string();
    assert!(error.contains("array `weights/mean` does not have its SHA-256"), "{error}");
    for len in [0, 4, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&copy, &whole[..len]).unwrap();
        assert!(Checkpoint::read(&copy).is_err(), "cut to {len} bytes");
    }
    fs::write(&copy, [&whole[..], &[0]].concat()).unwrap();
    assert!(Checkpoint::read(&copy).is_err(), "a byte too many");
}

#[test]
fn two_states_are_kept_and_a_damaged_newest_one_is_passed_over_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let undisturbed = tempfile::tempdir().unwrap();
    let mut expected = new(settings(undisturbed.path()));
    run(&mut expected, &mut ToySource::default());

    let stop = AtomicBool::new(false);
    let mut trainer = new(settings(folder.path()));
    let mut watch = Watch { stop_after: Some((10, &stop)), ..Watch::default() };
    run_logged(&mut trainer, &mut ToySource::default(), &mut watch, &stop);
    let states = names(folder.path(), "state-");
    // Batch 14 at the end of the second epoch (8 updates) and 16 + 1... the stop after 10 updates:
    // 18 batches.
    assert_eq!(states, ["state-0000000016.safetensors", "state-0000000018.safetensors"]);
    let newest = folder.path().join(&states[1]);
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() - 10;
    bytes[middle] ^= 4;
    fs::write(&newest, bytes).unwrap();

    let mut trainer = new(settings(folder.path()));
    let warnings = trainer.resume().unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("state-0000000018.safetensors") && warnings[0].contains("weights/mean"),
        "{warnings:?}"
    );
    assert_eq!(trainer.state().counters.batch, 16);
    assert_eq!(names(folder.path(), "state-0000000018"), ["state-0000000018.safetensors.damaged"]);
    run(&mut trainer, &mut ToySource::default());
    assert_eq!(weights(trainer.model()), weights(expected.model()));

    for path in trainer.folder().states().unwrap() {
        fs::write(path, b"nothing").unwrap();
    }
    let error = new(settings(folder.path())).resume().unwrap_err();
    assert!(error.to_string().contains("has no intact checkpoint"), "{error}");
}

#[test]
fn the_mean_of_the_last_epochs_is_evaluated_and_older_weights_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new(settings(folder.path()));
    run(&mut trainer, &mut ToySource::default());
    // 18 updates end within the fifth epoch: four epochs are complete, after 4, 8, 12, 16 updates.
    let kept = names(folder.path(), "weights-");
    let of = |update: u64| format!("weights-{update:08}.safetensors");
    assert_eq!(kept, [of(8), of(12), of(16)]);
    let found = trainer.folder().evaluated(&EvaluatedWeights::MeanOfEpochs { epochs: 3 }).unwrap();
    assert_eq!(found.updates, [8, 12, 16]);
    let read: Vec<_> =
        kept.iter().map(|name| Checkpoint::read(&folder.path().join(name)).unwrap().weights).collect();
    for (i, p) in found.weights.iter().enumerate() {
        for (j, x) in p.values.iter().enumerate() {
            let mean = read.iter().map(|weights| f64::from(weights[i].values[j])).sum::<f64>() / 3.0;
            assert_eq!(*x, mean as f32);
        }
    }
    let two = trainer.folder().evaluated(&EvaluatedWeights::MeanOfEpochs { epochs: 2 }).unwrap();
    assert_eq!(two.updates, [12, 16]);
    let last = trainer.folder().evaluated(&EvaluatedWeights::Last).unwrap();
    let by_path: BTreeMap<_, _> = last.weights.into_iter().map(|p| (p.path, p.values)).collect();
    assert_eq!(by_path, weights(trainer.model()));
    assert!(trainer.folder().evaluated(&BEST).is_err());
    // Intact weights of another run in place of these are detected.
    fs::copy(folder.path().join(of(8)), folder.path().join(of(12))).unwrap();
    let error = trainer.folder().evaluated(&EvaluatedWeights::MeanOfEpochs { epochs: 3 }).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
}

#[test]
fn weights_at_a_fixed_distance_are_kept_whatever_an_epoch_is_and_again_after_a_resume() {
    let run_for = |folder: &std::path::Path, stop_after: Option<usize>| {
        let mut settings = settings(folder);
        settings.evaluate = EvaluatedWeights::MeanOfLast { checkpoints: 3, every_updates: 5 };
        let stop = AtomicBool::new(false);
        let mut trainer = new(settings.clone());
        if let Some(updates) = stop_after {
            let mut watch = Watch { stop_after: Some((updates, &stop)), ..Watch::default() };
            run_logged(&mut trainer, &mut ToySource::default(), &mut watch, &stop);
            trainer = new(settings.clone());
            trainer.resume().unwrap();
        }
        run(&mut trainer, &mut ToySource::default());
        trainer.folder().evaluated(&settings.evaluate).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let found = run_for(folder.path(), None);
    // 18 updates in epochs of four: none of the three ends an epoch.
    assert_eq!(found.updates, [5, 10, 15]);
    assert_eq!(names(folder.path(), "weights-").len(), 3);
    let two = EvaluatedWeights::MeanOfLast { checkpoints: 2, every_updates: 5 };
    let trainer = {
        let mut trainer = new(settings(folder.path()));
        trainer.resume().unwrap();
        trainer
    };
    assert_eq!(trainer.folder().evaluated(&two).unwrap().updates, [10, 15]);
    for stop_after in [5, 6, 9, 10, 11, 17] {
        let folder = tempfile::tempdir().unwrap();
        let again = run_for(folder.path(), Some(stop_after));
        assert_eq!(again.updates, found.updates, "stopped after {stop_after}");
        assert_eq!(again.weights, found.weights, "stopped after {stop_after}");
    }
    // A run that is shorter than the interval has no kept weights.
    let folder = tempfile::tempdir().unwrap();
    let mut short = settings(folder.path());
    short.evaluate = EvaluatedWeights::MeanOfLast { checkpoints: 3, every_updates: 50 };
    let mut trainer = new(short.clone());
    run(&mut trainer, &mut ToySource::default());
    let error = trainer.folder().evaluated(&short.evaluate).unwrap_err().to_string();
    assert!(error.contains("every_updates"), "{error}");
}

#[test]
fn patience_ends_a_run_that_no_longer_improves_and_the_best_weights_are_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    (settings.max_updates, settings.patience, settings.evaluate) = (Some(1000), Some(2), BEST);
    let mut trainer = new(settings);
    // Validation losses by epoch: better, better, worse, equal.
    let losses = [3.0, 2.0, 2.5, 2.0, 1.0];
    let mut calls = 0;
    let mut validated = Vec::new();
    let mut validation = |model: &Toy, _| {
        calls += 1;
        validated.push(weights(model));
        Ok(seen(losses[calls - 1]))
    };
    let stop = AtomicBool::new(false);
    let outcome =
        trainer.run(&mut ToySource::default(), Some(&mut validation), &mut Watch::default(), None, &stop);
    assert_eq!(outcome.unwrap(), Outcome::Finished(Ending::Patience));
    assert_eq!((calls, trainer.state().counters.epoch), (4, 4));
    assert_eq!(trainer.state().best.as_ref().map(|best| (best.epoch, best.loss)), Some((2, Some(2.0))));
    let best = trainer.folder().evaluated(&BEST).unwrap();
    assert_eq!(best.updates, [8]);
    let best: BTreeMap<_, _> = best.weights.into_iter().map(|p| (p.path, p.values)).collect();
    assert_eq!(best, validated[1]);
    assert_eq!(names(folder.path(), "weights-"), ["weights-00000008.safetensors"]);
}

#[test]
fn the_best_may_be_that_of_a_score_from_an_epoch_on() {
    // Losses select the second epoch, errors the third; from the fourth epoch on both are worse
    // than before.
    let (losses, errors) = ([3.0, 1.0, 2.0, 2.5, 2.4], [30.0, 25.0, 10.0, 20.0, 15.0]);
    let chosen = |from_epoch: u64, direction: Direction, stopped: Option<usize>| {
        let folder = tempfile::tempdir().unwrap();
        let evaluate = EvaluatedWeights::Best { decode: Some("greedy".into()), from_epoch };
        let mut looked = Vec::new();
        // With one stop at the end of an epoch, the best weights come from the checkpoint.
        for stopped in stopped.into_iter().map(Some).chain([None]) {
            let (max_updates, max_epochs) = (None, Some(5));
            let settings = TrainSettings {
                evaluate: evaluate.clone(),
                max_updates,
                max_epochs,
                ..settings(folder.path())
            };
            let mut trainer = new(settings);
            trainer.resume().unwrap();
            let stop = AtomicBool::new(false);
            let mut epoch = trainer.state().counters.epoch as usize;
            let mut validation = |_: &Toy, asked: Asked| {
                epoch += 1;
                stop.store(stopped == Some(epoch), Ordering::Relaxed);
                let score = (asked == Asked::LossAndScore).then(|| {
                    looked.push(epoch);
                    Score { value: errors[epoch - 1], direction }
                });
                Ok(Seen { score, ..seen(losses[epoch - 1]) })
            };
            let source = &mut ToySource::default();
            trainer.run(source, Some(&mut validation), &mut Watch::default(), None, &stop).unwrap();
        }
        let found = new(settings(folder.path())).folder().evaluated(&evaluate).unwrap();
        (found.updates, looked)
    };
    // Four updates make an epoch.
    assert_eq!(chosen(0, Direction::Lower, None), (vec![12], vec![1, 2, 3, 4, 5]));
    assert_eq!(chosen(0, Direction::Higher, None).0, [4]);
    assert_eq!(chosen(4, Direction::Lower, None), (vec![20], vec![4, 5]));
    assert_eq!(chosen(4, Direction::Higher, Some(4)), (vec![16], vec![4, 5]));
    assert_eq!(chosen(3, Direction::Lower, Some(4)), (vec![12], vec![3, 4, 5]));
    // A run that ends before the first eligible epoch uses its last weights.
    assert_eq!(chosen(9, Direction::Lower, Some(2)), (vec![20], vec![5]));
}

#[test]
fn a_score_that_decides_must_be_found() {
    let folder = tempfile::tempdir().unwrap();
    let evaluate = EvaluatedWeights::Best { decode: Some("greedy".into()), from_epoch: 0 };
    let mut trainer = new(TrainSettings { evaluate, ..settings(folder.path()) });
    let stop = AtomicBool::new(false);
    let mut validation = |_: &Toy, _| Ok(seen(1.0));
    let source = &mut ToySource::default();
    let error = trainer.run(source, Some(&mut validation), &mut Watch::default(), None, &stop).unwrap_err();
    assert!(error.to_string().contains("it gave no score"), "{error}");
}

#[test]
fn a_rate_falls_on_a_plateau_which_a_checkpoint_remembers_until_it_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let plateau =
        ScheduleSpec::Plateau { lr: 0.1, factor: 0.5, patience: 0, keeps_falling: false, min_lr: 0.03 };
    let losses = [3.0, 2.0, 2.5, 1.0, 1.0, 0.5];
    let part = |interrupted: Option<usize>| {
        let settings = TrainSettings { max_updates: None, max_epochs: Some(20), ..settings(folder.path()) };
        let mut trainer = trainer(settings, phase(&sgd(), &plateau, &LossScalingSpec::None));
        trainer.resume().unwrap();
        let mut calls = trainer.state().counters.epoch as usize;
        let stop = AtomicBool::new(false);
        let mut validation = |_: &Toy, _| {
            calls += 1;
            stop.store(interrupted == Some(calls), Ordering::Relaxed);
            Ok(seen(losses[calls - 1]))
        };
        let mut watch = Watch::default();
        let source = &mut ToySource::default();
        let outcome = trainer.run(source, Some(&mut validation), &mut watch, None, &stop).unwrap();
        let state = trainer.state();
        let ending = match outcome {
            Outcome::Finished(ending) => Some(ending),
            Outcome::Interrupted { .. } => None,
            Outcome::Paused | Outcome::Diverged { .. } => panic!("{outcome:?}"),
        };
        (ending, state.counters.epoch, state.phases[0].falls)
    };
    // Worse after the third epoch, not better after the fifth: 0.05, then 0.025.
    assert_eq!(part(Some(3)), (None, 3, 1));
    assert_eq!(part(None), (Some(Ending::Rate), 5, 2));
    assert_eq!(part(None), (Some(Ending::Rate), 5, 2));
}

#[test]
fn a_run_ends_after_its_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer =
        new(TrainSettings { max_updates: None, max_epochs: Some(3), ..settings(folder.path()) });
    assert_eq!(run(&mut trainer, &mut ToySource::default()), Outcome::Finished(Ending::MaxEpochs));
    let counters = trainer.state().counters;
    assert_eq!((counters.epoch, counters.batch, counters.update, counters.micro_step), (3, 21, 12, 21));
}

#[test]
fn the_end_says_the_loss_since_the_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new(TrainSettings { log_every: 7, max_updates: Some(10), ..settings(folder.path()) });
    run_logged(&mut trainer, &mut ToySource::default(), &mut Silent, &AtomicBool::new(false));
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let (train, end) = (of("train"), of("end"));
    assert_eq!((train.len(), end.len()), (1, 1));
    assert_eq!((train[0]["updates"].as_u64(), end[0]["updates"].as_u64()), (Some(7), Some(3)));
    assert!(end[0]["loss"].as_f64().unwrap() < train[0]["loss"].as_f64().unwrap(), "{log}");
}

#[test]
fn a_run_that_stays_not_finite_has_diverged_and_says_so_again() {
    let folder = tempfile::tempdir().unwrap();
    // The weights leave the range of FP32 after some updates, with scale 1 and no scaler that could
    // be the cause.
    let huge = ScheduleSpec::Fixed { lr: 1e25 };
    let build = || {
        let settings =
            TrainSettings { diverged_after: 5, max_updates: Some(1000), ..settings(folder.path()) };
        trainer(settings, phase(&sgd(), &huge, &LossScalingSpec::None))
    };
    let mut trainer = build();
    let outcome = run(&mut trainer, &mut ToySource::default());
    let Outcome::Diverged { phase, update } = outcome.clone() else { panic!("{outcome:?}") };
    assert_eq!(phase, "main");
    assert_eq!(trainer.state().counters.skipped, 5);
    assert_eq!(trainer.state().counters.update, update);
    let mut again = build();
    again.resume().unwrap();
    assert_eq!(run(&mut again, &mut ToySource::default()), outcome);
    assert_eq!(again.state().counters.skipped, 5);
}

#[test]
fn a_scale_that_can_still_fall_is_no_divergence() {
    let folder = tempfile::tempdir().unwrap();
    // Twelve overflows in a row from 2^12 on, while the limit is five.
    let factors = (0..3).flat_map(|epoch| (0..7).map(move |i| ((epoch, i), f32::NAN))).collect();
    let build = |scale: f64| {
        let settings = TrainSettings { diverged_after: 5, ..settings(folder.path()) };
        trainer(settings, phase(&sgd(), &ScheduleSpec::Fixed { lr: 0.1 }, &backoff(scale)))
    };
    let mut source = ToySource { factors, dropout_off: false };
    let mut trainer = build(4096.0);
    assert_eq!(run(&mut trainer, &mut source), Outcome::Finished(Ending::MaxUpdates));
    assert_eq!(trainer.state().counters.skipped, 12);
    fs::remove_dir_all(folder.path()).unwrap();
    // From 2^4 on the scale reaches its minimum after four, and stays there for eight.
    assert!(matches!(run(&mut build(16.0), &mut source), Outcome::Diverged { .. }));
}

#[test]
fn a_run_comes_back_at_the_moments_that_are_asked_for_and_trains_as_without() {
    let moments = [(Clock::Updates, 2), (Clock::Updates, 9), (Clock::Epochs, 2), (Clock::Epochs, 3)];
    let moments = moments.map(|(clock, at)| Moment { clock, at });
    let settings = |folder: &std::path::Path| TrainSettings {
        max_updates: None,
        max_epochs: Some(3),
        ..settings(folder)
    };
    let plain = tempfile::tempdir().unwrap();
    let mut straight = new(settings(plain.path()));
    run(&mut straight, &mut ToySource::default());
    assert!(straight.reached().is_empty());
    for resumed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Vec::new();
        let build = || {
            let mut trainer = new(settings(folder.path()));
            trainer.pause_at(moments);
            trainer.resume().unwrap();
            trainer
        };
        let mut trainer = build();
        loop {
            let outcome = run(&mut trainer, &mut ToySource::default());
            seen.push((trainer.state().counters.update, trainer.reached()));
            if outcome == Outcome::Finished(Ending::MaxEpochs) {
                break;
            }
            assert_eq!(outcome, Outcome::Paused);
            if resumed {
                // A reopened run has the same reached moments.
                let before = trainer.reached();
                trainer = build();
                assert_eq!(trainer.reached(), before);
            }
        }
        // The run's end comes without a pause before it.
        let due =
            [(2, vec![moments[0]]), (8, vec![moments[2]]), (9, vec![moments[1]]), (12, vec![moments[3]])];
        assert_eq!(seen, due);
        assert_eq!(weights(trainer.model()), weights(straight.model()));
        let now: BTreeMap<_, _> = trainer.weights_now().into_iter().map(|p| (p.path, p.values)).collect();
        assert_eq!(now, weights(trainer.model()));
    }
}
