//! Metrics, claims, verdicts, ledger, reports. Nothing in this crate runs a model or knows a corpus.

pub mod exit;
pub mod ledger;
pub mod metrics;
pub mod report;
pub mod statistics;
pub mod verdict;
