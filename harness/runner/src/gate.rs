//! Confirmation of plans of more than an hour or a gigabyte.

use std::io::{BufRead, IsTerminal, Write};

use zoo_datasets::corpora::ByteCount;
use zoo_datasets::fetch::Consent;
use zoo_recipes::untrusted::shown;
use zoo_results::exit::Exit;
use zoo_results::report::duration;

use crate::context::Context;
use crate::error::{Failure, Result};

/// Maximum duration that needs no confirmation, in seconds.
pub const FREE_SECONDS: f64 = 3600.0;
/// Maximum download that needs no confirmation, in bytes.
pub const FREE_BYTES: u64 = 1_000_000_000;

/// Cost of the next operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Estimated duration in seconds; `None` if there is no estimate.
    pub seconds: Option<f64>,
    /// Bytes to download, as far as they are known.
    pub bytes: u64,
    /// Number of files to download whose size is unknown. Each of them may exceed the limit.
    pub unknown_sizes: usize,
}

impl Cost {
    /// Why confirmation is needed; `None` if it is not.
    pub fn reason(&self) -> Option<String> {
        let time = self.seconds.filter(|s| s.is_nan() || *s > FREE_SECONDS).map(|s| match s.is_finite() {
            true => format!("about {} of computing", duration(s)),
            false => "an unknown compute time".to_owned(),
        });
        let bytes = (self.bytes > FREE_BYTES || self.unknown_sizes > 0).then(|| {
            let bytes = ByteCount { known: self.bytes, unknown: self.unknown_sizes };
            format!("a download of {bytes}")
        });
        let reasons: Vec<String> = [time, bytes].into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join(" and "))
    }
}

/// Accepts a cost below the limits, with `--yes`, or after confirmation on the terminal.
///
/// # Errors
/// [`Exit::PlanRefused`] if the cost is not accepted.
pub fn pass(context: &Context, cost: &Cost) -> Result<()> {
    let Some(reason) = cost.reason() else { return Ok(()) };
    if context.yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(Failure::new(
            Exit::PlanRefused,
            format!("this needs {reason}; refusing without confirmation (not a terminal)"),
        )
        .hint("pass --yes to continue"));
    }
    if asked(&format!("this needs {reason}. Continue? [y/N] ")) {
        return Ok(());
    }
    Err(Failure::new(Exit::PlanRefused, "not started").hint("pass --yes to continue without a prompt"))
}

/// Asks whether to do something that cannot be undone. Accepted with `--yes`, or on the terminal.
///
/// # Errors
/// [`Exit::PlanRefused`] if it is not accepted.
pub fn confirm(context: &Context, what: &str) -> Result<()> {
    if context.yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(Failure::new(
            Exit::PlanRefused,
            format!("this {what}; refusing without confirmation (not a terminal)"),
        )
        .hint("pass --yes to continue"));
    }
    match asked(&format!("this {what}. Continue? [y/N] ")) {
        true => Ok(()),
        false => Err(Failure::new(Exit::PlanRefused, "nothing was removed")
            .hint("pass --yes to continue without a prompt")),
    }
}

/// An unverified file is accepted with `--yes` or after confirmation on the terminal.
impl Consent for Context {
    fn allows(&self, risk: &str) -> bool {
        let question = format!("{}. Continue? [y/N] ", shown(risk));
        self.yes || (can_ask() && self.progress.aside(|| asked(&question)))
    }
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn asked(question: &str) -> bool {
    let mut stderr = std::io::stderr();
    if write!(stderr, "{question}").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_and_a_gigabyte_are_free_and_no_more() {
        let cost = |seconds, bytes, unknown_sizes| Cost { seconds: Some(seconds), bytes, unknown_sizes };
        assert_eq!(cost(3600.0, 1_000_000_000, 0).reason(), None);
        assert!(cost(3601.0, 0, 0).reason().unwrap().contains("1 h 00 min"));
        assert!(cost(0.0, 1_000_000_001, 0).reason().unwrap().contains("1.0 GB"));
        assert!(cost(0.0, 0, 1).reason().unwrap().contains("not known"));
        assert!(cost(f64::NAN, 0, 0).reason().unwrap().contains("unknown compute time"));
        assert_eq!(Cost::default().reason(), None);
    }
}
