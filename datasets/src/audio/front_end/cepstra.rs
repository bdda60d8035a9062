//! Cepstra: the cosine transform of log mel energies.

use std::f64::consts::PI;

/// Scaling of the first coefficient, which is a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scaling {
    /// `sqrt(1 / n)`: the transform is orthonormal.
    Orthonormal,
    /// `sqrt(2 / n)`, as for all other coefficients (HTK, TensorFlow).
    Alike,
}

/// A DCT-II that keeps the first coefficients, and a lifter.
#[derive(Debug, Clone)]
pub(super) struct Cepstra {
    /// [coefficients, filters] row-major.
    table: Vec<f64>,
    filters: usize,
}

impl Cepstra {
    /// Plans the transform. All coefficients except the first are scaled by `sqrt(2 / n)`. `lifter`
    /// 0 means no lifter; otherwise coefficient n is multiplied by `1 + lifter / 2 sin(pi n /
    /// lifter)`.
    pub(super) fn new(filters: usize, coefficients: usize, scaling: Scaling, lifter: usize) -> Self {
        let filters_f64 = filters as f64;
        let mut table = Vec::with_capacity(coefficients * filters);
        for row in 0..coefficients {
            let first = row == 0 && scaling == Scaling::Orthonormal;
            let norm = if first { 1.0 / filters_f64 } else { 2.0 / filters_f64 }.sqrt();
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

    /// The coefficients [frames, coefficients] of log energies [frames, filters].
    pub(super) fn of(&self, energies: &[f64]) -> Vec<f64> {
        let mut values =
            Vec::with_capacity(energies.len() / self.filters * (self.table.len() / self.filters));
        for energies in energies.chunks_exact(self.filters) {
            let rows = self.table.chunks_exact(self.filters);
            values.extend(rows.map(|row| row.iter().zip(energies).map(|(a, b)| a * b).sum::<f64>()));
        }
        values
    }
}
