//! Number of parameters and operations of a synthesiser, computed from its spec without building
//! it.

use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::speech_synthesis::{FrameConvolutionsSpec, StopReads, SynthesisModelSpec};

use super::FrameWidth;
use crate::Cost;

/// Counts the parameters and operations of a spec. Parameters are the trained numbers, without
/// running statistics of batch norms. Operations are those of one input symbol and of one output
/// frame. The part of a frame's cost that grows with its text (attention over every symbol) is
/// excluded.
pub fn cost(spec: &SynthesisModelSpec, symbols: u64, width: FrameWidth) -> Cost {
    let (mels, bins) = (width.mels as u64, width.bins as u64);
    let (encoder, decoder) = spec.parts();
    let embedding = symbols * u64::from(encoder.width);
    let layers = &encoder.convolutions;
    let ends = (u64::from(encoder.width), u64::from(layers.channels));
    let (convolutions, of_convolutions) = stack(layers, ends);
    let read = if layers.layers == 0 { encoder.width } else { layers.channels };
    let (lstm, of_lstm) = lstm(read.into(), encoder.units.into(), encoder.biases);
    let memory = 2 * u64::from(encoder.units);
    let mut parameters = embedding + convolutions + 2 * lstm;
    let mut frame = 0;

    let mut input = mels;
    for &units in &decoder.prenet.units {
        let units = u64::from(units);
        parameters += input * units + if decoder.prenet.bias { units } else { 0 };
        frame += input * units;
        input = units;
    }
    let hidden = u64::from(decoder.units);
    for i in 0..decoder.layers {
        let from = match i {
            0 => input + memory,
            _ if i == decoder.asking_layer => hidden + memory,
            _ => hidden,
        };
        let (layer, products) = self::lstm(from, hidden, decoder.biases);
        parameters += layer;
        frame += products;
    }
    let attention = &decoder.attention;
    let (units, filters) = (u64::from(attention.units), u64::from(attention.filters));
    let channels = if attention.last_weights { 2 } else { 1 };
    parameters += units * (hidden + memory + filters + 1) + filters * channels * u64::from(attention.kernel);
    parameters += if attention.bias { units + filters } else { 0 };
    frame += units * hidden;
    let output = hidden + memory;
    let stop = match decoder.stop_reads {
        StopReads::Output => output,
        StopReads::Frame => mels,
    };
    parameters += (output + 1) * mels + stop + 1;
    frame += output * mels + stop;

    let (postnet, of_postnet) = postnet(&decoder.postnet, mels);
    parameters += postnet;
    frame += of_postnet;
    if let Some(magnitudes) = decoder.magnitudes.as_ref().filter(|_| bins > 0) {
        let mut input = mels;
        for &channels in &magnitudes.channels {
            let channels = u64::from(channels);
            let products = input * channels * u64::from(magnitudes.kernel);
            parameters += products + if magnitudes.norm.affine { 2 * channels } else { 0 };
            frame += products;
            input = channels;
        }
        parameters += input * bins;
        frame += input * bins;
    }
    Cost { parameters, source_token: of_convolutions + 2 * of_lstm + memory * units, target_token: frame }
}

/// One LSTM: parameters, and multiply-adds of a step.
fn lstm(input: u64, units: u64, biases: RecurrentBiases) -> (u64, u64) {
    let products = 4 * units * (input + units);
    let vectors = match biases {
        RecurrentBiases::OneOfZeros => 1,
        RecurrentBiases::SecondOfZeros | RecurrentBiases::Two | RecurrentBiases::TwoOfZeros => 2,
    };
    (products + vectors * 4 * units, products)
}

/// One convolution of a spec: parameters, and multiply-adds of a step.
fn convolution(spec: &FrameConvolutionsSpec, [input, output]: [u64; 2]) -> (u64, u64) {
    let products = input * output * u64::from(spec.kernel);
    let vectors = if spec.bias { output } else { 0 } + if spec.norm.affine { 2 * output } else { 0 };
    (products + vectors, products)
}

/// All convolutions of a spec, from `first` to `channels`.
fn stack(spec: &FrameConvolutionsSpec, (first, channels): (u64, u64)) -> (u64, u64) {
    let each = (0..spec.layers).map(|i| convolution(spec, [if i == 0 { first } else { channels }, channels]));
    each.fold((0, 0), |(parameters, products), (p, o)| (parameters + p, products + o))
}

/// All convolutions of a post-net; the first reads frames and the last outputs frames.
fn postnet(spec: &FrameConvolutionsSpec, mels: u64) -> (u64, u64) {
    let channels = u64::from(spec.channels);
    let each = (0..spec.layers).map(|i| {
        let edge = |edge: bool| if edge { mels } else { channels };
        convolution(spec, [edge(i == 0), edge(i + 1 == spec.layers)])
    });
    each.fold((0, 0), |(parameters, products), (p, o)| (parameters + p, products + o))
}
