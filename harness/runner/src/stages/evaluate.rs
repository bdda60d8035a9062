//! Decoding of evaluation sets with the weights that a recipe evaluates, and scoring by the
//! conventions of its claims.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use zoo_datasets::fetch::sha256_file;
use zoo_models::parameters::{self, ParameterValues};
use zoo_recipes::{ClaimSpec, Common, DIRECT, Recipe, RecipeOf};
use zoo_results::exit::Exit;
use zoo_results::metrics::{MetricValue, Resampling, ScoreOptions, Scorer, score};
use zoo_results::verdict::trained_term;
use zoo_training::folder::Ended;
use zoo_training::state::Ending;

use super::data::{Decoded, Material, Sets, TaskData};
use super::run::Run;
use super::samples;
use super::sweep::{Swept, SweptWeights};
use crate::context::Context;
use crate::environment::Program;
use crate::error::{Failure, Result};
use crate::files::{read_json, write_json, write_whole};
use crate::{references, tasks};

/// Arguments of `zoo evaluate`.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// Folder of a run, or a checkpoint in it.
    pub run: PathBuf,
    /// Evaluation set; `None` selects those of the claims.
    pub eval: Option<String>,
    /// Search; `None` selects those of the claims.
    pub decode: Option<String>,
    /// Overrides `decode.NAME.KEY=VALUE` for the run's recipe.
    pub overrides: Vec<String>,
}

impl EvaluateRequest {
    /// Opens the run and applies the overrides to its recipe.
    fn open(&self) -> Result<(Run, Recipe)> {
        let (run, recipe) = Run::open(&self.run)?;
        let recipe = recipe.searching(&self.overrides)?;
        Ok((run, recipe))
    }

    /// The weights of the named checkpoint, else those that the recipe evaluates.
    fn weights(&self, run: &Run, recipe: &Recipe) -> Result<Weights> {
        match self.run.is_file() {
            true => {
                let values = run.checkpoints().read_named(&self.run, &run.card.key)?.into_evaluated();
                Ok(Weights { values, files: vec![self.run.clone()], update: None })
            }
            false => evaluated_weights(run, recipe),
        }
    }
}

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
}

/// Runs `zoo evaluate`.
pub fn evaluate(ctx: &Context, request: &EvaluateRequest) -> Result<Vec<Evaluation>> {
    let (run, recipe) = request.open()?;
    let ctx = &ctx.for_run(&run.card.compute)?;
    let wanted = wanted(&recipe, request.eval.as_deref(), request.decode.as_deref())?;
    let sets: Vec<&str> = wanted.iter().map(|(set, _)| set.as_str()).collect();
    let data = tasks::of(&recipe).prepare(ctx, &run.card.base, Sets::Evaluation(&sets))?;
    let weights = request.weights(&run, &recipe)?;
    let mut folder = run.folder.join("eval");
    if request.run.is_file() {
        folder.push(request.run.file_stem().unwrap_or_default());
    }
    data.evaluate(ctx, &recipe, &folder, weights, &wanted)
}

/// Runs `zoo evaluate --sweep`: decodes and scores one evaluation set with all pairs of language
/// model weights. Stores nothing.
pub fn sweep(ctx: &Context, request: &EvaluateRequest, weights: &SweptWeights) -> Result<Swept> {
    let (run, recipe) = request.open()?;
    let ctx = &ctx.for_run(&run.card.compute)?;
    let has_model = |name: &&str| recipe.search(name).is_some_and(|search| search.language_model().is_some());
    let first = || recipe.searches().into_iter().find(has_model).map(str::to_owned);
    let decode = request.decode.clone().or_else(first).ok_or_else(|| {
        Failure::usage("no search of the recipe has a language model").hint(
            "--decode NAME --set decode.NAME.language_model=model.arpa.gz, of a run whose searches take one",
        )
    })?;
    let eval = match &request.eval {
        Some(eval) => eval.clone(),
        None if recipe.data().has_eval_set("valid") => "valid".to_owned(),
        None => {
            let sets = recipe.data().eval_sets();
            return Err(Failure::usage("the recipe has no evaluation set `valid` to choose weights on")
                .hint(format!("--eval SET; it has {}", sets.join(", "))));
        }
    };
    // Reports an evaluation set or a search that does not exist.
    wanted(&recipe, Some(&eval), Some(&decode))?;
    if !has_model(&decode.as_str()) {
        let message = format!("the search `{decode}` has no language model: alpha and beta have no effect");
        return Err(Failure::usage(message).hint(format!(
            "--set decode.{decode}.language_model=model.arpa.gz, of a search that takes one"
        )));
    }
    let split_of = |name: &str| recipe.data().eval_set(name).map(|set| set.split.to_owned());
    let split = split_of(&eval);
    let mut claimed = recipe.claim.iter().filter_map(|claim| claim.eval.as_ref());
    if let Some(claimed) = claimed.find(|name| split_of(name) == split) {
        ctx.progress.note(&format!(
            "note: claims use {claimed} with these examples: its score with weights chosen on them is not evidence"
        ));
    }
    let task = tasks::of(&recipe);
    let data = task.prepare(ctx, &run.card.base, Sets::Evaluation(&[&eval]))?;
    let convention = task.signatures(&eval, &decode).swap_remove(0);
    let scorer = Scorer::from_signature(&convention)?.on(&references::name_of(&recipe, &eval))?;
    let values = request.weights(&run, &recipe)?.values;
    data.sweep(ctx, &recipe, (&eval, &decode), values, weights, scorer)
}

/// The pairs of evaluation set and search to decode: those that the claims judge, with `eval` and
/// `decode` in place of the claims' if given. Without such claims, every set with `decode`, else
/// with the recipe's first search.
///
/// # Errors
/// The recipe lacks the set or search, the search needs a language model, or a set mixes languages.
pub fn wanted(recipe: &Recipe, eval: Option<&str>, decode: Option<&str>) -> Result<Vec<(String, String)>> {
    let data = recipe.data();
    let unknown = |kind: &str, name: &str, known: Vec<&str>| {
        Failure::usage(format!("the recipe has no {kind} `{name}`"))
            .hint(format!("it has {}", known.join(", ")))
    };
    if let Some(name) = eval.filter(|name| !data.has_eval_set(name)) {
        return Err(unknown("evaluation set", name, data.eval_sets()));
    }
    if let Some(name) = decode.filter(|name| !recipe.has_search(name)) {
        return Err(unknown("search", name, recipe.searches()));
    }
    let lacks = |name: &str| recipe.search(name).is_some_and(|search| search.lacks_language_model());
    if let Some(name) = decode.filter(|name| lacks(name)) {
        return Err(Failure::usage(format!("the search `{name}` needs a language model, and none is given"))
            .hint(format!("--set decode.{name}.language_model=model.arpa.gz")));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    // A claim that names no search is on the outputs of a task without searches.
    let of_claims = recipe
        .claim
        .iter()
        .filter_map(|claim| Some((claim.eval.clone()?, claim.decode.as_deref().unwrap_or(DIRECT))));
    let of_claims = of_claims.filter(|(_, search)| recipe.has_search(search));
    let of_claims = of_claims.filter(|(_, search)| decode.is_some() || !lacks(search));
    for (claim_eval, claim_decode) in of_claims {
        let pair = (eval.map_or(claim_eval, str::to_string), decode.unwrap_or(claim_decode).to_owned());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let first_search = || recipe.searches().into_iter().find(|name| !lacks(name));
    if pairs.is_empty()
        && let Some(decode) = decode.or_else(first_search)
    {
        // The set `valid` is for choosing weights. It is scored only if there is no other set.
        let several = |name: &str| data.eval_set(name).is_some_and(|set| set.languages.len() > 1);
        let others = data.eval_sets().into_iter().any(|name| name != "valid");
        let scored = |name: &str| match name {
            "valid" => !others && !several(name),
            _ => true,
        };
        let chosen = |name: &str| eval.map_or_else(|| scored(name), |eval| eval == name);
        let sets = data.eval_sets().into_iter().filter(|name| chosen(name));
        pairs.extend(sets.map(|name| (name.to_owned(), decode.to_string())));
    }
    for (name, _) in &pairs {
        if data.eval_set(name).is_some_and(|set| set.languages.len() > 1) {
            let languages = data.languages().join(", ");
            return Err(Failure::usage(format!(
                "the evaluation set `{name}` mixes the languages {languages}"
            ))
            .hint("choose a set with a `target`: scoring needs one language"));
        }
    }
    Ok(pairs)
}

/// The weights that the recipe evaluates, and their files.
///
/// # Errors
/// The newest checkpoint is missing, damaged or of another run.
pub fn evaluated_weights(run: &Run, recipe: &Common) -> Result<Weights> {
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
        let path = folder.join(path);
        let bytes = std::fs::read(&path).map_err(|e| Failure::io("read", &path, &e))?;
        let digest = hex::encode(Sha256::digest(&bytes));
        if digest != *expected {
            let message = format!("{} was changed: its SHA-256 is {digest}, not {expected}", path.display());
            return Err(Failure::new(Exit::Damaged, message)
                .hint(format!("delete {} to decode again", file.display())));
        }
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
) -> Result<Vec<Evaluation>> {
    let mut found = Vec::new();
    let mut model = None;
    let typed = tasks::typed::<T::Task>(recipe)?;
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
        found.push(store(recipe, folder, (eval, decode), &decoded, &weights, seconds)?);
    }
    Ok(found)
}

/// Scores outputs by every convention that a claim on this set and search names, and stores outputs
/// and scores.
fn store(
    recipe: &Recipe,
    folder: &Path,
    (eval, decode): (&str, &str),
    Decoded { hypotheses: outputs, references, samples }: &Decoded,
    weights: &Weights,
    seconds: f64,
) -> Result<Evaluation> {
    let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (hypotheses, reference_text) = (text(outputs), text(references));
    let mut scores = Vec::new();
    for signature in tasks::of(recipe).signatures(eval, decode) {
        let scorer = Scorer::from_signature(&signature)?.on(&references::name_of(recipe, eval))?;
        let options = ScoreOptions { scorer, resampling: Some(Resampling::default()) };
        scores.push(score(outputs, &[references.to_vec()], &options)?);
    }
    let (stem, conditions) = place(folder, recipe, eval, decode)?;
    // Searches on one evaluation set share a references file if they have the same settings.
    let own = stem.strip_prefix(&format!("{eval}.{decode}")).unwrap_or_default();
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
        update: weights.update,
        weights: (weights.files.iter())
            .map(|file| file.file_name().map(PathBuf::from).unwrap_or_default())
            .collect(),
        scores,
        seconds,
        program: Some(Program::current()),
    };
    samples::keep(samples, folder, &stem)?;
    write_whole(&folder.join(&evaluation.references), reference_text.as_bytes())?;
    write_whole(&folder.join(&evaluation.hypotheses), hypotheses.as_bytes())?;
    write_json(&folder.join(format!("{stem}.json")), &evaluation)?;
    Ok(evaluation)
}

/// Metric conventions to score an evaluation set with: those of its claims, else of any claim, else
/// `usual`.
pub fn claimed_signatures(recipe: &Common, eval: &str, usual: impl FnOnce() -> String) -> Vec<String> {
    let of = |on_this_set: bool| {
        let mut found: Vec<String> = Vec::new();
        let of_outputs = |claim: &&ClaimSpec| trained_term(claim).is_none();
        let here = |claim: &&ClaimSpec| !on_this_set || claim.eval.as_deref() == Some(eval);
        for claim in recipe.claim.iter().filter(of_outputs).filter(here) {
            if let Some(signature) = claim.signature.clone().filter(|s| !found.contains(s)) {
                found.push(signature);
            }
        }
        found
    };
    let found = [of(true), of(false)].into_iter().find(|found| !found.is_empty());
    found.unwrap_or_else(|| vec![usual()])
}
