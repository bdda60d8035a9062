//! Token embeddings with positions, also used as output projection.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::{EmbeddingInit, EmbeddingSpec, Positions};

use super::{Init, PositionTable};
use crate::Pass;
use crate::ops;

/// A table of token vectors.
#[derive(Module, Debug)]
pub struct Embedding {
    /// Shape `[vocabulary, width]`.
    pub weight: Param<Tensor<2>>,
    #[module(skip)]
    scale: f64,
    #[module(skip)]
    zero_id: Option<u32>,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    positions: Option<PositionTable>,
}

impl Embedding {
    /// Builds a table. `pad` embeds as zeros if the spec says so.
    pub fn new(init: &Init, spec: &EmbeddingSpec, vocabulary: usize, width: usize, pad: u32) -> Self {
        let (at, shape) = (init.at("weight"), [vocabulary, width]);
        Self {
            weight: match spec.init {
                None => at.normal(shape, spec.init_std.unwrap_or((width as f64).powf(-0.5))),
                Some(EmbeddingInit::Uniform { bound }) => at.uniform(shape, bound),
                Some(EmbeddingInit::XavierUniform) => {
                    at.uniform(shape, (6.0 / (vocabulary + width) as f64).sqrt())
                }
            },
            scale: if spec.scale { (width as f64).sqrt() } else { 1.0 },
            zero_id: spec.zero_padding.then_some(pad),
            dropout: spec.dropout,
            positions: (spec.positions != Positions::None).then(|| PositionTable::new(spec.positions, width)),
        }
    }

    /// Embeds tokens at their positions: FP32 `[tokens, width]`, with dropout applied. `None` gives
    /// zeros before the position is added.
    pub fn forward(&self, tokens: &[(Option<u32>, usize)], pass: &mut Pass) -> Tensor<2> {
        let zero_id = self.zero_id;
        let ids: Vec<Option<u32>> =
            tokens.iter().map(|&(id, _)| id.filter(|&id| Some(id) != zero_id)).collect();
        let mut x = ops::embedding(self.weight.val(), &ids);
        if self.scale != 1.0 {
            x = x * self.scale;
        }
        if let Some(positions) = &self.positions {
            let codes = positions.encode(tokens.iter().map(|&(_, position)| position), &x.device());
            x = x + codes;
        }
        ops::stored(ops::dropout(x, self.dropout, pass), pass.compute)
    }

    /// Logits of all tokens: x `[rows, width]` -> `[rows, vocabulary]`, in the compute type.
    pub fn project(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        ops::linear(x, self.weight.val(), None, pass)
    }
}
