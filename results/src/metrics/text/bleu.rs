//! BLEU, as sacreBLEU 2.6.0 computes it.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ngrams::Lexicon;
use super::options::{BleuOptions, Smoothing, Tokenizer};
use super::tokenise::tokenise;
use crate::metrics::contract::{
    Arithmetic, Drawn, EXAMPLE, Entry, Limit, Metric, Parts, Reading, Rows, ScoreError, SignatureError,
    Source, check_lines, check_streams, column_sums, yes,
};
use zoo_recipes::Direction;

/// BLEU: sacreBLEU's, and on tokenised text those of multi-bleu and fairseq.
pub static BLEU: Entry = Entry::percent("bleu", "points, 0 to 100", Direction::Higher);

/// Highest n-gram order.
pub const ORDER: usize = 4;
/// Columns of a segment's statistics: hypothesis length, closest reference length, then matches and
/// totals by order.
pub(crate) const WIDTH: usize = 2 + 2 * ORDER;

/// Maximum characters of a line, whose n-grams of words are counted.
const MOST_CHARACTERS: usize = 500_000;

/// A BLEU score and its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BleuDetail {
    /// The score, 0 to 100.
    pub score: f64,
    /// Matched n-grams by order, before smoothing.
    pub correct: [u64; ORDER],
    /// n-grams of the hypotheses by order, before smoothing.
    pub total: [u64; ORDER],
    /// Precisions in percent, by order, after smoothing.
    pub precisions: [f64; ORDER],
    /// Brevity penalty: 1 unless the hypotheses are shorter than the references.
    pub brevity_penalty: f64,
    /// Number of tokens of the hypotheses.
    pub hypothesis_length: u64,
    /// Number of tokens of the references; for each segment, that of the reference closest in
    /// length.
    pub reference_length: u64,
}

impl BleuDetail {
    /// Hypothesis length divided by reference length; 0 if the references have no tokens.
    pub fn ratio(&self) -> f64 {
        if self.reference_length == 0 {
            return 0.0;
        }
        self.hypothesis_length as f64 / self.reference_length as f64
    }

    /// `58.9/32.3/20.1/13.0 (BP = 1.000 ratio = 1.020 hyp_len = 62496 ref_len = 61287)`, in
    /// sacreBLEU's format.
    pub fn verbose(&self) -> String {
        let (bp, ratio) = (self.brevity_penalty, self.ratio());
        let (h, r) = (self.hypothesis_length, self.reference_length);
        format!("{} (BP = {bp:.3} ratio = {ratio:.3} hyp_len = {h} ref_len = {r})", self.precision_text())
    }

    /// `BLEU = 41.02, 71.0/47.5/34.3/24.5 (BP=0.999, ratio=0.999, hyp_len=12096, ref_len=12103)`,
    /// in multi-bleu's format.
    pub fn multi_bleu_line(&self) -> String {
        let (score, bp, ratio) = (self.score, self.brevity_penalty, self.ratio());
        let (h, r) = (self.hypothesis_length, self.reference_length);
        let precisions = self.precision_text();
        format!("BLEU = {score:.2}, {precisions} (BP={bp:.3}, ratio={ratio:.3}, hyp_len={h}, ref_len={r})")
    }

    /// The score as parts for `MetricValue::detail`, with the `line` in the format of the
    /// established tools.
    pub(crate) fn parts(&self) -> Map<String, Value> {
        let mut parts = match serde_json::to_value(self) {
            Ok(Value::Object(parts)) => parts,
            _ => Map::new(),
        };
        parts.remove("score");
        parts.insert("line".into(), self.multi_bleu_line().into());
        parts
    }

    fn precision_text(&self) -> String {
        self.precisions.map(|p| format!("{p:.1}")).join("/")
    }

    /// The counts from summed segment statistics, with the score computed from them.
    pub(crate) fn new(sums: &[f64], score: f64, precisions: [f64; ORDER], brevity_penalty: f64) -> Self {
        let count = |i: usize| sums.get(i).map_or(0, |s| *s as u64);
        BleuDetail {
            score,
            correct: std::array::from_fn(|n| count(2 + n)),
            total: std::array::from_fn(|n| count(2 + ORDER + n)),
            precisions,
            brevity_penalty,
            hypothesis_length: count(0),
            reference_length: count(1),
        }
    }
}

/// Checks every line against the limit of all kinds of BLEU.
///
/// # Errors
/// [`ScoreError::LineTooLong`] names the first line that exceeds it.
pub(super) fn check_length(hypotheses: &[String], references: &[Vec<String>]) -> Result<(), ScoreError> {
    let count = |line: &str| line.chars().count();
    let limit = Limit { most: MOST_CHARACTERS, unit: "characters", count: &count };
    check_lines(&BLEU, limit, hypotheses, references)
}

/// Length of the reference that is closest to `length`; of two equally close ones, the shorter.
pub(crate) fn closest(length: u64, references: impl Iterator<Item = u64>) -> u64 {
    references.min_by_key(|r| (r.abs_diff(length), *r)).unwrap_or(0)
}

/// One row of statistics, from n-gram counts over tokens separated by white space.
pub(crate) fn row<'a>(hypothesis: &[Option<&'a str>], references: &[Vec<Option<&'a str>>]) -> [f64; WIDTH] {
    let mut lexicon = Lexicon::new(ORDER);
    let h = lexicon.grams(hypothesis.iter().copied());
    let r: Vec<_> = references.iter().map(|tokens| lexicon.grams(tokens.iter().copied())).collect();
    let mut row = [0.0; WIDTH];
    row[0] = h.total(0) as f64;
    row[1] = closest(h.total(0), r.iter().map(|g| g.total(0))) as f64;
    for n in 0..ORDER {
        row[2 + n] = lexicon.clipped(&h, &r, n) as f64;
        row[2 + ORDER + n] = h.total(n) as f64;
    }
    row
}

/// Score, precisions in percent and brevity penalty from summed statistics.
pub(crate) fn from_sums(
    sums: &[f64],
    options: &BleuOptions,
    arithmetic: Arithmetic,
) -> (f64, [f64; ORDER], f64) {
    let (hypothesis, reference) = (sums[0].trunc(), sums[1].trunc());
    let brevity_penalty = brevity(hypothesis, reference);
    let mut precisions = [0.0; ORDER];
    let (correct, total) = (&sums[2..2 + ORDER], &sums[2 + ORDER..]);
    if correct.iter().all(|c| *c == 0.0) {
        return (0.0, precisions, brevity_penalty);
    }
    let r = |x: f64| arithmetic.round(x);
    let (mut halving, mut order) = (1.0, ORDER);
    for n in 0..ORDER {
        let k = match options.smoothing {
            Smoothing::AddK(k) if n > 0 => k,
            _ => 0.0,
        };
        let (c, t) = (r(correct[n] + r(k)), r(total[n] + r(k)));
        if t == 0.0 {
            break;
        }
        if options.effective_order {
            order = n + 1;
        }
        precisions[n] = match (c == 0.0, options.smoothing) {
            (false, _) => r(r(100.0 * c) / t),
            (true, Smoothing::Exp) => {
                halving *= 2.0;
                r(100.0 / r(halving * t))
            }
            (true, Smoothing::Floor(value)) => r(r(100.0 * value) / t),
            (true, _) => 0.0,
        };
    }
    let logarithms: f64 = precisions[..order].iter().map(|p| logarithm(*p)).sum();
    (brevity_penalty * (logarithms / order as f64).exp(), precisions, brevity_penalty)
}

/// Brevity penalty: 1, or exp(1 - reference / hypothesis) for shorter hypotheses, or 0 without any
/// hypothesis token.
pub(crate) fn brevity(hypothesis: f64, reference: f64) -> f64 {
    if hypothesis >= reference {
        1.0
    } else if hypothesis > 0.0 {
        (1.0 - reference / hypothesis).exp()
    } else {
        0.0
    }
}

/// Natural logarithm. For 0, a number low enough to make the score 0.
pub(crate) fn logarithm(x: f64) -> f64 {
    if x == 0.0 { -9_999_999_999.0 } else { x.ln() }
}

/// Rows of statistics by segment, and the corpus score, computed both by the library and from the
/// rows.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &BleuOptions,
) -> Result<(Vec<f64>, BleuDetail), ScoreError> {
    check_streams(hypotheses, references)?;
    options.smoothing.check()?;
    let tokens = |lines: &[String]| -> Vec<String> {
        lines.par_iter().map(|l| tokenise(l, options.case, options.tokenizer)).collect()
    };
    let hypotheses = tokens(hypotheses);
    let references: Vec<Vec<String>> = references.iter().map(|stream| tokens(stream)).collect();
    fn split(line: &str) -> Vec<Option<&str>> {
        line.split_whitespace().map(Some).collect()
    }
    let rows: Vec<f64> = (0..hypotheses.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let segment: Vec<_> = references.iter().map(|stream| split(&stream[i])).collect();
            row(&split(&hypotheses[i]), &segment)
        })
        .collect();

    let sums = column_sums(&rows, WIDTH);
    let (score, precisions, brevity_penalty) = from_sums(&sums, options, Arithmetic::Double);
    let detail = BleuDetail::new(&sums, score, precisions, brevity_penalty);
    against_library(&hypotheses, &references, options, &detail)?;
    Ok((rows, detail))
}

/// The library must agree on the same tokens. It truncates a fractional k, so with such a k the
/// check is skipped.
fn against_library(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &BleuOptions,
    own: &BleuDetail,
) -> Result<(), ScoreError> {
    let value = match options.smoothing {
        Smoothing::AddK(k) if k.fract() != 0.0 => return Ok(()),
        Smoothing::AddK(v) | Smoothing::Floor(v) => Some(v),
        Smoothing::None | Smoothing::Exp => None,
    };
    let library = sacrebleu_rs::Bleu {
        smooth_method: options.smoothing.name().to_string(),
        smooth_value: value,
        effective_order: options.effective_order,
        tokenize: "none".to_string(),
        ..sacrebleu_rs::Bleu::default()
    }
    .corpus_score(hypotheses, references);
    let lengths = (library.sys_len as u64, library.ref_len as u64);
    let agrees = (library.score - own.score).abs() <= 1e-9
        && lengths == (own.hypothesis_length, own.reference_length)
        && library.precisions.iter().zip(&own.precisions).all(|(l, o)| (l - o).abs() <= 1e-9);
    if agrees {
        return Ok(());
    }
    Err(ScoreError::Disagreement {
        metric: "BLEU",
        library: format!("{} {}", library.score, library.verbose()),
        own: format!("{} {}", own.score, own.verbose()),
    })
}

impl Metric for BleuOptions {
    fn entry(&self) -> &'static Entry {
        &BLEU
    }

    fn check(&self) -> Result<(), ScoreError> {
        self.smoothing.check()
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![
            self.case.part(),
            ("eff", yes(self.effective_order)),
            ("tok", self.tokenizer.name().to_string()),
            ("smooth", self.smoothing.to_string()),
        ]
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn is_sacrebleu(&self) -> bool {
        true
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        check_length(records, references)?;
        let (rows, detail) = corpus(records, references, self)?;
        Ok(Reading { rows: Rows::even(WIDTH, rows), detail: detail.parts() })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        from_sums(sums, self, arithmetic).0
    }
}

/// Reads the options that any kind of BLEU states.
pub(super) fn read(parts: &mut Parts<'_>) -> Result<BleuOptions, SignatureError> {
    let (case, effective_order) = (parts.case()?, parts.yes("eff")?);
    let tok = parts.take("tok")?;
    let tokenizer = parts.name("tok", Tokenizer::parse(&tok))?;
    let smooth = parts.take("smooth")?;
    let (name, value) = match smooth.strip_suffix(']').and_then(|s| s.split_once('[')) {
        Some((name, value)) => match value.parse::<f64>() {
            Ok(v) => (name.to_string(), Some(v)),
            Err(_) => return parts.fail(format!("`smooth:{smooth}`: `{value}` is not a number"), EXAMPLE),
        },
        None => (smooth.clone(), None),
    };
    let smoothing = parts.name("smooth", Smoothing::new(&name, value))?;
    if value.is_none() && matches!(smoothing, Smoothing::Floor(_) | Smoothing::AddK(_)) {
        return parts.fail(format!("`smooth:{smooth}` has no value"), "write `floor[0.10]` or `add-k[1.00]`");
    }
    Ok(BleuOptions { case, effective_order, tokenizer, smoothing })
}
