//! Results of other programs as evidence for claims.

mod fractions;
pub mod row;
pub mod tracked;

use std::collections::BTreeMap;
use std::path::PathBuf;

use zoo_recipes::{ClaimKind, ClaimSpec, DIRECT, Resolved, TrajectoryPoint};
use zoo_results::exit::Exit;
use zoo_results::ledger::{HypothesesFile, Judgement, ScoreRecord, difference, references_key};
use zoo_results::metrics::{Convention, Entry, Resampling, ScoreError, ScoreOptions, Scorer, score};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{ErrorCount, Evidence, Interval, PointScores, RunScore, RunStatus};

use self::row::ScoreRow;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::{lines, records, references};

/// Results that the command line names: scores or hypotheses of runs that differ only in their
/// seed. Both arms list their runs in the same order.
#[derive(Debug)]
pub struct Given<'a> {
    pub scores: &'a [f64],
    /// Scores of the baseline arm.
    pub baseline_scores: &'a [f64],
    /// Hypotheses, one file per run.
    pub hypotheses: &'a [PathBuf],
    /// Hypotheses of the baseline arm.
    pub baseline_hypotheses: &'a [PathBuf],
    /// Reference streams; if empty, those of the recipe's data.
    pub references: &'a [PathBuf],
    /// Scores at the points of a trajectory, one row per run.
    pub points: &'a [ScoreRow],
    /// Whether scores that look like fractions are percentages.
    pub as_given: bool,
    /// Whether the scores come from a tracker, so that the user cannot write them otherwise.
    pub tracked: bool,
}

/// The results after reading all files.
#[derive(Debug)]
pub struct Results {
    scores: Vec<f64>,
    baseline_scores: Vec<f64>,
    /// Hypotheses by run.
    hypotheses: Vec<Vec<String>>,
    baseline_hypotheses: Vec<Vec<String>>,
    points: Vec<ScoreRow>,
    /// References by evaluation set; a single entry without a name if the user gave them.
    references: Vec<(Option<String>, Vec<Vec<String>>)>,
    /// Evaluation sets of the claims that are scored from text.
    evals: Vec<String>,
}

impl Results {
    /// Reads the given results, and loads references if they are needed but not given.
    ///
    /// # Errors
    /// A score is not a number or looks like a fraction, a file cannot be read, or bare scores
    /// would be compared with claims on different metrics.
    pub fn gather(
        context: &Context,
        given: &Given<'_>,
        resolved: &Resolved,
        claims: &[(usize, &ClaimSpec)],
    ) -> Result<Self> {
        let scores = given.scores.iter().chain(given.baseline_scores);
        if let Some(bad) = scores.clone().find(|score| !score.is_finite()) {
            return Err(Failure::usage(format!("{bad} is not a valid score"))
                .hint("leave out a run that has no score"));
        }
        // BLEU and chrF range from 0 to 100.
        let share = claims.iter().any(|(_, claim)| matches!(claim.metric.as_str(), "bleu" | "chrf"));
        if let Some(bad) = scores.clone().find(|score| share && !(0.0..=100.0).contains(*score)) {
            return Err(Failure::usage(format!("{bad} is not a valid score: it is not between 0 and 100"))
                .hint("BLEU and chrF are given in points, e.g. 27.3"));
        }
        if !given.as_given {
            let on_the_way = given.points.iter().flat_map(|row| &row.0);
            fractions::refuse(scores.chain(on_the_way).copied(), claims, given.tracked)?;
        }
        let read = |paths: &[PathBuf]| paths.iter().map(|path| lines::read(path)).collect::<Result<Vec<_>>>();
        let mut results = Self {
            scores: given.scores.to_vec(),
            baseline_scores: given.baseline_scores.to_vec(),
            hypotheses: read(given.hypotheses)?,
            baseline_hypotheses: read(given.baseline_hypotheses)?,
            points: given.points.to_vec(),
            references: Vec::new(),
            evals: Vec::new(),
        };
        if !results.scores.is_empty() {
            one_measure(claims)?;
        }
        if results.hypotheses.is_empty() {
            return Ok(results);
        }
        different(given.hypotheses, &results.hypotheses)?;
        different(given.baseline_hypotheses, &results.baseline_hypotheses)?;
        let scored = claims.iter().filter(|(_, claim)| scorer_of(claim).is_ok());
        results.evals = scored.filter_map(|(_, claim)| claim.eval.clone()).collect();
        results.evals.sort();
        results.evals.dedup();
        if given.references.is_empty() {
            for set in &results.evals {
                results.references.push((Some(set.clone()), vec![references::of(context, resolved, set)?]));
            }
        } else {
            results.references.push((None, read(given.references)?));
        }
        let mut due: Vec<usize> =
            results.references.iter().flat_map(|(_, streams)| streams).map(Vec::len).collect();
        due.sort_unstable();
        due.dedup();
        let ours = given.hypotheses.iter().zip(&results.hypotheses);
        let theirs = given.baseline_hypotheses.iter().zip(&results.baseline_hypotheses);
        for (file, lines) in ours.chain(theirs) {
            // With several evaluation sets, the text belongs to one of them, which the number of
            // lines of each claim's set determines.
            if !due.is_empty() && !due.contains(&lines.len()) {
                let lengths: Vec<String> = due.iter().map(usize::to_string).collect();
                let (file, found) = (file.display(), lines.len());
                let message =
                    format!("{file}: it has {found} lines, the references have {}", lengths.join(" or "));
                return Err(Failure::new(Exit::Data, message)
                    .hint("one hypothesis a line, in the order of the references"));
            }
        }
        Ok(results)
    }

    /// Evidence for a claim.
    ///
    /// # Errors
    /// A description of why the results are not evidence for the claim.
    pub fn evidence(
        &self,
        arm: Option<&str>,
        signature: Option<&str>,
        claim: &ClaimSpec,
    ) -> std::result::Result<Evidence, String> {
        let mut evidence = Evidence {
            arm: arm.map(str::to_owned),
            signature: signature.map(str::to_owned),
            external: true,
            ..Evidence::default()
        };
        match claim.kind {
            ClaimKind::Ratio => return Err("no timing was given".to_owned()),
            ClaimKind::Value | ClaimKind::Bound => {
                evidence.runs = self.runs(claim, &mut evidence.signature, &self.scores, &self.hypotheses)?;
            }
            ClaimKind::Parity => self.pairs(claim, &mut evidence)?,
            ClaimKind::Trajectory => evidence.points = self.on_the_way(claim)?,
            _ => return Err("not judged from scores".to_owned()),
        }
        let runs = evidence.runs.len().max(evidence.points.first().map_or(0, |point| point.runs.len()));
        evidence.plan = LookPlan::fixed(u32::try_from(runs.max(1)).unwrap_or(u32::MAX));
        Ok(evidence)
    }

    fn runs(
        &self,
        claim: &ClaimSpec,
        signature: &mut Option<String>,
        scores: &[f64],
        hypotheses: &[Vec<String>],
    ) -> std::result::Result<Vec<RunScore>, String> {
        if hypotheses.is_empty() {
            return Ok(scores.iter().map(|score| RunScore::external(*score)).collect());
        }
        let (scorer, references) = (scorer_of(claim)?, self.references_of(claim)?);
        let mut runs = Vec::new();
        for hypotheses in hypotheses {
            let options = ScoreOptions { scorer: scorer.clone(), resampling: Some(Resampling::default()) };
            let value = score(hypotheses, references, &options).map_err(|error| error.to_string())?;
            *signature = Some(value.signature.to_string());
            runs.push(RunScore {
                score: Some(value.value),
                counts: ErrorCount::of(&value),
                interval: value.interval.map(|interval| Interval {
                    low: interval.lower,
                    high: interval.upper,
                    level: interval.confidence,
                }),
                hypotheses: Some(records::digest_of(hypotheses)),
                ..RunScore::default()
            });
        }
        Ok(runs)
    }

    /// Scores at a claim's points. A run that ended early lacks the last points.
    fn on_the_way(&self, claim: &ClaimSpec) -> std::result::Result<Vec<PointScores>, String> {
        let most = self.points.iter().map(|row| row.0.len()).max().unwrap_or(0);
        if most == 0 {
            return Err("no scores on the way were given (--points)".to_owned());
        }
        if most > claim.points.len() {
            return Err(format!(
                "{most} scores on the way were given, the claim has {} points",
                claim.points.len()
            ));
        }
        let run = |score: Option<&f64>| match score {
            Some(score) => RunScore::external(*score),
            None => RunScore { status: RunStatus::Missing, ..RunScore::default() },
        };
        let at = |(place, point): (usize, &TrajectoryPoint)| PointScores {
            at: point.at,
            runs: self.points.iter().map(|row| run(row.0.get(place))).collect(),
        };
        Ok(claim.points.iter().enumerate().map(at).collect())
    }

    /// Pairs the runs of both arms by position.
    fn pairs(&self, claim: &ClaimSpec, evidence: &mut Evidence) -> std::result::Result<(), String> {
        let mut runs = self.runs(claim, &mut evidence.signature, &self.scores, &self.hypotheses)?;
        let mut baseline =
            self.runs(claim, &mut evidence.signature, &self.baseline_scores, &self.baseline_hypotheses)?;
        if baseline.is_empty() {
            return Err(
                "nothing of the baseline arm was given (--baseline-scores, --baseline-hypotheses)".to_owned()
            );
        }
        if baseline.len() != runs.len() {
            return Err(format!(
                "{} runs and {} of the baseline arm cannot be paired",
                runs.len(),
                baseline.len()
            ));
        }
        // Positions stand in for the unknown seeds.
        for (seed, (run, baseline)) in (1..).zip(runs.iter_mut().zip(&mut baseline)) {
            (run.seed, baseline.seed) = (Some(seed), Some(seed));
        }
        if !self.hypotheses.is_empty() {
            let (scorer, references) = (scorer_of(claim)?, self.references_of(claim)?);
            for (run, (ours, theirs)) in
                runs.iter_mut().zip(self.hypotheses.iter().zip(&self.baseline_hypotheses))
            {
                let interval = difference(&scorer, ours, theirs, references, Resampling::default(), 0.95);
                run.difference = Some(interval.map_err(|error| error.to_string())?);
            }
        }
        evidence.baseline = Some(claim.baseline.clone().unwrap_or_else(|| "fp32".to_owned()));
        (evidence.runs, evidence.baseline_runs) = (runs, baseline);
        Ok(())
    }

    fn references_of(&self, claim: &ClaimSpec) -> std::result::Result<&[Vec<String>], String> {
        let given = self.references.iter().find(|(set, _)| set.is_none() || *set == claim.eval);
        given
            .map(|(_, streams)| streams.as_slice())
            .ok_or_else(|| "there are no references of its set".to_owned())
    }

    /// Stores the references for a recheck, and returns their digests. Multiple reference streams
    /// cannot be rechecked and are not stored.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn kept_references(&self, context: &Context) -> Result<BTreeMap<String, String>> {
        let mut kept = BTreeMap::new();
        for (set, streams) in &self.references {
            if let [lines] = streams.as_slice() {
                let sets = match set {
                    Some(set) => vec![set.clone()],
                    None => self.evals.clone(),
                };
                let file = records::keep(context, lines)?;
                kept.extend(sets.iter().map(|set| (references_key(set), file.sha256.clone())));
            }
        }
        Ok(kept)
    }

    /// Scores as ledger records, with stored hypotheses. Claims that are scored alike share the
    /// records of a run.
    ///
    /// # Errors
    /// The hypotheses cannot be written.
    pub fn score_records(&self, context: &Context, judged: &[Judgement]) -> Result<Vec<ScoreRecord>> {
        let keep = |all: &[Vec<String>]| -> Result<Vec<HypothesesFile>> {
            all.iter().map(|lines| records::keep(context, lines)).collect()
        };
        let (kept, kept_baseline) = (keep(&self.hypotheses)?, keep(&self.baseline_hypotheses)?);
        let mut scores: Vec<ScoreRecord> = Vec::new();
        for Judgement { claim, evidence, .. } in judged {
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            let ours = evidence.runs.iter().enumerate().map(|(at, run)| (at, run, &evidence.arm, &kept));
            let theirs = evidence.baseline_runs.iter().enumerate();
            let theirs = theirs.map(|(at, run)| (at, run, &evidence.baseline, &kept_baseline));
            for (at, run, arm, kept) in ours.chain(theirs) {
                let Some(value) = run.score else { continue };
                let score = ScoreRecord {
                    eval: text(&claim.eval),
                    decode: search_of(claim),
                    arm: text(arm),
                    // External runs are numbered in the order in which they were given.
                    seed: at as u64 + 1,
                    moment: None,
                    metric: claim.metric.clone(),
                    signature: text(&evidence.signature),
                    value,
                    interval: run.interval,
                    hypotheses: kept.get(at).cloned(),
                };
                if !scores.contains(&score) {
                    scores.push(score);
                }
            }
        }
        Ok(scores)
    }
}

/// Name of the search in the record of a claim's score. A claim on an evaluation set without a
/// search is on the outputs of a task that has no searches.
fn search_of(claim: &ClaimSpec) -> String {
    let direct = claim.eval.as_ref().map(|_| DIRECT);
    claim.decode.as_deref().or(direct).unwrap_or_default().to_owned()
}

/// Fails if two runs have the same text, because runs are independent.
fn different(files: &[PathBuf], texts: &[Vec<String>]) -> Result<()> {
    for (at, text) in texts.iter().enumerate() {
        if let Some(same) = texts[..at].iter().position(|other| other == text) {
            let message = format!("{} and {} have the same text", files[same].display(), files[at].display());
            return Err(Failure::usage(message).hint("give one file per run, from runs with different seeds"));
        }
    }
    Ok(())
}

/// Fails if bare scores would be judged against claims on different quantities, which a bare score
/// cannot distinguish.
fn one_measure(claims: &[(usize, &ClaimSpec)]) -> Result<()> {
    let takes_scores =
        |claim: &ClaimSpec| matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound | ClaimKind::Parity);
    let mut of: Vec<(usize, String)> = (claims.iter().filter(|(_, claim)| takes_scores(claim)))
        .map(|(number, claim)| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            let what = [&claim.eval, &claim.decode, &claim.signature].map(part).join(" ");
            (*number, format!("{} {what}", claim.metric).trim().to_owned())
        })
        .collect();
    of.sort_by(|one, other| one.1.cmp(&other.1));
    of.dedup_by(|one, other| one.1 == other.1);
    if of.len() <= 1 {
        return Ok(());
    }
    let all: Vec<String> = of.iter().map(|(number, what)| format!("{number}: {what}")).collect();
    Err(Failure::usage(format!("the claims use different metrics or conventions\n  {}", all.join("\n  ")))
        .hint("select the claims of these scores with --claim N"))
}

/// The scorer of a claim's metric for text.
fn scorer_of(claim: &ClaimSpec) -> std::result::Result<Scorer, String> {
    let scorer = match &claim.signature {
        Some(signature) => Scorer::from_signature(signature),
        None => Entry::with_signature(&claim.metric).and_then(|(metric, _)| match metric.name {
            "exact-match" => Scorer::new(Convention::ExactMatch(Default::default())),
            other => Err(ScoreError::NotFromText { metric: other }),
        }),
    };
    scorer.map_err(|error| error.to_string())
}
