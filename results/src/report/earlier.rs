//! Earlier verdicts on the same claim.

use zoo_recipes::ClaimSpec;

use crate::ledger::{Judgement, Record, RunEnd};
use crate::verdict::Outcome;

/// Outcomes of earlier verdicts on a claim, as recorded, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Earlier(pub Vec<Outcome>);

impl Earlier {
    /// The earlier verdicts on a claim of a recipe in an arm, for any version of the recipe. Only
    /// runs of this program at the published size count, and only the verdicts REPRODUCED, NOT
    /// REPRODUCED and INCONCLUSIVE.
    #[must_use]
    pub fn of<'r>(
        records: impl IntoIterator<Item = &'r Record>,
        recipe: &str,
        claim: &ClaimSpec,
        arm: &str,
    ) -> Self {
        let of_recipe = records.into_iter().filter(|record| record.recipe == recipe && is_full(record));
        let of_claim = of_recipe.flat_map(|record| {
            record.judgements.iter().filter(|judgement| !is_external(record, judgement)).filter(|judgement| {
                arm_of(judgement).unwrap_or_default() == arm && judgement.claim.claims_the_same(claim)
            })
        });
        Self(
            of_claim
                .map(|judgement| judgement.verdict.outcome)
                .filter(|outcome| is_reached(*outcome))
                .collect(),
        )
    }

    /// `third verdict; before: INCONCLUSIVE twice`; `None` if there is no earlier verdict.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut counts: Vec<(Outcome, usize)> = Vec::new();
        for outcome in &self.0 {
            match counts.iter_mut().find(|(known, _)| known == outcome) {
                Some((_, count)) => *count += 1,
                None => counts.push((*outcome, 1)),
            }
        }
        let words = |(outcome, count): &(Outcome, usize)| match count {
            1 => format!("{outcome} once"),
            2 => format!("{outcome} twice"),
            n => format!("{outcome} {n} times"),
        };
        let words: Vec<String> = counts.iter().map(words).collect();
        (!words.is_empty())
            .then(|| format!("{} verdict; before: {}", ordinal(self.0.len() + 1), words.join(", ")))
    }
}

/// Whether the outcome says something about the claim.
pub(super) fn is_reached(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Reproduced | Outcome::NotReproduced | Outcome::Inconclusive)
}

/// Whether the evidence is external. Evidence without kept outputs is external, whatever the record
/// states.
pub(super) fn is_external(record: &Record, judgement: &Judgement) -> bool {
    judgement.verdict.external || record.end == RunEnd::External || !record.without_outputs().is_empty()
}

/// Whether the record is about the published size.
pub(super) fn is_full(record: &Record) -> bool {
    record.tier.as_deref().is_none_or(|tier| tier == "full")
}

/// The arm that was run; a claim may name another one.
pub(super) fn arm_of(judgement: &Judgement) -> Option<String> {
    judgement.evidence.arm.clone().or_else(|| judgement.verdict.arm.clone())
}

fn ordinal(n: usize) -> String {
    const WORDS: [&str; 10] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    match (n.checked_sub(1).and_then(|at| WORDS.get(at)), n % 10, n % 100) {
        (Some(word), ..) => (*word).to_owned(),
        (None, 1, _) if n % 100 != 11 => format!("{n}st"),
        (None, 2, _) if n % 100 != 12 => format!("{n}nd"),
        (None, 3, _) if n % 100 != 13 => format!("{n}rd"),
        _ => format!("{n}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_verdicts_are_counted_in_words() {
        use Outcome::{Inconclusive, Reproduced};
        assert_eq!(Earlier::default().text(), None);
        for (outcomes, text) in [
            (vec![Inconclusive], "second verdict; before: INCONCLUSIVE once"),
            (vec![Inconclusive; 2], "third verdict; before: INCONCLUSIVE twice"),
            (
                vec![Inconclusive, Reproduced, Inconclusive, Inconclusive],
                "fifth verdict; before: INCONCLUSIVE 3 times, REPRODUCED once",
            ),
            (vec![Reproduced; 10], "11th verdict; before: REPRODUCED 10 times"),
            (vec![Reproduced; 21], "22nd verdict; before: REPRODUCED 21 times"),
        ] {
            assert_eq!(Earlier(outcomes).text().as_deref(), Some(text));
        }
    }
}
