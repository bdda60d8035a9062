//! Comparison of prepared data with that which a run was trained on. Where the training data numbers
//! what is in all other data, a change of it gives the model other inputs than it was trained on.

use zoo_results::exit::Exit;

use super::data::TaskData;
use super::folder::Run;
use crate::error::{Failure, Result};

/// Refuses data whose training splits are not those of the run's newest state. A run without a state
/// is not refused here.
///
/// # Errors
/// The data changed since the run was trained.
pub fn check_training<T: TaskData>(data: &T, run: &Run) -> Result<()> {
    let prints = data.fingerprints();
    let splits = data.training_splits()?;
    let now: Vec<&str> = splits.iter().filter_map(|split| prints.get(split)).map(String::as_str).collect();
    match run.training_prints() {
        Some(then) if then != now => {
            let what = format!("the SHA-256 of {}", splits.join(", "));
            Err(changed(
                run,
                &format!("{what} is {}, that of the run's state {}", now.join(" "), then.join(" ")),
            ))
        }
        _ => Ok(()),
    }
}

/// The failure of data that changed since a run was trained. `how` says what differs.
pub fn changed(run: &Run, how: &str) -> Failure {
    let message = format!("the data changed since {} was trained: {how}", run.folder.display());
    Failure::new(Exit::Data, message).hint("restore the data, or train on the new data with zoo reproduce")
}
