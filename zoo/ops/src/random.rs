//! Counter-based random numbers: a value is a pure function of (seed, stream, step, element).
//!
//! Random numbers have no state. A resumed run draws the numbers of an uninterrupted run, and a
//! mask can be recomputed in the backward pass instead of being stored. The mixers are the
//! finalizers of SplitMix64 (64 bits) and of Wellons' `lowbias32`.

/// Key of a group of random numbers: `stream` distinguishes call sites, `step` is the micro-step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    low: u32,
    high: u32,
}

impl Key {
    /// Key of one stream at one step.
    pub fn new(seed: u64, stream: u64, step: u64) -> Self {
        let mixed = mix64(mix64(mix64(seed ^ 0x9e37_79b9_7f4a_7c15) ^ stream) ^ step);
        Self { low: mixed as u32, high: (mixed >> 32) as u32 }
    }

    /// 32 uniform bits for an element.
    #[inline(always)]
    pub fn bits(self, element: u32) -> u32 {
        mix32(mix32(element ^ self.low).wrapping_add(self.high))
    }

    /// The two halves of the key, for kernels that compute [`Key::bits`] on a device.
    pub fn halves(self) -> (u32, u32) {
        (self.low, self.high)
    }

    /// Uniform in [0, 1), with 24 bits.
    pub fn uniform(self, element: u32) -> f32 {
        (self.bits(element) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Standard normal (Box-Muller on two uniforms of this key).
    pub fn normal(self, element: u32) -> f32 {
        let high = f64::from(self.bits(element.wrapping_mul(2)));
        let low = f64::from(self.bits(element.wrapping_mul(2).wrapping_add(1)));
        let radius = (-2.0 * ((high + 1.0) / 4_294_967_297.0).ln()).sqrt();
        (radius * (std::f64::consts::TAU * low / 4_294_967_296.0).cos()) as f32
    }
}

/// Finalizer of SplitMix64.
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Wellons' `lowbias32`.
#[inline(always)]
pub fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// FNV-1a hash of a name: derives a stream number from a parameter's path.
pub fn stream_of(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_steps_and_seeds_are_independent_draws() {
        let base: Vec<u32> = (0..1000).map(|i| Key::new(1, 2, 3).bits(i)).collect();
        for other in [Key::new(2, 2, 3), Key::new(1, 3, 3), Key::new(1, 2, 4)] {
            let equal = (0..1000).filter(|&i| other.bits(i) == base[i as usize]).count();
            assert!(equal < 3);
        }
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let key = Key::new(7, 1, 0);
        let n = 200_000u32;
        let mean = (0..n).map(|i| f64::from(key.uniform(i))).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 4.0 * (1.0f64 / 12.0 / f64::from(n)).sqrt());
        let (mut first, mut second) = (0.0, 0.0);
        for i in 0..n {
            let x = f64::from(key.normal(i));
            first += x;
            second += x * x;
        }
        assert!((first / f64::from(n)).abs() < 0.01);
        assert!((second / f64::from(n) - 1.0).abs() < 0.02);
    }
}
