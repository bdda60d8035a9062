//! Errors of the rungs (levels) of a comparison.

use serde::Serialize;
use zoo_models::parameters::ParameterValues;

/// An array of a reference file.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Values {
    pub(crate) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |a, x| a.max(x.abs()))
    }

    pub(crate) fn parameter(&self, path: &str) -> ParameterValues {
        let values = self.values.iter().map(|&x| x as f32).collect();
        ParameterValues { path: path.to_string(), shape: self.shape.clone(), values }
    }
}

/// Result of one rung.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rung {
    /// `inputs`, `embeddings`, `encoder`, `logits`, `losses`, `gradients`, for half precision
    /// `most gradients`, otherwise `update`, `search NAME`.
    pub name: String,
    /// Number of compared tensors; 0 if the file has none.
    pub tensors: usize,
    /// Largest error, in the measure of the rung.
    pub error: f64,
    /// Maximum allowed error.
    pub limit: f64,
    /// Name of the tensor with the largest error.
    pub at: String,
}

impl Rung {
    /// Whether the error is within the limit.
    pub fn holds(&self) -> bool {
        self.error <= self.limit
    }
}

/// The rungs up to the first failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alignment {
    /// Rungs in order. Only the last one may have failed.
    pub rungs: Vec<Rung>,
}

impl Alignment {
    /// Whether every rung of the file is within its limit.
    pub fn holds(&self) -> bool {
        self.rungs.iter().all(Rung::holds)
    }
}

/// The largest error of a rung so far.
pub(crate) struct Measure(Rung);

impl Measure {
    pub(crate) fn new(name: &str, limit: f64) -> Self {
        Self(Rung { name: name.to_string(), tensors: 0, error: 0.0, limit, at: String::new() })
    }

    /// Adds the largest difference of a tensor, divided by `unit`.
    pub(crate) fn add(&mut self, name: &str, expected: &Values, ours: &[f64], unit: f64) {
        self.0.tensors += 1;
        if expected.values.len() != ours.len() {
            return self.fail(format!("{name}: {} values, not {}", ours.len(), expected.values.len()));
        }
        for (a, b) in ours.iter().zip(&expected.values) {
            let error = (a - b).abs() / if unit > 0.0 { unit } else { 1.0 };
            if error.is_nan() || error > self.0.error {
                self.0.error = if error.is_nan() { f64::INFINITY } else { error };
                self.0.at = name.to_string();
            }
        }
    }

    /// Adds the difference that a `share` of the tensor's elements does not exceed, divided by
    /// `unit`.
    pub(crate) fn add_share(&mut self, name: &str, expected: &Values, ours: &[f64], unit: f64, share: f64) {
        if expected.values.len() != ours.len() {
            return self.fail(format!("{name}: {} values, not {}", ours.len(), expected.values.len()));
        }
        let mut off: Vec<f64> = ours.iter().zip(&expected.values).map(|(a, b)| (a - b).abs()).collect();
        off.sort_by(f64::total_cmp);
        let at = (share * off.len().saturating_sub(1) as f64).round() as usize;
        if let Some(&kept) = off.get(at) {
            self.add(name, &Values { shape: Vec::new(), values: vec![0.0] }, &[kept], unit);
        }
    }

    pub(crate) fn relative_to_itself(&mut self, name: &str, expected: Option<&Values>, ours: &[f64]) {
        if let Some(expected) = expected {
            self.add(name, expected, ours, expected.largest());
        }
    }

    pub(crate) fn fail(&mut self, at: String) {
        self.0.error = f64::INFINITY;
        self.0.at = at;
    }
}

impl Alignment {
    /// Adds a rung. Returns whether it is within its limit.
    pub(crate) fn add(&mut self, measure: Measure) -> bool {
        let holds = measure.0.holds();
        self.rungs.push(measure.0);
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> Values {
        Values { shape: Vec::new(), values: values.to_vec() }
    }

    #[test]
    fn a_share_leaves_the_worst_aside_and_nothing_else() {
        let expected = values(&[0.0; 11]);
        let mut ours = [0.1; 11];
        ours[3] = 50.0;
        let mut measure = Measure::new("most", 0.2);
        measure.add_share("w", &expected, &ours, 1.0, 0.9);
        assert_eq!((measure.0.error, measure.0.tensors), (0.1, 1));
        ours[4] = 50.0;
        let mut measure = Measure::new("most", 0.2);
        measure.add_share("w", &expected, &ours, 1.0, 0.9);
        assert!(!measure.0.holds());
    }

    #[test]
    fn a_tensor_of_another_size_breaks_a_share() {
        let mut measure = Measure::new("most", 0.2);
        measure.add_share("w", &values(&[]), &[1.0, 2.0], 1.0, 0.9);
        assert!(!measure.0.holds() && measure.0.at.contains("2 values, not 0"), "{:?}", measure.0);
        let mut measure = Measure::new("most", 0.2);
        measure.add_share("w", &values(&[]), &[], 1.0, 0.9);
        assert!(measure.0.holds());
    }
}
