//! The metrics on which claims are made: the one list of their units, directions and of the way from a training run to a verdict.

use zoo_recipes::Direction;

/// A metric that claims may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedMetric {
    /// Name in recipes.
    pub name: &'static str,
    /// Unit of its values, in words.
    pub unit: &'static str,
    /// Which way is better; `None` where only the claim can say.
    pub direction: Option<Direction>,
    /// How a training run gets to a value of it.
    pub path: Path,
}

/// How a training run gets to a value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Outputs on an evaluation set are scored by the claim's signature.
    Scored,
    /// Two arms are timed against one another.
    Timed,
    /// As [`Path::Timed`], of a system that writes spectrograms.
    TimedFrames,
    /// No code does it yet; why, as the end of "nothing is judged on it: ...".
    None(&'static str),
}

const fn scored(name: &'static str, unit: &'static str, direction: Direction) -> ClaimedMetric {
    ClaimedMetric { name, unit, direction: Some(direction), path: Path::Scored }
}

const fn timed(name: &'static str, unit: &'static str) -> ClaimedMetric {
    ClaimedMetric { name, unit, direction: Some(Direction::Higher), path: Path::Timed }
}

const fn unjudged(
    name: &'static str,
    unit: &'static str,
    direction: Option<Direction>,
    why: &'static str,
) -> ClaimedMetric {
    ClaimedMetric { name, unit, direction, path: Path::None(why) }
}

const LOSS: &str = "losses and perplexities of a run are logged, and no code compares them with a claim";
const CLASSES: &str = "no task of this zoo classifies";
const BATCH: &str = "the largest batch that fits is not compared with a claim";

/// All of them.
pub const CLAIMED: [ClaimedMetric; 34] = [
    scored("bleu", "points, 0 to 100", Direction::Higher),
    scored("chrf", "points, 0 to 100", Direction::Higher),
    scored("ter", "percent", Direction::Lower),
    scored("wer", "percent", Direction::Lower),
    scored("cer", "percent", Direction::Lower),
    scored("exact-match", "percent", Direction::Higher),
    scored("mel-error", "squared difference of log-mel values", Direction::Lower),
    scored("mcd", "decibels", Direction::Lower),
    timed("updates-per-second", "updates a second"),
    timed("tokens-per-second", "tokens of both sides a second, or frames of speech"),
    timed("target-tokens-per-second", "tokens of the target a second"),
    timed("sentences-per-second", "sentence pairs a second"),
    timed("utterances-per-second", "recordings a second"),
    ClaimedMetric {
        name: "mel-frames-per-second",
        unit: "frames of the target spectrograms a second, without padding",
        direction: Some(Direction::Higher),
        path: Path::TimedFrames,
    },
    unjudged(
        "time-to-train",
        "baseline's time over the arm's",
        Some(Direction::Higher),
        "updates are timed, and the claim is on the time of whole runs",
    ),
    unjudged("loss", "nats", Some(Direction::Lower), LOSS),
    unjudged("train-loss", "as the source counts it", Some(Direction::Lower), LOSS),
    unjudged("valid-loss", "nats", Some(Direction::Lower), LOSS),
    unjudged("perplexity", "e to the power of nats", Some(Direction::Lower), LOSS),
    unjudged("ppl", "e to the power of nats", Some(Direction::Lower), LOSS),
    unjudged("train-perplexity", "e to the power of nats", Some(Direction::Lower), LOSS),
    unjudged("valid-perplexity", "e to the power of nats", Some(Direction::Lower), LOSS),
    unjudged("bits-per-character", "bits", Some(Direction::Lower), LOSS),
    unjudged("batch", "factor", Some(Direction::Higher), BATCH),
    unjudged("utterances-a-gpu", "factor", Some(Direction::Higher), BATCH),
    unjudged("memory", "factor", Some(Direction::Lower), "the memory of a run is not measured"),
    unjudged("accuracy", "percent", Some(Direction::Higher), CLASSES),
    unjudged("top1", "percent", Some(Direction::Higher), CLASSES),
    unjudged("top5", "percent", Some(Direction::Higher), CLASSES),
    unjudged("error", "percent", Some(Direction::Lower), CLASSES),
    unjudged("chrf2", "points, 0 to 100", Some(Direction::Higher), "its name here is chrf"),
    unjudged("mos", "points, 1 to 5", Some(Direction::Higher), "people give it"),
    unjudged(
        "scaling-efficiency",
        "speed on n devices over n times that of one",
        Some(Direction::Higher),
        "speed on several devices is not timed",
    ),
    unjudged(
        "latency-ms",
        "milliseconds",
        Some(Direction::Lower),
        "the time of one recording from its start to its text is not measured",
    ),
];

/// The metric of that name; capitals do not matter.
#[must_use]
pub fn claimed_metric(name: &str) -> Option<&'static ClaimedMetric> {
    CLAIMED.iter().find(|metric| metric.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metric;

    #[test]
    fn each_metric_is_listed_once_and_scores_as_its_convention_says() {
        for (at, metric) in CLAIMED.iter().enumerate() {
            assert!(CLAIMED[..at].iter().all(|other| other.name != metric.name), "{}", metric.name);
            assert_eq!(claimed_metric(&metric.name.to_uppercase()), Some(metric));
            if metric.path == Path::Scored {
                assert_eq!(metric.direction, Some(Metric::parse(metric.name).unwrap().direction()));
            }
        }
        // Whatever has a convention is listed.
        for metric in Metric::ALL {
            let found = claimed_metric(metric.name()).unwrap_or_else(|| panic!("{metric}"));
            assert_eq!(found.direction, Some(metric.direction()), "{metric}");
        }
        assert_eq!(claimed_metric("bleu-4"), None);
    }
}
