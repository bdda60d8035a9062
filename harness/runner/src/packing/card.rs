//! The model card: a README with metadata as model hubs read it (`model-index`).

use std::fmt::Write;

use serde_json::{Map, Value, json};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::untrusted::{escaped, one_line};
use zoo_recipes::{ClaimSpec, Recipe, Statement};
use zoo_results::ledger::{Entry, Judgement};
use zoo_results::metrics::MetricValue;
use zoo_results::report::{grouped, uncounted};

use super::BUNDLE;
use crate::run::evaluate::Evaluation;
use crate::run::folder::{Run, Trained};
use crate::task::Task;
use crate::wording::{claim_line, ended};

/// Licence of weights for which none was named.
const OTHER: &str = "other";

/// What the card says.
pub struct Card<'a> {
    /// Name of the package.
    pub name: &'a str,
    pub run: &'a Run,
    pub recipe: &'a Recipe,
    pub task: &'a dyn Task,
    pub trained: &'a Trained,
    /// Evaluations of the run.
    pub evaluations: &'a [Evaluation],
    /// The newest record of the run.
    pub entry: Option<&'a Entry>,
    /// Whether the package has the record with its evidence.
    pub has_bundle: bool,
    /// The corpus of the recipe; `None` for generated data and own files.
    pub corpus: Option<&'a CorpusDefinition>,
    /// Licence of the weights, as Hugging Face names licences.
    pub licence: Option<&'a str>,
    /// Number of values of the weights.
    pub parameters: usize,
}

/// Text of the card.
pub fn model_card(card: &Card<'_>) -> String {
    let mut text = String::from("---\n");
    yaml(&mut text, &metadata(card), 0);
    text.push_str("---\n\n");
    body(&mut text, card);
    text
}

/// Metadata of the card: keys of Hugging Face's model cards.
fn metadata(card: &Card<'_>) -> Value {
    let mut facts = Map::new();
    facts.insert("license".into(), card.licence.unwrap_or(OTHER).into());
    if let (None, Some(corpus)) = (card.licence, card.corpus) {
        facts.insert("license_name".into(), format!("terms-of-{}", corpus.name).into());
        facts.insert("license_link".into(), corpus.licence.source.as_str().into());
    }
    // A name of two or three letters is a language's code.
    let languages = card.recipe.data().languages();
    let codes: Vec<&str> = languages.into_iter().filter(|code| (2..=3).contains(&code.len())).collect();
    if !codes.is_empty() {
        facts.insert("language".into(), codes.into());
    }
    let about = &card.recipe.recipe;
    let own = ["zoo", about.name.as_str()].into_iter();
    let mut tags: Vec<&str> = own.chain(about.tags.iter().map(String::as_str)).collect();
    tags.sort_unstable();
    tags.dedup();
    facts.insert("tags".into(), tags.into());
    facts.insert("library_name".into(), "zoo".into());
    facts.insert("pipeline_tag".into(), card.task.hub_name().into());
    let results = results(card);
    if !results.is_empty() {
        facts.insert("model-index".into(), json!([{ "name": card.name, "results": results }]));
    }
    Value::Object(facts)
}

/// One result for each score of each evaluation.
fn results(card: &Card<'_>) -> Vec<Value> {
    let of_set = |evaluation: &Evaluation| -> Vec<Value> {
        let data = card.recipe.data();
        let split = data.eval_set(&evaluation.eval).map(|set| set.split.to_owned());
        let corpus = card.corpus.map_or("own", |corpus| corpus.name.as_str());
        let dataset =
            json!({ "type": corpus, "name": format!("{corpus}, {}", evaluation.eval), "split": split });
        let of_score = |score: &MetricValue| {
            let mut arguments = Map::new();
            arguments.insert("signature".into(), score.signature.to_string().into());
            arguments.insert("search".into(), evaluation.decode.as_str().into());
            arguments.insert("seed".into(), card.run.card.seed.into());
            if let Some(judged) = judged(card, evaluation, score) {
                let verdict = &judged.verdict;
                arguments.insert("verdict".into(), verdict.outcome.to_string().into());
                arguments.insert("statement".into(), judged.claim.statement().name().into());
                arguments.insert("published".into(), json!(verdict.published));
                arguments.insert("verdict_seeds".into(), verdict.seeds.into());
                let counted = card.entry.is_some_and(|entry| uncounted(&entry.record).is_none());
                arguments.insert("verdict_counted".into(), counted.into());
            }
            json!({
                "task": { "type": card.task.hub_name(), "name": card.task.name() },
                "dataset": dataset,
                "metrics": [{
                    "type": score.metric.name, "name": format!("{}, {}", score.metric.name, evaluation.decode),
                    "value": score.value, "args": arguments,
                }],
            })
        };
        evaluation.scores.iter().map(of_score).collect()
    };
    // Scores of a point during training are not those of these weights.
    card.evaluations.iter().filter(|one| one.update.is_none()).flat_map(of_set).collect()
}

/// The first judgement on the claim that a score answers, in the arm of the run.
fn judged<'c>(card: &Card<'c>, evaluation: &Evaluation, score: &MetricValue) -> Option<&'c Judgement> {
    let arm = card.run.card.arm.as_str();
    let entry = card.entry?;
    entry.record.judgements.iter().find(|judged| {
        let (claim, evidence) = (&judged.claim, &judged.evidence);
        evaluation.is_of(claim)
            && claim.metric == score.metric.name
            && evidence.arm.as_deref().or(judged.verdict.arm.as_deref()) == Some(arm)
            && evidence.signature.as_ref().is_none_or(|known| *known == score.signature.to_string())
    })
}

fn body(text: &mut String, card: &Card<'_>) {
    let Card { run, recipe, trained, .. } = card;
    let (about, identity) = (&recipe.recipe, &run.card);
    let mut line = |line: &str| {
        text.push_str(&escaped(line));
        text.push('\n');
    };
    line(&format!("# {}\n", card.name));
    line(&format!("{}\n", one_line(&about.summary)));
    let mut row = |name: &str, value: String| line(&format!("| {name} | {} |", cell(&value)));
    row("", String::new());
    row("---", "---".to_owned());
    row("recipe", format!("`{}`, {}", about.name, one_line(&about.origin)));
    row(
        "size",
        identity
            .tier
            .as_ref()
            .map_or_else(|| "as published".to_owned(), |tier| format!("tier {tier}, not the published size")),
    );
    row("arm", format!("{}, products in {}", identity.arm, identity.compute));
    row("seed", identity.seed.to_string());
    row("values of the weights", grouped(card.parameters as u64));
    let epochs = match trained.epochs {
        1 => "1 epoch".to_owned(),
        epochs => format!("{} epochs", grouped(epochs)),
    };
    row("training", format!("{} updates, {epochs}, {}", grouped(trained.updates), ended(&trained.ending)));
    let environment = &identity.environment;
    row("trained on", format!("{}, {}", environment.device, environment.processor));
    let dirty = if environment.dirty { ", sources changed" } else { "" };
    row("program", format!("zoo {}, commit {}{dirty}", environment.version, environment.commit));
    if !identity.overrides.is_empty() {
        row("changed", identity.overrides.join(", "));
    }
    if let Some(corpus) = card.corpus {
        row("data", format!("{}, {}", corpus.name, corpus.homepage));
        row(
            "licence of the data",
            format!("{} ({})", one_line(&corpus.licence.terms), corpus.licence.source),
        );
    } else if let Some(generated) = card.task.generated() {
        row("data", format!("generated: {generated}"));
    } else {
        row("data", "files of the author".to_owned());
    }
    line("\n## Use\n");
    line("The program zoo reads this folder. It needs no other data.\n");
    line("```console");
    line(&format!("$ zoo {}", card.task.example_use().replace("MODEL", ".")));
    line("$ zoo pack --check .");
    line("```");
    line("\n`model.safetensors` holds the weights in FP32 under the parameter paths of zoo.");
    scores(&mut line, card);
    verdicts(&mut line, card);
    if !about.differs.is_empty() {
        line("\n## Differences from the source\n");
        about.differs.iter().for_each(|differs| line(&format!("- {}", one_line(differs))));
    }
}

fn scores(line: &mut impl FnMut(&str), card: &Card<'_>) {
    let evaluations: Vec<&Evaluation> = card.evaluations.iter().filter(|one| one.update.is_none()).collect();
    if evaluations.is_empty() {
        return;
    }
    line("\n## Scores of these weights\n");
    line("| set | search | metric | score | 95 % interval of the test set | signature |");
    line("|---|---|---|---|---|---|");
    for evaluation in evaluations {
        for score in &evaluation.scores {
            let interval = score.interval.as_ref();
            let interval = interval
                .map_or_else(String::new, |found| format!("{:.2} to {:.2}", found.lower, found.upper));
            line(&format!(
                "| {} | {} | {} | {:.2} | {interval} | `{}` |",
                cell(&evaluation.eval),
                cell(&evaluation.decode),
                score.metric.name,
                score.value,
                cell(&score.signature.to_string())
            ));
        }
    }
}

fn verdicts(line: &mut impl FnMut(&str), card: &Card<'_>) {
    line("\n## Verdicts\n");
    let Some(entry) = card.entry else {
        line("No record judges these weights.");
        return;
    };
    let record = &entry.record;
    let seeds: Vec<String> = record.seeds.iter().map(u64::to_string).collect();
    line(&format!(
        "Record `{}` of {} judged all runs with the seeds {} together. A verdict concerns the recipe, not these weights alone.\n",
        &entry.hash[..12.min(entry.hash.len())],
        record.time,
        seeds.join(", ")
    ));
    if let Some(why) = uncounted(record) {
        line(&format!("The tables of zoo do not count these verdicts: {why}.\n"));
    }
    line("| claim | by | published | measured | seeds | verdict |");
    line("|---|---|---|---|---|---|");
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    for Judgement { claim, verdict, .. } in &record.judgements {
        line(&format!(
            "| {} | {} | {} | {} | {} | {} |",
            cell(&claim_line(claim)),
            maker(claim),
            claim.value.map_or_else(String::new, |value| value.to_string()),
            number(verdict.measured),
            verdict.seeds,
            verdict.outcome
        ));
    }
    if card.has_bundle {
        line(&format!(
            "\n`{BUNDLE}` has the record, the recipe and the outputs; `zoo ledger recheck {BUNDLE}` derives scores and verdicts again."
        ));
    }
}

/// Who makes a claim.
fn maker(claim: &ClaimSpec) -> &'static str {
    match claim.statement() {
        Statement::Published => "the source",
        Statement::Extended => "the source, of a sibling",
        Statement::Own => "this project",
    }
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// Writes a value as YAML in blocks. Strings are quoted as in JSON, which YAML reads too.
fn yaml(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = write!(text, "{indent}{key}:");
                nested(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(_) | Value::Array(_) => {
                        let mut inner = String::new();
                        yaml(&mut inner, item, depth + 1);
                        // The first line of the item follows the dash.
                        let _ = write!(text, "{indent}- {}", inner.trim_start());
                    }
                    scalar => {
                        let _ = writeln!(text, "{indent}- {}", quoted(scalar));
                    }
                }
            }
        }
        scalar => {
            let _ = writeln!(text, "{indent}{}", quoted(scalar));
        }
    }
}

/// The value after a key.
fn nested(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            yaml(text, value, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            yaml(text, value, depth);
        }
        scalar => {
            let _ = writeln!(text, " {}", quoted(scalar));
        }
    }
}

fn quoted(value: &Value) -> String {
    match value {
        // Control characters that JSON leaves as they are, YAML refuses.
        Value::String(text) => Value::String(escaped(text).into_owned()).to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_has_blocks_and_quoted_strings() {
        let mut text = String::new();
        yaml(
            &mut text,
            &json!({
                "a": "x: \"y\" # z", "tags": ["t", "u"], "none": null, "empty": [],
                "list": [{ "k": 1, "deep": { "v": 2.5, "w": ["s"] } }, { "k": 2 }],
            }),
            0,
        );
        assert_eq!(
            text,
            r##"a: "x: \"y\" # z"
tags:
- "t"
- "u"
none: null
empty: []
list:
- k: 1
  deep:
    v: 2.5
    w:
    - "s"
- k: 2
"##
        );
    }
}
