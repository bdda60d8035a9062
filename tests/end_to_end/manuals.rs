//! Man pages.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::binary::{Zoo, files};

#[test]
fn the_pages_of_all_commands_are_written_into_a_folder() {
    let zoo = Zoo::new();
    zoo.ends_with(0, &["man", "-o", "man/man1"]);
    let pages = files(&zoo.home().join("man/man1"));
    let help = zoo.ends_with(0, &["--help"]).stdout;
    let commands = help.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Further lines of a description have more spaces.
    let first = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = first.filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<String> =
        names.filter(|name| *name != "help").map(|name| format!("zoo-{name}.1")).collect();
    assert!(names.len() > 25, "{names:?}");
    names.extend(["zoo.1", "zoo-ledger-recheck.1", "zoo-cache-gc.1"].map(str::to_owned));
    for name in &names {
        assert!(pages.contains_key(&zoo.home().join("man/man1").join(name)), "{name} is not written");
    }
    let page = String::from_utf8(pages[&zoo.home().join("man/man1/zoo-reproduce.1")].clone()).unwrap();
    assert!(page.contains("\\-\\-seeds") && page.contains(".SH EXAMPLES\n.nf\nzoo reproduce "), "{page}");
    let main = String::from_utf8(pages[&zoo.home().join("man/man1/zoo.1")].clone()).unwrap();
    assert!(main.contains(".SH EXIT STATUS") || main.contains(".SH \"EXIT STATUS\""), "{main}");
}

#[test]
fn one_page_is_printed_by_the_words_of_its_command() {
    let zoo = Zoo::new();
    let page = zoo.ends_with(0, &["man", "ledger", "recheck"]).stdout;
    assert!(page.contains("zoo\\-ledger\\-recheck \\- Recompute every score"), "{page}");
    assert!(zoo.ends_with(0, &["man"]).stdout.contains("zoo \\- A model zoo"));
    let unknown = zoo.ends_with(2, &["man", "ledger", "rechek"]);
    unknown.says("`zoo ledger rechek` is not a command");
    assert!(unknown.stderr.contains("did you mean `zoo ledger recheck`?"), "{}", unknown.stderr);
    zoo.ends_with(2, &["man", "ledger", "-o", "x"]);
}

#[test]
fn groff_accepts_every_page() {
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped: groff is not installed");
        return;
    }
    let zoo = Zoo::new();
    zoo.ends_with(0, &["man", "-o", "man"]);
    for (path, page) in files(&zoo.home().join("man")) {
        let mut groff = Command::new("groff");
        // Plain characters: neither colours nor letters that are printed twice.
        groff.args(["-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-o", "-P-u"]);
        groff.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = groff.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(&page));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let (text, warnings) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("SYNOPSIS"), "{path:?}: {warnings}");
        assert_eq!(warnings, "", "{path:?}");
    }
}
