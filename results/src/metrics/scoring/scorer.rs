//! Scoring: hypotheses and references in, or measurements of utterances, and a value out. All
//! scores of records are computed here.

use serde_json::{Map, Value};

use super::bootstrap::interval;
use super::segments::{SegmentStatistics, fingerprint};
use super::signature::Signature;
use super::value::MetricValue;
use crate::metrics::contract::{Resampling, ScoreError, Source, check_streams};
use crate::metrics::registry::Convention;

/// Scores records by one convention.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    convention: Convention,
    references: Option<usize>,
    test_set: Option<String>,
}

/// Options of [`score`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreOptions {
    /// Metric, options and test set.
    pub scorer: Scorer,
    /// Resampling for an interval; `None` for no interval.
    pub resampling: Option<Resampling>,
}

/// Scores records, one per segment, against reference streams, each with one reference per segment.
/// A record is a line of text or of JSON.
///
/// # Errors
/// Streams of different lengths, and records or references that the metric cannot read.
pub fn score(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &ScoreOptions,
) -> Result<MetricValue, ScoreError> {
    let (statistics, detail) = options.scorer.measure(hypotheses, references)?;
    let mut value = MetricValue::from_statistics(&statistics);
    if let Some(parts) = value.detail.as_object_mut() {
        parts.extend(detail);
    }
    if let Some(resampling) = options.resampling {
        value.interval = Some(interval(&statistics, resampling)?);
        value.signature.resampling = Some(resampling);
    }
    Ok(value)
}

/// The value over a set's utterances, each a (sum, count): the sum of sums divided by the sum of
/// counts. If requested, with an interval over resampled utterances.
///
/// # Errors
/// A metric of text, an empty set, a number that is not finite, an invalid name of a test set, or
/// too few utterances to resample.
pub fn score_utterances(
    convention: Convention,
    utterances: &[(f64, f64)],
    test_set: Option<&str>,
    resampling: Option<Resampling>,
) -> Result<MetricValue, ScoreError> {
    convention.check()?;
    let mut signature = Signature::own(convention, None);
    if let Some(name) = test_set {
        signature = signature.on(name)?;
    }
    let statistics = SegmentStatistics::from_ratios(signature, utterances)?;
    let mut value = MetricValue::from_statistics(&statistics);
    if let Some(resampling) = resampling {
        value.interval = Some(interval(&statistics, resampling)?);
        value.signature.resampling = Some(resampling);
    }
    Ok(value)
}

impl Scorer {
    /// A scorer by this convention, against any number of references.
    ///
    /// # Errors
    /// Invalid options, or a metric that is not computed from records.
    pub fn new(convention: Convention) -> Result<Self, ScoreError> {
        convention.check()?;
        if convention.metric().source() == Source::Training {
            return Err(ScoreError::NotFromText { metric: convention.entry().name });
        }
        Ok(Scorer { convention, references: None, test_set: None })
    }

    /// A scorer by a claim's signature. The number of references must then be the stated one.
    pub fn from_signature(text: &str) -> Result<Self, ScoreError> {
        let signature = Signature::parse(text)?;
        let mut scorer = Scorer::new(signature.convention)?;
        scorer.references = signature.references;
        scorer.test_set = signature.test_set;
        Ok(scorer)
    }

    /// Sets the name of the test set.
    pub fn on(mut self, test_set: &str) -> Result<Self, ScoreError> {
        // Signature checks which names can be printed.
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

    fn measure(
        &self,
        records: &[String],
        references: &[Vec<String>],
    ) -> Result<(SegmentStatistics, Map<String, Value>), ScoreError> {
        let metric = self.convention.metric();
        let needed = metric.source().needs_references();
        if needed || !references.is_empty() {
            check_streams(records, references)?;
        } else if records.is_empty() {
            return Err(ScoreError::NoHypotheses);
        }
        if let Some(expected) = self.references.filter(|n| *n != references.len()) {
            return Err(ScoreError::ReferenceCount { expected, found: references.len() });
        }
        let reading = metric.read(records, references)?;
        let mut signature = Signature::own(self.convention, needed.then_some(references.len()));
        signature.test_set = self.test_set.clone();
        let digest = (!references.is_empty()).then(|| fingerprint(references));
        Ok((SegmentStatistics::new(signature, reading.rows, digest), reading.detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MelErrorOptions;

    fn convention(signature: &str) -> Convention {
        Signature::parse(signature).unwrap().convention
    }

    /// All frames have equal weight, whichever utterance they belong to.
    #[test]
    fn an_error_is_a_mean_over_all_that_was_measured() {
        let error = convention("metric:mel-error|mel:2|mean:frame");
        let value = score_utterances(error, &[(5.0, 4.0), (0.0, 16.0)], None, None);
        assert_eq!(value.unwrap().value, 0.25);
    }

    #[test]
    fn utterances_make_a_value_with_its_interval_and_signature() {
        let cepstra = convention("metric:mcd|cep:1-13|dct:ortho|dtw:yes|mel:80|mean:utterance");
        let rows: Vec<(f64, f64)> = (0..50).map(|i| (5.0 + f64::from(i % 3), 1.0)).collect();
        let value = score_utterances(cepstra, &rows, Some("test"), Some(Resampling::default())).unwrap();
        assert!((value.value - 5.98).abs() < 1e-9, "{}", value.value);
        let interval = value.interval.unwrap();
        assert!(interval.lower < 5.98 && 5.98 < interval.upper);
        let text = value.signature.to_string();
        assert!(text.contains("|metric:mcd|eval:test|cep:1-13|dct:ortho|dtw:yes|mel:80|"), "{text}");
        assert_eq!(Signature::parse(&text).unwrap(), value.signature);
        for (convention, rows) in [
            (cepstra, &[][..]),
            (cepstra, &[(f64::NAN, 1.0)]),
            (Convention::MelError(MelErrorOptions { mels: 0 }), &[(1.0, 1.0)]),
            (convention("metric:exact-match|nrefs:1|case:mixed"), &[(1.0, 1.0)]),
        ] {
            let error = score_utterances(convention, rows, None, None).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
        assert!(score_utterances(cepstra, &rows, Some("a|b"), None).is_err());
        assert!(score_utterances(cepstra, &rows[..1], None, Some(Resampling::default())).is_err());
    }

    #[test]
    fn measured_lines_are_scored_as_the_sums_that_they_hold() {
        let line =
            |sum: f64| format!(r#"{{"measures":{{"metric:mel-error|mel:80|mean:frame":[{sum},800]}}}}"#);
        let said = vec!["one".to_owned(), "two".to_owned()];
        let of = |scorer| {
            let options = ScoreOptions { scorer, resampling: None };
            score(&[line(8.0), line(24.0)], std::slice::from_ref(&said), &options).unwrap()
        };
        let value = of(Scorer::new(convention("metric:mel-error|mel:80|mean:frame")).unwrap());
        assert_eq!(value.value, 0.02);
        let again = Scorer::from_signature(&value.signature.to_string()).unwrap();
        assert_eq!(of(again).value, 0.02);
    }
}
