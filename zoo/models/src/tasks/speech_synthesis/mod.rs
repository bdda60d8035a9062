//! Speech synthesis: maps a text's symbols to spectrogram frames (Tacotron 2, Shen et al. 2018).
//!
//! In training, texts and frames are padded and padding is computed like content, as in both
//! published systems. Otherwise the output for a text does not depend on the other texts of its
//! batch.

mod attention;
mod batch;
mod convolutions;
mod decoder;
mod encoder;
mod loss;
mod magnitudes;
mod prenet;
mod size;
mod start;

pub use batch::SynthesisBatch;
pub use decoder::Written;
pub use loss::SpectrogramLoss;
pub use size::cost;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use zoo_recipes::tasks::speech_synthesis::SynthesisModelSpec;

use self::convolutions::{Behind, FrameConvolution};
use self::decoder::TacotronDecoder;
use self::encoder::TacotronEncoder;
use self::magnitudes::Magnitudes;
use crate::Pass;
use crate::nn::{Channels, Init};
use crate::ops::Statistics;
use crate::parameters::host_values;

/// Width of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameWidth {
    /// Number of mel bands.
    pub mels: usize,
    /// Number of bins of a linear spectrum; 0 without one.
    pub bins: usize,
}

/// Encoder, decoder, post-net, and an optional network for magnitudes.
#[derive(Module, Debug)]
pub struct Synthesiser {
    encoder: TacotronEncoder,
    decoder: TacotronDecoder,
    postnet: Vec<FrameConvolution>,
    magnitudes: Option<Magnitudes>,
    #[module(skip)]
    width: FrameWidth,
}

/// Output of a pass with teacher forcing.
#[derive(Debug, Clone)]
pub struct Predicted {
    /// Decoder output, before the post-net.
    pub written: Written,
    /// Mel frames after the post-net, `[utterances x longest, mels]` FP32.
    pub corrected: Tensor<2>,
    /// Magnitudes `[utterances x longest, bins]` FP32.
    pub magnitudes: Option<Tensor<2>>,
}

/// Free-running output for one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    /// Mel frames after the post-net, `[frames, mels]`.
    pub mels: Vec<f32>,
    /// Magnitudes `[frames, bins]`; empty for a model without them.
    pub magnitudes: Vec<f32>,
    /// Attention weights of each frame, `[frames, symbols]`.
    pub alignment: Vec<f32>,
    /// Number of frames.
    pub frames: usize,
    /// Whether the model predicted the end before the limit.
    pub stopped: bool,
}

/// Stopping rule of free-running inference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// A text ends with the first frame whose stop probability exceeds this threshold.
    pub threshold: f64,
    /// Maximum number of frames: `factor` x symbols + `extra`, rounded down.
    pub factor: f64,
    /// Constant part of the maximum; see `factor`.
    pub extra: u32,
}

impl Limits {
    fn most(&self, symbols: usize) -> usize {
        ((self.factor * symbols as f64) as usize + self.extra as usize).max(1)
    }
}

/// Number of frames between two checks whether all texts have ended.
const LOOK_EVERY: usize = 16;

impl Synthesiser {
    /// Builds a model with fresh parameters, which are a function of the seed.
    pub fn new(
        spec: &SynthesisModelSpec,
        symbols: usize,
        width: FrameWidth,
        seed: u64,
        device: &Device,
    ) -> Self {
        let init = Init::new(seed, device);
        let (encoder, decoder) = spec.parts();
        let memory = 2 * encoder.units as usize;
        let (mels, post) = (width.mels, &decoder.postnet);
        let layer = |i: u32| {
            let (first, last) = (i == 0, i + 1 == post.layers);
            let channels = |edge: bool| if edge { mels } else { post.channels as usize };
            let between = Channels::new(channels(first), channels(last));
            let behind = if last { Behind::Nothing } else { Behind::Tanh };
            FrameConvolution::new(&init.at("postnet").at(i), post, between, behind, decoder.init)
        };
        let magnitudes = decoder.magnitudes.as_ref().filter(|_| width.bins > 0);
        let magnitudes = magnitudes
            .map(|spec| Magnitudes::new(&init.at("magnitudes"), spec, mels, width.bins, decoder.init));
        Self {
            encoder: TacotronEncoder::new(&init.at("encoder"), encoder, symbols),
            decoder: TacotronDecoder::new(&init.at("decoder"), decoder, mels, memory),
            postnet: (0..post.layers).map(layer).collect(),
            magnitudes,
            width,
        }
    }

    /// Device of the parameters.
    pub fn device(&self) -> Device {
        self.encoder.embedding.val().device()
    }

    pub fn width(&self) -> FrameWidth {
        self.width
    }

    /// Forward pass with teacher forcing. A training pass also returns the statistics of its batch
    /// norms, for [`Self::fold`].
    pub fn forward(&self, batch: &SynthesisBatch, pass: &mut Pass) -> (Predicted, Vec<Statistics>) {
        let mut seen = Vec::new();
        let mels = self.width.mels;
        let (count, longest) = (batch.lengths.len(), batch.longest());
        let memory = self.encoder.forward(&batch.symbols, pass, &mut seen);
        let source = self.decoder.source(memory, &lengths_of(&batch.symbols), pass);
        let before = TensorData::new(batch.shifted(mels), [count * longest, mels]);
        let before = Tensor::from_data(before, &self.device());
        let written = self.decoder.forward(before, &source, pass);
        let counted = (!pass.is_training()).then_some(&batch.lengths[..]);
        let (corrected, magnitudes) = self.correct(written.frames.clone(), count, counted, pass, &mut seen);
        (Predicted { written, corrected, magnitudes }, seen)
    }

    /// Applies the post-net to frames `[utterances x longest, mels]`, and computes magnitudes.
    fn correct(
        &self,
        frames: Tensor<2>,
        count: usize,
        lengths: Option<&[usize]>,
        pass: &mut Pass,
        seen: &mut Vec<Statistics>,
    ) -> (Tensor<2>, Option<Tensor<2>>) {
        let [rows, mels] = frames.dims();
        let longest = rows / count.max(1);
        let mut x = frames.clone();
        // Convolutions read zeros after the end of a sequence.
        let valid = lengths.map(|lengths| {
            let of = |&length: &usize| (0..longest).map(move |i| f32::from(u8::from(i < length)));
            let valid: Vec<f32> = lengths.iter().flat_map(of).collect();
            Tensor::<2>::from_data(TensorData::new(valid, [rows, 1]), &frames.device())
        });
        if let Some(valid) = &valid {
            x = x * valid.clone();
        }
        let mut x = x.reshape([count, longest, mels]);
        for layer in &self.postnet {
            x = layer.forward(x, lengths, pass, seen);
        }
        let corrected = frames + x.reshape([rows, mels]);
        let magnitudes = self.magnitudes.as_ref().map(|magnitudes| {
            let read = match &valid {
                Some(valid) => corrected.clone() * valid.clone(),
                None => corrected.clone(),
            };
            magnitudes.forward(read.reshape([count, longest, mels]), lengths, pass, seen)
        });
        (corrected, magnitudes)
    }

    /// Updates the running statistics of the batch norms with the given statistics.
    ///
    /// # Panics
    /// If the statistics are not from this model's [`Self::forward`] in training.
    pub fn fold(self, seen: &[Statistics]) -> Self {
        let mut seen = seen.iter();
        let encoder = self.encoder.fold(&mut seen);
        let postnet = self.postnet.into_iter().map(|layer| layer.fold(&mut seen)).collect();
        let magnitudes = self.magnitudes.map(|magnitudes| magnitudes.fold(&mut seen));
        assert!(seen.next().is_none(), "statistics of this model");
        Self { encoder, postnet, magnitudes, ..self }
    }

    /// Free-running inference: each frame is computed from the previous output frame. A text ends
    /// when the model predicts its end, or at its limit; the batch ends with its last text. The
    /// output for a text does not depend on the other texts.
    pub fn speak(&self, texts: &[Vec<u32>], limits: Limits, pass: &mut Pass) -> Vec<Spoken> {
        let mut seen = Vec::new();
        let memory = self.encoder.forward(texts, pass, &mut seen);
        let source = self.decoder.source(memory, &lengths_of(texts), pass);
        let mut speaking = self.decoder.begin(&source);
        let most: Vec<usize> = texts.iter().map(|text| limits.most(text.len())).collect();
        // sigmoid(x) > t.
        let logit = (limits.threshold / (1.0 - limits.threshold)).ln() as f32;
        let mut ends: Vec<Option<usize>> = vec![None; texts.len()];
        let (mut frames, mut weights, mut stops) = (Vec::new(), Vec::new(), Vec::new());
        let mut looked = 0;
        let all = most.iter().copied().max().unwrap_or(0);
        while frames.len() < all {
            let (frame, stop, weight) = self.decoder.step(&mut speaking, pass);
            frames.push(frame.unsqueeze_dim::<3>(1));
            weights.push(weight.unsqueeze_dim::<3>(1));
            stops.push(stop.unsqueeze_dim::<2>(0));
            if frames.len() - looked < LOOK_EVERY && frames.len() < all {
                continue;
            }
            let logits = host_values(Tensor::cat(std::mem::take(&mut stops), 0));
            for (i, row) in logits.chunks_exact(texts.len().max(1)).enumerate() {
                for (end, &x) in ends.iter_mut().zip(row) {
                    if end.is_none() && x > logit {
                        *end = Some(looked + i + 1);
                    }
                }
            }
            looked = frames.len();
            let ended = |(end, &most): (&Option<usize>, &usize)| end.is_some() || looked >= most;
            if ends.iter().zip(&most).all(ended) {
                break;
            }
        }
        if frames.is_empty() {
            return Vec::new();
        }
        let longest = frames.len();
        let of_text =
            ends.iter().zip(&most).map(|(end, &most)| end.unwrap_or(longest).min(most).min(longest));
        let lengths: Vec<usize> = of_text.collect();
        let stopped: Vec<bool> =
            ends.iter().zip(&most).map(|(end, &most)| end.is_some_and(|end| end <= most)).collect();
        let frames = Tensor::cat(frames, 1).reshape([texts.len() * longest, self.width.mels]);
        let (mels, magnitudes) = self.correct(frames, texts.len(), Some(&lengths), pass, &mut seen);
        let width = Tensor::cat(weights, 1);
        let longest_text = width.dims()[2];
        let (mels, weights) = (host_values(mels), host_values(width));
        let magnitudes = magnitudes.map(host_values).unwrap_or_default();
        let part = |values: &[f32], width: usize, i: usize| {
            values[i * longest * width..][..lengths[i] * width].to_vec()
        };
        texts
            .iter()
            .enumerate()
            .map(|(i, text)| {
                let rows = part(&weights, longest_text, i);
                let alignment = rows.chunks_exact(longest_text).flat_map(|row| &row[..text.len()]).copied();
                Spoken {
                    mels: part(&mels, self.width.mels, i),
                    magnitudes: if magnitudes.is_empty() {
                        Vec::new()
                    } else {
                        part(&magnitudes, self.width.bins, i)
                    },
                    alignment: alignment.collect(),
                    frames: lengths[i],
                    stopped: stopped[i],
                }
            })
            .collect()
    }
}

fn lengths_of(texts: &[Vec<u32>]) -> Vec<u32> {
    texts.iter().map(|text| text.len() as u32).collect()
}
