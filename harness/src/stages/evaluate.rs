//! Decodes evaluation sets with the weights that a recipe evaluates, and scores them by the conventions of its claims.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_datasets::batches::{EvalLimit, PairSource, eval_batches, restore_order};
use zoo_datasets::prepare::{PreparedSplit, PreparedTranslation};
use zoo_datasets::text::moses;
use zoo_models::Pass;
use zoo_models::models::{Packed, Seq2Seq, Writer};
use zoo_models::parameters::{self, ParameterValues};
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_recipes::{DecodeSpec, Detokenizer, Recipe};
use zoo_results::exit::Exit;
use zoo_results::metrics::{MetricValue, Resampling, ScoreOptions, Scorer, score};
use zoo_training::checkpoint::Checkpoint;

use super::prepare::{prepare, vocabularies};
use super::run::{Run, read_json, write_json};
use crate::context::Context;
use crate::environment::hex;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::records::write_whole;
use crate::references;

/// Sentences that are decoded together. What is written does not depend on it.
const SENTENCES: u32 = 64;

/// The convention of a recipe without claims: sacreBLEU's default.
const USUAL: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

/// What `zoo evaluate` was asked for.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// Folder of a run, or a checkpoint in it.
    pub run: PathBuf,
    /// Evaluation set; absent: those of the claims.
    pub eval: Option<String>,
    /// Search; absent: those of the claims.
    pub decode: Option<String>,
}

/// One evaluation set decoded with one search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Evaluation set.
    pub eval: String,
    /// Search.
    pub decode: String,
    /// One line a sentence.
    pub hypotheses: PathBuf,
    /// SHA-256 of that file.
    pub hypotheses_sha256: String,
    /// What they were scored against.
    pub references: PathBuf,
    /// SHA-256 of that file.
    pub references_sha256: String,
    /// Files of the weights.
    pub weights: Vec<PathBuf>,
    /// A score for each convention that the claims name.
    pub scores: Vec<MetricValue>,
    /// Seconds of decoding.
    pub seconds: f64,
}

/// `zoo evaluate`.
pub fn evaluate(ctx: &Context, request: &EvaluateRequest) -> Result<Vec<Evaluation>> {
    let (run, recipe) = Run::open(&request.run)?;
    let ctx = &ctx.for_run(&run.card.compute)?;
    let wanted = wanted(&recipe, request.eval.as_deref(), request.decode.as_deref())?;
    let prepared = prepare(ctx, &recipe, &run.card.base)?;
    if request.run.is_file() {
        let weights = Checkpoint::read(&request.run)?.weights;
        let stem = request.run.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = run.folder.join("eval").join(stem);
        return decode_all(ctx, &recipe, &prepared, &folder, (weights, vec![request.run.clone()]), &wanted);
    }
    let weights = evaluated_weights(&run, &recipe)?;
    decode_all(ctx, &recipe, &prepared, &run.folder.join("eval"), weights, &wanted)
}

/// The pairs of evaluation set and search that the claims judge, and those asked for.
pub fn wanted(recipe: &Recipe, eval: Option<&str>, decode: Option<&str>) -> Result<Vec<(String, String)>> {
    let unknown = |kind: &str, name: &str, known: Vec<&String>| {
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        Failure::usage(format!("the recipe has no {kind} `{name}`"))
            .hint(format!("it has {}", known.join(", ")))
    };
    if let Some(name) = eval.filter(|name| !recipe.data.eval.contains_key(*name)) {
        return Err(unknown("evaluation set", name, recipe.data.eval.keys().collect()));
    }
    if let Some(name) = decode.filter(|name| !recipe.decode.contains_key(*name)) {
        return Err(unknown("search", name, recipe.decode.keys().collect()));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    let of_claims =
        recipe.claim.iter().filter_map(|claim| Some((claim.eval.clone()?, claim.decode.clone()?)));
    for (claim_eval, claim_decode) in of_claims {
        let pair = (eval.map_or(claim_eval, str::to_string), decode.map_or(claim_decode, str::to_string));
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    if pairs.is_empty()
        && let Some(decode) = decode.or_else(|| recipe.decode.keys().next().map(String::as_str))
    {
        let chosen = |name: &str| eval.map_or(name != "valid", |eval| eval == name);
        let sets = recipe.data.eval.keys().filter(|name| chosen(name));
        pairs.extend(sets.map(|name| (name.clone(), decode.to_string())));
    }
    for (name, _) in &pairs {
        let targets = recipe.data.targets_of(&recipe.data.eval[name]);
        if targets.len() > 1 {
            let languages = recipe.data.reader.targets().join(", ");
            return Err(Failure::usage(format!("the evaluation set `{name}` is in {languages} together"))
                .hint("name one that has a `target`; what is scored is in one language"));
        }
    }
    Ok(pairs)
}

/// The weights that the recipe evaluates, and their files.
pub fn evaluated_weights(run: &Run, recipe: &Recipe) -> Result<(Vec<ParameterValues>, Vec<PathBuf>)> {
    let found = run.checkpoints().evaluated(&recipe.train.checkpoint.evaluate)?;
    Ok((found.weights, found.files))
}

/// A model outside autodiff with the given weights.
pub fn load_model(
    recipe: &Recipe,
    prepared: &PreparedTranslation,
    weights: Vec<ParameterValues>,
    device: &Device,
) -> Result<Seq2Seq> {
    let model = Seq2Seq::new(&recipe.model, &vocabularies(prepared), 0, device);
    parameters::import(model, weights).map_err(|e| Failure::new(Exit::Damaged, e.to_string()))
}

/// Where an evaluation is kept in a run's folder `eval`.
pub fn evaluation_file(folder: &Path, eval: &str, decode: &str) -> PathBuf {
    folder.join(format!("{eval}.{decode}.json"))
}

/// The evaluation that lies in a folder, if it is there; an error if it or its files were changed.
pub fn stored(folder: &Path, eval: &str, decode: &str) -> Result<Option<Evaluation>> {
    let file = evaluation_file(folder, eval, decode);
    if !file.is_file() {
        return Ok(None);
    }
    let found: Evaluation = read_json(&file)?;
    for (path, expected) in
        [(&found.hypotheses, &found.hypotheses_sha256), (&found.references, &found.references_sha256)]
    {
        let path = folder.join(path);
        let bytes = std::fs::read(&path).map_err(|e| Failure::io("read", &path, &e))?;
        let digest = hex(&Sha256::digest(&bytes));
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
    Ok(Some(found))
}

/// Lines of a stored file.
pub fn lines(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, &e))?;
    Ok(text.lines().map(str::to_string).collect())
}

/// Decodes and scores what is wanted and not there yet.
pub fn decode_all(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedTranslation,
    folder: &Path,
    (weights, files): (Vec<ParameterValues>, Vec<PathBuf>),
    wanted: &[(String, String)],
) -> Result<Vec<Evaluation>> {
    let mut found = Vec::new();
    let mut model = None;
    for (eval, decode) in wanted {
        if let Some(evaluation) = stored(folder, eval, decode)? {
            found.push(evaluation);
            continue;
        }
        if model.is_none() {
            model = Some(load_model(recipe, prepared, weights.clone(), &ctx.open_device()?)?);
        }
        let model = model.as_ref().expect("just made");
        let set = prepared.eval_set(eval, &recipe.data.eval[eval])?;
        let start = std::time::Instant::now();
        ctx.progress.stage(&format!("decode {eval}, {decode}"));
        let compute = Compute::of(&recipe.precision, ctx.device.is_cpu());
        let translator =
            Translator { model, prepared, language: set.target, spec: &recipe.decode[decode], compute };
        let outputs = decode_split(ctx, &translator, set.split)?;
        let outputs = detokenized(recipe, eval, &prepared.targets[set.target], outputs)?;
        ctx.progress.end_stage();
        let seconds = start.elapsed().as_secs_f64();
        found.push(store(recipe, folder, (eval, decode), &outputs, set.references, &files, seconds)?);
    }
    Ok(found)
}

/// One line for each sentence of a split.
fn decode_split(ctx: &Context, translator: &Translator<'_>, split: &PreparedSplit) -> Result<Vec<String>> {
    let batches = eval_batches(&split.lengths(), EvalLimit::Sentences(SENTENCES));
    let mut outputs = Vec::new();
    for batch in &batches {
        ctx.check_stop()?;
        let sources: Vec<&[u32]> = batch.iter().filter_map(|&id| split.source.get(id as usize)).collect();
        outputs.extend(translator.translate(&sources));
        let done = outputs.len() as u64;
        ctx.progress.step(&Step { done, total: Some(split.source.len() as u64), ..Step::default() });
    }
    Ok(restore_order(&batches, outputs).expect("an output for every sentence"))
}

/// Hypotheses as the evaluation set's references are: without their tokenisation where the recipe says so.
fn detokenized(recipe: &Recipe, eval: &str, target: &str, outputs: Vec<String>) -> Result<Vec<String>> {
    let Some(Detokenizer::Moses) = recipe.data.eval[eval].detokenize else {
        return Ok(outputs);
    };
    let Some(language) = moses::Language::from_code(target) else {
        let message = format!("data.eval.{eval}: Moses' rules for the language `{target}` are not built in");
        return Err(Failure::new(Exit::Recipe, message).hint("they are for en, de and fr"));
    };
    let detokenizer = moses::Detokenizer::new(language);
    Ok(outputs.iter().map(|line| detokenizer.line(line)).collect())
}

/// How text becomes text of one target language.
pub struct Translator<'a> {
    /// A model outside autodiff.
    pub model: &'a Seq2Seq,
    /// Ids and text.
    pub prepared: &'a PreparedTranslation,
    /// Index of the target language.
    pub language: usize,
    /// The search.
    pub spec: &'a DecodeSpec,
    /// Type of products.
    pub compute: Compute,
}

impl Translator<'_> {
    /// The best hypothesis of each source, as text.
    pub fn translate(&self, sources: &[&[u32]]) -> Vec<String> {
        let ids = self.prepared.pipeline.target.specials();
        let ids = SearchIds { pad: ids.pad, end: ids.end };
        let writer = Writer::new(self.model, self.language, Pass::evaluation(self.compute));
        let found = search(&writer, &Packed::new(sources), self.spec, ids);
        let text = |ranked: Vec<zoo_models::search::Hypothesis>| {
            ranked.first().map(|best| self.prepared.undo(&best.tokens)).unwrap_or_default()
        };
        found.into_iter().map(text).collect()
    }
}

/// Scores outputs by every convention that a claim on this set and search names, and keeps it all.
fn store(
    recipe: &Recipe,
    folder: &Path,
    (eval, decode): (&str, &str),
    outputs: &[String],
    references: &[String],
    weights: &[PathBuf],
    seconds: f64,
) -> Result<Evaluation> {
    let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (hypotheses, reference_text) = (text(outputs), text(references));
    let mut scores = Vec::new();
    for signature in signatures(recipe, eval) {
        let scorer = Scorer::from_signature(&signature)?.on(&references::name_of(recipe, eval))?;
        let options = ScoreOptions { scorer, resampling: Some(Resampling::default()) };
        scores.push(score(outputs, &[references.to_vec()], &options)?);
    }
    let evaluation = Evaluation {
        eval: eval.into(),
        decode: decode.into(),
        hypotheses: format!("{eval}.{decode}.hyp.txt").into(),
        hypotheses_sha256: hex(&Sha256::digest(&hypotheses)),
        references: format!("{eval}.ref.txt").into(),
        references_sha256: hex(&Sha256::digest(&reference_text)),
        weights: weights.iter().map(|file| file.file_name().map(PathBuf::from).unwrap_or_default()).collect(),
        scores,
        seconds,
    };
    write_whole(&folder.join(&evaluation.references), reference_text.as_bytes())?;
    write_whole(&folder.join(&evaluation.hypotheses), hypotheses.as_bytes())?;
    write_json(&evaluation_file(folder, eval, decode), &evaluation)?;
    Ok(evaluation)
}

/// Conventions of the claims on a set; of any claim if there are none on it; the usual one where nothing is claimed.
fn signatures(recipe: &Recipe, eval: &str) -> Vec<String> {
    let of = |on_this_set: bool| {
        let mut found: Vec<String> = Vec::new();
        for claim in recipe.claim.iter().filter(|claim| !on_this_set || claim.eval.as_deref() == Some(eval)) {
            if let Some(signature) = claim.signature.clone().filter(|s| !found.contains(s)) {
                found.push(signature);
            }
        }
        found
    };
    let found = [of(true), of(false)].into_iter().find(|found| !found.is_empty());
    found.unwrap_or_else(|| vec![USUAL.to_string()])
}
