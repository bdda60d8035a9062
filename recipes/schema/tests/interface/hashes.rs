//! Recipes keep their hashes, because a record in a ledger refers to a hash, not to a name.

use std::fmt::Write;
use std::path::Path;

use zoo_recipes::{Document, Selection, names};

/// One line for every embedded recipe, tier and arm, with the hash of its resolved JSON. `*` is the
/// body.
fn hashes() -> String {
    let mut text = String::new();
    for name in names() {
        let document = Document::load(name).unwrap();
        for tier in [None, Some("smoke".to_owned())] {
            for arm in [None].into_iter().chain(document.arms().into_iter().map(Some)) {
                let selection =
                    Selection { arm: arm.map(str::to_owned), tier: tier.clone(), overrides: vec![] };
                let hash = document.resolve(&selection).unwrap().hash;
                let (tier, arm) = (tier.as_deref().unwrap_or("full"), arm.unwrap_or("*"));
                writeln!(text, "{name} {tier} {arm} {hash}").unwrap();
            }
        }
    }
    text
}

/// The recipes of `tests/written-out` use neither short forms nor parts. Those of the catalog do.
#[test]
fn a_short_recipe_is_the_one_that_is_written_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/written-out");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let long = Document::parse(&text, &format!("{name}.toml"), Path::new("")).unwrap();
        let short = Document::load(name).unwrap();
        assert!(text.len() > short.text().len(), "{name}");
        for tier in [None, Some("smoke")] {
            let arms = |document: &Document| document.resolve_arms(tier, &[]).unwrap();
            assert_eq!(arms(&long), arms(&short), "{name}");
        }
        assert_eq!(long.arms(), short.arms(), "{name}");
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}

/// `ZOO_WRITE_HASHES=1` rewrites the list, after an intended change of recipes.
#[test]
fn resolved_recipes_are_what_they_were() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hashes.txt");
    let now = hashes();
    if std::env::var_os("ZOO_WRITE_HASHES").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let before = std::fs::read_to_string(file).unwrap();
    let changed: Vec<&str> = now.lines().filter(|line| !before.lines().any(|known| known == *line)).collect();
    assert_eq!(changed, [""; 0], "resolved otherwise than before");
    assert_eq!(now.lines().count(), before.lines().count(), "a recipe, tier or arm is gone");
}
