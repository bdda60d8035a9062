//! Philox4x32-10, the counter-based random generator used for shuffles and generated data.
//!
//! A number is a function of (seed, stream, index) alone. There is no hidden state, so any part of
//! a sequence can be computed on its own, in any order and on any thread. Constants, rounds and
//! test vectors are those of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
//! 2, 3" (SC 2011). The key is the seed; the counter is (index, stream), low words first.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// One Philox4x32-10 block: four random words for a counter and a key.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    for _ in 0..ROUNDS {
        let a = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let b = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(KEY_STEPS[0]), k[1].wrapping_add(KEY_STEPS[1])];
    }
    c
}

/// What a stream of random numbers is used for. Keeps the streams of one seed apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// The order of examples or batches in an epoch.
    EpochOrder = 1,
    /// The order of examples before they are sorted by length and frozen into batches.
    Bucketing = 2,
    /// Generated examples.
    Examples = 3,
    /// The order of a corpus that is shuffled during preparation.
    CorpusOrder = 4,
    /// Very small noise that keeps the logarithm of silence finite.
    Dither = 5,
    /// The speed factor of an utterance.
    Speed = 6,
    /// Level and samples of the noise that is added to an utterance.
    Noise = 7,
    /// Positions of the masks on an utterance's features.
    Masks = 8,
    /// Which recordings are joined.
    Join = 9,
    /// The initial phases when a waveform is reconstructed from magnitudes.
    Phases = 10,
    /// The crop region of a picture.
    Crop = 11,
    /// Whether a picture is mirrored.
    Flip = 12,
    /// Which training examples form a split of their own.
    HeldOut = 13,
}

/// The random numbers of one (seed, purpose, stream), in order.
#[derive(Debug, Clone)]
pub struct RandomStream {
    key: [u32; 2],
    stream: u64,
    block: u64,
    words: [u32; 4],
    used: usize,
}

impl RandomStream {
    /// The stream `stream` of `seed` for `purpose`, from its first number. `stream` is below 2^56,
    /// e.g. an epoch or an example.
    pub fn new(seed: u64, purpose: Purpose, stream: u64) -> Self {
        let stream = ((purpose as u64) << 56) | (stream & ((1 << 56) - 1));
        Self { key: [seed as u32, (seed >> 32) as u32], stream, block: 0, words: [0; 4], used: 4 }
    }

    /// The stream of one `element` (an example of a data set) at one `step` (below 2^24, e.g. an
    /// epoch).
    pub fn of_element(seed: u64, purpose: Purpose, step: u32, element: u32) -> Self {
        Self::new(seed, purpose, (u64::from(step) << 32) | u64::from(element))
    }

    /// The next 32 uniform bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            let counter = [
                self.block as u32,
                (self.block >> 32) as u32,
                self.stream as u32,
                (self.stream >> 32) as u32,
            ];
            self.words = philox4x32(counter, self.key);
            self.block += 1;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// A uniform number below `bound`, without bias (multiply and reject). Returns 0 if `bound` is
    /// 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        // The first 2^32 mod bound of the 2^32 products are rejected, so every result is equally
        // likely.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// A uniform number in [0, 1), a multiple of 2^-32.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.next_u32()) / 2_f64.powi(32)
    }

    /// Adds independent normal numbers of mean 0 and standard deviation `deviation` (Box-Muller).
    /// All are within 6.7 standard deviations.
    pub fn add_normal(&mut self, samples: &mut [f32], deviation: f64) {
        for pair in samples.chunks_mut(2) {
            let radius = deviation * (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * self.unit()).sin_cos();
            for (sample, direction) in pair.iter_mut().zip([cosine, sine]) {
                *sample += (radius * direction) as f32;
            }
        }
    }

    /// Puts `items` into a uniformly random order (Fisher-Yates, from the last item down).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let bound = u32::try_from(i + 1).expect("indices of examples and batches are 32 bit");
            items.swap(i, self.below(bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_known_answers_of_its_authors() {
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_stream_depends_on_seed_purpose_and_stream() {
        let first = |seed, purpose, stream| RandomStream::new(seed, purpose, stream).next_u32();
        let base = first(1, Purpose::EpochOrder, 0);
        assert_eq!(base, first(1, Purpose::EpochOrder, 0));
        assert_ne!(base, first(2, Purpose::EpochOrder, 0));
        assert_ne!(base, first(1, Purpose::Bucketing, 0));
        assert_ne!(base, first(1, Purpose::EpochOrder, 1));
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut stream = RandomStream::new(7, Purpose::Examples, 0);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // The standard deviation of a count is 93; the bound is six of them.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 560), "{counts:?}");
        assert_eq!(stream.below(1), 0);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn normal_numbers_have_the_moments_of_a_normal_distribution() {
        let mut drawn = vec![0.0_f32; 100_000];
        RandomStream::new(11, Purpose::Noise, 0).add_normal(&mut drawn, 1.0);
        let moment = |power: i32| drawn.iter().map(|x| f64::from(*x).powi(power)).sum::<f64>() / 1e5;
        // Standard errors are 0.0032, 0.0045, 0.012 and 0.031.
        assert!(moment(1).abs() < 0.016 && (moment(2) - 1.0).abs() < 0.023, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 0.06 && (moment(4) - 3.0).abs() < 0.16, "{} {}", moment(3), moment(4));
        let neighbours: f64 = drawn.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / 1e5;
        assert!(neighbours.abs() < 0.016, "{neighbours}");
    }

    #[test]
    fn every_order_of_three_is_as_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for stream in 0..6_000 {
            let mut items = [0, 1, 2];
            RandomStream::new(3, Purpose::EpochOrder, stream).shuffle(&mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|&c| c.abs_diff(1_000) < 180), "{counts:?}");
    }
}
