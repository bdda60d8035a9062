//! Head of the page: the recipe, its verdicts, its runs, and their environment.

use zoo_recipes::Statement;

use super::markup::Markup;
use super::model::{JudgedPart, Page, RunPart};
use super::tables::{facts, missing, table};
use crate::report::tally::ByStatement;
use crate::verdict::{Outcome, Verdict, number};

/// Title, summary and a one-line outcome for every claim.
pub(super) fn header(markup: &mut Markup, page: &Page) {
    let recipe = &page.recipe;
    markup.element("header", &[], |header| {
        header.leaf("h1", &[], &title(page));
        header.leaf("p", &[("class", "summary")], &recipe.summary);
        facts(
            header,
            [
                ("task", recipe.task.as_str()),
                ("published", &recipe.origin),
                ("tier", recipe.tier.as_deref().unwrap_or("the published size")),
                ("changed", &recipe.overrides.join(", ")),
                ("runs", &page.runs.iter().map(RunPart::name).collect::<Vec<_>>().join("; ")),
            ],
        );
        header.element("ul", &[("class", "outcomes"), ("aria-label", "Verdicts")], |ul| {
            for judged in &page.verdicts.judged {
                ul.element("li", &[], |li| {
                    badge(li, judged.verdict.outcome);
                    li.text(&format!(
                        " {} claim {}, {}",
                        judged.verdict.statement().name(),
                        judged.number,
                        judged.verdict.metric
                    ));
                    if !judged.arm.is_empty() {
                        li.text(&format!(", {}", judged.arm));
                    }
                });
            }
        });
    });
}

/// The title: `yesno-tdnn`, `yesno-tdnn, tier smoke`.
pub(super) fn title(page: &Page) -> String {
    match &page.recipe.tier {
        Some(tier) => format!("{}, tier {tier}", page.recipe.name),
        None => page.recipe.name.clone(),
    }
}

fn badge(markup: &mut Markup, outcome: Outcome) {
    // Signs accompany the colours, so that no outcome is shown by colour alone.
    let (class, sign) = match outcome {
        Outcome::Reproduced => ("good", "✓"),
        Outcome::NotReproduced => ("bad", "✗"),
        Outcome::Inconclusive => ("open", "?"),
        Outcome::NotComparable => ("none", "≠"),
        Outcome::NotRun => ("none", "–"),
        Outcome::NotJudgeable => ("none", "∅"),
    };
    markup.element("span", &[("class", &format!("badge {class}"))], |span| {
        span.leaf("span", &[("aria-hidden", "true")], sign);
        span.text(&format!(" {outcome}"));
    });
}

/// Each claim with its verdict.
pub(super) fn verdicts(markup: &mut Markup, page: &Page) {
    markup.leaf("p", &[], &page.verdicts.from);
    if page.verdicts.judged.is_empty() {
        missing(markup, "No claim was judged.");
    }
    for statement in Statement::ALL {
        let of = || page.verdicts.judged.iter().filter(|judged| judged.verdict.statement() == statement);
        if of().next().is_some() {
            let tally = ByStatement::of_verdicts(of().map(|judged| &judged.verdict));
            markup.leaf("h3", &[], &tally.lines().concat());
            of().for_each(|judged| verdict(markup, judged, page));
        }
    }
}

fn verdict(markup: &mut Markup, judged: &JudgedPart, page: &Page) {
    let Verdict { outcome, explanation, published, target, measured, shortfall, seeds, .. } = &judged.verdict;
    let or_none = |value: &Option<f64>| value.map(number).unwrap_or_default();
    let bounds = match (judged.verdict.shortfall_low, judged.verdict.shortfall_high, shortfall) {
        (Some(low), Some(high), Some(mean)) => {
            let margin = judged
                .verdict
                .margin
                .map_or_else(String::new, |margin| format!("; margin {}", number(margin)));
            format!("{} ({} to {}){margin}", number(*mean), number(low), number(high))
        }
        _ => String::new(),
    };
    let claim = judged.number.checked_sub(1).and_then(|at| page.recipe.claims.get(at));
    let reason = |number: Option<f64>, reason: Option<&String>| match (number, reason) {
        (Some(value), Some(reason)) => format!("{value}: {reason}"),
        _ => String::new(),
    };
    let target = target.filter(|target| Some(*target) != *published);
    markup.line();
    markup.element("article", &[("class", "verdict")], |article| {
        article.element("h4", &[], |h4| {
            badge(h4, *outcome);
            h4.text(&format!(" Claim {}: {}", judged.number, judged.statement));
        });
        article.leaf("p", &[], explanation);
        facts(
            article,
            [
                ("published", or_none(published).as_str()),
                ("as a mean", &or_none(&target)),
                ("measured", &or_none(measured)),
                ("seeds", &seeds.to_string()),
                ("worse by", &bounds),
                (
                    "margin",
                    &reason(claim.and_then(|c| c.margin), claim.and_then(|c| c.margin_reason.as_ref())),
                ),
                (
                    "sigma assumed",
                    &reason(claim.and_then(|c| c.assumed_sigma), claim.and_then(|c| c.sigma_reason.as_ref())),
                ),
                ("checked because", judged.verdict.own.as_deref().unwrap_or_default()),
                ("source", &judged.verdict.source),
                ("note", claim.and_then(|claim| claim.note.as_deref()).unwrap_or_default()),
                ("to know", &judged.verdict.notes.join("; ")),
            ],
        );
    });
}

/// The runs side by side.
pub(super) fn runs(markup: &mut Markup, runs: &[RunPart]) {
    side_by_side(markup, "Runs", runs, |run| {
        let state = [("state".to_owned(), run.state.clone())];
        state.into_iter().chain(run.numbers.iter().cloned()).collect()
    });
}

/// Device, precision and program.
pub(super) fn environment(markup: &mut Markup, runs: &[RunPart]) {
    side_by_side(markup, "Environment", runs, |run| run.environment.clone());
}

/// A table with a column for each run. Facts common to all runs are in a list before it.
fn side_by_side(
    markup: &mut Markup,
    caption: &str,
    runs: &[RunPart],
    of: impl Fn(&RunPart) -> Vec<(String, String)>,
) {
    let columns: Vec<Vec<(String, String)>> = runs.iter().map(of).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in columns.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |column: &Vec<(String, String)>, name: &String| {
        column
            .iter()
            .find(|(known, _)| known == name)
            .map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
    };
    let row = |name: &String| -> Vec<String> { columns.iter().map(|column| value(column, name)).collect() };
    let is_common = |name: &&String| row(name).windows(2).all(|pair| pair[0] == pair[1]);
    let (common, own): (Vec<&String>, Vec<&String>) = names.into_iter().partition(is_common);
    let common: Vec<(&String, String)> =
        common.into_iter().map(|name| (name, row(name).into_iter().next().unwrap_or_default())).collect();
    if !common.is_empty() {
        facts(markup, common.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    }
    if !own.is_empty() {
        let titles: Vec<String> =
            std::iter::once(String::from("run")).chain(own.iter().map(|name| (*name).clone())).collect();
        let rows: Vec<Vec<String>> = runs
            .iter()
            .zip(&columns)
            .map(|(run, column)| {
                std::iter::once(run.name()).chain(own.iter().map(|name| value(column, name))).collect()
            })
            .collect();
        table(markup, caption, &titles, &rows);
    }
}
