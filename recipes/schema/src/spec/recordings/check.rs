//! Checks of the `[data]` block of recordings.

use super::{AudioManifestSpec, RecordingBatchingSpec, RecordingDataSpec, RecordingReaderSpec, TonesSpec};
use crate::validate::{Findings, eval_sets, generated, own_splits};

impl<L> RecordingDataSpec<L> {
    /// Checks all but the tokenizer, and whether the features are those of the task.
    pub(crate) fn check(&self, findings: &mut Findings<'_, '_>) {
        if let Some(corpus) = &self.corpus {
            findings.said(corpus, "data.corpus");
        }
        if let Some(split) = &self.train_split {
            findings.said(split, "data.train_split");
        }
        let own = match &self.reader {
            RecordingReaderSpec::AudioManifest(spec) => {
                manifests(self, spec, findings);
                !spec.files.is_empty()
            }
            RecordingReaderSpec::Tones(spec) => {
                if self.train_split.is_some() {
                    let hint = "in an overlay: without = [\"data.train_split\"]";
                    let message = "the reader makes its data; `train` is trained on";
                    findings.report_with("data.train_split", message, hint);
                }
                generated(self, &spec.generated(), findings);
                tones(spec, findings);
                false
            }
        };
        if let Some(share) = self.share {
            share.check(matches!(self.reader, RecordingReaderSpec::Tones(_)), findings);
        }
        findings.blame("data.features", self.features.problems(self.reader.sample_rate_hz()));
        if let Some(augmentation) = &self.augmentation {
            findings.blame("data.augmentation", augmentation.problems(self.features.features()));
        }
        self.lengths(findings);
        eval_sets(self, own, findings);
        for (name, set) in &self.eval {
            if let Some(words) = set.reference_tokens {
                findings.positive(u64::from(words), &format!("data.eval.{name}.reference_tokens"));
            }
        }
    }

    fn lengths(&self, findings: &mut Findings<'_, '_>) {
        let (least, most) = (self.filter.min_seconds, self.filter.max_seconds);
        for (key, seconds) in [("min_seconds", least), ("max_seconds", most)] {
            if let Some(seconds) = seconds {
                findings.not_negative(seconds, &format!("data.filter.{key}"));
            }
        }
        if let (Some(least), Some(most)) = (least, most) {
            findings.require(least < most, "data.filter.max_seconds", || {
                format!("nothing lasts at least {least} and at most {most} seconds")
            });
        }
        match self.batching {
            RecordingBatchingSpec::Utterances { utterances } => {
                findings.positive(u64::from(utterances), "data.batching.utterances");
            }
            RecordingBatchingSpec::Seconds { max_seconds } => {
                findings.above_zero(max_seconds, "data.batching.max_seconds");
            }
        }
    }
}

/// Checks where the recordings come from.
fn manifests<L>(data: &RecordingDataSpec<L>, spec: &AudioManifestSpec, findings: &mut Findings<'_, '_>) {
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
            own_splits(data, spec.files.keys().map(String::as_str), findings);
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

fn tones(spec: &TonesSpec, findings: &mut Findings<'_, '_>) {
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
