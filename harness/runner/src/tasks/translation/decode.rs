//! Decoding of source sentences to text of a target language.

use zoo_datasets::batches::{EvalLimit, PairSource, eval_batches, restore_order};
use zoo_datasets::prepare::{PreparedSplit, PreparedTranslation};
use zoo_datasets::text::moses;
use zoo_models::Packed;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::search::{Hypothesis, SearchIds, search};
use zoo_models::tasks::translation::{Seq2Seq, Writer};
use zoo_recipes::tasks::translation::{Detokenizer, TokenSearchSpec};
use zoo_results::exit::Exit;

use super::Recipe;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::stages::data::Decoded;

/// Sentences per decoding batch. The output does not depend on it.
const SENTENCES: u32 = 64;

/// Decodes an evaluation set with one search.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedTranslation,
    (eval, decode): (&str, &str),
    model: &Seq2Seq,
) -> Result<Decoded> {
    let set = prepared.eval_set(eval, &recipe.data.eval[eval])?;
    let compute = Compute::of(&recipe.precision);
    let translator =
        Translator { model, prepared, language: set.target, spec: &recipe.decode[decode], compute };
    let outputs = decode_split(ctx, &translator, set.split)?;
    let hypotheses = detokenized(recipe, eval, &prepared.targets[set.target], outputs)?;
    Ok(Decoded { hypotheses, references: set.references.to_vec(), samples: Vec::new() })
}

/// Decodes a split to one line per sentence, in the order of the split.
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

/// Removes the tokenisation of hypotheses if the recipe asks for it, so that they match the
/// references.
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

/// Translates text to one target language.
pub struct Translator<'a> {
    /// Model without autodiff.
    pub model: &'a Seq2Seq,
    /// Vocabulary and conversion between ids and text.
    pub prepared: &'a PreparedTranslation,
    /// Index of the target language.
    pub language: usize,
    /// Settings of the search.
    pub spec: &'a TokenSearchSpec,
    /// Precision of matrix products.
    pub compute: Compute,
}

impl Translator<'_> {
    /// The best hypothesis of each source, as text.
    pub fn translate(&self, sources: &[&[u32]]) -> Vec<String> {
        let ids = self.prepared.pipeline.target.specials();
        let ids = SearchIds { pad: ids.pad, end: ids.end };
        let writer = Writer::new(self.model, self.language, Pass::evaluation(self.compute));
        let found = search(&writer, &Packed::new(sources), self.spec, ids);
        let text = |ranked: Vec<Hypothesis>| {
            ranked.first().map(|best| self.prepared.undo(&best.tokens)).unwrap_or_default()
        };
        found.into_iter().map(text).collect()
    }
}
