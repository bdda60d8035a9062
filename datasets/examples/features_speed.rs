//! Speed of feature extraction on one core; `tests/reference/bench_features.py` compares it with
//! the libraries.
//!
//!     cargo run --release -p zoo-datasets --example features_speed -- \
//!         RECORDING.wav [SECONDS [STEP]]
//!
//! Repeats a mono recording until it has SECONDS seconds (60), and prints a line of JSON for each
//! step: seconds of audio per second, for the fastest of many passes on one thread. With STEP, only
//! this step.

use std::path::Path;
use std::time::{Duration, Instant};

use zoo_datasets::audio::FrontEnd;
use zoo_datasets::audio::decode::decode;
use zoo_datasets::audio::resample::{KaiserResampler, SincResampler};
use zoo_datasets::random::{Purpose, RandomStream};
use zoo_recipes::{FeaturesSpec, KaiserBest};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PASSES: u32 = 30;
const LONGEST: Duration = Duration::from_secs(1);

const FRONT_ENDS: [(&str, &str); 6] = [
    ("psf.spectrogram", r#"{"kind": "python-speech-features", "output": "spectrogram", "features": 160}"#),
    ("psf.log-mel", r#"{"kind": "python-speech-features", "output": "log-mel", "features": 64}"#),
    ("psf.mfcc", r#"{"kind": "python-speech-features", "output": "mfcc", "features": 13}"#),
    (
        "librosa.log-mel",
        r#"{"kind": "librosa", "output": "log-mel", "features": 64, "normalize": "per-feature"}"#,
    ),
    (
        "librosa.log-mel.dither",
        r#"{"kind": "librosa", "output": "log-mel", "features": 64, "normalize": "per-feature", "dither": 1e-5}"#,
    ),
    ("kaldi.log-mel", r#"{"kind": "kaldi", "features": 80}"#),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Keeps freed memory, as the program does (`mi_option_purge_delay`).
    // SAFETY: sets a number that the allocator reads when it frees pages.
    unsafe { libmimalloc_sys::mi_option_set(15, -1) };
    let mut arguments = std::env::args().skip(1);
    let Some(recording) = arguments.next() else {
        return Err("usage: features_speed RECORDING [SECONDS [STEP]]".into());
    };
    let seconds = arguments.next().map_or(Ok(60.0), |seconds| seconds.parse::<f64>())?;
    let only = arguments.next();
    let wanted = |step: &str| only.as_ref().is_none_or(|only| only == step);
    let audio = decode(Path::new(&recording), None)?;
    let samples = (seconds * f64::from(audio.rate)) as usize;
    let sound: Vec<f32> = audio.samples.iter().cycle().take(samples).copied().collect();
    for (name, spec) in FRONT_ENDS.into_iter().filter(|(name, _)| wanted(name)) {
        let front_end = FrontEnd::new(&serde_json::from_str::<FeaturesSpec>(spec)?, audio.rate)?;
        timed(name, seconds, || {
            let dither = name.ends_with("dither").then(|| RandomStream::new(1, Purpose::Dither, 0));
            front_end.features(&sound, dither).values
        });
    }
    let faster = (f64::from(audio.rate) * 0.95) as u32;
    let versions = [("resampy-0.2", KaiserBest::Resampy02), ("resampy-0.4", KaiserBest::Resampy04)];
    for (name, version) in versions.into_iter().filter(|(name, _)| wanted(name)) {
        let resampler = KaiserResampler::new(version, audio.rate, faster);
        timed(name, seconds, || resampler.resample(&sound));
    }
    if wanted("torchaudio") {
        let resampler = SincResampler::new(audio.rate / 10 * 9, audio.rate);
        timed("torchaudio", seconds, || resampler.resample(&sound));
    }
    Ok(())
}

fn timed(step: &str, seconds: f64, work: impl Fn() -> Vec<f32>) {
    let begin = Instant::now();
    let mut least = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        std::hint::black_box(work());
        least = least.min(start.elapsed().as_secs_f64());
        if begin.elapsed() > LONGEST {
            break;
        }
    }
    println!("{{\"step\": \"{step}\", \"audio_seconds_per_second\": {:.0}}}", seconds / least);
}
