//! Precision of the arithmetic: double, or the single precision in which sacreBLEU scores its
//! resamples.

/// How intermediate results are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// f64 throughout.
    Double,
    /// Every sum, product and quotient is rounded to f32, as in NumPy 2 with `float32` statistics.
    /// One f64 operation on f32 numbers, rounded once, equals the f32 operation exactly.
    Single,
}

impl Arithmetic {
    /// Rounds the result of one operation.
    pub(crate) fn round(self, x: f64) -> f64 {
        match self {
            Arithmetic::Double => x,
            Arithmetic::Single => f64::from(x as f32),
        }
    }

    /// Quotient of `sum` and `count`; 0 if the count is 0.
    pub(crate) fn ratio(self, sum: f64, count: f64) -> f64 {
        if count > 0.0 { self.round(sum / count) } else { 0.0 }
    }
}
