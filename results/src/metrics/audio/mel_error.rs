//! Squared error of log-mel spectrograms.

use super::log_mel::LogMel;
use crate::metrics::contract::ScoreError;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sums_over_what_was_predicted() {
        let mel = |values| LogMel::new(values, 2).unwrap();
        let (a, b) = (mel(&[0.0, 1.0, 2.0, 3.0]), mel(&[1.0, 1.0, 0.0, 3.0]));
        assert_eq!(mel_error(a, b).unwrap(), (5.0, 4.0));
        assert_eq!(mel_error(a, a).unwrap(), (0.0, 4.0));
        let short = mel_error(a, mel(&[0.0, 0.0])).unwrap_err().to_string();
        assert!(short.contains("2 frames and 1"), "{short}");
        assert!(mel_error(a, LogMel::new(&[0.0; 4], 4).unwrap()).is_err());
    }
}
