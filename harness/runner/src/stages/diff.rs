//! Comparison of two runs: recipe, data, program and machine, losses, scores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use zoo_results::ledger::RunRecord;
use zoo_results::metrics::{Resampling, Scorer, paired_gain};

use super::opened::opened;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::Result;
use crate::output::value_of_toml;
use crate::records::ledger;
use crate::reporting::evaluations;
use crate::run::evaluate::{Evaluation, lines};
use crate::run::folder::Run;
use crate::run::log::losses_by_update;

/// Two runs and what differs.
#[derive(Debug, Clone, Serialize)]
pub struct RunDifferences {
    /// The runs.
    pub runs: [RunName; 2],
    /// Recipe, tier, arm and seed of each run, in words.
    #[serde(skip)]
    pub names: [String; 2],
    /// Keys of the resolved recipes, and the initial weights.
    pub recipe: Vec<Different>,
    /// Digests of the data; `None` if the ledger of the home does not have a judged record of both
    /// runs.
    pub data: Option<Vec<Different>>,
    /// Program and machine that started the runs.
    pub environment: Vec<Different>,
    /// Training losses.
    pub losses: LossDifferences,
    /// Scores of the evaluation sets that both runs decoded, by the same convention.
    pub scores: Vec<ScoreDifference>,
    /// What could not be compared.
    pub missing: Vec<String>,
}

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunName {
    /// Folder of the run.
    pub folder: PathBuf,
    pub recipe: String,
    pub tier: Option<String>,
    pub arm: String,
    pub seed: u64,
}

/// A property that differs; `None` where a run does not have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Different {
    /// Name of the property.
    pub what: String,
    /// Its value in each run, in words.
    #[serde(skip)]
    pub texts: [Option<String>; 2],
    /// Its value in each run, for programs.
    pub values: [Option<Value>; 2],
}

impl Different {
    fn new(what: impl Into<String>, texts: [Option<String>; 2], value: impl Fn(&str) -> Value) -> Self {
        let values = texts.each_ref().map(|text| text.as_deref().map(&value));
        Self { what: what.into(), texts, values }
    }
}

/// Training losses of the updates that both logs have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossDifferences {
    /// Number of lines with an update of both.
    pub common: usize,
    /// The first line whose losses differ.
    pub first: Option<Losses>,
    /// The line with the largest difference.
    pub largest: Option<Losses>,
    /// The last line that both have.
    pub last: Option<Losses>,
    /// Number of updates of each run in its log.
    pub updates: [u64; 2],
}

/// Losses of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Losses {
    /// The last update of the common line before; 0 for the first line.
    pub after: u64,
    /// The last update of the line.
    pub update: u64,
    /// The loss of each run.
    pub losses: [f64; 2],
}

/// A score of both runs.
#[derive(Debug, Clone, Serialize)]
pub struct ScoreDifference {
    /// Evaluation set.
    pub eval: String,
    /// Search.
    pub decode: String,
    /// Metric.
    pub metric: String,
    /// Convention.
    pub signature: String,
    /// The score of each run.
    pub values: [f64; 2],
    /// How much better the second run is, in the metric's unit; absent if the references differ.
    pub gain: Option<Gain>,
}

/// Gain of the second run over the first one, by resampling the test set in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// On the test set.
    pub observed: f64,
    /// 95 % interval of the test set's draw. It does not have the spread between seeds.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Compares two runs by their folders.
///
/// # Errors
/// A run cannot be opened.
pub fn diff(ctx: &Context, places: [&Path; 2]) -> Result<RunDifferences> {
    let [(one, recipe), (other, other_recipe)] = {
        let [one, other] = places.map(opened);
        [one?, other?]
    };
    let keys = recipe.differences(&other_recipe).into_iter();
    let mut found: Vec<Different> =
        keys.map(|key| Different::new(key.key, [key.base, key.arm], value_of_toml)).collect();
    let origins = [&one, &other].map(|run| run.card.transfer.as_ref().map(ToString::to_string));
    if origins[0] != origins[1] {
        found.push(Different::new("initial weights", origins, |text| text.into()));
    }
    let mut missing = Vec::new();
    let environment = one.card.environment.differences(&other.card.environment).into_iter();
    Ok(RunDifferences {
        names: [&one, &other].map(name),
        recipe: found,
        data: data(ctx, [&one, &other])?,
        environment: environment
            .map(|(what, one, other)| {
                Different::new(what, [Some(one), Some(other)], |text| Environment::value_of(what, text))
            })
            .collect(),
        losses: losses([&one, &other].map(|run| losses_by_update(&run.folder.join("log.jsonl")))),
        scores: scores([&one, &other], &mut missing)?,
        missing,
        runs: [one, other].map(|run| RunName {
            folder: run.folder,
            recipe: run.card.recipe,
            tier: run.card.tier,
            arm: run.card.arm,
            seed: run.card.seed,
        }),
    })
}

fn name(run: &Run) -> String {
    let card = &run.card;
    let tier = card.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
    format!("{}{tier}, {} seed {}", card.recipe, card.arm, card.seed)
}

/// Splits with different digests in the newest judged records of the runs.
fn data(ctx: &Context, runs: [&Run; 2]) -> Result<Option<Vec<Different>>> {
    let entries = ledger(ctx, None).entries()?;
    let of = |run: &Run| -> Option<BTreeMap<String, String>> {
        let mut records = entries.iter().rev().map(|entry| &entry.record);
        let is_of = |one: &RunRecord| ctx.runs_dir().join(&one.folder) == run.folder;
        records.find(|record| record.runs.iter().any(is_of)).map(|record| record.data.clone())
    };
    let [Some(one), Some(other)] = runs.map(of) else { return Ok(None) };
    let mut splits: Vec<&String> = one.keys().chain(other.keys()).collect();
    splits.sort_unstable();
    splits.dedup();
    let of_split = |split: &String| {
        Different::new(split.as_str(), [one.get(split).cloned(), other.get(split).cloned()], |text| {
            text.into()
        })
    };
    Ok(Some(splits.into_iter().map(of_split).filter(|found| found.values[0] != found.values[1]).collect()))
}

fn losses([one, other]: [BTreeMap<u64, f64>; 2]) -> LossDifferences {
    let mut found = LossDifferences {
        common: 0,
        first: None,
        largest: None,
        last: None,
        updates: [&one, &other].map(|losses| losses.keys().next_back().copied().unwrap_or(0)),
    };
    let mut after = 0;
    let apart = |losses: &Losses| (losses.losses[1] - losses.losses[0]).abs();
    for (&update, &loss) in &one {
        let Some(&of_other) = other.get(&update) else { continue };
        let line = Losses { after, update, losses: [loss, of_other] };
        found.common += 1;
        if loss.to_bits() != of_other.to_bits() {
            found.first.get_or_insert(line);
            if found.largest.as_ref().is_none_or(|largest| apart(&line) > apart(largest)) {
                found.largest = Some(line);
            }
        }
        found.last = Some(line);
        after = update;
    }
    found
}

fn scores(runs: [&Run; 2], missing: &mut Vec<String>) -> Result<Vec<ScoreDifference>> {
    let folders = runs.map(|run| run.folder.join("eval"));
    let [of_one, of_other] = [0, 1].map(|at| evaluations(&folders[at], missing));
    let mut found = Vec::new();
    for one in &of_one {
        let fits = |other: &&Evaluation| (&other.eval, &other.decode) == (&one.eval, &one.decode);
        let Some(other) = of_other.iter().find(fits) else {
            missing.push(format!("{} with {}: only the first run has scores", one.eval, one.decode));
            continue;
        };
        for value in &one.scores {
            let signature = value.signature.to_string();
            let same = other.scores.iter().find(|other| other.signature.to_string() == signature);
            let Some(of_other) = same else {
                missing.push(format!("{} with {}: only the first run has {signature}", one.eval, one.decode));
                continue;
            };
            let gain = match one.references_sha256 == other.references_sha256 {
                true => gain([(&folders[0], one), (&folders[1], other)], &signature)?,
                false => {
                    missing.push(format!("{} with {}: the references differ", one.eval, one.decode));
                    None
                }
            };
            found.push(ScoreDifference {
                eval: one.eval.clone(),
                decode: one.decode.clone(),
                metric: value.metric.to_string(),
                values: [value.value, of_other.value],
                signature,
                gain,
            });
        }
    }
    for other in &of_other {
        if !of_one.iter().any(|one| (&other.eval, &other.decode) == (&one.eval, &one.decode)) {
            missing.push(format!("{} with {}: only the second run has scores", other.eval, other.decode));
        }
    }
    Ok(found)
}

/// Gain of the second evaluation; `None` if the score is not one of segments that can be resampled.
fn gain(of: [(&PathBuf, &Evaluation); 2], signature: &str) -> Result<Option<Gain>> {
    let scorer = Scorer::from_signature(signature)?;
    let mut statistics = Vec::new();
    for (folder, evaluation) in of {
        let hypotheses = lines(&folder.join(&evaluation.hypotheses))?;
        let references = lines(&folder.join(&evaluation.references))?;
        statistics.push(scorer.statistics(&hypotheses, &[references])?);
    }
    let [one, other] = statistics.as_slice() else { return Ok(None) };
    // Too few segments to resample.
    let Ok(gain) = paired_gain(&[(one, other)], Resampling::default()) else { return Ok(None) };
    let (low, high) = (gain.lower_bound(0.975)?, gain.upper_bound(0.975)?);
    Ok(Some(Gain { observed: gain.observed, low, high }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_compared_where_both_logs_have_a_line() {
        let one = BTreeMap::from([(5, 2.0), (10, 1.5), (15, 1.0), (20, 0.5)]);
        let other = BTreeMap::from([(5, 2.0), (10, 1.25), (20, 1.5), (25, 1.0)]);
        let found = losses([one.clone(), other]);
        assert_eq!((found.common, found.updates), (3, [20, 25]));
        assert_eq!(found.first, Some(Losses { after: 5, update: 10, losses: [1.5, 1.25] }));
        let last = Some(Losses { after: 10, update: 20, losses: [0.5, 1.5] });
        assert_eq!((found.largest, found.last), (last, last));
        let same = losses([one.clone(), one]);
        assert_eq!((same.common, same.first, same.largest), (4, None, None));
        let none = losses([BTreeMap::new(), BTreeMap::new()]);
        assert_eq!((none.common, none.last, none.updates), (0, None, [0, 0]));
    }
}
