//! Autoregressive decoder of spectrogram frames.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::tasks::speech_synthesis::{StopReads, TacotronDecoderSpec};

use super::attention::LocationAttention;
use super::encoder::lstm_bound;
use super::prenet::{At, Prenet};
use super::start;
use crate::Pass;
use crate::nn::{Init, Linear, Lstm, LstmState, Recurrent};
use crate::ops::{
    self, AttentiveLayer, AttentiveSpec, AttentiveWeights, Hearing, Looking, Sequences, Source,
};
use crate::precision::to_f32;

/// Pre-net, LSTM layers with attention, and the projections to a frame and to its stop logit.
#[derive(Module, Debug)]
pub struct TacotronDecoder {
    prenet: Prenet,
    /// The layers in the attention's loop, then the layers above it.
    layers: Vec<Lstm>,
    attention: LocationAttention,
    /// Shape `[mels, hidden + memory]`.
    frame: Linear,
    /// Shape `[1, hidden + memory]` or `[1, mels]`.
    stop: Linear,
    #[module(skip)]
    how: How,
}

#[derive(Debug, Clone, Copy)]
struct How {
    asking: usize,
    dropout: f64,
    state_dropout: bool,
    stop: StopReads,
}

/// Decoder output: frames, stop logits and attention weights.
#[derive(Debug, Clone)]
pub struct Written {
    /// Shape `[sequences x frames, mels]`, FP32.
    pub frames: Tensor<2>,
    /// Stop logits `[sequences x frames]`, FP32.
    pub stops: Tensor<1>,
    /// Attention weights `[frames, symbols of all texts]`.
    pub weights: Tensor<2>,
}

/// State of a free-running decoder, which is fed its own output.
#[derive(Debug, Clone)]
pub struct Speaking {
    weights: AttentiveWeights,
    looking: Looking,
    hearing: Hearing,
    above: Vec<Option<LstmState>>,
    last: Tensor<2>,
    frames: usize,
}

impl TacotronDecoder {
    /// Builds the decoder for frames of `mels` bands and encoder output of width `memory`.
    pub fn new(init: &Init, spec: &TacotronDecoderSpec, mels: usize, memory: usize) -> Self {
        let (hidden, from) = (spec.units as usize, spec.init);
        let asking = spec.asking_layer as usize;
        let first = spec.prenet.units.last().map_or(mels, |&units| units as usize) + memory;
        let layer = |i: usize| {
            let input = match i {
                0 => first,
                _ if i < asking => hidden,
                _ if i == asking => hidden + memory,
                _ => hidden,
            };
            let bound = lstm_bound(from, input, hidden);
            let forget = spec.forget_bias.map(|bias| bias as f32);
            Lstm::new(&init.at("layers").at(i), input, hidden, spec.biases.into(), bound, forget)
        };
        let read = hidden + memory;
        let stop_reads = match spec.stop_reads {
            StopReads::Output => read,
            StopReads::Frame => mels,
        };
        Self {
            prenet: Prenet::new(&init.at("prenet"), &spec.prenet, mels, from),
            layers: (0..spec.layers as usize).map(layer).collect(),
            attention: LocationAttention::new(&init.at("attention"), &spec.attention, [hidden, memory], from),
            frame: start::linear(&init.at("frame"), read, mels, true, 1.0, from),
            stop: start::linear(&init.at("stop"), stop_reads, 1, true, 1.0, from),
            how: How {
                asking,
                dropout: spec.dropout,
                state_dropout: spec.state_dropout,
                stop: spec.stop_reads,
            },
        }
    }

    /// Runs all frames at once with teacher forcing. `before` `[sequences x frames, mels]` holds
    /// the true frame before each frame.
    pub fn forward(&self, before: Tensor<2>, source: &Source, pass: &mut Pass) -> Written {
        let sequences = source.lengths.len();
        let frames = before.dims()[0] / sequences.max(1);
        let at = At { sequences, first: 0, frames };
        let gates = self.gates(before, at, pass);
        let spec = AttentiveSpec {
            channels: self.attention.channels(),
            dropout: self.how.dropout,
            state_dropout: self.how.state_dropout,
        };
        let (mut out, weights) = ops::attentive_lstm(gates, &self.loop_weights(), source, spec, pass);
        let [rows, width] = out.dims();
        let hidden = self.hidden();
        if self.layers.len() > self.how.asking {
            let found = out.clone().narrow(1, hidden, width - hidden);
            let each = Sequences::new(&vec![frames as u32; sequences]);
            for layer in &self.layers[self.how.asking..] {
                out = self.above(layer, out, &each, pass);
            }
            out = Tensor::cat(vec![out, found], 1);
        }
        let (frames, stops) = self.projected(out, pass);
        Written { frames, stops: stops.reshape([rows]), weights }
    }

    /// Runs a layer above the loop over whole sequences.
    fn above(&self, layer: &Lstm, x: Tensor<2>, each: &Sequences, pass: &mut Pass) -> Tensor<2> {
        if !self.how.state_dropout {
            let out = to_f32(layer.forward(x, each, None, pass).0);
            return ops::dropout(out, self.how.dropout, pass);
        }
        let gates = ops::linear(x, layer.weight_ih.val(), bias(layer), pass);
        to_f32(ops::lstm_dropping_states(gates, layer.weight_hh.val(), self.how.dropout, each, pass))
    }

    /// State before the first frame.
    pub fn begin(&self, source: &Source) -> Speaking {
        let weights = self.loop_weights();
        let looking = Looking::new(source);
        let hearing = Hearing::new(&weights, &looking);
        let mels = self.frame.weight.dims()[0];
        let last = Tensor::zeros([source.lengths.len(), mels], &source.keys.device());
        let above = vec![None; self.layers.len() - self.how.asking];
        Speaking { weights, looking, hearing, above, last, frames: 0 }
    }

    /// Computes one more frame of each sequence in an evaluation pass: frames `[sequences, mels]`,
    /// stop logits `[sequences]` and weights `[sequences, longest text]`.
    pub fn step(&self, speaking: &mut Speaking, pass: &mut Pass) -> (Tensor<2>, Tensor<1>, Tensor<2>) {
        let sequences = speaking.last.dims()[0];
        let at = At { sequences, first: speaking.frames, frames: 1 };
        let gates = self.gates(speaking.last.clone(), at, pass);
        let Speaking { weights, looking, hearing, .. } = speaking;
        let mut out = hearing.step(gates, weights, looking, self.attention.channels(), pass);
        let (hidden, width) = (self.hidden(), out.dims()[1]);
        if !speaking.above.is_empty() {
            let found = out.clone().narrow(1, hidden, width - hidden);
            for (layer, state) in self.layers[self.how.asking..].iter().zip(&mut speaking.above) {
                let (y, next) = layer.step(out, state.take(), pass);
                *state = Some(next);
                out = to_f32(y);
            }
            out = Tensor::cat(vec![out, found], 1);
        }
        let (frame, stop) = self.projected(out, pass);
        speaking.last = frame.clone();
        speaking.frames += 1;
        (frame, stop.reshape([sequences]), speaking.hearing.weights())
    }

    /// Attention input: the encoder output of all texts, concatenated.
    pub fn source(&self, memory: Tensor<2>, lengths: &[u32], pass: &Pass) -> Source {
        self.attention.about(memory, lengths, pass)
    }

    fn hidden(&self) -> usize {
        self.layers[0].weight_hh.dims()[1]
    }

    /// Contribution of the previous frames to the gates of the first layer.
    fn gates(&self, before: Tensor<2>, at: At, pass: &mut Pass) -> Tensor<2> {
        let x = self.prenet.forward(before, at, pass);
        let outside = x.dims()[1];
        let weight = self.layers[0].weight_ih.val().narrow(1, 0, outside);
        to_f32(ops::linear(x, weight, bias(&self.layers[0]), pass))
    }

    fn loop_weights(&self) -> AttentiveWeights {
        let memory = self.attention.memory.weight.dims()[1];
        let layer = |(i, layer): (usize, &Lstm)| {
            let input = layer.weight_ih.val();
            let width = input.dims()[1];
            // The gates already contain the contribution of the pre-net.
            let inside = if i == 0 { input.narrow(1, width - memory, memory) } else { input };
            let weight = Tensor::cat(vec![inside, layer.weight_hh.val()], 1);
            AttentiveLayer { weight, bias: (i > 0).then(|| bias(layer)).flatten() }
        };
        let (filter, bias) = self.attention.joined();
        AttentiveWeights {
            layers: self.layers[..self.how.asking].iter().enumerate().map(layer).collect(),
            query: self.attention.query.weight.val(),
            filter,
            bias,
            vector: self.attention.vector.val(),
        }
    }

    /// Frames, and stop logits `[rows, 1]`. It avoids a product with a one-column matrix: fused on
    /// CUDA, such a product has given wrong results.
    fn projected(&self, x: Tensor<2>, pass: &Pass) -> (Tensor<2>, Tensor<2>) {
        let mels = self.frame.weight.dims()[0];
        match self.how.stop {
            StopReads::Output => {
                let weight = Tensor::cat(vec![self.frame.weight.val(), self.stop.weight.val()], 0);
                let both = |linear: &Linear| linear.bias.as_ref().map(Param::val);
                let bias = both(&self.frame).zip(both(&self.stop)).map(|(a, b)| Tensor::cat(vec![a, b], 0));
                let out = to_f32(ops::linear(x, weight, bias, pass));
                (out.clone().narrow(1, 0, mels), out.narrow(1, mels, 1))
            }
            StopReads::Frame => {
                let frames = to_f32(self.frame.forward(x, pass));
                let stop = (frames.clone() * self.stop.weight.val()).sum_dim(1);
                let stop = match &self.stop.bias {
                    Some(bias) => stop + bias.val().unsqueeze(),
                    None => stop,
                };
                (frames, stop)
            }
        }
    }
}

/// Sum of both biases of a layer.
fn bias(layer: &Lstm) -> Option<Tensor<1>> {
    match (&layer.bias_ih, &layer.bias_hh) {
        (Some(a), Some(b)) => Some(a.val() + b.val()),
        (a, b) => a.as_ref().or(b.as_ref()).map(Param::val),
    }
}
