//! Recipes keep their hashes: a record in a ledger is about a hash, not about a name.

use std::fmt::Write;
use std::path::Path;

use zoo_recipes::{Document, Selection, names};

/// Every embedded recipe, tier and arm with the hash of its resolved JSON, a line each; `*` is the body.
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

/// `ZOO_WRITE_HASHES=1` writes the list anew, after a change that is meant to change recipes.
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
