//! Normalises features to mean 0 and standard deviation 1.

use zoo_recipes::FeatureNorm;

use crate::audio::vectors::vectorised;

/// Normalises features, [frames, width] row-major. The standard deviation is that of the
/// population, as in numpy.
pub(super) fn normalized(values: &[f64], width: usize, norm: FeatureNorm) -> Vec<f32> {
    if norm == FeatureNorm::None {
        return values.iter().map(|value| *value as f32).collect();
    }
    let mut made = Vec::with_capacity(values.len());
    vectorised(
        #[inline(always)]
        || normalize_by(values, &mut made, width, norm == FeatureNorm::Global),
    );
    made
}

#[inline(always)]
fn normalize_by(values: &[f64], made: &mut Vec<f32>, width: usize, global: bool) {
    let frames = (values.len() / width) as f64;
    // All columns have the same length, so the value over all features is the mean over the
    // columns.
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
        // Rounding gives a constant a relative deviation of about 1e-16. The sources divide by it,
        // or by zero.
        *scale = if deviation <= 1e-12 * mean.abs() { 0.0 } else { 1.0 / deviation };
    }
    for row in values.chunks_exact(width) {
        let columns = row.iter().zip(&means).zip(&scales);
        made.extend(columns.map(|((value, mean), scale)| ((value - mean) * scale) as f32));
    }
}
