//! `zoo`: a program that runs recipes and judges their claims.

mod bundling;
mod cache;
mod claim_metrics;
mod claim_tables;
mod cli;
mod commands;
mod completing;
mod context;
mod device;
mod doctor;
mod environment;
mod error;
mod evidence;
mod explaining;
mod exporting;
mod external;
mod files;
mod fitting;
mod fp32;
mod gate;
mod help;
mod home;
mod kinds;
mod libraries;
mod lines;
mod listing;
mod manual;
mod memory;
mod merging;
mod output;
mod packing;
mod paint;
mod process;
mod progress;
mod records;
mod references;
mod regressing;
mod reporting;
mod rescore;
mod run;
mod run_folders;
mod runs;
mod signatures;
mod stages;
mod standing;
mod task;
mod tasks;
mod tracking;
mod verify;
mod wording;

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::CompleteEnv;

/// Configured to keep freed pages, see [`process::keep_pages`].
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Ends the process if a shell asks for completions.
    CompleteEnv::with_factory(cli::Cli::command).var(completing::VARIABLE).complete();
    process::keep_pages();
    process::guarded(cli::parsing::asks_for_json(std::env::args_os()), || {
        let cli = cli::parsing::parse()?;
        let context = process::context(&cli)?;
        commands::run(&context, &cli.command)
    })
}
