//! Decoding of evaluation sets with the weights that a recipe evaluates, and scoring by the
//! conventions of its claims.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use zoo_datasets::fetch::sha256_file;
use zoo_models::parameters::{self, ParameterValues};
use zoo_recipes::{ClaimSpec, Common, Recipe, RecipeOf};
use zoo_results::exit::Exit;
use zoo_results::metrics::{MetricValue, Resampling, ScoreOptions, Scorer, score};
use zoo_training::folder::{Ended, NotedFile};
use zoo_training::state::Ending;

use super::conventions::{Conventions, name_of};
use super::data::{Decoded, Material, TaskData, typed};
use super::folder::Run;
use super::package::Manifest;
use super::samples;
use crate::context::Context;
use crate::environment::Program;
use crate::error::{Failure, Result};
use crate::files::{read_json, write_json, write_whole};

/// Weights to evaluate, and where they came from.
#[derive(Debug, Clone)]
pub struct Weights {
    /// Parameter values.
    pub values: Vec<ParameterValues>,
    /// Files that the weights were read from.
    pub files: Vec<PathBuf>,
    /// Number of updates, if the weights belong to a point of a trajectory.
    pub update: Option<u64>,
}

/// One evaluation set decoded with one search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Name of the evaluation set.
    pub eval: String,
    /// Name of the search.
    pub decode: String,
    /// Settings of the search. Absent in evaluations by earlier versions, which used the search of
    /// the run's recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Json>,
    /// Settings of the evaluation set; absent if `search` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Json>,
    /// SHA-256 of the language model's file, if the search has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_model: Option<String>,
    /// SHA-256 of the search's word list, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// File with one line per example.
    pub hypotheses: PathBuf,
    /// SHA-256 of the hypotheses file.
    pub hypotheses_sha256: String,
    /// File of the references that the hypotheses were scored against.
    pub references: PathBuf,
    /// SHA-256 of the references file.
    pub references_sha256: String,
    /// The text that was given to the model, for reports. Absent in tasks without such text, and in
    /// evaluations by earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<NotedFile>,
    pub weights: Vec<PathBuf>,
    /// Number of updates, if the weights belong to a point of a trajectory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<u64>,
    /// One score for each convention that the claims name.
    pub scores: Vec<MetricValue>,
    /// Duration of decoding, in seconds.
    pub seconds: f64,
    /// Program that decoded the set; absent in evaluations by earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

impl Evaluation {
    /// Whether a claim concerns this evaluation set and search.
    pub fn is_of(&self, claim: &ClaimSpec) -> bool {
        claim.is_of(&self.eval, &self.decode)
    }

    /// The text that the model was given, if the evaluation kept it. It lies in the folder of the
    /// evaluation.
    ///
    /// # Errors
    /// The file cannot be read or was changed.
    pub fn sources(&self, folder: &Path) -> Result<Option<Vec<String>>> {
        let Some(NotedFile { file, sha256 }) = &self.sources else { return Ok(None) };
        let evaluation = folder.join(&self.hypotheses).with_extension("").with_extension("json");
        compared(folder, Path::new(file), sha256, &evaluation)?;
        lines(&folder.join(file)).map(Some)
    }
}

/// The weights that the recipe evaluates, and their files.
///
/// # Errors
/// The newest checkpoint is missing, damaged or of another run.
pub fn evaluated_weights(run: &Run, recipe: &Common) -> Result<Weights> {
    if let Some(package) = Manifest::of(&run.folder)? {
        return package.weights(&run.folder);
    }
    let trained = run.trained_file().is_file().then(|| run.trained()).transpose()?;
    // A run that was stopped for leaving the published course may have continued since.
    let trained = trained.filter(|trained| !matches!(trained.ending, Ending::OffCourse { .. }));
    let ended = trained
        .as_ref()
        .map(|trained| Ended { updates: trained.updates, last_state: trained.last_state.as_ref() });
    run.checkpoints().check_newest(&run.card.key, ended)?;
    let found = run.checkpoints().evaluated(&recipe.train.checkpoint.evaluate)?;
    Ok(Weights { values: found.weights, files: found.files, update: None })
}

/// Model without autodiff with the given weights.
pub fn load_model<D: Material>(
    recipe: &RecipeOf<D::Task>,
    material: &D,
    weights: Vec<ParameterValues>,
    device: &Device,
) -> Result<D::Model> {
    let model = material.model(recipe, 0, device);
    parameters::import(model, weights).map_err(|e| Failure::new(Exit::Damaged, e.to_string()))
}

/// Settings that an evaluation depends on, in addition to its weights.
#[derive(Serialize)]
struct Conditions {
    search: Json,
    set: Json,
    language_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
}

impl Conditions {
    /// Reads the settings from a recipe whose paths are relative to `base`.
    fn of(recipe: &Recipe, base: &Path, eval: &str, decode: &str) -> Result<Self> {
        let (mut searches, mut data) = (recipe.block("decode"), recipe.block("data"));
        let (search, set) = (searches[decode].take(), data["eval"][eval].take());
        let digest = |file: Option<&String>| -> Result<Option<String>> {
            let Some(path) = file.map(|file| base.join(file)) else { return Ok(None) };
            Ok(Some(sha256_file(&path).map_err(|e| Failure::io("read", &path, &e))?))
        };
        let known = recipe.search(decode);
        let model = known.and_then(|search| search.language_model());
        let words = known.and_then(|search| search.word_list());
        Ok(Self { search, set, language_model: digest(model)?, words: digest(words)? })
    }

    /// Whether `found` was made with these settings. Evaluations by earlier versions used the
    /// settings of the run's recipe.
    fn are_of(&self, found: &Evaluation, run: Option<&Recipe>) -> bool {
        let search = found.search.clone().or_else(|| Some(run?.block("decode")[&found.decode].take()));
        let set = found.set.clone().or_else(|| Some(run?.block("data")["eval"][&found.eval].take()));
        search.is_none_or(|search| search == self.search)
            && set.is_none_or(|set| set == self.set)
            && found.language_model == self.language_model
            && found.words == self.words
    }
}

/// File stem of an evaluation in a run's folder `eval`, and its settings. A search or set with
/// changed settings (`--set decode.…`) gets a stem of its own.
fn place(folder: &Path, recipe: &Recipe, eval: &str, decode: &str) -> Result<(String, Conditions)> {
    let run = Run::open(folder).ok();
    let base = run.as_ref().map_or(Path::new(""), |(run, _)| run.card.base.as_path());
    let conditions = Conditions::of(recipe, base, eval, decode)?;
    let plain = format!("{eval}.{decode}");
    let file = folder.join(format!("{plain}.json"));
    if !file.is_file() || conditions.are_of(&read_json(&file)?, run.as_ref().map(|(_, recipe)| recipe)) {
        return Ok((plain, conditions));
    }
    let text = serde_json::to_vec(&conditions).unwrap_or_default();
    Ok((format!("{plain}-{}", &hex::encode(Sha256::digest(text))[..8]), conditions))
}

/// File of an evaluation with a search of the recipe, in a run's folder `eval`.
///
/// # Errors
/// The existing file is not an evaluation.
pub fn evaluation_file(folder: &Path, recipe: &Recipe, eval: &str, decode: &str) -> Result<PathBuf> {
    // Evaluations are stored only for sets and searches of the recipe.
    if !recipe.data().has_eval_set(eval) || !recipe.has_search(decode) {
        return Ok(folder.join(format!("{eval}.{decode}.json")));
    }
    Ok(folder.join(format!("{}.json", place(folder, recipe, eval, decode)?.0)))
}

/// The evaluation stored in a folder, or `None`. Fails if the evaluation or its files were changed.
pub fn stored(folder: &Path, recipe: &Recipe, eval: &str, decode: &str) -> Result<Option<Evaluation>> {
    let file = evaluation_file(folder, recipe, eval, decode)?;
    if file.is_file() { read_evaluation(folder, &file).map(Some) } else { Ok(None) }
}

/// An evaluation that lies in a folder.
///
/// # Errors
/// The evaluation or its files cannot be read or were changed.
pub fn read_evaluation(folder: &Path, file: &Path) -> Result<Evaluation> {
    let found: Evaluation = read_json(file)?;
    for (path, expected) in
        [(&found.hypotheses, &found.hypotheses_sha256), (&found.references, &found.references_sha256)]
    {
        compared(folder, path, expected, file)?;
    }
    let (hypotheses, references) =
        (lines(&folder.join(&found.hypotheses))?, lines(&folder.join(&found.references))?);
    for known in &found.scores {
        let scorer = Scorer::from_signature(&known.signature.to_string())?;
        let again = score(
            &hypotheses,
            std::slice::from_ref(&references),
            &ScoreOptions { scorer, resampling: None },
        )?;
        if (again.value - known.value).abs() > 1e-9 {
            let message = format!(
                "{} says {} {:.2}, but its hypotheses score {:.2}",
                file.display(),
                known.metric,
                known.value,
                again.value
            );
            return Err(Failure::new(Exit::Damaged, message)
                .hint(format!("delete {} to decode again", file.display())));
        }
    }
    Ok(found)
}

/// Fails if a file of an evaluation is not as the evaluation says.
/// Deleting `again` makes it anew.
fn compared(folder: &Path, path: &Path, expected: &str, again: &Path) -> Result<()> {
    let path = folder.join(path);
    let bytes = std::fs::read(&path).map_err(|e| Failure::io("read", &path, &e))?;
    let digest = hex::encode(Sha256::digest(&bytes));
    if digest == expected {
        return Ok(());
    }
    let message = format!("{} was changed: its SHA-256 is {digest}, not {expected}", path.display());
    let hint = format!("delete {} to decode again", again.display());
    Err(Failure::new(Exit::Damaged, message).hint(hint))
}

/// Lines of a stored file.
pub fn lines(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, &e))?;
    Ok(text.lines().map(str::to_string).collect())
}

/// Decodes and scores the pairs of `wanted` that are not stored yet. Returns all evaluations of
/// `wanted`.
pub fn decode_all<T: TaskData>(
    ctx: &Context,
    recipe: &Recipe,
    task: &T,
    folder: &Path,
    weights: Weights,
    wanted: &[(String, String)],
    conventions: Conventions<'_>,
) -> Result<Vec<Evaluation>> {
    let mut found = Vec::new();
    let mut model = None;
    let typed = typed::<T::Task>(recipe)?;
    for (eval, decode) in wanted {
        if let Some(evaluation) = stored(folder, recipe, eval, decode)? {
            found.push(evaluation);
            continue;
        }
        if model.is_none() {
            model =
                Some(load_model(typed, &task.material(typed)?, weights.values.clone(), &ctx.open_device()?)?);
        }
        let model = model.as_ref().expect("just made");
        let start = std::time::Instant::now();
        ctx.progress.stage(&format!("decode {eval}, {decode}"));
        let decoded = task.decode(ctx, typed, (eval, decode), model)?;
        ctx.progress.end_stage();
        let seconds = start.elapsed().as_secs_f64();
        let signatures = (conventions.signatures)(eval, decode);
        let sources = (conventions.sources)(eval).filter(|lines| lines.len() == decoded.hypotheses.len());
        let outputs = Outputs { decoded, sources, seconds };
        found.push(store(recipe, folder, (eval, decode), &outputs, &weights, &signatures)?);
    }
    Ok(found)
}

/// The outputs of a model on an evaluation set.
struct Outputs {
    decoded: Decoded,
    /// The text that each was made from, if it is at hand.
    sources: Option<Vec<String>>,
    /// Duration of decoding.
    seconds: f64,
}

/// Scores outputs by the conventions `signatures`, and stores outputs and scores.
fn store(
    recipe: &Recipe,
    folder: &Path,
    (eval, decode): (&str, &str),
    Outputs { decoded, sources, seconds }: &Outputs,
    weights: &Weights,
    signatures: &[String],
) -> Result<Evaluation> {
    let Decoded { hypotheses: outputs, references, samples } = decoded;
    let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (hypotheses, reference_text) = (text(outputs), text(references));
    let mut scores = Vec::new();
    for signature in signatures {
        let scorer = Scorer::from_signature(signature)?.on(&name_of(recipe, eval))?;
        let options = ScoreOptions { scorer, resampling: Some(Resampling::default()) };
        scores.push(score(outputs, &[references.to_vec()], &options)?);
    }
    let (stem, conditions) = place(folder, recipe, eval, decode)?;
    // Searches on one evaluation set share a references file if they have the same settings.
    let own = stem.strip_prefix(&format!("{eval}.{decode}")).unwrap_or_default();
    let sources = sources.as_ref().map(|lines| {
        let (file, text) = (format!("{stem}.src.txt"), text(lines));
        (NotedFile { file, sha256: hex::encode(Sha256::digest(&text)) }, text)
    });
    let evaluation = Evaluation {
        eval: eval.into(),
        decode: decode.into(),
        search: Some(conditions.search),
        set: Some(conditions.set),
        language_model: conditions.language_model,
        words: conditions.words,
        hypotheses: format!("{stem}.hyp.txt").into(),
        hypotheses_sha256: hex::encode(Sha256::digest(&hypotheses)),
        references: format!("{eval}{own}.ref.txt").into(),
        references_sha256: hex::encode(Sha256::digest(&reference_text)),
        sources: sources.as_ref().map(|(noted, _)| noted.clone()),
        update: weights.update,
        weights: (weights.files.iter())
            .map(|file| file.file_name().map(PathBuf::from).unwrap_or_default())
            .collect(),
        scores,
        seconds: *seconds,
        program: Some(Program::current()),
    };
    samples::keep(samples, folder, &stem)?;
    if let Some((noted, text)) = &sources {
        write_whole(&folder.join(&noted.file), text.as_bytes())?;
    }
    write_whole(&folder.join(&evaluation.references), reference_text.as_bytes())?;
    write_whole(&folder.join(&evaluation.hypotheses), hypotheses.as_bytes())?;
    write_json(&folder.join(format!("{stem}.json")), &evaluation)?;
    Ok(evaluation)
}
