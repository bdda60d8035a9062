//! A user's own recordings and generated ones, from manifest to batch: valid, invalid, and damaged
//! after listing. The results are the same bits every time.

use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};
use zoo_datasets::corpora::FetchedCorpus;
use zoo_datasets::readers::split_names;
use zoo_datasets::speech::{
    Fault, PreparedSpeech, SpeechBatch, SpeechBatches, SpeechError, SpeechPlace, evaluation_batches, prepare,
};
use zoo_recipes::tasks::speech_recognition::RecognitionDataSpec;

fn wav(file: &Path, rate: u32, channels: u16, samples: impl IntoIterator<Item = i16>) {
    let spec = WavSpec { channels, sample_rate: rate, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut writer = WavWriter::create(file, spec).unwrap();
    samples.into_iter().for_each(|sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
}

fn sound(samples: usize) -> impl Iterator<Item = i16> {
    (0..samples).map(|at| ((at as f64 * 0.3).sin() * 8_000.0) as i16 + (at % 7) as i16)
}

/// A `data` block of a user's files, with a training and a test manifest.
fn own(reader: &str, rest: &str) -> RecognitionDataSpec {
    let text = format!(
        r#"{{"reader": {{"kind": "audio-manifest", "sample_rate_hz": 8000, {reader}"files": {{"train": "m/train.jsonl", "test": "m/test.jsonl"}}}},
        "tokenizer": {{"kind": "characters", "alphabet": " ab", "normalize": ["lowercase"]}},
        "features": {{"kind": "librosa", "output": "log-mel", "features": 20, "dither": 1e-5}},
        "augmentation": {{"speed": {{"kind": "copies", "factors": [0.9, 1.1]}}, "noise": {{"min_db": -60, "max_db": -50}},
                          "masks": {{"frequency_masks": 1, "max_features": 3, "time_masks": 1, "max_frames": 3}}}},
        {rest}
        "eval": {{"valid": {{"split": "test", "lines": 2}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

const SECONDS: &str = r#""batching": {"kind": "seconds", "max_seconds": 1.0},"#;

fn tones() -> RecognitionDataSpec {
    serde_json::from_str(
        r#"{"reader": {"kind": "tones", "sample_rate_hz": 8000, "letters": 2, "longest_word": 3, "most_words": 3, "letter_ms": 60.0,
                       "train": 30, "valid": 9, "test": 9, "seed": 1},
            "tokenizer": {"kind": "characters", "alphabet": " ab"},
            "features": {"kind": "kaldi", "features": 12, "dither": 1e-4},
            "augmentation": {"speed": {"kind": "copies", "factors": [0.9, 1.1]}, "noise": {"min_db": -60, "max_db": -50}},
            "batching": {"kind": "seconds", "max_seconds": 2.0},
            "eval": {"valid": {"split": "valid", "lines": 9}}}"#,
    )
    .unwrap()
}

fn prepared(folder: &Path, data: &RecognitionDataSpec) -> Result<PreparedSpeech, SpeechError> {
    let place = SpeechPlace { base: folder, progress: &|_| () };
    prepare(&folder.join("lists"), data, place, &split_names(data), || {
        Ok::<Option<FetchedCorpus>, SpeechError>(None)
    })
}

/// Two valid recordings and a manifest of each split; `lines` are appended to the training
/// manifest.
fn folder(lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let m = folder.path().join("m");
    std::fs::create_dir(&m).unwrap();
    wav(&m.join("a.wav"), 8_000, 1, sound(4_000));
    wav(&m.join("b.wav"), 8_000, 1, sound(3_000));
    let good = "{\"audio\": \"a.wav\", \"text\": \"A  b\"}\n{\"audio\": \"b.wav\", \"text\": \"ba\", \"speaker\": \"s\"}\n";
    std::fs::write(m.join("train.jsonl"), format!("{good}{lines}")).unwrap();
    std::fs::write(m.join("test.jsonl"), good).unwrap();
    folder
}

const BAD: [(&str, &str, Fault); 9] = [
    ("silent.wav", "a", Fault::Silent),
    ("empty.wav", "a", Fault::Empty),
    ("nothing.wav", "a", Fault::Empty),
    ("stereo.wav", "a", Fault::Channels),
    ("rate.wav", "a", Fault::Rate),
    ("cut.wav", "a", Fault::Truncated),
    ("text.wav", "a", Fault::Unsupported),
    ("missing.wav", "a", Fault::Unreadable),
    ("a.wav", "c", Fault::UnknownText),
];

fn with_bad() -> tempfile::TempDir {
    let lines: Vec<String> = BAD
        .iter()
        .map(|(audio, text, _)| format!("{{\"audio\": \"{audio}\", \"text\": \"{text}\"}}"))
        .collect();
    let folder = folder(&lines.join("\n"));
    let m = folder.path().join("m");
    wav(&m.join("silent.wav"), 8_000, 1, [0; 100]);
    wav(&m.join("empty.wav"), 8_000, 1, []);
    wav(&m.join("stereo.wav"), 8_000, 2, sound(200));
    wav(&m.join("rate.wav"), 16_000, 1, sound(200));
    let whole = std::fs::read(m.join("a.wav")).unwrap();
    std::fs::write(m.join("cut.wav"), &whole[..1_000]).unwrap();
    std::fs::write(m.join("nothing.wav"), "").unwrap();
    std::fs::write(m.join("text.wav"), "this is a text").unwrap();
    folder
}

#[test]
fn bad_recordings_are_named_and_counted() {
    let folder = with_bad();
    let data = own("", SECONDS);
    for _ in 0..2 {
        let prepared = prepared(folder.path(), &data).unwrap();
        let train = prepared.train().unwrap();
        assert_eq!((train.len(), train.statistics.read, train.skipped.len()), (2, 11, 9));
        assert_eq!((train.references[0].as_str(), prepared.splits["test"].raw[0].as_str()), ("a b", "A  b"));
        for (name, _, fault) in BAD {
            let found = |skipped: &&zoo_datasets::speech::Skipped| {
                skipped.utterance.starts_with(name)
                    && skipped.fault == fault
                    && skipped.problem.contains("hint:")
            };
            assert!(train.skipped.iter().any(|skipped| found(&skipped)), "{name}: {:?}", train.skipped);
        }
        assert_eq!(train.statistics.skipped[&Fault::Empty], 2);
        assert_eq!(train.statistics.skipped.values().sum::<u64>(), 9);
    }
}

#[test]
fn bad_recordings_are_errors_where_none_may_be_left_out() {
    let folder = with_bad();
    let error = prepared(folder.path(), &own("\"strict\": true, ", SECONDS)).unwrap_err().to_string();
    assert!(error.contains("silent.wav (line 3)") && error.contains("strict = true; 7 more"), "{error}");
    assert!(!folder.path().join("lists/train.jsonl").exists());
    let m = folder.path().join("m");
    std::fs::copy(m.join("train.jsonl"), m.join("test.jsonl")).unwrap();
    let error = prepared(folder.path(), &own("", SECONDS)).unwrap_err().to_string();
    assert!(error.contains("split `test`") && error.contains("must not lose an utterance"), "{error}");
    // The same holds for a stored list.
    prepared(self::folder("").path(), &own("", SECONDS)).unwrap();
}

#[test]
fn damage_behind_our_back_is_found_when_a_batch_is_made() {
    let data = own("", r#""batching": {"kind": "utterances", "utterances": 6},"#);
    let strict = own("\"strict\": true, ", r#""batching": {"kind": "utterances", "utterances": 6},"#);
    let folder = folder("");
    let (lenient, strict) =
        (prepared(folder.path(), &data).unwrap(), prepared(folder.path(), &strict).unwrap());
    let file = folder.path().join("m/b.wav");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..2_000]).unwrap();

    let batch = SpeechBatches::training(&lenient, &data, 1).unwrap().batch(0, 0).unwrap();
    assert_eq!((batch.ids.as_slice(), batch.skipped.len(), batch.lengths.len()), (&[0, 0, 0][..], 3, 3));
    assert!(batch.skipped.iter().all(|skipped| skipped.fault == Fault::Truncated));
    assert!(batch.features.iter().all(|value| value.is_finite()));
    let error = SpeechBatches::training(&strict, &data, 1).unwrap().batch(0, 0).unwrap_err().to_string();
    assert!(error.contains("b.wav") && error.contains("strict = true"), "{error}");
    let evaluated: Result<Vec<_>, _> = evaluation_batches(&lenient, &lenient.splits["test"], 9.0).collect();
    assert!(evaluated.unwrap_err().to_string().contains("must not lose an utterance"));

    // Another recording under the same name.
    wav(&file, 8_000, 1, sound(3_001));
    let error = SpeechBatches::training(&lenient, &data, 1).unwrap().batch(0, 0).unwrap_err().to_string();
    assert!(error.contains("it has 3001 samples, 3000 when it was listed"), "{error}");

    // No utterance is left.
    wav(&file, 8_000, 1, vec![0; 3_000]);
    wav(&folder.path().join("m/a.wav"), 8_000, 1, vec![0; 4_000]);
    let error = SpeechBatches::training(&lenient, &data, 1).unwrap().batch(0, 0).unwrap_err().to_string();
    assert!(error.contains("epoch 0, batch 0: none of its utterances"), "{error}");
}

#[test]
fn lists_are_verified_and_made_again_when_the_manifest_changes() {
    let folder = folder("");
    let data = own("", SECONDS);
    assert_eq!(prepared(folder.path(), &data).unwrap().train().unwrap().len(), 2);
    let manifest = folder.path().join("m/train.jsonl");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}{{\"audio\": \"a.wav\", \"text\": \"bb\"}}")).unwrap();
    assert_eq!(prepared(folder.path(), &data).unwrap().train().unwrap().len(), 3);
    let list = folder.path().join("lists/train.jsonl");
    let whole = std::fs::read_to_string(&list).unwrap();
    let damages = [
        whole.replace("4000", "4001"),
        whole[..whole.len() - 80].into(),
        format!("{whole}x"),
        whole.replace("\"id\"", "id"),
    ];
    for damaged in damages {
        assert_ne!(damaged, whole);
        std::fs::write(&list, damaged).unwrap();
        let error = prepared(folder.path(), &data).unwrap_err().to_string();
        assert!(error.contains("lists/train.jsonl: ") && error.contains("hint: remove it"), "{error}");
    }
}

#[test]
fn filters_are_of_training_and_before_the_speed() {
    let folder = folder("");
    let filter = |filter: &str| own("", &format!("{SECONDS} \"filter\": {{{filter}}},"));
    let short = prepared(folder.path(), &filter("\"max_seconds\": 0.4")).unwrap();
    let statistics = &short.train().unwrap().statistics;
    assert_eq!((statistics.utterances, statistics.too_long, statistics.too_short), (1, 1, 0));
    assert_eq!(short.splits["test"].len(), 2);
    let long = prepared(folder.path(), &filter("\"min_seconds\": 0.4")).unwrap();
    assert_eq!(&*long.train().unwrap().utterances[0].id, "a.wav");
    let error = prepared(folder.path(), &filter("\"min_seconds\": 4.0")).unwrap_err().to_string();
    assert!(error.contains("nothing to train on"), "{error}");
}

#[test]
fn evaluation_sets_are_the_ones_that_the_recipe_means() {
    let folder = folder("");
    let mut data = own("", SECONDS);
    data.eval.get_mut("valid").unwrap().reference_tokens = Some(3);
    prepared(folder.path(), &data).unwrap();
    data.eval.get_mut("valid").unwrap().reference_tokens = Some(4);
    let error = prepared(folder.path(), &data).unwrap_err().to_string();
    assert!(error.contains("has 3 reference words, the recipe says 4"), "{error}");
    data.eval.get_mut("valid").unwrap().lines = 3;
    assert!(
        prepared(folder.path(), &data)
            .unwrap_err()
            .to_string()
            .contains("has 2 utterances, the recipe says 3")
    );
    data.eval.get_mut("valid").unwrap().split = "dev".into();
    let error = prepared(folder.path(), &data).unwrap_err().to_string();
    assert!(error.contains("no split `dev`, which data.eval.valid uses"), "{error}");
}

#[test]
fn a_batch_is_a_function_of_seed_epoch_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let data = tones();
    let both = [prepared(folder.path(), &data).unwrap(), prepared(folder.path(), &data).unwrap()];
    let [one, other] = both.each_ref().map(|prepared| SpeechBatches::training(prepared, &data, 5).unwrap());
    let all = |batches: &SpeechBatches, epoch| -> Vec<SpeechBatch> {
        (0..batches.per_epoch(epoch)).map(|index| batches.batch(epoch, index).unwrap()).collect()
    };
    let first = all(&one, 0);
    assert_eq!(first.iter().map(|batch| batch.ids.len()).sum::<usize>(), 90);
    // Request the batches in another order, with other epochs in between.
    for index in (0..first.len()).rev() {
        other.batch(1, 0).unwrap();
        assert_eq!(other.batch(0, index).unwrap(), first[index]);
    }
    let second = all(&one, 1);
    assert_ne!(first[0], second[0]);
    let reseeded = SpeechBatches::training(&both[0], &data, 6).unwrap();
    assert_ne!(all(&reseeded, 0), first);

    // From the start, from the middle, and every other batch.
    for (from, step) in [(0, 1), (3, 1), (1, 2), (first.len() as u64, 1)] {
        let made = one.ahead(0, from, move |index| index % step == from % step);
        let made: Vec<(u64, SpeechBatch)> = made.map(Result::unwrap).collect();
        let due = (from..first.len() as u64).step_by(step as usize);
        assert_eq!(made, due.map(|index| (index, first[index as usize].clone())).collect::<Vec<_>>());
    }
    drop(one.ahead(0, 0, |_| true));
    let mut some = one.ahead(0, 0, |_| true);
    assert!(some.next().is_some());
    drop(some);
    let error = one.batch(0, first.len()).unwrap_err().to_string();
    assert!(error.contains(&format!("epoch 0 has {} batches", first.len())), "{error}");
}

#[test]
fn frames_of_evaluation_depend_on_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepared(folder.path(), &tones()).unwrap();
    let valid = &prepared.splits["valid"];
    let frames = |seconds: f64| {
        let mut found = vec![Vec::new(); valid.len()];
        let mut longest = usize::MAX;
        for batch in evaluation_batches(&prepared, valid, seconds) {
            let batch = batch.unwrap();
            assert!(batch.longest() <= longest, "the longest come first");
            longest = batch.longest();
            for (at, id) in batch.ids.iter().enumerate() {
                let own = &batch.features[at * batch.longest() * batch.width..];
                found[*id as usize] = own[..batch.lengths[at] * batch.width].to_vec();
                assert!(
                    own[batch.lengths[at] * batch.width..batch.longest() * batch.width]
                        .iter()
                        .all(|v| *v == 0.0)
                );
                assert_eq!(batch.labels[at], valid.labels(*id));
            }
        }
        assert!(found.iter().all(|frames| !frames.is_empty()));
        found
    };
    assert_eq!(frames(0.1), frames(1e9));
    // NaN is not a valid limit, so every utterance has its own batch.
    assert_eq!(frames(f64::NAN), frames(3.0));
}

#[test]
fn an_error_of_the_caller_is_handed_through() {
    #[derive(Debug)]
    enum Own {
        Speech,
        Mine,
    }
    impl From<SpeechError> for Own {
        fn from(_: SpeechError) -> Self {
            Self::Speech
        }
    }
    let mut data = tones();
    let folder = tempfile::tempdir().unwrap();
    let place = SpeechPlace { base: folder.path(), progress: &|_| () };
    assert!(
        prepare(folder.path(), &data, place, &split_names(&data), || Err::<Option<FetchedCorpus>, Own>(
            Own::Mine
        ))
        .is_ok()
    );
    data.reader = serde_json::from_str(r#"{"kind": "audio-manifest", "sample_rate_hz": 8000}"#).unwrap();
    assert!(matches!(
        prepare(folder.path(), &data, place, &split_names(&data), || Err(Own::Mine)),
        Err(Own::Mine)
    ));
    data.tokenizer = serde_json::from_str(r#"{"kind": "characters", "alphabet": "aa"}"#).unwrap();
    assert!(matches!(
        prepare(folder.path(), &data, place, &split_names(&data), || Err(Own::Mine)),
        Err(Own::Speech)
    ));
}
