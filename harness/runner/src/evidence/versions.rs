//! Whether recorded runs are of the present version of a recipe.

use std::collections::BTreeMap;

use zoo_recipes::{ClaimSpec, Diagnostics, Document, Recipe, Selection, hash_of_arms};

/// The present version of a recipe, resolved once for each tier. Most runs have no changes, so that
/// a thousand of them need no further resolution.
pub struct Versions<'d> {
    document: &'d Document,
    /// By tier, without changes; `None` if it does not resolve.
    unchanged: BTreeMap<Option<String>, Option<Version>>,
}

struct Version {
    arms: BTreeMap<String, Recipe>,
    hash: String,
}

impl<'d> Versions<'d> {
    /// The versions of a recipe. Nothing is resolved yet.
    pub fn new(document: &'d Document) -> Self {
        Self { document, unchanged: BTreeMap::new() }
    }

    /// The body (under the empty name) and every arm in a tier; `None` if they do not resolve.
    pub fn arms(&mut self, tier: Option<&str>) -> Option<&BTreeMap<String, Recipe>> {
        self.version(tier).map(|version| &version.arms)
    }

    /// The body of the published size.
    ///
    /// # Errors
    /// It does not resolve.
    pub fn body(&mut self) -> std::result::Result<Recipe, Diagnostics> {
        let document = self.document;
        match self.arms(None).and_then(|arms| arms.get("")) {
            Some(body) => Ok(body.clone()),
            // An arm does not resolve, or the body, which then has findings.
            None => Ok(document.resolve(&Selection::default())?.recipe),
        }
    }

    /// Hash of the recipe in a tier; `None` if it does not resolve.
    pub fn hash(&mut self, tier: Option<&str>) -> Option<&str> {
        self.version(tier).map(|version| version.hash.as_str())
    }

    fn version(&mut self, tier: Option<&str>) -> Option<&Version> {
        let document = self.document;
        let resolved = self.unchanged.entry(tier.map(str::to_owned)).or_insert_with(|| {
            let arms = document.resolve_arms(tier, &[]).ok()?;
            let hash = hash_of_arms(&arms);
            Some(Version { arms, hash })
        });
        resolved.as_ref()
    }

    /// Whether a run of a recipe with this hash was one of the present version, not considering
    /// claims. `claims` are those at the time of the run.
    pub fn has(
        &mut self,
        tier: Option<&str>,
        overrides: &[String],
        hash: &str,
        claims: impl FnOnce() -> Vec<ClaimSpec>,
    ) -> bool {
        if !overrides.is_empty() {
            let document = self.document;
            return document.is_what_ran(tier, overrides, hash)
                || document.is_what_ran_with_claims(tier, overrides, hash, &claims());
        }
        let Some(Version { arms, hash: now }) = self.version(tier) else { return false };
        if now == hash {
            return true;
        }
        let claims = claims();
        let mut then = arms.clone();
        then.values_mut().for_each(|recipe| recipe.claim.clone_from(&claims));
        hash_of_arms(&then) == hash
    }
}
