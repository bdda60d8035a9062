//! Settings that apply to all commands and stages of a call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use zoo_datasets::fetch::{DataHome, FetchOptions};
use zoo_models::precision::Compute;
use zoo_recipes::Resolved;
use zoo_results::exit::Exit;

use crate::device::DeviceChoice;
use crate::error::{Failure, Result};
use crate::fp32::Fp32;
use crate::output::Format;
use crate::progress::Console;

/// Paths, permissions, device and console of a call.
#[derive(Debug, Clone)]
pub struct Context {
    /// Folder of everything that the program stores: `downloads/`, `corpora/`, `prepared/`,
    /// `runs/`, `ledger.jsonl`, …
    pub home: PathBuf,
    /// Folder or URL laid out as `<host>/<path>`, tried before the published addresses.
    pub mirror: Option<String>,
    /// Whether network connections are forbidden.
    pub offline: bool,
    /// Whether expensive plans run without confirmation.
    pub yes: bool,
    /// Output format of stdout.
    pub format: Format,
    /// Device of the tensors.
    pub device: DeviceChoice,
    /// Arithmetic of FP32 products on devices with a choice; `None` until `--fp32` or the arms of
    /// the call determine it.
    pub fp32: Option<Fp32>,
    /// Number of CPU threads. It is recorded, because results are bit-identical only for equal
    /// numbers.
    pub threads: usize,
    /// Whether the user gave the number of threads.
    pub threads_given: bool,
    /// Folder of the run whose kept files the recipe's task reads: that of the weights
    /// which `train.transfer` takes, or the run that is evaluated.
    pub source: Option<PathBuf>,
    /// Set by Ctrl-C to save and stop at the next step.
    pub stop: Arc<AtomicBool>,
    /// Console output on stderr.
    pub progress: Arc<Console>,
}

impl Context {
    /// Whether the user pressed Ctrl-C.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails after Ctrl-C.
    ///
    /// # Errors
    /// [`Exit::Interrupted`] after Ctrl-C.
    pub fn check_stop(&self) -> Result<()> {
        if self.stopped() {
            return Err(
                Failure::new(Exit::Interrupted, "interrupted").hint("run the same command again to resume")
            );
        }
        Ok(())
    }

    /// The home folder in the form that the corpora use.
    pub fn data_home(&self) -> DataHome {
        DataHome::new(&self.home)
    }

    /// Options for fetching files in this call.
    pub fn fetch_options(&self) -> FetchOptions<'_> {
        FetchOptions {
            mirror: self.mirror.clone(),
            offline: self.offline,
            progress: &*self.progress,
            consent: self,
            ..FetchOptions::default()
        }
    }

    /// Path of this home's ledger. The project's own ledger is `results/data/ledger.jsonl`.
    pub fn ledger_path(&self) -> PathBuf {
        self.home.join("ledger.jsonl")
    }

    /// Folder of compiled GPU kernels and autotuning results, with a folder for each build of zoo.
    pub fn kernels_dir(&self) -> PathBuf {
        self.home.join("kernels")
    }

    /// Folder of prepared data.
    pub fn prepared_dir(&self) -> PathBuf {
        self.home.join("prepared")
    }

    /// Folder of training runs.
    pub fn runs_dir(&self) -> PathBuf {
        self.home.join("runs")
    }

    /// A copy of this context that ignores Ctrl-C.
    pub fn undisturbed(&self) -> Self {
        Self { stop: Arc::default(), ..self.clone() }
    }

    /// A copy of this context for another home: silent, offline and without confirmations.
    pub fn quiet_within(&self, home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            offline: true,
            yes: true,
            progress: Arc::new(Console::new(-1, Arc::clone(&self.stop))),
            ..self.clone()
        }
    }

    /// A copy of this context whose tasks read what a run kept.
    pub fn reading(&self, run: Option<PathBuf>) -> Self {
        Self { source: run, ..self.clone() }
    }

    /// Opens the chosen device.
    ///
    /// # Errors
    /// [`Exit::Device`], with the missing feature, driver or header.
    pub fn open_device(&self) -> Result<Device> {
        self.device.open(self.fp32.unwrap_or_default())
    }

    /// Opens the chosen device, which must support the precision `compute`.
    ///
    /// # Errors
    /// [`Exit::Device`] if the device cannot be opened or lacks the precision.
    pub fn open_device_for(&self, compute: Compute) -> Result<Device> {
        let device = self.open_device()?;
        match device.supports_dtype(compute.0) {
            true => Ok(device),
            false => {
                let message = format!("{} computes nothing in {}", self.device.settled(), compute.name());
                Err(Failure::new(Exit::Device, message).hint("`zoo doctor` lists what the device can do"))
            }
        }
    }

    /// A path for messages: relative to the working directory if it is inside it, else unchanged.
    pub fn shown(&self, path: &Path) -> String {
        let here = std::env::current_dir().ok();
        here.and_then(|here| path.strip_prefix(here).ok().map(|p| p.display().to_string()))
            .unwrap_or_else(|| path.display().to_string())
    }
}

impl Context {
    /// The type of products that runs of an arm are kept under: FP32 that was asked to be TF32 is
    /// another type.
    pub fn compute_name(&self, compute: Compute) -> &'static str {
        self.fp32.unwrap_or_default().compute_name(compute)
    }

    /// The same in the keys of runs.
    pub fn compute_key<'c>(&self, name: &'c str) -> &'c str {
        Fp32::key(name, self.device.has_tf32())
    }

    /// This call with `--fp32` settled: as it was given, else as the arms' names say.
    ///
    /// # Errors
    /// Some arms stand for TF32 and others for FP32, the device has both, and `--fp32` was not
    /// given.
    pub fn for_arms(&self, arms: &[Resolved]) -> Result<Self> {
        let compute = |arm: &Resolved| Compute::of(&arm.recipe.precision);
        let arms: Vec<(&str, Compute)> =
            arms.iter().map(|arm| (arm.arm.as_deref().unwrap_or_default(), compute(arm))).collect();
        let asked = if self.device.has_tf32() { Fp32::of_arms(&arms) } else { Ok(Fp32::Strict) };
        let fp32 = match (self.fp32, asked) {
            (Some(given), _) => given,
            (None, Ok(asked)) => asked,
            (None, Err([strict, tf32])) => {
                let [strict, tf32] = [strict.join(","), tf32.join(",")];
                return Err(Failure::usage(format!(
                    "{strict} need FP32 products and {tf32} need TF32; one command can use only one of them"
                ))
                .hint(format!(
                    "omit {tf32} with --arms, and run a second command with --arms {tf32} and its baseline; \
                     or pass --fp32 to compute and record all arms in one precision"
                )));
            }
        };
        Ok(self.with_fp32(fp32))
    }

    /// This call for a run whose products were of this type.
    ///
    /// # Errors
    /// `--fp32` was given and says otherwise: what is kept of a run is of one type.
    pub fn for_run(&self, compute: &str) -> Result<Self> {
        Ok(self.with_fp32(Fp32::of_run(compute, self.device.has_tf32(), self.fp32)?))
    }

    /// This call for what is held against FP32: strict, unless `--fp32` says otherwise.
    pub fn for_fixtures(&self) -> Self {
        self.with_fp32(self.fp32.unwrap_or_default())
    }

    fn with_fp32(&self, fp32: Fp32) -> Self {
        Self { fp32: Some(fp32), ..self.clone() }
    }
}
