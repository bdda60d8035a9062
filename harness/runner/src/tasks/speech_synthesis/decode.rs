//! Synthesis of an evaluation set with one search.

use zoo_models::Pass;
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{Spoken, SynthesisBatch, Synthesiser};
use zoo_recipes::tasks::speech_synthesis::SynthesisSearchSpec;

use super::Recipe;
use super::batches::{evaluation, of_models};
use super::material::frame_width;
use super::measures::Utterance;
use super::sample::{Frames, KEPT, sample};
use super::speak::{Voice, limits};
use crate::context::Context;
use crate::error::Result;
use crate::progress::Step;
use crate::run::data::Decoded;
use crate::tasks::recordings::RecordingData;

/// Synthesizes an evaluation set. Returns one line of measures per utterance, in the order of the
/// split, and samples of the first utterances.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    RecordingData { prepared, .. }: &RecordingData,
    (eval, decode): (&str, &str),
    model: &Synthesiser,
) -> Result<Decoded> {
    let split = prepared.eval_set(eval, &recipe.data.eval[eval])?;
    let compute = Compute::of(&recipe.precision);
    let search = &recipe.decode[decode];
    let voice = Voice::new(recipe, search)?;
    let mels = frame_width(recipe).mels;
    let mut hypotheses = vec![String::new(); split.utterances.len()];
    let (mut samples, mut done) = (Vec::new(), 0);
    for batch in evaluation(prepared, split) {
        ctx.check_stop()?;
        let batch = batch?;
        let ids = batch.ids.clone();
        let batch = of_models(batch);
        let mut pass = Pass::evaluation(compute);
        let (said, forced) = match search {
            SynthesisSearchSpec::FreeRunning(spec) => {
                (model.speak(&batch.symbols, limits(spec), &mut pass), false)
            }
            SynthesisSearchSpec::TeacherForced {} => (told(model, &batch, &mut pass), true),
        };
        let longest = batch.longest();
        for (place, (&id, spoken)) in ids.iter().zip(&said).enumerate() {
            let rows = &batch.frames[place * longest * batch.width..][..batch.lengths[place] * batch.width];
            let target = Frames::of_rows(rows, batch.width, mels);
            let symbols = &batch.symbols[place];
            let utterance = Utterance { spoken, target: &target.mels, mels, symbols: symbols.len(), forced };
            let name = &split.utterances[id as usize].id;
            let measured = utterance.measure().map_err(|failure| failure.about(name))?;
            hypotheses[id as usize] = measured.line;
            if id < KEPT {
                let names: Vec<String> =
                    symbols.iter().map(|&symbol| prepared.classes.names()[symbol as usize].clone()).collect();
                let text = &split.references[id as usize];
                let mut kept = sample((name, text), spoken, target, &names, &voice, u64::from(id), forced)?;
                kept.scores = measured.scores;
                samples.push((id, kept));
            }
            done += 1;
        }
        ctx.progress.step(&Step { done, total: Some(hypotheses.len() as u64), ..Step::default() });
    }
    samples.sort_by_key(|(id, _)| *id);
    let references = split.references_as(recipe.data.eval[eval].references).to_vec();
    Ok(Decoded { hypotheses, references, samples: samples.into_iter().map(|(_, sample)| sample).collect() })
}

/// What a model says of frames that it is told, as many as there are. It ended well if it would
/// stop at the last.
fn told(model: &Synthesiser, batch: &SynthesisBatch, pass: &mut Pass) -> Vec<Spoken> {
    let (predicted, _) = model.forward(batch, pass);
    let (longest, width) = (batch.longest(), model.width());
    let mels = host_values(predicted.corrected);
    let magnitudes = predicted.magnitudes.map(host_values).unwrap_or_default();
    let stops = host_values(predicted.written.stops);
    let weights = host_values(predicted.written.weights);
    let all: usize = batch.symbols.iter().map(Vec::len).sum();
    let mut first = 0;
    let of_utterance = |(place, (text, &frames)): (usize, (&Vec<u32>, &usize))| {
        let columns = first..first + text.len();
        first += text.len();
        let part =
            |values: &[f32], width: usize| values[place * longest * width..][..frames * width].to_vec();
        let alignment = weights.chunks_exact(all).take(frames).flat_map(|row| &row[columns.clone()]);
        Spoken {
            mels: part(&mels, width.mels),
            magnitudes: if magnitudes.is_empty() { Vec::new() } else { part(&magnitudes, width.bins) },
            alignment: alignment.copied().collect(),
            frames,
            stopped: stops[place * longest + frames - 1] > 0.0,
        }
    };
    batch.symbols.iter().zip(&batch.lengths).enumerate().map(of_utterance).collect()
}
