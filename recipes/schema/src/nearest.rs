//! Suggestions of the form "did you mean …?".

/// The candidate that `word` is most likely a misspelling of, if one is similar enough.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let word = plain(word);
    candidates
        .into_iter()
        .map(|candidate| (similarity(&word, &plain(candidate)), candidate))
        .filter(|(similarity, _)| *similarity >= 0.6)
        // `max_by` returns the last of equals; the first one should win.
        .fold(None, |best: Option<(f64, &str)>, (similarity, candidate)| match best {
            Some((most, _)) if most >= similarity => best,
            _ => Some((similarity, candidate)),
        })
        .map(|(_, candidate)| candidate)
}

/// Similarity: 1 for equal words, 0 for unrelated ones. It combines the edit distance, for typing
/// errors, with containment, for e.g. `epochs` instead of `max_epochs`.
fn similarity(word: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(word, candidate);
    let contained =
        word.len() >= 4 && candidate.contains(word) || candidate.len() >= 4 && word.contains(candidate);
    if contained { edits.max(0.7) } else { edits }
}

/// A hint for an unknown word: the nearest valid word, or all of them.
pub(crate) fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str> + Clone,
    what: &str,
) -> String {
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("did you mean `{near}`?");
    }
    listed(candidates, what)
}

/// A hint with all valid words.
pub(crate) fn listed<'c>(words: impl IntoIterator<Item = &'c str>, what: &str) -> String {
    let all: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    if all.is_empty() {
        format!("there are no {what} here")
    } else {
        format!("the {what} here: {}", all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let keys = ["layers", "heads", "dropout", "attention_dropout", "max_epochs", "norm_epsilon"];
        for (word, expected) in [
            ("drop_out", Some("dropout")),
            ("dropuot", Some("dropout")),
            ("layer", Some("layers")),
            ("epochs", Some("max_epochs")),
            ("attention-dropout", Some("attention_dropout")),
            ("epsilon", Some("norm_epsilon")),
            ("vocabulary", None),
        ] {
            assert_eq!(nearest(word, keys), expected, "{word}");
        }
    }

    #[test]
    fn without_a_near_one_all_are_listed() {
        assert_eq!(did_you_mean("zzz", ["a", "b"], "keys"), "the keys here: `a`, `b`");
        assert_eq!(did_you_mean("zzz", [], "keys"), "there are no keys here");
    }
}
