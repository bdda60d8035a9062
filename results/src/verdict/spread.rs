//! The spread between seeds under the rules that the evidence names, for all kinds of claims.

use zoo_recipes::ClaimSpec;

use super::evidence::Evidence;
use super::looking::{left_after, looks_of};
use super::outcome::{Outcome, SeedsNeeded, SigmaSource, Verdict};
use super::rules::Rules;
use super::wording::number;
use super::{first, second};
use crate::statistics::{Look, chi_squared_cdf, standard_deviation};

/// The spread of one value, and the width of the bound that it gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Spread {
    First(first::Spread),
    Second(second::Spread),
}

impl Spread {
    /// The spread of these values; `None` if nothing is known about it. `factor` converts the
    /// claim's sigma of one run to that of one value. `own_from` is the number of values from which
    /// the first rules use the sample's own.
    pub fn choose(
        claim: &ClaimSpec,
        evidence: &Evidence,
        values: &[f64],
        factor: f64,
        own_from: u32,
    ) -> Option<Self> {
        match evidence.rules {
            Rules::First => first::Spread::choose(claim, values, factor, own_from).map(Self::First),
            Rules::Second => {
                second::Spread::choose(claim, evidence.spread.as_ref(), values, factor).map(Self::Second)
            }
        }
    }

    /// The level of a look's bound.
    pub fn level(&self, look: &Look) -> f64 {
        match self {
            Self::First(spread) => spread.level(look),
            Self::Second(_) => look.alpha,
        }
    }

    /// Distance of the one-sided bound from a mean of `n` values.
    pub fn half_width(&self, n: u32, alpha: f64) -> f64 {
        match self {
            Self::First(spread) => spread.half_width(n, alpha),
            Self::Second(spread) => spread.half_width(n, alpha),
        }
    }

    /// The standard deviation of one value, as far as it is known.
    pub fn sigma(&self) -> f64 {
        match self {
            Self::First(spread) => spread.sigma,
            Self::Second(spread) => spread.expected(),
        }
    }

    /// Records in the verdict which spread gives the bound, and adds a note if the scores
    /// contradict it.
    pub fn name_in(&self, verdict: &mut Verdict, values: &[f64], alpha: f64) {
        let (sigma, source, row) = match self {
            Self::First(spread) => (spread.sigma, spread.source, None),
            Self::Second(spread) => spread.named(values.len() as u32, alpha),
        };
        (verdict.sigma, verdict.sigma_source) = (Some(sigma), Some(source));
        verdict.spread = row.map(str::to_owned);
        verdict.notes.extend(contradiction(sigma, source, values));
    }

    /// The spread in words, for the end of an explanation.
    pub fn words(&self, n: u32, alpha: f64) -> String {
        match self {
            Self::First(spread) => format!("{} {}", spread.source.phrase(), number(spread.sigma)),
            Self::Second(spread) => spread.words(n, alpha),
        }
    }

    /// Withdraws a conclusion that is not based on a measured spread. Such a look could not
    /// conclude, so it spends no level.
    pub fn temper(&self, verdict: &mut Verdict) {
        if let Some(why) = self.weakness() {
            if verdict.outcome != Outcome::Inconclusive {
                verdict.outcome = Outcome::Inconclusive;
                verdict.explanation =
                    format!("{} Nothing is concluded from this: {why}.", verdict.explanation);
            }
            verdict.alpha = None;
        }
    }

    /// Why nothing can be concluded with this spread.
    pub fn weakness(&self) -> Option<String> {
        match self {
            Self::First(_) => None,
            Self::Second(spread) => spread.weakness(),
        }
    }
}

/// A note if the scores vary more than the stated sigma makes likely (chi-squared, 1 %).
fn contradiction(sigma: f64, source: SigmaSource, values: &[f64]) -> Option<String> {
    if source == SigmaSource::Sample || values.len() < 2 || sigma == 0.0 {
        return None;
    }
    let freedom = (values.len() - 1) as f64;
    let own = standard_deviation(values);
    let wide = chi_squared_cdf(freedom * (own / sigma).powi(2), freedom) > 0.99;
    wide.then(|| format!("the scores spread by {}, more than {} makes likely", number(own), source.phrase()))
}

/// Number of seeds that would settle the verdict with probability 80 % if the shortfall stays `gap`
/// away from the margin, and the words for it. `test` is the part of the half width that does not
/// shrink with seeds.
pub(super) fn seeds_needed(
    spread: Option<&Spread>,
    gap: f64,
    test: f64,
    evidence: &Evidence,
    seen: u32,
    own_from: u32,
) -> (SeedsNeeded, String) {
    if evidence.rules == Rules::First {
        let spread = spread.and_then(|spread| match spread {
            Spread::First(spread) => Some(spread),
            Spread::Second(_) => None,
        });
        let more = first::Spread::needed(spread, gap, test, &evidence.plan, seen, own_from);
        return (more, super::rule::needed(more));
    }
    let concludes = spread.is_some_and(|spread| spread.weakness().is_none());
    let spread = spread.and_then(|spread| match spread {
        Spread::Second(spread) => Some(spread),
        Spread::First(_) => None,
    });
    // A look that could not conclude spent no level.
    let left = left_after(evidence, if concludes { seen } else { 0 });
    let more = second::Spread::needed(spread, gap, test, &looks_of(evidence), seen, left);
    let words = match more {
        SeedsNeeded::NewPlan(n) if left <= 0.0 => format!(
            "About {} would probably settle it in a study of its own, planned before its first result: this plan's 5 % are \
             spent.",
            super::wording::seeds(n)
        ),
        more => super::rule::needed(more),
    };
    (more, words)
}
