//! Transformer stacks (Vaswani et al. 2017) with the norm before or after each sub-layer.
//!
//! Sub-layers compute in the compute type of the pass. The residual stream and the output of norms
//! are FP32 tensors; in an FP16 pass they hold values rounded to FP16 ([`ops::stored`]). All
//! sequences of a batch are packed, so nothing is computed for padding. `remove_padding`, which
//! OpenSeq2Seq has for the encoder's feed-forward part, is therefore implied.

use burn::module::Module;
use burn::tensor::{Int, Tensor};
use zoo_recipes::tasks::translation::{
    NormPlace, TransformerDecoderSpec, TransformerSpec, TranslationModelSpec,
};

use super::{TokenDecoder, TokenEncoder};
use crate::nn::{Attention, FeedForward, Init, LayerNorm};
use crate::ops::{self, Segments};
use crate::tasks::translation::{Memory, Sources};
use crate::{Cost, Pass};

/// A stack of self-attention and feed-forward layers.
#[derive(Module, Debug)]
pub struct TransformerEncoder {
    pub layers: Vec<EncoderLayer>,
    /// Norm after the last layer, for pre-norm stacks only.
    pub norm: Option<LayerNorm>,
}

/// One layer of [`TransformerEncoder`].
#[derive(Module, Debug)]
pub struct EncoderLayer {
    /// Attention over the layer's own input.
    pub self_attention: Attention,
    /// Norm of the self-attention sub-layer.
    pub self_attention_norm: LayerNorm,
    /// Position-wise feed-forward sub-layer.
    pub feed_forward: FeedForward,
    /// Norm of the feed-forward sub-layer.
    pub feed_forward_norm: LayerNorm,
    #[module(skip)]
    residual: Residual,
}

/// A stack of layers with causal self-attention, cross-attention and feed-forward sub-layers.
#[derive(Module, Debug)]
pub struct TransformerDecoder {
    pub layers: Vec<DecoderLayer>,
    /// Norm after the last layer, for pre-norm stacks only.
    pub norm: Option<LayerNorm>,
}

/// One layer of [`TransformerDecoder`].
#[derive(Module, Debug)]
pub struct DecoderLayer {
    /// Causal attention over the target prefix.
    pub self_attention: Attention,
    /// Norm of the self-attention sub-layer.
    pub self_attention_norm: LayerNorm,
    /// Attention over the encoder's output.
    pub cross_attention: Attention,
    /// Norm of the cross-attention sub-layer.
    pub cross_attention_norm: LayerNorm,
    /// Position-wise feed-forward sub-layer.
    pub feed_forward: FeedForward,
    /// Norm of the feed-forward sub-layer.
    pub feed_forward_norm: LayerNorm,
    #[module(skip)]
    residual: Residual,
}

/// How a sub-layer is joined to the residual stream: place of the norm, and dropout.
#[derive(Debug, Clone, Copy)]
struct Residual {
    place: NormPlace,
    dropout: f64,
}

impl Residual {
    fn around(
        self,
        x: Tensor<2>,
        norm: &LayerNorm,
        pass: &mut Pass,
        sublayer: impl FnOnce(Tensor<2>, &mut Pass) -> Tensor<2>,
    ) -> Tensor<2> {
        let input = match self.place {
            NormPlace::Pre => ops::stored(norm.forward_by(x.clone(), pass), pass.compute),
            NormPlace::Post => x.clone(),
        };
        let output = sublayer(input, pass);
        let sum = ops::stored(ops::add_dropped(x, output, self.dropout, pass), pass.compute);
        match self.place {
            NormPlace::Pre => sum,
            NormPlace::Post => ops::stored(norm.forward_by(sum, pass), pass.compute),
        }
    }
}

impl TokenEncoder for TransformerEncoder {
    type Spec = TransformerSpec;

    fn new(init: &Init, spec: &TransformerSpec, model: &TranslationModelSpec) -> Self {
        let width = model.width as usize;
        let layers = (0..spec.layers).map(|i| {
            let at = init.at("layers").at(i);
            EncoderLayer {
                self_attention: Attention::new(
                    &at.at("self_attention"),
                    [width, width],
                    spec.heads as usize,
                    spec.attention_bias,
                    spec.init,
                    spec.attention_dropout,
                ),
                self_attention_norm: LayerNorm::new(&at.at("self_attention_norm"), width, spec.norm_epsilon),
                feed_forward: FeedForward::new(
                    &at.at("feed_forward"),
                    width,
                    spec.ffn as usize,
                    spec.activation_dropout,
                ),
                feed_forward_norm: LayerNorm::new(&at.at("feed_forward_norm"), width, spec.norm_epsilon),
                residual: Residual { place: spec.norm, dropout: spec.dropout },
            }
        });
        Self { layers: layers.collect(), norm: final_norm(init, spec.norm, width, spec.norm_epsilon) }
    }

    fn forward(&self, mut x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory {
        let segments = Segments::own(lengths, false);
        for layer in &self.layers {
            x = layer.residual.around(x, &layer.self_attention_norm, pass, |x, pass| {
                layer.self_attention.to_itself(x, &segments, pass)
            });
            x = layer
                .residual
                .around(x, &layer.feed_forward_norm, pass, |x, pass| layer.feed_forward.forward(x, pass));
        }
        Memory::new(finish(&self.norm, x, pass), lengths)
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let width = u64::from(model.width);
        let bias = if spec.attention_bias { 4 * width } else { 0 };
        let attention = Cost::product(true, [width, width]).times(4) + Cost::held(bias);
        let layer =
            attention + cost_of_feed_forward(true, width, spec.ffn.into()) + Cost::held(2 * 2 * width);
        layer.times(spec.layers.into()) + Cost::held(size_of_final_norm(spec.norm, width))
    }
}

impl TokenDecoder for TransformerDecoder {
    type Spec = TransformerDecoderSpec;
    type Cache = TransformerCache;

    fn new(init: &Init, spec: &TransformerDecoderSpec, model: &TranslationModelSpec) -> Self {
        let (width, memory) = (model.width as usize, model.memory_width() as usize);
        let layers = (0..spec.layers).map(|i| {
            let at = init.at("layers").at(i);
            let attention = |name: &str, other: usize| {
                let (heads, rate) = (spec.heads as usize, spec.attention_dropout);
                Attention::new(&at.at(name), [width, other], heads, spec.attention_bias, spec.init, rate)
            };
            DecoderLayer {
                self_attention: attention("self_attention", width),
                self_attention_norm: LayerNorm::new(&at.at("self_attention_norm"), width, spec.norm_epsilon),
                cross_attention: attention("cross_attention", memory),
                cross_attention_norm: LayerNorm::new(
                    &at.at("cross_attention_norm"),
                    width,
                    spec.norm_epsilon,
                ),
                feed_forward: FeedForward::new(
                    &at.at("feed_forward"),
                    width,
                    spec.ffn as usize,
                    spec.activation_dropout,
                ),
                feed_forward_norm: LayerNorm::new(&at.at("feed_forward_norm"), width, spec.norm_epsilon),
                residual: Residual { place: spec.norm, dropout: spec.dropout },
            }
        });
        Self { layers: layers.collect(), norm: final_norm(init, spec.norm, width, spec.norm_epsilon) }
    }

    /// Each row attends to the rows up to itself.
    fn forward(&self, mut x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2> {
        let (own, across) = (Segments::own(lengths, true), Segments::across(lengths, &memory.lengths));
        for layer in &self.layers {
            x = layer.residual.around(x, &layer.self_attention_norm, pass, |x, pass| {
                layer.self_attention.to_itself(x, &own, pass)
            });
            x = layer.residual.around(x, &layer.cross_attention_norm, pass, |x, pass| {
                let (k, v) = layer.cross_attention.keys_and_values(memory.keys.clone(), pass);
                layer.cross_attention.forward(x, k, v, &across, pass)
            });
            x = layer
                .residual
                .around(x, &layer.feed_forward_norm, pass, |x, pass| layer.feed_forward.forward(x, pass));
        }
        finish(&self.norm, x, pass)
    }

    /// Computes keys and values of the source for every layer.
    fn begin(&self, memory: Memory, pass: &Pass) -> TransformerCache {
        let layers = self.layers.iter();
        TransformerCache {
            memory: layers
                .map(|layer| layer.cross_attention.keys_and_values(memory.keys.clone(), pass))
                .collect(),
            past: self.layers.iter().map(|_| None).collect(),
        }
    }

    fn step(
        &self,
        mut x: Tensor<2>,
        cache: &mut TransformerCache,
        sources: &Sources,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let across = sources.segments();
        let TransformerCache { memory, past } = cache;
        for ((layer, past), (memory_k, memory_v)) in self.layers.iter().zip(past).zip(memory) {
            x = layer.residual.around(x, &layer.self_attention_norm, pass, |x, pass| {
                let (k, v) = layer.self_attention.keys_and_values(x.clone(), pass);
                let (k, v) = (k.unsqueeze_dim::<3>(1), v.unsqueeze_dim::<3>(1));
                let (k, v) = match past.take() {
                    Some((old_k, old_v)) => (Tensor::cat(vec![old_k, k], 1), Tensor::cat(vec![old_v, v], 1)),
                    None => (k, v),
                };
                *past = Some((k.clone(), v.clone()));
                let [rows, steps, width] = k.dims();
                let own =
                    (0..rows).map(|i| ops::Segment { query: i, queries: 1, key: i * steps, keys: steps });
                let own = Segments::new(own.collect(), false);
                let shape = [rows * steps, width];
                layer.self_attention.forward(x, k.reshape(shape), v.reshape(shape), &own, pass)
            });
            x = layer.residual.around(x, &layer.cross_attention_norm, pass, |x, pass| {
                layer.cross_attention.forward(x, memory_k.clone(), memory_v.clone(), &across, pass)
            });
            x = layer
                .residual
                .around(x, &layer.feed_forward_norm, pass, |x, pass| layer.feed_forward.forward(x, pass));
        }
        finish(&self.norm, x, pass)
    }

    fn select(cache: &mut TransformerCache, rows: &Tensor<1, Int>) {
        for (k, v) in cache.past.iter_mut().flatten() {
            *k = k.clone().select(0, rows.clone());
            *v = v.clone().select(0, rows.clone());
        }
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let (width, memory) = (u64::from(model.width), u64::from(model.memory_width()));
        let bias = if spec.attention_bias { 8 * width } else { 0 };
        // Keys and values of the cross-attention are computed once for each source token.
        let attention = Cost::product(false, [width, width]).times(6)
            + Cost::product(true, [memory, width]).times(2)
            + Cost::held(bias);
        let layer =
            attention + cost_of_feed_forward(false, width, spec.ffn.into()) + Cost::held(3 * 2 * width);
        layer.times(spec.layers.into()) + Cost::held(size_of_final_norm(spec.norm, width))
    }
}

/// Applies the norm after the last layer, if there is one.
fn finish(norm: &Option<LayerNorm>, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
    match norm {
        Some(norm) => ops::stored(norm.forward_by(x, pass), pass.compute),
        None => x,
    }
}

/// Decoder state that is kept between two steps of a search.
#[derive(Debug, Clone)]
pub struct TransformerCache {
    /// Keys and values of the sources, one pair for each layer.
    memory: Vec<(Tensor<2>, Tensor<2>)>,
    /// Keys and values of the target prefix, one pair for each layer: `[hypotheses, steps, width]`.
    past: Vec<Option<(Tensor<3>, Tensor<3>)>>,
}

fn final_norm(init: &Init, place: NormPlace, width: usize, epsilon: f64) -> Option<LayerNorm> {
    (place == NormPlace::Pre).then(|| LayerNorm::new(&init.at("norm"), width, epsilon))
}

fn cost_of_feed_forward(of_source: bool, width: u64, inner: u64) -> Cost {
    Cost::product(of_source, [width, inner]).times(2) + Cost::held(inner + width)
}

fn size_of_final_norm(place: NormPlace, width: u64) -> u64 {
    if place == NormPlace::Pre { 2 * width } else { 0 }
}
