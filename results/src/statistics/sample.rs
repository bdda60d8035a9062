//! Mean and spread of a sample.

/// Arithmetic mean; NaN if there are no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation with n - 1; NaN for fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    // Equal values have a spread of exactly 0. Their computed mean may differ from them in the last
    // bit.
    if values.iter().all(|v| *v == values[0]) {
        return 0.0;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The middle of the sorted values, or the mean of the two in the middle; NaN if there are no
/// values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => mean(&sorted[middle - 1..=middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((standard_deviation(&[1.0, 2.0, 6.0]) - 7.0f64.sqrt()).abs() < 1e-15);
        assert_eq!(standard_deviation(&[0.1, 0.1, 0.1]), 0.0);
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 3.0, 2.0])), (2.0, 2.5));
        assert!(median(&[]).is_nan());
        assert!(standard_deviation(&[1.0]).is_nan() && mean(&[]).is_nan());
    }
}
