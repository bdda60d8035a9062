//! The verdicts that a ledger has on the claims of recipes: which are listed, and which are
//! counted.

use std::collections::BTreeSet;

use zoo_recipes::{ClaimSpec, Statement};

use super::earlier::{Earlier, arm_of, is_external, is_full, is_reached};
use crate::ledger::{Entry, Judgement, Record};
use crate::verdict::{Outcome, Verdict, listed, not_run, rejudge};

/// Facts about a recipe that are not in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeStanding {
    /// Name of the recipe.
    pub recipe: String,
    /// Hashes of its present version: its own, and those of runs whose changes do not make it
    /// another recipe.
    pub hashes: BTreeSet<String>,
    /// Claims of the recipe.
    pub claims: Vec<ClaimSpec>,
    /// Highest level of its evidence.
    pub evidence: String,
    /// Whether a program generates its data, so that it has no corpus of real text or speech.
    pub generated: bool,
    /// Keys whose changes do not make it another recipe.
    pub free: Vec<String>,
}

impl RecipeStanding {
    /// Whether the record is about the present version.
    fn has(&self, record: &Record) -> bool {
        self.recipe == record.recipe && self.hashes.contains(&record.recipe_hash)
    }

    /// Whether a run of any version changed only free keys.
    fn frees(&self, record: &Record) -> bool {
        self.recipe == record.recipe && record.overrides.keys().all(|key| self.free.contains(key))
    }
}

/// A verdict in a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Name of the recipe.
    pub recipe: String,
    /// Arm that was compared with the claim.
    pub arm: Option<String>,
    /// Who makes the claim.
    pub statement: Statement,
    /// The verdict under the present rules.
    pub verdict: Verdict,
    /// Number of the record; `None` if nothing was run.
    pub record: Option<u64>,
    /// Earlier verdicts on the same claim.
    pub earlier: Earlier,
    /// Why it is not counted in any total; `None` if it is counted.
    pub uncounted: Option<&'static str>,
}

/// A claim of a recipe with its verdicts.
#[derive(Debug)]
pub struct ClaimAccount<'r> {
    /// The recipe.
    pub standing: &'r RecipeStanding,
    /// The claim.
    pub claim: &'r ClaimSpec,
    /// The last verdict in each arm; if nothing was run, the verdict NOT RUN.
    pub listed: Vec<Listed>,
    /// The outcome that counts: the worst of its arms. `None` if the claim was judged, but no
    /// verdict counts.
    pub outcome: Option<Outcome>,
}

/// The verdicts that a ledger has on the claims of recipes.
#[derive(Debug)]
pub struct Account<'r> {
    /// All claims, in the order of recipes and claims.
    pub claims: Vec<ClaimAccount<'r>>,
    /// Verdicts that are not on a present claim of a present version, and external ones.
    pub others: Vec<Listed>,
}

/// Order of precedence if a claim was judged in several arms: the first of these outcomes counts.
pub(super) const WORST_FIRST: [Outcome; 4] =
    [Outcome::NotReproduced, Outcome::Inconclusive, Outcome::Reproduced, Outcome::NotComparable];

const DIRTY: &str = "not counted: the working tree had changes";
const CROSSED: &str = "not counted: a part of the run was made by a working tree with changes";
const EXTERNAL: &str = "external: no outputs were kept";
const EARLIER: &str = "earlier version";

/// Why a judged record is not counted in any total: its program cannot be restored from a commit.
#[must_use]
pub fn uncounted(record: &Record) -> Option<&'static str> {
    let changed = |commit: &String| commit.ends_with("+changes");
    match record.dirty {
        true => Some(DIRTY),
        false => record.commits_crossed.iter().any(changed).then_some(CROSSED),
    }
}

/// All judgements of one claim in one arm, in the order of the ledger.
struct History<'e> {
    recipe: &'e str,
    arm: Option<String>,
    claim: &'e ClaimSpec,
    judged: Vec<(&'e Entry, &'e Judgement)>,
}

impl<'r> Account<'r> {
    /// The account of these recipes.
    #[must_use]
    pub fn of(recipes: &'r [RecipeStanding], entries: &[Entry]) -> Self {
        let histories = histories(recipes, entries);
        let mut others = Vec::new();
        let mut of_claims: Vec<Vec<Listed>> = Vec::new();
        let present: Vec<(&RecipeStanding, &ClaimSpec)> = recipes
            .iter()
            .flat_map(|standing| standing.claims.iter().map(move |claim| (standing, claim)))
            .collect();
        of_claims.resize_with(present.len(), Vec::new);
        for history in &histories {
            let is_of = |(standing, claim): &(&RecipeStanding, &ClaimSpec)| {
                standing.recipe == history.recipe && claim.claims_the_same(history.claim)
            };
            let at = present.iter().position(is_of);
            let (of_claim, of_none) = history.listed(at.map(|at| present[at]));
            others.extend(of_none);
            if let Some(at) = at {
                of_claims[at].extend(of_claim);
            }
        }
        let claims = present.into_iter().zip(of_claims).map(|((standing, claim), mut listed)| {
            if listed.is_empty() {
                listed.push(nothing(standing, claim));
            }
            let counted: Vec<Outcome> =
                listed.iter().filter(|one| one.uncounted.is_none()).map(|one| one.verdict.outcome).collect();
            let worst = WORST_FIRST.into_iter().find(|outcome| counted.contains(outcome));
            ClaimAccount { standing, claim, outcome: worst.or(counted.first().copied()), listed }
        });
        let claims = claims.collect();
        others.sort_by(|one, other| (&one.recipe, one.record).cmp(&(&other.recipe, other.record)));
        Self { claims, others }
    }
}

impl History<'_> {
    /// The verdicts listed with a claim of the present recipe, and those listed separately.
    fn listed(&self, present: Option<(&RecipeStanding, &ClaimSpec)>) -> (Vec<Listed>, Vec<Listed>) {
        let (mut of_claim, mut apart) = (Vec::new(), Vec::new());
        let is_present = |at: usize| {
            let (entry, judgement) = self.judged[at];
            // A margin that was changed after the result makes another claim.
            present.is_some_and(|(standing, claim)| {
                let margins = |claim: &ClaimSpec| (claim.margin, claim.margin_of_error);
                standing.has(&entry.record) && margins(claim) == margins(&judgement.claim)
            }) && !is_external(&entry.record, judgement)
        };
        let all = || (0..self.judged.len()).rev();
        let counted = all().find(|at| is_present(*at) && uncounted(&self.judged[*at].0.record).is_none());
        let dirty = all().find(|at| is_present(*at) && uncounted(&self.judged[*at].0.record).is_some());
        let dirty = dirty.filter(|at| counted.is_none_or(|counted| *at > counted));
        for at in [counted, dirty].into_iter().flatten() {
            let claim = present.map_or(self.claim, |(_, claim)| claim);
            of_claim.push(self.one(at, claim, claim.statement(), uncounted(&self.judged[at].0.record)));
        }
        let is_outside = |at: &usize| is_external(&self.judged[*at].0.record, self.judged[*at].1);
        let outside = all().find(is_outside).map(|at| (at, EXTERNAL));
        // Older versions are listed until the present one has been run.
        let before = all().find(|at| !is_outside(at)).filter(|at| !is_present(*at)).map(|at| (at, EARLIER));
        for (at, why) in [before, outside].into_iter().flatten() {
            let recorded = &self.judged[at].1.claim;
            let statement = present.map_or(recorded.statement(), |(_, claim)| claim.statement());
            apart.push(self.one(at, recorded, statement, Some(why)));
        }
        (of_claim, apart)
    }

    fn one(
        &self,
        at: usize,
        claim: &ClaimSpec,
        statement: Statement,
        uncounted: Option<&'static str>,
    ) -> Listed {
        let (entry, judgement) = self.judged[at];
        let own =
            self.judged[..at].iter().filter(|(entry, judgement)| !is_external(&entry.record, judgement));
        let earlier =
            own.map(|(_, judgement)| judgement.verdict.outcome).filter(|outcome| is_reached(*outcome));
        Listed {
            recipe: self.recipe.to_owned(),
            arm: self.arm.clone(),
            statement,
            verdict: listed(claim, &rejudge(self.recipe, claim, &judgement.evidence)),
            record: Some(entry.sequence),
            earlier: Earlier(earlier.collect()),
            uncounted,
        }
    }
}

fn nothing(standing: &RecipeStanding, claim: &ClaimSpec) -> Listed {
    Listed {
        recipe: standing.recipe.clone(),
        arm: claim.arm.clone(),
        statement: claim.statement(),
        verdict: listed(claim, &not_run(claim, "nothing was run")),
        record: None,
        earlier: Earlier::default(),
        uncounted: None,
    }
}

/// The judgements at the published size, without changes that make another recipe.
fn histories<'e>(recipes: &[RecipeStanding], entries: &'e [Entry]) -> Vec<History<'e>> {
    let mut found: Vec<History<'e>> = Vec::new();
    for entry in entries {
        let record = &entry.record;
        let of_recipe = |standing: &RecipeStanding| standing.has(record) || standing.frees(record);
        let unchanged = || record.overrides.is_empty() || recipes.iter().any(of_recipe);
        if !(is_full(record) && unchanged()) {
            continue;
        }
        for judgement in &record.judgements {
            let (recipe, arm, claim) = (record.recipe.as_str(), arm_of(judgement), &judgement.claim);
            let known = found.iter_mut().find(|history| {
                history.recipe == recipe && history.arm == arm && history.claim.claims_the_same(claim)
            });
            match known {
                Some(history) => history.judged.push((entry, judgement)),
                None => found.push(History { recipe, arm, claim, judged: vec![(entry, judgement)] }),
            }
        }
    }
    found
}
