//! Peak speeds of the device: products of large matrices and passes over large arrays, with the
//! operations that training uses.

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

/// Widths of square matrices: the smallest is enough for a small CPU, the largest fills a large
/// GPU.
const WIDTHS: [usize; 4] = [1024, 2048, 4096, 8192];
/// Duration of a product in seconds above which larger products are not faster.
const LONG: f64 = 0.05;
/// Values of the scaled array: 256 MB, which exceeds caches, and 1 GB for devices on which the
/// first pass is too short to measure.
const VALUES: [usize; 2] = [1 << 26, 1 << 28];
/// Duration of a pass in seconds above which larger arrays are not needed.
const LONG_PASS: f64 = 0.002;
/// Minimum total duration of a measurement's runs, in seconds.
const SECONDS: f64 = 0.2;
/// Minimum number of runs.
const RUNS: u32 = 3;

/// Peak speed of a layer's matrix product with the precision `compute`, at its best width, in
/// floating-point operations per second.
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

/// Peak bandwidth of the loop that scales gradients, in bytes read and written per second.
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

/// A square matrix that repeats a tile of random values. Equal values would use less GPU power and
/// make the GPU faster than in training.
fn random(width: usize, stream: u64, device: &Device, compute: Compute) -> Tensor<2> {
    const TILE: usize = WIDTHS[0];
    let key = Key::new(1, stream, 0);
    let values: Vec<f32> = (0..(TILE * TILE) as u32).map(|at| key.normal(at)).collect();
    let tile = Tensor::<2>::from_data(TensorData::new(values, [TILE, TILE]), device);
    compute.cast(tile.repeat(&[width / TILE, width / TILE]))
}

/// Duration of the fastest run in seconds, after one warm-up run.
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
