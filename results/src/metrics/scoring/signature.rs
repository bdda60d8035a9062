//! Signatures: everything that must be equal before two scores may be compared, as one line of
//! text.
//!
//! The form is sacreBLEU's (`nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`), with
//! additional parts: `eval:` (test set), `metric:` (metrics that sacreBLEU does not have), and the
//! parts of each metric's options, which are defined in the metric's file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::metrics::contract::{EXAMPLE, Entry, Parts, Resampling, SignatureError, join, malformed};
use crate::metrics::registry::Convention;

/// A convention, the number of references, the test set, and the implementation that computed the
/// score. `==` compares all of these; [`Signature::comparable`] ignores version and resampling.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Metric and options.
    pub convention: Convention,
    /// Number of reference streams; `None` for metrics without references.
    pub references: Option<usize>,
    /// Name of the evaluation set, if known.
    pub test_set: Option<String>,
    /// Resampling of the interval.
    pub resampling: Option<Resampling>,
    /// Implementation and version, if stated.
    pub version: Option<String>,
}

/// Version of this implementation, after the sacreBLEU release that it reproduces.
pub const VERSION: &str = concat!("2.6.0+zoo.", env!("CARGO_PKG_VERSION"));
/// Version for metrics that sacreBLEU does not have.
pub const OWN_VERSION: &str = concat!("zoo.", env!("CARGO_PKG_VERSION"));

impl Signature {
    /// The signature of a score that this program computes.
    pub fn own(convention: Convention, references: Option<usize>) -> Self {
        let version =
            Some(if convention.metric().is_sacrebleu() { VERSION } else { OWN_VERSION }.to_string());
        Signature { convention, references, test_set: None, resampling: None, version }
    }

    /// The same signature with a named test set. The name must be printable in a signature: not
    /// empty, no `|`, no `:`.
    pub fn on(mut self, test_set: &str) -> Result<Self, SignatureError> {
        if test_set.is_empty() || test_set.contains(['|', ':']) || test_set.chars().any(char::is_control) {
            return Err(malformed(
                &self.to_string(),
                format!("`{test_set}` cannot be the name of a test set"),
                "a name has no `|`, no `:` and is not empty",
            ));
        }
        self.test_set = Some(test_set.to_string());
        Ok(self)
    }

    /// Checks that the two scores may be compared. Metric, options, number of references and test
    /// set must be equal. A test set that only one of them names is a difference. Version and
    /// resampling are ignored.
    pub fn comparable(&self, other: &Signature) -> Result<(), SignatureError> {
        let (left, right) = (self.measured(), other.measured());
        if left == right {
            return Ok(());
        }
        let keys: Vec<&str> = left.iter().chain(&right).map(|(k, _)| *k).collect();
        let value = |parts: &[(&'static str, String)], key: &str| {
            parts.iter().find(|(k, _)| *k == key).map_or(format!("no {key}"), |(k, v)| format!("{k}:{v}"))
        };
        let mut differences: Vec<String> = Vec::new();
        for key in keys {
            let (l, r) = (value(&left, key), value(&right, key));
            let text = format!("{l} against {r}");
            if l != r && !differences.contains(&text) {
                differences.push(text);
            }
        }
        Err(SignatureError::Unlike { left: self.to_string(), right: other.to_string(), differences })
    }

    /// The parts that decide comparability, in canonical order.
    fn measured(&self) -> Vec<(&'static str, String)> {
        let metric = self.convention.metric();
        let mut parts: Vec<(&'static str, String)> = Vec::new();
        if metric.entry().is_named() {
            parts.push(("metric", metric.entry().name.to_string()));
        }
        parts.extend(self.references.map(|n| ("nrefs", n.to_string())));
        parts.extend(self.test_set.as_ref().map(|t| ("eval", t.clone())));
        parts.extend(metric.parts());
        parts
    }

    /// Parses a signature: this program's, sacreBLEU's long form, or the `BLEU+case.mixed+…` form
    /// of its first versions. Every option must be stated; there are no defaults.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let text = text.trim();
        let fail = |problem: String, hint: &str| Err(malformed(text, problem, hint));
        let mut parts: BTreeMap<String, String> = BTreeMap::new();
        let first_form = text.starts_with("BLEU+");
        let pieces: Vec<&str> =
            if first_form { text.split('+').skip(1).collect() } else { text.split('|').collect() };
        for piece in pieces {
            let Some((key, value)) = piece.split_once(if first_form { '.' } else { ':' }) else {
                return fail(format!("`{piece}` is not `key:value`"), EXAMPLE);
            };
            let key = if first_form && key == "numrefs" { "nrefs" } else { key };
            if value.is_empty() {
                return fail(format!("`{key}` has no value"), EXAMPLE);
            }
            if parts.insert(key.to_string(), value.to_string()).is_some() {
                return fail(format!("`{key}` appears twice"), "give every part once");
            }
        }
        if first_form {
            // Those versions had no effective order.
            parts.entry("eff".into()).or_insert_with(|| "no".into());
        }
        let mut parts = Parts::new(text, parts);
        let (metric, read) = match parts.optional("metric") {
            Some(name) => {
                let found = Entry::with_signature(&name);
                parts.name("metric", found)?
            }
            None => match Entry::unnamed(&parts) {
                Some(entry) => {
                    let found = Entry::with_signature(entry.name);
                    parts.name("metric", found)?
                }
                None => return parts.fail("it does not name its metric".into(), EXAMPLE),
            },
        };
        let convention = read(&mut parts)?;
        let checked = convention.check();
        parts.name("options", checked)?;
        let references = match convention.metric().source().needs_references() {
            true => Some(parts.number("nrefs", 1)?),
            false => None,
        };
        let test_set = test_set(&mut parts)?;
        let resampling = match parts.has("bs") || parts.has("seed") {
            true => {
                Some(Resampling { samples: parts.number("bs", 2)?, seed: parts.number("seed", 0)? as u64 })
            }
            false => None,
        };
        let version = parts.optional("version");
        if let Some((key, value)) = parts.left_over() {
            return fail(format!("`{key}:{value}` is not part of a {metric} signature"), EXAMPLE);
        }
        let signature = Signature { convention, references, test_set: None, resampling, version };
        match test_set {
            Some(name) => signature.on(&name),
            None => Ok(signature),
        }
    }
}

/// `eval:`, or sacreBLEU's `test:` with its language pair and subset.
fn test_set(parts: &mut Parts<'_>) -> Result<Option<String>, SignatureError> {
    let own = parts.optional("eval");
    let theirs: Vec<String> =
        ["test", "lang", "origlang", "subset"].into_iter().filter_map(|key| parts.optional(key)).collect();
    match (own, theirs.is_empty()) {
        (Some(_), false) => parts.fail("both `eval:` and `test:` name a test set".into(), "keep one of them"),
        (Some(name), true) => Ok(Some(name)),
        (None, false) => Ok(Some(theirs.join("+"))),
        (None, true) => Ok(None),
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.measured();
        if let Some(r) = self.resampling {
            // sacreBLEU puts these parts after the number of references.
            let at = parts.iter().position(|(k, _)| *k == "nrefs").map_or(0, |i| i + 1);
            parts.insert(at, ("bs", r.samples.to_string()));
            parts.insert(at + 1, ("seed", r.seed.to_string()));
        }
        parts.extend(self.version.as_ref().map(|v| ("version", v.clone())));
        f.write_str(&join(&parts))
    }
}

impl std::str::FromStr for Signature {
    type Err = SignatureError;
    fn from_str(text: &str) -> Result<Self, SignatureError> {
        Signature::parse(text)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Signature::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
