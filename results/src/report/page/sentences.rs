//! Scores by length, and sentences with their sources: the worst ones and a random selection.

use super::markup::Markup;
use super::model::EvaluationPart;
use super::tables::{missing, table, titles};
use crate::metrics::{Convention, MetricValue, ScoredLength, SentenceReport, SentenceScore, Signature};
use crate::report::words::grouped;

/// Upper ends of the length classes of references, in words.
const LENGTHS: [u64; 5] = [10, 20, 30, 40, 60];
/// Number of sentences shown for a run, of each kind.
const SHOWN: usize = 10;
/// Maximum characters of a line that are shown.
const LONGEST: usize = 2000;

/// Writes the section for each run, given by its name.
pub(super) fn section(
    markup: &mut Markup,
    scores: &[(&EvaluationPart, MetricValue)],
    convention: Convention,
    name: impl Fn(&EvaluationPart) -> String,
) {
    let mut reports = Vec::new();
    for (part, _) in scores {
        match SentenceReport::new(&part.hypotheses, &part.references, convention) {
            Ok(report) => reports.push((*part, report)),
            Err(error) => missing(markup, &format!("{}: {error}", name(part))),
        }
    }
    let Some((first, report)) = reports.first() else { return };
    let metric = convention.entry();
    let mut rows = Vec::new();
    for (part, report) in &reports {
        for ScoredLength { from, to, sentences, score } in report.by_length(&LENGTHS) {
            let class = format!("{from} to {}", to.map_or_else(|| "more".to_owned(), |to| to.to_string()));
            rows.push((from, vec![class, name(part), format!("{score:.2}"), grouped(sentences as u64)]));
        }
    }
    rows.sort_by_key(|(from, _)| *from);
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let heads = titles(["words", "run", &metric.to_string(), "sentences"]);
    table(markup, &format!("{metric} by length of the reference"), &heads, &rows);
    markup.leaf("h4", &[], "Sentences");
    let signature = Signature::own(*report.convention(), Some(1));
    markup.leaf(
        "p",
        &[],
        &format!("Each is scored by itself: {} ({signature}).", report.convention().entry()),
    );
    if first.sources.is_none() {
        missing(markup, "The source text is not available.");
    }
    for (at, (part, report)) in reports.iter().enumerate() {
        let open: &[(&str, &str)] = if at == 0 { &[("open", "")] } else { &[] };
        for (open, what, found) in
            [(open, "the worst", report.worst(SHOWN)), (&[], "drawn at random", report.drawn(SHOWN))]
        {
            markup.line();
            markup.element("details", open, |details| {
                details.leaf("summary", &[], &format!("{}: {} sentences, {what}", name(part), found.len()));
                found.iter().for_each(|one| sentence(details, part, *one));
            });
        }
    }
}

fn sentence(markup: &mut Markup, part: &EvaluationPart, SentenceScore { line, score }: SentenceScore) {
    let of = |lines: &[String]| -> Option<String> {
        let text = lines.get(line - 1)?;
        let cut: String = text.chars().take(LONGEST).collect();
        Some(if cut.len() < text.len() { format!("{cut} …") } else { cut })
    };
    markup.element("article", &[("class", "sentence")], |article| {
        article.leaf("h5", &[], &format!("Line {line}: {score:.2}"));
        article.element("dl", &[], |dl| {
            for (name, text) in [
                ("source", part.sources.as_deref().and_then(of)),
                ("reference", of(&part.references)),
                ("hypothesis", of(&part.hypotheses)),
            ] {
                let Some(text) = text else { continue };
                dl.element("div", &[], |div| {
                    div.leaf("dt", &[], name);
                    match text.is_empty() {
                        true => div.leaf("dd", &[("class", "missing")], "empty"),
                        false => div.leaf("dd", &[("dir", "auto")], &text),
                    }
                });
            }
        });
    });
}
