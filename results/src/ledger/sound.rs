//! Checks a record against itself: the judged scores must be its own scores, and the scored outputs
//! must have been kept.

use zoo_recipes::DIRECT;

use super::record::{Record, RunEnd, RunRecord, ScoreRecord};
use crate::verdict::{Evidence, RunScore};

/// A part of a record that contradicts another part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The part.
    pub what: String,
    /// How it contradicts the other part.
    pub how: String,
}

impl Contradiction {
    pub(super) fn new(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), how: how.into() }
    }
}

/// The name of a score: `score bleu test beam5 mixed seed 2`.
pub(super) fn name_of(score: &ScoreRecord) -> String {
    let when = score.moment.map_or_else(String::new, |moment| format!(" at {moment}"));
    let ScoreRecord { metric, eval, decode, arm, seed, .. } = score;
    format!("score {metric} {eval} {decode} {arm} seed {seed}{when}")
}

/// A run of the evidence: arm, intermediate point, score.
type Judged<'r> = (Option<&'r str>, Option<u64>, &'r RunScore);

/// Every run of the evidence that a verdict may use.
fn judged(evidence: &Evidence) -> impl Iterator<Item = Judged<'_>> {
    let (arm, baseline) = (evidence.arm.as_deref(), evidence.baseline.as_deref());
    let runs = evidence.runs.iter().map(move |run| (arm, None, run));
    let baselines = evidence.baseline_runs.iter().map(move |run| (baseline, None, run));
    let points = evidence.points.iter();
    let on_the_way =
        points.flat_map(move |point| point.runs.iter().map(move |run| (arm, Some(point.at), run)));
    runs.chain(baselines).chain(on_the_way)
}

impl Record {
    /// Numbers of a run of this program that do not come from kept outputs of its own scores.
    pub fn without_outputs(&self) -> Vec<Contradiction> {
        if self.end == RunEnd::External {
            return Vec::new();
        }
        let bare = self.all_scores().filter(|score| score.hypotheses.is_none());
        let mut found: Vec<Contradiction> = bare
            .map(|score| Contradiction::new(name_of(score), "no outputs were kept: such a score is external"))
            .collect();
        for judgement in &self.judgements {
            let evidence = &judgement.evidence;
            let missing = judged(evidence).find(|run| {
                let (.., of) = run;
                let term = of.hypotheses.is_none() && of.is_of_term(&judgement.claim);
                of.score.is_some() && !term && !self.has_outputs(evidence, run)
            });
            if let Some((arm, at, run)) = missing {
                let place = place(arm, run.seed, at);
                let how = match run.hypotheses {
                    Some(_) => format!("the outputs of {place} do not belong to a score of that run"),
                    None => format!("no outputs of {place} were kept: such evidence is external"),
                };
                found.push(Contradiction::new(verdict_name(judgement), how));
            }
        }
        found
    }

    /// Whether a run of the evidence was judged by outputs that also belong to a score with the
    /// same arm, seed, set, search and point.
    fn has_outputs(&self, evidence: &Evidence, &(arm, at, run): &Judged<'_>) -> bool {
        let scores = if at.is_some() { &self.on_the_way } else { &self.scores };
        // Evidence with a set and no search is on the outputs of a task that has no search.
        let search = evidence.decode.as_deref().or(evidence.eval.as_ref().map(|_| DIRECT));
        scores.iter().any(|score| {
            score.hypotheses.as_ref().map(|file| &file.sha256) == run.hypotheses.as_ref()
                && run.hypotheses.is_some()
                && Some(score.arm.as_str()) == arm
                && Some(score.seed) == run.seed
                && score.moment.map(|moment| moment.at) == at
                && evidence.eval.as_ref().is_none_or(|eval| *eval == score.eval)
                && search.is_none_or(|search| search == score.decode)
        })
    }

    /// All contradictions within the record. Files and the recipe are not checked.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = self.without_outputs();
        let external = self.end == RunEnd::External;
        for judgement in &self.judgements {
            let evidence = &judgement.evidence;
            let mut wrong = |how: String| found.push(Contradiction::new(verdict_name(judgement), how));
            if evidence.external != external {
                wrong(match external {
                    true => "its evidence calls itself own, the record is external".to_owned(),
                    false => "its evidence calls itself external, the record is a run".to_owned(),
                });
            }
            if external {
                continue;
            }
            if evidence.tier != self.tier {
                let word = |tier: &Option<String>| tier.clone().unwrap_or_else(|| "full".to_owned());
                wrong(format!("judged as tier {}, run as {}", word(&evidence.tier), word(&self.tier)));
            }
            if evidence.hardware.is_some() && evidence.hardware != self.hardware {
                let word =
                    |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown hardware".to_owned());
                wrong(format!("judged as on {}, run on {}", word(&evidence.hardware), word(&self.hardware)));
            }
            for (arm, proved) in
                [(&evidence.arm, evidence.precision), (&evidence.baseline, evidence.baseline_precision)]
            {
                let recorded = arm.as_ref().and_then(|arm| self.precision.get(arm));
                if let Some(proved) = proved
                    && recorded.map(String::as_str) != Some(proved.name())
                {
                    let arm = arm.as_deref().unwrap_or("no arm");
                    let recorded = recorded.map_or("nothing", String::as_str);
                    wrong(format!("{arm} was judged in {}, recorded is {recorded}", proved.name()));
                }
            }
            if let Some((arm, at, run)) =
                judged(evidence).find(|(.., run)| run.seed.is_none_or(|seed| !self.seeds.contains(&seed)))
            {
                wrong(format!("{} is not a run of this record", place(arm, run.seed, at)));
            }
            let unknown = |change: &&String| {
                let key = change.split_once('=').map_or(change.as_str(), |(key, _)| key);
                !self.overrides.contains_key(key)
            };
            if let Some(change) = evidence.overrides.iter().find(unknown) {
                wrong(format!("judged with --set {change}, which the record does not name"));
            }
        }
        if !external {
            for score in self.all_scores() {
                if self.arm.as_ref().is_some_and(|arm| *arm != score.arm) {
                    let how = format!("the record is of arm {}", self.arm.as_deref().unwrap_or_default());
                    found.push(Contradiction::new(name_of(score), how));
                }
                if !self.seeds.contains(&score.seed) {
                    found.push(Contradiction::new(name_of(score), "the record has no such seed"));
                }
                if let (false, Some(how)) = (self.runs.is_empty(), self.not_of_its_run(score)) {
                    found.push(Contradiction::new(name_of(score), how));
                }
            }
        }
        found
    }

    /// Why a score does not belong to the run that the record has for its arm and seed.
    fn not_of_its_run(&self, score: &ScoreRecord) -> Option<String> {
        let mut of = self.runs.iter().filter(|run| run.arm == score.arm && run.seed == score.seed);
        let (Some(run), None) = (of.next(), of.next()) else {
            return Some("the record does not have one run of this arm and seed".to_owned());
        };
        let RunRecord { folder, .. } = run;
        let path = &score.hypotheses.as_ref()?.path;
        let below = path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        (!below).then(|| format!("its outputs {path} are not those of the run {folder}"))
    }
}

/// The place of a run in words: `mixed seed 3 at 200`.
fn place(arm: Option<&str>, seed: Option<u64>, at: Option<u64>) -> String {
    let seed = seed.map_or_else(|| "a run without a seed".to_owned(), |seed| format!("seed {seed}"));
    let at = at.map_or_else(String::new, |at| format!(" at {at}"));
    format!("{} {seed}{at}", arm.unwrap_or("no arm"))
}

/// The name of a verdict: `verdict bleu of claim from …`.
pub(super) fn verdict_name(judgement: &super::record::Judgement) -> String {
    format!("verdict {} of claim from {}", judgement.verdict.metric, judgement.claim.source)
}
