//! The spread between seeds by the rules that the evidence names: all kinds ask here.

use zoo_recipes::ClaimSpec;

use super::evidence::Evidence;
use super::looking::{left_after, looks_of};
use super::outcome::{Outcome, SeedsNeeded, SigmaSource, Verdict};
use super::rules::Rules;
use super::wording::number;
use super::{first, second};
use crate::statistics::{Look, chi_squared_cdf, standard_deviation};

/// The spread of one value, and how wide it makes a bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Spread {
    First(first::Spread),
    Second(second::Spread),
}

impl Spread {
    /// Of these values; `None` where nothing is known of it. `factor` turns the claim's sigma of one run into that of one value;
    /// `own_from` is where the first rules go over to the sample's own.
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

    /// Writes into the verdict which spread makes the bound, and notes where the scores contradict it.
    pub fn name_in(&self, verdict: &mut Verdict, values: &[f64], alpha: f64) {
        let (sigma, source, row) = match self {
            Self::First(spread) => (spread.sigma, spread.source, None),
            Self::Second(spread) => spread.named(values.len() as u32, alpha),
        };
        (verdict.sigma, verdict.sigma_source) = (Some(sigma), Some(source));
        verdict.spread = row.map(str::to_owned);
        verdict.notes.extend(contradiction(sigma, source, values));
    }

    /// The spread in words, at the end of an explanation.
    pub fn words(&self, n: u32, alpha: f64) -> String {
        match self {
            Self::First(spread) => format!("{} {}", spread.source.phrase(), number(spread.sigma)),
            Self::Second(spread) => spread.words(n, alpha),
        }
    }

    /// Takes a conclusion back that rests on nothing that was measured. Such a look could not conclude, so it spends no level.
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

    /// Words on why nothing can be concluded with it.
    pub fn weakness(&self) -> Option<String> {
        match self {
            Self::First(_) => None,
            Self::Second(spread) => spread.weakness(),
        }
    }
}

/// A note where the scores spread more than the stated sigma makes likely (chi-squared, 1 %).
fn contradiction(sigma: f64, source: SigmaSource, values: &[f64]) -> Option<String> {
    if source == SigmaSource::Sample || values.len() < 2 || sigma == 0.0 {
        return None;
    }
    let freedom = (values.len() - 1) as f64;
    let own = standard_deviation(values);
    let wide = chi_squared_cdf(freedom * (own / sigma).powi(2), freedom) > 0.99;
    wide.then(|| format!("the scores spread by {}, more than {} makes likely", number(own), source.phrase()))
}

/// Seeds that would settle the matter with a chance of 80 %, should the shortfall stay `gap` away from the margin; the words for it.
/// `test` is the part of the half width that seeds do not shrink.
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
    // A look that could not conclude spent nothing.
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
