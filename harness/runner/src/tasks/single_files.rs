//! `zoo new` for tasks that read one text file per split.

use std::collections::BTreeMap;

use serde::Serialize;
use zoo_results::exit::Exit;

use crate::cli::NewArgs;
use crate::error::{Failure, Result};

/// The user's files by split: `train`, and `valid` and `test` if they are given. `model` names what
/// reads them, e.g. `a language model`, and `base` the recipe.
///
/// # Errors
/// `--train` is missing, a split has two files, or `--source` or `--target` is given.
pub fn single_files(args: &NewArgs, base: &str, model: &str) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for (name, given) in [("train", &args.train), ("valid", &args.valid), ("test", &args.test)] {
        match given.as_slice() {
            [] if name == "train" => {
                return Err(Failure::usage("the training text is missing")
                    .hint("--train FILE, e.g. --train text.txt"));
            }
            [] => {}
            [file] => {
                files.insert(name.to_owned(), file.display().to_string());
            }
            _ => {
                let message = format!("--{name} names two files, and {model} reads one");
                return Err(Failure::usage(message).hint(format!("--{name} {name}.txt")));
            }
        }
    }
    for (option, given) in [("--source", &args.source), ("--target", &args.target)] {
        if given.is_some() {
            return Err(Failure::usage(format!("{option} is for translation"))
                .hint(format!("{base} is {model}: leave {option} out")));
        }
    }
    Ok(files)
}

/// The keys of a block as inline TOML, one a line.
///
/// # Errors
/// The block cannot be written as TOML.
pub fn toml_keys<T: Serialize>(block: &T) -> Result<String> {
    let internal = |error: toml::ser::Error| Failure::new(Exit::Internal, error.to_string());
    let table = toml::Table::try_from(block).map_err(internal)?;
    Ok(table.iter().fold(String::new(), |text, (key, value)| format!("{text}{key} = {value}\n")))
}
