//! `zoo new` for language models: a recipe for the user's own text.

use std::fmt::Write;
use std::path::Path;

use zoo_datasets::tasks::language_modelling::{TrainingWindows, own_lines, own_units, prepare_language};
use zoo_recipes::tasks::language_modelling::{
    LanguageDataSpec, LanguageReaderSpec, LanguageSetSpec, LanguageUnitSpec, VocabularyOrder,
    VocabularySplits,
};
use zoo_recipes::{DataStatus, Document};

use super::Recipe;
use super::prepare::failure;
use crate::cli::NewArgs;
use crate::error::{Failure, Result};
use crate::tasks::single_files::{single_files, toml_keys};

/// Share of a single text that the model is trained on; the rest validates (char-rnn, nanoGPT).
const TRAINING_SHARE: f64 = 0.9;

/// Text of a recipe for one text file per split, or for one file that is cut in two.
///
/// # Errors
/// A file cannot be read, or is too short for the windows of the base recipe.
pub fn text(args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<String> {
    let mut data = own_data(args, base, of_base)?;
    let folder = Path::new(".");
    data.vocabulary.size = u32::try_from(own_units(&data, folder).map_err(failure)?).unwrap_or(u32::MAX);
    let prepared = prepare_language(&data, None, folder).map_err(failure)?;
    for set in data.eval.values_mut() {
        set.lines = prepared.splits.get(&set.split).map_or(0, |split| split.lines as u32);
    }
    for name in data.eval.keys() {
        prepared.evaluation(name, &data).map_err(failure)?;
    }
    TrainingWindows::new(&prepared, &data, 0).map_err(failure)?;
    let lines = own_lines(&data, folder).map_err(failure)?.unwrap_or_default();
    recipe(args, base, of_base, &data, lines)
}

/// The base's data with the user's files. Sizes that depend on them are not yet known.
fn own_data(args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<LanguageDataSpec> {
    let mut files = single_files(args, base.name(), "a language model")?;
    let sets: Vec<&str> = ["valid", "test"].into_iter().filter(|name| files.contains_key(*name)).collect();
    let (training_share, sets) = match sets.as_slice() {
        [] => {
            let whole = files.remove("train").unwrap_or_default();
            files.insert("text".to_owned(), whole);
            (Some(TRAINING_SHARE), vec!["valid"])
        }
        ["test"] => {
            return Err(Failure::usage("there is a text to test on, but none to validate on")
                .hint("--valid FILE; or --train alone, whose last tenth validates"));
        }
        _ => (None, sets),
    };
    let mut data = of_base.data.clone();
    let windows = |name: &str| {
        let set = of_base.data.eval.get(name).or_else(|| of_base.data.eval.values().next());
        set.map(|set| set.windows).ok_or_else(|| {
            Failure::usage(format!("{} has no evaluation set", base.name()))
                .hint("name another base: `zoo list --task language-modelling`")
        })
    };
    let set = |name: &&str| {
        let set = LanguageSetSpec { split: (*name).to_owned(), lines: 0, windows: windows(name)? };
        Ok(((*name).to_owned(), set))
    };
    data.eval = sets.iter().map(set).collect::<Result<_>>()?;
    data.corpus = None;
    data.share = None;
    data.reader = LanguageReaderSpec::Text { files, training_share };
    if data.vocabulary.of == VocabularySplits::List {
        // The list is of another text. Its words come by falling count and occur three times at
        // least (LM1B), and so do these.
        data.vocabulary.order = VocabularyOrder::Openseq2seq;
        data.vocabulary.least_count = Some(3);
    }
    data.vocabulary.of = VocabularySplits::All;
    Ok(data)
}

/// Text of the recipe file, which contains only the differences from the base recipe.
fn recipe(
    args: &NewArgs,
    base: &Document,
    of_base: &Recipe,
    data: &LanguageDataSpec,
    lines: usize,
) -> Result<String> {
    let unit = match data.unit {
        LanguageUnitSpec::Word { .. } => "words",
        LanguageUnitSpec::Character {} => "characters",
    };
    // The data of the new recipe is not generated.
    let status = match of_base.recipe.status {
        DataStatus::Generated => "status = \"private\"\n",
        _ => "",
    };
    let without: Vec<&str> = [
        ("\"data.corpus\"", of_base.data.corpus.is_some()),
        ("\"data.share\"", of_base.data.share.is_some()),
        ("\"data.reader\"", true),
        ("\"data.eval\"", !of_base.data.eval.is_empty()),
    ]
    .into_iter()
    .filter_map(|(key, there)| there.then_some(key))
    .collect();
    let counted = match of_base.data.vocabulary.of {
        VocabularySplits::List => "order = \"openseq2seq\"\nleast_count = 3\n",
        _ => "",
    };
    let mut text = format!(
        "# zoo reproduce ./{name}.toml\n#\n# Own text, everything else as in {base}; `zoo show ./{name}.toml --toml` shows all of it.\n\n\
         [recipe]\nbase = \"{base}\"\nname = \"{name}\"\nsummary = \"{name}: {lines} lines, {size} different {unit}\"\n\
         origin = \"this file\"\n{status}without = [{without}]\n\n[data.vocabulary]\nsize = {size}\nof = \"all\"\n{counted}\n[data.reader]\n",
        name = args.name,
        base = base.name(),
        size = data.vocabulary.size,
        without = without.join(", "),
    );
    text += &toml_keys(&data.reader)?;
    for (name, set) in &data.eval {
        let _ = write!(
            text,
            "\n[data.eval.{name}]\nsplit = \"{}\"\nlines = {}\n\n[data.eval.{name}.windows]\n",
            set.split, set.lines
        );
        text += &toml_keys(&set.windows)?;
    }
    Ok(text)
}
