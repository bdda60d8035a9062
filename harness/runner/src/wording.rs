//! Claims and verdicts as text.

use serde::{Deserialize, Serialize};
use zoo_recipes::{ClaimKind, ClaimSpec, Direction, Recipe, Statement, Statistic};
use zoo_results::report::heading;
use zoo_results::verdict::{Verdict, direction_of, judgeable};
use zoo_training::state::Ending;

/// Text of a claim, e.g. `bleu 27.5 on test with beam4, arm any, single run`.
pub fn claim_line(claim: &ClaimSpec) -> String {
    let value = claim.value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    let arm = claim.arm.as_deref().unwrap_or("any");
    let baseline = claim.baseline.as_deref().unwrap_or("fp32");
    let metric = &claim.metric;
    let mut text = match claim.kind {
        ClaimKind::Value => format!("{metric} {value}"),
        ClaimKind::Bound => match direction_of(claim) {
            Some(Direction::Lower) => format!("{metric} below {value}"),
            _ => format!("{metric} above {value}"),
        },
        ClaimKind::Parity => format!("{metric} of {arm} no worse than of {baseline}"),
        ClaimKind::Ratio => format!("{metric} of {arm} {value} times that of {baseline}"),
        ClaimKind::Relation => {
            format!("{metric} against {}", claim.other.as_deref().unwrap_or("another recipe"))
        }
        ClaimKind::Trajectory => format!("{metric} at {} points on the way", claim.points.len()),
        ClaimKind::Diverges => format!("training of {arm} diverges"),
        ClaimKind::Memory => format!("{metric} {value} times that of {baseline}"),
    };
    if let Some(eval) = &claim.eval {
        text.push_str(&format!(" on {eval}"));
    }
    if let Some(decode) = &claim.decode {
        text.push_str(&format!(" with {decode}"));
    }
    if matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound) {
        text.push_str(&format!(", arm {arm}"));
    }
    match (claim.statistic, claim.n) {
        (Statistic::Unstated, _) => {}
        (Statistic::Single, _) => text.push_str(", single run"),
        (Statistic::Mean, n) => text.push_str(&format!(", mean of {}", n.unwrap_or(0))),
        (Statistic::Best, n) => text.push_str(&format!(", best of {}", n.unwrap_or(0))),
    }
    if let Some(hardware) = &claim.hardware {
        text.push_str(&format!(", {hardware}"));
    }
    if let Some(signature) = &claim.signature {
        text.push_str(&format!(" ({signature})"));
    }
    text
}

/// How the training of a run ended.
pub fn ended(ending: &Ending) -> String {
    match ending {
        Ending::MaxUpdates => "ended after its updates".to_owned(),
        Ending::MaxEpochs => "ended after its epochs".to_owned(),
        Ending::Patience => "ended: validation no longer improved".to_owned(),
        Ending::Rate => "ended: the learning rate fell below its minimum".to_owned(),
        Ending::OffCourse { at } => format!("stopped at {at}: too far from the published trajectory"),
        Ending::Diverged { phase } => format!("diverged ({phase})"),
    }
}

/// Text of a claim for the judged arm.
pub fn claim_line_in(claim: &ClaimSpec, arm: &str) -> String {
    claim_line(claim).replacen("arm any", &format!("arm {arm} (any)"), 1)
}

/// A claim as several lines: statement, margin, sigma, source and notes.
pub fn claim_text(number: usize, claim: &ClaimSpec) -> String {
    let mut text = format!("{number}  {}\n", claim_line(claim));
    let reasoned = |what: &str, value: Option<f64>, reason: &Option<String>| {
        let because = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        value.map(|value| format!("   {what} {value}{because}\n")).unwrap_or_default()
    };
    text.push_str(&reasoned("margin", claim.margin, &claim.margin_reason));
    text.push_str(&reasoned("margin, share of the error", claim.margin_of_error, &claim.margin_reason));
    text.push_str(&reasoned("sigma", claim.sigma, &None));
    if let Some(row) = &claim.spread {
        text.push_str(&format!("   sigma measured, row {row}\n"));
    }
    text.push_str(&reasoned("sigma assumed", claim.assumed_sigma, &claim.sigma_reason));
    text.push_str(&format!("   source {}\n", claim.source));
    if let Some(sibling) = &claim.extends {
        text.push_str(&format!("   published for {sibling}, applied to this configuration\n"));
    }
    if let Some(why) = &claim.own {
        text.push_str(&format!("   own check: not published for this system; {why}\n"));
    }
    if let Err(reason) = judgeable(claim) {
        text.push_str(&format!("   not judgeable: {reason}\n"));
    }
    if let Some(note) = &claim.note {
        text.push_str(&format!("   note {note}\n"));
    }
    text
}

/// Numbers of a recipe's claims by kind of statement, and of claims that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimCounts {
    /// Counts in the order of [`Statement::ALL`].
    pub statements: [u64; 3],
    /// Number of claims that cannot be judged. Each is also counted in `statements`.
    pub not_judgeable: u64,
}

impl ClaimCounts {
    /// Column titles for `output::columns`.
    pub const TITLES: [&str; 4] = ["#published", "#extended", "#own", "#not judgeable"];

    /// Counts the claims of a recipe.
    pub fn of(recipe: &Recipe) -> Self {
        let count =
            |of: &dyn Fn(&ClaimSpec) -> bool| recipe.claim.iter().filter(|claim| of(claim)).count() as u64;
        Self {
            statements: Statement::ALL.map(|statement| count(&|claim| claim.statement() == statement)),
            not_judgeable: count(&|claim| judgeable(claim).is_err()),
        }
    }

    /// The counts in the order of the titles.
    pub fn numbers(&self) -> [u64; 4] {
        let [published, extended, own] = self.statements;
        [published, extended, own, self.not_judgeable]
    }
}

/// Texts of claims or verdicts under the heading of their kind of statement. Kinds without texts
/// are omitted.
pub fn by_statement(texts: impl IntoIterator<Item = (Statement, String)>, between: &str) -> String {
    let texts: Vec<(Statement, String)> = texts.into_iter().collect();
    let mut parts = Vec::new();
    for statement in Statement::ALL {
        let of: Vec<&str> =
            texts.iter().filter(|(of, _)| *of == statement).map(|(_, text)| text.as_str()).collect();
        if !of.is_empty() {
            parts.push(format!("{}\n{}", heading(statement).to_uppercase(), of.join(between)));
        }
    }
    parts.join("\n")
}

/// A verdict as several lines: outcome and claim, explanation and notes.
pub fn verdict_text(number: usize, claim: &str, verdict: &Verdict) -> String {
    let mut text = format!("{}  claim {number}: {claim}\n  {}\n", verdict.outcome, verdict.explanation);
    for note in &verdict.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text.push_str(&format!("  source: {}\n", verdict.source));
    text
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, Selection};

    use super::*;

    #[test]
    fn every_claim_of_every_recipe_has_a_line() {
        let mut lines = Vec::new();
        for name in zoo_recipes::names() {
            let recipe = Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe;
            lines.extend(recipe.claim.iter().map(claim_line));
        }
        let first = "bleu 27.5 on test with beam4, arm any (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp)";
        assert!(lines.iter().any(|line| line == first), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("bleu above 90 on test")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("1.53 times that of fp32")), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('?')), "{lines:#?}");
    }
}
