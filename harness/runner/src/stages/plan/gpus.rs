//! What a plan would take on a named GPU: by recorded runs, by the share of its peak that zoo has
//! reached, and at least, by its peak.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use zoo_recipes::{Document, Selection, nearest};
use zoo_results::ledger::Record;
use zoo_results::report::{duration, uncounted};

use super::{ArmPlan, step_cost};
use crate::error::{Failure, Result};
use crate::records::Kept;

/// Peaks of GPUs, and the shares that were reached.
#[derive(Deserialize)]
struct Table {
    gpu: BTreeMap<String, Gpu>,
    reached: Vec<Reached>,
}

/// A GPU as its maker states it. Speeds are in TFLOP/s; 0 if it has no fast products of a type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    name: String,
    /// Part of the name that its driver gives.
    driver: String,
    fp32: f64,
    #[serde(default)]
    tf32: f64,
    fp16: f64,
    #[serde(default)]
    bf16: f64,
    source: String,
}

impl Gpu {
    /// Peak in operations per second, of a type or, without fast products of it, of FP32.
    fn peak(&self, compute: &str) -> f64 {
        let teraflops = match compute {
            "tf32" => self.tf32,
            "fp16" => self.fp16,
            "bf16" => self.bf16,
            _ => self.fp32,
        };
        1e12 * if teraflops > 0.0 { teraflops } else { self.fp32 }
    }

    /// Whether a record was made on this GPU. `L4` is not an `L40S`.
    fn is_of(&self, record: &Record) -> bool {
        let hardware = record.hardware.as_deref().unwrap_or_default();
        hardware.match_indices(&self.driver).any(|(at, found)| {
            let before = hardware[..at].chars().next_back();
            let after = hardware[at + found.len()..].chars().next();
            ![before, after].into_iter().flatten().any(|next| next.is_ascii_alphanumeric())
        })
    }
}

/// A speed that updates of zoo have reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reached {
    /// Type of the products.
    compute: String,
    recipe: String,
    /// Key of the GPU.
    gpu: String,
    tokens_per_second: f64,
}

impl Reached {
    /// The share of the GPU's peak.
    fn share(&self, gpus: &BTreeMap<String, Gpu>) -> Result<f64> {
        let recipe = Document::load(&self.recipe)?.resolve(&Selection::default())?.recipe;
        let step = step_cost(&recipe, None);
        let peak = gpus.get(&self.gpu).map_or(f64::INFINITY, |gpu| gpu.peak(&self.compute));
        Ok(self.tokens_per_second * step.operations / step.tokens / peak)
    }
}

fn table() -> Result<Table> {
    toml::from_str(include_str!("gpus.toml"))
        .map_err(|error| Failure::new(zoo_results::exit::Exit::Internal, format!("gpus.toml: {error}")))
}

/// What a request would take on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnGpu {
    pub gpu: String,
    /// Source of the stated peaks.
    pub source: String,
    /// The runs, in the order of the plan.
    pub runs: Vec<RunOnGpu>,
    /// Estimated duration of all runs, in seconds; `None` if one of them has no estimate.
    pub seconds: Option<f64>,
}

/// What a run would take on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOnGpu {
    pub arm: String,
    pub seed: u64,
    /// Estimated duration, in seconds; `None` if no speed of zoo with these products is recorded.
    pub seconds: Option<f64>,
    /// Duration at the stated peak, in seconds. A run is never shorter.
    pub least_seconds: f64,
    /// Where the estimate comes from, or why there is none.
    pub basis: String,
}

impl fmt::Display for OnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  on {}, peaks by the {}", self.gpu, self.source)?;
        for RunOnGpu { arm, seed, seconds, least_seconds, basis } in &self.runs {
            let about = seconds.map_or_else(String::new, |seconds| format!("about {}, ", duration(seconds)));
            let least = duration(*least_seconds);
            write!(f, "\n  {arm:<6} seed {seed}: {about}at least {least} ({basis})")?;
        }
        match self.seconds {
            Some(seconds) => write!(f, "\n  all     about {}", duration(seconds)),
            None => Ok(()),
        }
    }
}

/// What these runs would take on the GPU `name`. `records` are those of the recipe in this tier,
/// with these changes. `system` is the hash of the recipe as records have it.
///
/// # Errors
/// `gpus.toml` has no GPU of this name.
pub fn on_gpu(name: &str, runs: &[ArmPlan], records: &[Kept], system: &str) -> Result<OnGpu> {
    let Table { gpu: all, reached } = table()?;
    let key = name.to_lowercase().replace([' ', '-', '_'], "");
    let Some(gpu) = all.get(&key) else {
        let hint = nearest(&key, all.keys().map(String::as_str));
        let hint = hint.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("no speeds of the GPU `{name}` are known"))
            .hint(format!("{hint}these are: {}", known.join(", "))));
    };
    let of_run = |run: &ArmPlan| -> Result<RunOnGpu> {
        let ArmPlan { arm, seed, products, updates, all_updates, operations, .. } = run;
        let least_seconds = operations / gpu.peak(products);
        let (seconds, basis) = match recorded(gpu, arm, records, system) {
            Some((seconds, at)) => {
                let left = *updates as f64 / (*all_updates).max(1) as f64;
                (Some(seconds * left), format!("recorded: {at}"))
            }
            None => match reached.iter().find(|reached| reached.compute == *products) {
                Some(reached) => {
                    let share = reached.share(&all)?;
                    (Some(least_seconds / share), by_share(share, reached, &key))
                }
                None => (None, format!("no speed of zoo in {products} on a GPU is recorded")),
            },
        };
        Ok(RunOnGpu { arm: arm.clone(), seed: *seed, seconds, least_seconds, basis })
    };
    let runs = runs.iter().map(of_run).collect::<Result<Vec<_>>>()?;
    Ok(OnGpu {
        seconds: runs.iter().map(|run| run.seconds).sum(),
        gpu: gpu.name.clone(),
        source: gpu.source.clone(),
        runs,
    })
}

/// Mean training time of the arm's runs in the last record of this GPU, and the record. A record of
/// the recipe as it is now comes before one of another version.
fn recorded(gpu: &Gpu, arm: &str, records: &[Kept], system: &str) -> Option<(f64, String)> {
    let is_current = |kept: &Kept| kept.entry.record.system.as_deref() == Some(system);
    let of_record = |kept: &Kept| {
        let Kept { whose, entry } = kept;
        let times: Vec<f64> = entry
            .record
            .runs
            .iter()
            .filter(|run| run.arm == arm)
            .filter_map(|run| entry.record.durations.get(&format!("train {arm} seed {}", run.seed)))
            .copied()
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let ledger = if *whose == "here" { " of this home" } else { "" };
        let version = if is_current(kept) { "" } else { ", of another version of the recipe" };
        (!times.is_empty()).then(|| (mean, format!("record {}{ledger}{version}", entry.sequence)))
    };
    // No commit restores what a working tree with changes ran.
    let counts = |record: &Record| gpu.is_of(record) && uncounted(record).is_none();
    let here = records.iter().filter(|kept| counts(&kept.entry.record));
    let (current, others): (Vec<&Kept>, Vec<&Kept>) = here.partition(|kept| is_current(kept));
    current.into_iter().rev().chain(others.into_iter().rev()).find_map(of_record)
}

/// Basis of an estimate by a share of the peak of the GPU `key`.
fn by_share(share: f64, Reached { recipe, gpu, .. }: &Reached, key: &str) -> String {
    let elsewhere = if gpu == key { String::new() } else { format!(" on {gpu}") };
    format!("at the {:.1} % of its peak that {recipe} reached{elsewhere}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use zoo_results::ledger::Entry;

    use super::*;

    fn run(products: &'static str, updates: u64) -> ArmPlan {
        ArmPlan {
            arm: products.to_owned(),
            seed: 1,
            parameters: 1,
            products,
            updates,
            all_updates: 100,
            examples_assumed: false,
            trained: None,
            operations: 67e12,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_recorded_run_of_the_gpu_is_taken_before_a_share_of_its_peak() {
        let record = |hardware: &str, seconds: f64, system: &str| {
            let record = serde_json::json!({
                "time": "", "recipe": "r", "recipe_hash": "", "arm": null, "tier": null, "seeds": [1],
                "end": "finished", "reason": null, "commit": null, "dirty": false, "commits_crossed": [],
                "lock_hash": null, "device": null, "hardware": hardware, "driver": null, "precision": {},
                "data": {}, "scores": [], "durations": {"train fp32 seed 1": seconds}, "overrides": {},
                "judgements": [], "notes": [], "system": system,
                "runs": [{"arm": "fp32", "seed": 1, "folder": "f", "environment": {}, "files": {}}],
            });
            let record: Record = serde_json::from_value(record).unwrap();
            let entry = Entry { sequence: 7, previous: String::new(), hash: String::new(), record };
            Kept { whose: "project", entry }
        };
        let h100 = "1x NVIDIA H100 80GB HBM3";
        let records =
            [record(h100, 200.0, "now"), record(h100, 80.0, "then"), record("NVIDIA L40S", 9.0, "now")];
        let on = on_gpu("H100", &[run("fp32", 50), run("fp16", 100)], &records, "now").unwrap();
        assert_eq!((on.runs[0].seconds, on.runs[0].basis.as_str()), (Some(100.0), "recorded: record 7"));
        assert_eq!((on.runs[0].least_seconds, on.runs[1].seconds, on.seconds), (1.0, None, None));
        assert!((on.runs[1].least_seconds - 67.0 / 989.5).abs() < 1e-12);
        let on = on_gpu("h100", &[run("fp32", 100)], &records[1..], "now").unwrap();
        let basis = "recorded: record 7, of another version of the recipe";
        assert_eq!((on.runs[0].seconds, on.runs[0].basis.as_str()), (Some(80.0), basis));
        let mut dirty = record(h100, 1.0, "now");
        dirty.entry.record.dirty = true;
        let on = on_gpu("h100", &[run("fp32", 100)], &[dirty], "now").unwrap();
        assert!(!on.runs[0].basis.contains("recorded"), "{}", on.runs[0].basis);
        // An L4 is not an L40S.
        let on = on_gpu("l4", &[run("fp32", 50)], &records, "now").unwrap();
        assert!(on.runs[0].basis.ends_with("% of its peak that transformer-base reached on h100"));
        assert!(on.to_string().contains("all     about"), "{on}");
        let message = on_gpu("h1000", &[], &[], "").unwrap_err().to_string();
        assert!(message.contains("did you mean `h100`?"), "{message}");
    }

    #[test]
    fn speeds_are_those_of_the_committed_measurements() {
        let Table { gpu: all, reached } = table().unwrap();
        for one in &reached {
            let Reached { compute, recipe, gpu, tokens_per_second } = one;
            let file = format!("../../results/data/bench/nvidia-{gpu}-{recipe}.json");
            let rows: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            let row = rows.as_array().unwrap().iter().find(|row| row["mode"] == **compute).unwrap();
            assert_eq!(
                (&row["recipe"], &row["zoo"]),
                (&recipe.as_str().into(), &(*tokens_per_second).into())
            );
            assert!(row["machine"]["processor"].as_str().unwrap().contains(&all[gpu].driver));
            let share = one.share(&all).unwrap();
            assert!((0.05..0.9).contains(&share), "{recipe} in {compute}: {share}");
        }
        assert!(reached.iter().any(|one| one.compute == "fp32"));
    }
}
