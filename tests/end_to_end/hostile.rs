//! Malicious files and recipes: devices, FIFOs, control characters and leftovers.

use crate::binary::{Zoo, small_copy};

/// Fails if the text has a control character that a terminal would act on.
#[track_caller]
fn harmless(text: &str) {
    let obeyed = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(obeyed, None, "{text:?}");
}

#[test]
fn control_characters_of_a_recipe_do_not_reach_the_terminal() {
    let zoo = Zoo::new();
    let evil = r#"summary = "\u001b]0;owned\u0007 \u009b2J"#;
    let recipe = small_copy(&zoo, &[("summary = \"", evil)]);
    for format in ["human", "md"] {
        let shown = zoo.ends_with(0, &["show", &recipe, "--format", format]);
        harmless(&shown.stdout);
        assert!(shown.stdout.contains(r"\u{1b}]0;owned\u{7} \u{9b}2J"), "{}", shown.stdout);
    }
    harmless(&zoo.ends_with(0, &["check", &recipe]).stdout);
    // An unknown key is printed as well.
    let recipe = small_copy(&zoo, &[("max_updates = 20\n", "max_updates = 20\n\"\\u001b[31mred\" = 1\n")]);
    let found = zoo.ends_with(3, &["check", &recipe]);
    harmless(&found.stderr);
    assert!(found.stderr.contains(r"\u{1b}[31mred"), "{}", found.stderr);
}

#[cfg(unix)]
#[test]
fn devices_fifos_and_folders_are_not_data() {
    let zoo = Zoo::new();
    zoo.file("ref", "a line\n");
    let fifo = std::process::Command::new("mkfifo").arg(zoo.home().join("fifo")).status();
    assert!(fifo.is_ok_and(|status| status.success()), "coreutils has mkfifo");
    for (path, what) in [("/dev/zero", "a device"), ("fifo", "a FIFO"), (".", "a folder")] {
        let refusal = format!("it is {what}, not a regular file");
        let score = ["score", "--metric", "bleu", "--references", "ref", "--hypotheses", path];
        zoo.ends_with(4, &score).says(&refusal);
        // A name without a slash would be a built-in recipe.
        let recipe = if path.contains('/') { path.to_owned() } else { format!("./{path}") };
        let refused = zoo.ends_with(2, &["check", &recipe]);
        assert!(refused.stderr.contains(&refusal), "{}", refused.stderr);
    }
}

#[test]
fn the_next_start_removes_what_a_dead_process_left() {
    let zoo = Zoo::new();
    zoo.file("corpora/a-corpus/.unpacking-abc123.lock", "");
    let left = zoo.file("corpora/a-corpus/.unpacking-abc123/files/a.flac", "half");
    let kept = zoo.file("corpora/a-corpus/files/b.flac", "whole");
    zoo.ends_with(0, &["fetch", "reversal-transformer"]);
    assert!(!left.exists() && !zoo.home().join("corpora/a-corpus/.unpacking-abc123.lock").exists());
    assert!(kept.exists());
}
