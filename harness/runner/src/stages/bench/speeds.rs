//! Results of a benchmark, as they are printed.

use serde::Serialize;
use zoo_results::statistics::SpeedUp;
use zoo_training::timing::Lap;

use crate::environment::Environment;

/// Results of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Bench {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Unit that updates are counted in: tokens, frames, pictures, texts.
    pub unit: &'static str,
    /// `real`; `generated` (lengths as in real text, random words); or the shape of full batches.
    pub data: String,
    /// Description of the hardware.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Lead of the thread that makes batches over the fastest updates; `None` for batches of one
    /// shape.
    pub data_margin: Option<DataMargin>,
    /// Speeds, with the baseline first.
    pub arms: Vec<ArmSpeed>,
    /// Speed-up of each further arm over the first.
    pub speed_ups: Vec<ArmSpeedUp>,
    /// Peak memory of the updates of all arms together, in bytes. For a GPU it includes the memory
    /// of other programs.
    #[serde(rename = "peak_memory_bytes")]
    pub peak_memory: Option<u64>,
}

/// Speed of an arm.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeed {
    pub arm: String,
    /// Precision of matrix products that a probe measured.
    pub compute: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Vocabulary rows of the target.
    pub vocabulary: usize,
    /// Units per update without padding, of text on both sides: mean over the timed batches.
    pub tokens_per_update: f64,
    pub seconds_per_update: Spread,
    /// Units per second.
    pub tokens_per_second: Spread,
    /// Operations per second, by the count of products that the model needs.
    #[serde(rename = "operations_per_second")]
    pub flops: Spread,
    /// Seconds of the parts of an update.
    pub split: Split,
    /// Fractions of the device's peak speeds.
    pub roofline: Roofline,
    /// Number of updates skipped for overflow during the timing.
    pub skipped: u64,
    /// Measurements of all blocks.
    pub laps: Vec<Lap>,
}

/// Seconds of the parts of an update. They are measured in separate updates, in which the device is
/// idle between parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    /// Time to make the batches, in a thread that runs during the previous update; `None` for
    /// batches of one shape.
    #[serde(rename = "data_seconds")]
    pub data: Option<f64>,
    /// Speed of that thread divided by the speed of the updates.
    pub data_ahead: Option<f64>,
    /// Forward passes.
    #[serde(rename = "forward_seconds")]
    pub forward: f64,
    /// Backward passes.
    #[serde(rename = "backward_seconds")]
    pub backward: f64,
    /// Norm, clipping and optimizer.
    #[serde(rename = "update_seconds")]
    pub update: f64,
    /// Median duration of an update minus these three parts; negative if the parts overlap in
    /// normal updates.
    #[serde(rename = "rest_seconds")]
    pub rest: f64,
}

/// Lead of the thread that makes batches, for the arm with the smallest lead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataMargin {
    /// Arm with the smallest lead.
    pub arm: String,
    /// Updates whose batches the thread makes per second.
    pub made_per_second: f64,
    /// Updates per second in the arm's fastest block.
    pub used_per_second: f64,
    /// `made_per_second` divided by `used_per_second`. Below 1, training waits for data.
    pub times: f64,
}

impl DataMargin {
    /// The smallest margin of all arms.
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

/// Measured peak speeds of the device, and the fractions that an arm reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Roofline {
    /// Speed of a large product with the arm's precision, in operations per second.
    #[serde(rename = "product_operations_per_second")]
    pub product_flops: f64,
    /// Fraction of `product_flops` that the median update reaches with the products that the model
    /// needs.
    pub product_share: f64,
    /// Bandwidth of a pass over a large array, in bytes read and written per second.
    #[serde(rename = "copy_bytes_per_second")]
    pub copy_bytes: f64,
    /// Fraction of `copy_bytes` that the part `update` reaches with the bytes that the optimizer
    /// must move; `None` for LazyAdam, which moves only the rows that a batch uses.
    pub update_share: Option<f64>,
}

/// Median and range of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// Spread of some values; NaN if there are none.
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

/// Speed-up of one arm over the first.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeedUp {
    pub arm: String,
    /// Name of the arm whose speed is 1.0.
    pub baseline: String,
    /// Ratio of tokens per second.
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
        // The thread makes batches for 8 updates per second against at most 4 used, and for 4
        // against 1.
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
