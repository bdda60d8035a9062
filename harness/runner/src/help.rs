//! Text of `zoo --help` after the options.

use std::sync::LazyLock;

use zoo_results::exit::Exit;

/// Shown by `zoo --help` and `zoo -h`.
pub const EXAMPLES: &str = "\
Examples:
  zoo list                               list the recipes and the evidence for each
  zoo reproduce reversal-transformer     train, decode, score, judge: minutes on a CPU
  zoo judge transformer-big --scores 27.1,27.4
                                         a verdict on results of any framework";

/// Examples, streams and exit codes.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let codes: Vec<String> =
        Exit::ALL.iter().map(|exit| format!("  {:>3}  {}", exit.code(), exit.meaning())).collect();
    format!(
        "{EXAMPLES}\n\nstdout carries data in the format of --format; stderr carries progress and errors. NO_COLOR is respected.\n\n\
         Exit codes:\n{}",
        codes.join("\n")
    )
});
