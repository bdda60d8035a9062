//! Sequence-to-sequence model: an encoder, a decoder, token tables and the output projection.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::EmbeddingInit;
use zoo_recipes::tasks::translation::{DecoderStart, TranslationModelSpec};

use super::parts::{Cache, Decoder, Encoder};
use super::{Memory, PairBatch, Sources};
use crate::nn::{Embedding, Init, Linear, NormalizedLinear};
use crate::parameters::host_values;
use crate::search::{Logits, StepDecoder};
use crate::{Packed, Pass};

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

impl Output {
    fn new(init: &Init, model: &TranslationModelSpec, vocabulary: usize) -> Self {
        let (width, bias) = (model.projected_width() as usize, model.decoder.output_bias());
        if let Some(dropout) = Decoder::normalized_output(model) {
            let std = ((1.0 - dropout) / width as f64).sqrt();
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
    pub fn new(
        model: &TranslationModelSpec,
        vocabularies: &Vocabularies,
        seed: u64,
        device: &Device,
    ) -> Self {
        let (width, tied) = (model.width as usize, model.embedding.tied);
        let init = Init::new(seed, device);
        let table = |name: &str, rows| {
            Embedding::new(&init.at(name), &model.embedding, rows, width, vocabularies.pad)
        };
        Self {
            embedding: table("embedding", vocabularies.source),
            target_embedding: tied.has_own_target().then(|| table("target_embedding", vocabularies.target)),
            output: tied
                .has_own_output()
                .then(|| Output::new(&init.at("output"), model, vocabularies.target)),
            encoder: Encoder::new(&init.at("encoder"), model),
            decoder: Decoder::new(&init.at("decoder"), model),
            further_decoders: (1..vocabularies.languages)
                .map(|i| Decoder::new(&init.at("further_decoders").at(i - 1), model))
                .collect(),
            start: match model.decoder.start() {
                DecoderStart::Zeros => None,
                DecoderStart::End => Some(vocabularies.end),
                DecoderStart::Begin => Some(vocabularies.begin),
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
        state.cache.attention().map(host_values)
    }
}
