//! Time to list and plan speech, and to compute its frames on one thread.
//!
//!     cargo run --release -p zoo-datasets --example speech_speed -- MIRROR [RECORDING]
//!
//! `MIRROR` is a mirror folder with yesno; `RECORDING` is any mono file.

use std::path::Path;
use std::time::Instant;

use zoo_datasets::audio::FrontEnd;
use zoo_datasets::audio::decode::decode;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::fetch::{DataHome, FetchOptions};
use zoo_datasets::readers::split_names;
use zoo_datasets::speech::{SpeechBatches, SpeechPlace, evaluation_batches, prepare};
use zoo_recipes::FeaturesSpec;
use zoo_recipes::tasks::speech_recognition::RecognitionDataSpec;

const YESNO: &str = r#"{"corpus": "yesno", "reader": {"kind": "audio-manifest", "sample_rate_hz": 8000, "strict": true},
    "tokenizer": {"kind": "lexicon", "words": {"YES": ["Y"], "NO": ["N"]}, "silence": "SIL"},
    "features": {"kind": "kaldi", "features": 23},
    "augmentation": {"speed": {"kind": "copies", "factors": [0.9, 1.1]}},
    "batching": {"kind": "seconds", "max_seconds": 30.0},
    "eval": {"test": {"split": "test", "lines": 30}}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(mirror) = arguments.next() else { return Err("usage: speech_speed MIRROR [RECORDING]".into()) };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let data: RecognitionDataSpec = serde_json::from_str(YESNO)?;
    let folder = tempfile::tempdir()?;
    let (home, lists) = (DataHome::new(folder.path()), folder.path().join("lists"));
    let corpus = CorpusDefinition::find("yesno")?;
    let fetch = || -> Result<_, Box<dyn std::error::Error>> {
        let options = FetchOptions { mirror: Some(mirror.clone()), offline: true, ..FetchOptions::default() };
        Ok(Some(corpus.fetch_splits(&["train", "test"], &home, &options)?))
    };
    let place = SpeechPlace { base: Path::new(""), progress: &|_| () };
    for turn in ["fetch, unpack, list", "verify, load"] {
        let start = Instant::now();
        prepare(&lists, &data, place, &split_names(&data), fetch)?;
        println!("yesno: {turn}: {:.3} s", start.elapsed().as_secs_f64());
    }
    let prepared = prepare(&lists, &data, place, &split_names(&data), fetch)?;
    let batches = SpeechBatches::training(&prepared, &data, 1)?;
    let start = Instant::now();
    let mut seconds = 0.0;
    for index in 0..batches.per_epoch(0) {
        seconds += batches.batch(0, index)?.seconds;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let (examples, padding) = (batches.examples() as f64, batches.padding());
    println!(
        "yesno: an epoch of {} batches: {elapsed:.3} s, {:.0} utterances/s, {:.0} s of sound/s, {:.1} % padding",
        batches.per_epoch(0),
        examples / elapsed,
        seconds / elapsed,
        100.0 * padding
    );
    let start = Instant::now();
    let mut utterances = 0;
    for batch in evaluation_batches(&prepared, &prepared.splits["test"], 60.0) {
        utterances += batch?.ids.len();
    }
    println!("yesno: evaluation: {:.0} utterances/s", utterances as f64 / start.elapsed().as_secs_f64());
    let Some(recording) = arguments.next() else { return Ok(()) };
    let rate = decode(Path::new(&recording), None)?.rate;
    let features: FeaturesSpec = serde_json::from_str(
        r#"{"kind": "librosa", "output": "log-mel", "features": 64, "normalize": "per-feature"}"#,
    )?;
    let front_end = FrontEnd::new(&features, rate)?;
    let (start, turns) = (Instant::now(), 30);
    let mut seconds = 0.0;
    for _ in 0..turns {
        let audio = decode(Path::new(&recording), Some(rate))?;
        seconds += audio.seconds();
        front_end.features(&audio.samples, None);
    }
    let elapsed = start.elapsed().as_secs_f64();
    println!(
        "{recording}: {:.1} utterances/s, {:.0} s of sound/s",
        f64::from(turns) / elapsed,
        seconds / elapsed
    );
    Ok(())
}
