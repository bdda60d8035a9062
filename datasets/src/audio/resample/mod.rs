//! Resampling with windowed sincs. [`KaiserResampler`] follows resampy and supports any rates.
//! [`SincResampler`] follows torchaudio and suits rates with a large common divisor.

mod kaiser;
mod sinc;

pub use kaiser::KaiserResampler;
pub use sinc::SincResampler;

/// Sum of products, in eight lanes.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f32 = lefts.remainder().iter().zip(rights.remainder()).map(|(a, b)| a * b).sum();
    for (left, right) in lefts.zip(rights) {
        for lane in 0..8 {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    let fours = [lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]];
    (fours[0] + fours[2]) + (fours[1] + fours[3]) + rest
}
