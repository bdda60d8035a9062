//! Signatures: everything that must be equal before two scores may be compared, as one line of text.
//!
//! The form is sacreBLEU's (`nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`) with parts of our
//! own: `eval:` (test set), `impl:` (a BLEU that is not sacreBLEU's), `compounds:` (hyphened words split), `metric:` (metrics
//! that sacreBLEU has not), of error rates `space:` (white space) and `align:` (costs, and which of equally short alignments), and of
//! speech `cep:` (coefficients), `dct:` (their scale), `dtw:` (is time warped?), `mel:` (bands) and `mean:` (what weighs alike).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::bootstrap::Resampling;
use super::convention::{
    BleuOptions, Case, CepstralOptions, ChrfOptions, Compounds, Convention, ErrorRateOptions, ErrorUnit,
    Metric, Smoothing, TerOptions, TokenisedBleu, Tokenizer, Unit, Whitespace,
};
use super::error::ScoreError;

/// What is wrong with a signature.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SignatureError {
    /// Not `key:value` parts, a part twice, a part missing, an unknown key or value.
    #[error("signature `{text}`: {problem}\nhint: {hint}")]
    Malformed {
        /// The signature as given.
        text: String,
        /// What was found.
        problem: String,
        /// What to write.
        hint: String,
    },
    /// Two scores that measure different things.
    #[error("`{left}` and `{right}` cannot be compared: {}\nhint: score both the same way, on the same test set", .differences.join(", "))]
    Unlike {
        /// One.
        left: String,
        /// The other.
        right: String,
        /// `tok:13a against tok:intl`, …
        differences: Vec<String>,
    },
}

/// A convention, the number of references, the test set, and who computed it. `==` compares all of that;
/// [`Signature::comparable`] leaves version and resampling out.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Metric and options.
    pub convention: Convention,
    /// Reference streams; `None` for metrics without references.
    pub references: Option<usize>,
    /// Name of the evaluation set, where one is known.
    pub test_set: Option<String>,
    /// Resampling of the interval.
    pub resampling: Option<Resampling>,
    /// Implementation and version, where stated.
    pub version: Option<String>,
}

/// Version of this implementation, after the sacreBLEU release that it equals.
pub const VERSION: &str = concat!("2.6.0+zoo.", env!("CARGO_PKG_VERSION"));
/// Version of metrics that sacreBLEU has not.
pub const OWN_VERSION: &str = concat!("zoo.", env!("CARGO_PKG_VERSION"));

impl Signature {
    /// The signature of a score that this program computes.
    pub fn own(convention: Convention, references: Option<usize>) -> Self {
        let sacrebleu = matches!(convention, Convention::Bleu(_) | Convention::Chrf(_) | Convention::Ter(_));
        let version = Some(if sacrebleu { VERSION } else { OWN_VERSION }.to_string());
        Signature { convention, references, test_set: None, resampling: None, version }
    }

    /// The same on a named test set. The name must be printable in a signature: no `|`, no `:`, not empty.
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

    /// May the two scores be compared? Metric, options, number of references and test set must be equal; a test
    /// set that only one of them names is a difference. Version and resampling do not matter.
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
        let mut parts: Vec<(&'static str, String)> = Vec::new();
        let own_metric = !matches!(self.convention.metric(), Metric::Bleu | Metric::Chrf | Metric::Ter);
        if own_metric {
            parts.push(("metric", self.convention.metric().name().to_string()));
        }
        parts.extend(self.references.map(|n| ("nrefs", n.to_string())));
        parts.extend(self.test_set.as_ref().map(|t| ("eval", t.clone())));
        let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
        let case = |c: &Case| ("case", if *c == Case::Lower { "lc" } else { "mixed" }.to_string());
        match &self.convention {
            Convention::Bleu(o) => {
                parts.push(case(&o.case));
                parts.push(("eff", yes(o.effective_order)));
                parts.push(("tok", o.tokenizer.name().to_string()));
                parts.push(("smooth", smoothing_text(o.smoothing)));
            }
            Convention::TokenisedBleu(whose, c, compounds) => {
                parts.push(case(c));
                parts.push(("eff", yes(false)));
                parts.push(("tok", Tokenizer::None.name().to_string()));
                parts.push(("smooth", smoothing_text(Smoothing::None)));
                parts.push(("impl", whose.name().to_string()));
                if *compounds == Compounds::Split {
                    parts.push(("compounds", "split".to_string()));
                }
            }
            Convention::Chrf(o) => {
                parts.push(case(&o.case));
                parts.push(("eff", yes(!o.eps_smoothing)));
                parts.push(("nc", o.char_order.to_string()));
                parts.push(("nw", o.word_order.to_string()));
                parts.push(("space", yes(o.whitespace)));
            }
            Convention::Ter(o) => {
                parts.push(case(&o.case));
                parts.push(("tok", "tercom".to_string()));
                parts.push(("norm", yes(o.normalized)));
                parts.push(("punct", yes(!o.no_punct)));
                parts.push(("asian", yes(false)));
            }
            Convention::ErrorRate(o) => {
                parts.push(case(&o.case));
                parts.push(("space", o.whitespace.name().to_string()));
                parts.push(("align", "jiwer".to_string()));
            }
            Convention::ExactMatch(c) => parts.push(case(c)),
            Convention::Accuracy(u) | Convention::Perplexity(u) => parts.push(("unit", u.name().to_string())),
            Convention::Loss(u, smoothing) => {
                parts.push(("unit", u.name().to_string()));
                parts.push(("label-smoothing", smoothing.to_string()));
            }
            Convention::MelCepstral(o) => {
                parts.push(("cep", format!("1-{}", o.coefficients)));
                parts.push(("dct", "ortho".to_string()));
                parts.push(("dtw", yes(o.warped)));
                parts.push(("mel", o.mels.to_string()));
                parts.push(("mean", "utterance".to_string()));
            }
            Convention::MelError { mels } => {
                parts.push(("mel", mels.to_string()));
                parts.push(("mean", "frame".to_string()));
            }
        }
        parts
    }

    /// Reads a signature: this program's, sacreBLEU's long form, or the `BLEU+case.mixed+…` form of its first
    /// versions. Every option must be stated, nothing is assumed.
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
                return fail(format!("`{key}` stands twice"), "state every part once");
            }
        }
        if first_form {
            // Those versions had no effective order.
            parts.entry("eff".into()).or_insert_with(|| "no".into());
        }
        let mut reader = Reader { text, parts };
        let metric = reader.metric()?;
        let convention = reader.convention(metric)?;
        let references = match convention.is_from_text() {
            true => Some(reader.number("nrefs", 1)?),
            false => None,
        };
        let test_set = reader.test_set()?;
        let resampling = match reader.parts.contains_key("bs") || reader.parts.contains_key("seed") {
            true => {
                Some(Resampling { samples: reader.number("bs", 2)?, seed: reader.number("seed", 0)? as u64 })
            }
            false => None,
        };
        let version = reader.parts.remove("version");
        if let Some((key, value)) = reader.parts.into_iter().next() {
            return fail(format!("`{key}:{value}` is no part of a {metric} signature"), EXAMPLE);
        }
        let signature = Signature { convention, references, test_set: None, resampling, version };
        match test_set {
            Some(name) => signature.on(&name),
            None => Ok(signature),
        }
    }
}

const EXAMPLE: &str = "a signature looks like `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp`";

fn malformed(text: &str, problem: String, hint: &str) -> SignatureError {
    SignatureError::Malformed { text: text.to_string(), problem, hint: hint.to_string() }
}

fn smoothing_text(smoothing: Smoothing) -> String {
    match smoothing {
        Smoothing::None | Smoothing::Exp => smoothing.name().to_string(),
        Smoothing::Floor(v) | Smoothing::AddK(v) => format!("{}[{v:.2}]", smoothing.name()),
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.measured();
        if let Some(r) = self.resampling {
            // Where sacreBLEU has them: after the number of references.
            let at = parts.iter().position(|(k, _)| *k == "nrefs").map_or(0, |i| i + 1);
            parts.insert(at, ("bs", r.samples.to_string()));
            parts.insert(at + 1, ("seed", r.seed.to_string()));
        }
        parts.extend(self.version.as_ref().map(|v| ("version", v.clone())));
        for (i, (key, value)) in parts.iter().enumerate() {
            write!(f, "{}{key}:{value}", if i > 0 { "|" } else { "" })?;
        }
        Ok(())
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

/// Takes the parts of a signature one by one; what is left over at the end is unknown.
struct Reader<'a> {
    text: &'a str,
    parts: BTreeMap<String, String>,
}

impl Reader<'_> {
    fn fail<T>(&self, problem: String, hint: &str) -> Result<T, SignatureError> {
        Err(malformed(self.text, problem, hint))
    }

    fn take(&mut self, key: &str) -> Result<String, SignatureError> {
        match self.parts.remove(key) {
            Some(value) => Ok(value),
            None => self.fail(format!("`{key}:` is missing"), "state every option; none is assumed"),
        }
    }

    fn number(&mut self, key: &str, least: usize) -> Result<usize, SignatureError> {
        let value = self.take(key)?;
        match value.parse::<usize>() {
            Ok(n) if n >= least && value == n.to_string() => Ok(n),
            _ => self.fail(format!("`{key}:{value}` is not a whole number from {least}"), EXAMPLE),
        }
    }

    fn yes(&mut self, key: &str) -> Result<bool, SignatureError> {
        match self.take(key)?.as_str() {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => self.fail(format!("`{key}:{other}` is neither yes nor no"), EXAMPLE),
        }
    }

    fn case(&mut self) -> Result<Case, SignatureError> {
        match self.take("case")?.as_str() {
            "mixed" => Ok(Case::Mixed),
            "lc" => Ok(Case::Lower),
            other => self.fail(format!("`case:{other}`"), "case is `mixed` or `lc`"),
        }
    }

    /// A word of an enumeration, its error turned into one about this signature.
    fn name<T>(&self, key: &str, result: Result<T, ScoreError>) -> Result<T, SignatureError> {
        result.or_else(|e| {
            let text = e.to_string();
            let (problem, hint) = text.split_once("\nhint: ").unwrap_or((&text, EXAMPLE));
            self.fail(format!("`{key}:` {problem}"), hint)
        })
    }

    fn unit(&mut self) -> Result<Unit, SignatureError> {
        let name = self.take("unit")?;
        match [Unit::Token, Unit::Word, Unit::Sentence].into_iter().find(|u| u.name() == name) {
            Some(unit) => Ok(unit),
            None => self.fail(format!("`unit:{name}`"), "a unit is `token`, `word` or `sentence`"),
        }
    }

    fn metric(&mut self) -> Result<Metric, SignatureError> {
        if let Some(name) = self.parts.remove("metric") {
            return self.name("metric", Metric::parse(&name));
        }
        let has = |key: &str| self.parts.contains_key(key);
        if has("nc") || has("nw") {
            Ok(Metric::Chrf)
        } else if self.parts.get("tok").is_some_and(|t| t == "tercom") {
            Ok(Metric::Ter)
        } else if has("tok") || has("smooth") {
            Ok(Metric::Bleu)
        } else {
            self.fail("it does not tell which metric it is of".into(), EXAMPLE)
        }
    }

    fn convention(&mut self, metric: Metric) -> Result<Convention, SignatureError> {
        let convention = match metric {
            Metric::Bleu => self.bleu()?,
            Metric::Chrf => Convention::Chrf(ChrfOptions {
                case: self.case()?,
                eps_smoothing: !self.yes("eff")?,
                char_order: self.number("nc", 1)?,
                word_order: self.number("nw", 0)?,
                whitespace: self.yes("space")?,
            }),
            Metric::Ter => {
                let case = self.case()?;
                self.take("tok")?;
                let (normalized, no_punct) = (self.yes("norm")?, !self.yes("punct")?);
                if self.yes("asian")? {
                    let hint = "segment such text first and score with asian:no";
                    return self.fail("Tercom's Asian normalisation is not built in".into(), hint);
                }
                Convention::Ter(TerOptions { case, normalized, no_punct })
            }
            Metric::Wer => self.error_rate(ErrorUnit::Word)?,
            Metric::Cer => self.error_rate(ErrorUnit::Character)?,
            Metric::ExactMatch => Convention::ExactMatch(self.case()?),
            Metric::Accuracy => Convention::Accuracy(self.unit()?),
            Metric::Perplexity => Convention::Perplexity(self.unit()?),
            Metric::Mcd => self.cepstra()?,
            Metric::MelError => {
                let mels = self.number("mel", 1)?;
                self.only("mean", "frame")?;
                Convention::MelError { mels }
            }
            Metric::Loss => {
                let (unit, smoothing) = (self.unit()?, self.take("label-smoothing")?);
                match smoothing.parse::<f64>() {
                    Ok(s) => Convention::Loss(unit, s),
                    Err(_) => {
                        return self.fail(format!("`label-smoothing:{smoothing}` is no number"), EXAMPLE);
                    }
                }
            }
        };
        self.name("options", convention.check())?;
        Ok(convention)
    }

    /// A part that can have one value only.
    fn only(&mut self, key: &str, value: &str) -> Result<(), SignatureError> {
        let found = self.take(key)?;
        if found == value {
            return Ok(());
        }
        self.fail(format!("`{key}:{found}` is not built in"), "docs/synthesis.md has what is measured")
    }

    fn cepstra(&mut self) -> Result<Convention, SignatureError> {
        let cep = self.take("cep")?;
        let last = cep.strip_prefix("1-").and_then(|last| Some((last, last.parse::<usize>().ok()?)));
        let Some((_, coefficients)) = last.filter(|(text, last)| *text == last.to_string()) else {
            return self.fail(format!("`cep:{cep}`"), "coefficients are `1-13`, from 1 to the last");
        };
        self.only("dct", "ortho")?;
        let (warped, mels) = (self.yes("dtw")?, self.number("mel", 2)?);
        self.only("mean", "utterance")?;
        Ok(Convention::MelCepstral(CepstralOptions { coefficients, warped, mels }))
    }

    fn error_rate(&mut self, unit: ErrorUnit) -> Result<Convention, SignatureError> {
        let (case, space) = (self.case()?, self.take("space")?);
        let whitespace = self.name("space", Whitespace::parse(&space))?;
        let align = self.take("align")?;
        if align != "jiwer" {
            let hint = "`align:jiwer`: edits cost 1 each, and of equally short alignments jiwer's is counted";
            return self.fail(format!("`align:{align}` is not built in"), hint);
        }
        Ok(Convention::ErrorRate(ErrorRateOptions { unit, case, whitespace }))
    }

    fn bleu(&mut self) -> Result<Convention, SignatureError> {
        let (case, effective_order) = (self.case()?, self.yes("eff")?);
        let tok = self.take("tok")?;
        let tokenizer = self.name("tok", Tokenizer::parse(&tok))?;
        let smooth = self.take("smooth")?;
        let (name, value) = match smooth.strip_suffix(']').and_then(|s| s.split_once('[')) {
            Some((name, value)) => match value.parse::<f64>() {
                Ok(v) => (name.to_string(), Some(v)),
                Err(_) => return self.fail(format!("`smooth:{smooth}`: `{value}` is no number"), EXAMPLE),
            },
            None => (smooth.clone(), None),
        };
        let smoothing = self.name("smooth", Smoothing::new(&name, value))?;
        if value.is_none() && matches!(smoothing, Smoothing::Floor(_) | Smoothing::AddK(_)) {
            return self
                .fail(format!("`smooth:{smooth}` has no value"), "write `floor[0.10]` or `add-k[1.00]`");
        }
        let compounds = match self.parts.remove("compounds").as_deref() {
            None => Compounds::Whole,
            Some("split") if self.parts.contains_key("impl") => Compounds::Split,
            Some("split") => {
                let hint = "compounds are split in tokenised text: state whose BLEU it is, impl:fairseq or impl:multi-bleu";
                return self.fail("`compounds:split` without `impl`".into(), hint);
            }
            Some(other) => {
                let problem = format!("`compounds:{other}`");
                return self.fail(problem, "compounds is `split` or not there");
            }
        };
        let Some(whose) = self.parts.remove("impl") else {
            return Ok(Convention::Bleu(BleuOptions { case, effective_order, tokenizer, smoothing }));
        };
        let Some(whose) =
            [TokenisedBleu::MultiBleu, TokenisedBleu::Fairseq].into_iter().find(|w| w.name() == whose)
        else {
            return self
                .fail(format!("`impl:{whose}`"), "impl is `multi-bleu` or `fairseq`; sacreBLEU's has none");
        };
        if effective_order || tokenizer != Tokenizer::None || smoothing != Smoothing::None {
            let problem = format!("{} is eff:no, tok:none and smooth:none", whose.name());
            return self.fail(problem, "leave `impl:` out for sacreBLEU's");
        }
        Ok(Convention::TokenisedBleu(whose, case, compounds))
    }

    /// `eval:`, or sacreBLEU's own `test:` with its language pair and subset.
    fn test_set(&mut self) -> Result<Option<String>, SignatureError> {
        let own = self.parts.remove("eval");
        let theirs: Vec<String> =
            ["test", "lang", "origlang", "subset"].into_iter().filter_map(|k| self.parts.remove(k)).collect();
        match (own, theirs.is_empty()) {
            (Some(_), false) => {
                self.fail("both `eval:` and `test:` name a test set".into(), "keep one of them")
            }
            (Some(name), true) => Ok(Some(name)),
            (None, false) => Ok(Some(theirs.join("+"))),
            (None, true) => Ok(None),
        }
    }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
