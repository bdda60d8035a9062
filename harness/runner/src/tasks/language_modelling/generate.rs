//! Continues a text with a language model.

use zoo_datasets::tasks::language_modelling::PreparedLanguage;
use zoo_models::Pass;
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;
use zoo_models::random::{Key, stream_of};
use zoo_models::tasks::language_modelling::LanguageModel;
use zoo_recipes::tasks::language_modelling::LanguageModelSpec;

use super::Recipe;
use crate::run::data::KeptSample;

/// Units of the sample that an evaluation keeps.
const KEPT: usize = 100;

/// How the next unit is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divisor of the scores; 0 takes the likeliest unit.
    pub temperature: f64,
    /// Number of the likeliest units to draw from; `None` for all.
    pub top_k: Option<u32>,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, seed: 1 }
    }
}

/// Draws units after those of `prompt`, one by one. `found` is called with each; it ends the text
/// by returning `false`. An empty prompt is that of a line's end, or of the first unit.
pub fn continued(
    recipe: &Recipe,
    model: &LanguageModel,
    prompt: &[u32],
    sampling: Sampling,
    mut found: impl FnMut(u32) -> bool,
) {
    let compute = Compute::of(&recipe.precision);
    let mut read: Vec<u32> = if prompt.is_empty() { vec![0] } else { prompt.to_vec() };
    let (mut state, mut fresh) = (None, read.len());
    for step in 0u64.. {
        let inputs = match recipe.model {
            // The state stands for all that was read before.
            LanguageModelSpec::Lstm(_) | LanguageModelSpec::LayerNormLstm(_) => &read[read.len() - fresh..],
            LanguageModelSpec::Gpt(gpt) => &read[read.len().saturating_sub(gpt.context as usize)..],
        };
        let (logits, after) = model.forward(inputs, 1, state.take(), &mut Pass::evaluation(compute));
        let last = logits.narrow(0, inputs.len() - 1, 1);
        let scores = host_values(last);
        let unit = drawn(&scores, sampling, step);
        read.push(unit);
        (state, fresh) = (Some(after).filter(|state| !state.is_empty()), 1);
        if !found(unit) {
            return;
        }
    }
}

/// Draws a unit by its scores.
fn drawn(scores: &[f32], Sampling { temperature, top_k, seed }: Sampling, step: u64) -> u32 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
    let kept = if temperature > 0.0 { top_k.map_or(order.len(), |most| most as usize) } else { 1 };
    order.truncate(kept.max(1));
    let highest = f64::from(scores[order[0]]);
    let weight = |unit: &usize| ((f64::from(scores[*unit]) - highest) / temperature).exp();
    let weights: Vec<f64> = match temperature > 0.0 {
        true => order.iter().map(weight).collect(),
        false => vec![1.0],
    };
    let draw = f64::from(Key::new(seed, stream_of("continuation"), step).uniform(0));
    let mut left = draw * weights.iter().sum::<f64>();
    for (unit, weight) in order.iter().zip(&weights) {
        left -= weight;
        if left < 0.0 {
            return *unit as u32;
        }
    }
    order[order.len() - 1] as u32
}

/// A text that the model writes by itself, from the end of a line on.
pub fn sample_of(
    recipe: &Recipe,
    prepared: &PreparedLanguage,
    model: &LanguageModel,
    sampling: Sampling,
) -> KeptSample {
    let prompt: Vec<u32> = prepared.units.end_of_line().into_iter().collect();
    let mut written = Vec::with_capacity(KEPT);
    continued(recipe, model, &prompt, sampling, |unit| {
        written.push(unit);
        written.len() < KEPT
    });
    KeptSample {
        title: format!("{KEPT} units drawn at temperature {}", sampling.temperature),
        text: prepared.units.text(&written),
        scores: serde_json::Map::new(),
        files: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f32; 4] = [0.0, 2.0, 1.0, -50.0];

    fn counts(sampling: Sampling) -> [u32; 4] {
        let mut counts = [0; 4];
        (0..4000).for_each(|step| counts[drawn(&SCORES, sampling, step) as usize] += 1);
        counts
    }

    #[test]
    fn units_are_drawn_by_their_probability() {
        let all = Sampling::default();
        let [low, high, middle, never] = counts(all);
        // exp(0), exp(2), exp(1) over their sum: 9.0 %, 66.5 %, 24.5 %.
        assert!((300..420).contains(&low) && (2540..2780).contains(&high), "{low} {high}");
        assert!((880..1080).contains(&middle) && never == 0, "{middle} {never}");
        assert_eq!(counts(all), counts(all));
        assert_ne!(counts(all), counts(Sampling { seed: 2, ..all }));
    }

    #[test]
    fn temperature_and_top_k_narrow_the_draw() {
        let all = Sampling::default();
        assert_eq!(counts(Sampling { temperature: 0.0, ..all }), [0, 4000, 0, 0]);
        assert_eq!(counts(Sampling { top_k: Some(1), ..all }), [0, 4000, 0, 0]);
        let two = counts(Sampling { top_k: Some(2), ..all });
        assert!(two[0] == 0 && two[3] == 0 && two[2] > 900, "{two:?}");
        let cold = counts(Sampling { temperature: 0.5, ..all });
        assert!(cold[1] > counts(all)[1] + 500, "{cold:?}");
    }
}
