//! Inputs of an explanation: the stored decodings of a run, or given files.

use std::path::{Path, PathBuf};

use zoo_datasets::text::moses::Normalizer;
use zoo_recipes::{
    CheckpointSpec, ClaimKind, ClaimSpec, Document, EvaluatedWeights, NormalizeStep, Recipe, Selection,
};
use zoo_results::explain::{Setting, Text};
use zoo_results::metrics::{BleuOptions, Convention, Scorer};

use crate::cli::ExplainArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::evaluate::stored;
use crate::runs::folder_of;
use crate::stages::{EvaluateRequest, evaluate, opened};
use crate::{lines, references, tasks};

/// Inputs of an explanation.
#[derive(Debug)]
pub struct Case {
    /// Description of what was scored.
    pub subject: String,
    /// Published score.
    pub claimed: f64,
    /// Source of the published score.
    pub source: Option<String>,
    /// Scorer of the measured score.
    pub scorer: Scorer,
    /// The measured hypotheses, followed by those of other settings.
    pub settings: Vec<Setting>,
    /// Reference streams.
    pub references: Vec<Vec<String>>,
    /// Published or assumed standard deviation between seeds.
    pub sigma: Option<f64>,
    /// Moses' tokenizer of the target language.
    pub tokenizer: Option<Normalizer>,
    /// Notes on comparisons that were skipped.
    pub notes: Vec<String>,
}

/// Reads the inputs that the command line names.
///
/// # Errors
/// A file, claim or setting does not exist.
pub fn case(context: &Context, args: &ExplainArgs) -> Result<Case> {
    if args.claimed.is_some_and(|claimed| !claimed.is_finite()) {
        return Err(Failure::usage("--claimed is not a valid score")
            .hint("give the published number, e.g. --claimed 27.3"));
    }
    match (&args.run, &args.hypotheses) {
        (Some(run), _) => of_run(context, &folder_of(context, run)?, args),
        (None, Some(file)) => of_files(context, file, args),
        (None, None) => Err(Failure::usage("nothing to explain").hint("give a run, or --hypotheses FILE")),
    }
}

/// The requested claim, else the first that states a score of text for this arm.
fn claim_of<'r>(
    recipe: &'r Recipe,
    arm: Option<&str>,
    number: Option<usize>,
) -> Result<Option<&'r ClaimSpec>> {
    let has_number = |claim: &ClaimSpec| {
        matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound)
            && claim.value.is_some()
            && claim.signature.is_some()
    };
    if let Some(number) = number {
        let claim = number.checked_sub(1).and_then(|at| recipe.claim.get(at));
        return match claim {
            Some(claim) if has_number(claim) => Ok(Some(claim)),
            Some(_) => Err(Failure::usage(format!("claim {number} states no score with a signature"))
                .hint("`zoo show` lists the claims; --claimed X gives a number by hand")),
            None => Err(Failure::usage(format!("there is no claim {number}"))
                .hint(format!("`zoo show` numbers them, 1 to {}", recipe.claim.len()))),
        };
    }
    let of_arm = |claim: &&ClaimSpec| match (claim.arm.as_deref(), arm) {
        (None | Some("any"), _) | (_, None) => true,
        (Some(claimed), Some(arm)) => claimed == arm,
    };
    Ok(recipe.claim.iter().filter(|claim| has_number(claim)).find(of_arm))
}

fn of_run(context: &Context, path: &Path, args: &ExplainArgs) -> Result<Case> {
    let (run, recipe) = opened(path)?;
    let claim = claim_of(&recipe, Some(&run.card.arm), args.claim)?;
    let claimed = args.claimed.or(claim.and_then(|claim| claim.value)).ok_or_else(|| {
        Failure::usage("no number was published for this arm").hint("pass one with --claimed X")
    })?;
    let part = |part: fn(&ClaimSpec) -> &Option<String>| claim.and_then(|claim| part(claim).clone());
    let eval = args.eval.clone().or(part(|claim| &claim.eval));
    let eval = eval
        .or_else(|| recipe.data().eval_sets().into_iter().find(|name| *name != "valid").map(str::to_owned));
    let decode =
        part(|claim| &claim.decode).or_else(|| recipe.searches().first().map(|name| (*name).to_owned()));
    let (Some(eval), Some(decode)) = (eval, decode) else {
        return Err(
            Failure::usage("the recipe has no evaluation set or no search").hint("`zoo show` lists them")
        );
    };
    let mut searches = vec![decode.clone()];
    searches.extend(recipe.searches().into_iter().filter(|name| *name != decode).map(str::to_owned));
    let main = run.folder.join("eval");
    let own = weights_name(&recipe.train.checkpoint);
    // The newest state holds the last weights. They are a separate setting if the recipe evaluates
    // an average or the best weights.
    let last = match recipe.train.checkpoint.evaluate {
        EvaluatedWeights::Last => None,
        _ => run.checkpoints().states()?.into_iter().next(),
    };
    let mut places = vec![(own, main.clone(), run.folder.clone())];
    if let Some(state) = last {
        let stem = state.file_stem().unwrap_or_default();
        places.push(("last".to_owned(), main.join(stem), state));
    }
    let (mut settings, mut references, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (weights, folder, run_or_state) in &places {
        for search in &searches {
            let request = EvaluateRequest {
                run: run_or_state.clone(),
                eval: Some(eval.clone()),
                decode: Some(search.clone()),
                overrides: Vec::new(),
                compute: None,
            };
            let found = match stored(folder, &recipe, &eval, search)? {
                None if args.decode => evaluate(context, &request)?.into_iter().next(),
                found => found,
            };
            let Some(found) = found else {
                missing.push(format!("{search} with {weights}"));
                continue;
            };
            if references.is_empty() {
                references.push(lines::read(&folder.join(&found.references))?);
            }
            let hypotheses = lines::read(&folder.join(&found.hypotheses))?;
            settings.push(Setting { search: search.clone(), weights: weights.clone(), hypotheses });
        }
    }
    let is_measured = |one: &Setting| one.search == decode && one.weights == places[0].0;
    if !settings.first().is_some_and(is_measured) {
        return Err(Failure::usage(format!("{eval} was not decoded with {decode} in this run"))
            .hint(format!("`zoo evaluate {} --eval {eval}`, or --decode here", path.display())));
    }
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!("skipped because not decoded: {} (decode with --decode)", missing.join("; ")));
    }
    let language = args.language.clone().or_else(|| tasks::of(&recipe).target_language(Some(&eval)));
    let scorer = scorer(args, claim)?;
    let tokenizer = tokenizer(&scorer, language.as_deref(), args.language.is_some(), &mut notes)?;
    Ok(Case {
        subject: format!("{}, {} seed {}, on {eval}", run.card.recipe, run.card.arm, run.card.seed),
        claimed,
        source: claim.filter(|_| args.claimed.is_none()).map(|claim| claim.source.clone()),
        scorer,
        settings,
        references,
        sigma: claim.and_then(zoo_results::verdict::stated_sigma),
        tokenizer,
        notes,
    })
}

fn of_files(context: &Context, file: &Path, args: &ExplainArgs) -> Result<Case> {
    let resolved = match &args.recipe {
        Some(name) => Some(Document::load(name)?.resolve(&Selection::default())?),
        None => None,
    };
    let claim = match &resolved {
        Some(resolved) => claim_of(&resolved.recipe, None, args.claim)?,
        None => None,
    };
    let claimed = args.claimed.or(claim.and_then(|claim| claim.value)).ok_or_else(|| {
        Failure::usage("no claimed score").hint("--claimed X, or --recipe NAME with a claim that states one")
    })?;
    let read = |paths: &[PathBuf]| paths.iter().map(|path| lines::read(path)).collect::<Result<Vec<_>>>();
    let eval = args.eval.as_ref().or_else(|| claim.and_then(|claim| claim.eval.as_ref()));
    let references = match (args.references.as_slice(), &resolved, eval) {
        ([], Some(resolved), Some(eval)) => vec![references::of(context, resolved, eval)?],
        ([], _, _) => {
            return Err(Failure::usage("no references")
                .hint("--references FILE, or --recipe NAME for those of its data"));
        }
        (files, _, _) => read(files)?,
    };
    // Settings need names only if there are several.
    let others = !(args.search.is_empty() && args.weights.is_empty());
    let given = || if others { "as given".to_owned() } else { String::new() };
    let mut settings = vec![Setting { search: given(), weights: given(), hypotheses: lines::read(file)? }];
    for text in &args.search {
        let (name, file) = named(text, "--search")?;
        settings.push(Setting { search: name, weights: given(), hypotheses: lines::read(&file)? });
    }
    for text in &args.weights {
        let (name, file) = named(text, "--weights")?;
        settings.push(Setting { search: given(), weights: name, hypotheses: lines::read(&file)? });
    }
    let of_recipe = || {
        let recipe = &resolved.as_ref()?.recipe;
        tasks::of(recipe).target_language(eval.map(String::as_str))
    };
    let language = args.language.clone().or_else(of_recipe);
    let mut notes = Vec::new();
    let scorer = scorer(args, claim)?;
    let tokenizer = tokenizer(&scorer, language.as_deref(), args.language.is_some(), &mut notes)?;
    Ok(Case {
        subject: file.display().to_string(),
        claimed,
        source: claim.filter(|_| args.claimed.is_none()).map(|claim| claim.source.clone()),
        scorer,
        settings,
        references,
        sigma: claim.and_then(zoo_results::verdict::stated_sigma),
        tokenizer,
        notes,
    })
}

/// Splits `NAME=FILE`.
fn named(text: &str, option: &str) -> Result<(String, PathBuf)> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err(Failure::usage(format!("{option} {text}: not NAME=FILE"))
            .hint(format!("{option} greedy=greedy.de"))),
    }
}

/// The scorer of `--signature`, else of the claim, else sacreBLEU's default.
fn scorer(args: &ExplainArgs, claim: Option<&ClaimSpec>) -> Result<Scorer> {
    let signature = args.signature.as_ref().or_else(|| claim.and_then(|claim| claim.signature.as_ref()));
    Ok(match signature {
        Some(signature) => Scorer::from_signature(signature)?,
        None => Scorer::new(Convention::Bleu(BleuOptions::default()))?,
    })
}

/// Moses' tokenizer; `None` for a metric whose scores are not computed on tokenised text. A
/// language without rules is an error only if the user named the language.
fn tokenizer(
    scorer: &Scorer,
    language: Option<&str>,
    asked: bool,
    notes: &mut Vec<String>,
) -> Result<Option<Normalizer>> {
    if !Text::is_varied(scorer.convention()) {
        return Ok(None);
    }
    let Some(language) = language else {
        notes.push("the language is unknown, so tokenised text was skipped (--language de)".to_owned());
        return Ok(None);
    };
    match Normalizer::new(&[NormalizeStep::MosesTokenize], language) {
        Ok(tokenizer) => Ok(Some(tokenizer)),
        Err(error) if asked => Err(Failure::usage(error.to_string())),
        Err(_) => {
            notes
                .push(format!("Moses' rules for {language} are not built in, so tokenised text was skipped"));
            Ok(None)
        }
    }
}

fn weights_name(weights: &CheckpointSpec) -> String {
    let name = match &weights.evaluate {
        EvaluatedWeights::Last => "last".to_owned(),
        EvaluatedWeights::Best { decode, from_epoch } => {
            let by =
                decode.as_ref().map_or_else(String::new, |decode| format!(" by its score with {decode}"));
            let from = if *from_epoch > 0 { format!(", from epoch {from_epoch} on") } else { String::new() };
            format!("best validation{by}{from}")
        }
        EvaluatedWeights::MeanOfEpochs { epochs } => format!("mean of {epochs} epochs"),
        EvaluatedWeights::MeanOfLast { checkpoints, every_updates } => {
            format!("mean of {checkpoints} checkpoints, {every_updates} updates apart")
        }
    };
    match weights.ema {
        Some(keep) if weights.ema_of.is_empty() => format!("{name}, exponential mean of {keep}"),
        Some(keep) => format!("{name}, exponential mean of {keep} of {}", weights.ema_of.join(", ")),
        None => name,
    }
}
