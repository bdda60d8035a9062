//! Regression checks: compares current results with the published claims and with earlier results
//! recorded on the same device.
//!
//! - *Target*: the verdict on each claim, judged again from the record's evidence.
//! - *Quality*: the mean score of the new seeds compared with that of the recorded seeds. An alarm
//!   is a drop larger than the spread between seeds explains. Over all comparisons of a call
//!   together, false alarms have the stated rate ([`Limits::alarm_rate`]).
//! - *Speed*: the ratio between two arms of one run compared with the recorded ratio. Absolute
//!   times of different machines are never compared.
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
