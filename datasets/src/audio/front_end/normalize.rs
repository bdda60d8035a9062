//! Features of mean 0 and deviation 1.

use zoo_recipes::FeatureNorm;

use crate::audio::vectors::vectorised;

/// Normalises [frames, width] row-major features. The deviation is that of the whole population, as numpy's.
pub(super) fn normalize(values: &mut [f64], width: usize, norm: FeatureNorm) {
    if norm == FeatureNorm::None {
        return;
    }
    vectorised(
        #[inline(always)]
        || normalize_by(values, width, norm == FeatureNorm::Global),
    );
}

#[inline(always)]
fn normalize_by(values: &mut [f64], width: usize, global: bool) {
    let frames = (values.len() / width) as f64;
    // All columns are of the same length: what holds for everything is the mean over them.
    let finish = |sums: &mut [f64]| {
        sums.iter_mut().for_each(|sum| *sum /= frames);
        if global {
            let mean = sums.iter().sum::<f64>() / width as f64;
            sums.fill(mean);
        }
    };
    let mut means = vec![0.0; width];
    for row in values.chunks_exact(width) {
        means.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    finish(&mut means);
    let mut scales = vec![0.0; width];
    for row in values.chunks_exact(width) {
        for ((sum, value), mean) in scales.iter_mut().zip(row).zip(&means) {
            *sum += (value - mean) * (value - mean);
        }
    }
    finish(&mut scales);
    for (scale, mean) in scales.iter_mut().zip(&means) {
        let deviation = scale.sqrt();
        // Rounding leaves a constant a deviation of some 1e-16 of its size; the sources divide by it, or by zero.
        *scale = if deviation <= 1e-12 * mean.abs() { 0.0 } else { 1.0 / deviation };
    }
    for row in values.chunks_exact_mut(width) {
        for ((value, mean), scale) in row.iter_mut().zip(&means).zip(&scales) {
            *value = (*value - mean) * scale;
        }
    }
}
