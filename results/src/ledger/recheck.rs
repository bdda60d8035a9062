//! Every score and every verdict again, from the hypotheses that were kept.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::chain::{Entry, sha256};
use super::record::{HypothesesFile, Record, ScoreRecord};
use crate::verdict::{ErrorCount, Interval, RunScore, Verdict, judge};

/// What a scorer found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rescored {
    /// The score.
    pub value: f64,
    /// Its interval from resampling the test set, where it has one.
    pub interval: Option<Interval>,
    /// Errors and words, where the metric counts them.
    pub counts: Option<ErrorCount>,
}

/// Scores hypotheses again. The ledger knows neither metrics nor corpora, so the caller brings both.
pub trait Rescorer {
    /// The references of an evaluation set of the record's recipe, one a line.
    ///
    /// # Errors
    /// Why they are not to be had.
    fn references(&mut self, record: &Record, eval: &str) -> Result<Vec<String>, NoReferences>;

    /// Is all that this score is made of in its hypotheses? Then it is derived where the references are absent, too.
    fn needs_no_references(&self, _: &ScoreRecord) -> bool {
        false
    }

    /// The score of `hypotheses` under the metric and signature of `score`.
    ///
    /// # Errors
    /// Words on why they cannot be scored.
    fn score(
        &mut self,
        score: &ScoreRecord,
        hypotheses: &[String],
        references: &[String],
    ) -> Result<Rescored, String>;

    /// Interval of the first's score minus the second's, resampling the test set in pairs, at the two-sided `level`; the same
    /// resamples as when the record was made.
    ///
    /// # Errors
    /// Words on why they cannot be compared.
    fn difference(
        &mut self,
        score: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        references: &[String],
        level: f64,
    ) -> Result<Interval, String>;
}

/// Where the hypotheses of a record are kept.
pub trait Kept {
    /// The bytes of a kept file; whether they are those that were scored is not the store's affair.
    ///
    /// # Errors
    /// Words on why they are not to be had.
    fn bytes(&self, file: &HypothesesFile) -> Result<Vec<u8>, String>;
}

/// A folder: the one beside a ledger.
impl Kept for PathBuf {
    fn bytes(&self, file: &HypothesesFile) -> Result<Vec<u8>, String> {
        let path = &file.path;
        let steps = Path::new(path).components();
        if !steps.clone().all(|step| matches!(step, std::path::Component::Normal(_))) || path.is_empty() {
            return Err(format!("the path {path} leads out of the folder of hypotheses"));
        }
        std::fs::read(self.join(path)).map_err(|error| format!("{path}: {error}"))
    }
}

/// Something that does not come out as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Record.
    pub sequence: u64,
    /// Recipe.
    pub recipe: String,
    /// What: `score bleu test beam5 mixed seed 2`, `verdict value bleu`.
    pub what: String,
    /// How.
    pub how: String,
    /// Nothing was found to be wrong: the references are not here.
    pub unseen: bool,
}

/// Why there are no references to score with, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReferences {
    /// They are not here, and nothing is known to be wrong.
    Absent(String),
    /// What is here is not what was scored with.
    Changed(String),
}

impl std::fmt::Display for NoReferences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent(why) => write!(f, "no references: {why}"),
            Self::Changed(why) => f.write_str(why),
        }
    }
}

/// What a recheck did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recheck {
    /// Scores derived again from their hypotheses.
    pub scores: usize,
    /// Scores recorded without hypotheses: given from outside.
    pub scores_without_hypotheses: usize,
    /// Verdicts derived again.
    pub verdicts: usize,
    /// Numbers inside those verdicts (timings, losses, scores from outside) that had to be taken from the record.
    pub taken_from_record: usize,
    /// What did not agree; empty is the good end.
    pub disagreements: Vec<Disagreement>,
}

/// One file of hypotheses that agreed with its digest, by that digest.
struct Known {
    lines: Vec<String>,
    rescored: Rescored,
    score: ScoreRecord,
}

/// Derives every score and verdict of `entries` again from the hypotheses in `kept`. Scores must agree to 1e-9, verdicts in their
/// outcome and every number. A run's score is replaced, in the evidence of every verdict, by the one derived here.
pub fn recheck(entries: &[Entry], kept: &dyn Kept, rescorer: &mut dyn Rescorer) -> Recheck {
    let mut report = Recheck::default();
    let mut known: BTreeMap<(String, String), Known> = BTreeMap::new();
    let mut references: BTreeMap<(String, String), Result<Vec<String>, NoReferences>> = BTreeMap::new();
    for entry in entries {
        let record = &entry.record;
        for score in record.scores.iter().chain(&record.on_the_way) {
            let Some(file) = &score.hypotheses else {
                report.scores_without_hypotheses += 1;
                continue;
            };
            let refs = references
                .entry((record.recipe_hash.clone(), score.eval.clone()))
                .or_insert_with(|| rescorer.references(record, &score.eval));
            let alone = rescorer.needs_no_references(score);
            // How it differs, and whether nothing but absent references is to blame.
            let wrong = |how: String| (how, false);
            let derived = lines(kept, file).map_err(wrong).and_then(|lines| {
                let refs = references_for(refs, alone, lines.len());
                let refs = refs.map_err(|why| (why.to_string(), matches!(why, NoReferences::Absent(_))))?;
                let rescored = rescorer.score(score, &lines, &refs).map_err(wrong)?;
                Ok(Known { lines, rescored, score: score.clone() })
            });
            let how = match derived {
                Err(how) => Some(how),
                Ok(found) => {
                    report.scores += 1;
                    let value = found.rescored.value;
                    known.insert((file.sha256.clone(), score.signature.clone()), found);
                    (!same(value, score.value))
                        .then(|| wrong(format!("recorded {}, derived {value}", score.value)))
                }
            };
            if let Some((how, unseen)) = how {
                let when = score.moment.map_or_else(String::new, |moment| format!(" at {moment}"));
                let what = format!(
                    "score {} {} {} {} seed {}{when}",
                    score.metric, score.eval, score.decode, score.arm, score.seed
                );
                report.disagreements.push(Disagreement { unseen, ..disagreement(entry, what, how) });
            }
        }
    }
    for entry in entries {
        for judgement in &entry.record.judgements {
            let mut evidence = judgement.evidence.clone();
            let signature = evidence.signature.clone().unwrap_or_default();
            let found = |run: &RunScore| known.get(&(run.hypotheses.clone()?, signature.clone()));
            let mut faults = Vec::new();
            let baselines = evidence.baseline_runs.clone();
            for (place, run) in evidence.runs.iter_mut().enumerate() {
                let Some(ours) = found(run) else {
                    report.taken_from_record += 1;
                    continue;
                };
                run.score = Some(ours.rescored.value);
                run.interval = run.interval.and(ours.rescored.interval).or(run.interval);
                run.counts = run.counts.and(ours.rescored.counts).or(run.counts);
                let Some(recorded) = run.difference else { continue };
                let baseline = match run.seed {
                    Some(seed) => baselines.iter().find(|b| b.seed == Some(seed)),
                    None => baselines.get(place),
                };
                let refs = references.get(&(entry.record.recipe_hash.clone(), ours.score.eval.clone()));
                let alone = rescorer.needs_no_references(&ours.score);
                let refs = refs.and_then(|refs| references_for(refs, alone, ours.lines.len()).ok());
                if let (Some(baseline), Some(refs)) = (baseline.and_then(&found), refs) {
                    let level = recorded.level;
                    match rescorer.difference(&ours.score, &ours.lines, &baseline.lines, &refs, level) {
                        Ok(interval) => run.difference = Some(interval),
                        Err(reason) => faults.push(reason),
                    }
                }
            }
            let of_points = evidence.points.iter_mut().flat_map(|point| &mut point.runs);
            for run in evidence.baseline_runs.iter_mut().chain(of_points) {
                match found(run) {
                    Some(theirs) => run.score = Some(theirs.rescored.value),
                    None => report.taken_from_record += 1,
                }
            }
            report.verdicts += 1;
            let again = judge(&judgement.claim, &evidence);
            faults.extend(unlike(&judgement.verdict, &again));
            let what =
                format!("verdict {} of claim from {}", judgement.verdict.metric, judgement.claim.source);
            report.disagreements.extend(faults.into_iter().map(|how| disagreement(entry, what.clone(), how)));
        }
    }
    report
}

/// The references to score so many lines with: empty ones where the score needs none and none are here.
fn references_for(
    found: &Result<Vec<String>, NoReferences>,
    alone: bool,
    lines: usize,
) -> Result<Cow<'_, [String]>, NoReferences> {
    match found {
        Ok(references) => Ok(Cow::Borrowed(references)),
        Err(NoReferences::Absent(_)) if alone => Ok(Cow::Owned(vec![String::new(); lines])),
        Err(why) => Err(why.clone()),
    }
}

fn disagreement(entry: &Entry, what: String, how: String) -> Disagreement {
    Disagreement { sequence: entry.sequence, recipe: entry.record.recipe.clone(), what, how, unseen: false }
}

/// The lines of a kept file, if it still is the file that was scored.
fn lines(kept: &dyn Kept, file: &HypothesesFile) -> Result<Vec<String>, String> {
    let path = &file.path;
    let bytes = kept.bytes(file)?;
    let found = sha256(&bytes);
    if found != file.sha256 {
        return Err(format!(
            "{path} is not the file that was scored: SHA-256 {found}, recorded {}",
            file.sha256
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8"))?;
    // Only the newline ends a line: a hypothesis may hold any other separator.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() })
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// Where two verdicts differ, in words.
fn unlike(recorded: &Verdict, derived: &Verdict) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.outcome != derived.outcome {
        found.push(format!("recorded {}, derived {}", recorded.outcome, derived.outcome));
    }
    if recorded.seeds != derived.seeds {
        found.push(format!("seeds: recorded {}, derived {}", recorded.seeds, derived.seeds));
    }
    for (name, a, b) in [
        ("measured", recorded.measured, derived.measured),
        ("target", recorded.target, derived.target),
        ("margin", recorded.margin, derived.margin),
        ("shortfall", recorded.shortfall, derived.shortfall),
        ("shortfall's lower bound", recorded.shortfall_low, derived.shortfall_low),
        ("shortfall's upper bound", recorded.shortfall_high, derived.shortfall_high),
        ("sigma", recorded.sigma, derived.sigma),
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
    found
}
