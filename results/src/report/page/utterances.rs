//! Error rates by length, and alignments of the worst utterances.

use super::markup::Markup;
use super::tables::{missing, table, titles};
use crate::metrics::{Edit, EditCounts, ErrorReport, ErrorUnit, LengthClass, Step, Utterance};
use crate::report::words::grouped;

/// Upper ends of the length classes of references, in units.
const LENGTHS: [u64; 5] = [2, 5, 10, 20, 40];
/// Number of utterances shown for a run.
const WORST: usize = 10;
/// Maximum number of alignment steps that are shown.
const LONGEST: usize = 400;

/// Writes the section for each run, given by its name.
pub(super) fn section(markup: &mut Markup, reports: &[(String, ErrorReport<'_>)], unit: ErrorUnit) {
    let (unit, rate) = match unit {
        ErrorUnit::Word => ("words", "WER, %"),
        ErrorUnit::Character => ("characters", "CER, %"),
    };
    by_length(markup, reports, unit, rate);
    markup.leaf("h4", &[], "Worst utterances");
    markup.element("p", &[("class", "key")], |p| {
        p.text("Reference above, hypothesis below. ");
        for (edit, text) in [
            (Edit::Substitution, "substituted in the hypothesis"),
            (Edit::Deletion, "it is missing in the hypothesis"),
            (Edit::Insertion, "inserted in the hypothesis"),
        ] {
            p.leaf("span", &[("class", class(edit))], sign(edit));
            p.text(&format!(" {text}. "));
        }
    });
    for (at, (name, report)) in reports.iter().enumerate() {
        let worst = report.worst(WORST);
        let open: &[(&str, &str)] = if at == 0 { &[("open", "")] } else { &[] };
        markup.line();
        markup.element("details", open, |details| {
            details.leaf(
                "summary",
                &[],
                &format!("{name}: {} of {} utterances have errors", wrong(report), report.counts().len()),
            );
            if worst.is_empty() {
                missing(details, "Every utterance is right.");
            }
            for one in &worst {
                utterance(details, one);
            }
        });
    }
}

fn wrong(report: &ErrorReport<'_>) -> usize {
    report.counts().iter().filter(|counts| counts.errors() > 0).count()
}

fn by_length(markup: &mut Markup, reports: &[(String, ErrorReport<'_>)], unit: &str, rate: &str) {
    let mut rows = Vec::new();
    for (name, report) in reports {
        for LengthClass { from, to, utterances, counts } in report.by_length(&LENGTHS) {
            let mut row = counted(
                format!("{from} to {}", to.map_or_else(|| "more".to_owned(), |to| to.to_string())),
                counts,
            );
            row.insert(1, name.clone());
            row.push(grouped(utterances as u64));
            rows.push((from, row));
        }
    }
    rows.sort_by_key(|(from, _)| *from);
    let mut heads = counted_titles(unit, rate);
    heads.insert(1, "run".into());
    heads.push("utterances".into());
    table(
        markup,
        "Error rate by length of the reference",
        &heads,
        &rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>(),
    );
}

/// A row with a name and its counts.
pub(super) fn counted(name: String, counts: EditCounts) -> Vec<String> {
    let numbers = [
        counts.errors(),
        counts.substitutions,
        counts.deletions,
        counts.insertions,
        counts.reference_length(),
    ];
    [name, format!("{:.2}", counts.rate())].into_iter().chain(numbers.map(grouped)).collect()
}

/// The titles of the columns of [`counted`].
pub(super) fn counted_titles(name: &str, rate: &str) -> Vec<String> {
    titles([name, rate, "errors", "substituted", "deleted", "inserted", "reference units"])
}

fn utterance(markup: &mut Markup, Utterance { line, counts, alignment }: &Utterance) {
    markup.element("article", &[("class", "utterance")], |article| {
        article.leaf("h5", &[], &format!("Line {line}: {counts}"));
        article.element("p", &[("class", "alignment")], |p| {
            for step in alignment.steps.iter().take(LONGEST) {
                p.element("span", &[("class", class(step.edit))], |span| aligned(span, step));
                p.text(" ");
            }
        });
        if alignment.steps.len() > LONGEST {
            missing(article, &format!("{} further units are not shown.", alignment.steps.len() - LONGEST));
        }
    });
}

/// Reference, hypothesis and sign of a step, one below the other.
fn aligned(markup: &mut Markup, step: &Step) {
    let text = |side: &Option<String>| match side {
        None => "∗".to_owned(),
        // A space that is a unit.
        Some(unit) if unit.trim().is_empty() => "␣".to_owned(),
        Some(unit) => unit.clone(),
    };
    markup.leaf("bdi", &[], &text(&step.reference));
    markup.leaf("bdi", &[], &text(&step.hypothesis));
    if step.edit != Edit::Hit {
        let name = match step.edit {
            Edit::Substitution => "substituted",
            Edit::Deletion => "deleted",
            _ => "inserted",
        };
        markup.leaf("b", &[("title", name)], sign(step.edit));
    }
}

fn class(edit: Edit) -> &'static str {
    match edit {
        Edit::Hit => "step",
        Edit::Substitution => "step sub",
        Edit::Deletion => "step del",
        Edit::Insertion => "step ins",
    }
}

fn sign(edit: Edit) -> &'static str {
    match edit {
        Edit::Hit => "",
        Edit::Substitution => "S",
        Edit::Deletion => "D",
        Edit::Insertion => "I",
    }
}
