//! Recipes from files, with bases, and with overrides.

use std::fs;
use std::path::Path;

use zoo_recipes::{
    Diagnostics, Document, ListedTask, LoadError, Recipe, Selection, SpeechRecognition, embedded,
};

const NAME: &str = "multi30k-transformer-tiny";

fn text(name: &str) -> &'static str {
    embedded().iter().find(|recipe| recipe.name == name).unwrap().text
}

fn set(overrides: &[&str]) -> Result<zoo_recipes::Resolved, Diagnostics> {
    let overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
    Document::load(NAME).unwrap().resolve(&Selection { arm: Some("fp32".into()), tier: None, overrides })
}

#[test]
fn overrides_are_checked_and_shown_as_given() {
    for (text, message) in [
        ("train.sed=3", "--set train.sed=3: error: `train` has no key `sed`\n  hint: did you mean `seed`?"),
        (
            "trian.seed=3",
            "--set trian.seed=3: error: a recipe has no key `trian`\n  hint: did you mean `train`?",
        ),
        ("train.seed=x", "--set train.seed=x: error: `train.seed` is a string; expected an integer"),
        ("train.seed", "--set train.seed: error: there is no `=`"),
        ("train..seed=1", "is not a dotted key"),
        ("train.seed=[", "is not a TOML value"),
        (
            "model.encoder.heads=5",
            "--set model.encoder.heads=5: error: 5 heads do not divide the model width 128",
        ),
        ("recipe.name=mine", "`recipe` says what was published and cannot be set"),
        ("claim=[]", "`claim` says what was published and cannot be set"),
        ("train.optimizer.kind=sgd", "`train.optimizer` lacks `momentum`"),
        ("train=1", "--set train=1: error: `train` is an integer; expected a table"),
    ] {
        let found = set(&[text]).unwrap_err().to_string();
        assert!(found.contains(message), "{text}:\n{found}");
    }
}

#[test]
fn overrides_win_over_everything_and_only_free_ones_reproduce() {
    let resolved = set(&["train.log_every=7"]).unwrap();
    assert_eq!(resolved.recipe.train.log_every, 7);
    assert!(resolved.reproduces());
    assert!(resolved.binding_overrides.is_empty());

    let resolved = set(&["train.log_every=7", "train.schedule.lr = 0", "train.schedule.lr=0.5"]).unwrap();
    assert!(!resolved.reproduces());
    assert_eq!(resolved.binding_overrides, ["train.schedule.lr = 0", "train.schedule.lr=0.5"]);
    assert!(resolved.toml.contains("lr = 0.5"), "{}", resolved.toml);

    let resolved = set(&["precision.compute=bf16"]).unwrap();
    assert!(resolved.toml.contains("compute = \"bf16\""), "an override lies over the arm");

    // A changed kind is applied together with its keys, in whatever order they are given.
    let resolved = set(&["train.optimizer.momentum=0.9", "train.optimizer.kind=sgd"]).unwrap();
    assert!(resolved.toml.contains("kind = \"sgd\"\nmomentum = 0.9"), "{}", resolved.toml);
    assert!(set(&["train.checkpoint={ every_updates = 5 }"]).unwrap().reproduces());
    assert!(!set(&["train.checkpoint={ evaluate = { kind = \"last\" } }"]).unwrap().reproduces());
}

/// `fp32` and the body are their own masters: only the other arms can have none.
#[test]
fn overrides_may_be_for_some_arms_only() {
    let document = Document::load(NAME).unwrap();
    let all = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let arms = document.resolve_arms(None, &overrides)?;
        Ok::<_, Diagnostics>(arms.into_keys().collect::<Vec<_>>())
    };
    assert_eq!(all(&[]).unwrap(), ["", "fp32", "mixed"]);
    assert_eq!(all(&["precision.masters=false"]).unwrap(), ["mixed"]);
    assert_eq!(all(&["precision.loss_scaling.scale_min=0.01"]).unwrap(), ["mixed"]);
    let overrides = ["precision.masters=false".to_owned()];
    assert!(document.hash(None, &overrides).is_ok());
    assert_ne!(document.hash(None, &overrides), document.hash(None, &[]));
    assert_eq!(document.binding_overrides(&overrides).unwrap(), overrides);
    assert!(document.binding_overrides(&["train.log_every=7".to_owned()]).unwrap().is_empty());
    assert!(!document.is_what_ran(None, &overrides, &document.hash(None, &overrides).unwrap()));
    // For one arm it stays an error, and so is one that fits no arm.
    assert!(set(&["precision.masters=false"]).unwrap_err().to_string().contains("their own masters"));
    assert!(all(&["train.sed=3"]).unwrap_err().to_string().contains("did you mean `seed`?"));
    assert!(document.binding_overrides(&["train.seed".to_owned()]).is_err());
}

#[test]
fn searches_of_a_resolved_recipe_can_be_set_and_nothing_else() {
    let document = Document::load("wave2letter").unwrap();
    let recipe = document.resolve(&Selection::arm("mixed")).unwrap().recipe;
    assert_eq!(recipe.searching(&[]).unwrap(), recipe);
    let set = |text: &str| recipe.searching(&[text.to_owned()]);
    let given = set("decode.beam-4-gram.language_model=a.arpa").unwrap();
    let lacks = |recipe: &Recipe| recipe.search("beam-4-gram").unwrap().lacks_language_model();
    assert!(lacks(&recipe) && !lacks(&given));
    let mut given = SpeechRecognition::take(given).unwrap();
    given.decode.clone_from(&SpeechRecognition::of(&recipe).unwrap().decode);
    assert_eq!(Recipe::from(given), recipe);
    for (text, message) in [
        ("train.seed=7", "--set can only change a search"),
        ("decode.beam-4-gram.beam=0", "beam"),
        ("decode.beam-4-gram.bean=4", "bean"),
        ("decode.other.beam=4", "kind"),
        ("decode", "there is no `=`"),
        ("recipe.name=x", "cannot be set"),
    ] {
        let found = set(text).unwrap_err().to_string();
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn unknown_arms_and_tiers_are_named() {
    let document = Document::load(NAME).unwrap();
    let resolve = |arm: &str, tier: Option<&str>| {
        let selection =
            Selection { arm: Some(arm.into()), tier: tier.map(str::to_owned), overrides: Vec::new() };
        document.resolve(&selection).unwrap_err().to_string()
    };
    assert!(resolve("mixd", None).contains("has no arm `mixd`\n  hint: did you mean `mixed`?"));
    assert!(resolve("mixed", Some("smok")).contains("has no tier `smok`\n  hint: did you mean `smoke`?"));
}

#[test]
fn unknown_names_and_unreadable_files_are_named() {
    let shown = |name: &str| Document::load(name).unwrap_err().to_string();
    let text = shown("transformer-bse");
    assert!(text.contains("there is no recipe `transformer-bse`"), "{text}");
    assert!(text.contains("did you mean `transformer-base`?"), "{text}");
    let all = format!("the recipes are {}", zoo_recipes::names().join(", "));
    assert!(shown("zzz").contains(&all), "{}", shown("zzz"));
    assert!(matches!(Document::load("no/such/file"), Err(LoadError::Read { .. })));
    assert!(matches!(Document::load("nosuch.toml"), Err(LoadError::Read { .. })));
    assert!(matches!(Document::load("."), Err(LoadError::Unknown { .. })));
}

#[test]
fn a_path_works_and_may_build_on_a_name_or_a_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let load = |path: &str| Document::load(path);
    let head = |name: &str, base: &str| format!("[recipe]\nname = \"{name}\"\nbase = \"{base}\"\n");

    let named = write("named.toml", &(head("named", NAME) + "[train.schedule]\nlr = 0.0\n"));
    let document = load(&named).unwrap();
    document.check().unwrap();
    assert_eq!(document.arms(), ["fp32", "mixed"]);
    assert_eq!(document.folder(), folder.path());
    let resolved = document.resolve(&Selection::arm("mixed")).unwrap();
    assert!(resolved.toml.contains("lr = 0.0") && resolved.recipe.claim.is_empty());

    // The file's own arm lies over the inherited arm of the same name, and its `without` removes
    // keys of it.
    let own = "[arm.mixed]\nwithout = [\"precision.compute\"]\n[arm.mixed.precision.loss_scaling]\nkind = \"static\"\nscale = 8\n[arm.third]\n";
    let local = write("local.toml", &text(NAME).replace(&format!("name = \"{NAME}\""), "name = \"local\""));
    let beside = write("beside.toml", &(head("beside", "local.toml") + own));
    let document = load(&beside).unwrap();
    assert_eq!(document.arms(), ["fp32", "mixed", "third"]);
    let resolved = document.resolve(&Selection::arm("mixed")).unwrap();
    assert!(
        resolved.toml.contains("scale = 8.0") && resolved.toml.contains("compute = \"fp32\""),
        "{}",
        resolved.toml
    );
    load(&local).unwrap().check().unwrap();

    let error = |path: &str| load(path).unwrap_err().to_string();
    let slip = error(&write("slip.toml", &head("slip", "transformer-bas")));
    assert!(slip.contains("slip.toml:3:8") && slip.contains("did you mean `transformer-base`?"), "{slip}");
    assert_eq!(slip.matches("error:").count(), 1, "{slip}");
    let none = error(&write("none.toml", &head("none", "nothing.toml")));
    assert!(none.contains("cannot read the recipe"), "{none}");
    let number = error(&write("number.toml", "[recipe]\nname = \"number\"\nbase = 3\n"));
    assert!(number.contains("`recipe.base` is an integer"), "{number}");
    let alone = error(&write(
        "alone.toml",
        &format!("{}\n", text("vaswani-base").replace("status =", "without = []\nstatus =")),
    ));
    assert!(alone.contains("`recipe.without` takes keys out of a base"), "{alone}");
    let empty = error(&write("empty.toml", ""));
    assert!(empty.contains("empty.toml:1:1: error: the recipe lacks `recipe`"), "{empty}");

    // An error in an inherited part is shown at its place in the base's file.
    let broken = write("broken.toml", &text(NAME).replace("beam = 5", "beam = 0"));
    let upon = write("upon.toml", &head("upon", "broken.toml"));
    let found = load(&upon).unwrap().check().unwrap_err().to_string();
    assert!(found.contains(&format!("{broken}:")), "{found}");
}

#[test]
fn a_base_may_lose_keys() {
    let text = format!(
        "[recipe]\nname = \"mine\"\nbase = \"{NAME}\"\nwithout = [\"train.clip_norm\", \"train.max_updates\"]\n[train]\nmax_epochs = 3\n"
    );
    let document = Document::parse(&text, "mine.toml", Path::new("")).unwrap();
    let recipe = document.resolve(&Selection::default()).unwrap().recipe;
    assert_eq!(
        (recipe.train.clip_norm, recipe.train.max_updates, recipe.train.max_epochs),
        (None, None, Some(3))
    );
    let text = text.replace("train.clip_norm", "train.clip");
    let document = Document::parse(&text, "mine.toml", Path::new("")).unwrap();
    let found = document.check().unwrap_err().to_string();
    assert!(found.contains("mine.toml:4:12: error: `without` names `train.clip`"), "{found}");
}

#[test]
fn the_documented_example_is_a_recipe() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").filter_map(|rest| rest.split("```").next()).skip(1);
    let example = blocks.into_iter().find(|block| block.contains("name = \"captions\"")).unwrap();
    let document = Document::parse(example, "captions.toml", Path::new("data")).unwrap();
    document.check().unwrap_or_else(|found| panic!("{found}"));
    let resolved = document.resolve(&Selection::arm("mixed")).unwrap();
    assert_eq!(resolved.recipe.data().corpus(), None);
    assert_eq!(resolved.recipe.data().eval_sets().len(), 1);
    assert_eq!(resolved.folder, Path::new("data"));
    // The tier uses a share of the recipe's own files, rather than the base's generated data.
    let smoke = Selection { tier: Some("smoke".into()), ..Selection::arm("fp32") };
    assert_eq!(document.resolve(&smoke).unwrap().recipe.data().eval_set("valid").unwrap().lines, 8);
}
