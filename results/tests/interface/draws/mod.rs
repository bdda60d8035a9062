//! Random numbers for tests: SplitMix64 with the Box-Muller transform, the same on every machine.

pub struct Draws {
    state: u64,
    /// The second number of a pair.
    kept: Option<f64>,
}

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, kept: None }
    }

    /// A uniform number in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A number from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        let (radius, angle) = ((-2.0 * self.uniform().ln()).sqrt(), std::f64::consts::TAU * self.uniform());
        self.kept = Some(radius * angle.sin());
        radius * angle.cos()
    }
}
