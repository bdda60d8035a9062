//! Tracking of a run while it trains.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Folders, Tracker};
use crate::context::Context;
use crate::error::Result;

/// Shortest time between two looks at the log.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows the log of a run that this process trains.
#[derive(Debug)]
pub struct Live<'a> {
    ctx: &'a Context,
    folders: &'a Folders,
    run: &'a Path,
    state: RefCell<State>,
}

#[derive(Debug)]
enum State {
    /// The folder of the run may not exist yet.
    Waiting,
    Following(Box<Tracker>, Instant),
    /// An error was reported. Training goes on.
    Failed,
}

impl<'a> Live<'a> {
    /// Follows the run in a folder, which does not have to exist yet.
    pub fn new(ctx: &'a Context, folders: &'a Folders, run: &'a Path) -> Self {
        let state = if folders.is_empty() { State::Failed } else { State::Waiting };
        Self { ctx, folders, run, state: RefCell::new(state) }
    }

    /// Writes what the log has gained, at most once a second. An error is reported once and ends
    /// the tracking of this run, not its training.
    pub fn logged(&self) {
        let mut state = self.state.borrow_mut();
        let followed = match &mut *state {
            State::Failed => return,
            State::Following(_, last) if last.elapsed() < PAUSE => return,
            State::Following(tracker, last) => {
                *last = Instant::now();
                tracker.follow()
            }
            State::Waiting => self.begin().map(|tracker| {
                *state = State::Following(Box::new(tracker), Instant::now());
            }),
        };
        if let Err(failure) = followed {
            self.ctx.progress.note(&format!("tracking of this run stops: {failure}"));
            *state = State::Failed;
        }
    }

    fn begin(&self) -> Result<Tracker> {
        let mut tracker = Tracker::new(self.folders, self.run)?;
        tracker.follow()?;
        Ok(tracker)
    }
}
