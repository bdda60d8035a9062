//! Speeds, times and memory, and the quantities of a machine that are not measured yet.

use zoo_recipes::Direction;

use crate::metrics::contract::{Entry, Path, Work};

/// Updates of the weights per second.
pub static UPDATES_PER_SECOND: Entry = Entry::timed("updates-per-second", "updates a second", Work::Updates);

/// Tokens of both sides per second.
pub static TOKENS_PER_SECOND: Entry =
    Entry::timed("tokens-per-second", "tokens of both sides a second, or frames of speech", Work::Tokens);

/// Target tokens per second.
pub static TARGET_TOKENS_PER_SECOND: Entry =
    Entry::timed("target-tokens-per-second", "tokens of the target a second", Work::TargetTokens);

/// Sentence pairs per second.
pub static SENTENCES_PER_SECOND: Entry =
    Entry::timed("sentences-per-second", "sentence pairs a second", Work::Examples);

/// Recordings per second.
pub static UTTERANCES_PER_SECOND: Entry =
    Entry::timed("utterances-per-second", "recordings a second", Work::Examples);

/// Spectrogram frames per second. Sources count those of the target, without padding.
pub static MEL_FRAMES_PER_SECOND: Entry = Entry {
    name: "mel-frames-per-second",
    unit: "frames of the target spectrograms a second, without padding",
    direction: Direction::Higher,
    is_percentage: false,
    path: Path::Timed { work: Work::TargetTokens, spectrograms: true },
};

/// Speed-up of whole runs.
pub static TIME_TO_TRAIN: Entry = Entry::unjudged(
    "time-to-train",
    "baseline's time over the arm's",
    Direction::Higher,
    "updates are timed, and the claim is on the time of whole runs",
);

/// Why batches are not judged.
const NO_BATCH: &str = "the largest batch that fits is not compared with a claim";

/// Largest batch.
pub static BATCH: Entry = Entry::unjudged("batch", "factor", Direction::Higher, NO_BATCH);

/// Largest batch, in recordings.
pub static UTTERANCES_A_GPU: Entry =
    Entry::unjudged("utterances-a-gpu", "factor", Direction::Higher, NO_BATCH);

/// Memory of a run.
pub static MEMORY: Entry =
    Entry::unjudged("memory", "factor", Direction::Lower, "the memory of a run is not measured");

/// Efficiency on several devices.
pub static SCALING_EFFICIENCY: Entry = Entry::unjudged(
    "scaling-efficiency",
    "speed on n devices over n times that of one",
    Direction::Higher,
    "speed on several devices is not timed",
);

/// Time for one recording.
pub static LATENCY_MS: Entry = Entry::unjudged(
    "latency-ms",
    "milliseconds",
    Direction::Lower,
    "the time of one recording from its start to its text is not measured",
);
