//! Differences between a recorded verdict and the one derived again.

use crate::verdict::{EqualSystem, Outcome, Verdict};

/// Whether two numbers agree within the rounding of their arithmetic.
pub(super) fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// The differences between two verdicts, in words. The texts are compared too, because people read
/// the explanation.
pub(super) fn unlike(recorded: &Verdict, derived: &Verdict) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.outcome != derived.outcome {
        found.push(format!("recorded {}, derived {}", recorded.outcome, derived.outcome));
    }
    for (name, agree, a, b) in [
        words("seeds", recorded.seeds, derived.seeds),
        words("kind", recorded.kind, derived.kind),
        words("metric", &recorded.metric, &derived.metric),
        words("evaluation set", &recorded.eval, &derived.eval),
        words("arm", &recorded.arm, &derived.arm),
        words("source", &recorded.source, &derived.source),
        words("sibling", &recorded.extends, &derived.extends),
        words("own check", &recorded.own, &derived.own),
        words("point", recorded.at, derived.at),
        words("source of sigma", recorded.sigma_source, derived.sigma_source),
        words("row of spreads", &recorded.spread, &derived.spread),
        words("looks", &recorded.looks, &derived.looks),
        words("seeds needed", recorded.seeds_needed, derived.seeds_needed),
        words("units needed", recorded.units_needed, derived.units_needed),
    ] {
        if !agree {
            found.push(format!("{name}: recorded {a}, derived {b}"));
        }
    }
    let equal = |of: &Verdict, side: fn(&EqualSystem) -> f64| of.equal_system.as_ref().map(side);
    for (name, a, b) in [
        ("published", recorded.published, derived.published),
        ("measured", recorded.measured, derived.measured),
        ("target", recorded.target, derived.target),
        ("margin", recorded.margin, derived.margin),
        ("shortfall", recorded.shortfall, derived.shortfall),
        ("shortfall's lower bound", recorded.shortfall_low, derived.shortfall_low),
        ("shortfall's upper bound", recorded.shortfall_high, derived.shortfall_high),
        ("sigma", recorded.sigma, derived.sigma),
        ("level", recorded.alpha, derived.alpha),
        ("an equal system's low", equal(recorded, |e| e.low), equal(derived, |e| e.low)),
        ("an equal system's high", equal(recorded, |e| e.high), equal(derived, |e| e.high)),
        ("an equal system's chance", equal(recorded, |e| e.reproduced), equal(derived, |e| e.reproduced)),
    ] {
        let agree = match (a, b) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a == b,
        };
        if !agree {
            let text = |x: Option<f64>| x.map_or("none".to_owned(), |x| x.to_string());
            found.push(format!("{name}: recorded {}, derived {}", text(a), text(b)));
        }
    }
    // Only the program that recorded NOT RUN knows the reason: no timing, or a kind that it did not
    // judge.
    let nothing = recorded.outcome == Outcome::NotRun && derived.outcome == Outcome::NotRun;
    if !nothing && recorded.external != derived.external {
        let word = |verdict: &Verdict| if verdict.external { "external" } else { "own" };
        found.push(format!("recorded as {}, derived as {}", word(recorded), word(derived)));
    }
    // The texts contain the same numbers. If the numbers differ already, the texts add nothing.
    if !nothing && found.is_empty() {
        found.extend(derived.text_difference(recorded));
    }
    found
}

fn words<T: PartialEq + std::fmt::Debug>(
    name: &'static str,
    recorded: T,
    derived: T,
) -> (&'static str, bool, String, String) {
    (name, recorded == derived, format!("{recorded:?}"), format!("{derived:?}"))
}
