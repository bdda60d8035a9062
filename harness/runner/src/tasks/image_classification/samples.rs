//! What the report shows of a classifier's answers: the confusion matrix, and the most confident
//! errors as pictures.

use zoo_datasets::image::encode_png;
use zoo_datasets::tasks::image_classification::PictureSplit;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};
use crate::run::data::{Kept, KeptSample};
use crate::tasks::classes::{Answer, confusion, wrong};

/// Number of errors that are kept as pictures.
const ERRORS: usize = 12;

/// How many times larger than its pixels a picture is shown.
const ENLARGED: usize = 4;

/// The confusion matrix of all answers, and the wrong answers of the highest confidence with their
/// pictures.
///
/// # Errors
/// A picture cannot be encoded.
pub fn samples(answers: &[Answer], split: &PictureSplit, classes: &[String]) -> Result<Vec<KeptSample>> {
    let mut kept: Vec<KeptSample> = confusion(answers, classes, "pictures")?.into_iter().collect();
    for at in wrong(answers, ERRORS) {
        kept.push(error(&answers[at], at, split, classes)?);
    }
    Ok(kept)
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Data, error.to_string())
}

fn error(answer: &Answer, at: usize, split: &PictureSplit, classes: &[String]) -> Result<KeptSample> {
    let name = |class: usize| classes.get(class).cloned().unwrap_or_else(|| class.to_string());
    let picture = split.picture(at).enlarged(ENLARGED);
    let png = encode_png(&picture).map_err(|error| failed(&error))?;
    let mut scores = serde_json::Map::new();
    scores.insert("class".to_owned(), name(answer.label).into());
    scores.insert("answer".to_owned(), name(answer.class).into());
    scores.insert("confidence".to_owned(), answer.confidence.into());
    Ok(KeptSample {
        title: format!("Picture {}", split.names.get(at).cloned().unwrap_or_else(|| (at + 1).to_string())),
        text: String::new(),
        scores,
        files: vec![(
            "png".to_owned(),
            format!("{} taken for {}", name(answer.label), name(answer.class)),
            Kept::Bytes(png),
        )],
    })
}
