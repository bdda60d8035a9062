//! Sequence-to-sequence model: an encoder, a decoder, token tables and the output projection.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::{
    Architecture, DecoderSpec, DecoderStart, EmbeddingInit, EncoderSpec, ModelSpec, TokenModel, Tying,
};

use super::convolutional::ConvolutionalCache;
use super::recurrent::RecurrentCache;
use super::transformer::TransformerCache;
use super::{
    ConvolutionalDecoder, ConvolutionalEncoder, Memory, Packed, PairBatch, RecurrentDecoder,
    RecurrentEncoder, Sources, TransformerDecoder, TransformerEncoder,
};
use crate::Pass;
use crate::nn::{Embedding, Init, Linear, NormalizedLinear};
use crate::parameters::host_values;
use crate::search::{Logits, StepDecoder};

/// Sizes and special ids of the vocabularies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vocabularies {
    /// Number of rows of the source table.
    pub source: usize,
    /// Number of rows of the target table, which all target languages share. Equal to `source`
    /// where the tables are tied.
    pub target: usize,
    /// Number of target languages. Each has its own decoder.
    pub languages: usize,
    /// Id of the padding token.
    pub pad: u32,
    /// Id of the begin token.
    pub begin: u32,
    /// Id of the end token.
    pub end: u32,
}

/// Encoder of a sequence-to-sequence model.
// A model holds one value, so the size of the variants does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Encoder {
    Transformer(TransformerEncoder),
    Recurrent(RecurrentEncoder),
    Convolutional(ConvolutionalEncoder),
}

/// Decoder of a sequence-to-sequence model.
#[derive(Module, Debug)]
pub enum Decoder {
    /// Self-attention and cross-attention.
    Transformer(TransformerDecoder),
    /// Recurrent layers with attention.
    Recurrent(RecurrentDecoder),
    /// Gated convolutions with attention.
    Convolutional(ConvolutionalDecoder),
}

/// Decoder state that is kept between two steps of a search.
// A search holds one value, so the size of the variants does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
enum Cache {
    Transformer(TransformerCache),
    Recurrent(RecurrentCache),
    Convolutional(ConvolutionalCache),
}

/// Output projection that is not tied to a token table.
#[derive(Module, Debug)]
pub enum Output {
    /// A plain linear layer.
    Linear(Linear),
    /// A weight-normalised layer, as in the rest of a convolutional decoder.
    Normalized(NormalizedLinear),
}

/// A sequence-to-sequence model.
#[derive(Module, Debug)]
pub struct Seq2Seq {
    /// Source token table. Also the target table and the output projection where all three are
    /// tied.
    pub embedding: Embedding,
    /// Target token table. Also the output projection where the decoder's tables are tied.
    pub target_embedding: Option<Embedding>,
    /// Output projection, where it is not tied.
    pub output: Option<Output>,
    pub encoder: Encoder,
    /// The decoder, or the decoder of the first of several target languages.
    pub decoder: Decoder,
    /// Decoders of the second and further target languages.
    pub further_decoders: Vec<Decoder>,
    #[module(skip)]
    start: Option<u32>,
}

impl Encoder {
    fn new(init: &Init, model: TokenModel<'_>) -> Self {
        let width = model.width as usize;
        match model.encoder {
            EncoderSpec::Transformer(spec) => Self::Transformer(TransformerEncoder::new(init, spec, width)),
            EncoderSpec::Recurrent(spec) => Self::Recurrent(RecurrentEncoder::new(init, spec, width)),
            EncoderSpec::Convolutional(spec) => {
                Self::Convolutional(ConvolutionalEncoder::new(init, spec, model.embedding, width))
            }
            EncoderSpec::Acoustic(_) | EncoderSpec::Tacotron(_) => unreachable!("a model of tokens"),
        }
    }

    /// x `[rows, width]` FP32 -> encoder output.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory {
        match self {
            Self::Transformer(encoder) => Memory::new(encoder.forward(x, lengths, pass), lengths),
            Self::Recurrent(encoder) => encoder.forward(x, lengths, pass),
            Self::Convolutional(encoder) => encoder.forward(x, lengths, pass),
        }
    }
}

impl Decoder {
    fn new(init: &Init, model: TokenModel<'_>) -> Self {
        let (width, memory) = (model.width as usize, model.memory_width() as usize);
        match model.decoder {
            DecoderSpec::Transformer(spec) => {
                Self::Transformer(TransformerDecoder::new(init, spec, width, memory))
            }
            DecoderSpec::Recurrent(spec) => Self::Recurrent(RecurrentDecoder::new(init, spec, width, memory)),
            DecoderSpec::Convolutional(spec) => {
                Self::Convolutional(ConvolutionalDecoder::new(init, spec, model.embedding, width))
            }
            DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_) => unreachable!("a model of tokens"),
        }
    }

    /// x `[target rows, width]` FP32 -> input of the output projection.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2> {
        match self {
            Self::Transformer(decoder) => decoder.forward(x, lengths, memory, pass),
            Self::Recurrent(decoder) => decoder.forward(x, lengths, memory, pass),
            Self::Convolutional(decoder) => decoder.forward(x, lengths, memory, pass),
        }
    }

    fn begin(&self, memory: Memory, pass: &Pass) -> Cache {
        match self {
            Self::Transformer(decoder) => Cache::Transformer(decoder.begin(&memory, pass)),
            Self::Recurrent(decoder) => Cache::Recurrent(decoder.begin(&memory, pass)),
            Self::Convolutional(decoder) => Cache::Convolutional(decoder.begin(memory)),
        }
    }

    /// x `[hypotheses, width]` FP32 -> input of the output projection.
    fn step(&self, x: Tensor<2>, cache: &mut Cache, sources: &Sources, pass: &mut Pass) -> Tensor<2> {
        match (self, cache) {
            (Self::Transformer(decoder), Cache::Transformer(cache)) => decoder.step(x, cache, sources, pass),
            (Self::Recurrent(decoder), Cache::Recurrent(cache)) => decoder.step(x, cache, sources, pass),
            (Self::Convolutional(decoder), Cache::Convolutional(cache)) => {
                decoder.step(x, cache, sources, pass)
            }
            _ => unreachable!("a cache is made by its decoder"),
        }
    }
}

impl Cache {
    fn select(&mut self, rows: &Tensor<1, Int>) {
        match self {
            Self::Transformer(cache) => cache.select(rows),
            Self::Recurrent(cache) => cache.select(rows),
            Self::Convolutional(cache) => cache.select(rows),
        }
    }
}

impl Output {
    fn new(init: &Init, model: TokenModel<'_>, vocabulary: usize) -> Self {
        let (width, bias) = (model.projected_width() as usize, model.decoder.output_bias());
        if let DecoderSpec::Convolutional(spec) = model.decoder
            && bias
        {
            let std = ((1.0 - spec.dropout) / width as f64).sqrt();
            return Self::Normalized(NormalizedLinear::new(init, width, vocabulary, std));
        }
        let mut linear = Linear::new(init, width, vocabulary, bias, 1.0);
        if let Some(EmbeddingInit::Uniform { bound }) = model.embedding.init {
            linear.weight = init.at("weight").uniform([vocabulary, width], bound);
            linear.bias = bias.then(|| init.at("bias").uniform([vocabulary], bound));
        }
        Self::Linear(linear)
    }
}

impl Seq2Seq {
    /// Builds a model with fresh parameters, which are a function of the seed. They are tracked on
    /// an autodiff device.
    ///
    /// # Panics
    /// If the spec does not describe a token model. The spec of a validated text recipe does.
    pub fn new(spec: &ModelSpec, vocabularies: &Vocabularies, seed: u64, device: &Device) -> Self {
        let Some(Architecture::Tokens(model)) = spec.architecture() else { panic!("a model of tokens") };
        let (width, tied) = (model.width as usize, model.embedding.tied);
        let init = Init::new(seed, device);
        let table =
            |name: &str, rows| Embedding::new(&init.at(name), model.embedding, rows, width, vocabularies.pad);
        let own_target = matches!(tied, Tying::Decoder | Tying::None);
        let own_output = matches!(tied, Tying::Inputs | Tying::None);
        Self {
            embedding: table("embedding", vocabularies.source),
            target_embedding: own_target.then(|| table("target_embedding", vocabularies.target)),
            output: own_output.then(|| Output::new(&init.at("output"), model, vocabularies.target)),
            encoder: Encoder::new(&init.at("encoder"), model),
            decoder: Decoder::new(&init.at("decoder"), model),
            further_decoders: (1..vocabularies.languages)
                .map(|i| Decoder::new(&init.at("further_decoders").at(i - 1), model))
                .collect(),
            start: match model.decoder.start() {
                Some(DecoderStart::Zeros) | None => None,
                Some(DecoderStart::End) => Some(vocabularies.end),
                Some(DecoderStart::Begin) => Some(vocabularies.begin),
            },
        }
    }

    /// Input of the encoder: `[source rows, width]`, FP32.
    pub fn embed_source(&self, source: &Packed, pass: &mut Pass) -> Tensor<2> {
        let places = source.sequences().flat_map(|s| s.iter().enumerate().map(|(i, &id)| (Some(id), i)));
        self.embedding.forward(&places.collect::<Vec<_>>(), pass)
    }

    /// Input of the decoder for teacher forcing: the targets shifted right by one, after the start
    /// token. Shape `[target rows, width]`, FP32.
    pub fn embed_target(&self, target: &Packed, pass: &mut Pass) -> Tensor<2> {
        let mut places = Vec::with_capacity(target.tokens.len());
        for sequence in target.sequences() {
            let shifted = std::iter::once(self.start).chain(sequence.iter().map(|&id| Some(id)));
            places.extend(shifted.take(sequence.len()).enumerate().map(|(i, id)| (id, i)));
        }
        self.targets().forward(&places, pass)
    }

    /// Runs the encoder on the sources.
    pub fn encode(&self, source: &Packed, pass: &mut Pass) -> Memory {
        let x = self.embed_source(source, pass);
        self.encoder.forward(x, &source.lengths, pass)
    }

    /// Logits of every target position with teacher forcing: `[target rows, vocabulary]`, in the
    /// compute type.
    pub fn logits(&self, batch: &PairBatch, pass: &mut Pass) -> Tensor<2> {
        let memory = self.encode(&batch.source, pass);
        let x = self.embed_target(&batch.target, pass);
        let x = self.decoder(batch.language).forward(x, &batch.target.lengths, &memory, pass);
        self.project(x, pass)
    }

    fn decoder(&self, language: usize) -> &Decoder {
        match language.checked_sub(1) {
            None => &self.decoder,
            Some(further) => &self.further_decoders[further],
        }
    }

    fn targets(&self) -> &Embedding {
        self.target_embedding.as_ref().unwrap_or(&self.embedding)
    }

    fn project(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match &self.output {
            Some(Output::Linear(output)) => output.forward(x, pass),
            Some(Output::Normalized(output)) => output.forward(x, pass),
            None => self.targets().project(x, pass),
        }
    }
}

/// State of a search between two steps.
#[derive(Debug)]
pub struct DecodingState {
    pass: Pass,
    cache: Cache,
    sources: Sources,
    steps: usize,
}

/// A model with the decoder of one target language, for a search.
#[derive(Debug)]
pub struct Writer<'m> {
    model: &'m Seq2Seq,
    decoder: &'m Decoder,
    pass: Pass,
}

impl<'m> Writer<'m> {
    /// Selects a target language by its index, which is below [`Vocabularies::languages`].
    pub fn new(model: &'m Seq2Seq, language: usize, pass: Pass) -> Self {
        Self { model, decoder: model.decoder(language), pass }
    }
}

impl StepDecoder for Writer<'_> {
    type State = DecodingState;

    fn begin(&self, sources: &Packed) -> DecodingState {
        let mut pass = self.pass.clone();
        let memory = self.model.encode(sources, &mut pass);
        let cache = self.decoder.begin(memory, &pass);
        DecodingState { cache, sources: Sources::new(&sources.lengths), steps: 0, pass }
    }

    fn step(&self, state: &mut DecodingState, last: Option<&[u32]>) -> Logits {
        let model = self.model;
        let rows = state.sources.count();
        let tokens: Vec<_> = match last {
            Some(last) => last.iter().map(|&id| (Some(id), state.steps)).collect(),
            None => vec![(model.start, 0); rows],
        };
        assert_eq!(tokens.len(), rows, "a token for every hypothesis");
        let pass = &mut state.pass;
        let x = model.targets().forward(&tokens, pass);
        let x = self.decoder.step(x, &mut state.cache, &state.sources, pass);
        let logits = model.project(x, pass);
        state.steps += 1;
        let [_, vocabulary] = logits.dims();
        Logits { vocabulary, values: host_values(logits) }
    }

    fn select(&self, state: &mut DecodingState, rows: &[usize]) {
        if rows.len() == state.sources.count() && rows.iter().enumerate().all(|(i, &row)| i == row) {
            return;
        }
        state.sources.select(rows);
        let index: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let device = self.model.embedding.weight.device();
        let index = Tensor::<1, Int>::from_data(TensorData::new(index, [rows.len()]), &device);
        state.cache.select(&index);
    }

    fn attention(&self, state: &DecodingState) -> Option<Vec<f32>> {
        match &state.cache {
            Cache::Recurrent(cache) => cache.weights.clone().map(host_values),
            Cache::Transformer(_) | Cache::Convolutional(_) => None,
        }
    }
}
