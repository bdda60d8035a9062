//! An encoder, a decoder, and the token tables between them and the text.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::{Architecture, DecoderStart, ModelSpec, Tying};

use super::{Packed, PairBatch, TransformerDecoder, TransformerEncoder};
use crate::contract::Pass;
use crate::nn::{Embedding, Init, Linear};
use crate::ops::{Segment, Segments};
use crate::parameters::host_values;
use crate::search::{Logits, StepDecoder};

/// Sizes and special ids of the vocabularies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vocabularies {
    /// Rows of the source table.
    pub source: usize,
    /// Rows of the target table, which all target languages share; equal to `source` where tables are tied.
    pub target: usize,
    /// Target languages, each with a decoder of its own.
    pub languages: usize,
    /// Padding id.
    pub pad: u32,
    /// Begin id.
    pub begin: u32,
    /// End id.
    pub end: u32,
}

/// Encoder kinds.
#[derive(Module, Debug)]
pub enum Encoder {
    /// Self-attention.
    Transformer(TransformerEncoder),
}

/// Decoder kinds.
#[derive(Module, Debug)]
pub enum Decoder {
    /// Self-attention and cross-attention.
    Transformer(TransformerDecoder),
}

/// A sequence-to-sequence model.
#[derive(Module, Debug)]
pub struct Seq2Seq {
    /// Source tokens; also target tokens and output where all are tied.
    pub embedding: Embedding,
    /// Target tokens; also output where the decoder's are tied.
    pub target_embedding: Option<Embedding>,
    /// Output, where nothing is tied.
    pub output: Option<Linear>,
    /// Reads.
    pub encoder: Encoder,
    /// Writes; where there are several target languages, the first.
    pub decoder: Decoder,
    /// Write the further target languages.
    pub further_decoders: Vec<Decoder>,
    #[module(skip)]
    start: Option<u32>,
}

impl Seq2Seq {
    /// Fresh parameters, a function of the seed. On an autodiff device they are tracked.
    ///
    /// # Panics
    /// If the spec's parts make no model of tokens; a recipe that was checked and reads text has one.
    pub fn new(spec: &ModelSpec, vocabularies: &Vocabularies, seed: u64, device: &Device) -> Self {
        let Some(Architecture::Transformer { width, embedding, encoder, decoder }) = spec.architecture()
        else {
            panic!("a model of tokens");
        };
        let width = width as usize;
        let init = Init::new(seed, device);
        let table =
            |name: &str, rows| Embedding::new(&init.at(name), embedding, rows, width, vocabularies.pad);
        Self {
            embedding: table("embedding", vocabularies.source),
            target_embedding: (embedding.tied != Tying::All)
                .then(|| table("target_embedding", vocabularies.target)),
            output: (embedding.tied == Tying::None)
                .then(|| Linear::new(&init.at("output"), width, vocabularies.target, false, 1.0)),
            encoder: Encoder::Transformer(TransformerEncoder::new(&init.at("encoder"), encoder, width)),
            decoder: Decoder::Transformer(TransformerDecoder::new(&init.at("decoder"), decoder, width)),
            further_decoders: (1..vocabularies.languages)
                .map(|i| init.at("further_decoders").at(i - 1))
                .map(|at| Decoder::Transformer(TransformerDecoder::new(&at, decoder, width)))
                .collect(),
            start: match decoder.start {
                DecoderStart::Zeros => None,
                DecoderStart::End => Some(vocabularies.end),
                DecoderStart::Begin => Some(vocabularies.begin),
            },
        }
    }

    /// What enters the encoder: [source rows, width], FP32.
    pub fn embed_source(&self, source: &Packed, pass: &mut Pass) -> Tensor<2> {
        let places = source.sequences().flat_map(|s| s.iter().enumerate().map(|(i, &id)| (Some(id), i)));
        self.embedding.forward(&places.collect::<Vec<_>>(), pass)
    }

    /// What enters the decoder: the targets shifted behind their start, [target rows, width], FP32.
    pub fn embed_target(&self, target: &Packed, pass: &mut Pass) -> Tensor<2> {
        let mut places = Vec::with_capacity(target.tokens.len());
        for sequence in target.sequences() {
            let shifted = std::iter::once(self.start).chain(sequence.iter().map(|&id| Some(id)));
            places.extend(shifted.take(sequence.len()).enumerate().map(|(i, id)| (id, i)));
        }
        self.targets().forward(&places, pass)
    }

    /// Encoder output [source rows, width], FP32.
    pub fn encode(&self, source: &Packed, pass: &mut Pass) -> Tensor<2> {
        let x = self.embed_source(source, pass);
        let Encoder::Transformer(encoder) = &self.encoder;
        encoder.forward(x, &source.lengths, pass)
    }

    /// Scores of every target position given the true tokens before it: [target rows, vocabulary], in the compute type.
    pub fn logits(&self, batch: &PairBatch, pass: &mut Pass) -> Tensor<2> {
        let memory = self.encode(&batch.source, pass);
        let x = self.embed_target(&batch.target, pass);
        let Decoder::Transformer(decoder) = self.decoder(batch.language);
        let x = decoder.forward(x, &batch.target.lengths, memory, &batch.source.lengths, pass);
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
            Some(output) => output.forward(x, pass),
            None => self.targets().project(x, pass),
        }
    }
}

/// What a search keeps between two steps.
#[derive(Debug)]
pub struct DecodingState {
    pass: Pass,
    /// Keys and values of the sources, a layer each.
    memory: Vec<(Tensor<2>, Tensor<2>)>,
    /// Keys and values of what was written, a layer each.
    past: Vec<Option<(Tensor<3>, Tensor<3>)>>,
    /// First row and rows of each hypothesis' source.
    sources: Vec<(usize, usize)>,
    steps: usize,
}

/// A model that writes one of its target languages.
#[derive(Debug)]
pub struct Writer<'m> {
    model: &'m Seq2Seq,
    decoder: &'m TransformerDecoder,
    pass: Pass,
}

impl<'m> Writer<'m> {
    /// Writes the language of this index, which is below [`Vocabularies::languages`].
    pub fn new(model: &'m Seq2Seq, language: usize, pass: Pass) -> Self {
        let Decoder::Transformer(decoder) = model.decoder(language);
        Self { model, decoder, pass }
    }
}

impl StepDecoder for Writer<'_> {
    type State = DecodingState;

    fn begin(&self, sources: &Packed) -> DecodingState {
        let mut pass = self.pass.clone();
        let memory = self.model.encode(sources, &mut pass);
        let mut first = 0;
        let rows = sources.lengths.iter().map(|&length| {
            first += length as usize;
            (first - length as usize, length as usize)
        });
        DecodingState {
            memory: self.decoder.memory(memory, &pass),
            past: self.decoder.layers.iter().map(|_| None).collect(),
            sources: rows.collect(),
            steps: 0,
            pass,
        }
    }

    fn step(&self, state: &mut DecodingState, last: Option<&[u32]>) -> Logits {
        let model = self.model;
        let rows = state.sources.len();
        let tokens: Vec<_> = match last {
            Some(last) => last.iter().map(|&id| (Some(id), state.steps)).collect(),
            None => vec![(model.start, 0); rows],
        };
        assert_eq!(tokens.len(), rows, "a token for every hypothesis");
        let across = state.sources.iter().enumerate();
        let across = across.map(|(i, &(key, keys))| Segment { query: i, queries: 1, key, keys });
        let across = Segments::new(across.collect(), false);
        let pass = &mut state.pass;
        let x = model.targets().forward(&tokens, pass);
        let x = self.decoder.step(x, &mut state.past, &state.memory, &across, pass);
        let logits = model.project(x, pass);
        state.steps += 1;
        let [_, vocabulary] = logits.dims();
        Logits { vocabulary, values: host_values(logits) }
    }

    fn select(&self, state: &mut DecodingState, rows: &[usize]) {
        if rows.len() == state.sources.len() && rows.iter().enumerate().all(|(i, &row)| i == row) {
            return;
        }
        state.sources = rows.iter().map(|&row| state.sources[row]).collect();
        let Some((k, _)) = state.past.iter().flatten().next() else { return };
        let index: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let index = Tensor::<1, Int>::from_data(TensorData::new(index, [rows.len()]), &k.device());
        for (k, v) in state.past.iter_mut().flatten() {
            *k = k.clone().select(0, index.clone());
            *v = v.clone().select(0, index.clone());
        }
    }
}
