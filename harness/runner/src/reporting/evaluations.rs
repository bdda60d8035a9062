//! Evaluations in a run's folder `eval`, prepared for a report.

use std::fs;
use std::path::{Component, Path, PathBuf};

use zoo_results::report::page::{EvaluationPart, Medium, Sample, SampleLine};
use zoo_training::checkpoint::read_state;

use super::Opened;
use crate::context::Context;
use crate::files::read_json;
use crate::run::evaluate::{Evaluation, read_evaluation};
use crate::run::folder::{Run, evaluation_files};
use crate::{lines, tasks};

/// Maximum bytes of pictures and audio that a report includes per evaluation.
const MOST_MEDIA: u64 = 64 << 20;

/// The intact evaluations in a folder. Damaged ones are added to `missing`.
pub fn evaluations(folder: &Path, missing: &mut Vec<String>) -> Vec<Evaluation> {
    let mut found = Vec::new();
    for file in evaluation_files(folder) {
        match read_evaluation(folder, &file) {
            Ok(evaluation) => found.push(evaluation),
            Err(failure) => missing.push(format!("An evaluation is left out. {}", failure.parts().0)),
        }
    }
    found
}

/// The evaluations of a run, and the scores of those of its checkpoints.
pub fn parts(context: &Context, at: usize, one: &Opened, missing: &mut Vec<String>) -> Vec<EvaluationPart> {
    let folder = one.run.folder.join("eval");
    let mut found = Vec::new();
    for evaluation in &one.evaluations {
        let text = |path: &Path, missing: &mut Vec<String>| {
            lines::read(&folder.join(path)).unwrap_or_else(|failure| {
                missing.push(failure.parts().0.to_owned());
                Vec::new()
            })
        };
        let (hypotheses, references) =
            (text(&evaluation.hypotheses, missing), text(&evaluation.references, missing));
        let sources = match evaluation.sources(&folder) {
            Ok(Some(kept)) => Some(kept),
            Ok(None) => sources(context, one, &evaluation.eval, hypotheses.len(), missing),
            Err(failure) => {
                missing.push(format!(
                    "The source of {} is left out. {}.",
                    evaluation.eval,
                    failure.parts().0
                ));
                None
            }
        };
        found.push(EvaluationPart {
            run: at,
            eval: evaluation.eval.clone(),
            decode: evaluation.decode.clone(),
            update: None,
            scores: evaluation.scores.clone(),
            seconds: evaluation.seconds,
            sources,
            samples: samples(&folder, evaluation, missing),
            hypotheses,
            references,
        });
    }
    let of_checkpoints = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut of_checkpoints: Vec<PathBuf> = of_checkpoints.filter(|path| path.is_dir()).collect();
    of_checkpoints.sort();
    for folder in of_checkpoints {
        let of_checkpoint = update_of(&one.run, &folder);
        let of_points = evaluations(&folder, missing).into_iter();
        let of_points = of_points.filter_map(|found| Some((found.update.or(of_checkpoint)?, found)));
        found.extend(of_points.map(|(update, evaluation)| EvaluationPart {
            run: at,
            eval: evaluation.eval,
            decode: evaluation.decode,
            update: Some(update),
            scores: evaluation.scores,
            seconds: evaluation.seconds,
            ..EvaluationPart::default()
        }));
    }
    found
}

/// Updates of the checkpoint that a folder of evaluations is named after. Names of weights contain
/// the update, names of states the batch.
fn update_of(run: &Run, folder: &Path) -> Option<u64> {
    let stem = folder.file_name()?.to_str()?;
    match stem.strip_prefix("weights-") {
        Some(update) => update.parse().ok(),
        None => {
            let file = run.checkpoints().path().join(format!("{stem}.safetensors"));
            Some(read_state(&file).ok().flatten()?.counters.update)
        }
    }
}

/// The source text of an evaluation that kept none, if it is in the home.
fn sources(
    context: &Context,
    one: &Opened,
    eval: &str,
    lines: usize,
    missing: &mut Vec<String>,
) -> Option<Vec<String>> {
    if !one.recipe.data().has_eval_set(eval) {
        return None;
    }
    let why = match tasks::of(&one.recipe).sources_at_hand(context, &one.run.card.base, eval) {
        Ok(None) => return None,
        Ok(Some(found)) if found.len() == lines => return Some(found),
        Ok(Some(found)) => format!("The source of {eval} has {} lines, its hypotheses {lines}.", found.len()),
        Err(failure) => format!("The source of {eval} is not at hand: {}.", failure.parts().0),
    };
    if !missing.contains(&why) {
        missing.push(why);
    }
    None
}

/// Samples that `SET.SEARCH.samples.json` lists. Their files are in the same folder.
fn samples(folder: &Path, evaluation: &Evaluation, missing: &mut Vec<String>) -> Vec<Sample> {
    let stem = evaluation.hypotheses.to_string_lossy().into_owned();
    let stem = stem.strip_suffix(".hyp.txt").unwrap_or(&stem);
    let list = folder.join(format!("{stem}.samples.json"));
    if !list.is_file() {
        return Vec::new();
    }
    let lines: Vec<SampleLine> = match read_json(&list) {
        Ok(lines) => lines,
        Err(failure) => {
            missing.push(format!("Samples are left out. {}", failure.parts().0));
            return Vec::new();
        }
    };
    let mut left = MOST_MEDIA;
    let mut read = |name: &str| -> std::result::Result<Medium, String> {
        let mut parts = Path::new(name).components();
        let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else {
            return Err("it does not lie beside its list".to_owned());
        };
        let path = folder.join(name);
        let bytes = fs::metadata(&path).map_err(|error| error.to_string())?.len();
        left = left
            .checked_sub(bytes)
            .ok_or_else(|| format!("a page takes {} MiB of pictures and sounds", MOST_MEDIA >> 20))?;
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        Medium::new(name, bytes).ok_or_else(|| "it is not an SVG, PNG or WAV file".to_owned())
    };
    let mut found = Vec::new();
    for SampleLine { title, text, scores, files } in lines {
        let mut media = Vec::new();
        for file in &files {
            let name = file.name();
            match read(name) {
                Ok(medium) => media.push(medium.captioned(file.caption())),
                Err(why) => {
                    missing.push(format!("{name}, a sample of {}, is left out: {why}.", evaluation.eval))
                }
            }
        }
        found.push(Sample { title, text, scores, media });
    }
    found
}
