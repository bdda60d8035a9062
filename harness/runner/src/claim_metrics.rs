//! Check of the metric names in a recipe's claims. The schema accepts any word; the list of metrics
//! does not.

use zoo_recipes::{Diagnostic, Diagnostics, Document, Recipe, nearest};
use zoo_results::metrics::{Entry, METRICS, Path};

use crate::tasks;

/// Checks that every claim names a known metric that applies to the recipe's model.
///
/// # Errors
/// One finding for each claim that fails, with its place in the file.
pub fn check_metrics(document: &Document, recipe: &Recipe) -> Result<(), Diagnostics> {
    let mut found = Diagnostics::default();
    let spectrograms = tasks::of(recipe).writes_spectrograms();
    for (at, claim) in recipe.claim.iter().enumerate() {
        let (message, hint) = match Entry::find(&claim.metric) {
            Some(known) if spectrograms || !matches!(known.path, Path::Timed { spectrograms: true, .. }) => {
                continue;
            }
            Some(known) => (
                format!("the metric `{}` is of spectrograms, which this model does not write", known.name),
                "target-tokens-per-second counts tokens of text, utterances-per-second recordings".to_owned(),
            ),
            None => {
                let names = || METRICS.iter().map(|metric| metric.name);
                let hint = match nearest(&claim.metric, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the metrics are {}", names().collect::<Vec<_>>().join(", ")),
                };
                (format!("there is no metric `{}`", claim.metric), hint)
            }
        };
        found.push(Diagnostic::new(document.claim_origin(at), message).hint(hint));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::Selection;

    use super::*;

    /// Findings in a recipe after replacing the metric of its claims.
    fn findings(recipe: &str, old: &str, new: &str) -> Vec<String> {
        let text = Document::load(recipe)
            .unwrap()
            .text()
            .replace(&format!("metric = \"{old}\""), &format!("metric = \"{new}\""));
        let document = Document::parse(&text, &format!("{recipe}.toml"), std::path::Path::new("")).unwrap();
        let resolved = document.resolve(&Selection::default()).unwrap().recipe;
        match check_metrics(&document, &resolved) {
            Ok(()) => Vec::new(),
            Err(found) => found.iter().map(|one| format!("{}; {:?}", one.message, one.hint)).collect(),
        }
    }

    #[test]
    fn a_metric_that_is_not_listed_is_refused_with_the_nearest() {
        let found = findings("tacotron2", "mel-frames-per-second", "mel-frame-per-second");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("there is no metric `mel-frame-per-second`"), "{found:?}");
        assert!(found[0].contains("did you mean `mel-frames-per-second`?"), "{found:?}");
        assert_eq!(findings("tacotron2", "nothing", "nothing"), [""; 0]);
    }

    #[test]
    fn frames_of_spectrograms_are_counted_where_a_model_writes_them() {
        let found = findings("convs2s", "tokens-per-second", "mel-frames-per-second");
        assert!(!found.is_empty() && found.iter().all(|one| one.contains("does not write")), "{found:?}");
    }
}
