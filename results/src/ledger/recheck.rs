//! Derives every score and verdict again from the kept hypotheses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zoo_recipes::ClaimKind;

use super::chain::{Entry, sha256};
use super::record::{HypothesesFile, Judgement, Record, ScoreRecord};
use super::sound::{Contradiction, name_of, verdict_name};
use super::spent::{System, spent};
use super::unlike::{same, unlike};
use crate::verdict::{ErrorCount, Evidence, Interval, Rules, RunScore, Spent, StatedSpread, judge};

/// Result of a scorer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rescored {
    /// The score.
    pub value: f64,
    /// Its interval from resampling the test set, if it has one.
    pub interval: Option<Interval>,
    /// Errors and words, if the metric counts them.
    pub counts: Option<ErrorCount>,
}

/// Scores hypotheses again. The ledger depends on neither metrics nor corpora, so the caller
/// supplies both.
pub trait Rescorer {
    /// The references of an evaluation set of the record's recipe, one per line.
    ///
    /// # Errors
    /// Why they are not available.
    fn references(&mut self, record: &Record, eval: &str) -> Result<Vec<String>, NoReferences>;

    /// Whether the hypotheses alone determine this score. If so, it is derived even without the
    /// references.
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

    /// Interval of the first score minus the second, by paired resampling of the test set, at the
    /// two-sided `level`. The resamples are the same as when the record was made.
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

/// Storage of the hypotheses of a record.
pub trait Kept {
    /// The bytes of a kept file. The caller checks whether they are the scored bytes.
    ///
    /// # Errors
    /// Words on why they are not available.
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

/// A difference between the record and the derived result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Number of the record.
    pub sequence: u64,
    /// Recipe of the record.
    pub recipe: String,
    /// What differs: `score bleu test beam5 mixed seed 2`, `verdict value bleu`.
    pub what: String,
    /// How it differs.
    pub how: String,
    /// Whether the only reason is that the references are absent; nothing was found to be wrong.
    pub unseen: bool,
}

/// Why there are no references to score with, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReferences {
    /// They are absent, and nothing is known to be wrong.
    Absent(String),
    /// The references present differ from those used for the score.
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

/// Result of a recheck.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recheck {
    /// Number of scores derived again from their hypotheses.
    pub scores: usize,
    /// Number of scores recorded without hypotheses: external scores.
    pub scores_without_hypotheses: usize,
    /// Number of verdicts derived again.
    pub verdicts: usize,
    /// Numbers inside those verdicts (timings, losses, external scores) that had to be taken from
    /// the record.
    pub taken_from_record: usize,
    /// Disagreements; empty if everything agrees.
    pub disagreements: Vec<Disagreement>,
}

/// Hypotheses of one file that matched its digest, and the score derived from them; stored by
/// digest and signature.
struct Known {
    lines: Vec<String>,
    rescored: Rescored,
    score: ScoreRecord,
}

/// Derives every score and verdict of `entries` again from the hypotheses in `kept`, and checks
/// each record for contradictions. Scores must agree to 1e-9; verdicts must agree in outcome, all
/// numbers and texts. In the evidence of every verdict, a run's score is replaced by the derived
/// one.
pub fn recheck(entries: &[Entry], kept: &dyn Kept, rescorer: &mut dyn Rescorer) -> Recheck {
    let mut derived = Derived {
        kept,
        rescorer,
        references: BTreeMap::new(),
        known: BTreeMap::new(),
        report: Recheck::default(),
    };
    for entry in entries {
        let contradictions = entry.record.contradictions();
        let named = contradictions.into_iter().map(|one| Disagreement::of(entry, one));
        derived.report.disagreements.extend(named);
        entry.record.all_scores().for_each(|score| derived.score(entry, score));
    }
    // A bundle has a single record; what was spent before it is in the ledger it comes from.
    let whole = entries.first().is_some_and(|first| first.sequence == 0);
    for (place, entry) in entries.iter().enumerate() {
        entry.record.judgements.iter().for_each(|judgement| derived.judge(entry, judgement));
        if whole {
            let earlier = || entries[..place].iter().map(|entry| &entry.record);
            let faults = spent_otherwise(&entry.record, earlier);
            derived.report.disagreements.extend(faults.map(|one| Disagreement::of(entry, one)));
        }
    }
    derived.report
}

/// Digest of hypotheses, and signature.
type Key = (String, String);

/// Results derived so far.
struct Derived<'k> {
    kept: &'k dyn Kept,
    rescorer: &'k mut dyn Rescorer,
    /// By recipe hash and evaluation set.
    references: BTreeMap<(String, String), Result<Vec<String>, NoReferences>>,
    known: BTreeMap<Key, Known>,
    report: Recheck,
}

impl Derived<'_> {
    /// Derives a recorded score again.
    fn score(&mut self, entry: &Entry, score: &ScoreRecord) {
        if score.hypotheses.is_none() {
            self.report.scores_without_hypotheses += 1;
            return;
        }
        let (how, unseen) = match self.derive(&entry.record, score) {
            Err((how, unseen)) => (how, unseen),
            Ok(found) => {
                let (value, interval) = (found.value, found.interval);
                self.report.scores += 1;
                if !same(value, score.value) {
                    (format!("recorded {}, derived {value}", score.value), false)
                } else if let Some(how) = interval_difference(score.interval, interval) {
                    (how, false)
                } else {
                    return;
                }
            }
        };
        let one = disagreement(entry, name_of(score), how);
        self.report.disagreements.push(Disagreement { unseen, ..one });
    }

    /// The score of kept hypotheses. On failure: the reason, and whether absent references are the
    /// only cause.
    fn derive(&mut self, record: &Record, score: &ScoreRecord) -> Result<Rescored, (String, bool)> {
        let wrong = |how: String| (how, false);
        let file = score.hypotheses.as_ref().ok_or_else(|| wrong("no hypotheses were kept".to_owned()))?;
        let rescorer = &mut *self.rescorer;
        let refs = self
            .references
            .entry((record.recipe_hash.clone(), score.eval.clone()))
            .or_insert_with(|| rescorer.references(record, &score.eval));
        let alone = rescorer.needs_no_references(score);
        let lines = lines(self.kept, file).map_err(wrong)?;
        let refs = references_for(refs, alone, lines.len());
        let refs = refs.map_err(|why| (why.to_string(), matches!(why, NoReferences::Absent(_))))?;
        let rescored = rescorer.score(score, &lines, &refs).map_err(wrong)?;
        let key = (file.sha256.clone(), score.signature.clone());
        self.known.insert(key, Known { lines, rescored, score: score.clone() });
        Ok(rescored)
    }

    /// The score of a run of the evidence under the evidence's signature. A claim's signature may
    /// differ from that of the recorded scores.
    fn found(&mut self, record: &Record, run: &RunScore, signature: &str) -> Option<&Known> {
        let key = (run.hypotheses.clone()?, signature.to_owned());
        if !self.known.contains_key(&key) && !signature.is_empty() {
            let of =
                |score: &&ScoreRecord| score.hypotheses.as_ref().is_some_and(|file| file.sha256 == key.0);
            let score = record.all_scores().find(of)?;
            let score = ScoreRecord { signature: signature.to_owned(), ..score.clone() };
            self.derive(record, &score).ok()?;
        }
        self.known.get(&key)
    }

    /// Derives a verdict again.
    fn judge(&mut self, entry: &Entry, judgement: &Judgement) {
        let record = &entry.record;
        let mut evidence = judgement.evidence.clone();
        let signature = evidence.signature.clone().unwrap_or_default();
        let mut faults = from_terms(&mut evidence, &signature);
        let baselines = evidence.baseline_runs.clone();
        for (place, run) in evidence.runs.iter_mut().enumerate() {
            let baseline = match run.seed {
                Some(seed) => baselines.iter().find(|b| b.seed == Some(seed)),
                None => baselines.get(place),
            };
            let theirs =
                baseline.and_then(|run| self.found(record, run, &signature).map(|one| one.lines.clone()));
            let Some(ours) = self.found(record, run, &signature) else {
                self.report.taken_from_record += 1;
                continue;
            };
            let (lines, rescored, score) = (ours.lines.clone(), ours.rescored, ours.score.clone());
            faults.extend(replace(run, &rescored));
            let Some(recorded) = run.difference else { continue };
            let refs = self.references.get(&(record.recipe_hash.clone(), score.eval.clone()));
            let alone = self.rescorer.needs_no_references(&score);
            let refs = refs.and_then(|refs| references_for(refs, alone, lines.len()).ok());
            if let (Some(theirs), Some(refs)) = (theirs, refs) {
                match self.rescorer.difference(&score, &lines, &theirs, &refs, recorded.level) {
                    Ok(interval) => run.difference = Some(interval),
                    Err(reason) => faults.push(reason),
                }
            }
        }
        let of_points = evidence.points.iter_mut().flat_map(|point| &mut point.runs);
        for run in evidence.baseline_runs.iter_mut().chain(of_points) {
            match self.found(record, run, &signature).map(|one| one.rescored) {
                Some(theirs) => faults.extend(replace(run, &theirs)),
                None => self.report.taken_from_record += 1,
            }
        }
        if !evidence.external {
            faults.extend(spread_otherwise(record, judgement));
        }
        self.report.verdicts += 1;
        let again = judge(&judgement.claim, &evidence);
        faults.extend(unlike(&judgement.verdict, &again));
        let what = verdict_name(judgement);
        let named = faults.into_iter().map(|how| disagreement(entry, what.clone(), how));
        self.report.disagreements.extend(named);
    }
}

/// For runs judged by a term of training, derives the scores from the recorded sum and count.
/// Returns words on where the evidence differs.
fn from_terms(evidence: &mut Evidence, signature: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let of_points = evidence.points.iter_mut().flat_map(|point| &mut point.runs);
    for run in evidence.runs.iter_mut().chain(&mut evidence.baseline_runs).chain(of_points) {
        let Some(term) = &run.term else { continue };
        let own = term.signature.to_string();
        if own != signature {
            faults.push(format!("judged by {signature}, the term of training is {own}"));
        }
        match term.value() {
            Ok(found) => {
                let derived = Rescored { value: found.value, interval: None, counts: None };
                faults.extend(replace(run, &derived));
            }
            Err(error) => faults.push(error.to_string()),
        }
    }
    faults
}

/// The difference, if a verdict uses a row of spreads other than the table's row for its claim.
fn spread_otherwise(record: &Record, judgement: &Judgement) -> Option<String> {
    let recorded = &judgement.evidence.spread;
    let due = StatedSpread::named(&judgement.claim, &record.recipe);
    let words = |spread: &Option<StatedSpread>| {
        spread.as_ref().map_or_else(|| "no row of spreads".to_owned(), StatedSpread::words)
    };
    (judgement.evidence.rules == Rules::Second && *recorded != due)
        .then(|| format!("judged by {}, the table has {}", words(recorded), words(&due)))
}

/// Why a record contradicts a ledger with these earlier records, if it does: its verdicts state
/// another spent level than the ledger gives.
#[must_use]
pub fn contradicts(record: &Record, earlier: &[&Record]) -> Option<Contradiction> {
    spent_otherwise(record, || earlier.iter().copied()).next()
}

/// The difference, if a record states another spent level for a claim than the ledger gives.
fn spent_otherwise<'r, I: Iterator<Item = &'r Record>>(
    record: &'r Record,
    earlier: impl Fn() -> I + 'r,
) -> impl Iterator<Item = Contradiction> + 'r {
    let system = record.system.as_deref().map(|without_claims| System {
        recipe: &record.recipe,
        recipe_hash: &record.recipe_hash,
        without_claims,
        with_words: record.system_with_words.as_deref(),
    });
    let judged = record.judgements.iter().filter(|judgement| judgement.evidence.rules == Rules::Second);
    judged.filter_map(move |judgement| {
        // Timings have no seeds, and divergence claims spend no level.
        if matches!(judgement.claim.kind, ClaimKind::Ratio | ClaimKind::Diverges) {
            return None;
        }
        let due = spent(earlier(), &system?, &judgement.claim, &judgement.evidence);
        let words = |spent: &Option<Spent>| spent.as_ref().map_or("nothing".to_owned(), Spent::sentence);
        let recorded = &judgement.evidence.spent;
        (*recorded != due).then(|| {
            let how =
                format!("spent before it: recorded {}, the ledger has {}", words(recorded), words(&due));
            Contradiction::new(verdict_name(judgement), how)
        })
    })
}

/// Puts the derived result into a run of the evidence. Returns words on where the evidence differs.
fn replace(run: &mut RunScore, derived: &Rescored) -> Option<String> {
    let recorded = run.score.replace(derived.value);
    let of = run.seed.map_or_else(|| "the run".to_owned(), |seed| format!("seed {seed}"));
    let fault = match recorded {
        Some(score) if same(score, derived.value) => None,
        Some(score) => Some(format!("evidence of {of}: recorded {score}, derived {}", derived.value)),
        None => Some(format!("evidence of {of}: recorded without a score, derived {}", derived.value)),
    };
    run.interval = run.interval.and(derived.interval).or(run.interval);
    run.counts = run.counts.and(derived.counts).or(run.counts);
    fault
}

/// How a recorded interval differs from the derived one. A derivable interval may not be left out
/// of the record.
fn interval_difference(recorded: Option<Interval>, derived: Option<Interval>) -> Option<String> {
    let text = |interval: Option<Interval>| {
        interval.map_or_else(|| "none".to_owned(), |one| format!("{} to {}", one.low, one.high))
    };
    let agree = match (recorded, derived) {
        (Some(a), Some(b)) => same(a.low, b.low) && same(a.high, b.high) && same(a.level, b.level),
        // The signatures of old records do not all state how the interval was drawn.
        (_, None) => true,
        (None, Some(_)) => false,
    };
    (!agree).then(|| format!("interval: recorded {}, derived {}", text(recorded), text(derived)))
}

/// The references for this number of lines. If the score needs none and they are absent, they are
/// empty lines.
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

impl Disagreement {
    /// The disagreement for a record that contradicts something other than its scores.
    #[must_use]
    pub fn of(entry: &Entry, found: Contradiction) -> Self {
        disagreement(entry, found.what, found.how)
    }
}

/// The lines of a kept file, if it is still the file that was scored.
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
    // Only a newline ends a line: a hypothesis may contain any other separator.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() })
}
