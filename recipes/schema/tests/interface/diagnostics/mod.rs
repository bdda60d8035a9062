//! Errors are reported where the value was written, with the nearest valid alternative.

mod claims;
mod forms;
mod keys;
mod language;
mod recordings;
mod tasks;
mod text;
mod values;

use std::path::Path;

use zoo_recipes::{Diagnostics, Document, embedded};

const NAME: &str = "multi30k-transformer-tiny";

/// The text of a recipe: that of `tests/written-out` if there is one, otherwise that of the
/// catalog.
fn text(name: &str) -> String {
    let written_out = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/written-out/{name}.toml"));
    std::fs::read_to_string(written_out)
        .unwrap_or_else(|_| embedded().iter().find(|recipe| recipe.name == name).unwrap().text.to_owned())
}

/// All errors of a changed copy of a recipe.
fn findings(name: &str, from: &str, to: &str) -> Diagnostics {
    let text = text(name);
    assert!(text.contains(from), "{name} has no {from:?}");
    let changed = text.replacen(from, to, 1);
    match Document::parse(&changed, &format!("{name}.toml"), Path::new("")) {
        Ok(document) => match document.check() {
            Ok(()) => panic!("{from:?} -> {to:?} was accepted"),
            Err(found) => found,
        },
        Err(found) => found,
    }
}

/// The position `name.toml:line:column` of `needle` in the changed copy.
fn place(name: &str, from: &str, to: &str, needle: &str) -> String {
    let changed = text(name).replacen(from, to, 1);
    let at = changed.find(needle).unwrap_or_else(|| panic!("{needle:?} is not there"));
    let before = &changed[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{name}.toml:{line}:{column}")
}

/// Checks that a change causes an error with this place, message and hint.
#[track_caller]
fn one(from: &str, to: &str, needle: &str, message: &str, hint: &str) {
    one_of(NAME, from, to, needle, message, hint);
}

#[track_caller]
fn one_of(name: &str, from: &str, to: &str, needle: &str, message: &str, hint: &str) {
    let found = findings(name, from, to);
    let at = place(name, from, to, needle);
    let fits = found.iter().any(|one| {
        one.origin.to_string() == at
            && one.message.contains(message)
            && one.hint.as_deref().unwrap_or_default().contains(hint)
    });
    assert!(fits, "{from:?} -> {to:?}: expected {at}: {message} (hint: {hint})\nfound:\n{found}");
}

#[test]
fn everything_wrong_is_said_at_once_in_the_order_of_the_file() {
    let changed = text(NAME)
        .replacen("status = \"public\"", "status = \"pubic\"", 1)
        .replacen("merges = 10000", "mergs = 10000", 1)
        .replacen("lr = 0.005", "lr = true", 1)
        .replacen("step_window = 8192", "step_window = 0.5", 1);
    let found = Document::parse(&changed, "multi30k-transformer-tiny.toml", Path::new("")).unwrap_err();
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 5, "{found}");
    assert!(shown[0].contains("does not accept `pubic`\n  hint: did you mean `public`?"), "{found}");
    assert!(shown[1].contains("lacks `merges`") && shown[2].contains("no key `mergs`"), "{found}");
    assert!(shown[3].contains("`train.schedule.lr` is a boolean"), "{found}");
    assert!(shown[4].contains("`precision.loss_scaling.step_window` is a float"), "{found}");
    assert!(
        shown
            .iter()
            .all(|one| one.starts_with("multi30k-transformer-tiny.toml:") && one.contains(": error: "))
    );
}

#[test]
fn overlays_change_what_is_computed_alone() {
    one(
        "[tier.smoke.model]",
        "[tier.smoke.recipe]\nstatus = \"gated\"\n[tier.smoke.model]",
        "recipe]\nstatus",
        "`recipe` cannot stand in `tier.smoke`",
        "",
    );
    one(
        "[tier.smoke.model]",
        "[tier.smoke.arm.x]\n[tier.smoke.model]",
        "arm.x]\n[tier",
        "`arm` cannot stand in `tier.smoke`",
        "side by side",
    );
    one(
        "[arm.fp32.precision]",
        "[arm.any.precision]",
        "any.precision]",
        "`any` is not a valid name",
        "any arm",
    );
    one("[arm.fp32.precision]", "[arm.\"FP 32\".precision]", "\"FP 32\"", "is not a valid name in `arm`", "");
    one(
        "without = [\"data.corpus\", ",
        "without = [\"data.corpse\", ",
        "\"data.corpse\"",
        "names `data.corpse`",
        "`corpus`?",
    );
}

#[test]
fn names_and_files_agree() {
    let found = Document::parse(&text(NAME), "mine.toml", Path::new("")).unwrap_err().to_string();
    assert!(
        found.contains("calls itself `multi30k-transformer-tiny`, but its file is `mine.toml`"),
        "{found}"
    );
    assert!(found.contains("hint: name = \"mine\""), "{found}");
}

#[test]
fn no_text_makes_it_panic() {
    let text = text(NAME);
    let lines: Vec<&str> = text.lines().collect();
    // Remove each line, keep each line alone, and cut each line short.
    for at in 0..lines.len() {
        let without: Vec<&str> =
            lines.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| *line).collect();
        let line = lines[at];
        let half =
            line.char_indices().nth(line.chars().count() / 2).map_or("", |(middle, _)| &line[..middle]);
        let mut cut = lines.clone();
        cut[at] = half;
        for changed in [without.join("\n"), line.to_owned(), cut.join("\n")] {
            match Document::parse(&changed, "multi30k-transformer-tiny.toml", Path::new("")) {
                Ok(document) => {
                    let _ = document.check();
                }
                Err(found) => {
                    assert!(!found.is_empty());
                    assert!(
                        !found.to_string().contains("cannot be read"),
                        "serde knows more than the schema: {found}"
                    );
                }
            }
        }
    }
}
