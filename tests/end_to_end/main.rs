//! The real binary, called as users call it: output, messages, exit codes.

mod binary;
mod checking;
mod help;
mod judging;
mod ledger;
mod looks;
mod own_data;
mod recipes;
mod reproducing;
mod resume;
mod sabotage;
mod scoring;
mod smoke;
