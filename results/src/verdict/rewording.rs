//! Wordings of earlier programs, so that their records compare equal with the present wording.

use std::borrow::Cow;

use super::collapse::BEGINNING;
use super::outcome::Verdict;

/// Converts a text of an earlier program to the present wording. Whoever changes a wording adds the
/// earlier one here, because `zoo ledger recheck` compares the texts of old records through this
/// function.
fn present(text: &str) -> Cow<'_, str> {
    // Earlier programs put the plural after the bracket.
    if text.contains("5 % over all looks)s") {
        let text = text.replace("5 % over all looks)s", "5 % over all looks)");
        return Cow::Owned(text.replace("one-sided bound (", "one-sided bounds ("));
    }
    Cow::Borrowed(text)
}

impl Verdict {
    /// The first difference between these derived texts and the recorded ones, in words. Texts in
    /// an earlier wording count as equal, and so does an explanation from before collapsed seeds
    /// were named.
    pub(crate) fn text_difference(&self, recorded: &Self) -> Option<String> {
        let (ours, theirs) = (&self.explanation, present(&recorded.explanation));
        let unnamed = ours.split(BEGINNING).next().unwrap_or_default();
        if *ours != theirs && unnamed != theirs {
            return Some(format!("explanation: recorded `{}`, derived `{ours}`", recorded.explanation));
        }
        let notes: Vec<Cow<'_, str>> = recorded.notes.iter().map(|note| present(note)).collect();
        (self.notes != notes)
            .then(|| format!("notes: recorded {:?}, derived {:?}", recorded.notes, self.notes))
    }
}
