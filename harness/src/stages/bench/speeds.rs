//! What a bench has measured, as it is printed.

use serde::Serialize;
use zoo_results::statistics::SpeedUp;
use zoo_training::timing::Lap;

use crate::environment::Environment;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Bench {
    /// Recipe.
    pub recipe: String,
    /// Tier, if it is not the published size.
    pub tier: Option<String>,
    /// `real`; `generated`: lengths as text has them, words at random; or the shape of full batches.
    pub data: String,
    /// What computed.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// How far the thread that makes batches keeps ahead of the fastest updates; `None` for batches of one shape.
    pub data_margin: Option<DataMargin>,
    /// Speeds, the baseline's first.
    pub arms: Vec<ArmSpeed>,
    /// Each further arm against the first.
    pub speed_ups: Vec<ArmSpeedUp>,
    /// Most memory that the updates of all arms together took, bytes; of a card with what other programs hold on it.
    pub peak_memory: Option<u64>,
}

/// An arm's speed.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeed {
    /// Arm.
    pub arm: String,
    /// Type of its products, as a probe finds it.
    pub compute: String,
    /// Parameters.
    pub parameters: u64,
    /// Rows of the target's vocabulary.
    pub vocabulary: usize,
    /// Source and target tokens of an update, padding left aside; mean over the batches that were timed.
    pub tokens_per_update: f64,
    /// Seconds an update.
    pub seconds_per_update: Spread,
    /// Source and target tokens a second.
    pub tokens_per_second: Spread,
    /// Operations a second, against the count of products that the model needs.
    pub flops: Spread,
    /// What an update's seconds are spent on.
    pub split: Split,
    /// How near it comes to what the device does at most.
    pub roofline: Roofline,
    /// Updates that were skipped for overflow while the clock ran.
    pub skipped: u64,
    /// All blocks.
    pub laps: Vec<Lap>,
}

/// Seconds of the parts of an update, from updates of their own: the device comes to rest between parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    /// To make the batches, in a thread of their own while the update before is computed; `None` for batches of one shape, which
    /// nobody reads.
    pub data: Option<f64>,
    /// How many times faster that thread is than the updates.
    pub data_ahead: Option<f64>,
    /// Forward passes.
    pub forward: f64,
    /// Backward passes.
    pub backward: f64,
    /// Norm, clipping, optimizer.
    pub update: f64,
    /// What the median update takes beyond these three; negative where the parts overlap when nobody watches.
    pub rest: f64,
}

/// How far one thread that makes batches keeps ahead, where it has the least room.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataMargin {
    /// Arm whose updates leave it the least.
    pub arm: String,
    /// Updates whose batches that thread makes in a second.
    pub made_per_second: f64,
    /// Updates a second in the arm's fastest block.
    pub used_per_second: f64,
    /// The first over the second; below 1 training waits for data.
    pub times: f64,
}

impl DataMargin {
    /// Of all arms.
    pub fn of(arms: &[ArmSpeed]) -> Option<Self> {
        let margins = arms.iter().filter_map(|arm| {
            let (made, used) = (1.0 / arm.split.data?, 1.0 / arm.seconds_per_update.low);
            Some(Self {
                arm: arm.arm.clone(),
                made_per_second: made,
                used_per_second: used,
                times: made / used,
            })
        });
        margins.min_by(|a, b| a.times.total_cmp(&b.times))
    }
}

/// Measured ceilings of the device, and how much of them an arm reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Roofline {
    /// Operations a second of a large product in the arm's type.
    pub product_flops: f64,
    /// Share of them that the median update reaches with the products that the model needs.
    pub product_share: f64,
    /// Bytes a second, read and written, of a pass over a large array.
    pub copy_bytes: f64,
    /// Share of them that the part `update` reaches with the bytes that the optimizer must move; `None` for LazyAdam, which moves the
    /// rows that a batch uses.
    pub update_share: Option<f64>,
}

/// Blocks in the middle and at the ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Spread {
    /// Of some values; not numbers if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            (at(middle.wrapping_sub(1)) + at(middle)) / 2.0
        } else {
            at(middle)
        };
        Self { median, low: at(0), high: at(values.len().wrapping_sub(1)) }
    }
}

/// One arm against the first.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeedUp {
    /// Arm.
    pub arm: String,
    /// The arm that is 1.0.
    pub baseline: String,
    /// Tokens a second over the baseline's.
    pub speed_up: Option<SpeedUp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &str, fastest: f64, data: Option<f64>) -> ArmSpeed {
        let spread = Spread { median: 2.0 * fastest, low: fastest, high: 4.0 * fastest };
        ArmSpeed {
            arm: name.into(),
            compute: "fp32".into(),
            parameters: 1,
            vocabulary: 1,
            tokens_per_update: 1.0,
            seconds_per_update: spread,
            tokens_per_second: spread,
            flops: spread,
            split: Split { data, data_ahead: None, forward: 0.0, backward: 0.0, update: 0.0, rest: 0.0 },
            roofline: Roofline {
                product_flops: 1.0,
                product_share: 1.0,
                copy_bytes: 1.0,
                update_share: None,
            },
            skipped: 0,
            laps: Vec::new(),
        }
    }

    #[test]
    fn the_margin_is_that_of_the_fastest_block_of_the_arm_that_leaves_the_least() {
        // 8 updates' batches a second against 4 updates at most, and 4 against 1.
        let arms = [arm("fp32", 1.0, Some(0.25)), arm("mixed", 0.25, Some(0.125))];
        let margin = DataMargin::of(&arms).unwrap();
        assert_eq!(
            (margin.arm.as_str(), margin.made_per_second, margin.used_per_second, margin.times),
            ("mixed", 8.0, 4.0, 2.0)
        );
        assert_eq!(DataMargin::of(&[arm("fp32", 1.0, None)]), None);
    }

    #[test]
    fn a_spread_has_the_median_of_even_and_odd_numbers() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, low: 1.0, high: 4.0 });
        assert_eq!(of(&[5.0]).median, 5.0);
    }
}
