//! Loops over one image. The innermost loop runs over channels, or over a whole row of pixels.

use zoo_recipes::PoolKind;

use super::Pooling;
use crate::simd::vectorized;

/// Pooling of one image `[height, width, channels]`.
#[derive(Clone, Copy)]
pub struct Plane {
    how: Pooling,
    height: usize,
    /// Numbers of a row of pixels.
    pitch: usize,
    channels: usize,
    /// Numbers of a row of outputs.
    outputs: usize,
}

impl Plane {
    /// The plane of a tensor `[images, height, width, channels]`.
    pub fn new([_, height, width, channels]: [usize; 4], how: Pooling) -> Self {
        Self {
            how,
            height,
            pitch: width * channels,
            channels,
            outputs: how.outputs([height, width])[1] * channels,
        }
    }

    /// Number of numbers of an image.
    pub fn numbers(&self) -> usize {
        self.height * self.pitch
    }

    /// Output of an image. `row` is scratch memory.
    pub fn forward(&self, image: &[f32], out: &mut [f32], row: &mut Vec<f32>) {
        row.resize(self.pitch, 0.0);
        match self.how.of {
            PoolKind::Max => maxima(*self, image, out, row),
            PoolKind::Average => means(*self, image, out, row),
        }
    }

    /// Gradient of an image, of the mean.
    pub fn mean_backward(&self, gradient: &[f32], dx: &mut [f32], row: &mut Vec<f32>) {
        row.clear();
        row.resize(self.pitch, 0.0);
        if gradient.is_empty() {
            return dx.fill(0.0);
        }
        spread_means(*self, gradient, dx, row);
    }

    /// Gradient of an image, of the maximum.
    pub fn max_backward(&self, image: &[f32], gradient: &[f32], dx: &mut [f32], row: &mut Vec<f32>) {
        row.resize(2 * self.channels, 0.0);
        if gradient.is_empty() {
            return dx.fill(0.0);
        }
        match (self.how.size, self.how.stride) {
            ([2, 2], [2, 2]) => pass_to_maxima_of_four(*self, image, gradient, dx),
            _ => pass_to_maxima(*self, image, gradient, dx, row),
        }
    }
}

/// The larger value, NaN if one is NaN: overflow detection relies on it.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

/// Combines the pixels of each rectangle with `combine`: rows first, then columns.
#[inline(always)]
fn combined(
    plane: Plane,
    image: &[f32],
    out: &mut [f32],
    row: &mut [f32],
    combine: impl Fn(f32, f32) -> f32,
    finish: impl Fn(f32) -> f32,
) {
    let Plane { how: Pooling { size: [down, across], stride: [below, beside], .. }, pitch, channels, .. } =
        plane;
    for (i, out) in out.chunks_exact_mut(plane.outputs).enumerate() {
        let rows = &image[i * below * pitch..][..down * pitch];
        row.copy_from_slice(&rows[..pitch]);
        for other in rows.chunks_exact(pitch).skip(1) {
            for (x, &other) in row.iter_mut().zip(other) {
                *x = combine(*x, other);
            }
        }
        for (j, out) in out.chunks_exact_mut(channels).enumerate() {
            let pixels = &row[j * beside * channels..][..across * channels];
            if across == 2 {
                let (left, right) = pixels.split_at(channels);
                for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
                    *out = finish(combine(left, right));
                }
                continue;
            }
            out.copy_from_slice(&pixels[..channels]);
            for other in pixels.chunks_exact(channels).skip(1) {
                for (out, &other) in out.iter_mut().zip(other) {
                    *out = combine(*out, other);
                }
            }
            out.iter_mut().for_each(|out| *out = finish(*out));
        }
    }
}

vectorized! {
    fn maxima(plane: Plane, image: &[f32], out: &mut [f32], row: &mut [f32]) {
        let _ = FMA;
        combined(plane, image, out, row, larger, |x| x);
    }

    fn means(plane: Plane, image: &[f32], out: &mut [f32], row: &mut [f32]) {
        let _ = FMA;
        let share = 1.0 / plane.how.size.iter().product::<usize>() as f32;
        combined(plane, image, out, row, |a, b| a + b, |x| x * share);
    }

    /// `row` is zeros.
    fn spread_means(plane: Plane, gradient: &[f32], dx: &mut [f32], row: &mut [f32]) {
        let _ = FMA;
        let Plane { how: Pooling { size, stride, .. }, pitch, channels, .. } = plane;
        let ([down, across], [below, beside]) = (size, stride);
        let share = 1.0 / (down * across) as f32;
        let tiled = size == stride;
        if !tiled {
            dx.fill(0.0);
        }
        for (i, gradient) in gradient.chunks_exact(plane.outputs).enumerate() {
            if !tiled {
                row.fill(0.0);
            }
            for (j, gradient) in gradient.chunks_exact(channels).enumerate() {
                let pixels = &mut row[j * beside * channels..][..across * channels];
                for pixel in pixels.chunks_exact_mut(channels) {
                    for (x, &gradient) in pixel.iter_mut().zip(gradient) {
                        *x = if tiled { gradient * share } else { *x + gradient * share };
                    }
                }
            }
            for to in dx[i * below * pitch..][..down * pitch].chunks_exact_mut(pitch) {
                if tiled {
                    to.copy_from_slice(row);
                } else {
                    to.iter_mut().zip(&*row).for_each(|(to, x)| *to += x);
                }
            }
        }
        if tiled {
            let rows = gradient.len() / plane.outputs;
            dx[rows * down * pitch..].fill(0.0);
        }
    }

    /// Squares of 2 x 2 that do not overlap.
    fn pass_to_maxima_of_four(plane: Plane, image: &[f32], gradient: &[f32], dx: &mut [f32]) {
        let _ = FMA;
        let Plane { pitch, channels, .. } = plane;
        let rows = gradient.len() / plane.outputs;
        dx[2 * rows * pitch..].fill(0.0);
        let images = image.chunks_exact(2 * pitch).zip(dx.chunks_exact_mut(2 * pitch));
        for ((x, dx), gradient) in images.zip(gradient.chunks_exact(plane.outputs)) {
            let ((x, x_below), (dx, dx_below)) = (x.split_at(pitch), dx.split_at_mut(pitch));
            // The column that fills no square.
            dx[2 * plane.outputs..].fill(0.0);
            dx_below[2 * plane.outputs..].fill(0.0);
            let pairs = 2 * channels;
            let x = x.chunks_exact(pairs).zip(x_below.chunks_exact(pairs));
            let dx = dx.chunks_exact_mut(pairs).zip(dx_below.chunks_exact_mut(pairs));
            for (((x, x_below), (dx, dx_below)), gradient) in x.zip(dx).zip(gradient.chunks_exact(channels)) {
                let ((a, b), (c, d)) = (x.split_at(channels), x_below.split_at(channels));
                let ((da, db), (dc, dd)) = (dx.split_at_mut(channels), dx_below.split_at_mut(channels));
                let n = channels;
                let (a, b, c, d, gradient) = (&a[..n], &b[..n], &c[..n], &d[..n], &gradient[..n]);
                let (da, db, dc, dd) = (&mut da[..n], &mut db[..n], &mut dc[..n], &mut dd[..n]);
                for i in 0..n {
                    let most = larger(larger(larger(a[i], b[i]), c[i]), d[i]);
                    let (is_a, is_b, is_c) = (a[i] == most, b[i] == most, c[i] == most);
                    let before_c = is_a | is_b;
                    let before_d = before_c | is_c;
                    let pass = |taken: bool| if taken { gradient[i] } else { 0.0 };
                    da[i] = pass(is_a);
                    db[i] = pass(is_b & !is_a);
                    dc[i] = pass(is_c & !before_c);
                    dd[i] = pass(!before_d);
                }
            }
        }
    }

    /// Rectangles of any size and stride. `room` holds two pixels: the maxima, and the gradients
    /// that no pixel has taken yet.
    fn pass_to_maxima(plane: Plane, image: &[f32], gradient: &[f32], dx: &mut [f32], room: &mut [f32]) {
        let _ = FMA;
        let Plane { how: Pooling { size: [down, across], stride: [below, beside], .. }, pitch, channels, .. } = plane;
        let (most, rest) = room.split_at_mut(channels);
        dx.fill(0.0);
        for (i, gradient) in gradient.chunks_exact(plane.outputs).enumerate() {
            for (j, gradient) in gradient.chunks_exact(channels).enumerate() {
                let first = i * below * pitch + j * beside * channels;
                let pixels = (0..down * across).map(|k| first + k / across * pitch + k % across * channels);
                most.copy_from_slice(&image[first..][..channels]);
                for at in pixels.clone().skip(1) {
                    for (most, &x) in most.iter_mut().zip(&image[at..][..channels]) {
                        *most = larger(*most, x);
                    }
                }
                rest.copy_from_slice(gradient);
                for (k, at) in pixels.enumerate() {
                    let last = k + 1 == down * across;
                    let (x, dx) = (&image[at..][..channels], &mut dx[at..][..channels]);
                    for (((dx, &x), &most), rest) in dx.iter_mut().zip(x).zip(&*most).zip(&mut *rest) {
                        // A maximum that is NaN equals no pixel.
                        let taken = x == most || last;
                        *dx += if taken { *rest } else { 0.0 };
                        *rest = if taken { 0.0 } else { *rest };
                    }
                }
            }
        }
    }
}
