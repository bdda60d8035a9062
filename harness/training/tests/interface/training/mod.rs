//! Tests of whole updates and whole runs on a model of three parameters.

mod average;
mod checkpoints;
mod fixtures;
mod half_precision;
mod masters;
mod resume;
mod speed;
mod timing;
mod toy;
mod updates;
