//! Searches with a language model on an existing run: sweeps of weights, several hypotheses, and
//! vocabularies.

use std::path::Path;

use serde_json::Value;

use crate::binary::Zoo;

/// A language model in the style of OpenSLR's models, with words in capitals.
pub const MODEL: &str = "\\data\\\nngram 1=7\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-0.6 A\n-0.8 B\n-0.9 C\n-1.2 AB\n-1.3 BC\n\n\\end\\\n";

pub const SEARCH: &str = "beam-4-gram";
const GIVEN: &str = "decode.beam-4-gram.language_model=lm.arpa";
/// A narrow beam, with which the tests take seconds instead of a minute.
pub const NARROW: &str = "decode.beam-4-gram.beam=16";

/// A home and the folder of a run that was trained briefly on tones.
fn trained() -> (Zoo, String) {
    let zoo = Zoo::new();
    zoo.file("lm.arpa", MODEL);
    let call = ["reproduce", "wave2letter", "--tier", "smoke", "--arms", "fp32"];
    let more = ["--set", "train.max_updates=60", "--format", "json"];
    let outcome = zoo.run(&[&call[..], &more].concat()).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap().to_owned();
    (zoo, run)
}

/// A WAV file of three tones of a quarter of a second each, played twice: 16 bits, 16 kHz.
pub fn recording() -> Vec<u8> {
    recording_behind(0)
}

/// The recording after `silence` samples of silence.
fn recording_behind(silence: usize) -> Vec<u8> {
    let pitch = |i: u32| 300.0 + 300.0 * f64::from(i / 4000 % 3);
    let sample = |i: u32| ((f64::from(i) * pitch(i) * std::f64::consts::TAU / 16000.0).sin() * 8000.0) as i16;
    let samples = std::iter::repeat_n(0, silence).chain((0..24_000).map(sample));
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + data.len() as u32).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\x00\x7d\0\0\x02\0\x10\0data");
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
    bytes
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

#[test]
fn a_sweep_scores_every_pair_as_an_evaluation_with_it_would_and_keeps_nothing() {
    let (zoo, run) = trained();
    let sweep = |more: &[&str]| {
        let call = [
            "evaluate",
            &run,
            "--decode",
            SEARCH,
            "--set",
            GIVEN,
            "--set",
            NARROW,
            "--sweep",
            "alpha=0:2:2,beta=0:6:3",
        ];
        [&call[..], more].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let swept = |more: &[&str]| {
        let words = sweep(more);
        zoo.ends_with(0, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let before = files(&zoo);
    let ended = swept(&["--format", "json"]);
    assert_eq!(files(&zoo), before, "nothing is kept");
    let rows = ended.part("sweep");
    let rows = rows.as_array().unwrap();
    let pairs: Vec<(f64, f64)> = rows.iter().map(|row| (number(row, "alpha"), number(row, "beta"))).collect();
    assert_eq!(pairs, [(0.0, 0.0), (0.0, 3.0), (0.0, 6.0), (2.0, 0.0), (2.0, 3.0), (2.0, 6.0)]);
    let values: Vec<f64> = rows.iter().map(|row| number(row, "value")).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(values.iter().any(|value| *value > least), "{values:?}");
    let best = values.iter().position(|value| *value == least).unwrap();
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row["best"], at == best, "{row}");
        assert_eq!((row["eval"].as_str(), row["metric"].as_str()), (Some("valid"), Some("wer")));
    }
    let (alpha, beta) = pairs[best];
    let told = format!("--set decode.{SEARCH}.alpha={alpha} --set decode.{SEARCH}.beta={beta}");
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    assert!(!ended.stderr.contains("is not evidence"), "{}", ended.stderr);
    for form in ["md", "human"] {
        assert_eq!(swept(&["--format", form]).stdout.matches("best").count(), 2, "{form}");
    }

    // Decodes and scores each pair by itself, for comparison.
    for ((alpha, beta), value) in pairs.iter().zip(&values) {
        let [alpha, beta] =
            [("alpha", alpha), ("beta", beta)].map(|(key, x)| format!("decode.{SEARCH}.{key}={x}"));
        let call = ["evaluate", &run, "--decode", SEARCH, "--eval", "valid", "--format", "json"];
        let more = ["--set", GIVEN, "--set", NARROW, "--set", &alpha, "--set", &beta];
        let found = zoo.ends_with(0, &[&call[..], &more].concat()).part("evaluations");
        assert!((number(&found[0]["scores"][0], "value") - value).abs() < 1e-9, "{alpha} {beta}: {found}");
    }

    // There are claims on these recordings.
    assert!(swept(&["--eval", "test-clean"]).stderr.contains("is not evidence"));
    for (search, says) in [("greedy", "alpha and beta have no effect"), ("none", "no search `none`")] {
        zoo.ends_with(2, &["evaluate", &run, "--decode", search, "--sweep", "alpha=1"]).says(says);
    }
    zoo.ends_with(2, &["evaluate", &run, "--sweep", "alpha=1"])
        .says("no search of the recipe has a language model");
    let ended = zoo.ends_with(2, &["evaluate", &run, "--sweep", "gamma=1"]);
    assert!(ended.stderr.contains("alpha or beta"), "{}", ended.stderr);
}

/// All files of a home with their lengths.
fn files(zoo: &Zoo) -> Vec<(String, u64)> {
    fn below(folder: &std::path::Path, found: &mut Vec<(String, u64)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below(&path, found),
                false => found.push((path.display().to_string(), path.metadata().unwrap().len())),
            }
        }
    }
    let mut found = Vec::new();
    below(&zoo.home().join("runs"), &mut found);
    found.push((
        "ledger".to_owned(),
        std::fs::metadata(zoo.home().join("ledger.jsonl")).map_or(0, |of| of.len()),
    ));
    found.sort();
    found
}

#[test]
fn several_hypotheses_of_a_recording_have_scores_parts_and_times_of_words() {
    let (zoo, run) = trained();
    std::fs::write(zoo.home().join("said.wav"), recording()).unwrap();
    let infer = |more: &[&str]| {
        let call = ["infer", &run, "said.wav", "--decode", SEARCH, "--set", GIVEN, "--set", NARROW];
        let beta = ["--set", "decode.beam-4-gram.beta=5"];
        zoo.ends_with(0, &[&call[..], &beta, more].concat()).stdout
    };
    let heard: Value = serde_json::from_str(&infer(&["--nbest", "5", "--format", "json"])).unwrap();
    let hypotheses = heard["hypotheses"].as_array().unwrap();
    assert_eq!(hypotheses.len(), 5, "{heard}");
    let mut texts: Vec<&str> = hypotheses.iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(heard["text"], texts[0]);
    assert_eq!(heard["words"], hypotheses[0]["words"]);
    let lines: Vec<String> = hypotheses
        .iter()
        .map(|one| format!("{:.4}\t{}\n", number(one, "score"), one["text"].as_str().unwrap()))
        .collect();
    assert_eq!(infer(&["--nbest", "5"]), lines.concat());
    assert_eq!(infer(&[]), format!("{}\n", texts[0]), "the best is what is heard without");
    for one in hypotheses {
        let parts = number(one, "acoustic") + number(one, "language_model");
        assert!((number(one, "score") - parts).abs() < 1e-9, "{one}");
        assert!(number(one, "acoustic") < 0.0, "{one}");
        let words: Vec<&str> =
            one["words"].as_array().unwrap().iter().map(|word| word["word"].as_str().unwrap()).collect();
        assert_eq!(words.join(" "), one["text"].as_str().unwrap());
        // The expected score with alpha 2 and beta 5. All words are known, except perhaps the last.
        let log10 = |word: &&str| match *word {
            "a" => -0.6,
            "b" => -0.8,
            "c" => -0.9,
            "ab" => -1.2,
            "bc" => -1.3,
            _ => -1000.0,
        };
        let by_hand: f64 = words.iter().map(|word| 2.0 * log10(word) + 5.0).sum();
        assert!((number(one, "language_model") - by_hand).abs() < 1e-4, "{by_hand} {one}");
    }
    assert!(hypotheses.windows(2).all(|pair| number(&pair[0], "score") >= number(&pair[1], "score")));
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 5);

    let greedy = zoo.ends_with(0, &["infer", &run, "said.wav", "--decode", "greedy", "--nbest", "3"]);
    assert_eq!(greedy.stdout.lines().count(), 1);
    assert!(greedy.stderr.contains("one hypothesis per recording; --decode beam-4-gram has more"));
}

#[test]
fn words_that_may_be_spelt_are_those_of_the_model_or_of_a_list() {
    let (zoo, run) = trained();
    std::fs::write(zoo.home().join("said.wav"), recording()).unwrap();
    zoo.file("words.txt", "ABA\tsome sounds\n\nCB\n");
    let heard = |words: &str| -> Vec<String> {
        let words = format!("decode.{SEARCH}.words={words}");
        let beta = "decode.beam-4-gram.beta=2005";
        let call = [
            "infer", &run, "said.wav", "--decode", SEARCH, "--set", GIVEN, "--set", NARROW, "--set", &words,
            "--set", beta,
        ];
        let text = zoo.ends_with(0, &call).stdout;
        text.split_whitespace().map(str::to_owned).collect()
    };
    // An unknown word costs 2000 and gains 2005, so without a vocabulary anything could be spelt.
    let of_model = heard("{ kind = \"of-language-model\" }");
    assert!(!of_model.is_empty());
    assert!(of_model.iter().all(|word| ["a", "b", "c", "ab", "bc"].contains(&word.as_str())), "{of_model:?}");
    let listed = heard("{ kind = \"listed\", file = \"words.txt\" }");
    assert!(!listed.is_empty());
    assert!(listed.iter().all(|word| ["aba", "cb"].contains(&word.as_str())), "{listed:?}");

    zoo.file("none.txt", "xyz\n");
    let words = format!("decode.{SEARCH}.words={{ kind = \"listed\", file = \"none.txt\" }}");
    let call =
        ["infer", &run, "said.wav", "--decode", SEARCH, "--set", GIVEN, "--set", NARROW, "--set", &words];
    zoo.ends_with(4, &call).says("no word of ");
    let ended = zoo.ends_with(3, &["infer", &run, "said.wav", "--set", "train.seed=1"]);
    assert!(ended.stderr.contains("--set can only change a search"), "{}", ended.stderr);
}

/// NVIDIA's Jasper trims silence, and evaluates the weights with the fewest word errors of its last
/// epochs.
#[test]
fn silence_is_cut_off_and_counts_in_the_times_of_words_and_errors_choose_the_weights() {
    let zoo = Zoo::new();
    let call = ["reproduce", "jasper-10x5-nvidia", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.run(&call).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let log = std::fs::read_to_string(Path::new(run).join("log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let epochs: Vec<&Value> = lines.iter().filter(|line| line["event"] == "epoch").collect();
    // The end of the first epoch is evaluated only for its loss.
    let scored: Vec<bool> = epochs.iter().map(|line| line["valid_score"].is_number()).collect();
    assert_eq!(scored, [false, true, true], "{epochs:?}");
    let best: Vec<bool> = epochs.iter().map(|line| line["best"] == true).collect();
    let fewer = number(epochs[2], "valid_score") < number(epochs[1], "valid_score");
    assert_eq!(best, [false, true, fewer], "{epochs:?}");

    let heard = |silence: usize| {
        std::fs::write(zoo.home().join("said.wav"), recording_behind(silence)).unwrap();
        zoo.ends_with(0, &["infer", run, "said.wav", "--format", "json"]).json_line()
    };
    // The trimmed part ends one window before the sound.
    let (early, late) = (heard(4_000), heard(12_000));
    assert_eq!(early["text"], late["text"]);
    let starts = |heard: &Value| -> Vec<f64> {
        heard["words"].as_array().unwrap().iter().map(|word| number(word, "start")).collect()
    };
    let (early, late) = (starts(&early), starts(&late));
    assert!(!early.is_empty(), "nothing was heard");
    for (early, late) in early.iter().zip(&late) {
        assert!((late - early - 0.5).abs() < 1e-9, "{early} {late}");
    }
}
