//! Annotations and the step summary of GitHub workflows.

use super::row::{Row, table};
use crate::report::Format;
use crate::verdict::Outcome;

/// Escapes the value of a workflow command's property or, without `property`, its message.
fn escaped(text: &str, property: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if property { text.replace(':', "%3A").replace(',', "%2C") } else { text }
}

/// One workflow command per line, at the claim's line: an error for each NOT REPRODUCED, a warning
/// for each undecided comparison.
#[must_use]
pub fn annotations(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let level = match row.outcome {
            Outcome::NotReproduced => "error",
            Outcome::Inconclusive => "warning",
            _ => continue,
        };
        let place = row.place.as_ref().map_or_else(String::new, |place| {
            format!("file={},line={},", escaped(&place.file, true), place.line)
        });
        let title = escaped(&format!("{}: {} is {}", row.suite(), row.name(), row.standing), true);
        text.push_str(&format!("::{level} {place}title={title}::{}\n", escaped(&row.explanation, false)));
    }
    text
}

/// The table for the summary of a step.
#[must_use]
pub fn summary(rows: &[Row]) -> String {
    format!("## zoo regress\n\n{}", table(rows).render(Format::Md))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped_as_the_runner_reads_them() {
        assert_eq!(escaped("5 %, a: b\r\nc", false), "5 %25, a: b%0D%0Ac");
        assert_eq!(escaped("5 %, a: b", true), "5 %25%2C a%3A b");
    }
}
