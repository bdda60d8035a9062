//! Shell completions, as the script of a shell asks for them.

use std::fs;

use crate::binary::Zoo;

/// Candidates for the last word of a command line.
pub fn candidates(zoo: &Zoo, line: &[&str]) -> Vec<String> {
    let mut command = zoo.command(&["--"]);
    command.args(line).env("ZOO_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (line.len() - 1).to_string());
    let output = command.env("_CLAP_IFS", "\n").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A home with folders of runs, which have no files.
fn home() -> Zoo {
    let zoo = Zoo::new();
    for run in [
        "reversal-transformer.smoke/fp32-seed1-0123456789ab",
        "reversal-transformer.smoke/mixed-seed1-0123456789ac",
        "reversal-transformer.smoke/mixed-seed12-0123456789ad-2",
        "reversal-rnn-rnn/fp32-seed7-0123456789ae",
        "mine/bf16-no-masters-seed3-0123456789af",
    ] {
        fs::create_dir_all(zoo.home().join("runs").join(run)).unwrap();
    }
    zoo
}

#[test]
fn recipes_are_completed_wherever_a_command_takes_one() {
    let zoo = Zoo::new();
    for command in ["show", "check", "fetch", "reproduce", "bench", "align", "judge", "verify", "features"] {
        let found = candidates(&zoo, &["zoo", command, "reversal-rnn"]);
        assert_eq!(found, ["reversal-rnn-conv", "reversal-rnn-rnn"], "{command}");
    }
    assert_eq!(candidates(&zoo, &["zoo", "new", "own", "--base", "reversal-rnn-r"]), ["reversal-rnn-rnn"]);
    let all = candidates(&zoo, &["zoo", "show", "trans"]);
    assert!(all.len() > 3 && all.iter().all(|name| name.starts_with("trans")), "{all:?}");
    // Own recipes are files.
    zoo.file("mine.toml", "");
    zoo.file("mine.txt", "");
    assert_eq!(candidates(&zoo, &["zoo", "show", "./m"]), ["./mine.toml"]);
    assert_eq!(candidates(&zoo, &["zoo", "show", "mi"]), ["mine.toml"]);
}

#[test]
fn arms_and_tiers_are_those_of_the_recipe_that_the_line_names() {
    let zoo = home();
    let line = ["zoo", "reproduce", "reversal-transformer-precision", "--arms"];
    let arms = |word: &str| candidates(&zoo, &[&line[..], &[word]].concat());
    let all = arms("");
    assert!(all.contains(&"mixed-no-islands".to_owned()) && all.contains(&"fp32".to_owned()), "{all:?}");
    assert!(!all.contains(&"bf16-no-such".to_owned()));
    assert_eq!(arms("fp"), ["fp32"]);
    assert_eq!(arms("fp32,bf16-"), ["fp32,bf16-no-masters"]);
    assert_eq!(candidates(&zoo, &["zoo", "show", "reversal-transformer", "--arm", ""]), ["fp32", "mixed"]);
    assert_eq!(candidates(&zoo, &["zoo", "reproduce", "reversal-transformer", "--tier", ""]), ["smoke"]);
    assert_eq!(candidates(&zoo, &["zoo", "reproduce", "reversal-transformer", "--tier=s"]), ["--tier=smoke"]);
}

#[test]
fn runs_are_completed_by_the_names_of_their_folders() {
    let zoo = home();
    for command in ["log", "evaluate", "export", "infer", "replay", "explain", "synthesize", "bundle"] {
        let names = candidates(&zoo, &["zoo", command, "reversal-t"]);
        let name = "reversal-transformer.smoke";
        assert_eq!(names, [name.to_owned(), format!("{name}:fp32"), format!("{name}:mixed")], "{command}");
    }
    let log = |word: &str| candidates(&zoo, &["zoo", "log", word]);
    assert_eq!(log("rev"), ["reversal-rnn-rnn", "reversal-transformer.smoke"]);
    assert_eq!(
        log("reversal-transformer.smoke:mixed:"),
        ["reversal-transformer.smoke:mixed:1", "reversal-transformer.smoke:mixed:12"]
    );
    assert_eq!(log("@last:b"), ["@last:bf16-no-masters", "@last:bf16-no-masters:3"]);
    assert_eq!(candidates(&zoo, &["zoo", "diff", "@last", "mi"]), ["mine", "mine:bf16-no-masters"]);
    assert_eq!(candidates(&zoo, &["zoo", "report", "reversal-rnn-r"])[0], "reversal-rnn-rnn");

    // Filters of `zoo runs`.
    assert_eq!(candidates(&zoo, &["zoo", "runs", "re"]), ["reversal-rnn-rnn", "reversal-transformer.smoke"]);
    let runs = ["zoo", "runs", "reversal-transformer"];
    let filter = |option: &str| candidates(&zoo, &[&runs[..], &[option, ""]].concat());
    assert_eq!(filter("--arms"), ["fp32", "mixed"]);
    assert_eq!(filter("--seeds"), ["1", "12"]);
    assert_eq!(filter("--tier"), ["smoke"]);
    assert_eq!(candidates(&zoo, &["zoo", "runs", "--seeds", ""]), ["1", "3", "7", "12"]);
    assert_eq!(candidates(&zoo, &["zoo", "runs", "--tier", ""]), ["full", "smoke"]);

    // The home of the line.
    let other = Zoo::new();
    let path = zoo.home().to_str().unwrap();
    assert_eq!(candidates(&other, &["zoo", "--home", path, "log", "min"]), ["mine", "mine:bf16-no-masters"]);
    other.file("min.txt", "");
    assert_eq!(candidates(&other, &["zoo", "log", "min"]), ["min.txt"], "a path, if no run fits");
}

#[test]
fn runs_are_completed_from_the_names_of_their_folders() {
    let zoo = Zoo::new();
    for recipe in 0..20 {
        for seed in 0..50 {
            let run = format!("runs/recipe-{recipe}/fp32-seed{seed}-0123456789ab");
            fs::create_dir_all(zoo.home().join(run)).unwrap();
        }
    }
    assert_eq!(candidates(&zoo, &["zoo", "log", "recipe-7:fp32:"]).len(), 50);
}

#[test]
fn other_commands_and_options_are_completed_as_before() {
    let zoo = Zoo::new();
    assert_eq!(candidates(&zoo, &["zoo", "reprod"]), ["reproduce"]);
    assert_eq!(candidates(&zoo, &["zoo", "cache", "g"]), ["gc"]);
    assert_eq!(candidates(&zoo, &["zoo", "list", "--format", "c"]), ["csv"]);
    assert_eq!(candidates(&zoo, &["zoo", "reproduce", "--thr"]), ["--threads"]);
    // An empty variable is that of a shell that exports it by mistake.
    let output = zoo.command(&["list", "--help"]).env("ZOO_COMPLETE", "").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:"));
}

/// What bash offers for a line, by its own function.
#[cfg(unix)]
fn in_bash(zoo: &Zoo, line: &str) -> Option<Vec<String>> {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_zoo")).parent().unwrap();
    // Bash splits a line at its COMP_WORDBREAKS, as readline does.
    let script = r#"
        source <(zoo completions bash)
        complete -p zoo > /dev/null || exit 1
        COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDS=()
        rest=$1
        while [[ -n $rest ]]; do
            rest=${rest#"${rest%%[! ]*}"}
            [[ -z $rest ]] && break
            if [[ $rest == [:=]* ]]; then word=${rest:0:1}; else word=${rest%%[ :=]*}; fi
            COMP_WORDS+=("$word")
            rest=${rest#"$word"}
        done
        [[ $1 == *' ' ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _zoo_complete zoo "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2> /dev/null
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", script, "bash", line])
        .env("PATH", path)
        .env("ZOO_HOME", zoo.home())
        .current_dir(zoo.home())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: bash is not installed");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[cfg(unix)]
#[test]
fn bash_completes_the_part_after_a_colon() {
    let zoo = home();
    let Some(found) = in_bash(&zoo, "zoo log reversal-r") else { return };
    assert_eq!(found, ["reversal-rnn-rnn", "reversal-rnn-rnn:fp32"]);
    let offered = |line: &str| in_bash(&zoo, line).unwrap();
    // Bash keeps what is before the last colon.
    assert_eq!(offered("zoo log reversal-transformer.smoke:m"), ["mixed", "mixed:1", "mixed:12"]);
    assert_eq!(offered("zoo log reversal-transformer.smoke:"), ["fp32", "mixed"]);
    assert_eq!(offered("zoo log reversal-transformer.smoke:mixed:1"), ["1", "12"]);
    assert_eq!(offered("zoo diff mine:bf16-no-masters:3 reversal-transformer.smoke:f"), ["fp32", "fp32:1"]);
    assert_eq!(offered("zoo reproduce reversal-transformer --tier=s"), ["smoke"]);
    assert_eq!(offered("zoo reproduce reversal-transformer --tier "), ["smoke"]);
}

#[test]
fn evaluation_sets_and_searches_are_those_of_the_recipe_or_the_run() {
    let zoo = home();
    let of = |line: &[&str]| candidates(&zoo, &[&["zoo"], line].concat());
    let searches = ["beam-4-gram", "greedy"];
    assert_eq!(of(&["bench", "wave2letter", "--decode", ""]), searches);
    assert_eq!(
        of(&["reproduce", "multi30k-transformer-tiny", "--eval", "test_2017_f"]),
        ["test_2017_flickr"]
    );
    fs::create_dir_all(zoo.home().join("runs/wave2letter/fp32-seed7-0123456789af")).unwrap();
    for run in ["wave2letter", "wave2letter:fp32", "wave2letter:fp32:7"] {
        assert_eq!(of(&["infer", run, "--decode", ""]), searches, "{run}");
        assert_eq!(of(&["evaluate", run, "--eval", "test-c"]), ["test-clean"], "{run}");
    }
    // The smoke tier has generated text.
    let line = ["reproduce", "multi30k-transformer-tiny", "--tier", "smoke", "--eval", "test_2017_f"];
    assert_eq!(of(&line), [""; 0]);
    // A recipe that is not built in is not read.
    assert_eq!(of(&["infer", "mine:bf16-no-masters", "--decode", ""]), [""; 0]);
}
