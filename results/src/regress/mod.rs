//! Regression checks: what was run now, against what was published and against what this project recorded before on the same
//! device.
//!
//! - *Target*: the verdict on each claim, judged again from the record's evidence.
//! - *Quality*: the mean score of our seeds against that of the recorded ones. An alarm is a drop larger than the spread between
//!   seeds makes; over all comparisons of a call together, a false one is raised with the stated rate ([`Limits::alarm_rate`]).
//! - *Speed*: the ratio between two arms of one run against the recorded ratio: clocks of different machines are never compared.
//!
//! `docs/regressions.md` has the formulae and the simulated rates.

mod compare;
mod github;
mod junit;
mod quality;
mod row;
mod speed;

pub use compare::{Limits, compare};
pub use github::{annotations, summary};
pub use junit::junit;
pub use quality::{Quality, Sample, Standing};
pub use row::{Check, Place, Row, table};
pub use speed::{Ratio, ratios};
