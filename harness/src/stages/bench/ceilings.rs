//! What this device does at most: products of large matrices and passes over large arrays, by the paths that training takes.

use std::hint::black_box;
use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData};
use zoo_models::Pass;
use zoo_models::ops::linear;
use zoo_models::precision::Compute;
use zoo_models::random::Key;
use zoo_training::error::TrainError;
use zoo_training::flat::Flat;
use zoo_training::parts::idle;

/// Widths of square matrices, from what a small CPU needs to what fills a large GPU.
const WIDTHS: [usize; 4] = [1024, 2048, 4096, 8192];
/// A product of so many seconds is long enough: a larger one is no faster.
const LONG: f64 = 0.05;
/// Values of the array that is scaled: 256 MB, more than caches hold, and 1 GB where that is over before it has begun.
const VALUES: [usize; 2] = [1 << 26, 1 << 28];
/// A pass of so many seconds is long enough.
const LONG_PASS: f64 = 0.002;
/// A measurement takes the best of as many runs as fit in here, seconds.
const SECONDS: f64 = 0.2;
/// Of so many at least.
const RUNS: u32 = 3;

/// Floating-point operations a second of a layer's product in this type, at its best width.
///
/// # Errors
/// The device fails.
pub fn product(device: &Device, compute: Compute) -> Result<f64, TrainError> {
    let mut most = 0.0_f64;
    for width in WIDTHS {
        let (x, weight) = (random(width, 0, device, compute), random(width, 1, device, compute));
        let pass = Pass::evaluation(compute);
        let seconds = best(device, || {
            black_box(linear(x.clone(), weight.clone(), None, &pass));
        })?;
        most = most.max(2.0 * (width as f64).powi(3) / seconds);
        if seconds > LONG {
            break;
        }
    }
    Ok(most)
}

/// Bytes a second, those read and those written, of the loop that scales gradients.
///
/// # Errors
/// The device fails.
pub fn copy(device: &Device) -> Result<f64, TrainError> {
    let mut most = 0.0_f64;
    for values in VALUES {
        let mut array = Some(Flat::from_tensor(Tensor::ones([values], device)));
        let seconds = best(device, || array = array.take().map(|array| array.scaled(black_box(0.999))))?;
        most = most.max((2 * values * size_of::<f32>()) as f64 / seconds);
        if seconds > LONG_PASS {
            break;
        }
    }
    Ok(most)
}

/// A square matrix. Equal values would spare a GPU power, and so make it faster than it is: a tile of random ones is repeated.
fn random(width: usize, stream: u64, device: &Device, compute: Compute) -> Tensor<2> {
    const TILE: usize = WIDTHS[0];
    let key = Key::new(1, stream, 0);
    let values: Vec<f32> = (0..(TILE * TILE) as u32).map(|at| key.normal(at)).collect();
    let tile = Tensor::<2>::from_data(TensorData::new(values, [TILE, TILE]), device);
    compute.cast(tile.repeat(&[width / TILE, width / TILE]))
}

/// Seconds of the fastest run, after one that does not count.
fn best(device: &Device, mut work: impl FnMut()) -> Result<f64, TrainError> {
    let mut run = || -> Result<f64, TrainError> {
        let start = Instant::now();
        work();
        idle(device)?;
        Ok(start.elapsed().as_secs_f64())
    };
    run()?;
    let start = Instant::now();
    let (mut least, mut runs) = (f64::INFINITY, 0);
    while runs < RUNS || start.elapsed().as_secs_f64() < SECONDS {
        least = least.min(run()?);
        runs += 1;
    }
    Ok(least)
}
