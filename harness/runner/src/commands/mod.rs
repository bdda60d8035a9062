//! The commands, one file each. A command turns options into calls, and results into text;
//! computation happens in other modules.

mod align;
mod bench;
mod bundle;
mod cache;
mod check;
mod completions;
mod diff;
mod doctor;
mod evaluate;
mod explain;
mod export;
mod features;
mod fetch;
mod infer;
mod judge;
mod ledger;
mod list;
mod log;
mod man;
mod new;
mod pack;
mod profile;
mod regress;
mod replay;
mod report;
mod reproduce;
mod runs;
mod schema;
mod score;
mod show;
mod synthesize;
mod track;
mod verify;

use zoo_results::exit::Exit;

use crate::cli::Command;
use crate::context::Context;
use crate::error::Result;

/// Runs a command. Returns its exit code.
///
/// # Errors
/// The command fails.
pub fn run(context: &Context, command: &Command) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Fetch(args) => fetch::run(context, args),
        Command::Reproduce(args) => reproduce::run(context, args),
        Command::Runs(args) => runs::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Track(args) => track::run(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Bench(args) => bench::run(context, args),
        Command::Profile(args) => profile::run(context, args),
        Command::Replay(args) => replay::run(context, args),
        Command::Evaluate(args) => evaluate::run(context, args),
        Command::Export(args) => export::run(context, args),
        Command::Pack(args) => pack::run(context, args),
        Command::New(args) => new::run(context, args),
        Command::Score(args) => score::run(context, args),
        Command::Judge(args) => judge::run(context, args),
        Command::Align(args) => align::run(context, args),
        Command::Infer(args) => infer::run(context, args),
        Command::Synthesize(args) => synthesize::run(context, args),
        Command::Features(args) => features::run(context, args),
        Command::Ledger(command) => ledger::run(context, command),
        Command::Regress(args) => regress::run(context, args),
        Command::Explain(args) => explain::run(context, args),
        Command::Bundle(args) => bundle::run(context, args),
        Command::Report(args) => report::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Cache(args) => cache::run(context, args),
        Command::Schema(args) => schema::run(context, args),
        Command::Doctor => doctor::run(context),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(context, args),
    }
}
