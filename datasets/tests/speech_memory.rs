//! Memory use of speech, counted by an allocator, so the test needs its own process.

mod memory;

use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};
use zoo_datasets::corpora::FetchedCorpus;
use zoo_datasets::readers::split_names;
use zoo_datasets::speech::{PreparedSpeech, SpeechBatches, SpeechError, SpeechPlace, prepare};
use zoo_recipes::tasks::speech_recognition::RecognitionDataSpec;

const UTTERANCES: usize = 20_000;

fn data() -> RecognitionDataSpec {
    serde_json::from_str(
        r#"{"reader": {"kind": "audio-manifest", "sample_rate_hz": 8000, "files": {"train": "train.jsonl"}},
            "tokenizer": {"kind": "characters", "alphabet": " ab"},
            "features": {"kind": "kaldi", "features": 20},
            "augmentation": {"speed": {"kind": "copies", "factors": [0.9, 1.1]}},
            "batching": {"kind": "seconds", "max_seconds": 1.0},
            "eval": {}}"#,
    )
    .unwrap()
}

fn prepared(folder: &Path) -> PreparedSpeech {
    let place = SpeechPlace { base: folder, progress: &|_| () };
    let none = || Ok::<Option<FetchedCorpus>, SpeechError>(None);
    prepare(&folder.join("lists"), &data(), place, &split_names(&data()), none).unwrap()
}

#[test]
fn an_utterance_needs_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let spec =
        WavSpec { channels: 1, sample_rate: 8_000, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut writer = WavWriter::create(folder.path().join("a.wav"), spec).unwrap();
    (0..3_000).for_each(|at| writer.write_sample((at * 37 % 1_000) as i16).unwrap());
    writer.finalize().unwrap();
    let line = "{\"audio\": \"a.wav\", \"text\": \"ab ba ab\"}\n";
    std::fs::write(folder.path().join("train.jsonl"), line.repeat(UTTERANCES)).unwrap();

    let before = memory::allocated();
    let (made, peak) = memory::peak_of(|| prepared(folder.path()));
    let kept = (memory::allocated() - before) / UTTERANCES;
    println!("{kept} bytes an utterance are kept, {} while they are listed", peak / UTTERANCES);
    // Name, path and text have eight bytes or less here.
    assert!(kept < 200, "{kept} bytes an utterance");
    assert!(peak / UTTERANCES < 600, "{} bytes an utterance", peak / UTTERANCES);
    drop(made);

    let prepared = prepared(folder.path());
    let before = memory::allocated();
    let batches = SpeechBatches::training(&prepared, &data(), 1).unwrap();
    assert!(batches.per_epoch(1) > UTTERANCES);
    let planned = memory::allocated() - before;
    // Three copies per utterance: four bytes in the order, and at most twice four for the end of
    // the batch.
    assert!(planned < UTTERANCES * 3 * 12 + (1 << 20), "{planned} bytes");
    // 50 batches of half a second of sound, one after another.
    let ((), peak) = memory::peak_of(|| (0..50).for_each(|index| drop(batches.batch(1, index).unwrap())));
    println!("{planned} bytes for the plan, {peak} for batches");
    assert!(peak < 2 << 20, "{peak} bytes");
}
