//! From hypotheses and references to a value: the one way in.

use super::audio::MeasuredLine;
use super::bootstrap::{Resampling, interval};
use super::convention::{Case, Convention, Metric};
use super::error::ScoreError;
use super::segments::{SegmentStatistics, fingerprint};
use super::signature::Signature;
use super::text::bleu::BleuDetail;
use super::text::error_rate::EditCounts;
use super::text::{bleu, check_streams, chrf, error_rate, is_space, limits, ter, tokenised_bleu};
use super::value::MetricValue;

/// Scores text by one convention.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    convention: Convention,
    references: Option<usize>,
    test_set: Option<String>,
}

/// What [`score`] is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreOptions {
    /// Metric, options, test set.
    pub scorer: Scorer,
    /// Draw an interval?
    pub resampling: Option<Resampling>,
}

/// What a score was made of, beside its statistics.
enum Detail {
    /// The statistics say it all.
    None,
    /// Of any BLEU.
    Bleu(BleuDetail),
    /// Of an error rate.
    Edits(EditCounts),
}

impl Detail {
    /// As parts of a value, with the `line` that the field's own tools print.
    fn parts(&self, metric: Metric) -> serde_json::Map<String, serde_json::Value> {
        let (parts, line) = match self {
            Detail::None => return serde_json::Map::new(),
            Detail::Bleu(detail) => (serde_json::to_value(detail), detail.multi_bleu_line()),
            Detail::Edits(counts) => {
                (serde_json::to_value(counts), format!("%{} {counts}", metric.name().to_uppercase()))
            }
        };
        let mut parts = match parts {
            Ok(serde_json::Value::Object(parts)) => parts,
            _ => serde_json::Map::new(),
        };
        parts.remove("score");
        parts.insert("line".into(), line.into());
        if let Detail::Edits(counts) = self {
            parts.insert("errors".into(), counts.errors().into());
            parts.insert("reference_length".into(), counts.reference_length().into());
            parts.insert("hypothesis_length".into(), counts.hypothesis_length().into());
        }
        parts
    }
}

/// Scores hypotheses, one a segment, against reference streams, each with one reference a segment.
pub fn score(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &ScoreOptions,
) -> Result<MetricValue, ScoreError> {
    let (statistics, detail) = options.scorer.measure(hypotheses, references)?;
    let mut value = MetricValue::from_statistics(&statistics);
    if let Some(parts) = value.detail.as_object_mut() {
        parts.extend(detail.parts(options.scorer.convention.metric()));
    }
    if let Some(resampling) = options.resampling {
        value.interval = Some(interval(&statistics, resampling)?);
        value.signature.resampling = Some(resampling);
    }
    Ok(value)
}

impl Scorer {
    /// By that convention, against any number of references. Refuses metrics that are made from neither text nor lines of measures.
    pub fn new(convention: Convention) -> Result<Self, ScoreError> {
        convention.check()?;
        if !convention.is_from_text() && !convention.is_from_measures() {
            return Err(ScoreError::NotFromText { metric: convention.metric().name() });
        }
        Ok(Scorer { convention, references: None, test_set: None })
    }

    /// By what a claim states. The number of references then must be the stated one.
    pub fn from_signature(text: &str) -> Result<Self, ScoreError> {
        let signature = Signature::parse(text)?;
        let mut scorer = Scorer::new(signature.convention)?;
        scorer.references = signature.references;
        scorer.test_set = signature.test_set;
        Ok(scorer)
    }

    /// On a named test set.
    pub fn on(mut self, test_set: &str) -> Result<Self, ScoreError> {
        // Signature knows which names it can print.
        self.test_set = Signature::own(self.convention, Some(1)).on(test_set)?.test_set;
        Ok(self)
    }

    /// Metric and options.
    pub fn convention(&self) -> &Convention {
        &self.convention
    }

    /// Statistics of every segment, for intervals and paired comparisons.
    pub fn statistics(
        &self,
        hypotheses: &[String],
        references: &[Vec<String>],
    ) -> Result<SegmentStatistics, ScoreError> {
        self.measure(hypotheses, references).map(|(statistics, _)| statistics)
    }

    /// The parts of a BLEU score; `None` of other metrics.
    pub fn bleu_detail(
        &self,
        hypotheses: &[String],
        references: &[Vec<String>],
    ) -> Result<Option<BleuDetail>, ScoreError> {
        self.measure(hypotheses, references).map(|(_, detail)| match detail {
            Detail::Bleu(detail) => Some(detail),
            _ => None,
        })
    }

    fn measure(
        &self,
        hypotheses: &[String],
        references: &[Vec<String>],
    ) -> Result<(SegmentStatistics, Detail), ScoreError> {
        check_streams(hypotheses, references)?;
        if let Some(expected) = self.references.filter(|n| *n != references.len()) {
            return Err(ScoreError::ReferenceCount { expected, found: references.len() });
        }
        limits::check(&self.convention, hypotheses, references)?;
        let mut detail = Detail::None;
        let (width, rows) = match &self.convention {
            Convention::Bleu(options) => {
                let (rows, parts) = bleu::corpus(hypotheses, references, options)?;
                detail = Detail::Bleu(parts);
                (bleu::WIDTH, rows)
            }
            Convention::TokenisedBleu(whose, case, compounds) => {
                let (rows, parts) =
                    tokenised_bleu::corpus(hypotheses, references, *whose, *case, *compounds)?;
                detail = Detail::Bleu(parts);
                (bleu::WIDTH, rows)
            }
            Convention::Chrf(options) => {
                (chrf::width(options), chrf::corpus(hypotheses, references, options)?.0)
            }
            Convention::Ter(options) => (ter::WIDTH, ter::corpus(hypotheses, references, options)?),
            Convention::ErrorRate(options) => {
                let counts = error_rate::corpus(hypotheses, references, options)?;
                detail = Detail::Edits(counts.iter().copied().sum());
                (error_rate::WIDTH, error_rate::rows(&counts))
            }
            Convention::ExactMatch(case) => (2, exact_matches(hypotheses, references, *case)),
            Convention::MelCepstral(_) | Convention::MelError { .. } => {
                let lines = (1..).zip(hypotheses);
                let rows = lines.map(|(place, line)| MeasuredLine::read(line, self.convention, place));
                let rows = rows.collect::<Result<Vec<_>, _>>()?;
                (2, rows.into_iter().flat_map(|(sum, count)| [sum, count]).collect())
            }
            other => return Err(ScoreError::NotFromText { metric: other.metric().name() }),
        };
        let count = self.convention.is_from_text().then_some(references.len());
        let mut signature = Signature::own(self.convention, count);
        signature.test_set = self.test_set.clone();
        Ok((SegmentStatistics::new(signature, width, rows, Some(fingerprint(references))), detail))
    }
}

/// (1 or 0, 1) by segment: equal to a reference once runs of white space are one space.
fn exact_matches(hypotheses: &[String], references: &[Vec<String>], case: Case) -> Vec<f64> {
    let words = |line: &str| -> Vec<String> {
        let line = if case == Case::Lower { line.to_lowercase() } else { line.to_string() };
        line.split(is_space).filter(|w| !w.is_empty()).map(str::to_string).collect()
    };
    let equal = |(i, h): (usize, &String)| {
        let h = words(h);
        [f64::from(u8::from(references.iter().any(|stream| words(&stream[i]) == h))), 1.0]
    };
    hypotheses.iter().enumerate().flat_map(equal).collect()
}
