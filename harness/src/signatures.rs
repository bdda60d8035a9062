//! The signatures of a recipe's claims: the schema takes any text, the metrics do not.

use zoo_recipes::{ClaimSpec, Diagnostic, Diagnostics, Document};
use zoo_results::metrics::Signature;

use crate::error::split_hint;

/// Can the claims be judged as they are written: is every signature one, and of the claim's metric?
///
/// # Errors
/// A finding for each claim that cannot, at its place in the file.
pub fn check_signatures(document: &Document, claims: &[ClaimSpec]) -> Result<(), Diagnostics> {
    let mut found = Diagnostics::default();
    for (at, claim) in claims.iter().enumerate() {
        let Some(text) = &claim.signature else { continue };
        let (message, hint) = match Signature::parse(text) {
            Err(error) => {
                let text = error.to_string();
                let (message, hint) = split_hint(&text);
                (message.to_owned(), hint.unwrap_or_default().to_owned())
            }
            Ok(signature) => match signature.convention.metric().name() {
                metric if metric == claim.metric => continue,
                metric => (
                    format!("the metric is `{}`, but the signature is of {metric}", claim.metric),
                    "`zoo score` prints the signature of each metric".to_owned(),
                ),
            },
        };
        found.push(Diagnostic::new(document.claim_origin(at), message).hint(hint));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}
