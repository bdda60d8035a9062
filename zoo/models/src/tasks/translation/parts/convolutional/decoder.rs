//! Convolutional decoder.

use burn::module::Module;
use burn::tensor::{Int, Tensor};
use zoo_recipes::tasks::translation::{ConvolutionalDecoderSpec, SourceLength, TranslationModelSpec};

use super::{GatedConvolution, HALF, Lanes, PositionEmbedding, cost, linear, positions, sizes};
use crate::nn::{Init, NormalizedLinear};
use crate::ops::{self, Axis, Segments};
use crate::precision::to_f32;
use crate::tasks::translation::{Memory, Sources, TokenDecoder};
use crate::{Cost, Pass};

/// A stack of causal gated convolutions, each with its own attention.
#[derive(Module, Debug)]
pub struct ConvolutionalDecoder {
    pub positions: Option<PositionEmbedding>,
    /// Projection to the width of the first layer.
    pub input: NormalizedLinear,
    pub layers: Vec<DecoderLayer>,
    /// Projection to the width of the output projection's input.
    pub output: NormalizedLinear,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    kernel: usize,
    /// Whether every source of a batch counts with the length of the longest.
    #[module(skip)]
    padded: bool,
}

/// A gated convolution with its attention.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    /// Causal convolution over the target prefix.
    pub gated: GatedConvolution,
    /// Projection to the tokens' width, for the query.
    pub query: NormalizedLinear,
    /// Projection of the context to the layer's channels.
    pub context: NormalizedLinear,
}

/// Decoder state that is kept between two steps of a search.
#[derive(Debug, Clone)]
pub struct ConvolutionalCache {
    memory: Memory,
    steps: usize,
    /// For each layer, its weight `[2 channels, taps x in]` and its last inputs
    /// `[hypotheses, taps - 1, in]`, which the next step reads.
    layers: Vec<(Tensor<2>, Option<Tensor<3>>)>,
}

/// The encoder's output, and the segments that map target rows to sources.
struct Look<'a> {
    memory: &'a Memory,
    segments: &'a Segments,
    /// Square root of the source length of each row, `[rows, 1]`.
    scale: Tensor<2>,
}

impl DecoderLayer {
    /// Adds the attention's context to x, the output of the gate. `tokens` are the embedded target
    /// tokens.
    fn attended(&self, x: Tensor<2>, tokens: Tensor<2>, look: &Look<'_>, pass: &mut Pass) -> Tensor<2> {
        let query = (to_f32(self.query.forward(x.clone(), pass)) + tokens) * HALF;
        // One head without a scale, so the scale of the operation is undone.
        let size = (query.dims()[1] as f64).sqrt();
        let [query, keys, values] = [query * size, look.memory.keys.clone(), look.memory.values.clone()]
            .map(|x| pass.compute.cast(x));
        let context = to_f32(ops::attention(query, keys, values, look.segments, 1, 0.0, pass));
        let context = self.context.forward(context * look.scale.clone(), pass);
        ops::stored((to_f32(context) + x) * HALF, pass.compute)
    }
}

impl TokenDecoder for ConvolutionalDecoder {
    type Spec = ConvolutionalDecoderSpec;
    type Cache = ConvolutionalCache;

    fn new(init: &Init, spec: &ConvolutionalDecoderSpec, model: &TranslationModelSpec) -> Self {
        let width = model.width as usize;
        let sizes = sizes(&spec.layer);
        let layer = |(i, &(channels, kernel)): (usize, &([usize; 2], usize))| {
            let at = init.at("layers").at(i);
            let time = Axis::default().padded(kernel - 1, 0);
            DecoderLayer {
                gated: GatedConvolution::new(&at.at("gated"), channels, kernel, time, spec.dropout),
                query: linear(&at.at("query"), channels[1], width, 0.0),
                context: linear(&at.at("context"), width, channels[1], 0.0),
            }
        };
        let [first, _] = sizes[0].0;
        let [_, last] = sizes[sizes.len() - 1].0;
        Self {
            positions: spec
                .positions
                .map(|spec| PositionEmbedding::new(&init.at("positions"), spec, &model.embedding, width)),
            input: linear(&init.at("input"), width, first, spec.dropout),
            layers: sizes.iter().enumerate().map(layer).collect(),
            output: linear(&init.at("output"), last, model.projected_width() as usize, 0.0),
            dropout: spec.dropout,
            kernel: sizes.iter().map(|&(_, kernel)| kernel).max().unwrap_or(1),
            padded: spec.source_length == SourceLength::Padded,
        }
    }

    fn forward(&self, x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2> {
        let x = match &self.positions {
            Some(table) => table.add(x, positions(lengths)),
            None => x,
        };
        let tokens = ops::stored(ops::dropout(x, self.dropout, pass), pass.compute);
        let lanes = Lanes::new(lengths, self.kernel);
        let segments = Segments::across(lengths, &memory.lengths);
        let longest = memory.lengths.iter().copied().max().filter(|_| self.padded);
        let rows = lengths.iter().zip(&memory.lengths);
        let scale = rows.flat_map(|(&rows, &own)| std::iter::repeat_n(longest.unwrap_or(own), rows as usize));
        let look = Look { memory, segments: &segments, scale: roots(scale, &tokens) };
        let mut x = to_f32(self.input.forward(tokens.clone(), pass));
        for layer in &self.layers {
            let residual = layer.gated.residual(x.clone(), pass);
            let gated = layer.gated.gated(x, &lanes, pass);
            let sum = layer.attended(gated, tokens.clone(), &look, pass) + residual;
            x = ops::stored(sum * HALF, pass.compute);
        }
        self.finish(x, pass)
    }

    /// Computes the normalised weights in the layout of single steps.
    fn begin(&self, memory: Memory, _: &Pass) -> ConvolutionalCache {
        let layers = self.layers.iter().map(|layer| {
            let [out, input, kernel] = layer.gated.convolution.direction.dims();
            let weight = layer.gated.convolution.weight().swap_dims(1, 2).reshape([out, kernel * input]);
            (weight, None)
        });
        ConvolutionalCache { memory, steps: 0, layers: layers.collect() }
    }

    fn step(
        &self,
        x: Tensor<2>,
        cache: &mut ConvolutionalCache,
        sources: &Sources,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let tokens = match &self.positions {
            Some(table) => {
                ops::stored(table.add(x, std::iter::repeat_n(cache.steps, sources.count())), pass.compute)
            }
            None => x,
        };
        let segments = sources.segments();
        let lengths = (0..sources.count()).map(|hypothesis| sources.rows(hypothesis).len() as u32);
        let look = Look { memory: &cache.memory, segments: &segments, scale: roots(lengths, &tokens) };
        let mut x = to_f32(self.input.forward(tokens.clone(), pass));
        for (layer, (weight, window)) in self.layers.iter().zip(&mut cache.layers) {
            let [_, input, kernel] = layer.gated.convolution.direction.dims();
            let now = x.clone().unsqueeze_dim::<3>(1);
            let seen = if kernel == 1 {
                now
            } else {
                let nothing = || Tensor::zeros([sources.count(), kernel - 1, input], &now.device());
                let seen = Tensor::cat(vec![window.take().unwrap_or_else(nothing), now.clone()], 1);
                *window = Some(seen.clone().narrow(1, 1, kernel - 1));
                seen
            };
            let bias = Some(layer.gated.convolution.bias.val());
            let taps = seen.reshape([sources.count(), kernel * input]);
            let gated = ops::stored(ops::gated(ops::linear(taps, weight.clone(), bias, pass)), pass.compute);
            let residual = layer.gated.residual(x, pass);
            let sum = layer.attended(gated, tokens.clone(), &look, pass) + residual;
            x = ops::stored(sum * HALF, pass.compute);
        }
        cache.steps += 1;
        self.finish(x, pass)
    }

    fn select(cache: &mut ConvolutionalCache, rows: &Tensor<1, Int>) {
        for (_, window) in &mut cache.layers {
            *window = window.take().map(|window| window.select(0, rows.clone()));
        }
    }

    fn normalized_output(spec: &ConvolutionalDecoderSpec) -> Option<f64> {
        spec.output_bias.then_some(spec.dropout)
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let width = u64::from(model.width);
        let (first, last) = cost::ends(&spec.layer);
        let attention = |channels| {
            cost::normalized(false, [channels, width]) + cost::normalized(false, [width, channels])
        };
        let attentions: Cost =
            cost::each(&spec.layer).map(|layer| attention(u64::from(layer.channels))).sum();
        cost::positions(spec.positions, width)
            + cost::normalized(false, [width, first])
            + cost::layers(false, &spec.layer)
            + attentions
            + cost::normalized(false, [last, model.projected_width().into()])
    }
}

impl ConvolutionalDecoder {
    fn finish(&self, x: Tensor<2>, pass: &mut Pass) -> Tensor<2> {
        let out = to_f32(self.output.forward(x, pass));
        ops::dropout(out, self.dropout, pass)
    }
}

/// Square roots of lengths, `[rows, 1]`.
fn roots(lengths: impl Iterator<Item = u32>, like: &Tensor<2>) -> Tensor<2> {
    let roots: Vec<f32> = lengths.map(|length| (length as f32).sqrt()).collect();
    let rows = roots.len();
    Tensor::from_data(burn::tensor::TensorData::new(roots, [rows, 1]), &like.device())
}
