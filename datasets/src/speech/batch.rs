//! Batches of frames: planned from lengths alone; recordings are read only when a batch is made.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use zoo_recipes::RecordingDataSpec;

use super::cache::FrameCache;
use super::error::{Fault, Skipped, SpeechError};
use super::plan::{Epoch, Plan};
use super::prepared::{Parts, PreparedSpeech, SpeechSplit};
use super::splits::whole;
use crate::audio::{Extractor, Features, FrontEnd, Turn};
use crate::batches::Ahead;

/// Number of epochs that the 24 bits of a [`Turn`] can hold.
const EPOCHS: u64 = 1 << 24;

/// A batch of utterances as frames.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechBatch {
    /// Indices of the utterances in their split. Copies of one utterance at several speeds have the
    /// same index.
    pub ids: Vec<u32>,
    /// [utterances, longest, features] row-major. Padded at the end of each utterance with zeros or
    /// the front end's padding value.
    pub features: Vec<f32>,
    /// Number of features per frame.
    pub width: usize,
    /// Length of each utterance in frames, including the silence that the front end appends.
    pub lengths: Vec<usize>,
    /// Length of each utterance in frames, without the appended silence.
    pub sounding: Vec<usize>,
    /// Labels of each utterance.
    pub labels: Vec<Vec<u32>>,
    /// Total duration in seconds, copies at their own speed. Randomly drawn speeds are not taken
    /// into account.
    pub seconds: f64,
    /// Training utterances that were left out because they cannot be used. Always empty with
    /// `data.reader.strict` and in evaluation.
    pub skipped: Vec<Skipped>,
}

impl SpeechBatch {
    /// Length of the longest utterance in frames.
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// For each utterance, the frame from which a synthesiser should predict the end: the first
    /// frame of silence, or the last frame of sound if there is no silence.
    pub fn ends(&self) -> Vec<usize> {
        self.sounding
            .iter()
            .zip(&self.lengths)
            .map(|(sounding, length)| (*sounding).min(length.saturating_sub(1)))
            .collect()
    }

    fn new(examples: Vec<Example>, split: &SpeechSplit, front_end: &FrontEnd, skipped: Vec<Skipped>) -> Self {
        let width = front_end.width();
        let sounding: Vec<usize> = examples.iter().map(|example| example.features.frames()).collect();
        let tails: Vec<(usize, Vec<f32>)> = sounding.iter().map(|frames| front_end.tail(*frames)).collect();
        let lengths: Vec<usize> =
            sounding.iter().zip(&tails).map(|(sounding, (silent, _))| sounding + silent).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut features = Vec::with_capacity(examples.len() * longest * width);
        for (at, (example, (silent, frame))) in examples.iter().zip(&tails).enumerate() {
            features.extend_from_slice(&example.features.values);
            (0..*silent).for_each(|_| features.extend_from_slice(frame));
            features.resize((at + 1) * longest * width, front_end.batch_padding());
        }
        let samples: u64 = examples.iter().map(|example| example.samples).sum();
        let rate = front_end.rate();
        Self {
            features,
            width,
            lengths,
            sounding,
            labels: examples.iter().map(|example| split.labels(example.utterance)).collect(),
            ids: examples.iter().map(|example| example.utterance).collect(),
            seconds: samples as f64 / f64::from(rate),
            skipped,
        }
    }
}

struct Example {
    utterance: u32,
    samples: u64,
    features: Features,
}

type Made = Result<Result<Example, Skipped>, SpeechError>;

/// Reads an utterance and makes its frames with `frames`.
fn example(
    split: &SpeechSplit,
    utterance: u32,
    samples: u64,
    frames: impl FnOnce(&[f32]) -> Features,
) -> Made {
    let known = &split.utterances[utterance as usize];
    let waveform = match split.samples(known)? {
        Ok(waveform) => waveform,
        Err(skipped) => return Ok(Err(skipped)),
    };
    checked(split, utterance, samples, frames(&waveform))
}

/// Checks that the frames of an utterance can be used.
fn checked(split: &SpeechSplit, utterance: u32, samples: u64, features: Features) -> Made {
    let known = &split.utterances[utterance as usize];
    if let Some(at) = features.values.iter().position(|value| !value.is_finite()) {
        let frame = at / features.width;
        let problem =
            format!("a feature of frame {frame} is {}\nhint: look at the recording", features.values[at]);
        return Ok(Err(Skipped::new(&known.id, Fault::NotFinite, problem)));
    }
    if features.values.is_empty() {
        let problem = "its speed, or what is trimmed off, leaves less than a frame\nhint: leave it out";
        return Ok(Err(Skipped::new(&known.id, Fault::NoFrame, problem)));
    }
    Ok(Ok(Example { utterance, samples, features }))
}

/// The training batches of all epochs. A batch is a function of seed, epoch and batch number; it
/// does not depend on the order of requests or on threads.
///
/// If an utterance turns out to be damaged when it is read, it is left out of its batch and named
/// in [`SpeechBatch::skipped`]. With `data.reader.strict` this is an error. If no utterance of a
/// batch can be used, the next batch takes its place; if none of the epoch can, it is an error.
#[derive(Debug)]
pub struct SpeechBatches {
    split: Arc<SpeechSplit>,
    extractor: Extractor,
    plan: Plan,
    examples: u32,
    seed: u64,
    strict: bool,
    /// Cache of frames. `None` if recordings are augmented or there is no cache folder.
    cache: Option<FrameCache>,
    /// The epoch that was requested last.
    epoch: Mutex<Option<(u64, Arc<Epoch>)>>,
}

impl SpeechBatches {
    /// Plans the batches of the training split.
    ///
    /// # Errors
    /// The batching or augmentation is not valid, or there are too few utterances for a batch.
    pub fn training<L>(
        prepared: &PreparedSpeech,
        data: &RecordingDataSpec<L>,
        seed: u64,
    ) -> Result<Arc<Self>, SpeechError> {
        let split = prepared.train()?.clone();
        let augmentation = data.augmentation.clone().unwrap_or_default();
        let extractor = Extractor::new(prepared.front_end.clone(), &augmentation)?;
        let plan = Plan::new(&data.batching, prepared.sample_rate_hz)?;
        let (left, read) = (split.len(), split.statistics.read);
        let nothing =
            |problem| SpeechError::NothingToTrainOn { split: split.name.clone(), left, read, problem };
        let examples = u32::try_from(left.saturating_mul(extractor.versions()))
            .map_err(|_| nothing("which are more than 2^32 with their copies"))?;
        let frames = prepared.frames.as_ref().filter(|_| data.augmentation.is_none());
        let cache = frames.map(|folder| FrameCache::new(folder, &prepared.features, prepared.sample_rate_hz));
        let this = Self {
            cache,
            split: split.clone(),
            extractor,
            plan,
            examples,
            seed,
            strict: prepared.strict,
            epoch: Mutex::default(),
        };
        if this.per_epoch(0) == 0 {
            return Err(nothing("which do not fill a batch"));
        }
        Ok(Arc::new(this))
    }

    /// Number of utterances in an epoch before batching, including copies at other speeds.
    pub fn examples(&self) -> usize {
        self.examples as usize
    }

    /// Number of batches in an epoch (counted from 0). With `seconds` batching it may differ
    /// between epochs.
    pub fn per_epoch(&self, epoch: u64) -> usize {
        self.epoch(epoch).len()
    }

    /// Share of padding among the frames of the first epoch, computed from lengths alone.
    pub fn padding(&self) -> f64 {
        let frames =
            |example: &u32| self.extractor.front_end().frames(self.samples(*example) as usize) as u64;
        let (mut real, mut all) = (0, 0);
        for batch in self.epoch(0).batches() {
            real += batch.iter().map(frames).sum::<u64>();
            all += batch.iter().map(frames).max().unwrap_or(0) * batch.len() as u64;
        }
        if all == 0 { 0.0 } else { 1.0 - real as f64 / all as f64 }
    }

    /// A batch of an epoch, both counted from 0. Reads and augments the recordings and computes
    /// their frames, on all threads.
    ///
    /// # Errors
    /// There is no such batch; a recording has changed since it was listed; no utterance can be
    /// used, or, with `data.reader.strict`, not all of them.
    pub fn batch(&self, epoch: u64, index: usize) -> Result<SpeechBatch, SpeechError> {
        let (mut skipped, count) = (Vec::new(), self.per_epoch(epoch));
        // If no utterance of a batch can be used, the next batch takes its place, so an epoch keeps
        // its length.
        for instead in 0..count.max(1) {
            let batch = self.planned(epoch, if instead == 0 { index } else { (index + instead) % count })?;
            skipped.extend(batch.skipped.iter().cloned());
            if !batch.lengths.is_empty() {
                return Ok(SpeechBatch { skipped, ..batch });
            }
        }
        match skipped.into_iter().next() {
            Some(first) => Err(SpeechError::EmptyBatch { epoch, batch: index, first }),
            None => Err(SpeechError::NoSuchBatch { epoch, batch: index, batches: count }),
        }
    }

    /// A batch as planned, without the utterances that cannot be used.
    fn planned(&self, epoch: u64, index: usize) -> Result<SpeechBatch, SpeechError> {
        let planned = self.epoch(epoch);
        let missing = || SpeechError::NoSuchBatch { epoch, batch: index, batches: planned.len() };
        let examples = planned.batch(index).ok_or_else(missing)?;
        // Turn 0 is for evaluation.
        let turn = ((epoch + 1) % EPOCHS) as u32;
        let made: Vec<Made> = examples.par_iter().map(|number| self.example(turn, *number)).collect();
        let (mut examples, mut skipped) = (Vec::with_capacity(made.len()), Vec::new());
        for made in made {
            match made? {
                Ok(example) => examples.push(example),
                Err(fault) => skipped.push(fault),
            }
        }
        match (skipped.first(), whole(true, self.strict)) {
            (Some(first), Some(why)) => Err(SpeechError::Unusable {
                split: self.split.name.clone(),
                skipped: first.clone(),
                more: skipped.len() as u64 - 1,
                why,
            }),
            _ => Ok(SpeechBatch::new(examples, &self.split, self.extractor.front_end(), skipped)),
        }
    }

    /// Makes the batches of an epoch from number `from` on for which `wanted` returns true, in a
    /// separate thread. The sequence ends after an error.
    pub fn ahead(
        self: &Arc<Self>,
        epoch: u64,
        from: u64,
        wanted: impl Fn(u64) -> bool + Send + 'static,
    ) -> Ahead<(u64, SpeechBatch), SpeechError> {
        let batches = self.clone();
        let indices = (from..self.per_epoch(epoch) as u64).filter(move |index| wanted(*index));
        let make = move |index| batches.batch(epoch, index as usize).map(|batch| (index, batch));
        Ahead::new("speech", indices.map(make))
    }

    /// Makes example `number`, which determines the utterance and its speed.
    fn example(&self, turn: u32, number: u32) -> Made {
        let (utterance, version) = self.version(number);
        // Each version draws its own random numbers.
        let turn = Turn { seed: self.seed, epoch: turn, utterance: number };
        let frames = |samples: &[f32]| self.extractor.training(samples, version, turn);
        let samples = self.samples(number);
        let kept = self.cache.as_ref().zip(self.recording(utterance));
        let Some((cache, file)) = kept else { return example(&self.split, utterance, samples, frames) };
        let place = cache.place(&file, samples);
        if let Some(features) = cache.read(&place) {
            return checked(&self.split, utterance, samples, features);
        }
        let made = example(&self.split, utterance, samples, frames)?;
        if let Ok(example) = &made {
            cache.write(&place, &example.features);
        }
        Ok(made)
    }

    /// The file of an utterance that consists of a single recording.
    fn recording(&self, utterance: u32) -> Option<PathBuf> {
        let known = &self.split.utterances[utterance as usize];
        let single = matches!(known.parts, Parts::One(_));
        self.split.files(known).into_iter().next().filter(|_| single)
    }

    fn version(&self, number: u32) -> (u32, usize) {
        let versions = self.extractor.versions() as u32;
        (number / versions, (number % versions) as usize)
    }

    /// Number of samples of an example, without the effect of a randomly drawn speed.
    fn samples(&self, number: u32) -> u64 {
        let (utterance, version) = self.version(number);
        let samples = self.split.utterances[utterance as usize].samples;
        self.extractor.version_samples(samples as usize, version) as u64
    }

    fn epoch(&self, epoch: u64) -> Arc<Epoch> {
        let mut kept = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((number, planned)) if *number == epoch => planned.clone(),
            _ => {
                let planned = self.plan.epoch(self.examples, |number| self.samples(number), self.seed, epoch);
                let planned = Arc::new(planned);
                *kept = Some((epoch, planned.clone()));
                planned
            }
        }
    }
}

/// Batches of all utterances of a split without augmentation, the longest first. A batch has at
/// least one utterance, and at most `most_seconds` of audio with its padding. The frames of an
/// utterance do not depend on its batch. An utterance that cannot be used is an error.
pub fn evaluation_batches<'p>(
    prepared: &'p PreparedSpeech,
    split: &'p SpeechSplit,
    most_seconds: f64,
) -> impl Iterator<Item = Result<SpeechBatch, SpeechError>> + 'p {
    let rate = prepared.sample_rate_hz;
    let length = |utterance: u32| split.utterances[utterance as usize].samples;
    let mut order: Vec<u32> = (0..split.len() as u32).collect();
    order.sort_by_key(|utterance| std::cmp::Reverse(length(*utterance)));
    let most = most_seconds * f64::from(rate);
    let mut groups: VecDeque<Vec<u32>> = VecDeque::new();
    for utterance in order {
        let longest = |group: &Vec<u32>| (group.len() + 1) as f64 * length(group[0]) as f64;
        match groups.back_mut().filter(|group| longest(group) <= most) {
            Some(group) => group.push(utterance),
            None => groups.push_back(vec![utterance]),
        }
    }
    groups.into_iter().map(move |group| {
        let make = |utterance: &u32| {
            let frames = |samples: &[f32]| prepared.front_end().evaluation(samples, *utterance);
            example(split, *utterance, length(*utterance), frames)?.map_err(|skipped| SpeechError::Unusable {
                split: split.name.clone(),
                skipped,
                more: 0,
                why: "an evaluation set must not lose an utterance",
            })
        };
        let examples = group.par_iter().map(make).collect::<Result<Vec<_>, _>>()?;
        Ok(SpeechBatch::new(examples, split, prepared.front_end(), Vec::new()))
    })
}
