//! What every command and stage is told about this call of the program.

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

/// Where things lie, what may be done, where it is computed, and who is told.
#[derive(Debug, Clone)]
pub struct Context {
    /// Everything the program keeps: `downloads/`, `corpora/`, `prepared/`, `runs/`, `ledger.jsonl`, …
    pub home: PathBuf,
    /// Folder or URL laid out as `<host>/<path>`, tried before the published addresses.
    pub mirror: Option<String>,
    /// Do not open network connections.
    pub offline: bool,
    /// Do not ask before an expensive plan.
    pub yes: bool,
    /// Output format of stdout.
    pub format: Format,
    /// Where tensors live.
    pub device: DeviceChoice,
    /// How FP32 products are computed where the device leaves a choice; `None` until `--fp32` or the arms of the call settle it.
    pub fp32: Option<Fp32>,
    /// Threads of the CPU's pool; goes into the record, since results are bit for bit only at an equal number.
    pub threads: usize,
    /// Set by Ctrl-C: save and stop at the next step.
    pub stop: Arc<AtomicBool>,
    /// stderr.
    pub progress: Arc<Console>,
}

impl Context {
    /// Has somebody pressed Ctrl-C?
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`Exit::Interrupted`] once somebody has pressed Ctrl-C.
    pub fn check_stop(&self) -> Result<()> {
        if self.stopped() {
            return Err(
                Failure::new(Exit::Interrupted, "interrupted").hint("run the same command again to resume")
            );
        }
        Ok(())
    }

    /// The home as the corpora know it.
    pub fn data_home(&self) -> DataHome {
        DataHome::new(&self.home)
    }

    /// How files are fetched in this call.
    pub fn fetch_options(&self) -> FetchOptions<'_> {
        FetchOptions {
            mirror: self.mirror.clone(),
            offline: self.offline,
            progress: &*self.progress,
            consent: self,
            ..FetchOptions::default()
        }
    }

    /// The ledger of this home; the project's own is `results/data/ledger.jsonl`.
    pub fn ledger_path(&self) -> PathBuf {
        self.home.join("ledger.jsonl")
    }

    /// Kernels that a GPU's compiler made, and which of them are fastest.
    pub fn kernels_dir(&self) -> PathBuf {
        self.home.join("kernels")
    }

    /// The folders of training runs.
    pub fn runs_dir(&self) -> PathBuf {
        self.home.join("runs")
    }

    /// The same call, going on to its end whoever presses Ctrl-C.
    pub fn undisturbed(&self) -> Self {
        Self { stop: Arc::default(), ..self.clone() }
    }

    /// The same call in another home: silent, without a connection, asking nothing.
    pub fn quiet_within(&self, home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            offline: true,
            yes: true,
            progress: Arc::new(Console::new(-1, Arc::clone(&self.stop))),
            ..self.clone()
        }
    }

    /// Opens the chosen device.
    ///
    /// # Errors
    /// [`Exit::Device`], naming the feature, driver or header that is missing.
    pub fn open_device(&self) -> Result<Device> {
        self.device.open(self.fp32.unwrap_or_default())
    }

    /// Opens the chosen device, which must have products of this type.
    ///
    /// # Errors
    /// [`Exit::Device`].
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

    /// A path as messages should show it: below the home as `<home>/…` is no help, so as it is, but relative to the working
    /// directory where it lies below that.
    pub fn shown(&self, path: &Path) -> String {
        let here = std::env::current_dir().ok();
        here.and_then(|here| path.strip_prefix(here).ok().map(|p| p.display().to_string()))
            .unwrap_or_else(|| path.display().to_string())
    }
}

impl Context {
    /// The type of products that runs of an arm are kept under: FP32 that was asked to be TF32 is another type.
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
    /// Some arms stand for TF32 and others for FP32, the device has both, and `--fp32` was not given.
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
