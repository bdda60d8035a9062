//! Training: schedules, loss scaling, optimizers, updates, checkpoints, and the training loop.
//!
//! This crate depends neither on corpora nor on particular models: a model is any Burn module, a
//! batch is any type that an [`Objective`](zoo_models::Objective) accepts.

pub mod agreement;
pub mod align;
mod average;
pub mod batches;
pub mod checkpoint;
pub mod error;
pub mod evaluate;
pub mod flat;
pub mod folder;
mod groups;
pub mod observe;
pub mod optimizer;
pub mod parts;
pub mod progress;
pub mod reduce;
pub mod scaling;
pub mod schedule;
pub mod settings;
pub mod state;
pub mod tasks;
mod term;
mod terms;
pub mod timing;
pub mod traces;
pub mod trainer;
pub mod update;
pub mod weights;

pub use batches::{BatchSource, Batches, Fetched, Share};
pub use error::{OtherError, TrainError};
pub use evaluate::evaluate;
pub use folder::{CheckpointFolder, Evaluated};
pub use progress::{EpochReport, LogFile, Progress, Silent, UpdateReport};
pub use reduce::{Local, Reducer};
pub use settings::TrainSettings;
pub use state::{Counters, Ending, RunState};
pub use trainer::{Asked, Outcome, Score, Seen, Trainer, Validation};
pub use update::{Phase, TermSum, loss_of};
