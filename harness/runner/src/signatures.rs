//! Check of the signatures and spread rows that a recipe's claims name. The schema accepts any
//! text; the metrics and the table do not.

use zoo_recipes::{ClaimSpec, Diagnostic, Diagnostics, Document, nearest};
use zoo_results::metrics::{Entry, Signature};
use zoo_results::statistics::{spread, spreads};

use crate::error::split_hint;

/// Checks that every signature is valid and belongs to the claim's metric, and that every spread
/// row exists.
///
/// # Errors
/// One finding for each claim that fails, with its place in the file.
pub fn check_signatures(document: &Document, claims: &[ClaimSpec]) -> Result<(), Diagnostics> {
    let mut found = Diagnostics::default();
    for (at, claim) in claims.iter().enumerate() {
        if let Some((message, hint)) = unknown_row(claim) {
            found.push(Diagnostic::new(document.claim_origin(at), message).hint(hint));
        }
        let Some(text) = &claim.signature else { continue };
        let (message, hint) = match Signature::parse(text) {
            Err(error) => {
                let text = error.to_string();
                let (message, hint) = split_hint(&text);
                (message.to_owned(), hint.unwrap_or_default().to_owned())
            }
            Ok(signature) => {
                let takes = |metric: &Entry| metric.takes(&signature.convention);
                if Entry::find(&claim.metric).is_some_and(takes) {
                    continue;
                }
                let metric = signature.convention.entry();
                (
                    format!("the metric is `{}`, but the signature is of {metric}", claim.metric),
                    "`zoo score` prints the signature of each metric; top5 is accuracy with top:5".to_owned(),
                )
            }
        };
        found.push(Diagnostic::new(document.claim_origin(at), message).hint(hint));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Message and hint if the table of spreads has no row for the claim.
fn unknown_row(claim: &ClaimSpec) -> Option<(String, String)> {
    let name = claim.spread.as_deref()?;
    match spread(name) {
        None => {
            let names: Vec<&str> = spreads().iter().map(|row| row.name.as_str()).collect();
            let hint = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the rows of results/src/statistics/spreads.toml: {}", names.join(", ")),
            };
            Some((format!("the table of spreads has no row `{name}`"), hint))
        }
        Some(row) if row.metric != claim.metric => Some((
            format!("the row `{name}` is of {}, the claim of {}", row.metric, claim.metric),
            "choose a row of the claim's metric; without a row, only the spread of several seeds counts"
                .to_owned(),
        )),
        Some(_) => None,
    }
}

/// Notes on claims that can be judged but assume a standard deviation that was never measured.
pub fn invented_spreads(claims: &[ClaimSpec]) -> Vec<String> {
    let invented = claims.iter().enumerate().filter(|(_, claim)| claim.assumed_sigma.is_some());
    let words = |(at, claim): (usize, &ClaimSpec)| {
        format!(
            "claim {} on {}: assumed_sigma was never measured, so one seed cannot decide the claim; name a measured row \
             (spread = \"ROW\") or leave it out and run several seeds",
            at + 1,
            claim.metric
        )
    };
    invented.map(words).collect()
}

#[cfg(test)]
mod tests {
    use zoo_recipes::Selection;

    use super::*;

    #[test]
    fn every_recipe_names_rows_that_are_there_and_invents_nothing() {
        for name in zoo_recipes::names() {
            let document = Document::load(name).unwrap();
            let claims = document.resolve(&Selection::default()).unwrap().recipe.claim.clone();
            check_signatures(&document, &claims).unwrap_or_else(|found| panic!("{name}: {found:?}"));
            assert_eq!(invented_spreads(&claims), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_named_with_the_nearest() {
        let document = Document::load("gnmt-v2").unwrap();
        let mut claims = document.resolve(&Selection::default()).unwrap().recipe.claim.clone();
        claims[0].spread = Some("gnmt_v2".to_owned());
        let found = format!("{:?}", check_signatures(&document, &claims).unwrap_err());
        assert!(found.contains("no row `gnmt_v2`") && found.contains("did you mean `gnmt-v2`?"), "{found}");
        claims[0].spread = Some("yesno-tdnn".to_owned());
        let found = format!("{:?}", check_signatures(&document, &claims).unwrap_err());
        assert!(found.contains("is of wer, the claim of bleu"), "{found}");
    }
}
