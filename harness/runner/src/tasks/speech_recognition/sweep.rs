//! Decoding of an evaluation set with each pair of language model weights. The model's
//! log-probabilities are computed once.

use rayon::prelude::*;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_recognition::{AcousticModel, FrameGrid};
use zoo_recipes::Direction;
use zoo_recipes::tasks::speech_recognition::CtcSearchSpec;
use zoo_results::exit::Exit;
use zoo_results::metrics::{ScoreOptions, Scorer, score};

use super::Recipe;
use super::batches::{evaluation, of_models};
use super::recogniser::LogProbs;
use super::search::Searcher;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::stages::sweep::{Swept, SweptPoint, SweptWeights};
use crate::tasks::recordings::RecordingData;

impl RecordingData {
    /// Decodes and scores an evaluation set with every pair of weights.
    ///
    /// # Errors
    /// The search has no language model, a recording cannot be read, or the user interrupted the
    /// call.
    pub fn sweep(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        (eval, decode): (&str, &str),
        model: &AcousticModel,
        weights: &SweptWeights,
        scorer: Scorer,
    ) -> Result<Swept> {
        let spec = &recipe.decode[decode];
        let CtcSearchSpec::Beam { alpha, beta, language_model: Some(_), .. } = spec else {
            let message =
                format!("the search `{decode}` has no language model: alpha and beta have no effect");
            return Err(Failure::usage(message)
                .hint(format!("--set decode.{decode}.language_model=model.arpa.gz, of a ctc-beam")));
        };
        let prepared = &self.prepared;
        let mut searcher = Searcher::new(&prepared.classes, spec, &self.base)?;
        let (log_probs, ids) = self.log_probs(ctx, recipe, eval, model)?;
        let set = &recipe.data.eval[eval];
        let references = [prepared.eval_set(eval, set)?.references_as(set.references).to_vec()];
        let alphas = weights.alpha.clone().unwrap_or_else(|| vec![*alpha]);
        let betas = weights.beta.clone().unwrap_or_else(|| vec![*beta]);
        let pairs: Vec<(f64, f64)> =
            alphas.iter().flat_map(|&alpha| betas.iter().map(move |&beta| (alpha, beta))).collect();
        let utterances = references[0].len();
        let options = ScoreOptions { scorer, resampling: None };
        let (mut points, mut best, mut counted): (Vec<SweptPoint>, _, _) = (Vec::new(), 0, None);
        let mut done = 0;
        ctx.progress.stage(&format!("sweep {eval}, {decode}"));
        for (alpha, beta) in pairs.iter().copied() {
            if let Some((of_model, of_words)) = searcher.weights_mut() {
                (*of_model, *of_words) = (alpha, beta);
            }
            let mut hypotheses = vec![String::new(); utterances];
            for (batch, ids) in log_probs.iter().zip(&ids) {
                if ctx.stopped() {
                    let made = points.len();
                    let message = format!("interrupted after {made} of {} pairs of weights", pairs.len());
                    return Err(
                        Failure::new(Exit::Interrupted, message).hint("a sweep saves no partial results")
                    );
                }
                let found: Vec<String> =
                    batch.utterances().into_par_iter().map(|frames| searcher.best(frames).text).collect();
                for (id, text) in ids.iter().zip(found) {
                    hypotheses[*id as usize] = text;
                    done += 1;
                }
                let total = Some((pairs.len() * utterances) as u64);
                ctx.progress.step(&Step { done, total, ..Step::default() });
            }
            let scored = score(&hypotheses, &references, &options)?;
            ctx.progress.note(&format!("alpha {alpha}, beta {beta}: {} {:.2}", scored.metric, scored.value));
            let better = |than: f64| match scored.direction {
                Direction::Higher => scored.value > than,
                Direction::Lower => scored.value < than,
            };
            if points.get(best).is_some_and(|known| better(known.value)) {
                best = points.len();
            }
            points.push(SweptPoint { alpha, beta, value: scored.value });
            counted = Some((scored.metric, scored.signature));
        }
        ctx.progress.end_stage();
        let (metric, signature) = counted.expect("there is a pair of weights");
        let (eval, decode) = (eval.to_owned(), decode.to_owned());
        Ok(Swept { eval, decode, examples: utterances, metric, signature, points, best })
    }

    /// Log-probabilities of an evaluation set per batch, with the utterances of each batch.
    fn log_probs(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        eval: &str,
        model: &AcousticModel,
    ) -> Result<(Vec<LogProbs>, Vec<Vec<u32>>)> {
        let prepared = &self.prepared;
        let split = prepared.eval_set(eval, &recipe.data.eval[eval])?;
        let compute = Compute::of(&recipe.precision);
        let grid = FrameGrid::of(recipe.model.layers());
        let (mut found, mut of) = (Vec::new(), Vec::new());
        let (mut done, total) = (0, Some(split.utterances.len() as u64));
        ctx.progress.stage(&format!("transcribe {eval}"));
        for batch in evaluation(prepared, split, &recipe.data.batching) {
            ctx.check_stop()?;
            let batch = batch?;
            of.push(batch.ids.clone());
            done += batch.ids.len() as u64;
            let batch = of_models(batch, grid).map_err(|why| Failure::new(Exit::Data, why).about(eval))?;
            found.push(LogProbs::of(model, &batch, compute, prepared.classes.blank()));
            ctx.progress.step(&Step { done, total, ..Step::default() });
        }
        ctx.progress.end_stage();
        Ok((found, of))
    }
}
