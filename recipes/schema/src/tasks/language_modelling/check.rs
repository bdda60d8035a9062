//! What a schema cannot say of a language modelling recipe.

use super::{
    EvaluationWindowsSpec, LanguageDataSpec, LanguageLossSpec, LanguageModelSpec, LanguageModelling,
    LanguageReaderSpec, LanguageUnitSpec, TrainingWindowsSpec, VocabularyOrder, VocabularySplits,
};
use crate::spec::{DataBlock, IslandsSpec, RecipeOf};
use crate::tasks::Checked;
use crate::validate::{Findings, eval_sets, generated};

/// Largest number of different words of the toy.
const MOST_BABBLE: u32 = 100;

impl Checked for LanguageModelling {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data(&recipe.data, findings);
        model(&recipe.model, findings);
        windows(recipe, findings);
        lines_and_draws(recipe, findings);
    }

    fn needed_islands(recipe: &RecipeOf<Self>) -> IslandsSpec {
        let sampled = matches!(recipe.loss, LanguageLossSpec::SampledSoftmax { .. });
        let of_layers = match recipe.model {
            LanguageModelSpec::Gpt(_) => IslandsSpec::NONE,
            LanguageModelSpec::Lstm(_) | LanguageModelSpec::LayerNormLstm(_) => IslandsSpec::ALL_BUT_LOSS,
        };
        IslandsSpec { loss: sampled, ..of_layers }
    }
}

fn data(data: &LanguageDataSpec, findings: &mut Findings<'_, '_>) {
    if let Some(corpus) = &data.corpus {
        findings.said(corpus, "data.corpus");
    }
    if let Some(share) = data.share {
        share.check(data.is_generated(), findings);
    }
    eval_sets(data, false, findings);
    if let LanguageUnitSpec::Word { end_of_line, unknown, rules: _ } = &data.unit {
        for (word, key) in [(end_of_line, "end_of_line"), (unknown, "unknown")] {
            let one = |word: &String| word.split_whitespace().count() == 1 && word.trim() == word;
            findings.require(word.as_ref().is_none_or(one), &format!("data.unit.{key}"), || {
                format!("`{key}` must be one word, without spaces")
            });
        }
    }
    findings.require(data.vocabulary.size >= 2, "data.vocabulary.size", || {
        format!("`size` is {}; there must be 2 units at least to choose from", data.vocabulary.size)
    });
    vocabulary(data, findings);
    match &data.reader {
        LanguageReaderSpec::Babble { words, .. } => {
            findings.require((2..=MOST_BABBLE).contains(words), "data.reader.words", || {
                format!("`words` is {words}; the toy has 2 to {MOST_BABBLE} words")
            });
            if let Some(made) = data.made() {
                for (split, lines) in made.splits() {
                    findings.positive(u64::from(lines), &format!("data.reader.{split}"));
                }
                generated(data, &made, findings);
            }
        }
        LanguageReaderSpec::Text { files, training_share } => {
            text(data, files.keys(), *training_share, findings)
        }
    }
}

/// Checks that a word stands for those that the vocabulary leaves out.
fn vocabulary(data: &LanguageDataSpec, findings: &mut Findings<'_, '_>) {
    let vocabulary = data.vocabulary;
    if let Some(least) = vocabulary.least_count {
        findings.positive(least, "data.vocabulary.least_count");
    }
    let openseq2seq = vocabulary.order == VocabularyOrder::Openseq2seq;
    let named = matches!(&data.unit, LanguageUnitSpec::Word { unknown: Some(_), .. });
    findings.require(
        named || !(openseq2seq || vocabulary.least_count.is_some()),
        "data.vocabulary",
        || "`least_count` and the order `openseq2seq` need a word for the words that are left out: `data.unit.unknown`".to_owned(),
    );
}

/// Checks where the text is, and that the splits exist.
fn text<'f>(
    data: &LanguageDataSpec,
    files: impl ExactSizeIterator<Item = &'f String> + Clone,
    training_share: Option<f64>,
    findings: &mut Findings<'_, '_>,
) {
    let own = files.len() > 0;
    match (&data.corpus, own) {
        (Some(_), true) => findings.report_with(
            "data.reader",
            "both `data.corpus` and `data.reader.files` say where the text is",
            "keep one of them",
        ),
        (None, false) => findings.report_with(
            "data.reader",
            "neither `data.corpus` nor `data.reader.files` says where the text is",
            "[data.reader.files] with `train` and `valid`, or the name of a public corpus",
        ),
        _ => {}
    }
    let mut splits: Vec<&str> = files.map(String::as_str).collect();
    if let Some(share) = training_share {
        findings.require(share > 0.0 && share < 1.0, "data.reader.training_share", || {
            format!("`training_share` is {share}; it is a share between 0 and 1")
        });
        findings.require(!own || splits == ["text"], "data.reader.files", || {
            "`training_share` cuts one text: `files` must have the split `text` alone".to_owned()
        });
        splits = vec!["train", "valid"];
    }
    if own || training_share.is_some() {
        findings.require(splits.contains(&data.training()), "data.reader.files", || {
            format!("`data.reader.files` has no split `{}` to train on", data.training())
        });
        for (name, set) in &data.eval {
            let path = format!("data.eval.{name}.split");
            findings.exists(&set.split, splits.iter().copied(), &path, "split");
        }
    }
}

fn model(model: &LanguageModelSpec, findings: &mut Findings<'_, '_>) {
    let numbers: &[(u32, &str)] = match model {
        LanguageModelSpec::Lstm(lstm) => {
            &[(lstm.width, "width"), (lstm.units, "units"), (lstm.layers, "layers")]
        }
        LanguageModelSpec::LayerNormLstm(lstm) => {
            &[(lstm.width, "width"), (lstm.units, "units"), (lstm.layers, "layers")]
        }
        LanguageModelSpec::Gpt(gpt) => {
            &[(gpt.width, "width"), (gpt.layers, "layers"), (gpt.heads, "heads"), (gpt.context, "context")]
        }
    };
    for (number, key) in numbers {
        findings.positive(u64::from(*number), &format!("model.{key}"));
    }
    match model {
        LanguageModelSpec::Lstm(lstm) => {
            findings.share(lstm.dropout, "model.dropout");
            findings.require(!lstm.tied || lstm.width == lstm.output(), "model.tied", || {
                let of = if lstm.projection.is_some() { "projection.width" } else { "units" };
                format!("a tied softmax needs `width` {} equal to `{of}` {}", lstm.width, lstm.output())
            });
            if let Some(projection) = lstm.projection {
                findings.positive(u64::from(projection.width), "model.projection.width");
                findings.above_zero(projection.bound, "model.projection.bound");
            }
            if let Some(bound) = lstm.bound {
                findings.above_zero(bound, "model.bound");
            }
            findings.above_zero(lstm.embedding_bound, "model.embedding_bound");
            findings.not_negative(lstm.softmax_bias_bound, "model.softmax_bias_bound");
        }
        LanguageModelSpec::LayerNormLstm(lstm) => {
            findings.share(lstm.embedding_dropout, "model.embedding_dropout");
            findings.share(lstm.candidate_dropout, "model.candidate_dropout");
            findings.share(lstm.dropout, "model.dropout");
            findings.above_zero(lstm.embedding_bound, "model.embedding_bound");
            findings.above_zero(lstm.epsilon, "model.epsilon");
        }
        LanguageModelSpec::Gpt(gpt) => {
            findings.share(gpt.dropout, "model.dropout");
            findings.require(gpt.heads == 0 || gpt.width.is_multiple_of(gpt.heads), "model.heads", || {
                format!("{} heads do not divide a width of {}", gpt.heads, gpt.width)
            });
            findings.above_zero(gpt.init_std, "model.init_std");
            findings.above_zero(gpt.epsilon, "model.epsilon");
        }
    }
}

/// Checks sizes of windows, and that the model can read them.
fn windows(recipe: &RecipeOf<LanguageModelling>, findings: &mut Findings<'_, '_>) {
    let batching = recipe.data.batching;
    let [rows, steps] = batching.shape();
    findings.positive(u64::from(rows), "data.batching.rows");
    findings.positive(u64::from(steps), "data.batching.steps");
    if let TrainingWindowsSpec::Random { batches, .. } = batching {
        findings.positive(u64::from(batches), "data.batching.batches");
    }
    findings.require(
        !batching.carries() || recipe.train.batches_per_update == 1,
        "train.batches_per_update",
        || "a state that is carried from batch to batch needs one batch in an update".to_owned(),
    );
    model_reads(&recipe.model, steps, batching.carries(), "data.batching", findings);
    let carried = matches!(recipe.model, LanguageModelSpec::LayerNormLstm(_)) && batching.carries();
    findings.require(!carried, "data.batching.state", || {
        "a layer-normalised LSTM carries no state in training: `state` must be \"reset\"".to_owned()
    });
    for (name, set) in &recipe.data.eval {
        let path = format!("data.eval.{name}.windows");
        if let EvaluationWindowsSpec::Random { batches, .. } = set.windows {
            findings.positive(u64::from(batches), &format!("{path}.batches"));
        }
        let [rows, steps] = set.windows.shape();
        findings.positive(u64::from(rows), &format!("{path}.rows"));
        findings.positive(u64::from(steps), &format!("{path}.steps"));
        model_reads(&recipe.model, steps, set.windows.carries(), &path, findings);
    }
}

/// Checks what windows of whole lines, a vocabulary from a list and a sampled softmax need.
fn lines_and_draws(recipe: &RecipeOf<LanguageModelling>, findings: &mut Findings<'_, '_>) {
    let data = &recipe.data;
    let training = matches!(data.batching, TrainingWindowsSpec::Sentences { .. });
    let sets = data.eval.values().map(|set| set.windows);
    let lines =
        training || sets.into_iter().any(|set| matches!(set, EvaluationWindowsSpec::Sentences { .. }));
    let ended = matches!(data.unit, LanguageUnitSpec::Word { end_of_line: Some(_), .. });
    findings.require(!lines || ended, "data.unit.end_of_line", || {
        "windows of `sentences` need a word at the end of each line: `end_of_line`".to_owned()
    });
    let listed = data.vocabulary.of == VocabularySplits::List;
    if listed {
        let words = matches!(data.unit, LanguageUnitSpec::Word { .. });
        findings.require(words, "data.vocabulary.of", || {
            "a list of units is one of words: `data.unit.kind` must be \"word\"".to_owned()
        });
        let order = data.vocabulary.order == VocabularyOrder::Appearance;
        findings.require(order, "data.vocabulary.order", || {
            "a list has an order: `order` must be \"appearance\"".to_owned()
        });
        let counted = data.vocabulary.least_count.is_some() || data.vocabulary.estimated;
        findings.require(!counted, "data.vocabulary", || {
            "a list is not counted: `least_count` and `estimated` do nothing".to_owned()
        });
        let apart = matches!(data.reader, LanguageReaderSpec::Text { training_share: None, .. });
        findings.require(apart, "data.vocabulary.of", || {
            "a list is a split or file of its own: `data.reader.kind` must be \"text\", without `training_share`"
                .to_owned()
        });
    }
    let LanguageLossSpec::SampledSoftmax { over: _, sampled, draws } = recipe.loss else { return };
    findings.positive(u64::from(sampled), "loss.sampled");
    let order = data.vocabulary.order;
    let by_count = matches!(order, VocabularyOrder::Frequency | VocabularyOrder::Openseq2seq);
    findings.require(listed || by_count, "data.vocabulary.order", || {
        "a sampled softmax draws low numbers most often: `order` must be \"frequency\" or \"openseq2seq\", or `of` \"list\""
            .to_owned()
    });
    let [rows, _] = data.batching.shape();
    findings.require(draws > 0 && rows.is_multiple_of(draws), "loss.draws", || {
        format!("{draws} draws do not divide {rows} rows")
    });
}

fn model_reads(
    model: &LanguageModelSpec,
    steps: u32,
    carried: bool,
    path: &str,
    findings: &mut Findings<'_, '_>,
) {
    let LanguageModelSpec::Gpt(gpt) = model else { return };
    findings.require(!carried, &format!("{path}.state"), || {
        "a Transformer has no state to carry: `state` must be \"reset\"".to_owned()
    });
    findings.require(steps <= gpt.context, &format!("{path}.steps"), || {
        format!("a window of {steps} units is longer than the model's context, {}", gpt.context)
    });
}
