//! A flat FP32 buffer in the memory where its device processes it fastest.
//!
//! On the CPU backend the buffer is a vector. Tensors convert from and to vectors without a copy.
//! One loop over four arrays is several times faster than a chain of tensor operations, each of
//! which allocates. On other backends the buffer is a tensor, whose chains the backend fuses. Both
//! do the same operations on each element in the same order, and agree bitwise.

use std::borrow::Cow;

use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use zoo_models::ops::{magnitudes, wide};
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;

/// Number of elements that one thread processes at a time. It is fixed, so that sums do not depend
/// on the number of threads.
pub(crate) const CHUNK: usize = 1 << 14;

/// A flat FP32 buffer; see the module's documentation.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are a few per parameter, and each holds thousands of values"
)]
pub enum Flat {
    /// Values in the host's memory.
    Host(Vec<f32>),
    /// Values on a device, shape `[n]`, outside autodiff.
    Device(Tensor<1>),
}

/// Sum of squares and largest magnitude of a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Magnitude {
    /// Sum of squares. It is not finite if any value is not (on devices other than the CPU also if
    /// a value exceeds 1.8e19).
    pub square_sum: f64,
    /// Largest magnitude.
    pub largest: f64,
}

impl Magnitude {
    const NOTHING: Self = Self { square_sum: 0.0, largest: 0.0 };

    fn joined(self, part: Self) -> Self {
        Self { square_sum: self.square_sum + part.square_sum, largest: self.largest.max(part.largest) }
    }
}

impl Flat {
    /// The device of the first that lies on one.
    ///
    /// # Panics
    /// If all are on the host.
    pub fn device_of<const N: usize>(flats: [&Self; N]) -> Device {
        let device = |flat: &Self| if let Self::Device(tensor) = flat { Some(tensor.device()) } else { None };
        flats.into_iter().find_map(device).expect("not all are on the host")
    }

    /// Converts a flat FP32 tensor outside autodiff.
    pub fn from_tensor(tensor: Tensor<1>) -> Self {
        #[cfg(test)]
        if AS_ON_A_DEVICE.get() {
            return Self::Device(tensor);
        }
        if is_host(&tensor.device()) { Self::Host(host_storage(tensor)) } else { Self::Device(tensor) }
    }

    /// Converts to a tensor of shape `[n]`.
    pub fn into_tensor(self, device: &Device) -> Tensor<1> {
        match self {
            Self::Host(values) => {
                let n = values.len();
                Tensor::from_data(TensorData::new(values, [n]), device)
            }
            Self::Device(tensor) => tensor,
        }
    }

    /// Zeros with the length and storage of `self`.
    pub fn zeros_like(&self) -> Self {
        self.all_like(0.0)
    }

    /// One value, with the length and storage of `self`.
    pub fn all_like(&self, value: f32) -> Self {
        match self {
            Self::Host(values) => Self::Host(vec![value; values.len()]),
            Self::Device(tensor) => Self::Device(Tensor::full([tensor.dims()[0]], value, &tensor.device())),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(values) => values.len(),
            Self::Device(tensor) => tensor.dims()[0],
        }
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the values to the host.
    pub fn to_vec(&self) -> Vec<f32> {
        match self {
            Self::Host(values) => values.clone(),
            Self::Device(tensor) => host_values(tensor.clone()),
        }
    }

    /// The values on the host. Values on the host are borrowed.
    pub fn on_host(&self) -> Cow<'_, [f32]> {
        match self {
            Self::Host(values) => Cow::Borrowed(values),
            Self::Device(_) => Cow::Owned(self.to_vec()),
        }
    }

    /// Multiplies the values by a factor.
    pub fn scaled(self, factor: f32) -> Self {
        match self {
            Self::Host(mut values) => {
                values.par_chunks_mut(CHUNK).for_each(|chunk| {
                    wide(
                        #[inline(always)]
                        || chunk.iter_mut().for_each(|x| *x *= factor),
                    );
                });
                Self::Host(values)
            }
            Self::Device(tensor) => Self::Device(tensor.mul_scalar(factor)),
        }
    }

    /// Rounds the values to those of a compute type. They stay FP32 numbers.
    pub fn rounded(self, to: Compute) -> Self {
        match self {
            flat if to == Compute::FP32 => flat,
            Self::Host(mut values) => {
                values.par_chunks_mut(CHUNK).for_each(|chunk| to.round(chunk));
                Self::Host(values)
            }
            Self::Device(tensor) => Self::Device(to.rounded(tensor)),
        }
    }

    /// Adds a buffer of the same length.
    pub fn plus(self, other: Self) -> Self {
        self.plus_scaled(&other, 1.0)
    }

    /// Adds a buffer times a factor.
    pub fn plus_scaled(self, other: &Self, factor: f32) -> Self {
        match (self, other) {
            (Self::Host(mut values), Self::Host(other)) => {
                let pairs = values.par_chunks_mut(CHUNK).zip(other.par_chunks(CHUNK));
                pairs.for_each(|(to, from)| {
                    wide(
                        #[inline(always)]
                        || to.iter_mut().zip(from).for_each(|(x, y)| *x += y * factor),
                    );
                });
                Self::Host(values)
            }
            (Self::Device(tensor), Self::Device(other)) => {
                Self::Device(tensor.add(other.clone().mul_scalar(factor)))
            }
            (this, other) => {
                // The storages differ only where a reducer returned host values for a device.
                let device =
                    device_of(&this).or_else(|| device_of(other)).expect("one of the two is on a device");
                let other = Self::Device(other.clone().into_tensor(&device));
                Self::Device(this.into_tensor(&device)).plus_scaled(&other, factor)
            }
        }
    }

    /// Weighted mean with a buffer of the same length: keep x self + rest x other, in one pass on
    /// the host.
    pub fn moved(self, keep: f32, other: &Self, rest: f32) -> Self {
        match (self, other) {
            (Self::Host(mut values), Self::Host(other)) => {
                let pairs = values.par_chunks_mut(CHUNK).zip(other.par_chunks(CHUNK));
                pairs.for_each(|(to, from)| {
                    wide(
                        #[inline(always)]
                        || to.iter_mut().zip(from).for_each(|(x, y)| *x = *x * keep + y * rest),
                    );
                });
                Self::Host(values)
            }
            (this, other) => this.scaled(keep).plus_scaled(other, rest),
        }
    }
}

#[cfg(test)]
thread_local! {
    static AS_ON_A_DEVICE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a closure with the storage of devices other than the CPU, on this thread.
#[cfg(test)]
pub(crate) fn as_on_a_device<T>(run: impl FnOnce() -> T) -> T {
    AS_ON_A_DEVICE.set(true);
    let result = run();
    AS_ON_A_DEVICE.set(false);
    result
}

fn device_of(flat: &Flat) -> Option<Device> {
    match flat {
        Flat::Host(_) => None,
        Flat::Device(tensor) => Some(tensor.device()),
    }
}

/// Whether tensors of this device are plain host memory.
pub(crate) fn is_host(device: &Device) -> bool {
    device.clone().inner() == Device::flex()
}

/// The values of an FP32 tensor on the host, without a copy if it has no other reference. No device
/// is read.
#[expect(clippy::disallowed_methods, reason = "the values are in the host's memory already")]
fn host_storage(tensor: Tensor<1>) -> Vec<f32> {
    debug_assert!(is_host(&tensor.device()), "values on a device are read with `host_values`");
    tensor.into_data().try_into_vec::<f32>().expect("the tensors of this crate are FP32")
}

/// Magnitudes of several buffers and the values of some one-element tensors, with one read from the
/// device.
pub fn measure(buffers: &[&Flat], scalars: Vec<Tensor<1>>) -> (Vec<Magnitude>, Vec<f64>) {
    let on_device = |buffer: &&Flat| match buffer {
        Flat::Host(_) => None,
        Flat::Device(tensor) => Some(tensor.clone()),
    };
    let tensors: Vec<Tensor<1>> = buffers.iter().filter_map(on_device).collect();
    let (mut pending, mut chunks) = (Vec::new(), Vec::new());
    if !tensors.is_empty() {
        let (parts, of_each) = magnitudes(&tensors);
        pending.push(parts);
        chunks = of_each;
    }
    pending.extend(scalars);
    let read = if pending.is_empty() { Vec::new() } else { host_values(Tensor::cat(pending, 0)) };
    let (mut read, mut chunks) = (read.into_iter().map(f64::from), chunks.into_iter());
    let mut next = || read.next().expect("as many values as were asked for");
    let magnitudes = buffers
        .iter()
        .map(|buffer| match buffer {
            Flat::Host(values) => magnitude(values),
            Flat::Device(_) => (0..chunks.next().expect("a number for each buffer"))
                .map(|_| Magnitude { square_sum: next(), largest: next() })
                .fold(Magnitude::NOTHING, Magnitude::joined),
        })
        .collect();
    (magnitudes, read.collect())
}

/// Number of partial sums of a chunk: fixed, so that a sum does not depend on the width of the
/// instruction set.
const LANES: usize = 16;

/// Chunks of [`CHUNK`] values are summed in FP64 in parallel, and their sums are added in order.
/// Value i of a chunk goes to partial sum i mod [`LANES`]; the partial sums are added in order. The
/// result is bitwise equal for any number of threads and any processor.
pub(crate) fn magnitude(values: &[f32]) -> Magnitude {
    let part = |chunk: &[f32]| {
        wide(
            #[inline(always)]
            || magnitude_of_chunk(chunk),
        )
    };
    let parts: Vec<Magnitude> = values.par_chunks(CHUNK).map(part).collect();
    parts.into_iter().fold(Magnitude::NOTHING, Magnitude::joined)
}

#[inline(always)]
fn magnitude_of_chunk(values: &[f32]) -> Magnitude {
    let (mut sums, mut largest) = ([0f64; LANES], [0f32; LANES]);
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        sums.iter_mut().zip(&mut largest).zip(group).for_each(include);
    }
    sums.iter_mut().zip(&mut largest).zip(rest).for_each(include);
    Magnitude {
        square_sum: sums.iter().sum(),
        largest: f64::from(largest.iter().fold(0f32, |a, b| a.max(*b))),
    }
}

/// Adds a value to the partial sum and the largest magnitude of its lane.
#[inline(always)]
fn include(((sum, largest), x): ((&mut f64, &mut f32), &f32)) {
    *sum += f64::from(*x) * f64::from(*x);
    // A NaN is not larger; the sum shows it.
    *largest = if x.abs() > *largest { x.abs() } else { *largest };
}

#[cfg(test)]
mod tests {
    use burn::tensor::FloatDType;
    use zoo_models::parameters::reads;

    use super::*;

    fn device_flat(values: &[f32]) -> Flat {
        Flat::Device(Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &Device::flex()))
    }

    #[test]
    fn the_cpu_keeps_vectors_and_gives_them_back_unchanged() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.1).collect();
        let tensor = Tensor::<1>::from_data(TensorData::new(values.clone(), [1000]), &Device::flex());
        let flat = Flat::from_tensor(tensor);
        let Flat::Host(vector) = &flat else { panic!("the CPU backend's tensors are vectors") };
        let place = vector.as_ptr();
        let back = host_storage(flat.into_tensor(&Device::flex()));
        assert_eq!(back, values);
        assert_eq!(back.as_ptr(), place, "and that without a copy");
    }

    #[test]
    fn both_places_agree_bit_for_bit() {
        let a: Vec<f32> = (0..40_000usize).map(|i| ((i * 7919) % 1013) as f32 * 0.37 - 180.0).collect();
        let b: Vec<f32> = (0..40_000usize).map(|i| ((i * 104_729) % 997) as f32 * 1e-3).collect();
        let host = Flat::Host(a.clone()).plus_scaled(&Flat::Host(b.clone()), 0.3).scaled(0.7);
        let device = device_flat(&a).plus_scaled(&device_flat(&b), 0.3).scaled(0.7);
        assert_eq!(host.to_vec(), device.to_vec());
        let (found, _) = measure(&[&host, &device], vec![]);
        assert_eq!(found[0].largest, found[1].largest);
        assert!((found[0].square_sum / found[1].square_sum - 1.0).abs() < 1e-5);
    }

    /// The plain loop in FP64: value i of a chunk in partial sum i mod 16.
    #[test]
    fn a_norm_is_summed_in_the_documented_order_by_every_number_of_threads() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 1000, CHUNK, 3 * CHUNK + 5] {
            let draw = |i: usize| ((i * 7919) % 10_007) as f32 / 10_007.0 - 0.4;
            let values: Vec<f32> = (0..n).map(|i| draw(i) * [1.0, 1e-3, 1e4][i % 3]).collect();
            let (mut due, mut largest) = (0f64, 0f32);
            for chunk in values.chunks(CHUNK) {
                let mut sums = [0f64; 16];
                for (i, x) in chunk.iter().enumerate() {
                    sums[i % 16] += f64::from(*x) * f64::from(*x);
                    largest = largest.max(x.abs());
                }
                due += sums.iter().sum::<f64>();
            }
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let found = pool.install(|| magnitude(&values));
                assert_eq!(found.square_sum.to_bits(), due.to_bits(), "{n} values, {threads} threads");
                assert_eq!(found.largest, f64::from(largest), "{n} values");
            }
            // Another order has other bits, so the comparison sees the order.
            let in_turn: f64 = values.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            assert!(n < 1000 || in_turn.to_bits() != due.to_bits(), "{n} values");
        }
    }

    #[test]
    fn a_moved_mean_has_the_bits_of_a_plain_loop() {
        for n in [0, 1, 15, 16, 17, 1000, CHUNK + 3] {
            let [mean, to] = [7919, 104_729].map(|prime| -> Vec<f32> {
                (0..n).map(|i| ((i * prime) % 10_007) as f32 / 10_007.0 - 0.5).collect()
            });
            let found = Flat::Host(mean.clone()).moved(0.999, &Flat::Host(to.clone()), 1e-3).to_vec();
            let pairs = || mean.iter().zip(&to);
            let plain: Vec<f32> = pairs().map(|(m, x)| *m * 0.999 + *x * 1e-3).collect();
            assert_eq!(found, plain, "{n} values");
            let fused: Vec<f32> = pairs().map(|(m, x)| m.mul_add(0.999, *x * 1e-3)).collect();
            assert!(n < 1000 || found != fused, "a fused product would be seen");
        }
    }

    #[test]
    fn rounding_gives_the_same_bits_on_both_places() {
        let values: Vec<f32> = (0..40_000usize).map(|i| ((i * 7919) % 10_007) as f32 * 1e-4 - 0.5).collect();
        for to in [FloatDType::F32, FloatDType::F16, FloatDType::BF16].map(Compute) {
            let host = Flat::Host(values.clone()).rounded(to).to_vec();
            assert_eq!(host, device_flat(&values).rounded(to).to_vec(), "{to:?}");
            assert_eq!(host == values, to == Compute::FP32);
            assert_eq!(Flat::Host(host.clone()).rounded(to).to_vec(), host, "rounded once for all");
        }
    }

    #[test]
    fn one_bad_value_shows_in_the_sum() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![1.0f32; 50_000];
            values[33_333] = bad;
            let (found, _) = measure(&[&Flat::Host(values.clone()), &device_flat(&values)], vec![]);
            assert!(!found[0].square_sum.is_finite() && !found[1].square_sum.is_finite());
        }
    }

    #[test]
    fn scalars_are_read_with_the_magnitudes() {
        let one = Tensor::<1>::from_data([2.5f32], &Device::flex());
        let buffers = [device_flat(&[3.0, -4.0]), Flat::Host(vec![2.0]), device_flat(&[0.0])];
        let before = reads();
        let (magnitudes, scalars) = measure(&buffers.each_ref(), vec![one]);
        assert_eq!(reads() - before, 1);
        assert_eq!(magnitudes[0], Magnitude { square_sum: 25.0, largest: 4.0 });
        assert_eq!(magnitudes[1], Magnitude { square_sum: 4.0, largest: 2.0 });
        assert_eq!(scalars, [2.5]);
    }
}
