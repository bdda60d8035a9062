//! The folder of one training run: one recipe, arm and seed.
//!
//! ```text
//! runs/NAME/ARM-seedN-KEY/
//!   run.json          identity: recipe, arm, seed, key, environment
//!   recipe.toml       the resolved recipe
//!   log.jsonl         one line for each logged step, validation and the end
//!   checkpoints/      states to resume from, and the weights of epochs
//!   trained.json      result, written when training ends
//!   profile.json      a profile, written by `zoo profile --save`
//!   vocabulary/       what the user's own input needs of the data, if its task keeps it
//!   files/            copies of the files that its searches read, if they read any
//!   eval/             for each evaluation set and search: hypotheses, references, scores
//! ```

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_models::precision::Compute;
use zoo_recipes::{CheckpointSpec, Recipe, Resolved};
use zoo_results::exit::Exit;
use zoo_training::checkpoint::read_state;
use zoo_training::folder::{CheckpointFolder, NotedFile};
use zoo_training::state::{Ending, RunState};

use super::activity::LOCK;
use super::initial::{InitialWeights, Origin};
use super::log::sessions;
use super::package::{self, Manifest};
use crate::context::Context;
use crate::environment::{Environment, Program};
use crate::error::{Failure, Result};
use crate::files::{read_json, write_json, write_whole};

/// Folder in that of a run with what a user's own input needs of the data.
pub const VOCABULARY: &str = "vocabulary";
/// File of [`VOCABULARY`] that lists the others, with their digests.
const KEPT: &str = "kept.json";

/// Number of times and pause in which [`Run::lock`] waits for the end of a short lock.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Version of the run key. Increase it when a code change alters the trained weights.
const VERSION: u32 = 1;

/// A training run and its folder.
#[derive(Debug, Clone)]
pub struct Run {
    pub folder: PathBuf,
    /// Identity of the run.
    pub card: Card,
}

/// Content of `run.json`: the identity of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Name of the recipe.
    pub recipe: String,
    /// Hash of the resolved recipe.
    pub recipe_hash: String,
    pub arm: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Changes by `--set` of keys that are not free.
    pub overrides: Vec<String>,
    pub seed: u64,
    /// Precision of matrix products: `tf32` if FP32 was requested as TF32.
    pub compute: String,
    /// The folder that the recipe's paths are relative to.
    pub base: PathBuf,
    /// Hash of everything that training depends on.
    pub key: String,
    /// The run whose weights training began with, if the recipe takes weights from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Origin>,
    /// Program and machine that started the run.
    pub environment: Environment,
}

/// Whether a run was trained for this call, and by which programs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Made {
    /// Whether the run was trained earlier.
    pub reused: bool,
    /// Commits of other programs that made any part of the run.
    pub other_programs: Vec<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reused, self.other_programs.as_slice()) {
            (false, []) => f.write_str("new"),
            (false, others) => write!(f, "continued, begun by {}", others.join(", ")),
            (true, []) => f.write_str("reused, same program"),
            (true, others) => write!(f, "reused, by {}", others.join(", ")),
        }
    }
}

/// The field of an evaluation file that names the program.
#[derive(Deserialize)]
struct EvaluatedBy {
    #[serde(default)]
    program: Option<Program>,
}

/// Content of `trained.json`: the result of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// Reason for the end of training.
    pub ending: Ending,
    /// Number of updates.
    pub updates: u64,
    /// Number of updates skipped for overflow.
    pub skipped: u64,
    /// Number of complete epochs.
    pub epochs: u64,
    /// Duration of training, validation and checkpoints over all sessions, in seconds.
    pub seconds: f64,
    /// Training loss of the first logged step.
    pub first_loss: Option<f64>,
    /// Training loss of the last epoch or logged step.
    pub last_loss: Option<f64>,
    /// Lowest validation loss.
    pub best_valid_loss: Option<f64>,
    /// Commits of the programs that trained the run, in order.
    pub commits: Vec<String>,
    /// SHA-256 of each split's ids.
    #[serde(default)]
    pub data: std::collections::BTreeMap<String, String>,
    /// The last saved state. Absent in runs by earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<NotedFile>,
}

impl Run {
    /// The place of a run, whether it exists or not. `files` are the files that the recipe itself
    /// names, with their SHA-256: what is in them is part of what the run is. `initial` are the
    /// weights that it starts from.
    pub fn locate(
        ctx: &Context,
        resolved: &Resolved,
        files: &[(String, String)],
        seed: u64,
        initial: Option<&InitialWeights>,
    ) -> Self {
        let recipe = &resolved.recipe;
        let compute = ctx.compute_name(Compute::of(&recipe.precision)).to_string();
        let digest = initial.map(|initial| initial.digest.as_str());
        let key = training_key(recipe, files, seed, ctx.compute_key(&compute), digest);
        let arm = resolved.arm.clone().unwrap_or_else(|| "body".into());
        let mut name = recipe.recipe.name.clone();
        if let Some(tier) = &resolved.tier {
            name = format!("{name}.{tier}");
        }
        let folder = ctx.runs_dir().join(name).join(format!("{arm}-seed{seed}-{}", &key[..12]));
        let from: Vec<String> = initial.and_then(InitialWeights::change).into_iter().collect();
        let transfer = recipe.train.transfer.as_ref().and(initial).and_then(InitialWeights::origin);
        let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
        let card = Card {
            recipe: recipe.recipe.name.clone(),
            recipe_hash: resolved.hash.clone(),
            arm,
            tier: resolved.tier.clone(),
            overrides: [resolved.binding_overrides.clone(), from].concat(),
            seed,
            compute,
            base: resolved.folder.clone(),
            key,
            transfer,
            environment,
        };
        Self { folder, card }
    }

    /// The folder of the run that a path is in. `path` is the folder, or a checkpoint or file in
    /// it.
    pub fn folder_of(path: &Path) -> Result<PathBuf> {
        let folder = path.ancestors().find(|folder| folder.join("run.json").is_file()).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("{} is not a run folder", path.display())).hint(
                "give a name that `zoo runs` prints, or the folder that `zoo reproduce` printed; it has run.json",
            )
        })?;
        Ok(folder.to_path_buf())
    }

    /// Opens an existing run. `path` is its folder, or a checkpoint or file in it.
    pub fn open(path: &Path) -> Result<(Self, Recipe)> {
        let folder = Self::folder_of(path)?;
        let mut card: Card = read_json(&folder.join("run.json"))?;
        if Manifest::of(&folder)?.is_some() {
            card.base = package::base_of(&folder);
        }
        let file = folder.join("recipe.toml");
        let text = fs::read_to_string(&file).map_err(|e| Failure::io("read", &file, &e))?;
        let recipe = Recipe::from_toml(&text)
            .map_err(|e| Failure::new(Exit::Damaged, format!("{}: {e}", file.display())))?;
        Ok((Self { folder, card }, recipe))
    }

    /// Commits of other programs that made any part of this run; empty if this program made all of
    /// it.
    ///
    /// # Errors
    /// An evaluation of the run cannot be read.
    pub fn other_programs(&self) -> Result<Vec<String>> {
        let this = Program::current();
        let trained = sessions(&self.folder.join("log.jsonl")).into_iter();
        let mut makers: Vec<Option<(String, Option<Program>)>> =
            trained.map(|found| found.map(|found| (found.sources(), found.program()))).collect();
        // The run was trained by an unknown program.
        if makers.is_empty() && self.trained_file().is_file() {
            makers.push(None);
        }
        for file in evaluation_files(&self.folder.join("eval")) {
            let by: EvaluatedBy = read_json(&file)?;
            makers.push(by.program.map(|program| (program.sources(), Some(program))));
        }
        let mut others = Vec::new();
        for maker in makers {
            let (sources, program) = maker.unwrap_or_else(|| ("an unknown commit".to_owned(), None));
            if program.as_ref() != Some(&this) && !others.contains(&sources) {
                others.push(sources);
            }
        }
        Ok(others)
    }

    /// This run if this program made all of it, else a run in a sibling folder that this program
    /// makes or has made.
    ///
    /// # Errors
    /// As for [`Self::other_programs`].
    pub fn of_this_program(mut self) -> Result<Self> {
        let plain = self.folder.display().to_string();
        for number in 2_u32.. {
            if self.other_programs()?.is_empty() {
                break;
            }
            self.folder = PathBuf::from(format!("{plain}-{number}"));
        }
        Ok(self)
    }

    /// Creates and locks the folder. Other processes cannot train in it while the returned file is
    /// open.
    pub fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.folder).map_err(|e| Failure::io("make", &self.folder, &e))?;
        let path = self.folder.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|e| Failure::io("open", &path, &e))?;
        let mut locked = file.try_lock();
        // `Activity::of` holds a lock for an instant, and does not train.
        for _ in 0..LOCK_ATTEMPTS {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            sleep(LOCK_PAUSE);
            locked = file.try_lock();
        }
        match locked {
            Err(TryLockError::WouldBlock) => {
                Err(Failure::new(Exit::Internal, format!("another process trains {}", self.folder.display()))
                    .hint("wait until it ends; the same command then gives its results"))
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(e)) if e.kind() != std::io::ErrorKind::Unsupported => {
                Err(Failure::io("lock", &path, &e))
            }
            _ => Ok(file),
        }
    }

    /// Writes the run's card and recipe, or reads the card if the folder already has one.
    pub fn create(&mut self, recipe: &Recipe) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|e| Failure::io("make", &self.folder, &e))?;
        let card = self.folder.join("run.json");
        if card.is_file() {
            self.card = read_json(&card)?;
            return Ok(());
        }
        let text = recipe
            .to_toml()
            .map_err(|e| Failure::new(Exit::Internal, format!("cannot write the recipe: {e}")))?;
        write_whole(&self.folder.join("recipe.toml"), text.as_bytes())?;
        write_json(&card, &self.card)
    }

    /// The run's folder of checkpoints.
    pub fn checkpoints(&self) -> CheckpointFolder {
        CheckpointFolder::new(self.folder.join("checkpoints"))
    }

    /// Whether the run was started.
    pub fn exists(&self) -> bool {
        self.folder.join("run.json").is_file()
    }

    /// Whether the folder has what a user's own input needs of the data. Its list is written last.
    pub fn has_vocabulary(&self) -> bool {
        self.folder.join(VOCABULARY).join(KEPT).is_file()
    }

    /// Refuses a package without vocabulary, which must not be made from data that is on this machine
    /// by chance.
    ///
    /// # Errors
    /// The run is a package.
    pub fn may_read_data(&self) -> Result<()> {
        if Manifest::of(&self.folder)?.is_none() {
            return Ok(());
        }
        let file = self.folder.join(VOCABULARY).join(KEPT);
        Err(Failure::new(Exit::Damaged, format!("the package has no {}", file.display()))
            .hint("get the package again; `zoo pack --check` checks it"))
    }

    /// Path of `trained.json`.
    pub fn trained_file(&self) -> PathBuf {
        self.folder.join("trained.json")
    }

    /// Whether training ended. A run that was stopped off course counts as ended only with
    /// `stop_early`.
    pub fn is_trained(&self, stop_early: bool) -> Result<bool> {
        let ended = self.trained_file().is_file();
        Ok(ended && (stop_early || !matches!(self.trained()?.ending, Ending::OffCourse { .. })))
    }

    /// Result of training.
    pub fn trained(&self) -> Result<Trained> {
        read_json(&self.trained_file())
    }

    /// The newest state, if it can be read.
    fn newest_state(&self) -> Option<RunState> {
        let newest = self.checkpoints().states().ok()?.into_iter().next()?;
        read_state(&newest).ok().flatten()
    }

    /// Number of updates in the newest checkpoint.
    pub fn updates_made(&self) -> u64 {
        self.newest_state().map_or(0, |state| state.counters.update)
    }

    /// SHA-256 of each training split, as [`train`](super::train::train) wrote them into the newest
    /// state; `None` without a state.
    pub fn training_prints(&self) -> Option<Vec<String>> {
        let state = self.newest_state()?;
        let (_, splits) = state.identity.fingerprint.split_once(" train ")?;
        let (training, _) = splits.split_once(" valid ")?;
        Some(training.split(' ').filter(|print| *print != "-").map(str::to_owned).collect())
    }
}

/// Hash of everything that the weights depend on. Logging and saving intervals and evaluation sets
/// other than `valid` do not matter.
fn training_key(
    recipe: &Recipe,
    files: &[(String, String)],
    seed: u64,
    compute: &str,
    initial: Option<&str>,
) -> String {
    let mut data = recipe.block("data");
    if let Some(sets) = data["eval"].as_object_mut() {
        sets.retain(|name, _| name == "valid");
    }
    let mut train = recipe.train.clone();
    train.log_every = 1;
    train.checkpoint.every_updates = CheckpointSpec::default().every_updates;
    train.seed = seed;
    let mut what = serde_json::json!({
        "version": VERSION, "data": data, "model": recipe.block("model"), "loss": recipe.block("loss"), "train": train,
        "precision": recipe.precision, "compute": arithmetic(compute),
    });
    if !files.is_empty() {
        what["files"] = files.iter().map(|(_, digest)| digest.as_str()).collect();
    }
    if let Some(initial) = initial {
        what["initial"] = initial.into();
    }
    hex::encode(Sha256::digest(what.to_string()))
}

/// What a compute type stands for. Earlier programs kept what stands between layers in FP32, in
/// fp16 as well: their runs are others.
fn arithmetic(compute: &str) -> &str {
    if compute == "fp16" { "fp16, stored between layers" } else { compute }
}

/// Whether a file has the name of an evaluation.
pub fn is_evaluation(name: &str) -> bool {
    name.ends_with(".json") && !name.ends_with(".samples.json")
}

/// The files of the evaluations that lie in a folder, sorted.
pub fn evaluation_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        path.is_file() && is_evaluation(&path.file_name().unwrap_or_default().to_string_lossy())
    };
    let mut files: Vec<PathBuf> = entries.filter(is_one).collect();
    files.sort();
    files
}
