//! `zoo new`: writes a recipe for the user's own data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;

use crate::cli::NewArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Format};
use crate::tasks;

pub fn run(context: &Context, args: &NewArgs) -> Result<Exit> {
    let file = PathBuf::from(format!("{}.toml", args.name));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if args.name.is_empty() || !args.name.chars().all(plain) {
        return Err(Failure::usage(format!("`{}` is not a valid recipe name", args.name))
            .hint("small letters, digits and `-`, e.g. captions-en-de"));
    }
    if file.exists() {
        return Err(Failure::usage(format!("{} is there already", file.display()))
            .hint("give another name; nothing is overwritten"));
    }
    let base = Document::load(&args.base)?;
    let of_base = base.resolve(&Selection::default())?.recipe;
    let text = tasks::of(&of_base).new_recipe(args, &base)?;
    // Only a valid recipe is written.
    Document::parse(&text, &file.display().to_string(), Path::new("."))?.check()?;
    write_whole(&file, text.as_bytes())?;
    let shown = file.display();
    context.progress.note(&format!("wrote {shown}; next: zoo reproduce ./{shown} --tier smoke"));
    if context.format == Format::Json {
        output::write_document("new", &BTreeMap::from([("file", &file)]))?;
    }
    Ok(Exit::Ok)
}
