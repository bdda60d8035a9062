//! The mean of n runs, estimated from the best of them.

use super::distributions::normal_cdf;

/// Mean and spread of the largest of n independent standard normal draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaximumOfNormals {
    /// E[max], in standard deviations of one draw.
    pub mean: f64,
    /// Standard deviation of the maximum, in standard deviations of one draw.
    pub deviation: f64,
}

/// Moments of the maximum of `n` standard normal draws (`n` = 0 is read as 1).
///
/// Integrates x and x² over the density n φ(x) Φ(x)^(n-1) by Simpson's rule on [-9, 9 + ...]; exact
/// to about 1e-9.
#[must_use]
pub fn maximum_of_normals(n: u32) -> MaximumOfNormals {
    if n <= 1 {
        return MaximumOfNormals { mean: 0.0, deviation: 1.0 };
    }
    // For all practical purposes the maximum of n draws lies below sqrt(2 ln n) + 9.
    let (low, high) = (-9.0, 9.0 + (2.0 * f64::from(n).ln()).sqrt());
    let steps = 4000;
    let width = (high - low) / f64::from(steps);
    let (mut first, mut second) = (0.0, 0.0);
    for i in 0..=steps {
        let x = low + f64::from(i) * width;
        let weight = if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
        let phi = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let density = f64::from(n) * phi * normal_cdf(x).powf(f64::from(n - 1));
        first += weight * x * density;
        second += weight * x * x * density;
    }
    let (first, second) = (first * width / 3.0, second * width / 3.0);
    MaximumOfNormals { mean: first, deviation: (second - first * first).max(0.0).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_closed_forms_and_tables() {
        // n = 2: 1/sqrt(pi); n = 3: 3/(2 sqrt(pi)); variance for n = 2: 1 - 1/pi.
        let pi = std::f64::consts::PI;
        assert!((maximum_of_normals(2).mean - 1.0 / pi.sqrt()).abs() < 1e-9);
        assert!((maximum_of_normals(3).mean - 1.5 / pi.sqrt()).abs() < 1e-9);
        assert!((maximum_of_normals(2).deviation - (1.0 - 1.0 / pi).sqrt()).abs() < 1e-9);
        for (n, mean) in [(5, 1.162_964), (8, 1.423_600), (32, 2.069_669), (1000, 3.241_436)] {
            assert!(
                (maximum_of_normals(n).mean - mean).abs() < 1e-5,
                "n = {n}: {}",
                maximum_of_normals(n).mean
            );
        }
        assert_eq!(maximum_of_normals(1), MaximumOfNormals { mean: 0.0, deviation: 1.0 });
    }
}
