//! Checks of the `[data]` block of a translation recipe.

use crate::spec::{References, check_steps};
use crate::tasks::translation::{
    ReversalSpec, TextBatchingSpec, TextDataSpec, TextReaderSpec, TextTokenizerSpec, TooLong,
};
use crate::validate::{Findings, eval_sets, generated, own_splits};

/// Checks reader, tokenizer, filter, batching and evaluation sets.
pub(in crate::tasks::translation) fn data(data: &TextDataSpec, findings: &mut Findings<'_, '_>) {
    let own = match &data.reader {
        TextReaderSpec::ParallelText { files, .. } => !files.is_empty(),
        TextReaderSpec::Reversal(_) => false,
    };
    if let Some(corpus) = &data.corpus {
        findings.said(corpus, "data.corpus");
    }
    reader(data, findings);
    if let Some(share) = data.share {
        share.check(matches!(data.reader, TextReaderSpec::Reversal(_)), findings);
    }
    tokenizer(&data.tokenizer, findings);
    lengths(data, findings);
    eval_sets(data, own, findings);
    for (name, set) in &data.eval {
        let path = format!("data.eval.{name}");
        target_language(data, name, findings);
        findings.require(
            set.detokenize.is_none() || matches!(data.reader, TextReaderSpec::ParallelText { .. }),
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
fn target_language(data: &TextDataSpec, name: &str, findings: &mut Findings<'_, '_>) {
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

/// Checks where the pairs come from.
fn reader(data: &TextDataSpec, findings: &mut Findings<'_, '_>) {
    match &data.reader {
        TextReaderSpec::ParallelText { source, target, further_targets, files } => {
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
                    own_splits(data, files.keys().map(String::as_str), findings);
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
        TextReaderSpec::Reversal(spec) => {
            further_languages(data, findings);
            generated(data, &spec.generated(), findings);
            let ReversalSpec { symbols, min_length, max_length, train, .. } = spec;
            for (value, key) in [(symbols, "symbols"), (min_length, "min_length"), (train, "train")] {
                findings.positive(u64::from(*value), &format!("data.reader.{key}"));
            }
            findings.require(min_length <= max_length, "data.reader.max_length", || {
                format!("the longest string, {max_length}, is shorter than the shortest, {min_length}")
            });
        }
    }
}

/// Checks that no target language is listed twice.
fn further_languages(data: &TextDataSpec, findings: &mut Findings<'_, '_>) {
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

fn tokenizer(tokenizer: &TextTokenizerSpec, findings: &mut Findings<'_, '_>) {
    match tokenizer {
        TextTokenizerSpec::Words {
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
            check_steps(normalize, findings);
        }
        TextTokenizerSpec::SubwordNmt {
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
            check_steps(normalize, findings);
        }
        TextTokenizerSpec::SentencePiece { pieces, model, joint, specials: _ } => {
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
    }
}

fn rows(most: Option<u32>, key: &str, findings: &mut Findings<'_, '_>) {
    if let Some(rows) = most {
        let path = format!("data.tokenizer.{key}");
        findings
            .require(rows > 4, &path, || format!("`{path}` is {rows}; four of them are the special tokens"));
    }
}

fn lengths(data: &TextDataSpec, findings: &mut Findings<'_, '_>) {
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
        TextBatchingSpec::Sentences { sentences, pad_length_to } => {
            findings.positive(u64::from(*sentences), "data.batching.sentences");
            findings.positive(u64::from(*pad_length_to), "data.batching.pad_length_to");
        }
        TextBatchingSpec::Tokens { max_tokens, sentences_multiple_of, pad_length_to } => {
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
        TextBatchingSpec::Buckets { sentences, buckets, width, batches_together, pad_length_to } => {
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
    }
}
