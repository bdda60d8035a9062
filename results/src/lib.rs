//! Metrics, claims, verdicts, ledger and reports. This crate runs no model and depends on no
//! corpus.

pub mod bundle;
pub mod exit;
pub mod explain;
pub mod ledger;
pub mod metrics;
pub mod profile;
pub mod regress;
pub mod replay;
pub mod report;
pub mod statistics;
pub mod verdict;
