//! Help, completions and usage errors.

use crate::binary::{Zoo, assert_snapshot};
use crate::completing::candidates;

const COMMANDS: &[&str] = &[
    "list",
    "show",
    "check",
    "fetch",
    "reproduce",
    "runs",
    "log",
    "diff",
    "track",
    "bench",
    "profile",
    "replay",
    "evaluate",
    "export",
    "pack",
    "new",
    "score",
    "judge",
    "align",
    "infer",
    "synthesize",
    "features",
    "ledger",
    "regress",
    "explain",
    "bundle",
    "report",
    "verify",
    "cache",
    "doctor",
    "schema",
    "completions",
    "man",
];

#[test]
fn help_names_every_command_and_every_exit_code() {
    let help = Zoo::new().ends_with(0, &["--help"]);
    assert_snapshot("help.txt", &help.stdout);
    for &command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}");
    }
    assert!(help.stdout.contains("  12  claims were judged and none was comparable"));
    assert_eq!(help.stderr, "");
}

#[test]
fn help_of_each_command_has_an_example() {
    let zoo = Zoo::new();
    for &command in COMMANDS {
        for flag in ["-h", "--help"] {
            let help = zoo.ends_with(0, &[command, flag]);
            assert!(help.stdout.contains(&format!("zoo {command}")), "{command} {flag}\n{}", help.stdout);
            assert!(help.stdout.contains("Examples:\n"), "{command} {flag}\n{}", help.stdout);
        }
    }
    for command in ["verify", "recheck", "merge", "list", "export", "show"] {
        let help = zoo.ends_with(0, &["ledger", command, "--help"]);
        assert!(help.stdout.contains(&format!("zoo ledger {command}")), "{command}\n{}", help.stdout);
        assert!(help.stdout.contains("Examples:\n"), "{command}\n{}", help.stdout);
    }
    for command in ["ls", "verify", "gc"] {
        let help = zoo.ends_with(0, &["cache", command, "--help"]);
        assert!(help.stdout.contains(&format!("zoo cache {command}")), "{command}\n{}", help.stdout);
        assert!(help.stdout.contains("Examples:\n"), "{command}\n{}", help.stdout);
    }
    assert_snapshot("help-reproduce.txt", &zoo.ends_with(0, &["reproduce", "-h"]).stdout);
}

#[test]
fn what_is_not_understood_is_a_usage_error() {
    let zoo = Zoo::new();
    for arguments in [
        &["reproduec", "x"][..],
        &["list", "--format", "xml"],
        &["list", "--device", "gpu"],
        &["list", "--threads", "0"],
        &["judge", "transformer-big"],
        &["judge", "transformer-big", "--scores", "27", "--hypotheses", "x"],
        &["reproduce", "transformer-big", "--seeds", "0"],
    ] {
        let ended = zoo.ends_with(2, arguments);
        assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn an_unknown_recipe_is_met_with_the_nearest_name() {
    let zoo = Zoo::new();
    for command in ["show", "check", "fetch", "reproduce"] {
        let ended = zoo.ends_with(2, &[command, "transformer-bgi"]);
        ended.says("there is no recipe `transformer-bgi`");
        assert!(ended.stderr.contains("did you mean `transformer-big`?"), "{}", ended.stderr);
    }
    zoo.ends_with(2, &["show", "./none.toml"]).says("cannot read the recipe ./none.toml");
}

#[test]
fn completions_know_the_commands() {
    let zoo = Zoo::new();
    for &command in COMMANDS {
        assert!(candidates(&zoo, &["zoo", command]).contains(&command.to_owned()), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = zoo.ends_with(0, &["completions", shell]).stdout;
        assert!(script.contains("ZOO_COMPLETE") && script.contains("zoo"), "{shell}: {script}");
    }
    zoo.ends_with(2, &["completions", "tcsh"]);
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    use std::process::Stdio;
    let zoo = Zoo::new();
    let mut child = zoo.command(&["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
