//! What `zoo --help` says beside the options.

use std::sync::LazyLock;

use zoo_results::exit::Exit;

use crate::cli::EXAMPLES;

/// Examples, streams, exit codes.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let codes: Vec<String> =
        Exit::ALL.iter().map(|exit| format!("  {:>3}  {}", exit.code(), exit.meaning())).collect();
    format!(
        "{EXAMPLES}\n\nstdout carries data in the format of --format; stderr carries progress and errors. NO_COLOR is respected.\n\n\
         Exit codes:\n{}",
        codes.join("\n")
    )
});
