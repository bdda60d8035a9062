//! Metrics, claims, verdicts, ledger, reports. Nothing in this crate runs a model or knows a corpus.

pub mod bundle;
pub mod exit;
pub mod explain;
pub mod ledger;
pub mod metrics;
pub mod regress;
pub mod report;
pub mod statistics;
pub mod verdict;
