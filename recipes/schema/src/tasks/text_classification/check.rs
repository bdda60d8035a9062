//! What a schema cannot say of a text classification recipe.

use super::{
    LabelledDataSpec, LabelledLengthSpec, LabelledReaderSpec, LabelledTokenizerSpec, TextClassification,
    TextLayerSpec, TextShapeProblem, TextWeightInit,
};
use crate::spec::{DataBlock, RecipeOf};
use crate::tasks::Checked;
use crate::validate::{Findings, eval_sets, generated};

/// Smallest number of rows of an embedding of Keras's numbers: padding, start, unknown, one that is
/// not used, and a word.
const LEAST_ROWS: u32 = 5;

/// Largest number of parts of a cross-validation. Each has a model in memory.
const MOST_FOLDS: u32 = 20;

impl LabelledDataSpec {
    fn own_splits(&self) -> Option<Vec<&str>> {
        match &self.reader {
            LabelledReaderSpec::LabelledLines { files: paths }
            | LabelledReaderSpec::TextFolder { folders: paths } => {
                Some(paths.keys().map(String::as_str).collect())
            }
            LabelledReaderSpec::Corpus {} | LabelledReaderSpec::MarkedWords { .. } => None,
        }
    }
}

impl Checked for TextClassification {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data(&recipe.data, findings);
        if let LabelledTokenizerSpec::LanguageModel { .. } = recipe.data.tokenizer
            && recipe.train.transfer.is_none()
        {
            findings.report_with(
                "data.tokenizer",
                "the words are those of the run that `train.transfer` names, and it names none",
                "[train.transfer] with `recipe`, `arm` and `parameters = []`, which takes words alone",
            );
        }
        for (at, layer) in recipe.model.layer.iter().enumerate() {
            self::layer(layer, &format!("model.layer.{at}"), findings);
        }
        let classes = recipe.data.classes;
        let outputs = recipe.loss.outputs(classes);
        findings.require(outputs > 1 || classes == 2, "loss.kind", || {
            format!("`binary-cross-entropy` is of 2 classes, and `data.classes` is {classes}")
        });
        match recipe.model.shapes(recipe.data.positions()) {
            Err(TextShapeProblem { layer, message }) => {
                findings.report(&format!("model.layer.{layer}"), message);
            }
            Ok(shapes) => {
                let found = shapes.last().map_or(0, |shape| shape.width());
                findings.require(found == outputs, "model.layer", || {
                    format!(
                        "the last layer has {found} units, and the loss needs {outputs} for {classes} classes"
                    )
                });
            }
        }
    }
}

fn data(data: &LabelledDataSpec, findings: &mut Findings<'_, '_>) {
    source(data, findings);
    findings.require(data.classes >= 2, "data.classes", || {
        format!("`data.classes` is {}; there must be 2 at least to choose from", data.classes)
    });
    match &data.tokenizer {
        LabelledTokenizerSpec::Keras { words, .. } => {
            findings.require(*words >= LEAST_ROWS, "data.tokenizer.words", || {
                format!(
                    "`words` is {words}; the numbers 0 to 3 are padding, start, rare words and an unused one, so at least {LEAST_ROWS} are needed"
                )
            });
        }
        LabelledTokenizerSpec::LanguageModel { rules: _, unknown, words } => {
            findings.said(unknown, "data.tokenizer.unknown");
            findings.positive(u64::from(*words), "data.tokenizer.words");
        }
        LabelledTokenizerSpec::Kim {} => {}
    }
    match data.length {
        LabelledLengthSpec::Last { positions } => {
            findings.positive(u64::from(positions), "data.length.positions");
        }
        LabelledLengthSpec::Longest { margin: _ } => {}
    }
    findings.positive(u64::from(data.batching.texts), "data.batching.texts");
    if let Some(held_out) = &data.held_out {
        findings.named(&held_out.split, "data.held_out.split");
        findings.positive(u64::from(held_out.texts), "data.held_out.texts");
        findings.require(held_out.split != data.training(), "data.held_out.split", || {
            format!("`{}` is the split that is trained on", held_out.split)
        });
        of_reader(data, &held_out.split, "data.held_out.split", findings);
        findings.require(!data.is_generated(), "data.held_out", || {
            "the reader generates its data: `data.reader.valid` makes a split of its own".to_owned()
        });
    }
    if let Some(folds) = &data.folds {
        findings.require((2..=MOST_FOLDS).contains(&folds.count), "data.folds.count", || {
            format!("`data.folds.count` is {}; there must be 2 to {MOST_FOLDS} parts", folds.count)
        });
        for (split, key) in [(&folds.tested, "tested"), (&folds.held_out, "held_out")] {
            findings.named(split, &format!("data.folds.{key}"));
            findings.require(split != data.training(), &format!("data.folds.{key}"), || {
                format!("`{split}` is the split that is trained on")
            });
            of_reader(data, split, &format!("data.folds.{key}"), findings);
        }
        findings.share(folds.trained, "data.folds.trained");
        findings.require(folds.tested != folds.held_out, "data.folds.tested", || {
            format!("`{}` is the split of the held-out texts, too", folds.tested)
        });
        findings.require(data.held_out.is_none(), "data.folds", || {
            "`data.held_out` and `data.folds` both say which texts are not trained on".to_owned()
        });
        findings.require(!data.is_generated(), "data.folds", || {
            "the reader generates its data: it has test texts of its own".to_owned()
        });
        for (name, set) in &data.eval {
            let known = [folds.tested.as_str(), folds.held_out.as_str()].into_iter();
            findings.exists(&set.split, known, &format!("data.eval.{name}.split"), "split");
        }
    }
    eval_sets(data, data.corpus.is_none() && !data.is_generated(), findings);
}

/// Checks that a split that is made of training texts does not replace one of the reader's.
fn of_reader(data: &LabelledDataSpec, split: &str, path: &str, findings: &mut Findings<'_, '_>) {
    let own = data.own_splits().unwrap_or_default();
    findings.require(split == data.training() || !own.contains(&split), path, || {
        format!("`{split}` is a split of the reader, too")
    });
}

/// Checks that exactly one source of texts is named, and that it has the splits.
fn source(data: &LabelledDataSpec, findings: &mut Findings<'_, '_>) {
    if let Some(corpus) = &data.corpus {
        findings.said(corpus, "data.corpus");
    }
    if let Some(share) = data.share {
        share.check(data.is_generated(), findings);
    }
    let of_corpus = matches!(data.reader, LabelledReaderSpec::Corpus {});
    match (&data.corpus, of_corpus) {
        (None, true) => findings.report_with(
            "data.reader",
            "the reader `corpus` reads `data.corpus`, which is not named",
            "data.corpus = \"imdb\", or reader = { kind = \"labelled-lines\", files = { train = \"train.txt\" } }",
        ),
        (Some(_), false) if !data.is_generated() => findings.report_with(
            "data.reader",
            "both `data.corpus` and `data.reader` say where the texts are",
            "keep one of them: the reader of a corpus is { kind = \"corpus\" }",
        ),
        _ => {}
    }
    if let Some(made) = data.made() {
        findings.positive(u64::from(made.train), "data.reader.train");
        findings.positive(u64::from(made.test), "data.reader.test");
        generated(data, &made, findings);
    }
    if let Some(splits) = data.own_splits() {
        findings.require(splits.contains(&data.training()), "data.reader", || {
            format!("the reader has no split `{}` to train on", data.training())
        });
        for (name, set) in &data.eval {
            let held_out = data.held_out.iter().map(|held_out| held_out.split.as_str());
            let folds = data.folds.iter().flat_map(|folds| [folds.tested.as_str(), folds.held_out.as_str()]);
            let known = splits.iter().copied().chain(held_out).chain(folds);
            findings.exists(&set.split, known, &format!("data.eval.{name}.split"), "split");
        }
    }
}

fn layer(layer: &TextLayerSpec, path: &str, findings: &mut Findings<'_, '_>) {
    let start = |weights: TextWeightInit, findings: &mut Findings<'_, '_>| match weights {
        TextWeightInit::XavierUniform {} => {}
        TextWeightInit::Uniform { bound } => findings.not_negative(bound, &format!("{path}.weights.bound")),
        TextWeightInit::Normal { deviation } => {
            findings.not_negative(deviation, &format!("{path}.weights.deviation"));
        }
    };
    match *layer {
        TextLayerSpec::Embedding { width, weights, zero_padding: _, element_dropout } => {
            findings.positive(u64::from(width), &format!("{path}.width"));
            findings.share(element_dropout, &format!("{path}.element_dropout"));
            start(weights, findings);
        }
        TextLayerSpec::Convolution { channels, kernel, weights } => {
            findings.positive(u64::from(channels), &format!("{path}.channels"));
            findings.positive(u64::from(kernel), &format!("{path}.kernel"));
            start(weights, findings);
        }
        TextLayerSpec::Kernels { channels, ref kernels, weights } => {
            findings.positive(u64::from(channels), &format!("{path}.channels"));
            findings.require(!kernels.is_empty(), &format!("{path}.kernels"), || {
                "`kernels` is empty; each number is the length of a kernel".to_owned()
            });
            start(weights, findings);
        }
        TextLayerSpec::Pool { size, of: _ } => findings.positive(u64::from(size), &format!("{path}.size")),
        TextLayerSpec::Lstm { units, gates: _, bidirectional: _ } => {
            findings.positive(u64::from(units), &format!("{path}.units"));
        }
        TextLayerSpec::LayerNormLstm {
            units,
            width,
            layers,
            candidate_dropout,
            dropout,
            forget_bias: _,
            epsilon,
            state: _,
        } => {
            for (number, key) in [(units, "units"), (width, "width"), (layers, "layers")] {
                findings.positive(u64::from(number), &format!("{path}.{key}"));
            }
            findings.share(candidate_dropout, &format!("{path}.candidate_dropout"));
            findings.share(dropout, &format!("{path}.dropout"));
            findings.above_zero(epsilon, &format!("{path}.epsilon"));
        }
        TextLayerSpec::Dense { units, weights, row_norm } => {
            findings.positive(u64::from(units), &format!("{path}.units"));
            if let Some(norm) = row_norm {
                findings.above_zero(norm, &format!("{path}.row_norm"));
            }
            start(weights, findings);
        }
        TextLayerSpec::Dropout { rate } => findings.share(rate, &format!("{path}.rate")),
        TextLayerSpec::OverPositions { of: _ } | TextLayerSpec::Relu {} => {}
    }
}
