//! GPT-2 as nanoGPT trains it without biases: pre-norm blocks, learned positions, exact GELU, a
//! softmax tied to the embedding.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::language_modelling::GptModelSpec;

use crate::Pass;
use crate::nn::{Init, Linear};
use crate::ops::{self, Segments};
use crate::precision::to_f32;

/// Embeddings, blocks, and the norm before the tied softmax.
#[derive(Module, Debug)]
pub struct Gpt {
    /// Vectors of the units `[units, width]`.
    embedding: Table,
    /// Vectors of the positions `[context, width]`.
    position_embedding: Table,
    blocks: Vec<Block>,
    norm: Scale,
    #[module(skip)]
    dropout: f64,
}

/// A table of vectors.
#[derive(Module, Debug)]
struct Table {
    weight: Param<Tensor<2>>,
}

/// A layer norm without a shift.
#[derive(Module, Debug)]
struct Scale {
    /// Shape `[width]`, starts at 1.
    weight: Param<Tensor<1>>,
    #[module(skip)]
    epsilon: f64,
}

/// Self-attention and feed-forward layers, each behind a norm and added to the residual stream.
#[derive(Module, Debug)]
struct Block {
    attention_norm: Scale,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    feed_forward_norm: Scale,
    inner: Linear,
    outer: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    dropout: f64,
}

impl Scale {
    fn new(init: &Init, width: usize, epsilon: f64) -> Self {
        Self { weight: init.at("weight").constant([width], 1.0), epsilon }
    }

    fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let shift = Tensor::zeros(self.weight.dims(), &x.device());
        ops::stored(ops::layer_norm_by(x, self.weight.val(), shift, self.epsilon, pass), pass.compute)
    }
}

impl Block {
    fn new(spec: &GptModelSpec, init: &Init) -> Self {
        let width = spec.width as usize;
        let linear = |name: &str, [input, output]: [usize; 2], std: f64| Linear {
            weight: init.at(name).at("weight").normal([output, input], std),
            bias: None,
        };
        let onto_residual = spec.init_std / (2.0 * f64::from(spec.layers)).sqrt();
        Self {
            attention_norm: Scale::new(&init.at("attention_norm"), width, spec.epsilon),
            query: linear("query", [width, width], spec.init_std),
            key: linear("key", [width, width], spec.init_std),
            value: linear("value", [width, width], spec.init_std),
            output: linear("output", [width, width], onto_residual),
            feed_forward_norm: Scale::new(&init.at("feed_forward_norm"), width, spec.epsilon),
            inner: linear("inner", [width, 4 * width], spec.init_std),
            outer: linear("outer", [4 * width, width], onto_residual),
            heads: spec.heads as usize,
            dropout: spec.dropout,
        }
    }

    fn forward(&self, x: Tensor<2>, segments: &Segments, pass: &mut Pass) -> Tensor<2> {
        let normed = self.attention_norm.forward(x.clone(), pass);
        let [q, k, v] =
            [&self.query, &self.key, &self.value].map(|linear| linear.forward(normed.clone(), pass));
        let mixed = ops::attention(q, k, v, segments, self.heads, self.dropout, pass);
        let x = ops::add_dropped(x, self.output.forward(mixed, pass), self.dropout, pass);
        let normed = self.feed_forward_norm.forward(x.clone(), pass);
        let inner = ops::gelu(to_f32(self.inner.forward(normed, pass)));
        let inner = ops::stored(inner, pass.compute);
        ops::add_dropped(x, self.outer.forward(inner, pass), self.dropout, pass)
    }
}

impl Gpt {
    /// Builds a model of `units` units.
    pub(super) fn new(spec: &GptModelSpec, units: usize, init: &Init) -> Self {
        let width = spec.width as usize;
        let table = |name: &str, rows: usize| Table {
            weight: init.at(name).at("weight").normal([rows, width], spec.init_std),
        };
        Self {
            embedding: table("embedding", units),
            position_embedding: table("position_embedding", spec.context as usize),
            blocks: (0..spec.layers as usize).map(|at| Block::new(spec, &init.at("blocks").at(at))).collect(),
            norm: Scale::new(&init.at("norm"), width, spec.epsilon),
            dropout: spec.dropout,
        }
    }

    pub(super) fn device(&self) -> Device {
        self.embedding.weight.val().device()
    }

    /// What the softmax reads, `[rows x steps, width]`, of windows of up to `context` inputs.
    ///
    /// # Panics
    /// If a window is longer than the context.
    pub(super) fn outputs(&self, inputs: &[u32], rows: usize, pass: &mut Pass) -> Tensor<2> {
        let steps = inputs.len() / rows.max(1);
        let context = self.position_embedding.weight.dims()[0];
        assert!(steps <= context, "a window of {steps} units, and {context} positions");
        let ids: Vec<Option<u32>> = inputs.iter().map(|id| Some(*id)).collect();
        let places: Vec<Option<u32>> = (0..inputs.len()).map(|at| Some((at % steps) as u32)).collect();
        let x = ops::embedding(self.embedding.weight.val(), &ids)
            + ops::embedding(self.position_embedding.weight.val(), &places);
        let mut x = ops::dropout(x, self.dropout, pass);
        let segments = Segments::own(&vec![steps as u32; rows], true);
        for block in &self.blocks {
            x = block.forward(x, &segments, pass);
        }
        self.norm.forward(x, pass)
    }

    /// See [`super::LanguageModel::softmax`].
    pub(super) fn softmax(&self) -> (Tensor<2>, Option<Tensor<1>>) {
        (self.embedding.weight.val(), None)
    }
}
