//! `zoo new` for translation: a recipe for the user's own text.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use zoo_datasets::readers::{EmptyLines, parallel_text};
use zoo_recipes::tasks::translation::TextReaderSpec;
use zoo_recipes::{DataStatus, Document, EvaluatedWeights, ScheduleSpec};
use zoo_results::exit::Exit;

use super::Recipe;
use crate::cli::NewArgs;
use crate::error::{Failure, Result};

/// A split: its two files and their number of lines.
struct Split {
    name: &'static str,
    source: PathBuf,
    target: PathBuf,
    lines: usize,
}

/// Text of a recipe for two text files per split.
///
/// # Errors
/// A file cannot be read, or the base recipe needs a set that was not given.
pub fn text(args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<String> {
    let splits = splits(args)?;
    let has_valid = splits.iter().any(|split| split.name == "valid");
    if !has_valid && matches!(of_base.train.schedule, ScheduleSpec::Plateau { .. }) {
        return Err(Failure::usage(format!(
            "{} needs a validation set to lower its learning rate, and none was given",
            base.name()
        ))
        .hint("--valid SOURCE,TARGET"));
    }
    recipe(args, base, of_base, &splits)
}

fn splits(args: &NewArgs) -> Result<Vec<Split>> {
    let mut found = Vec::new();
    for (name, files) in [("train", &args.train), ("valid", &args.valid), ("test", &args.test)] {
        match files.as_slice() {
            [] if name == "train" => {
                return Err(Failure::usage("the training text is missing")
                    .hint("--train SOURCE,TARGET, e.g. --train train.en,train.de"));
            }
            [] => {}
            [source, target] => {
                let text = parallel_text::read(source, target, EmptyLines::Keep)
                    .map_err(|e| Failure::new(Exit::Data, e.to_string()))?;
                let (source, target) = (source.clone(), target.clone());
                found.push(Split { name, source, target, lines: text.len() });
            }
            _ => {
                return Err(Failure::usage(format!("--{name} needs two files"))
                    .hint(format!("--{name} SOURCE,TARGET, e.g. --{name} {name}.en,{name}.de")));
            }
        }
    }
    Ok(found)
}

/// Text of the recipe file, which contains only the differences from the base recipe.
fn recipe(args: &NewArgs, base: &Document, of_base: &Recipe, splits: &[Split]) -> Result<String> {
    let data = &of_base.data;
    let has_valid = splits.iter().any(|split| split.name == "valid");
    let own_files = matches!(&data.reader, TextReaderSpec::ParallelText { files, .. } if !files.is_empty());
    let best = matches!(of_base.train.checkpoint.evaluate, EvaluatedWeights::Best { .. });
    // The data of the new recipe is not generated.
    let status = match of_base.recipe.status {
        DataStatus::Generated => "status = \"private\"\n",
        _ => "",
    };
    let without: Vec<String> = [
        ("data.corpus", data.corpus.is_some()),
        ("data.reader.files", own_files),
        ("data.reader.further_targets", data.reader.targets().len() > 1),
        ("data.eval", !data.eval.is_empty()),
        ("train.patience", of_base.train.patience.is_some() && !has_valid),
        ("train.checkpoint.evaluate", best && !has_valid),
    ]
    .into_iter()
    .filter(|(_, there)| *there)
    .map(|(key, _)| format!("\"{key}\""))
    .collect();
    let of_base = match &data.reader {
        TextReaderSpec::ParallelText { source, target, .. } => Some((source.clone(), target.clone())),
        TextReaderSpec::Reversal(_) => None,
    };
    let train = &splits[0];
    let source =
        language(args.source.as_deref(), &train.source, of_base.as_ref().map(|pair| &pair.0), "--source")?;
    let target =
        language(args.target.as_deref(), &train.target, of_base.as_ref().map(|pair| &pair.1), "--target")?;
    let quoted = |path: &Path| toml_string(&path.display().to_string());
    let mut text = format!(
        "# zoo reproduce ./{name}.toml\n#\n# Own text, everything else as in {base}; `zoo show ./{name}.toml --toml` shows all of it.\n\n\
         [recipe]\nbase = \"{base}\"\nname = \"{name}\"\nsummary = \"{name}: {source}-{target}, {lines} pairs\"\n\
         origin = \"this file\"\n{status}without = [{without}]\n\n\
         [data.reader]\nkind = \"parallel-text\"\nsource = \"{source}\"\ntarget = \"{target}\"\n",
        name = args.name,
        base = base.name(),
        lines = train.lines,
        without = without.join(", "),
    );
    for split in splits {
        let (name, source, target) = (split.name, quoted(&split.source), quoted(&split.target));
        let _ = writeln!(text, "files.{name} = {{ source = {source}, target = {target} }}");
    }
    for split in splits.iter().filter(|split| split.name != "train") {
        let _ = write!(text, "\n[data.eval.{0}]\nsplit = \"{0}\"\nlines = {1}\n", split.name, split.lines);
    }
    if splits.len() == 1 {
        text.push_str("\n# No text to watch or to score: --valid, --test.\n[data.eval]\n");
    }
    Ok(text)
}

/// The given language, else the ending of the file name (`train.en`, `train.en.gz`), else the
/// language of the base recipe.
fn language(given: Option<&str>, file: &Path, of_base: Option<&String>, option: &str) -> Result<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending =
        name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.').map(|(_, ending)| ending.to_string());
    let code = |text: &String| (2..=3).contains(&text.len()) && text.chars().all(|c| c.is_ascii_lowercase());
    let found = given.map(str::to_string).or(ending.filter(code)).or(of_base.cloned());
    found.ok_or_else(|| {
        Failure::usage(format!("the language of {} is not known", file.display()))
            .hint(format!("name it: {option} en"))
    })
}

/// Formats text as a TOML string.
fn toml_string(text: &str) -> String {
    toml::Value::from(text).to_string()
}
