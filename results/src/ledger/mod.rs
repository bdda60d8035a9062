//! Append-only, hash-chained record of every run.
