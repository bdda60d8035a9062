//! What a schema cannot say of an image classification recipe.

use super::{
    ClassifierLayerSpec, ImageClassification, PictureAugmentationSpec, PictureDataSpec, PictureReaderSpec,
    PictureRemainder, PictureSizeSpec, ShapeProblem,
};
use crate::spec::{Asked, DataBlock, EvalSet, RecipeOf};
use crate::tasks::Checked;
use crate::validate::Findings;

impl DataBlock for PictureDataSpec {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn is_generated(&self) -> bool {
        matches!(self.reader, PictureReaderSpec::Stripes { .. })
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        match (self.reader.clone(), self.eval.get(eval)) {
            (_, None) => Vec::new(),
            (PictureReaderSpec::Stripes { train, test, .. }, Some(set)) => {
                let pictures = if set.split == self.training() { train } else { test };
                let PictureSizeSpec { height, width, channels } = self.picture;
                let numbers = [pictures, height, width, channels].into_iter().map(u64::from);
                vec![Asked::Pixels(numbers.fold(1, u64::saturating_mul))]
            }
            _ if self.corpus.is_none() => vec![Asked::OwnFiles("pictures")],
            _ => Vec::new(),
        }
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.share.map(|share| share.train as usize)
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        Some(EvalSet { split: &set.split, lines: set.lines, languages: Vec::new(), target: None })
    }
}

impl Checked for ImageClassification {
    fn check(recipe: &RecipeOf<Self>, findings: &mut Findings<'_, '_>) {
        data(&recipe.data, findings);
        let continues = recipe.data.batching.remainder == PictureRemainder::Continue;
        findings.require(!continues || recipe.train.max_updates.is_some(), "data.batching.remainder", || {
            "batches that go on into the next epoch have no last one: `train.max_updates` must end the run"
                .to_owned()
        });
        for (at, layer) in recipe.model.layer.iter().enumerate() {
            self::layer(layer, &format!("model.layer.{at}"), findings);
        }
        let picture = recipe.data.picture;
        match recipe.model.shapes([picture.height, picture.width, picture.channels]) {
            Err(ShapeProblem { layer, message }) => {
                findings.report(&format!("model.layer.{layer}"), message);
            }
            Ok(shapes) => {
                let outputs = shapes.last().map_or(0, |shape| shape.numbers());
                let classes = u64::from(recipe.data.classes);
                findings.require(outputs == classes, "model.layer", || {
                    format!("the last layer has {outputs} units, and `data.classes` is {classes}")
                });
            }
        }
    }
}

fn data(data: &PictureDataSpec, findings: &mut Findings<'_, '_>) {
    if let Some(corpus) = &data.corpus {
        findings.said(corpus, "data.corpus");
    }
    if let Some(share) = data.share {
        findings.positive(u64::from(share.train), "data.share.train");
        findings.positive(u64::from(share.eval), "data.share.eval");
    }
    let splits: Option<Vec<&str>> = match &data.reader {
        PictureReaderSpec::Idx { files } if files.is_empty() => None,
        PictureReaderSpec::Idx { files } => Some(files.keys().map(String::as_str).collect()),
        PictureReaderSpec::ImageFolder { folders } => Some(folders.keys().map(String::as_str).collect()),
        PictureReaderSpec::Stripes { train, test, seed: _ } => {
            findings.positive(u64::from(*train), "data.reader.train");
            findings.positive(u64::from(*test), "data.reader.test");
            findings.require(data.share.is_none(), "data.share", || {
                "the reader generates its data: `train` and `test` say how many".to_owned()
            });
            Some(vec!["train", "test"])
        }
    };
    match (&data.corpus, &splits) {
        (Some(_), Some(_)) => findings.report_with(
            "data.reader",
            "both `data.corpus` and `data.reader` say where the pictures are",
            "keep one of them",
        ),
        (None, None) => findings.report_with(
            "data.reader",
            "neither `data.corpus` nor `data.reader.files` says where the pictures are",
            "[data.reader.files.train] with images and labels, or the name of a public corpus",
        ),
        (None, Some(splits)) => {
            findings.require(splits.contains(&data.training()), "data.reader", || {
                format!("the reader has no split `{}` to train on", data.training())
            });
            for (name, set) in &data.eval {
                let known = splits.iter().copied();
                findings.exists(&set.split, known, &format!("data.eval.{name}.split"), "split");
            }
        }
        (Some(_), None) => {}
    }
    for (value, key) in [
        (data.picture.height, "picture.height"),
        (data.picture.width, "picture.width"),
        (data.batching.pictures, "batching.pictures"),
    ] {
        findings.positive(u64::from(value), &format!("data.{key}"));
    }
    findings.require(matches!(data.picture.channels, 1 | 3), "data.picture.channels", || {
        format!("pictures have 1 channel (grey) or 3 (colours), not {}", data.picture.channels)
    });
    findings.require(data.classes >= 2, "data.classes", || {
        format!("`data.classes` is {}; there must be 2 at least to choose from", data.classes)
    });
    for (values, key) in [(&data.pixels.mean, "mean"), (&data.pixels.deviation, "deviation")] {
        let channels = data.picture.channels as usize;
        findings.require(
            values.is_empty() || values.len() == channels,
            &format!("data.pixels.{key}"),
            || format!("`{key}` has {} values; a picture has {channels} channels", values.len()),
        );
    }
    for (at, deviation) in data.pixels.deviation.iter().enumerate() {
        findings.above_zero(*deviation, &format!("data.pixels.deviation.{at}"));
    }
    if let Some(PictureAugmentationSpec { padding: _, flip }) = data.augmentation {
        findings.require((0.0..=1.0).contains(&flip), "data.augmentation.flip", || {
            format!("`flip` is {flip}; it is a probability, 0 to 1")
        });
    }
    for (name, set) in &data.eval {
        findings.named(name, &format!("data.eval.{name}"));
        findings.positive(u64::from(set.lines), &format!("data.eval.{name}.lines"));
    }
}

fn layer(layer: &ClassifierLayerSpec, path: &str, findings: &mut Findings<'_, '_>) {
    match *layer {
        ClassifierLayerSpec::Convolution { channels, kernel, stride, .. } => {
            for (value, key) in [(channels, "channels"), (kernel, "kernel"), (stride, "stride")] {
                findings.positive(u64::from(value), &format!("{path}.{key}"));
            }
        }
        ClassifierLayerSpec::Pool { size, stride, .. } => {
            for (value, key) in [(size, "size"), (stride, "stride")] {
                findings.positive(u64::from(value), &format!("{path}.{key}"));
            }
        }
        ClassifierLayerSpec::Dense { units, .. } => {
            findings.positive(u64::from(units), &format!("{path}.units"));
        }
        ClassifierLayerSpec::Dropout { rate } => findings.share(rate, &format!("{path}.rate")),
        ClassifierLayerSpec::Flatten { .. }
        | ClassifierLayerSpec::Relu {}
        | ClassifierLayerSpec::Sigmoid {} => {}
    }
}
