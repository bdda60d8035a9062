//! JUnit XML: one suite for the targets of each kind of statement of a recipe, and one for its
//! other comparisons; one case per comparison. There is no total over suites, because a passing
//! check of this project says nothing about a published number.

use std::fmt::Write as _;

use super::row::Row;
use crate::verdict::Outcome;

/// Text in the form that XML 1.0 allows: special characters escaped, forbidden characters replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The XML file. A suite states whether its runs are new or reused. NOT REPRODUCED is a failure;
/// undecided comparisons are skipped, with the reason.
#[must_use]
pub fn junit(rows: &[Row]) -> String {
    let count = |rows: &[&Row], failed: bool| {
        rows.iter().filter(|row| if failed { is_failure(row) } else { is_skipped(row) }).count()
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str("<testsuites name=\"zoo regress\">\n");
    let mut suites: Vec<String> = rows.iter().map(Row::group).collect();
    suites.dedup();
    for suite in suites {
        let of: Vec<&Row> = rows.iter().filter(|row| row.group() == suite).collect();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
            escaped(&suite),
            of.len(),
            count(&of, true),
            count(&of, false)
        );
        if let Some(run) = of.iter().find_map(|row| row.run.as_ref()) {
            let run = escaped(run);
            let _ = writeln!(out, "    <properties><property name=\"run\" value=\"{run}\"/></properties>");
        }
        for row in of {
            let place = row.place.as_ref().map_or_else(String::new, |place| {
                format!(" file=\"{}\" line=\"{}\"", escaped(&place.file), place.line)
            });
            let (name, message) = (escaped(&row.name()), escaped(&row.explanation));
            let _ = write!(out, "    <testcase classname=\"{}\" name=\"{name}\"{place}", escaped(&suite));
            let standing = escaped(&row.standing);
            let _ = if is_failure(row) {
                writeln!(out, "><failure message=\"{message}\" type=\"{standing}\"/></testcase>")
            } else if is_skipped(row) {
                writeln!(out, "><skipped message=\"{standing}: {message}\"/></testcase>")
            } else {
                writeln!(out, "/>")
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn is_failure(row: &Row) -> bool {
    row.outcome == Outcome::NotReproduced
}

fn is_skipped(row: &Row) -> bool {
    matches!(
        row.outcome,
        Outcome::Inconclusive | Outcome::NotComparable | Outcome::NotRun | Outcome::NotJudgeable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(
            escaped("a<b> & \"c\" 'd'\n\u{1b}[1m\u{85}ü"),
            "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;&#10;\u{fffd}[1m\u{fffd}ü"
        );
    }
}
