//! Compares records with earlier records.

use zoo_recipes::{ClaimKind, ClaimSpec, Direction};

use super::quality::{Quality, Sample, Standing};
use super::row::{Check, Row};
use super::speed::{self, ratios};
use crate::ledger::{Record, RunEnd, ScoreRecord};
use crate::metrics::{Entry, Signature};
use crate::statistics::ALPHA;
use crate::verdict::{Outcome, listed, rejudge, signature_difference, stated_sigma};

/// Limits for raising an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Rate of false alarms for the whole call, shared by all quality comparisons whose hypotheses
    /// changed.
    pub alarm_rate: f64,
    /// Share by which a speed ratio may fall.
    pub speed_tolerance: f64,
    /// Whether records of other devices are used as well.
    pub any_device: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { alarm_rate: ALPHA, speed_tolerance: 0.10, any_device: false }
    }
}

/// One score that both sides may have.
struct Cell<'r> {
    record: &'r Record,
    score: &'r ScoreRecord,
    sample: Sample,
}

/// Compares each new record with its claims and with the recorded ones. Of two records of the same
/// seed, the later one is used. A record is never compared with itself.
#[must_use]
pub fn compare(ours: &[&Record], recorded: &[&Record], limits: &Limits) -> Vec<Row> {
    let mut rows = Vec::new();
    let cells: Vec<(Cell<'_>, Result<Sample, String>)> = (ours.iter())
        .flat_map(|record| cells(record))
        .map(|cell| {
            let found = baseline(&cell, recorded, limits);
            (cell, found)
        })
        .collect();
    let changed = cells
        .iter()
        .filter(|(cell, found)| found.as_ref().is_ok_and(|base| !cell.sample.is_within(base)))
        .count();
    // Sidak's correction: this many independent comparisons at this level have the false-alarm rate
    // of the whole call.
    let level = |count: usize| 1.0 - (1.0 - limits.alarm_rate).powf(1.0 / count.max(1) as f64);
    for record in ours {
        rows.extend(record.judgements.iter().map(|judgement| {
            let verdict =
                listed(&judgement.claim, &rejudge(&record.recipe, &judgement.claim, &judgement.evidence));
            let arm = judgement.evidence.arm.clone().unwrap_or_default();
            let kind = judgement.claim.kind.name().to_owned();
            let parts = [Some(kind), Some(verdict.metric.clone()), verdict.eval.clone(), Some(arm)];
            Row {
                recipe: record.recipe.clone(),
                tier: record.tier.clone(),
                check: Check::Target,
                subject: parts
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(" "),
                claim: Some(judgement.claim.clone()),
                statement: Some(judgement.claim.statement()),
                place: None,
                expected: verdict.published,
                measured: verdict.measured,
                outcome: verdict.outcome,
                standing: verdict.outcome.to_string(),
                explanation: verdict.explanation,
                run: None,
            }
        }));
    }
    for (cell, found) in &cells {
        rows.push(quality(cell, found, level(changed)));
    }
    for record in ours {
        rows.extend(speeds(record, recorded, limits));
    }
    number_doubles(&mut rows);
    rows.sort_by(|one, other| {
        (one.suite(), one.check, one.statement).cmp(&(other.suite(), other.check, other.statement))
    });
    rows
}

/// Distinguishes two claims on the same quantity by a number.
fn number_doubles(rows: &mut [Row]) {
    for at in 1..rows.len() {
        let same = |row: &&Row| row.suite() == rows[at].suite() && row.check == rows[at].check;
        let base = rows[at].subject.clone();
        let before = rows[..at].iter().filter(same).filter(|row| {
            row.subject == base || row.subject.strip_prefix(&base).is_some_and(|rest| rest.starts_with(" #"))
        });
        match before.count() {
            0 => {}
            n => rows[at].subject = format!("{base} #{}", n + 1),
        }
    }
}

/// The scores of a record, with those of several seeds combined.
fn cells(record: &Record) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for score in &record.scores {
        let run = run_of(score);
        match cells.iter_mut().find(|cell| is_same(cell.score, score)) {
            Some(cell) => cell.sample.runs.push(run),
            None => cells.push(Cell { record, score, sample: Sample { runs: vec![run] } }),
        }
    }
    cells
}

fn run_of(score: &ScoreRecord) -> (u64, f64, Option<String>) {
    (score.seed, score.value, score.hypotheses.as_ref().map(|file| file.sha256.clone()))
}

/// Whether two scores differ only in seed or record: everything that decides comparability is
/// equal.
fn is_same(one: &ScoreRecord, other: &ScoreRecord) -> bool {
    (&one.eval, &one.decode, &one.arm, &one.metric) == (&other.eval, &other.decode, &other.arm, &other.metric)
        && match (Signature::parse(&one.signature), Signature::parse(&other.signature)) {
            (Ok(one), Ok(other)) => one.comparable(&other).is_ok(),
            _ => one.signature == other.signature,
        }
}

fn is_published(record: &Record) -> bool {
    record.overrides.is_empty() && matches!(record.end, RunEnd::Finished | RunEnd::External)
}

/// The recorded sample of a score, or the reason why there is nothing to compare with.
fn baseline(cell: &Cell<'_>, recorded: &[&Record], limits: &Limits) -> Result<Sample, String> {
    let ours = cell.record;
    let of_recipe =
        |record: &&&Record| record.recipe == ours.recipe && record.tier == ours.tier && is_published(record);
    let (itself, of_recipe): (Vec<&&Record>, Vec<&&Record>) =
        recorded.iter().filter(of_recipe).partition(|record| **record == ours);
    match (itself.is_empty(), of_recipe.is_empty()) {
        (true, true) => return Err("there is no earlier record".to_owned()),
        (false, true) => return Err("the only record is this run itself".to_owned()),
        _ => {}
    }
    let of_version: Vec<&&Record> =
        of_recipe.into_iter().filter(|record| record.recipe_hash == ours.recipe_hash).collect();
    if of_version.is_empty() {
        return Err("only other versions of the recipe were recorded".to_owned());
    }
    let here = |record: &&&Record| {
        limits.any_device || (&record.device, &record.hardware) == (&ours.device, &ours.hardware)
    };
    let on_device: Vec<&&Record> = of_version.into_iter().filter(here).collect();
    if on_device.is_empty() {
        let device =
            ours.hardware.clone().or_else(|| ours.device.clone()).unwrap_or_else(|| "this device".into());
        return Err(format!("no record on {device}; --any-device also uses records of other machines"));
    }
    let mut sample = Sample::default();
    for score in on_device.iter().flat_map(|record| &record.scores).filter(|score| is_same(cell.score, score))
    {
        let run = run_of(score);
        match sample.runs.iter_mut().find(|known| known.0 == run.0) {
            Some(known) => *known = run,
            None => sample.runs.push(run),
        }
    }
    if sample.runs.is_empty() { Err("this score was not recorded".to_owned()) } else { Ok(sample) }
}

/// The claim whose numbers concern a score.
fn claim_of<'r>(record: &'r Record, score: &ScoreRecord) -> Option<&'r ClaimSpec> {
    let about = |claim: &&ClaimSpec| {
        claim.is_of(&score.eval, &score.decode)
            && claim.signature.as_ref().is_some_and(|s| signature_difference(s, &score.signature).is_none())
    };
    let claims = || record.judgements.iter().map(|judgement| &judgement.claim);
    let of_arm = |claim: &&ClaimSpec| {
        matches!(claim.arm.as_deref(), None | Some("any")) || claim.arm.as_ref() == Some(&score.arm)
    };
    claims().filter(about).find(of_arm).or_else(|| claims().find(about))
}

fn quality(cell: &Cell<'_>, found: &Result<Sample, String>, alpha: f64) -> Row {
    let (record, score) = (cell.record, cell.score);
    let claim = claim_of(record, score);
    let sigma = claim.and_then(stated_sigma);
    let direction = claim.and_then(|claim| claim.direction);
    let direction = direction.or_else(|| Entry::find(&score.metric).map(|metric| metric.direction));
    let subject = [&score.metric, &score.eval, &score.decode, &score.arm];
    let subject: Vec<&str> =
        subject.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let mut row = Row {
        recipe: record.recipe.clone(),
        tier: record.tier.clone(),
        check: Check::Quality,
        subject: subject.join(" "),
        claim: claim.cloned(),
        statement: None,
        place: None,
        expected: None,
        measured: Some(cell.sample.mean()),
        outcome: Outcome::NotComparable,
        standing: "no baseline".to_owned(),
        explanation: String::new(),
        run: None,
    };
    match found {
        Err(why) => row.explanation.clone_from(why),
        Ok(recorded) => {
            row.expected = Some(recorded.mean());
            let quality = Quality::compare(
                &cell.sample,
                recorded,
                direction.unwrap_or(Direction::Higher),
                sigma,
                alpha,
            );
            (row.outcome, row.standing) = (quality.standing.outcome(), quality.standing.name().to_owned());
            row.explanation = quality.explanation;
            debug_assert!(quality.standing != Standing::Worse || quality.shortfall > 0.0);
        }
    }
    row
}

fn speeds(ours: &Record, recorded: &[&Record], limits: &Limits) -> Vec<Row> {
    let here = |record: &&&Record| {
        record.recipe == ours.recipe
            && record.tier == ours.tier
            && record.recipe_hash == ours.recipe_hash
            && is_published(record)
            && (&record.device, &record.hardware) == (&ours.device, &ours.hardware)
            && **record != ours
    };
    let row = |ratio: &speed::Ratio| {
        // The latest record with this ratio.
        let known = recorded.iter().filter(here).rev().flat_map(|record| ratios(record));
        let known =
            known.into_iter().find(|known| (&known.arm, &known.baseline) == (&ratio.arm, &ratio.baseline));
        let (outcome, standing, explanation) = match &known {
            Some(known) => speed::compare(ratio, known, limits.speed_tolerance, limits.alarm_rate),
            None => {
                (Outcome::NotComparable, "no baseline", "no ratio was recorded on this device".to_owned())
            }
        };
        let is_ratio = |claim: &&ClaimSpec| claim.kind == ClaimKind::Ratio;
        Row {
            recipe: ours.recipe.clone(),
            tier: ours.tier.clone(),
            check: Check::Speed,
            subject: format!("{} over {}", ratio.arm, ratio.baseline),
            claim: ours.judgements.iter().map(|judgement| &judgement.claim).find(is_ratio).cloned(),
            statement: None,
            place: None,
            expected: known.as_ref().map(speed::Ratio::value),
            measured: Some(ratio.value()),
            outcome,
            standing: standing.to_owned(),
            explanation,
            run: None,
        }
    };
    ratios(ours).iter().map(row).collect()
}
