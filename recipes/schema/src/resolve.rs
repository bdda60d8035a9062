//! Resolves a document to one recipe, with precedence base < recipe < tier < arm < `--set`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::check::{check_recipe, check_searches};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::Document;
use crate::origin::Origin;
use crate::overlay::apply;
use crate::overrides::lay_overrides;
use crate::smoke::{self, SMOKE};
use crate::spec::{ClaimSpec, ComputeType, Recipe};
use crate::stack::pick;
use crate::tree::{self, Node, Table, Value};
use crate::validate::validate;

/// What to apply to a recipe's body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Name of an arm; `None` for the body alone.
    pub arm: Option<String>,
    /// Name of a tier; `None` for the published size.
    pub tier: Option<String>,
    /// Overrides `key=value`: a dotted key, and a TOML value or bare word. Later ones win.
    pub overrides: Vec<String>,
}

impl Selection {
    /// Selects one arm at the published size.
    pub fn arm(name: &str) -> Self {
        Self { arm: Some(name.to_owned()), ..Self::default() }
    }
}

/// One recipe with everything applied and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The resolved recipe.
    pub recipe: Recipe,
    /// Name of the applied arm; `None` for the body.
    pub arm: Option<String>,
    /// Name of the applied tier; `None` for the published size.
    pub tier: Option<String>,
    /// All overrides as given.
    pub overrides: Vec<String>,
    /// The overrides of keys that `recipe.free` does not list. A run with one of them does not
    /// count as a reproduction.
    pub binding_overrides: Vec<String>,
    /// SHA-256 (hexadecimal) over the canonical JSON of `recipe`.
    pub hash: String,
    /// Folder where relative paths start. Empty: the working directory.
    pub folder: PathBuf,
    /// `recipe` as TOML; [`Recipe::from_toml`] reads it back.
    pub toml: String,
}

impl Resolved {
    /// Whether a run counts as a reproduction: without a tier, and with overrides only of keys that
    /// `recipe.free` lists.
    pub fn reproduces(&self) -> bool {
        self.tier.is_none() && self.binding_overrides.is_empty()
    }

    /// SHA-256 over the canonical JSON of some top-level blocks, e.g. `["data"]` for everything
    /// that data preparation depends on.
    pub fn hash_of(&self, blocks: &[&str]) -> String {
        let mut json = json_of(&self.recipe);
        if let Json::Object(members) = &mut json {
            members.retain(|name, _| blocks.contains(&name.as_str()));
        }
        digest(&json)
    }
}

/// One key in which an arm differs from the recipe's body.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The dotted key.
    pub key: String,
    /// The body's value as TOML; `None` if the body has none.
    pub base: Option<String>,
    /// The arm's value as TOML; `None` if the arm has none.
    pub arm: Option<String>,
}

impl Document {
    /// Applies tier, arm and overrides, and checks the result.
    ///
    /// # Errors
    /// All errors, each with the place where the value was written.
    pub fn resolve(&self, selection: &Selection) -> Result<Resolved, Diagnostics> {
        let (recipe, binding_overrides) = self.selected(selection)?;
        let toml = recipe.to_toml().map_err(|error| Diagnostic::new(self.start(), error.to_string()))?;
        Ok(Resolved {
            hash: recipe.hash(),
            recipe,
            arm: selection.arm.clone(),
            tier: selection.tier.clone(),
            overrides: selection.overrides.clone(),
            binding_overrides,
            folder: self.folder().to_owned(),
            toml,
        })
    }

    /// The selected recipe, and the overrides of keys that are not free.
    fn selected(&self, selection: &Selection) -> Result<(Recipe, Vec<String>), Diagnostics> {
        let mut found = Diagnostics::default();
        let mut root = self.body(&self.stack.bodies, &mut found);
        // Every recipe has a tier `smoke`: its own, or the one that the program provides.
        let usual = selection.tier.as_deref() == Some(SMOKE) && self.has_usual_smoke();
        if usual {
            let of_base = self.stack.base_tiers.iter().find(|tier| tier.name == SMOKE).map(|tier| {
                let bodies = self.stack.bodies.get(..tier.bodies).unwrap_or_default();
                (self.body(bodies, &mut Diagnostics::default()), tier)
            });
            smoke::shrink_data(&mut root, of_base);
        }
        let tier = selection.tier.as_ref().filter(|_| !usual);
        for (overlays, what, name) in
            [(&self.stack.tiers, "tier", tier), (&self.stack.arms, "arm", selection.arm.as_ref())]
        {
            let Some(name) = name else { continue };
            match pick(overlays, what, name, self.start()) {
                Ok(overlay) => overlay.apply(&mut root, &mut found),
                Err(one) => found.push(one),
            }
        }
        if usual {
            smoke::limit(&mut root);
        }
        let keys = lay_overrides(&mut root, &selection.overrides, &mut found);
        let binding_overrides = self.binding(keys);

        check_recipe(&root, &mut found);
        // serde can read a tree only if it matches the schema. Otherwise it would report the same
        // errors again.
        if !found.is_empty() {
            found.sort();
            return Err(found);
        }
        let recipe = Recipe::from_json(root.to_json())
            .map_err(|error| Diagnostic::new(self.start(), format!("the recipe cannot be read: {error}")))?;
        validate(&recipe, &root, &self.arms(), &mut found);
        found.into_result((recipe, binding_overrides))
    }

    /// Lays the bodies over one another, the first one lowest.
    fn body(&self, bodies: &[Node], found: &mut Diagnostics) -> Node {
        let empty = || Node { value: Value::Table(Table::default()), origin: self.start() };
        let mut root = bodies.first().cloned().unwrap_or_else(empty);
        bodies.iter().skip(1).for_each(|body| apply(&mut root, body, found));
        root
    }

    /// Checks the body and every arm in every tier.
    ///
    /// # Errors
    /// All errors of any of them, sorted by place.
    pub fn check(&self) -> Result<(), Diagnostics> {
        let mut found = Diagnostics::default();
        for tier in std::iter::once(None).chain(self.tiers().into_iter().map(Some)) {
            for arm in std::iter::once(None).chain(self.arms().into_iter().map(Some)) {
                let selection = Selection {
                    arm: arm.map(str::to_owned),
                    tier: tier.map(str::to_owned),
                    overrides: Vec::new(),
                };
                if let Err(more) = self.selected(&selection) {
                    found.extend(more);
                }
            }
        }
        found.into_result(())
    }

    /// SHA-256 over the body and all arms, with tier and overrides applied. A ledger's entry refers
    /// to it.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn hash(&self, tier: Option<&str>, overrides: &[String]) -> Result<String, Diagnostics> {
        Ok(hash_of_arms(&self.resolve_arms(tier, overrides)?))
    }

    /// Whether a run with these overrides used this version of the recipe. Overrides of keys that
    /// `recipe.free` lists are ignored. `hash` is [`Self::hash`] at the time of the run.
    pub fn is_what_ran(&self, tier: Option<&str>, overrides: &[String], hash: &str) -> bool {
        self.are_free(overrides) && self.hash(tier, overrides).is_ok_and(|now| now == hash)
    }

    /// [`Self::is_what_ran`], if the recipe had these claims. A run still belongs to a recipe of
    /// which only claims have changed since, in a margin, a text, or who makes the statement.
    /// Whether its verdicts still hold is a separate question.
    pub fn is_what_ran_with_claims(
        &self,
        tier: Option<&str>,
        overrides: &[String],
        hash: &str,
        claims: &[ClaimSpec],
    ) -> bool {
        if !self.are_free(overrides) {
            return false;
        }
        let Ok(mut arms) = self.resolve_arms(tier, overrides) else { return false };
        arms.values_mut().for_each(|recipe| recipe.claim = claims.to_vec());
        hash_of_arms(&arms) == hash
    }

    /// The body (under the empty name) and every arm, with tier and overrides applied. An override
    /// may be for some arms only, as `precision.masters=false`: body and arms that are an error with
    /// the overrides, and none without them, are left out.
    ///
    /// # Errors
    /// As [`Self::resolve`]; if everything would be left out, the error of the body.
    pub fn resolve_arms(
        &self,
        tier: Option<&str>,
        overrides: &[String],
    ) -> Result<BTreeMap<String, Recipe>, Diagnostics> {
        let (mut all, mut first) = (BTreeMap::new(), None);
        for arm in std::iter::once(None).chain(self.arms().into_iter().map(Some)) {
            let select = |overrides: &[String]| {
                let (arm, tier) = (arm.map(str::to_owned), tier.map(str::to_owned));
                self.selected(&Selection { arm, tier, overrides: overrides.to_vec() })
            };
            match select(overrides) {
                Ok((recipe, _)) => {
                    all.insert(arm.unwrap_or_default().to_owned(), recipe);
                }
                Err(errors) if overrides.is_empty() || select(&[]).is_err() => return Err(errors),
                Err(errors) => first = first.or(Some(errors)),
            }
        }
        match first {
            Some(errors) if all.is_empty() => Err(errors),
            _ => Ok(all),
        }
    }

    /// The keys that an arm changes at the published size. Default values are compared as well.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn differences(&self, arm: &str) -> Result<Vec<Difference>, Diagnostics> {
        let arm = self.resolve(&Selection::arm(arm))?.recipe;
        Ok(self.resolve(&Selection::default())?.recipe.differences(&arm))
    }

    /// The start of the recipe's file.
    pub(crate) fn start(&self) -> Origin {
        Origin::File { file: self.file().into(), line: 1, column: 1 }
    }
}

/// SHA-256 (hexadecimal) over the canonical JSON of a body and its arms: [`Document::hash`],
/// computed from the result of [`Document::resolve_arms`].
pub fn hash_of_arms(arms: &BTreeMap<String, Recipe>) -> String {
    digest(&arms.iter().map(|(arm, recipe)| (arm.clone(), hashed(recipe))).collect())
}

impl Recipe {
    /// Writes the recipe as TOML, with the blocks in their fixed order.
    ///
    /// # Errors
    /// A value has no TOML form, such as a seed beyond 63 bits.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Reads a recipe that [`Self::to_toml`] wrote: without base, arms and tiers.
    ///
    /// # Errors
    /// The parser's message, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The keys in which another recipe differs, with its values as those of the arm.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (body, arm) = (flat(self), flat(other));
        let value = |leaves: &[(String, String)], key: &str| {
            leaves.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
        };
        let mut keys: Vec<&String> = body.iter().map(|(key, _)| key).collect();
        keys.extend(arm.iter().map(|(key, _)| key).filter(|key| value(&body, key).is_none()));
        let mut differences: Vec<Difference> = keys
            .into_iter()
            .map(|key| Difference { key: key.clone(), base: value(&body, key), arm: value(&arm, key) })
            .filter(|difference| difference.base != difference.arm)
            .collect();
        differences.sort_by(|one, other| one.key.cmp(&other.key));
        differences
    }

    /// The recipe with products of another type, to use a trained model. `None` changes nothing.
    pub fn computing(mut self, compute: Option<ComputeType>) -> Self {
        self.precision.compute = compute.unwrap_or(self.precision.compute);
        self
    }

    /// The recipe with its searches changed by overrides `key=value`, as for `--set`. For a trained
    /// run, only searches can change.
    ///
    /// # Errors
    /// All errors of the overrides, and of the changed recipe.
    pub fn searching(&self, overrides: &[String]) -> Result<Self, Diagnostics> {
        if overrides.is_empty() {
            return Ok(self.clone());
        }
        let mut found = Diagnostics::default();
        let file = "recipe.toml";
        let start = Origin::File { file: file.into(), line: 1, column: 1 };
        let wrong = |message: String| Diagnostic::new(start.clone(), message);
        let text = self.to_toml().map_err(|error| wrong(error.to_string()))?;
        let mut root = tree::parse(&text, file)?;
        for (text, keys) in lay_overrides(&mut root, overrides, &mut found) {
            if keys.iter().any(|key| !key.starts_with("decode.")) {
                let origin = Origin::Override { text: text.into() };
                let message = "the run is trained already: --set can only change a search";
                found.push(Diagnostic::new(origin, message).hint("--set decode.NAME.KEY=VALUE"));
            }
        }
        // The other blocks are as they were resolved.
        check_searches(self.recipe.task, &root, &mut found);
        if !found.is_empty() {
            found.sort();
            return Err(found);
        }
        let recipe = Self::from_json(root.to_json())
            .map_err(|error| wrong(format!("the recipe cannot be read: {error}")))?;
        // A resolved recipe has no arms. Its claims name the arms that it was resolved from, or
        // imply FP32.
        let arms = self.claim.iter().flat_map(|claim| [claim.arm.as_deref(), claim.baseline.as_deref()]);
        let arms: Vec<&str> = arms.flatten().chain(["fp32"]).collect();
        validate(&recipe, &root, &arms, &mut found);
        found.into_result(recipe)
    }

    /// SHA-256 (hexadecimal) over the canonical JSON: sorted keys, absent options left out.
    pub fn hash(&self) -> String {
        digest(&hashed(self))
    }
}

fn json_of(recipe: &Recipe) -> Json {
    serde_json::to_value(recipe).expect("a recipe has string keys only")
}

/// The content of a recipe's hash. `recipe.differs` and `recipe.vocabulary_rows` are left out,
/// because they only describe a recipe, as comments do: improving a description does not make it a
/// different recipe.
fn hashed(recipe: &Recipe) -> Json {
    let mut json = json_of(recipe);
    if let Some(about) = json["recipe"].as_object_mut() {
        about.remove("differs");
        about.remove("vocabulary_rows");
    }
    json
}

fn digest(json: &Json) -> String {
    let mut text = String::new();
    canonical(json, &mut text);
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn canonical(json: &Json, out: &mut String) {
    match json {
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().filter(|(_, value)| !value.is_null()).collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Every value that is not a table, as TOML, with its dotted key.
fn flat(recipe: &Recipe) -> Vec<(String, String)> {
    fn walk(json: &Json, key: &str, leaves: &mut Vec<(String, String)>) {
        match json {
            Json::Object(members) => {
                for (name, value) in members {
                    let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                    walk(value, &inner, leaves);
                }
            }
            Json::Null => {}
            other => leaves.push((key.to_owned(), other.to_string())),
        }
    }
    let mut leaves = Vec::new();
    walk(&json_of(recipe), "", &mut leaves);
    leaves
}
