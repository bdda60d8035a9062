//! `zoo new` for classifiers of texts: a recipe for the user's own labelled lines.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use zoo_datasets::tasks::text_classification::{TrainingTexts, own_classes, prepare_texts};
use zoo_recipes::tasks::text_classification::{
    HeldOutSpec, LabelledDataSpec, LabelledReaderSpec, LabelledSetSpec, TextClassifierSpec, TextLayerSpec,
    TextLossSpec,
};
use zoo_recipes::{DataStatus, Document, EvaluatedWeights};
use zoo_results::exit::Exit;
use zoo_results::report::grouped;

use super::Recipe;
use super::prepare::{failure, own_examples};
use crate::cli::NewArgs;
use crate::error::{Failure, Result};
use crate::tasks::single_files::{single_files, toml_keys};

/// One of this many training texts validates if no file does.
const HELD_OUT: usize = 10;

/// Text of a recipe for one file of labelled lines per split.
///
/// # Errors
/// A file cannot be read, or is not what the base recipe can train on.
pub fn text(args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<String> {
    let folder = Path::new(".");
    let mut data = own_data(args, base, of_base)?;
    let classes = own_classes(&data, folder).map_err(failure)?;
    if classes.len() < 2 {
        let message = match classes.first() {
            Some(class) => format!("the training texts have the class {class} only"),
            None => "the training file is empty".to_owned(),
        };
        return Err(Failure::new(Exit::Data, message)
            .hint("the first word of a line is the class: `spam you have won a prize`"));
    }
    data.classes = u32::try_from(classes.len()).unwrap_or(u32::MAX);
    let texts = own_examples(&data, folder)?.unwrap_or(0);
    if let Some(held_out) = &mut data.held_out {
        held_out.texts = u32::try_from((texts / HELD_OUT).max(1)).unwrap_or(u32::MAX);
    }
    let prepared = Arc::new(prepare_texts(&data, None, folder, None).map_err(failure)?);
    for set in data.eval.values_mut() {
        let split = prepared.splits.get(&set.split);
        set.lines = split.map_or(0, |split| u32::try_from(split.texts.len()).unwrap_or(u32::MAX));
    }
    TrainingTexts::new(&prepared, &data, 0).map_err(failure)?;
    recipe(args, base, of_base, &data, texts)
}

/// The base's data with the user's files. Numbers of classes and texts are not yet known.
fn own_data(args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<LabelledDataSpec> {
    let files = single_files(args, base.name(), "a classifier of texts")?;
    let train = &of_base.train;
    let selects = train.patience.is_some()
        || matches!(train.checkpoint.evaluate, EvaluatedWeights::Best { .. })
        || of_base.data.eval.contains_key("valid");
    // Something must be scored, and something must select the epoch if the base does so.
    let cut = !files.contains_key("valid") && (selects || !files.contains_key("test"));
    let held_out = cut.then(|| HeldOutSpec { split: "valid".to_owned(), texts: 0, seed: 1 });
    let sets =
        ["valid", "test"].into_iter().filter(|name| files.contains_key(*name) || (cut && *name == "valid"));
    let set = |name: &str| (name.to_owned(), LabelledSetSpec { split: name.to_owned(), lines: 0 });
    let eval = sets.map(set).collect();
    Ok(LabelledDataSpec {
        corpus: None,
        share: None,
        reader: LabelledReaderSpec::LabelledLines { files },
        held_out,
        folds: None,
        eval,
        ..of_base.data.clone()
    })
}

/// The base's model and loss for another number of classes.
fn for_classes(of_base: &Recipe, classes: u32) -> Option<(TextClassifierSpec, TextLossSpec)> {
    if of_base.data.classes == classes {
        return None;
    }
    // The cross-entropy is for any number of classes.
    let loss = TextLossSpec::CrossEntropy {};
    let mut model = of_base.model.clone();
    if let Some(TextLayerSpec::Dense { units, .. }) = model.layer.last_mut() {
        *units = loss.outputs(classes);
    }
    Some((model, loss))
}

/// Text of the recipe file, which contains only the differences from the base recipe.
fn recipe(
    args: &NewArgs,
    base: &Document,
    of_base: &Recipe,
    data: &LabelledDataSpec,
    texts: usize,
) -> Result<String> {
    // The data of the new recipe is not generated.
    let status = match of_base.recipe.status {
        DataStatus::Generated => "status = \"private\"\n",
        _ => "",
    };
    let without: Vec<&str> = [
        ("\"data.corpus\"", of_base.data.corpus.is_some()),
        ("\"data.share\"", of_base.data.share.is_some()),
        ("\"data.reader\"", true),
        ("\"data.held_out\"", of_base.data.held_out.is_some()),
        ("\"data.folds\"", of_base.data.folds.is_some()),
        ("\"data.eval\"", !of_base.data.eval.is_empty()),
    ]
    .into_iter()
    .filter_map(|(key, there)| there.then_some(key))
    .collect();
    let mut text = format!(
        "# zoo reproduce ./{name}.toml\n#\n# Own texts, everything else as in {base}; `zoo show ./{name}.toml --toml` shows all of it.\n\n\
         [recipe]\nbase = \"{base}\"\nname = \"{name}\"\nsummary = \"{name}: {texts} texts, {classes} classes\"\n\
         origin = \"this file\"\n{status}without = [{without}]\n",
        name = args.name,
        base = base.name(),
        texts = grouped(texts as u64),
        classes = data.classes,
        without = without.join(", "),
    );
    let changed = for_classes(of_base, data.classes);
    if changed.is_some() {
        let _ = write!(text, "\n[data]\nclasses = {}\n", data.classes);
    }
    let _ = write!(text, "\n[data.reader]\n{}", toml_keys(&data.reader)?);
    if let Some(held_out) = &data.held_out {
        let _ = write!(text, "\n[data.held_out]\n{}", toml_keys(held_out)?);
    }
    for (name, set) in &data.eval {
        let _ = write!(text, "\n[data.eval.{name}]\n{}", toml_keys(set)?);
    }
    if let Some((model, loss)) = changed {
        text += "\n[model]\nlayer = [\n";
        for layer in &model.layer {
            let keys = toml_keys(layer)?;
            let _ = writeln!(text, "    {{ {} }},", keys.trim_end().replace('\n', ", "));
        }
        let _ = write!(text, "]\n\n[loss]\n{}", toml_keys(&loss)?);
    }
    Ok(text)
}
