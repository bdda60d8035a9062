//! Double precision, or the single precision in which sacreBLEU scores its resamples.

/// How intermediate results are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// f64 throughout.
    Double,
    /// Each sum, product and quotient rounded to f32, as NumPy 2 does with `float32` statistics. An operation in
    /// f64 on f32 numbers, rounded once, is the f32 operation exactly.
    Single,
}

impl Arithmetic {
    /// The result of one operation.
    pub(crate) fn round(self, x: f64) -> f64 {
        match self {
            Arithmetic::Double => x,
            Arithmetic::Single => f64::from(x as f32),
        }
    }

    /// One number over another; 0 over nothing.
    pub(crate) fn ratio(self, sum: f64, count: f64) -> f64 {
        if count > 0.0 { self.round(sum / count) } else { 0.0 }
    }
}
