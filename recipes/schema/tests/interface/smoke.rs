//! The tier `smoke` of a user's own recipes.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use zoo_recipes::tasks::text_classification::LabelledDataSpec;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec};
use zoo_recipes::{Document, Recipe, RecordingDataSpec, RecordingReaderSpec, Resolved, Selection, names};

/// A file `mine.toml` with a base.
fn upon(base: &str, without: &[&str], rest: &str) -> Document {
    let text = format!(
        "[recipe]\nname = \"mine\"\nbase = \"{base}\"\nsummary = \"Mine\"\norigin = \"mine\"\nstatus = \"private\"\nwithout = {without:?}\n\n{rest}"
    );
    Document::parse(&text, "mine.toml", Path::new("")).unwrap_or_else(|found| panic!("{base}:\n{found}"))
}

fn resolve(document: &Document, arm: &str, tier: Option<&str>) -> Resolved {
    let selection = Selection { arm: Some(arm.into()), tier: tier.map(str::to_owned), overrides: vec![] };
    document.resolve(&selection).unwrap_or_else(|found| panic!("{}:\n{found}", document.text()))
}

fn full(name: &str) -> Recipe {
    Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe
}

/// A `[data.reader]` of a user's own files, including `valid`, and the keys of the base that it
/// replaces.
type Own = (String, Vec<&'static str>);

fn own_pictures(stem: &str) -> Own {
    let reader = format!("kind = \"image-folder\"\nfolders = {{ train = \"{stem}\", valid = \"valid\" }}\n");
    (reader, vec!["data.corpus", "data.reader"])
}

fn own_recordings<L>(data: &RecordingDataSpec<L>, stem: &str) -> Own {
    let mut without = Vec::new();
    if data.corpus.is_some() {
        without.push("data.corpus");
    }
    if data.train_split.is_some() {
        without.push("data.train_split");
    }
    if matches!(&data.reader, RecordingReaderSpec::AudioManifest(spec) if spec.join.is_some()) {
        without.push("data.reader.join");
    }
    let rate = data.reader.sample_rate_hz();
    let reader = format!(
        "kind = \"audio-manifest\"\nsample_rate_hz = {rate}\nfiles = {{ train = \"{stem}.jsonl\", valid = \"valid.jsonl\" }}\n"
    );
    (reader, without)
}

fn own_text(data: &TextDataSpec, stem: &str) -> Own {
    let mut without = Vec::new();
    if data.corpus.is_some() {
        without.push("data.corpus");
    }
    if matches!(&data.reader, TextReaderSpec::ParallelText { files, .. } if !files.is_empty()) {
        without.push("data.reader.files");
    }
    if data.reader.targets().len() > 1 {
        without.push("data.reader.further_targets");
    }
    let reader = format!(
        "kind = \"parallel-text\"\nsource = \"en\"\ntarget = \"de\"\nfiles.train = {{ source = \"{stem}.en\", target = \"{stem}.de\" }}\n\
         files.valid = {{ source = \"valid.en\", target = \"valid.de\" }}\n"
    );
    (reader, without)
}

fn own_lines(stem: &str) -> (String, Vec<&'static str>) {
    let reader = format!("kind = \"text\"\nfiles = {{ train = \"{stem}.txt\", valid = \"valid.txt\" }}\n");
    (reader, vec!["data.corpus", "data.reader"])
}

fn own_labelled(data: &LabelledDataSpec, stem: &str) -> Own {
    let reader =
        format!("kind = \"labelled-lines\"\nfiles = {{ train = \"{stem}.txt\", valid = \"valid.txt\" }}\n");
    let mut without = vec!["data.corpus", "data.reader"];
    if data.held_out.is_some() {
        without.push("data.held_out");
    }
    if data.folds.is_some() {
        without.push("data.folds");
    }
    (reader, without)
}

/// A recipe based on `base` that reads its own files, including `valid`.
fn with_own_files(base: &str, stem: &str) -> Document {
    let (reader, mut without) = match &full(base) {
        Recipe::Translation(recipe) => own_text(&recipe.data, stem),
        Recipe::SpeechRecognition(recipe) => own_recordings(&recipe.data, stem),
        Recipe::SpeechSynthesis(recipe) => own_recordings(&recipe.data, stem),
        Recipe::ImageClassification(_) => own_pictures(stem),
        Recipe::LanguageModelling(_) => own_lines(stem),
        Recipe::TextClassification(recipe) => own_labelled(&recipe.data, stem),
    };
    without.push("data.eval");
    let mut set = "[data.eval.valid]\nsplit = \"valid\"\nlines = 500\n".to_owned();
    if let Recipe::LanguageModelling(_) = full(base) {
        set += "windows = { kind = \"random\", rows = 2, steps = 8, batches = 3, seed = 1 }\n";
    }
    upon(base, &without, &format!("[data.reader]\n{reader}\n{set}"))
}

#[test]
fn own_data_is_trained_on_with_the_recipes_own_model_whatever_the_base() {
    for base in names() {
        let document = with_own_files(base, "train");
        document.check().unwrap_or_else(|found| panic!("{base}:\n{found}"));
        for arm in document.arms() {
            let (whole, smoke) =
                (resolve(&document, arm, None).recipe, resolve(&document, arm, Some("smoke")).recipe);
            assert_eq!(smoke.block("model"), full(base).block("model"), "{base} {arm}");
            assert_eq!(smoke.block("loss"), whole.block("loss"), "{base} {arm}");
            assert_eq!(smoke.precision, whole.precision, "{base} {arm}");
            assert_eq!(smoke.train.optimizer, whole.train.optimizer, "{base} {arm}");
            let (data, of_whole) = (smoke.block("data"), whole.block("data"));
            assert_eq!(data["reader"], of_whole["reader"], "{base} {arm}");
            assert_eq!(data["share"], json!({ "train": 32, "eval": 8 }), "{base} {arm}");
            assert_eq!(data["eval"]["valid"]["lines"], 8, "{base} {arm}");
            assert!(of_whole["share"].is_null(), "{base} {arm}");
            assert!(smoke.train.max_updates.is_some_and(|updates| updates <= 10), "{base} {arm}");
            assert_eq!(smoke.train.batches_per_update, 1, "{base} {arm}");
        }
    }
}

#[test]
fn a_recipe_of_ones_own_with_the_bases_data_has_its_own_model_and_needs_no_download() {
    for base in names() {
        let document = upon(base, &[], "[train]\nseed = 77\n");
        document.check().unwrap_or_else(|found| panic!("{base}:\n{found}"));
        for arm in document.arms() {
            let smoke = resolve(&document, arm, Some("smoke")).recipe;
            assert_eq!(smoke.block("model"), full(base).block("model"), "{base} {arm}");
            assert!(smoke.data().is_generated() && smoke.data().corpus().is_none(), "{base} {arm}");
            assert!(smoke.train.max_updates.is_some_and(|updates| updates <= 20), "{base} {arm}");
        }
    }
}

#[test]
fn different_recipes_train_different_things() {
    let base = "multi30k-transformer-tiny";
    let all = [
        with_own_files(base, "one"),
        with_own_files(base, "two"),
        with_own_files("multi30k-gnmt", "one"),
        upon(base, &[], "[model]\nwidth = 64\n"),
        upon(base, &[], "[train.optimizer]\nbeta1 = 0.8\n"),
        Document::load(base).unwrap(),
    ];
    let trained: BTreeSet<String> = (all.iter())
        .map(|one| resolve(one, "fp32", Some("smoke")).hash_of(&["data", "model", "loss", "train"]))
        .collect();
    assert_eq!(trained.len(), all.len());
}

#[test]
fn a_base_of_a_base_is_inherited_as_well() {
    let document = upon("transformer-big", &[], "[model.encoder]\nlayers = 2\n");
    let recipe = resolve(&document, "mixed", None).recipe;
    let big = resolve(&Document::load("transformer-big").unwrap(), "mixed", None).recipe;
    assert_eq!(recipe.block("model")["width"], 1024);
    assert_eq!(recipe.block("data"), big.block("data"));
    assert!(recipe.claim.is_empty() && !big.claim.is_empty(), "claims are not inherited");
    assert_eq!(document.base(), Some("transformer-big"));
}

#[test]
fn recipes_that_are_built_upon_themselves_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, base) in [("a", "b"), ("b", "a")] {
        let text = format!("[recipe]\nname = \"{name}\"\nbase = \"{base}.toml\"\n");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    let found = Document::load(folder.path().join("a.toml").to_str().unwrap()).unwrap_err().to_string();
    assert!(found.contains("more than 8 recipes are built upon one another"), "{found}");
    assert!(found.contains("hint: is one of them its own base?"), "{found}");
}

#[test]
fn a_tier_of_the_base_is_inherited_where_the_file_says_so() {
    let base = "multi30k-transformer-tiny";
    let smoke = |rest: &str| resolve(&upon(base, &[], rest), "fp32", Some("smoke")).recipe;
    let of_base = resolve(&Document::load(base).unwrap(), "fp32", Some("smoke")).recipe;
    let inherited = smoke("[tier.smoke]\ninherit = true\n[tier.smoke.train]\nmax_updates = 3\n");
    let same = |one: &Recipe, other: &Recipe| {
        ["model", "data"].iter().all(|block| one.block(block) == other.block(block))
    };
    assert!(same(&inherited, &of_base));
    assert_eq!(inherited.train.max_updates, Some(3));
    // A tier that the file defines is used alone.
    let own = smoke("[tier.smoke.train]\nmax_updates = 3\n");
    assert!(same(&own, &full(base)));

    let error = |rest: &str| {
        let text = format!("[recipe]\nname = \"mine\"\nbase = \"{base}\"\n{rest}");
        Document::parse(&text, "mine.toml", Path::new("")).unwrap_err().to_string()
    };
    let none = error("[tier.smok]\ninherit = true\n");
    assert!(none.contains("mine.toml:5:1: error: there is no tier `smok` to inherit"), "{none}");
    assert!(none.contains("did you mean `smoke`?"), "{none}");
    let text = error("[tier.smoke]\ninherit = \"yes\"\n");
    assert!(text.contains("`tier.smoke.inherit` is a string; expected a boolean"), "{text}");
}

#[test]
fn a_share_is_of_data_that_are_read() {
    let error = |share: &str| {
        let document = upon("reversal-transformer", &[], &format!("[data]\nshare = {share}\n"));
        document.check().unwrap_err().to_string()
    };
    assert!(error("{ train = 8, eval = 8 }").contains("the reader generates its data"));
    let none = with_own_files("multi30k-gnmt", "one");
    let selection =
        Selection { overrides: vec!["data.share={ train = 0, eval = 1 }".into()], ..Selection::default() };
    let found = none.resolve(&selection).unwrap_err().to_string();
    assert!(found.contains("`data.share.train`"), "{found}");
}
