//! Timed blocks of updates: they do the same work each time, and really update the weights.

use burn::tensor::FloatDType;
use zoo_models::precision::Compute;
use zoo_training::batches::Fetched;
use zoo_training::timing::{Lap, Timed, TimedArm, round, warm_up_alone, warm_up_pair};

use super::toy::*;

fn updates() -> Vec<Vec<Fetched<Batch>>> {
    let fetched = |index| {
        let batch = Batch::draw(5, 0, index);
        Fetched { tokens: batch.ids.len() as u64, batch }
    };
    (0..3).map(|update| vec![fetched(2 * update), fetched(2 * update + 1)]).collect()
}

fn timed(scale: f64, compute: Compute) -> TimedArm<Toy, Batch> {
    let phase = phase(&sgd(), &warm_up(), &backoff(scale));
    TimedArm::new(Toy::new(3), vec![phase], updates(), compute, 3).unwrap()
}

fn arm() -> TimedArm<Toy, Batch> {
    timed(1.0, Compute::FP32)
}

#[test]
fn blocks_go_through_the_updates_in_turn() {
    let mut arm = arm();
    let of_update: Vec<u64> = updates().iter().map(|u| u.iter().map(|f| f.tokens).sum()).collect();
    assert!(of_update[0] != of_update[1], "{of_update:?}");
    for (updates, tokens) in [
        (2, of_update[0] + of_update[1]),
        (2, of_update[2] + of_update[0]),
        (3, of_update.iter().sum::<u64>()),
    ] {
        let lap = arm.lap(updates).unwrap();
        assert_eq!((lap.updates, lap.tokens, lap.skipped), (updates, tokens, 0));
        assert!(lap.seconds > 0.0);
    }
}

#[test]
fn a_block_with_a_skipped_update_is_made_again() {
    // IEEE half represents numbers up to 65,504: the scale has to be halved until scaled gradients
    // fit.
    let half = || timed(65536.0, Compute(FloatDType::F16));
    let mut arm = half();
    assert_eq!(arm.lap(1).unwrap().skipped, 1);
    let mut arm = half();
    let of_update: Vec<u64> = updates().iter().map(|u| u.iter().map(|f| f.tokens).sum()).collect();
    let lap = arm.clean_lap(2).unwrap();
    assert_eq!((lap.skipped, lap.tokens), (0, of_update[0] + of_update[1]));
    let mut arm = half();
    warm_up_alone(&mut arm).unwrap();
    assert_eq!(arm.lap(1).unwrap().skipped, 0);
}

#[test]
fn a_round_has_four_blocks_of_both_arms() {
    let (mut baseline, mut candidate) = (arm(), arm());
    let (of_baseline, of_candidate) = warm_up_pair(&mut baseline, &mut candidate).unwrap();
    assert!(of_baseline > 0.0 && of_candidate > 0.0);
    // Two of three updates: the second blocks of the arms have other batches than the first.
    let found = round(&mut baseline, &mut candidate, 2).unwrap();
    let of = |lap: Lap| (lap.updates, lap.tokens);
    assert_eq!(of(found.baseline_first), of(found.candidate_first), "both go through the same batches");
    assert_eq!(of(found.baseline_second), of(found.candidate_second));
    assert_ne!(of(found.baseline_first), of(found.baseline_second));
}

#[test]
fn without_batches_there_is_nothing_to_time() {
    let phase = phase(&sgd(), &warm_up(), &backoff(1.0));
    let failed = TimedArm::new(Toy::new(3), vec![phase], vec![], Compute::FP32, 3).err().unwrap();
    assert!(failed.to_string().contains("no batches"), "{failed}");
}

#[test]
fn the_parts_of_an_update_take_what_it_takes() {
    let mut arm = arm();
    let start = std::time::Instant::now();
    let parts = arm.parts(2).unwrap();
    let both = start.elapsed().as_secs_f64();
    assert!(parts.forward > 0.0 && parts.backward > 0.0 && parts.update > 0.0, "{parts:?}");
    assert!(2.0 * parts.sum() <= both, "{parts:?} in {both} s");
    // The third update is next: `parts` continues with the next batches as blocks do, and uses each
    // different update once.
    assert_eq!(arm.lap(1).unwrap().tokens, updates()[2].iter().map(|fetched| fetched.tokens).sum::<u64>());
    arm.parts(100).unwrap();
    assert_eq!(arm.lap(1).unwrap().tokens, updates()[0].iter().map(|fetched| fetched.tokens).sum::<u64>());
}
