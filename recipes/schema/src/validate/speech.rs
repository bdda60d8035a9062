//! Checks of speech recipes: recordings, classes of a frame, the model over them, and searches.

use std::collections::{BTreeMap, BTreeSet};

use super::problems::Problem;
use super::{Findings, Sequences};
use crate::spec::{
    AcousticSpec, AudioManifestSpec, BatchingSpec, DataSpec, FeaturesSpec, RecipeOf, References, SymbolSet,
    TokenizerSpec, TonesSpec,
};

/// Reports the errors of a block that was checked separately.
fn blame(block: &str, problems: Vec<Problem>, findings: &mut Findings<'_, '_>) {
    for Problem { key, message, hint } in problems {
        let path = if key.is_empty() { block.to_owned() } else { format!("{block}.{key}") };
        match hint {
            Some(hint) => findings.report_with(&path, message, hint),
            None => findings.report(&path, message),
        }
    }
}

/// Checks the keys that recordings need and text does not use.
pub(super) fn data(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    let Some(rate) = data.reader.sample_rate_hz() else {
        let keys = [
            ("features", data.features.is_some()),
            ("augmentation", data.augmentation.is_some()),
            ("filter.min_seconds", data.filter.min_seconds.is_some()),
            ("filter.max_seconds", data.filter.max_seconds.is_some()),
        ];
        for (key, _) in keys.iter().filter(|(_, there)| *there) {
            findings.report(&format!("data.{key}"), format!("text has no use for `data.{key}`"));
        }
        if matches!(data.batching, BatchingSpec::Utterances { .. } | BatchingSpec::Seconds { .. }) {
            findings.report_with(
                "data.batching.kind",
                "these are batches of recordings",
                "sentences, tokens or buckets",
            );
        }
        return;
    };
    match &data.features {
        Some(features) => {
            blame("data.features", features.problems(rate), findings);
            if let Some(augmentation) = &data.augmentation {
                blame("data.augmentation", augmentation.problems(features.features()), findings);
            }
            synthesis(data, features, findings);
        }
        None => findings.report_with(
            "data",
            "the model reads frames, and `data.features` does not say how recordings become frames",
            "[data.features] kind = \"librosa\", \"kaldi\" or \"python-speech-features\"",
        ),
    }
    if !matches!(data.batching, BatchingSpec::Utterances { .. } | BatchingSpec::Seconds { .. }) {
        findings.report_with("data.batching.kind", "these are batches of text", "utterances or seconds");
    }
    let filter = &data.filter;
    for (key, seconds) in [("min_seconds", filter.min_seconds), ("max_seconds", filter.max_seconds)] {
        if let Some(seconds) = seconds {
            findings.not_negative(seconds, &format!("data.filter.{key}"));
        }
    }
    if let (Some(least), Some(most)) = (filter.min_seconds, filter.max_seconds) {
        findings.require(least < most, "data.filter.max_seconds", || {
            format!("nothing lasts at least {least} and at most {most} seconds")
        });
    }
    for (key, there) in [
        ("max_source_tokens", filter.max_source_tokens.is_some()),
        ("max_target_tokens", filter.max_target_tokens.is_some()),
    ] {
        if there {
            let path = format!("data.filter.{key}");
            let hint = "min_seconds and max_seconds";
            findings.report_with(&path, "recordings are not measured in tokens", hint);
        }
    }
    for (name, set) in &data.eval {
        findings.require(
            set.references == References::Normalized
                || matches!(data.tokenizer, TokenizerSpec::Characters { .. } | TokenizerSpec::Symbols { .. }),
            &format!("data.eval.{name}.references"),
            || "words of a lexicon are scored as they are written there".to_owned(),
        );
    }
}

/// Checks that a tokenizer of symbols and the features `tacotron` are used together.
fn synthesis(data: &DataSpec, features: &FeaturesSpec, findings: &mut Findings<'_, '_>) {
    let read = matches!(data.tokenizer, TokenizerSpec::Symbols { .. });
    match (read, matches!(features, FeaturesSpec::Tacotron { .. })) {
        (true, false) => findings.report_with(
            "data.features.kind",
            "a text's symbols are to be spoken, and these features are those of a recogniser",
            "kind = \"tacotron\"",
        ),
        (false, true) => findings.report_with(
            "data.tokenizer.kind",
            "the features are what a synthesiser writes, and it reads symbols",
            "kind = \"symbols\"",
        ),
        (true, true) if data.augmentation.is_some() => findings.report_with(
            "data.augmentation",
            "the recordings are what is to be learnt; varied ones are others",
            "leave it out",
        ),
        _ => {}
    }
}

/// Checks the symbols of a synthesiser's text.
pub(super) fn symbols(
    (set, characters): (SymbolSet, Option<&str>),
    leave_out: &str,
    ends: bool,
    findings: &mut Findings<'_, '_>,
) {
    let path = "data.tokenizer.characters";
    match (set, characters) {
        (SymbolSet::Own, None) => {
            findings.report_with(
                "data.tokenizer",
                "the set `own` has no characters",
                "characters = \" abc\"",
            );
        }
        (SymbolSet::Own, Some(characters)) => distinct(characters, path, "the set `own` is empty", findings),
        (_, Some(_)) => {
            let hint = "leave them out, or symbols = \"own\"";
            findings.report_with(path, "the set that is named has characters of its own", hint);
        }
        (_, None) => {}
    }
    let names = set.names(characters.unwrap_or_default());
    let mut twice = leave_out.chars().filter(|c| names.iter().any(|name| name.chars().eq([*c])));
    if let Some(character) = twice.next() {
        findings.report("data.tokenizer.leave_out", format!("{character:?} is a symbol"));
    }
    if ends && !set.has_ends() {
        let hint = "in an overlay: without = [\"data.tokenizer.ends\"]";
        findings.report_with("data.tokenizer.ends", "NVIDIA's set has no begin and no end", hint);
    }
}

/// Checks where the recordings come from.
pub(super) fn manifests(data: &DataSpec, spec: &AudioManifestSpec, findings: &mut Findings<'_, '_>) {
    match (&data.corpus, spec.files.is_empty()) {
        (Some(_), false) => findings.report_with(
            "data.reader.files",
            "both `data.corpus` and `data.reader.files` say where the recordings are",
            "keep one of them",
        ),
        (None, true) => findings.report_with(
            "data.reader",
            "neither `data.corpus` nor `data.reader.files` says where the recordings are",
            "files.train = \"train.jsonl\", or the name of a public corpus",
        ),
        (None, false) => {
            super::data::has_training(data, spec.files.contains_key(data.training()), findings);
            for (name, set) in &data.eval {
                let splits = spec.files.keys().map(String::as_str);
                findings.exists(&set.split, splits, &format!("data.eval.{name}.split"), "split");
            }
            for (split, file) in &spec.files {
                findings.said(file, &format!("data.reader.files.{split}"));
            }
        }
        (Some(_), true) => {}
    }
    if let Some(folder) = &spec.folder {
        findings.said(folder, "data.reader.folder");
        if data.corpus.is_none() {
            findings.report_with(
                "data.reader.folder",
                "a folder holds a corpus, and `data.corpus` does not say which",
                "corpus = \"ljspeech\"; recordings of no corpus are listed in data.reader.files",
            );
        }
    }
    if spec.transcript.is_some() && data.corpus.is_none() {
        let path = "data.reader.transcript";
        findings.report_with(
            path,
            "a manifest has one text for each recording",
            "name the corpus, or leave it out",
        );
    }
    let Some(join) = &spec.join else { return };
    findings.positive(u64::from(join.least), "data.reader.join.least");
    findings.require(join.least <= join.most, "data.reader.join.most", || {
        format!("at most {} recordings are fewer than at least {}", join.most, join.least)
    });
    findings.not_negative(join.gap_ms, "data.reader.join.gap_ms");
    for (split, utterances) in &join.utterances {
        findings.positive(u64::from(*utterances), &format!("data.reader.join.utterances.{split}"));
    }
    let training = data.training();
    findings.require(join.utterances.contains_key(training), "data.reader.join.utterances", || {
        format!("nothing is said of how many utterances `{training}` has")
    });
    for (name, set) in &data.eval {
        let splits = join.utterances.keys().map(String::as_str);
        findings.exists(&set.split, splits, &format!("data.eval.{name}.split"), "split");
        if let Some(utterances) = join.utterances.get(&set.split) {
            findings.require(*utterances == set.lines, &format!("data.eval.{name}.lines"), || {
                format!(
                    "the evaluation set `{name}` has {} utterances, but {utterances} are made of `{}`",
                    set.lines, set.split
                )
            });
        }
    }
}

pub(super) fn tones(spec: &TonesSpec, findings: &mut Findings<'_, '_>) {
    for (value, key) in [
        (spec.letters, "letters"),
        (spec.longest_word, "longest_word"),
        (spec.most_words, "most_words"),
        (spec.train, "train"),
    ] {
        findings.positive(u64::from(value), &format!("data.reader.{key}"));
    }
    findings.require(spec.letters <= 26, "data.reader.letters", || {
        format!("`data.reader.letters` is {}; the alphabet has 26", spec.letters)
    });
    findings.above_zero(spec.letter_ms, "data.reader.letter_ms");
}

pub(super) fn alphabet(alphabet: &str, findings: &mut Findings<'_, '_>) {
    distinct(alphabet, "data.tokenizer.alphabet", "the alphabet is empty", findings);
}

/// Checks that there are characters, and that none is listed twice.
fn distinct(characters: &str, path: &str, empty: &str, findings: &mut Findings<'_, '_>) {
    findings.require(!characters.is_empty(), path, || empty.to_owned());
    let mut seen = BTreeSet::new();
    for c in characters.chars() {
        findings.require(seen.insert(c), path, || format!("{c:?} is there twice"));
    }
}

pub(super) fn lexicon(
    words: &BTreeMap<String, Vec<String>>,
    silence: Option<&str>,
    findings: &mut Findings<'_, '_>,
) {
    findings.require(!words.is_empty(), "data.tokenizer.words", || "the lexicon has no word".to_owned());
    for (word, sounds) in words {
        let path = format!("data.tokenizer.words.{word}");
        findings.require(!word.is_empty() && !word.contains(char::is_whitespace), &path, || {
            format!("{word:?} is no single word")
        });
        findings.require(!sounds.is_empty(), &path, || format!("{word} has no sound"));
        findings.require(!sounds.iter().any(|sound| Some(sound.as_str()) == silence), &path, || {
            format!("the silence is part of {word}")
        });
    }
}

/// Checks a model of frames and its classes.
pub(super) fn model<T: Sequences>(
    recipe: &RecipeOf<T>,
    encoder: &AcousticSpec,
    findings: &mut Findings<'_, '_>,
) {
    blame("model.encoder", encoder.problems(), findings);
    if recipe.data.reader.sample_rate_hz().is_none() {
        findings.report_with(
            "data.reader.kind",
            "the reader gives text; the model reads the frames of recordings",
            "kind = \"audio-manifest\"",
        );
    }
    if !matches!(recipe.data.tokenizer, TokenizerSpec::Characters { .. } | TokenizerSpec::Lexicon { .. }) {
        findings.report_with(
            "data.tokenizer.kind",
            "this tokenizer makes tokens; the model gives classes of frames",
            "characters or lexicon",
        );
    }
}
