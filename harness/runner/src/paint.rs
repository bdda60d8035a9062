//! Colours of verdicts on a terminal.

use zoo_results::verdict::Outcome;

/// Outcomes whose words contain those of a later one come first.
const OUTCOMES: [Outcome; 6] = [
    Outcome::NotReproduced,
    Outcome::NotComparable,
    Outcome::NotJudgeable,
    Outcome::NotRun,
    Outcome::Inconclusive,
    Outcome::Reproduced,
];

/// Parameters of the escape sequence for an outcome.
fn colour(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Reproduced => "32",
        Outcome::NotReproduced => "31",
        Outcome::Inconclusive => "33",
        Outcome::NotComparable | Outcome::NotRun | Outcome::NotJudgeable => "2",
    }
}

/// The text with a colour for the words of each outcome. The words are in capitals, so they are not
/// part of other words.
pub fn painted(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // The outcome that comes first; of those at one place, the one with more words.
        let next = OUTCOMES
            .iter()
            .filter_map(|outcome| {
                let word = outcome.to_string();
                rest.find(&word).map(|at| (at, *outcome, word))
            })
            .min_by_key(|(at, ..)| *at);
        let Some((at, outcome, word)) = next else { break };
        let (before, of) = rest.split_at(at);
        found.push_str(&format!("{before}\u{1b}[{}m{word}\u{1b}[0m", colour(outcome)));
        rest = &of[word.len()..];
    }
    found.push_str(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_colour() {
        assert_eq!(
            painted("1 REPRODUCED, 2 NOT REPRODUCED; INCONCLUSIVE\nNOT RUN reproduced"),
            "1 \u{1b}[32mREPRODUCED\u{1b}[0m, 2 \u{1b}[31mNOT REPRODUCED\u{1b}[0m; \u{1b}[33mINCONCLUSIVE\u{1b}[0m\n\
             \u{1b}[2mNOT RUN\u{1b}[0m reproduced"
        );
        assert_eq!(painted("no verdict"), "no verdict");
    }
}
