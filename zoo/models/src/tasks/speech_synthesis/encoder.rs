//! Text encoder.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use zoo_recipes::tasks::speech_synthesis::{SynthesisInit, TacotronEncoderSpec};

use super::convolutions::{Behind, FrameConvolution};
use crate::Pass;
use crate::nn::{Bidirectional, Channels, Init, Lstm};
use crate::ops::{self, Sequences, Statistics};
use crate::precision::to_f32;

/// Encodes symbols to the rows that the decoder attends to.
#[derive(Module, Debug)]
pub struct TacotronEncoder {
    /// Shape `[symbols, width]`.
    pub embedding: Param<Tensor<2>>,
    convolutions: Vec<FrameConvolution>,
    lstm: Bidirectional<Lstm>,
    #[module(skip)]
    reads_padding: bool,
}

/// Id of the symbol that pads texts in training.
const PADDING: u32 = 0;

impl TacotronEncoder {
    /// Builds the encoder for a table of `symbols` symbols.
    pub fn new(init: &Init, spec: &TacotronEncoderSpec, symbols: usize) -> Self {
        let (width, units) = (spec.width as usize, spec.units as usize);
        let channels = spec.convolutions.channels as usize;
        let convolution = |i: u32| {
            let input = if i == 0 { width } else { channels };
            let at = init.at("convolutions").at(i);
            let between = Channels::new(input, channels);
            FrameConvolution::new(&at, &spec.convolutions, between, Behind::Relu, spec.init)
        };
        let input = if spec.convolutions.layers == 0 { width } else { channels };
        let lstm = |init: &Init| {
            Lstm::new(init, input, units, spec.biases.into(), lstm_bound(spec.init, input, units), None)
        };
        Self {
            // The bound of Xavier's uniform distribution, for a standard deviation of sqrt(2 /
            // (symbols + width)).
            embedding: init
                .at("embedding")
                .uniform([symbols, width], (6.0 / (symbols + width) as f64).sqrt()),
            convolutions: (0..spec.convolutions.layers).map(convolution).collect(),
            lstm: Bidirectional::new(&init.at("lstm"), lstm),
            reads_padding: spec.reads_padding,
        }
    }

    /// Encodes texts to `[symbols of all, 2 units]` FP32, concatenated. In training padding is read
    /// as symbol 0, as published. Otherwise the output for a text does not depend on the other
    /// texts.
    pub fn forward(&self, texts: &[Vec<u32>], pass: &mut Pass, seen: &mut Vec<Statistics>) -> Tensor<2> {
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let training = pass.is_training();
        let padding = training.then_some(PADDING);
        let ids: Vec<Option<u32>> = texts
            .iter()
            .flat_map(|text| (0..longest).map(move |i| text.get(i).copied().or(padding)))
            .collect();
        let x = ops::stored(ops::embedding(self.embedding.val(), &ids), pass.compute);
        let width = x.dims()[1];
        let mut x = x.reshape([texts.len(), longest, width]);
        let counted = (!training).then_some(&lengths[..]);
        for convolution in &self.convolutions {
            x = convolution.forward(x, counted, pass, seen);
        }
        let [count, longest, channels] = x.dims();
        let rows = x.reshape([count * longest, channels]);
        let places: Vec<i32> = lengths
            .iter()
            .enumerate()
            .flat_map(|(i, &length)| (0..length).map(move |at| (i * longest + at) as i32))
            .collect();
        let places =
            Tensor::<1, Int>::from_data(TensorData::new(places.clone(), [places.len()]), &rows.device());
        let of = |lengths: Vec<u32>| Sequences::new(&lengths);
        if self.reads_padding && training {
            let sequences = of(vec![longest as u32; count]);
            let (out, _) = self.lstm.forward(rows, &sequences, None, pass);
            return to_f32(out).select(0, places);
        }
        let sequences = of(lengths.iter().map(|&length| length as u32).collect());
        to_f32(self.lstm.forward(rows.select(0, places), &sequences, None, pass).0)
    }

    /// Updates the running statistics of the norms.
    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s Statistics>) -> Self {
        Self { convolutions: self.convolutions.into_iter().map(|layer| layer.fold(seen)).collect(), ..self }
    }
}

/// Bound of the uniform initialisation of an LSTM's weights.
pub(super) fn lstm_bound(init: SynthesisInit, input: usize, units: usize) -> f64 {
    match init {
        SynthesisInit::Nvidia => (units as f64).powf(-0.5),
        SynthesisInit::Openseq2seq => (6.0 / (input + units + 4 * units) as f64).sqrt(),
    }
}
