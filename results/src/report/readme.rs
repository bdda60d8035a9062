//! The generated parts of README.md and RESULTS.md: inserts them between their markers, and checks
//! them.

use super::results::Generated;

/// Lines before and after the part with all tables.
pub const RESULTS: [&str; 2] = ["<!-- results:begin -->", "<!-- results:end -->"];
/// Lines before and after the part about finished runs.
pub const RUNS: [&str; 2] = ["<!-- runs:begin -->", "<!-- runs:end -->"];

/// Why the generated part of a file is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadmeError {
    /// A marker is missing or repeated, or the markers are in the wrong order.
    #[error(
        "the file has no place for generated tables: a marker is missing, doubled or in the wrong place\nhint: put the lines `{}` and `{}` (or `{}` and `{}`) where the tables belong",
        RESULTS[0], RESULTS[1], RUNS[0], RUNS[1]
    )]
    Markers,
    /// The text differs from what the ledger gives.
    #[error("line {line} is not what the ledger says\n  file: {found}\n  ledger: {expected}\nhint: {hint}")]
    Stale {
        /// Line of the file, from 1.
        line: usize,
        /// Text in the file.
        found: String,
        /// Expected text.
        expected: String,
        /// How to update it.
        hint: String,
    },
}

/// `file` with the generated parts inserted between their markers. It must have the markers of at
/// least one part.
///
/// # Errors
/// [`ReadmeError::Markers`].
pub fn replace(file: &str, generated: &Generated) -> Result<String, ReadmeError> {
    let mut text = file.to_owned();
    let mut places = 0;
    for (markers, part) in [(RESULTS, &generated.results), (RUNS, &generated.runs)] {
        if let Some((start, end)) = between(&text, markers)? {
            text = format!("{}\n{part}{}", &text[..start], &text[end..]);
            places += 1;
        }
    }
    if places > 0 { Ok(text) } else { Err(ReadmeError::Markers) }
}

/// Compares the generated parts of `file` with what the ledger gives. `command` is the command that
/// updates them.
///
/// # Errors
/// [`ReadmeError::Stale`] names the first line that differs; [`ReadmeError::Markers`].
pub fn check(file: &str, generated: &Generated, command: &str) -> Result<(), ReadmeError> {
    let fresh = replace(file, generated)?;
    if fresh == file {
        return Ok(());
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (file.lines().collect(), fresh.lines().collect());
    let line = (0..old.len().max(new.len())).find(|i| old.get(*i) != new.get(*i)).unwrap_or(0);
    let text = |lines: &[&str]| (*lines.get(line).unwrap_or(&"(nothing)")).to_owned();
    let hint = format!("run `{command}`");
    Err(ReadmeError::Stale { line: line + 1, found: text(&old), expected: text(&new), hint })
}

/// Byte offsets of the end of the first marker and the start of the second; `None` if neither
/// exists.
fn between(file: &str, [begin, end]: [&str; 2]) -> Result<Option<(usize, usize)>, ReadmeError> {
    let places = |marker: &str| file.match_indices(marker).map(|(at, _)| at).collect::<Vec<_>>();
    match (places(begin).as_slice(), places(end).as_slice()) {
        ([], []) => Ok(None),
        ([start], [stop]) if start + begin.len() <= *stop => Ok(Some((start + begin.len(), *stop))),
        _ => Err(ReadmeError::Markers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_parts_are_put_in_and_compared() {
        let generated = Generated { results: "new\n".to_owned(), runs: "ran\n".to_owned() };
        let file = |results: &str, runs: &str| {
            format!(
                "# zoo\n\n{}\n{runs}\n{}\n\n{}\n{results}\n{}\nmore\n",
                RUNS[0], RUNS[1], RESULTS[0], RESULTS[1]
            )
        };
        let fresh = replace(&file("old", "ran"), &generated).unwrap();
        assert_eq!(fresh, file("new", "ran"));
        assert_eq!(replace(&fresh, &generated).unwrap(), fresh);
        assert_eq!(check(&fresh, &generated, "zoo results"), Ok(()));
        let Err(ReadmeError::Stale { line, found, expected, .. }) =
            check(&file("old", "ran"), &generated, "zoo results")
        else {
            panic!("the old text went through");
        };
        assert_eq!((line, found.as_str(), expected.as_str()), (8, "old", "new"));
        // One part is enough.
        let small = format!("{}\n{}\n", RUNS[0], RUNS[1]);
        assert_eq!(replace(&small, &generated).unwrap(), format!("{}\nran\n{}\n", RUNS[0], RUNS[1]));
        let [begin, end] = RESULTS;
        for bad in [
            "",
            begin,
            &format!("{end}\n{begin}\n"),
            &format!("{begin}\n{begin}\n{end}\n"),
            &format!("{small}{end}"),
        ] {
            assert_eq!(replace(bad, &generated), Err(ReadmeError::Markers), "{bad}");
        }
    }
}
