//! Metrics on synthesised speech, from arrays: spectrograms compared with those of recordings, and
//! attention alignments.
//!
//! [`mel_cepstral_distortion`] and [`mel_error`] give a (sum, count) for each utterance;
//! [`score_utterances`] computes the value of a set from these. [`AlignmentScore`] needs no
//! recording. `docs/synthesis.md` has the definitions and their sources.

pub mod alignment;
mod line;
pub mod log_mel;
pub mod mel_cepstral;
mod metric;
pub mod options;
pub mod stopping;
mod warping;

pub use line::MeasuredLine;
pub use metric::{MCD, MEL_ERROR, MOS};
pub use options::{CepstralOptions, MelErrorOptions};

use super::bootstrap::{Resampling, interval};
use super::error::ScoreError;
use super::registry::Convention;
use super::segments::SegmentStatistics;
use super::signature::Signature;
use super::value::MetricValue;
use log_mel::LogMel;

/// Sum of squared differences of two spectrograms of equal shape, and their number: (sum, frames x
/// mels). Their quotient is the loss that Tacotron 2 minimises.
///
/// # Errors
/// The numbers of bands or frames differ.
pub fn mel_error(target: LogMel<'_>, predicted: LogMel<'_>) -> Result<(f64, f64), ScoreError> {
    target.same_frames(predicted)?;
    let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    let values = target.values().iter().zip(predicted.values());
    Ok((values.map(square).sum(), target.values().len() as f64))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Signature;

    #[test]
    fn errors_are_means_over_what_was_predicted() {
        let mel = |values| LogMel::new(values, 2).unwrap();
        let (a, b) = (mel(&[0.0, 1.0, 2.0, 3.0]), mel(&[1.0, 1.0, 0.0, 3.0]));
        assert_eq!(mel_error(a, b).unwrap(), (5.0, 4.0));
        assert_eq!(mel_error(a, a).unwrap(), (0.0, 4.0));
        let short = mel_error(a, mel(&[0.0, 0.0])).unwrap_err().to_string();
        assert!(short.contains("2 frames and 1"), "{short}");
        assert!(mel_error(a, LogMel::new(&[0.0; 4], 4).unwrap()).is_err());
        // All frames have equal weight, whichever utterance they belong to.
        let value = score_utterances(
            Convention::MelError(MelErrorOptions { mels: 2 }),
            &[(5.0, 4.0), (0.0, 16.0)],
            None,
            None,
        );
        assert_eq!(value.unwrap().value, 0.25);
    }

    #[test]
    fn utterances_make_a_value_with_its_interval_and_signature() {
        let convention = Convention::MelCepstral(CepstralOptions::default());
        let rows: Vec<(f64, f64)> = (0..50).map(|i| (5.0 + f64::from(i % 3), 1.0)).collect();
        let value = score_utterances(convention, &rows, Some("test"), Some(Resampling::default())).unwrap();
        assert!((value.value - 5.98).abs() < 1e-9, "{}", value.value);
        let interval = value.interval.unwrap();
        assert!(interval.lower < 5.98 && 5.98 < interval.upper);
        let text = value.signature.to_string();
        assert!(text.contains("|metric:mcd|eval:test|cep:1-13|dct:ortho|dtw:yes|mel:80|"), "{text}");
        assert_eq!(Signature::parse(&text).unwrap(), value.signature);
        for (convention, rows) in [
            (convention, &[][..]),
            (convention, &[(f64::NAN, 1.0)]),
            (Convention::MelError(MelErrorOptions { mels: 0 }), &[(1.0, 1.0)]),
            (Convention::ExactMatch(Default::default()), &[(1.0, 1.0)]),
        ] {
            let error = score_utterances(convention, rows, None, None).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
        assert!(score_utterances(convention, &rows, Some("a|b"), None).is_err());
        assert!(score_utterances(convention, &rows[..1], None, Some(Resampling::default())).is_err());
    }
}
