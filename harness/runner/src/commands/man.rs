//! `zoo man`: prints or writes man pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use zoo_recipes::nearest;
use zoo_results::exit::Exit;

use crate::cli::{Cli, ManArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::manual::{Page, pages};
use crate::output;

pub fn run(context: &Context, args: &ManArgs) -> Result<Exit> {
    let pages = pages(Cli::command())
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot make the man pages: {error}")))?;
    match &args.out {
        Some(folder) => write(context, &pages, folder),
        None => print(&pages, &args.command),
    }
}

fn write(context: &Context, pages: &[Page], folder: &Path) -> Result<Exit> {
    fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
    for page in pages {
        write_whole(&folder.join(page.file()), page.text.as_bytes())?;
    }
    context.progress.note(&format!("{} pages in {}", pages.len(), context.shown(folder)));
    Ok(Exit::Ok)
}

fn print(pages: &[Page], command: &[String]) -> Result<Exit> {
    let words = ["zoo"].into_iter().chain(command.iter().map(String::as_str));
    let name = words.collect::<Vec<_>>().join("-");
    let Some(page) = pages.iter().find(|page| page.name == name) else {
        let failure = Failure::usage(format!("`zoo {}` is not a command", command.join(" ")));
        return Err(match nearest(&name, pages.iter().map(|page| page.name.as_str())) {
            Some(near) => failure.hint(format!("did you mean `{}`?", near.replace('-', " "))),
            None => failure.hint("`zoo --help` lists the commands"),
        });
    };
    output::write(&page.text)?;
    Ok(Exit::Ok)
}
