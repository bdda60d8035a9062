//! NumPy's `default_rng(seed).integers(0, n)`: SeedSequence, PCG64 (XSL-RR), and Lemire's bounded
//! numbers from 32-bit halves. sacreBLEU draws its resamples this way. Reproducing it exactly makes
//! the intervals equal to sacreBLEU's.

/// A stream of indices below 2^32.
#[derive(Debug, Clone)]
pub(crate) struct NumpyRandom {
    state: u128,
    increment: u128,
    /// The upper half of the last 64-bit output, until it is used.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

impl NumpyRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let words = seed_sequence(seed);
        let pair = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let increment = pair(words[2], words[3]) << 1 | 1;
        let mut random = NumpyRandom { state: 0, increment, half: None };
        random.step();
        random.state = random.state.wrapping_add(pair(words[0], words[1]));
        random.step();
        random
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(high) = self.half.take() {
            return high;
        }
        let both = self.next_u64();
        self.half = Some((both >> 32) as u32);
        both as u32
    }

    /// A number from 0 to `n` - 1. Returns 0 without a draw if `n` is 0 or 1.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        if n <= 1 {
            return 0;
        }
        let mut product = u64::from(self.next_u32()) * u64::from(n);
        if (product as u32) < n {
            let threshold = (u32::MAX - (n - 1)) % n;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }
}

/// NumPy's `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_sequence(seed: u64) -> [u64; 4] {
    fn hash(mut value: u32, constant: &mut u32, multiplier: u32) -> u32 {
        value ^= *constant;
        *constant = constant.wrapping_mul(multiplier);
        value = value.wrapping_mul(*constant);
        value ^ value >> 16
    }
    fn mix(x: u32, y: u32) -> u32 {
        let mixed = x.wrapping_mul(0xCA01_F9DD).wrapping_sub(y.wrapping_mul(0x4973_F715));
        mixed ^ mixed >> 16
    }
    let mut constant = 0x43B0_D7E5;
    let entropy = [seed as u32, (seed >> 32) as u32, 0, 0];
    let mut pool = entropy.map(|word| hash(word, &mut constant, 0x931E_8875));
    for source in 0..4 {
        for target in 0..4 {
            if source != target {
                pool[target] = mix(pool[target], hash(pool[source], &mut constant, 0x931E_8875));
            }
        }
    }
    let mut constant = 0x8B51_F9DD;
    let words: [u32; 8] = std::array::from_fn(|i| hash(pool[i % 4], &mut constant, 0x58F3_8DED));
    std::array::from_fn(|i| u64::from(words[2 * i + 1]) << 32 | u64::from(words[2 * i]))
}

#[cfg(test)]
#[path = "numpy_random_tests.rs"]
mod tests;
