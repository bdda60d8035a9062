//! Cepstra: the cosine transform of log mel energies.

use std::f64::consts::PI;

/// An orthonormal DCT-II of which the first coefficients are kept, and a lifter.
#[derive(Debug, Clone)]
pub(super) struct Cepstra {
    /// [coefficients, filters] row-major.
    table: Vec<f64>,
    filters: usize,
}

impl Cepstra {
    /// `lifter` 0: none. Else coefficient n is multiplied by `1 + lifter / 2 sin(pi n / lifter)`.
    pub(super) fn new(filters: usize, coefficients: usize, lifter: usize) -> Self {
        let filters_f64 = filters as f64;
        let mut table = Vec::with_capacity(coefficients * filters);
        for row in 0..coefficients {
            let norm = if row == 0 { 1.0 / filters_f64 } else { 2.0 / filters_f64 }.sqrt();
            let lift = match lifter {
                0 => 1.0,
                lifter => 1.0 + lifter as f64 / 2.0 * (PI * row as f64 / lifter as f64).sin(),
            };
            table.extend(
                (0..filters)
                    .map(|at| lift * norm * (PI * row as f64 * (at as f64 + 0.5) / filters_f64).cos()),
            );
        }
        Self { table, filters }
    }

    /// Appends the coefficients of one frame.
    pub(super) fn extend(&self, energies: &[f64], values: &mut Vec<f64>) {
        values.extend(
            self.table
                .chunks_exact(self.filters)
                .map(|row| row.iter().zip(energies).map(|(a, b)| a * b).sum::<f64>()),
        );
    }
}
