//! Checks the `[[claim]]` blocks.

use super::Findings;
use crate::spec::{ClaimKind, ClaimSpec, DIRECT, Recipe, Statistic};

/// Metrics of a machine. A claim on one names the hardware and no evaluation set.
const MACHINE_METRICS: [&str; 2] = ["latency-ms", "scaling-efficiency"];

/// Metrics of hypotheses. A claim on one names the search, and has a signature with the scoring
/// convention.
const TEXT_METRICS: [&str; 5] = ["bleu", "chrf", "ter", "wer", "cer"];

/// Metrics that training itself logs. A claim on one names neither an evaluation set nor a search.
const TRAINING_METRICS: [&str; 3] = ["train-loss", "train-perplexity", "train-accuracy"];

pub(super) fn validate(recipe: &Recipe, arms: &[&str], findings: &mut Findings<'_, '_>) {
    for (at, claim) in recipe.claim.iter().enumerate() {
        let path = format!("claim.{at}");
        keys(claim, &path, findings);
        names(claim, recipe, arms, &path, findings);
        numbers(claim, &path, findings);
        statement(claim, &path, findings);
        findings.said(&claim.metric, &format!("{path}.metric"));
        findings.said(&claim.source, &format!("{path}.source"));
    }
}

/// Checks that a claim does not have both `own` and `extends`, and that an own one gives its
/// reason.
fn statement(claim: &ClaimSpec, path: &str, findings: &mut Findings<'_, '_>) {
    let Some(why) = &claim.own else { return };
    findings.said(why, &format!("{path}.own"));
    if claim.extends.is_some() {
        findings.report_with(
            &format!("{path}.own"),
            "a claim has `own` or `extends`, not both".to_owned(),
            "`extends` where the source prints the number for a sibling, `own` where nobody printed it",
        );
    }
}

fn kind_name(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Value => "value",
        ClaimKind::Bound => "bound",
        ClaimKind::Parity => "parity",
        ClaimKind::Ratio => "ratio",
        ClaimKind::Relation => "relation",
        ClaimKind::Trajectory => "trajectory",
        ClaimKind::Diverges => "diverges",
        ClaimKind::Memory => "memory",
    }
}

/// Checks for the keys that a kind needs, and for keys that it does not use.
fn keys(claim: &ClaimSpec, path: &str, findings: &mut Findings<'_, '_>) {
    use ClaimKind::{Bound, Diverges, Memory, Parity, Ratio, Relation, Trajectory, Value};
    let kind = claim.kind;
    let text = TEXT_METRICS.contains(&claim.metric.as_str());
    let of_machine = kind == Value && MACHINE_METRICS.contains(&claim.metric.as_str());
    let of_training = TRAINING_METRICS.contains(&claim.metric.as_str());
    let judged = matches!(kind, Value | Bound | Parity) && !of_machine;
    let scored = judged && !of_training;
    let margin = claim.margin.is_some() || claim.margin_of_error.is_some();
    // Name of the key, and whether it is present, needed and allowed.
    let rules = [
        (
            "value",
            claim.value.is_some(),
            matches!(kind, Value | Bound | Ratio | Memory),
            !matches!(kind, Parity | Diverges),
        ),
        (
            "direction",
            claim.direction.is_some(),
            matches!(kind, Value | Bound | Parity | Relation | Trajectory),
            kind != Diverges,
        ),
        ("eval", claim.eval.is_some(), scored, !of_machine && (!of_training || kind == Trajectory)),
        (
            "signature",
            claim.signature.is_some(),
            matches!(kind, Value | Bound) && !of_machine || scored && text,
            !of_machine,
        ),
        ("decode", claim.decode.is_some(), scored && text, !(of_training && judged)),
        ("arm", claim.arm.is_some(), !matches!(kind, Relation), true),
        (
            "margin",
            claim.margin.is_some() || claim.margin_of_error.is_some(),
            matches!(kind, Value | Parity) && !of_machine,
            !matches!(kind, Diverges),
        ),
        (
            "margin_of_error",
            claim.margin_of_error.is_some(),
            false,
            judged && claim.direction.is_some() && claim.margin.is_none(),
        ),
        ("spread", claim.spread.is_some(), false, judged || kind == Trajectory),
        (
            "baseline",
            claim.baseline.is_some(),
            matches!(kind, Ratio | Memory),
            matches!(kind, Ratio | Memory | Parity),
        ),
        ("hardware", claim.hardware.is_some(), matches!(kind, Ratio | Memory) || of_machine, true),
        ("protocol", claim.protocol.is_some(), kind == Ratio, kind == Ratio),
        ("other", claim.other.is_some(), kind == Relation, kind == Relation),
        ("points", !claim.points.is_empty(), kind == Trajectory, kind == Trajectory),
        ("clock", claim.clock.is_some(), kind == Trajectory, kind == Trajectory),
        // A reason needs its number, whatever the kind.
        ("margin_reason", claim.margin_reason.is_some(), margin, margin),
        (
            "sigma_reason",
            claim.sigma_reason.is_some(),
            claim.assumed_sigma.is_some(),
            claim.assumed_sigma.is_some(),
        ),
        ("n", claim.n.is_some(), matches!(claim.statistic, Statistic::Best | Statistic::Mean), true),
    ];
    for (key, there, needed, of_use) in rules {
        if needed && !there {
            let hint = match key {
                "margin_reason" => "a margin says why it is as wide as it is",
                "sigma_reason" => "an assumed sigma says where it is taken from",
                "arm" if kind == Ratio => "name the arm, e.g. mixed",
                "arm" => "arm = \"any\" where the source does not say",
                "clock" => "clock = \"epochs\" or \"updates\": what the points' `at` counts",
                _ => "see the keys of each kind in docs/recipes.md",
            };
            let message = format!("the {} claim on {} lacks `{key}`", kind_name(kind), claim.metric);
            findings.report_with(path, message, hint);
        } else if there && !of_use {
            let message = match key {
                "margin_reason" => "`margin_reason` stands without a `margin`".to_owned(),
                "sigma_reason" => "`sigma_reason` stands without an `assumed_sigma`".to_owned(),
                "margin_of_error" if judged => {
                    "`margin_of_error` needs a `direction`, and stands instead of a `margin`".to_owned()
                }
                _ => format!("a {} claim has no use for `{key}`", kind_name(kind)),
            };
            findings.report(&format!("{path}.{key}"), message);
        }
    }
    let stated = claim.sigma.is_some() || claim.spread.is_some() || claim.assumed_sigma.is_some();
    if claim.statistic == Statistic::Best && !stated {
        let message =
            "the best of several runs is not a mean: turning it into one takes `sigma` or a row, `spread`";
        findings.report(path, message);
    }
    findings.require(
        claim.sigma.is_none() || claim.assumed_sigma.is_none(),
        &format!("{path}.assumed_sigma"),
        || "a published `sigma` leaves nothing to assume".to_owned(),
    );
    findings.require(
        claim.spread.is_none() || claim.assumed_sigma.is_none(),
        &format!("{path}.assumed_sigma"),
        || "a measured `spread` leaves nothing to assume".to_owned(),
    );
}

/// Checks that the names in a claim exist in the recipe.
fn names(claim: &ClaimSpec, recipe: &Recipe, arms: &[&str], path: &str, findings: &mut Findings<'_, '_>) {
    if let Some(eval) = &claim.eval {
        let sets = recipe.data().eval_sets().into_iter();
        findings.exists(eval, sets, &format!("{path}.eval"), "evaluation set");
        let languages = recipe.data().eval_set(eval).map(|set| set.languages.len());
        if languages.is_some_and(|languages| languages > 1) {
            findings.report_with(
                &format!("{path}.eval"),
                format!("`{eval}` is in {} together", recipe.data().languages().join(", ")),
                "an evaluation set that has a `target`: what is scored is in one language",
            );
        }
    }
    if claim.decode.is_some() && recipe.has_search(DIRECT) {
        findings.report_with(
            &format!("{path}.decode"),
            format!("recipes of {} have no searches", recipe.recipe.task),
            "leave `decode` out: the model's outputs are the answers",
        );
    } else if let Some(decode) = &claim.decode {
        findings.exists(decode, recipe.searches().into_iter(), &format!("{path}.decode"), "search");
    }
    if let Some(arm) = claim.arm.as_deref().filter(|arm| *arm != "any") {
        findings.exists(arm, arms.iter().copied(), &format!("{path}.arm"), "arm");
    }
    // TF32 is not an arm of a recipe; it is how some devices compute FP32.
    if let Some(baseline) = claim.baseline.as_deref().filter(|baseline| *baseline != "tf32") {
        findings.exists(baseline, arms.iter().copied(), &format!("{path}.baseline"), "arm");
    } else if claim.kind == ClaimKind::Parity && claim.baseline.is_none() && !arms.contains(&"fp32") {
        let message = "the parity claim compares with the arm `fp32`, which the recipe does not have";
        findings.report_with(path, message, "baseline = the arm to be no worse than");
    }
    if claim.kind == ClaimKind::Parity {
        let arm = claim.arm.as_deref();
        findings.require(arm != Some("any"), &format!("{path}.arm"), || {
            "a parity claim is about one arm, not `any`".to_owned()
        });
        let baseline = claim.baseline.as_deref().unwrap_or("fp32");
        findings.require(arm != Some(baseline), &format!("{path}.arm"), || {
            format!("the parity claim compares `{baseline}` with itself")
        });
    }
}

fn numbers(claim: &ClaimSpec, path: &str, findings: &mut Findings<'_, '_>) {
    for (value, key) in [(claim.sigma, "sigma"), (claim.assumed_sigma, "assumed_sigma")] {
        if let Some(value) = value {
            findings.above_zero(value, &format!("{path}.{key}"));
        }
    }
    if let Some(margin) = claim.margin {
        findings.not_negative(margin, &format!("{path}.margin"));
    }
    if let Some(share) = claim.margin_of_error {
        findings.above_zero(share, &format!("{path}.margin_of_error"));
    }
    if let Some(n) = claim.n {
        findings.positive(u64::from(n), &format!("{path}.n"));
        findings.require(claim.statistic != Statistic::Single || n == 1, &format!("{path}.n"), || {
            format!("a single run is not {n} of them")
        });
    }
    if claim.kind == ClaimKind::Ratio && claim.arm.as_deref() == Some("any") {
        let message = "a ratio claim is on one arm: two are timed against one another".to_owned();
        findings.report_with(&format!("{path}.arm"), message, "name the arm, e.g. mixed");
    }
    if let (ClaimKind::Ratio | ClaimKind::Memory, Some(value)) = (claim.kind, claim.value) {
        findings.above_zero(value, &format!("{path}.value"));
    }
    for (at, point) in claim.points.iter().enumerate() {
        if let Some(sigma) = point.sigma {
            findings.above_zero(sigma, &format!("{path}.points.{at}.sigma"));
        }
        findings.positive(point.at, &format!("{path}.points.{at}.at"));
    }
    findings.require(
        claim.points.is_sorted_by(|one, next| one.at < next.at),
        &format!("{path}.points"),
        || "the points do not rise".to_owned(),
    );
}
