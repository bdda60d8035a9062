//! Features of mean 0 and deviation 1.

use zoo_recipes::FeatureNorm;

/// Normalises [frames, width] row-major features. The deviation is that of the whole population, as numpy's.
pub(super) fn normalize(values: &mut [f64], width: usize, norm: FeatureNorm) {
    match norm {
        FeatureNorm::None => {}
        FeatureNorm::Global => {
            let (mean, scale) = mean_and_scale(values.iter().copied(), values.len());
            values.iter_mut().for_each(|value| *value = (*value - mean) * scale);
        }
        FeatureNorm::PerFeature => {
            let frames = values.len() / width;
            for feature in 0..width {
                let column = values.iter().skip(feature).step_by(width).copied();
                let (mean, scale) = mean_and_scale(column, frames);
                values
                    .iter_mut()
                    .skip(feature)
                    .step_by(width)
                    .for_each(|value| *value = (*value - mean) * scale);
            }
        }
    }
}

/// Mean, and 1 over the deviation. The scale of a constant is 0: the sources divide by zero there.
fn mean_and_scale(values: impl Iterator<Item = f64> + Clone, count: usize) -> (f64, f64) {
    let mean = values.clone().sum::<f64>() / count as f64;
    let deviation = (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
    // Rounding leaves a constant a deviation of some 1e-16 of its size.
    let constant = deviation <= 1e-12 * mean.abs();
    (mean, if constant { 0.0 } else { 1.0 / deviation })
}
