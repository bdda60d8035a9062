//! Reading of the command line. A usage error is a failure, so that it can be printed as JSON.

use std::ffi::OsString;

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;
use crate::error::{Failure, Result};

/// Whether the arguments ask for JSON. The question is answered before the arguments are parsed,
/// because a usage error is printed as JSON too.
pub fn asks_for_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let words = arguments.into_iter().skip(1).take_while(|word| word != "--");
    let mut before = OsString::new();
    for word in words {
        if word == "--format=json" || (before == "--format" && word == "json") {
            return true;
        }
        before = word;
    }
    false
}

/// The parsed command line. Help and version end the process.
///
/// # Errors
/// The command line is not valid, and asks for JSON. Any other error that clap finds is printed by
/// it and ends the process.
pub fn parse() -> Result<Cli> {
    Cli::try_parse().or_else(|error| match error.use_stderr() && asks_for_json(std::env::args_os()) {
        true => Err(failure(&error)),
        false => error.exit(),
    })
}

/// An error of clap as a failure: its first paragraph, and its tips as hints.
fn failure(error: &clap::Error) -> Failure {
    let without = [ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ErrorKind::MissingSubcommand];
    if without.contains(&error.kind()) {
        return Failure::usage("a command is missing").hint("`zoo --help` lists the commands");
    }
    let text = error.render().to_string();
    let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = first.join(" ");
    let failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(&message));
    let tips: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
    match tips.as_slice() {
        [] => failure.hint("`--help` describes the options"),
        tips => tips.iter().fold(failure, |failure, tip| failure.hint(tip)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_by_one_word_or_two() {
        let asks = |line: &str| asks_for_json(line.split(' ').map(OsString::from));
        assert!(asks("zoo --format json list") && asks("zoo list --format=json"));
        for other in ["zoo list", "zoo list --format csv", "zoo infer x -- --format json", "json"] {
            assert!(!asks(other), "{other}");
        }
    }

    #[test]
    fn a_usage_error_has_one_line_and_the_tips_as_hints() {
        let of = |line: &str| failure(&Cli::try_parse_from(line.split(' ')).unwrap_err());
        assert_eq!(
            of("zoo doctro").parts(),
            ("unrecognized subcommand 'doctro'", Some("a similar subcommand exists: 'doctor'"))
        );
        let failure = of("zoo show");
        let (message, hint) = failure.parts();
        assert_eq!(message, "the following required arguments were not provided: <RECIPE>");
        assert_eq!(hint, Some("`--help` describes the options"));
        for line in ["zoo", "zoo --format json"] {
            assert_eq!(of(line).parts().0, "a command is missing");
        }
    }
}
