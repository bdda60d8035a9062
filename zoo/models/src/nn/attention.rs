//! Multi-head attention with its four projections.

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::LinearInit;

use super::{Init, Linear};
use crate::Pass;
use crate::ops::{self, Segments};

/// Query, key, value and output projections around [`ops::attention`].
#[derive(Module, Debug)]
pub struct Attention {
    /// Shape `[width, width]`.
    pub query: Linear,
    /// Shape `[width, other]`.
    pub key: Linear,
    /// Shape `[width, other]`.
    pub value: Linear,
    /// Shape `[width, width]`.
    pub output: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    dropout: f64,
}

impl Attention {
    /// Builds an attention for queries of `width` and memory rows of `other` numbers. `dropout` is
    /// the drop rate of the attention weights.
    pub fn new(
        init: &Init,
        [width, other]: [usize; 2],
        heads: usize,
        bias: bool,
        scheme: LinearInit,
        dropout: f64,
    ) -> Self {
        let gain = match scheme {
            LinearInit::XavierUniform => 1.0,
            LinearInit::Fairseq => std::f64::consts::FRAC_1_SQRT_2,
        };
        let linear = |name: &str, from, gain| Linear::new(&init.at(name), from, width, bias, gain);
        Self {
            query: linear("query", width, gain),
            key: linear("key", other, gain),
            value: linear("value", other, gain),
            output: linear("output", width, 1.0),
            heads,
            dropout,
        }
    }

    /// Self-attention: rows of x attend to rows of x.
    pub fn to_itself(&self, x: Tensor<2>, segments: &Segments, pass: &mut Pass) -> Tensor<2> {
        let (k, v) = self.keys_and_values(x.clone(), pass);
        self.forward(x, k, v, segments, pass)
    }

    /// Keys and values of rows, in the compute type, as a decoder caches them.
    pub fn keys_and_values(&self, memory: Tensor<2>, pass: &Pass) -> (Tensor<2>, Tensor<2>) {
        (self.key.forward(memory.clone(), pass), self.value.forward(memory, pass))
    }

    /// x `[query rows, width]`, keys and values `[key rows, width]` -> `[query rows, width]`, in
    /// the compute type.
    pub fn forward(
        &self,
        x: Tensor<2>,
        keys: Tensor<2>,
        values: Tensor<2>,
        segments: &Segments,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let q = self.query.forward(x, pass);
        let mixed = ops::attention(q, keys, values, segments, self.heads, self.dropout, pass);
        self.output.forward(mixed, pass)
    }
}
