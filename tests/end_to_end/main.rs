//! The real binary, called as users call it: output, messages, exit codes.

mod benching;
mod binary;
mod bundling;
mod checking;
mod doctor;
mod explaining;
mod help;
mod judging;
mod ledger;
mod looks;
mod own_data;
mod parts;
mod recipes;
mod regressing;
mod reporting;
mod reproducing;
mod resume;
mod sabotage;
mod scoring;
mod searching;
mod smoke;
mod speech;
mod speed_ups;
mod synthesis;
mod trajectories;
mod verifying;
