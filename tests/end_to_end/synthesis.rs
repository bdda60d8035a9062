//! Speech synthesis: from a recipe to verdicts, and from a run to an audio file.

use std::path::Path;

use crate::binary::Zoo;

/// Names of an evaluation's files, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn tones_are_learnt_spoken_seen_and_judged() {
    let zoo = Zoo::new();
    let outcome = zoo.ends_with(0, &["reproduce", "tacotron2", "--tier", "smoke", "--format", "json"]).json();
    let scores = outcome["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 2, "{outcome}");
    for one in scores {
        let score = &one["scores"][0];
        assert_eq!(score["metric"], "mel-error", "{outcome}");
        let value = score["value"].as_f64().unwrap();
        assert!(value.is_finite() && value > 0.0, "{value}");
    }
    let run = outcome["runs"][0]["folder"].as_str().unwrap().to_owned();
    let eval = Path::new(&run).join("eval");
    let kept = files(&eval);
    for part in [
        "test.forced.samples.json",
        "test.forced.1.wav",
        "test.forced.1.mel.svg",
        "test.forced.4.alignment.svg",
    ] {
        assert!(kept.iter().any(|name| name == part), "{part} is not among {kept:?}");
    }
    // Free-running synthesis is scored with another metric, with an interval.
    let freely = zoo
        .ends_with(0, &["evaluate", &run, "--eval", "test", "--decode", "free", "--format", "json"])
        .part("evaluations");
    assert!(freely.to_string().contains("metric:mcd|"), "{freely}");
    let line = std::fs::read_to_string(eval.join("test.free.hyp.txt")).unwrap();
    assert!(line.lines().count() == 4 && line.contains("metric:mcd|cep:1-13"), "{line}");

    let said =
        zoo.ends_with(0, &["synthesize", &run, "ab ba", "-o", "out.wav", "--picture", "--format", "json"]);
    let said = said.json_line();
    assert!(
        said["frames"].as_u64().unwrap() > 0 && said["alignment"]["focus"].as_f64().unwrap() > 0.0,
        "{said}"
    );
    let sound = std::fs::read(zoo.home().join("out.wav")).unwrap();
    assert_eq!(&sound[..4], b"RIFF");
    assert!(std::fs::read_to_string(zoo.home().join("out.svg")).unwrap().contains("<svg"));
    // The same text gives the same audio.
    zoo.ends_with(0, &["synthesize", &run, "ab ba", "-o", "again.wav"]);
    assert_eq!(sound, std::fs::read(zoo.home().join("again.wav")).unwrap());

    zoo.ends_with(2, &["synthesize", &run, "ab", "-o", "out.wav"]).says("is there already");
    zoo.ends_with(2, &["synthesize", &run, "-o", "many"]).says("the input has no text");
    zoo.ends_with(4, &["synthesize", &run, "a\u{2603}b", "-o", "no.wav"]).says("not a symbol");
    zoo.file("kept.svg", "kept");
    zoo.ends_with(2, &["synthesize", &run, "ab", "-o", "kept.wav", "--picture"])
        .says("kept.svg is there already");
    assert_eq!(std::fs::read_to_string(zoo.home().join("kept.svg")).unwrap(), "kept");
    assert!(!zoo.home().join("kept.wav").exists());
    zoo.ends_with(2, &["synthesize", &run, "ab", "-o", "one.svg", "--picture"]).says("sound and picture");
    zoo.file("lines.txt", "ab\n\na\u{2603}b\n");
    zoo.ends_with(4, &["synthesize", &run, "--input", "lines.txt", "-o", "many"]).says("line 3");
    zoo.file("lines.txt", "ab\n\nba a\n");
    zoo.ends_with(0, &["synthesize", &run, "--input", "lines.txt", "-o", "many"]);
    assert_eq!(files(&zoo.home().join("many")), ["001.wav", "003.wav"]);
    zoo.ends_with(2, &["infer", &run, "x.wav"]).says("its output is audio");

    zoo.ends_with(0, &["report", &run, "-o", "page.html"]);
    let page = std::fs::read_to_string(zoo.home().join("page.html")).unwrap();
    assert!(page.contains("<audio") && page.contains("data:image/svg+xml"), "no sound or no picture");
}

/// Trains on 32 recordings from a folder, just long enough to check reading, training and
/// synthesis.
#[test]
fn recordings_are_learnt_from_a_folder() {
    let Some(samples) = std::env::var("ZOO_SAMPLES").ok().filter(|value| !value.is_empty()) else {
        return eprintln!("skipped: ZOO_SAMPLES is not set");
    };
    let zoo = Zoo::new();
    let archive = Path::new(&samples).join("LJSpeech-1.1-first32.tar.bz2");
    let unpacked =
        std::process::Command::new("tar").arg("-xjf").arg(archive).current_dir(zoo.home()).status();
    assert!(unpacked.unwrap().success());
    let folder = zoo.home().join("LJSpeech-1.1");
    let folder = format!("data.reader.folder={}", folder.display());
    let ended = zoo.run(&[
        "reproduce",
        "ljspeech-32",
        "--arms",
        "fp32",
        "--set",
        &folder,
        "--set",
        "train.max_updates=2",
        "--set",
        "model.decoder.units=16",
        "--set",
        "model.decoder.postnet.channels=16",
        "--yes",
        "--format",
        "json",
    ]);
    assert_eq!(ended.code, 12, "{}\n{}", ended.stdout, ended.stderr);
    let outcome = ended.json();
    assert_eq!(outcome["scores"][0]["scores"][0]["metric"], "mel-error", "{outcome}");
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let lines = std::fs::read_to_string(Path::new(run).join("eval/test.forced.hyp.txt")).unwrap();
    assert_eq!(lines.lines().count(), 32);
    let texts = std::fs::read_to_string(Path::new(run).join("eval/test.ref.txt")).unwrap();
    assert!(texts.starts_with("printing, in the only sense"), "{texts}");
}
