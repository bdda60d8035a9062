//! Blocks of updates that are timed: the same work each time, and updates that really are made.

use burn::tensor::FloatDType;
use zoo_models::precision::Compute;
use zoo_training::batches::Fetched;
use zoo_training::timing::{TimedArm, round};

use crate::toy::*;

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
fn every_block_goes_through_the_same_batches() {
    let mut arm = arm();
    let of_update: Vec<u64> = updates().iter().map(|u| u.iter().map(|f| f.tokens).sum()).collect();
    assert!(of_update[0] != of_update[1], "{of_update:?}");
    let two = of_update[0] + of_update[1];
    let five = 2 * of_update.iter().sum::<u64>() - of_update[2];
    for (updates, tokens) in [(2, two), (2, two), (5, five)] {
        let lap = arm.lap(updates).unwrap();
        assert_eq!((lap.updates, lap.tokens, lap.skipped), (updates, tokens, 0));
        assert!(lap.seconds > 0.0);
    }
}

#[test]
fn warming_up_waits_for_a_loss_scale_that_fits() {
    // IEEE half holds numbers up to 65,504: the scale has to be halved until scaled gradients fit.
    let mut arm = timed(65536.0, Compute(FloatDType::F16));
    assert_eq!(arm.lap(1).unwrap().skipped, 1);
    assert_eq!(arm.warm_up().unwrap().skipped, 0);
}

#[test]
fn a_round_has_four_blocks_of_both_arms() {
    let (mut baseline, mut candidate) = (arm(), arm());
    let found = round(&mut baseline, &mut candidate, 3).unwrap();
    for lap in [found.baseline_first, found.candidate_first, found.candidate_second, found.baseline_second] {
        assert_eq!(lap.updates, 3);
    }
}

#[test]
fn without_batches_there_is_nothing_to_time() {
    let phase = phase(&sgd(), &warm_up(), &backoff(1.0));
    let failed = TimedArm::new(Toy::new(3), vec![phase], vec![], Compute::FP32, 3).err().unwrap();
    assert!(failed.to_string().contains("no batches"), "{failed}");
}
