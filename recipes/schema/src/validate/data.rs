//! Checks the `[data]` block.

use super::Findings;
use crate::spec::{BatchingSpec, DataSpec, NormalizeStep, ReaderSpec, References, TokenizerSpec, TooLong};

pub(super) fn validate(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    reader(data, findings);
    share(data, findings);
    tokenizer(&data.tokenizer, findings);
    super::speech::data(data, findings);
    lengths(data, findings);
    // A user's own text does not need an evaluation set.
    let own = match &data.reader {
        ReaderSpec::ParallelText { files, .. } => !files.is_empty(),
        ReaderSpec::AudioManifest(spec) => !spec.files.is_empty(),
        ReaderSpec::Reversal { .. } | ReaderSpec::Tones(_) => false,
    };
    findings
        .require(own || !data.eval.is_empty(), "data.eval", || "the recipe has no evaluation set".to_owned());
    for (name, set) in &data.eval {
        let path = format!("data.eval.{name}");
        findings.named(name, &path);
        findings.positive(u64::from(set.lines), &format!("{path}.lines"));
        target_language(data, name, findings);
        findings.require(
            set.detokenize.is_none() || matches!(data.reader, ReaderSpec::ParallelText { .. }),
            &format!("{path}.detokenize"),
            || "only parallel text is in a language that Moses' rules are for".to_owned(),
        );
        findings.require(
            set.detokenize.is_none() || set.references == References::Raw,
            &format!("{path}.detokenize"),
            || format!("the references of `{name}` are tokenised: `references` is not \"raw\""),
        );
        if let Some(tokens) = set.reference_tokens {
            findings.positive(u64::from(tokens), &format!("{path}.reference_tokens"));
        }
    }
}

/// Checks that the language of an evaluation set is a target language, and that it is given if
/// there are several.
fn target_language(data: &DataSpec, name: &str, findings: &mut Findings<'_, '_>) {
    let (set, targets) = (&data.eval[name], data.reader.targets());
    let path = format!("data.eval.{name}");
    match &set.target {
        Some(target) => {
            findings.exists(target, targets.iter().copied(), &format!("{path}.target"), "target language");
        }
        None if targets.len() == 1 => {}
        None if name == "valid" => {
            if set.reference_tokens.is_some() {
                findings.report_with(
                    &format!("{path}.reference_tokens"),
                    format!("`{name}` is in {}, and tokens are counted in one language", targets.join(", ")),
                    "leave it out here; a set that has a `target` can say it",
                );
            }
        }
        None => findings.report_with(
            &path,
            format!("`{path}` does not say which of the languages {} it is in", targets.join(", ")),
            format!("target = \"{}\"; a set for each language that is to be scored", targets[0]),
        ),
    }
}

fn reader(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    if let Some(corpus) = &data.corpus {
        findings.said(corpus, "data.corpus");
    }
    if let Some(split) = &data.train_split {
        findings.said(split, "data.train_split");
        if matches!(data.reader, ReaderSpec::ParallelText { .. }) {
            let hint = "the training text is the split `train`";
            findings.report_with("data.train_split", "only recordings are trained on another split", hint);
        }
        if data.reader.is_generated() {
            let hint = "in an overlay: without = [\"data.train_split\"]";
            findings.report_with(
                "data.train_split",
                "the reader makes its data; `train` is trained on",
                hint,
            );
        }
    }
    match &data.reader {
        ReaderSpec::ParallelText { source, target, further_targets, files } => {
            findings.said(source, "data.reader.source");
            findings.said(target, "data.reader.target");
            further_languages(data, findings);
            match (&data.corpus, files.is_empty()) {
                (Some(_), false) => findings.report_with(
                    "data.reader.files",
                    "both `data.corpus` and `data.reader.files` say where the text is",
                    "keep one of them",
                ),
                (None, true) => findings.report_with(
                    "data.reader",
                    "neither `data.corpus` nor `data.reader.files` says where the text is",
                    "[data.reader.files.train] with source and target, or the name of a public corpus",
                ),
                (None, false) => {
                    has_training(data, files.contains_key(data.training()), findings);
                    for (name, set) in &data.eval {
                        let splits = files.keys().map(String::as_str);
                        findings.exists(&set.split, splits, &format!("data.eval.{name}.split"), "split");
                    }
                    for (split, pair) in files {
                        findings.said(&pair.source, &format!("data.reader.files.{split}.source"));
                        findings.said(&pair.target, &format!("data.reader.files.{split}.target"));
                        for (at, file) in pair.further_targets.iter().enumerate() {
                            findings.said(file, &format!("data.reader.files.{split}.further_targets.{at}"));
                        }
                        if pair.further_targets.len() != further_targets.len() {
                            let (files, languages) = (pair.further_targets.len(), further_targets.len());
                            findings.report_with(
                                &format!("data.reader.files.{split}"),
                                format!(
                                    "`{split}` has {files} files in {languages} further target languages"
                                ),
                                "further_targets = [...] here and in data.reader, in the same order",
                            );
                        }
                    }
                }
                (Some(_), true) => {}
            }
        }
        ReaderSpec::Reversal {
            symbols,
            min_length,
            max_length,
            train,
            valid,
            test,
            seed: _,
            further_targets: _,
        } => {
            further_languages(data, findings);
            generated(data, [("train", *train), ("valid", *valid), ("test", *test)], findings);
            for (value, key) in [(symbols, "symbols"), (min_length, "min_length"), (train, "train")] {
                findings.positive(u64::from(*value), &format!("data.reader.{key}"));
            }
            findings.require(min_length <= max_length, "data.reader.max_length", || {
                format!("the longest string, {max_length}, is shorter than the shortest, {min_length}")
            });
        }
        ReaderSpec::AudioManifest(spec) => super::speech::manifests(data, spec, findings),
        ReaderSpec::Tones(spec) => {
            generated(data, [("train", spec.train), ("valid", spec.valid), ("test", spec.test)], findings);
            super::speech::tones(spec, findings);
        }
    }
}

/// Checks that `data.share` leaves examples to read, and that the reader reads rather than
/// generates its data.
fn share(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    let Some(share) = &data.share else { return };
    findings.positive(u64::from(share.train), "data.share.train");
    findings.positive(u64::from(share.eval), "data.share.eval");
    if data.reader.is_generated() {
        let hint = "data.reader.train, data.reader.valid and data.reader.test say how many are made";
        findings.report_with("data.share", "the reader generates its data; there is nothing to read", hint);
    }
}

/// Checks that the user's files include the split to train on.
pub(super) fn has_training(data: &DataSpec, there: bool, findings: &mut Findings<'_, '_>) {
    findings.require(there, "data.reader.files", || {
        format!("`data.reader.files` has no split `{}`", data.training())
    });
}

/// Checks that generated data have no corpus, and that sets have as many lines as are generated.
fn generated(data: &DataSpec, splits: [(&str, u32); 3], findings: &mut Findings<'_, '_>) {
    if data.corpus.is_some() {
        let hint = "in an overlay: without = [\"data.corpus\"]";
        findings.report_with("data.corpus", "the reader makes its data; no corpus is read", hint);
    }
    for (name, set) in &data.eval {
        let path = format!("data.eval.{name}");
        let names = splits.iter().map(|(split, _)| *split);
        findings.exists(&set.split, names, &format!("{path}.split"), "split");
        if let Some((split, lines)) = splits.iter().find(|(split, _)| *split == set.split) {
            findings.require(*lines == set.lines, &format!("{path}.lines"), || {
                format!(
                    "the evaluation set `{name}` has {} lines, but {lines} are made for `{split}`",
                    set.lines
                )
            });
        }
    }
}

/// Checks that no target language is listed twice.
fn further_languages(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    let targets = data.reader.targets();
    for (at, target) in targets.iter().enumerate().skip(1) {
        let path = format!("data.reader.further_targets.{}", at - 1);
        // The code becomes part of file names.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if target.is_empty() || !target.chars().all(plain) {
            findings.report_with(&path, format!("`{target}` is not a language code"), "such as fr or pt-BR");
        }
        if targets[..at].contains(target) {
            let hint = "name each language once; data.reader.target is the first";
            findings.report_with(&path, format!("`{target}` is a target language already"), hint);
        }
    }
}

fn tokenizer(tokenizer: &TokenizerSpec, findings: &mut Findings<'_, '_>) {
    match tokenizer {
        TokenizerSpec::Words {
            pad_vocabulary_to,
            joint,
            max_vocabulary,
            max_target_vocabulary,
            min_count,
            normalize,
            specials: _,
            subwords: _,
        } => {
            findings.positive(u64::from(min_count.unwrap_or(1)), "data.tokenizer.min_count");
            rows(*max_vocabulary, "max_vocabulary", findings);
            rows(*max_target_vocabulary, "max_target_vocabulary", findings);
            findings.require(
                max_target_vocabulary.is_none() || !joint,
                "data.tokenizer.max_target_vocabulary",
                || {
                    "one vocabulary for both sides has one size; `data.tokenizer.joint` is not false"
                        .to_owned()
                },
            );
            findings.positive(u64::from(*pad_vocabulary_to), "data.tokenizer.pad_vocabulary_to");
            steps(normalize, findings);
        }
        TokenizerSpec::SubwordNmt {
            merges,
            pad_vocabulary_to,
            max_vocabulary,
            normalize,
            joined_dictionary: _,
            specials: _,
        } => {
            findings.positive(u64::from(*merges), "data.tokenizer.merges");
            rows(*max_vocabulary, "max_vocabulary", findings);
            findings.positive(u64::from(*pad_vocabulary_to), "data.tokenizer.pad_vocabulary_to");
            steps(normalize, findings);
        }
        TokenizerSpec::SentencePiece { pieces, model, joint, specials: _ } => {
            findings.require(*pieces > 4, "data.tokenizer.pieces", || {
                format!("`data.tokenizer.pieces` is {pieces}; four of them are the special tokens")
            });
            if let Some(model) = model {
                findings.said(model, "data.tokenizer.model");
                findings.require(*joint, "data.tokenizer.joint", || {
                    "one model is given for both sides, but `data.tokenizer.joint` is false".to_owned()
                });
            }
        }
        TokenizerSpec::Characters { alphabet, normalize } => {
            super::speech::alphabet(alphabet, findings);
            steps(normalize, findings);
        }
        TokenizerSpec::Lexicon { words, silence } => {
            super::speech::lexicon(words, silence.as_deref(), findings);
        }
        TokenizerSpec::Symbols { symbols, characters, leave_out, ends, pad_to, cleaners: _ } => {
            super::speech::symbols((*symbols, characters.as_deref()), leave_out, *ends, findings);
            if let Some(pad_to) = pad_to {
                findings.positive(u64::from(*pad_to), "data.tokenizer.pad_to");
            }
        }
    }
}

fn rows(most: Option<u32>, key: &str, findings: &mut Findings<'_, '_>) {
    if let Some(rows) = most {
        let path = format!("data.tokenizer.{key}");
        findings
            .require(rows > 4, &path, || format!("`{path}` is {rows}; four of them are the special tokens"));
    }
}

fn steps(steps: &[NormalizeStep], findings: &mut Findings<'_, '_>) {
    use NormalizeStep::{MosesTokenize, MosesTokenizeAggressive, MosesTokenizeAggressive2018};
    let tokenizes = |step: &NormalizeStep| {
        matches!(step, MosesTokenize | MosesTokenizeAggressive | MosesTokenizeAggressive2018)
    };
    for (at, step) in steps.iter().enumerate() {
        let path = format!("data.tokenizer.normalize.{at}");
        let before = &steps[..at];
        if before.contains(step) {
            findings.report(&path, "this step is there twice");
        } else if tokenizes(step) && before.iter().any(tokenizes) {
            findings.report(&path, "the text is tokenized twice, plainly and aggressively");
        }
    }
}

fn lengths(data: &DataSpec, findings: &mut Findings<'_, '_>) {
    let filter = &data.filter;
    let limits =
        [("max_source_tokens", filter.max_source_tokens), ("max_target_tokens", filter.max_target_tokens)];
    for (key, limit) in limits {
        // One token besides the end token.
        if let Some(limit) = limit {
            let path = format!("data.filter.{key}");
            findings.require(limit >= 2, &path, || {
                format!("`{path}` is {limit}; nothing fits beside the end token")
            });
        }
    }
    findings.require(
        filter.too_long == TooLong::Drop || limits.iter().any(|(_, limit)| limit.is_some()),
        "data.filter.too_long",
        || "there is nothing to truncate to: no largest length is given".to_owned(),
    );
    findings.require(
        filter.max_ratio.is_none_or(|ratio| ratio.is_finite() && ratio >= 1.0),
        "data.filter.max_ratio",
        || "of two sides the longer has at least as many tokens as the shorter: 1 or more".to_owned(),
    );
    match &data.batching {
        BatchingSpec::Sentences { sentences, pad_length_to } => {
            findings.positive(u64::from(*sentences), "data.batching.sentences");
            findings.positive(u64::from(*pad_length_to), "data.batching.pad_length_to");
        }
        BatchingSpec::Tokens { max_tokens, sentences_multiple_of, pad_length_to } => {
            findings.positive(u64::from(*max_tokens), "data.batching.max_tokens");
            findings.positive(u64::from(*sentences_multiple_of), "data.batching.sentences_multiple_of");
            findings.positive(u64::from(*pad_length_to), "data.batching.pad_length_to");
            for (key, limit) in limits {
                let Some(limit) = limit else { continue };
                findings.require(limit <= *max_tokens, "data.batching.max_tokens", || {
                    format!("a batch holds {max_tokens} tokens, but `data.filter.{key}` keeps sentences of {limit}")
                });
            }
        }
        BatchingSpec::Buckets { sentences, buckets, width, batches_together, pad_length_to } => {
            for (value, key) in [
                (sentences, "sentences"),
                (buckets, "buckets"),
                (width, "width"),
                (batches_together, "batches_together"),
                (pad_length_to, "pad_length_to"),
            ] {
                findings.positive(u64::from(*value), &format!("data.batching.{key}"));
            }
        }
        BatchingSpec::Utterances { utterances } => {
            findings.positive(u64::from(*utterances), "data.batching.utterances");
        }
        BatchingSpec::Seconds { max_seconds } => {
            findings.above_zero(*max_seconds, "data.batching.max_seconds");
        }
    }
}
