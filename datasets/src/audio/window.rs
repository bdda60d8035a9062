//! Window functions.

use std::f64::consts::TAU;

use zoo_recipes::WindowFunction;

/// A window of `length` samples.
///
/// Symmetric windows are those of numpy's `hanning`, `hamming` and `blackman`, and Kaldi's.
/// Periodic windows are SciPy's with `fftbins`.
pub fn window(function: WindowFunction, length: usize) -> Vec<f64> {
    use WindowFunction::{Blackman, Hamming, HammingPeriodic, Hann, HannPeriodic, Povey, Rectangular};
    // A window of one sample is 1 in all of these libraries.
    if length < 2 {
        return vec![1.0; length];
    }
    let period = match function {
        HannPeriodic | HammingPeriodic => length,
        Hann | Hamming | Blackman | Povey | Rectangular => length - 1,
    };
    let value = |at: usize| {
        let phase = TAU * at as f64 / period as f64;
        match function {
            Hann | HannPeriodic => 0.5 - 0.5 * phase.cos(),
            Hamming | HammingPeriodic => 0.54 - 0.46 * phase.cos(),
            Blackman => (0.42 - 0.5 * phase.cos() + 0.08 * (2.0 * phase).cos()).max(0.0),
            Povey => (0.5 - 0.5 * phase.cos()).powf(0.85),
            Rectangular => 1.0,
        }
    };
    (0..length).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetric_windows_are_symmetric_and_periodic_ones_begin_the_next() {
        for function in
            [WindowFunction::Hann, WindowFunction::Hamming, WindowFunction::Blackman, WindowFunction::Povey]
        {
            let made = window(function, 401);
            assert!((made[200] - 1.0).abs() < 1e-12, "{function:?}");
            assert!(made.iter().zip(made.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-12), "{function:?}");
        }
        let (periodic, symmetric) =
            (window(WindowFunction::HannPeriodic, 400), window(WindowFunction::Hann, 401));
        assert!(periodic.iter().zip(&symmetric).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn the_shortest_windows_are_there() {
        assert!(window(WindowFunction::Hann, 0).is_empty());
        assert_eq!(window(WindowFunction::Povey, 1), [1.0]);
        assert_eq!(window(WindowFunction::Hann, 2), [0.0, 0.0]);
    }
}
