//! Number of parameters and operations of a model, computed from its spec without building it.

/// Size and computation of a model or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Number of scalar parameters.
    pub parameters: u64,
    /// Multiply-adds of a forward pass for one source token, one frame of speech, or one picture.
    /// The attention between tokens is excluded.
    pub source_token: u64,
    /// Multiply-adds of a forward pass for one target token. The output projection is included, the
    /// attention between tokens is excluded.
    pub target_token: u64,
}

impl Cost {
    /// Floating-point operations of a training step. A multiply-add counts as two operations; a
    /// step has three passes (one forward, two in backward).
    pub fn training_operations(&self, source_tokens: u64, target_tokens: u64) -> f64 {
        6.0 * (self.source_token as f64 * source_tokens as f64
            + self.target_token as f64 * target_tokens as f64)
    }

    /// A matrix product with every source token (`of_source`) or every target token.
    pub fn product(of_source: bool, [input, output]: [u64; 2]) -> Self {
        let products = input * output;
        let (source_token, target_token) = if of_source { (products, 0) } else { (0, products) };
        Self { parameters: products, source_token, target_token }
    }

    /// Parameters that take part in no matrix product.
    pub fn held(parameters: u64) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// The cost of n such parts.
    pub fn times(self, n: u64) -> Self {
        Self {
            parameters: n * self.parameters,
            source_token: n * self.source_token,
            target_token: n * self.target_token,
        }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            parameters: self.parameters + other.parameters,
            source_token: self.source_token + other.source_token,
            target_token: self.target_token + other.target_token,
        }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |a, b| a + b)
    }
}
