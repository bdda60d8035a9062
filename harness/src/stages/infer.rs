//! What a trained run makes of lines or recordings.

use std::path::PathBuf;

use zoo_models::precision::Compute;
use zoo_recipes::{Architecture, DecodeSpec, Recipe};
use zoo_results::exit::Exit;

use super::evaluate::{evaluated_weights, load_model};
use super::prepare::{Prepared, prepare};
use super::run::Run;
use super::speech::Listener;
use super::synthesis::Speaker;
use super::task::Task;
use super::translation::Translator;
use crate::context::Context;
use crate::error::{Failure, Result};

/// Lines that are translated together.
const SENTENCES: usize = 64;

/// What `zoo infer` was asked for.
#[derive(Debug, Clone)]
pub struct InferRequest {
    /// Folder of a run.
    pub run: PathBuf,
    /// Search; absent: that of the first claim, or the recipe's first.
    pub decode: Option<String>,
    /// `decode.NAME.KEY=VALUE`, laid over the run's recipe.
    pub overrides: Vec<String>,
}

/// A run that is asked what it makes of something.
pub struct Inference {
    ctx: Context,
    run: Run,
    recipe: Recipe,
    search: DecodeSpec,
}

impl Inference {
    /// Opens the run.
    ///
    /// # Errors
    /// There is none, or it has no such search.
    pub fn open(ctx: &Context, request: &InferRequest) -> Result<Self> {
        let (run, recipe) = Run::open(&request.run)?;
        let recipe = recipe.searching(&request.overrides)?;
        let ctx = ctx.for_run(&run.card.compute)?;
        let usable =
            |name: &String| recipe.decode.get(name).is_some_and(|search| !search.lacks_language_model());
        let of_claims =
            recipe.claim.iter().filter_map(|claim| claim.decode.as_ref()).find(|name| usable(name));
        let first = || recipe.decode.keys().find(|name| usable(name));
        // A model that speaks is asked for what nobody has said before.
        let speaking = || {
            let mut all = recipe.decode.iter();
            all.find(|(_, search)| matches!(search, DecodeSpec::FreeRunning(_))).map(|(name, _)| name)
        };
        let name = request.decode.as_ref().or_else(speaking).or(of_claims).or_else(first).cloned();
        let name = name.ok_or_else(|| Failure::usage("the recipe has no search"))?;
        let search = recipe.decode.get(&name).cloned().ok_or_else(|| {
            let known: Vec<&str> = recipe.decode.keys().map(String::as_str).collect();
            Failure::usage(format!("the recipe has no search `{name}`"))
                .hint(format!("it has {}", known.join(", ")))
        })?;
        Ok(Self { ctx, run, recipe, search })
    }

    /// Does it listen to recordings, or read text?
    pub fn is_of_speech(&self) -> bool {
        matches!(self.recipe.model.architecture(), Some(Architecture::Acoustic(_)))
    }

    /// Does it speak?
    pub fn speaks(&self) -> bool {
        matches!(self.recipe.model.architecture(), Some(Architecture::Synthesis(_)))
    }

    /// The model, ready to speak.
    ///
    /// # Errors
    /// The search is told the true frames, which nobody has of other texts; or the weights cannot be read.
    pub fn speaker(&self) -> Result<Speaker> {
        let DecodeSpec::FreeRunning(search) = &self.search else {
            return Err(Failure::usage("the search is teacher-forced, and a new text has no true frames")
                .hint("--decode NAME, of a search of kind free-running"));
        };
        Speaker::new(&self.ctx, &self.run, &self.recipe, search)
    }

    /// What the call is told.
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// A search with a beam where this one has none, and so no second hypothesis; an empty text where the recipe has no such.
    pub fn search_of_many(&self) -> Option<String> {
        let has_many = |search: &DecodeSpec| matches!(search, DecodeSpec::CtcBeam { .. });
        let other = || self.recipe.decode.iter().find(|(_, search)| has_many(search));
        (!has_many(&self.search)).then(|| other().map(|(name, _)| name.clone()).unwrap_or_default())
    }

    /// The model, ready to listen.
    ///
    /// # Errors
    /// The weights cannot be read.
    pub fn listener(&self) -> Result<Listener> {
        Listener::new(&self.ctx, &self.run, &self.recipe, &self.search)
    }

    /// Translates lines. `input` is what messages call them. Gives a translation for every line to `write`, in order, as soon as it is
    /// there.
    ///
    /// # Errors
    /// A line cannot be read or written.
    pub fn translate(
        &self,
        target: Option<&str>,
        input: &str,
        lines: impl Iterator<Item = std::io::Result<String>>,
        mut write: impl FnMut(&str) -> std::io::Result<()>,
    ) -> Result<()> {
        let Self { ctx, run, recipe, search } = self;
        let language = language(recipe, target)?;
        let Prepared::Translation(prepared) = prepare(ctx, recipe, &run.card.base)? else {
            return Err(Failure::usage("this is a speech recognition run").hint("name WAV or FLAC files"));
        };
        let weights = evaluated_weights(run, recipe)?.values;
        let model = load_model(recipe, &prepared.material(recipe)?, weights, &ctx.open_device()?)?;
        let compute = Compute::of(&recipe.precision);
        let translator = Translator { model: &model, prepared: &prepared, language, spec: search, compute };
        let mut number = 0;
        let mut read = |line: std::io::Result<String>| {
            number += 1;
            line.map_err(|e| {
                let failure = Failure::new(Exit::Data, format!("{input}:{number}: {e}"));
                failure.hint("lines are UTF-8; convert the file, e.g. with iconv")
            })
        };
        let mut lines = lines.peekable();
        while lines.peek().is_some() {
            ctx.check_stop()?;
            let batch: Vec<String> = lines.by_ref().take(SENTENCES).map(&mut read).collect::<Result<_>>()?;
            let sources: Vec<Vec<u32>> =
                batch.iter().map(|line| prepared.pipeline.encode_source(line)).collect();
            let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
            for line in translator.translate(&sources) {
                write(&line)
                    .map_err(|e| Failure::new(Exit::Internal, format!("cannot write to stdout: {e}")))?;
            }
        }
        Ok(())
    }
}

/// The index of a target language.
fn language(recipe: &Recipe, name: Option<&str>) -> Result<usize> {
    let targets = recipe.data.reader.targets();
    let Some(name) = name else { return Ok(0) };
    targets.iter().position(|target| *target == name).ok_or_else(|| {
        Failure::usage(format!("the model does not write `{name}`"))
            .hint(format!("it writes {}", targets.join(", ")))
    })
}
