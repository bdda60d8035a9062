//! Speed of Griffin-Lim on one core; `tests/reference/bench_griffin_lim.py` compares it with
//! librosa.
//!
//!     cargo run --release -p zoo-datasets --example griffin_lim_speed -- RECORDING.wav [SECONDS]
//!
//! Repeats a mono recording until it has SECONDS seconds (10), and prints a line of JSON for each
//! step: seconds of audio per second, for the fastest of several passes on one thread. Frames have
//! 1024 samples and a hop of 256; 50 iterations from random phases; mels of Tacotron 2.

use std::path::Path;
use std::time::{Duration, Instant};

use zoo_datasets::audio::decode::decode;
use zoo_datasets::audio::mel::MelFilters;
use zoo_datasets::audio::stft::Stft;
use zoo_datasets::audio::synthesis::{
    GriffinLim, GriffinLimSpec, MelInverse, MelMethod, Start, SynthesisError,
};
use zoo_recipes::{MelSpec, Padding, WindowFunction};

const PASSES: u32 = 10;
const LONGEST: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(recording) = arguments.next() else {
        return Err("usage: griffin_lim_speed RECORDING [SECONDS]".into());
    };
    let seconds = arguments.next().map_or(Ok(10.0), |seconds| seconds.parse::<f64>())?;
    let audio = decode(Path::new(&recording), None)?;
    let samples = (seconds * f64::from(audio.rate)) as usize;
    let sound: Vec<f32> = audio.samples.iter().cycle().take(samples).copied().collect();
    let magnitudes =
        Stft::new(1024, 256, WindowFunction::HannPeriodic, 1024, Some(Padding::Zeros)).magnitudes(&sound);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    one.install(|| -> Result<(), SynthesisError> {
        for (name, momentum) in [("griffin-lim", 0.0), ("griffin-lim.fast", 0.99)] {
            let spec = GriffinLimSpec { iterations: 50, momentum, ..GriffinLimSpec::librosa(1024) };
            let plan = GriffinLim::new(&spec)?;
            let start = Start::Random { seed: 1, utterance: 0 };
            timed(name, seconds, || plan.samples(&magnitudes, start, Some(sound.len())))?;
        }
        let mel =
            MelSpec { high_hz: Some(8_000.0_f64.min(f64::from(audio.rate) / 2.0)), ..MelSpec::default() };
        let filters = MelFilters::triangular(audio.rate, 1024, 80, &mel);
        let mut mels = Vec::new();
        for frame in magnitudes.chunks_exact(513) {
            let spectrum: Vec<[f64; 1]> = frame.iter().map(|magnitude| [f64::from(*magnitude)]).collect();
            let mut energies = vec![[0.0]; 80];
            filters.apply(&spectrum, &mut energies);
            mels.extend(energies.iter().map(|[energy]| *energy as f32));
        }
        let inverse = MelInverse::new(filters, MelMethod::LeastSquares, 1.0)?;
        timed("mel-inverse", seconds, || inverse.magnitudes(&mels))
    })?;
    Ok(())
}

fn timed(
    step: &str,
    seconds: f64,
    work: impl Fn() -> Result<Vec<f32>, SynthesisError>,
) -> Result<(), SynthesisError> {
    let begin = Instant::now();
    let mut least = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        std::hint::black_box(work()?);
        least = least.min(start.elapsed().as_secs_f64());
        if begin.elapsed() > LONGEST {
            break;
        }
    }
    println!("{{\"step\": \"{step}\", \"audio_seconds_per_second\": {:.1}}}", seconds / least);
    Ok(())
}
