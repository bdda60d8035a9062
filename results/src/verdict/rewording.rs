//! Explanations of earlier programs, whose records are held against the present wording.

use std::borrow::Cow;

use super::collapse::BEGINNING;
use super::outcome::Verdict;

/// A text of an earlier program in the present wording. Whoever changes a wording adds the earlier one here: `zoo ledger recheck`
/// compares the texts of old records by it.
fn present(text: &str) -> Cow<'_, str> {
    // The plural stood behind the bracket.
    if text.contains("5 % over all looks)s") {
        let text = text.replace("5 % over all looks)s", "5 % over all looks)");
        return Cow::Owned(text.replace("one-sided bound (", "one-sided bounds ("));
    }
    Cow::Borrowed(text)
}

impl Verdict {
    /// Where the recorded texts differ from these, which were derived: words of the first difference. Texts in an earlier wording
    /// agree; so does an explanation from before collapsed seeds were named.
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
