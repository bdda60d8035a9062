//! A toy of our own: stripes under noise, whose direction is the class.

use std::f64::consts::PI;
use std::ops::Range;

use zoo_recipes::tasks::image_classification::PictureSizeSpec;

use crate::image::{Picture, ShapeError};
use crate::random::{Purpose, RandomStream};

/// Pixels of a stripe and its gap.
const PERIOD: f64 = 7.0;
/// Standard deviation of the noise, in bytes.
const NOISE: f64 = 30.0;

/// The pictures of some numbers, each with its class. A picture is a function of the seed and its
/// number.
///
/// # Errors
/// No picture can have the size.
pub(super) fn stripes(
    size: PictureSizeSpec,
    classes: u32,
    seed: u64,
    numbers: Range<u32>,
) -> Result<Vec<(Picture, u32)>, ShapeError> {
    numbers.map(|number| one(size, classes, seed, number)).collect()
}

fn one(size: PictureSizeSpec, classes: u32, seed: u64, number: u32) -> Result<(Picture, u32), ShapeError> {
    let mut stream = RandomStream::new(seed, Purpose::Examples, u64::from(number));
    let class = stream.below(classes);
    let phase = stream.unit();
    let (sine, cosine) = (PI * f64::from(class) / f64::from(classes.max(1))).sin_cos();
    let [height, width, channels] = [size.height, size.width, size.channels].map(|n| n as usize);
    let mut light = Vec::with_capacity(height * width * channels);
    for row in 0..height {
        for column in 0..width {
            let along = (column as f64 * cosine + row as f64 * sine) / PERIOD + phase;
            let value = (127.5 + 90.0 * (2.0 * PI * along).sin()) as f32;
            light.extend(std::iter::repeat_n(value, channels));
        }
    }
    stream.add_normal(&mut light, NOISE);
    let bytes = light.into_iter().map(|value| value.round().clamp(0.0, 255.0) as u8).collect();
    Ok((Picture::new(height, width, channels, bytes)?, class))
}
