//! Section on the decoded outputs: scores, scores by length, and the sentences or utterances
//! themselves.

use zoo_recipes::{ClaimKind, ClaimSpec, Direction};

use super::curves::styles;
use super::markup::Markup;
use super::media;
use super::model::{EvaluationPart, Page};
use super::scores_chart::{self, Published, ScoreRow};
use super::sentences;
use super::tables::{missing, table, titles};
use super::utterances;
use crate::metrics::{Convention, ErrorRateOptions, ErrorReport, ErrorUnit, MetricValue, Source};
use crate::report::words::{duration, grouped};
use crate::verdict::{direction_of, number, signature_difference};

/// Each evaluation set with each search, all runs together.
pub(super) fn evaluations(markup: &mut Markup, page: &Page) {
    let last = || page.evaluations.iter().filter(|part| part.update.is_none());
    if last().next().is_none() {
        missing(markup, "No outputs were decoded yet.");
    }
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for part in last() {
        let group = (part.eval.as_str(), part.decode.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (at, (eval, decode)) in groups.into_iter().enumerate() {
        let parts: Vec<&EvaluationPart> =
            last().filter(|part| (part.eval.as_str(), part.decode.as_str()) == (eval, decode)).collect();
        markup.line();
        markup.element("section", &[("class", "evaluation")], |section| {
            section.leaf("h3", &[], &format!("{eval}, search {decode}"));
            group(section, page, at, &parts);
        });
    }
}

/// One set with one search.
fn group(markup: &mut Markup, page: &Page, group: usize, parts: &[&EvaluationPart]) {
    let name = |part: &EvaluationPart| page.runs.get(part.run).map_or_else(String::new, |run| run.name());
    let mut kinds: Vec<&MetricValue> = Vec::new();
    for score in parts.iter().flat_map(|part| &part.scores) {
        if !kinds.iter().any(|known| known.signature.convention == score.signature.convention) {
            kinds.push(score);
        }
    }
    for (at, kind) in kinds.into_iter().enumerate() {
        let convention = kind.signature.convention;
        let of = |part: &EvaluationPart| {
            part.scores.iter().find(|score| score.signature.convention == convention).cloned()
        };
        let scores: Vec<(&EvaluationPart, MetricValue)> =
            parts.iter().filter_map(|part| Some((*part, of(part)?))).collect();
        let title = format!("{} by run", kind.metric);
        markup.element("figure", &[], |figure| {
            figure.element("figcaption", &[], |caption| caption.leaf("strong", &[], &title));
            let published = published(&page.recipe.claims, parts[0], kind);
            let rows: Vec<ScoreRow> = rows(page, &scores);
            scores_chart::draw(figure, &format!("scores-{group}-{at}"), &title, &rows, &published);
            if !published.is_empty() {
                let names: Vec<&str> = published.iter().map(|one| one.name.as_str()).collect();
                figure.leaf("p", &[("class", "legend")], &format!("┆ {}", names.join("; ")));
            }
        });
        score_table(
            markup,
            &scores.iter().map(|(part, score)| (name(part), part.seconds, score.clone())).collect::<Vec<_>>(),
        );
        markup.leaf("p", &[("class", "signature")], &format!("Signature {}", kind.signature));
        match convention {
            Convention::ErrorRate(options) => errors(markup, &scores, options, name),
            convention if convention.metric().source() == Source::Text => {
                sentences::section(markup, &scores, convention, name)
            }
            _ => {}
        }
    }
    for part in parts.iter().filter(|part| !part.samples.is_empty()) {
        markup.element("section", &[], |section| {
            section.leaf("h4", &[], &format!("Samples, {}", name(part)));
            media::samples(section, &part.samples);
        });
    }
}

/// Error rates by length, the rate of the other unit, and the worst utterances.
fn errors(
    markup: &mut Markup,
    scores: &[(&EvaluationPart, MetricValue)],
    options: ErrorRateOptions,
    name: impl Fn(&EvaluationPart) -> String,
) {
    let has_characters = |part: &EvaluationPart| {
        part.scores.iter().any(|score| {
            matches!(
                score.signature.convention,
                Convention::ErrorRate(ErrorRateOptions { unit: ErrorUnit::Character, .. })
            )
        })
    };
    let mut reports = Vec::new();
    for (part, _) in scores {
        match ErrorReport::new(&part.hypotheses, &part.references, options) {
            Ok(report) => reports.push((name(part), report)),
            Err(error) => missing(markup, &format!("{}: {error}", name(part))),
        }
    }
    if options.unit == ErrorUnit::Word && !scores.iter().any(|(part, _)| has_characters(part)) {
        let characters = ErrorRateOptions { unit: ErrorUnit::Character, ..options };
        let rows: Vec<Vec<String>> = (scores.iter())
            .filter_map(|(part, _)| {
                let report = ErrorReport::new(&part.hypotheses, &part.references, characters).ok()?;
                let counts = report.counts().iter().copied().sum();
                Some(utterances::counted(name(part), counts))
            })
            .collect();
        table(
            markup,
            "Character error rate, which no claim is on",
            &utterances::counted_titles("run", "CER, %"),
            &rows,
        );
    }
    utterances::section(markup, &reports, options.unit);
}

fn rows(page: &Page, scores: &[(&EvaluationPart, MetricValue)]) -> Vec<ScoreRow> {
    let styles = styles(&page.runs);
    let row = |(part, score): &(&EvaluationPart, MetricValue)| {
        let run = page.runs.get(part.run)?;
        Some(ScoreRow {
            name: run.name(),
            style: styles[part.run],
            value: score.value,
            interval: score.interval.as_ref().map(|interval| (interval.lower, interval.upper)),
        })
    };
    scores.iter().filter_map(row).collect()
}

/// The published values of a score, for exactly the same convention.
fn published(claims: &[ClaimSpec], part: &EvaluationPart, score: &MetricValue) -> Vec<Published> {
    let fits = |claim: &&ClaimSpec| {
        matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound)
            && claim.is_of(&part.eval, &part.decode)
            && claim.signature.as_ref().is_some_and(|signature| {
                signature_difference(signature, &score.signature.to_string()).is_none()
            })
    };
    let one = |claim: &ClaimSpec| {
        let value = claim.value?;
        let worse = if direction_of(claim) == Some(Direction::Lower) { 1.0 } else { -1.0 };
        let arm = claim
            .arm
            .as_deref()
            .filter(|arm| *arm != "any")
            .map_or_else(String::new, |arm| format!(", {arm}"));
        let within = claim.margin.map_or_else(String::new, |margin| format!(", margin {}", number(margin)));
        let what = if claim.kind == ClaimKind::Bound { "published bound" } else { "published" };
        let name = format!("{what} {}{arm}{within}", number(value));
        Some(Published { name, value, margin: claim.margin.map(|margin| value + worse * margin) })
    };
    claims.iter().filter(fits).filter_map(one).collect()
}

/// Scores, intervals, and the parts of the scores.
fn score_table(markup: &mut Markup, scores: &[(String, f64, MetricValue)]) {
    let Some((_, _, first)) = scores.first() else { return };
    let mut heads = titles(["run", &first.metric.to_string(), "95 % from", "to"]);
    let is_rate = matches!(first.signature.convention, Convention::ErrorRate(_));
    if is_rate {
        heads.extend(titles(["errors", "substituted", "deleted", "inserted", "reference units"]));
    } else {
        heads.extend(titles(["made of"]));
    }
    heads.extend(titles(["segments", "decoding"]));
    let row = |(name, seconds, score): &(String, f64, MetricValue)| {
        let interval = score.interval.as_ref();
        let end = |pick: fn(&crate::metrics::Interval) -> f64| {
            interval.map_or_else(|| "-".to_owned(), |i| format!("{:.2}", pick(i)))
        };
        let count = |key: &str| score.detail[key].as_u64().map_or_else(|| "-".to_owned(), grouped);
        let mut row = vec![name.clone(), format!("{:.2}", score.value), end(|i| i.lower), end(|i| i.upper)];
        match is_rate {
            true => row.extend(
                ["errors", "substitutions", "deletions", "insertions", "reference_length"].map(count),
            ),
            false => row.push(score.detail["line"].as_str().unwrap_or("-").to_owned()),
        }
        row.extend([count("segments"), duration(*seconds)]);
        row
    };
    let rows: Vec<Vec<String>> = scores.iter().map(row).collect();
    table(markup, &format!("Scores: {}", first.metric), &heads, &rows);
}
