//! The table in the README, made from the ledger and compared with it.

use std::collections::BTreeMap;

use super::table::{Cell, Column, Format, Table};
use super::verdicts::claim;
use crate::ledger::{Entry, Judgement, RunEnd};

/// Line before the generated part.
pub const BEGIN: &str = "<!-- results:begin -->";
/// Line behind it.
pub const END: &str = "<!-- results:end -->";

/// Why the generated part is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadmeError {
    /// A marker is missing, doubled, or they are in the wrong order.
    #[error(
        "the README needs one line `{BEGIN}` and behind it one line `{END}`\nhint: put both where the table belongs"
    )]
    Markers,
    /// The text does not agree with the ledger.
    #[error(
        "line {line} of the README is not what the ledger says\n  README: {found}\n  ledger: {expected}\nhint: {hint}"
    )]
    Stale {
        /// Line of the README, from 1.
        line: usize,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
        /// How to renew it.
        hint: String,
    },
}

/// The generated part: the last verdict on every claim (the last judgement of a recipe's published size without changed keys), how
/// the runs that were started ended, and the ledger's last hash, by which the table is bound to it.
#[must_use]
pub fn render(entries: &[Entry]) -> String {
    let mut last: BTreeMap<(String, String), (u64, &Judgement)> = BTreeMap::new();
    let mut ends: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for entry in entries {
        let record = &entry.record;
        if !(record.scores.is_empty() && record.end == RunEnd::Finished) {
            *ends.entry(&record.recipe).or_default().entry(record.end.to_string()).or_default() += 1;
        }
        let published =
            record.tier.as_deref().is_none_or(|tier| tier == "full") && record.overrides.is_empty();
        for judgement in record.judgements.iter().filter(|_| published) {
            let own = &judgement.verdict;
            let arm = Some(arm_of(judgement));
            let parts =
                [&own.eval, &arm, &judgement.claim.decode].map(|part| part.clone().unwrap_or_default());
            let value = own.published.map_or(String::new(), |v| v.to_string());
            let identity =
                format!("{}\n{}\n{value}\n{}", claim(own), parts.join("\n"), judgement.claim.source);
            last.insert((record.recipe.clone(), identity), (entry.sequence, judgement));
        }
    }
    let mut table = Table::new(vec![
        Column::words("recipe"),
        Column::words("claim"),
        Column::words("set"),
        Column::words("arm"),
        Column::numbers("published"),
        Column::numbers("measured"),
        Column::numbers("seeds"),
        Column::words("verdict"),
        Column::numbers("record"),
    ]);
    for ((recipe, _), (sequence, judgement)) in &last {
        let verdict = &judgement.verdict;
        table.push(vec![
            Cell::words(recipe.clone()),
            Cell::words(claim(verdict)),
            Cell::words(verdict.eval.clone().unwrap_or_default()),
            Cell::words(arm_of(judgement)),
            Cell::number(verdict.published),
            Cell::number(verdict.measured),
            Cell::count(u64::from(verdict.seeds)),
            Cell::words(verdict.outcome.to_string()),
            Cell::count(*sequence),
        ]);
    }
    let mut text = table.render(Format::Md);
    text.push('\n');
    for (recipe, ends) in &ends {
        let counts: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        text.push_str(&format!("- Runs of {recipe}: {}.\n", counts.join(", ")));
    }
    let head = entries.last().map_or("none", |entry| entry.hash.as_str());
    text.push_str(&format!("- Ledger: {} records, last hash `{head}`.\n", entries.len()));
    text
}

/// The arm that was run; a claim may speak of any.
fn arm_of(judgement: &Judgement) -> String {
    judgement.evidence.arm.clone().or_else(|| judgement.verdict.arm.clone()).unwrap_or_default()
}

/// `readme` with the generated part put between its markers.
///
/// # Errors
/// [`ReadmeError::Markers`].
pub fn replace(readme: &str, generated: &str) -> Result<String, ReadmeError> {
    let (start, end) = between(readme)?;
    Ok(format!("{}\n{}{}", &readme[..start], generated, &readme[end..]))
}

/// Compares the generated part of `readme` with what the ledger gives; `command` is what renews it.
///
/// # Errors
/// [`ReadmeError::Stale`] names the first line that differs; [`ReadmeError::Markers`].
pub fn check(readme: &str, generated: &str, command: &str) -> Result<(), ReadmeError> {
    let fresh = replace(readme, generated)?;
    if fresh == readme {
        return Ok(());
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (readme.lines().collect(), fresh.lines().collect());
    let line = (0..old.len().max(new.len())).find(|i| old.get(*i) != new.get(*i)).unwrap_or(0);
    let text = |lines: &[&str]| (*lines.get(line).unwrap_or(&"(nothing)")).to_owned();
    let hint = format!("run `{command}`");
    Err(ReadmeError::Stale { line: line + 1, found: text(&old), expected: text(&new), hint })
}

/// Byte offsets of the end of the first marker and the start of the second.
fn between(readme: &str) -> Result<(usize, usize), ReadmeError> {
    let once = |marker: &str| {
        let mut places = readme.match_indices(marker).map(|(at, _)| at);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            _ => Err(ReadmeError::Markers),
        }
    };
    let (start, end) = (once(BEGIN)? + BEGIN.len(), once(END)?);
    if start <= end { Ok((start, end)) } else { Err(ReadmeError::Markers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_part_is_put_in_and_compared() {
        let readme = format!("# zoo\n\n{BEGIN}\nold\n{END}\nmore\n");
        let fresh = replace(&readme, "new\n").unwrap();
        assert_eq!(fresh, format!("# zoo\n\n{BEGIN}\nnew\n{END}\nmore\n"));
        assert_eq!(replace(&fresh, "new\n").unwrap(), fresh);
        assert_eq!(check(&fresh, "new\n", "zoo results"), Ok(()));
        let Err(ReadmeError::Stale { line, found, expected, .. }) = check(&readme, "new\n", "zoo results")
        else {
            panic!("the old text went through");
        };
        assert_eq!((line, found.as_str(), expected.as_str()), (4, "old", "new"));
        for bad in ["", &format!("{END}\n{BEGIN}\n"), &format!("{BEGIN}\n{BEGIN}\n{END}\n")] {
            assert_eq!(replace(bad, ""), Err(ReadmeError::Markers));
        }
    }

    #[test]
    fn an_empty_ledger_has_a_table_without_rows() {
        let text = render(&[]);
        assert!(text.starts_with("| recipe |") && text.ends_with("0 records, last hash `none`.\n"), "{text}");
    }
}
