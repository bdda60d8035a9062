//! Ledger records of started, ended and judged runs. Copies their hypotheses next to the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use zoo_datasets::fetch::sha256_file;
use zoo_recipes::{Moment, Resolved};
use zoo_results::exit::Exit;
use zoo_results::ledger::{
    HypothesesFile, Judgement, Record, RunEnd, RunRecord, ScoreRecord, references_key, utc_now,
};
use zoo_results::verdict::Interval;
use zoo_training::state::Ending;

use super::Request;
use super::judge::{JudgedClaim, Measured};
use super::spending::{with_words, without_claims};
use super::timing::Timing;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::records::{HYPOTHESES, ledger};
use crate::run::evaluate::Evaluation;
use crate::run::folder::Card;
use crate::{lines, records};

/// Files of a run's folder whose digests its record holds.
const RUN_FILES: [&str; 4] = ["run.json", "recipe.toml", "trained.json", "log.jsonl"];

/// Fields that all records of a recipe share.
fn base(recipe: &str, recipe_hash: String, tier: Option<&str>, environment: &Environment) -> Record {
    Record {
        time: utc_now(),
        recipe: recipe.to_string(),
        recipe_hash,
        tier: tier.map(str::to_string),
        commit: Some(environment.commit.clone()),
        dirty: environment.dirty,
        lock_hash: Some(environment.lock.clone()),
        device: Some(environment.device.clone()),
        hardware: Some(environment.hardware()),
        notes: vec![format!("{} threads, {} build", environment.threads, environment.profile)],
        ..Record::default()
    }
}

/// Records the start of a run. Every started run is in the ledger, whether or not it ends.
pub fn started(ctx: &Context, request: &Request, card: &Card, data: BTreeMap<String, String>) -> Result<()> {
    let hash = request.document.hash(request.tier.as_deref(), &request.overrides)?;
    let mut record = Record {
        arm: Some(card.arm.clone()),
        seeds: vec![card.seed],
        end: RunEnd::Started,
        data,
        overrides: overrides(&request.changes()),
        ..base(&card.recipe, hash, card.tier.as_deref(), &card.environment)
    };
    record.notes.extend(taken_from(card));
    ledger(ctx, None).append(&record)?;
    Ok(())
}

/// Records that a run stopped early: by the user, who can resume it, or by an error.
pub fn broken_off(ctx: &Context, request: &Request, card: &Card, failure: &Failure) -> Result<()> {
    let interrupted = failure.exit == Exit::Interrupted;
    let hash = request.document.hash(request.tier.as_deref(), &request.overrides)?;
    let record = Record {
        arm: Some(card.arm.clone()),
        seeds: vec![card.seed],
        end: if interrupted { RunEnd::Interrupted } else { RunEnd::Failed },
        reason: Some(failure.to_string()),
        overrides: overrides(&request.changes()),
        ..base(&card.recipe, hash, card.tier.as_deref(), &card.environment)
    };
    ledger(ctx, None).append(&record)?;
    Ok(())
}

/// Records runs and verdicts, unless the ledger has an identical record of the same runs or of runs
/// by the same program.
///
/// Returns a record and the hash of the ledger's last record. The record is the known one if this
/// call trained nothing, else that of this call, even if it was not written.
pub fn judged(
    ctx: &Context,
    request: &Request,
    arms: &[Resolved],
    seeds: &[u64],
    measured: &[Measured],
    timings: &[Timing],
    judged: &[JudgedClaim],
) -> Result<(Record, String)> {
    let hash = request.document.hash(request.tier.as_deref(), &request.overrides)?;
    // With `--jobs`, the runs have a part of this process's threads.
    let of_runs: BTreeSet<usize> = measured.iter().map(|one| one.run.card.environment.threads).collect();
    let threads = of_runs.first().copied().filter(|_| of_runs.len() == 1).unwrap_or(ctx.threads);
    let environment = Environment::current(&ctx.device.settled().to_string(), threads);
    let mut record = Record {
        arm: match arms {
            [only] => only.arm.clone(),
            _ => None,
        },
        seeds: seeds.to_vec(),
        system: Some(without_claims(request)?),
        system_with_words: Some(with_words(request)?),
        overrides: overrides(&request.changes()),
        ..base(request.document.name(), hash, request.tier.as_deref(), &environment)
    };
    let failed = measured.iter().find(|m| matches!(m.trained.ending, Ending::Diverged { .. }));
    if let Some(failed) = failed {
        record.end = RunEnd::Failed;
        let card = &failed.run.card;
        record.reason = Some(format!("{}, seed {}: training diverged", card.arm, card.seed));
    }
    for run in measured {
        if let Ending::OffCourse { at } = run.trained.ending {
            let card = &run.run.card;
            let place = format!("{} seed {}", card.arm, card.seed);
            record.notes.push(format!("{place}: given up at {at}, off the published course"));
        }
    }
    for run in measured {
        let card = &run.run.card;
        let place = format!("{} seed {}", card.arm, card.seed);
        record.notes.extend(taken_from(card));
        if let Some(precision) = run.precision {
            record.precision.insert(card.arm.clone(), precision.name().to_string());
        }
        record.durations.insert(format!("train {place}"), run.trained.seconds);
        let trained = &run.trained;
        record.notes.push(format!(
            "{place}: {} updates, {} epochs, {} skipped",
            trained.updates, trained.epochs, trained.skipped
        ));
        let this = environment.sources();
        // Two programs of one commit differ in uncommitted changes or in their lock file.
        let alike = run.made.other_programs.iter().filter(|commit| **commit == this);
        for commit in trained.commits.iter().filter(|commit| **commit != this).chain(alike) {
            if !record.commits_crossed.contains(commit) {
                record.commits_crossed.push(commit.clone());
            }
        }
        if !run.made.other_programs.is_empty() {
            record.notes.push(format!("{place}: {}", run.made));
        }
        record.data.extend(run.data.clone());
        record.runs.push(run_record(ctx, run)?);
        for evaluation in &run.evaluations {
            record.durations.insert(
                format!("decode {place} {} {}", evaluation.eval, evaluation.decode),
                evaluation.seconds,
            );
            let hypotheses = keep(ctx, run, &evaluation.hypotheses, &evaluation.hypotheses_sha256)?;
            // The recipe of a user's file may be missing at a later check, so its references are
            // kept.
            if zoo_recipes::find(&card.recipe).is_err() {
                let lines = lines::read(&run.run.folder.join("eval").join(&evaluation.references))?;
                let file = records::keep(ctx, &lines)?;
                record.data.insert(references_key(&evaluation.eval), file.sha256);
            }
            record.scores.extend(scores(card, evaluation, None, &hypotheses));
        }
        for (moment, evaluation) in
            run.on_the_way.iter().flat_map(|(moment, all)| all.iter().map(move |one| (*moment, one)))
        {
            let hypotheses = keep(ctx, run, &evaluation.hypotheses, &evaluation.hypotheses_sha256)?;
            record.on_the_way.extend(scores(card, evaluation, Some(moment), &hypotheses));
        }
    }
    record.notes.extend(timings.iter().map(Timing::note));
    let claims = &arms.first().ok_or_else(|| Failure::usage("no arm to judge"))?.recipe.claim;
    record.judgements = judged
        .iter()
        .filter_map(|judged| {
            let claim = claims.get(judged.number.checked_sub(1)?)?.clone();
            Some(Judgement { claim, evidence: judged.evidence.clone(), verdict: judged.verdict.clone() })
        })
        .collect();
    let ledger = ledger(ctx, None);
    let same = |known: &Record| {
        (&known.scores, &known.on_the_way, &known.judgements)
            == (&record.scores, &record.on_the_way, &record.judgements)
            && (&known.seeds, &known.recipe_hash, &known.overrides)
                == (&record.seeds, &record.recipe_hash, &record.overrides)
    };
    let known = ledger.entries()?.into_iter().map(|entry| entry.record);
    let reused = measured.iter().all(|run| run.made.reused);
    let program = |of: &Record| (of.commit.clone(), of.dirty, of.lock_hash.clone());
    let mut known = known.filter(|known| {
        (&known.recipe, &known.tier, known.end) == (&record.recipe, &record.tier, record.end)
            && same(known)
            && (reused || (!record.dirty && program(known) == program(&record)))
    });
    let record = match known.next_back() {
        Some(known) if reused => known,
        Some(_) => record,
        None => {
            ledger.append(&record)?;
            record
        }
    };
    Ok((record, ledger.verify(None)?.1))
}

/// The run whose weights a run began with, for its record.
fn taken_from(card: &Card) -> Option<String> {
    let origin = card.transfer.as_ref()?;
    Some(format!("{} seed {}: began with {origin}", card.arm, card.seed))
}

/// Record of a run's folder in its current state. A run that was stopped off course may continue,
/// so its digests are not recorded.
fn run_record(ctx: &Context, measured: &Measured) -> Result<RunRecord> {
    let (run, card) = (&measured.run, &measured.run.card);
    let below = run.folder.strip_prefix(ctx.runs_dir()).unwrap_or(&run.folder);
    let steps: Vec<_> = below.components().map(|step| step.as_os_str().to_string_lossy()).collect();
    let mut files = BTreeMap::new();
    if !matches!(measured.trained.ending, Ending::OffCourse { .. }) {
        for name in RUN_FILES {
            let file = run.folder.join(name);
            let digest = sha256_file(&file).map_err(|error| Failure::io("read", &file, &error))?;
            files.insert(name.to_owned(), digest);
        }
    }
    let environment = serde_json::to_value(&card.environment);
    let environment = environment
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot write the environment: {error}")))?;
    Ok(RunRecord { arm: card.arm.clone(), seed: card.seed, folder: steps.join("/"), environment, files })
}

/// One score record for each convention of an evaluation.
fn scores(
    card: &Card,
    evaluation: &Evaluation,
    moment: Option<Moment>,
    hypotheses: &HypothesesFile,
) -> impl Iterator<Item = ScoreRecord> {
    evaluation.scores.iter().map(move |value| ScoreRecord {
        eval: evaluation.eval.clone(),
        decode: evaluation.decode.clone(),
        arm: card.arm.clone(),
        seed: card.seed,
        moment,
        metric: value.metric.name.to_string(),
        signature: value.signature.to_string(),
        value: value.value,
        interval: value.interval.as_ref().map(|i| Interval {
            low: i.lower,
            high: i.upper,
            level: i.confidence,
        }),
        hypotheses: Some(hypotheses.clone()),
    })
}

/// Copies a run's hypotheses next to the ledger, under a descriptive name.
fn keep(ctx: &Context, run: &Measured, file: &std::path::Path, sha256: &str) -> Result<HypothesesFile> {
    let card = &run.run.card;
    let recipe =
        card.tier.as_ref().map_or_else(|| card.recipe.clone(), |tier| format!("{}.{tier}", card.recipe));
    // Names like `epoch-3/…` belong to points of a trajectory.
    let name = file.to_string_lossy().replace(['/', '\\'], "-");
    let folder = format!("{recipe}/{}-seed{}-{}", card.arm, card.seed, &card.key[..12]);
    let from = run.run.folder.join("eval").join(file);
    let bytes = std::fs::read(&from).map_err(|e| Failure::io("read", &from, &e))?;
    let place = |path: &str| -> PathBuf { ctx.home.join(HYPOTHESES).join(path) };
    let mut path = format!("{folder}/{name}");
    // An existing file with other content belongs to an earlier run that the ledger still refers
    // to.
    if std::fs::read(place(&path)).is_ok_and(|kept| kept != bytes) {
        path = format!("{folder}/{}-{name}", &sha256[..8]);
    }
    if !place(&path).is_file() {
        write_whole(&place(&path), &bytes)?;
    }
    Ok(HypothesesFile { path, sha256: sha256.to_string() })
}

/// Splits `key=value` texts into pairs.
fn overrides(given: &[String]) -> BTreeMap<String, String> {
    let split = |text: &String| {
        text.split_once('=').map(|(key, value)| (key.trim().to_string(), value.trim().to_string()))
    };
    given.iter().filter_map(split).collect()
}
