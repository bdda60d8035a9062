//! Makes utterances from the recordings of a split: joins, normalises, labels, filters and counts
//! them.

use std::sync::Arc;

use zoo_recipes::{JoinSpec, RecordingDataSpec, RecordingFilterSpec, TonesSpec};

use super::classes::Classes;
use super::error::{Fault, Skipped, SpeechError};
use super::join::join;
use super::listing::{LeftOut, Listing};
use super::prepared::{Parts, SpeechSplit, SpeechStatistics, Utterance};
use super::source::{Recording, Recordings, Sounds};
use super::tones::Tones;
use crate::audio::FrontEnd;

/// Criteria that utterances must meet.
pub(super) struct Judge<'a> {
    pub split: &'a str,
    /// Whether this is the training split.
    pub training: bool,
    pub classes: &'a Arc<Classes>,
    pub front_end: &'a FrontEnd,
    pub filter: &'a RecordingFilterSpec,
    /// Why no utterance may be left out; `None` if utterances may be.
    pub whole: Option<&'static str>,
}

impl<'a> Judge<'a> {
    pub fn new<L>(
        split: &'a str,
        data: &'a RecordingDataSpec<L>,
        classes: &'a Arc<Classes>,
        front_end: &'a FrontEnd,
        strict: bool,
    ) -> Self {
        let training = split == data.training();
        Self { split, training, classes, front_end, filter: &data.filter, whole: whole(training, strict) }
    }

    /// Makes a split from listed recordings. `sounds` has everything except its files.
    pub fn recordings(
        &self,
        listing: Listing,
        spec: Option<&JoinSpec>,
        mut sounds: Recordings,
    ) -> Result<SpeechSplit, SpeechError> {
        listing.left_out.check(self.split, self.whole)?;
        let mut building = Building::new(self, listing.left_out);
        let Some(spec) = spec else {
            building.statistics.read = listing.read;
            for recording in listing.recordings {
                let place = sounds.files.len() as u32;
                let utterance =
                    Utterance { id: recording.id, samples: recording.samples, parts: Parts::One(place) };
                if building.add(utterance, &recording.text)? {
                    let (root, path, samples) = (recording.root, recording.audio, recording.samples);
                    sounds.files.push(Recording { root, path, samples });
                }
            }
            return building.finish(Sounds::Recordings(sounds));
        };
        for (number, joined) in join(self.split, &listing.recordings, spec)?.into_iter().enumerate() {
            let lengths = joined.recordings.iter().map(|place| listing.recordings[*place as usize].samples);
            let gaps = (joined.recordings.len() - 1) as u64 * sounds.gap as u64;
            let utterance = Utterance {
                id: format!("{}-{number}", self.split).into(),
                samples: lengths.sum::<u64>() + gaps,
                parts: Parts::Several(joined.recordings),
            };
            building.statistics.read += 1;
            building.add(utterance, &joined.text)?;
        }
        let file = |listed: super::listing::Listed| Recording {
            root: listed.root,
            path: listed.audio,
            samples: listed.samples,
        };
        sounds.files = listing.recordings.into_iter().map(file).collect();
        building.finish(Sounds::Recordings(sounds))
    }

    /// Makes a generated split; `None` if there is no such split.
    pub fn tones(&self, spec: &TonesSpec) -> Result<Option<SpeechSplit>, SpeechError> {
        let Some((tones, count)) = Tones::new(spec, self.split)? else { return Ok(None) };
        let mut building = Building::new(self, LeftOut::default());
        for index in 0..count {
            let (text, samples) = tones.utterance(index);
            let id = format!("{}-{index}", self.split).into();
            building.statistics.read += 1;
            building.add(Utterance { id, samples, parts: Parts::One(index) }, &text)?;
        }
        building.finish(Sounds::Tones(tones)).map(Some)
    }
}

/// Why no utterance of a split may be left out; `None` if utterances may be.
pub(super) fn whole(training: bool, strict: bool) -> Option<&'static str> {
    match (training, strict) {
        (false, _) => Some("an evaluation set must not lose an utterance"),
        (true, true) => Some("data.reader.strict = true"),
        (true, false) => None,
    }
}

struct Building<'j> {
    judge: &'j Judge<'j>,
    left_out: LeftOut,
    utterances: Vec<Utterance>,
    references: Vec<String>,
    raw: Vec<String>,
    statistics: SpeechStatistics,
}

impl<'j> Building<'j> {
    fn new(judge: &'j Judge<'j>, left_out: LeftOut) -> Self {
        Self {
            judge,
            left_out,
            utterances: Vec::new(),
            references: Vec::new(),
            raw: Vec::new(),
            statistics: SpeechStatistics::default(),
        }
    }

    /// Adds an utterance. Returns whether it was kept.
    fn add(&mut self, utterance: Utterance, raw: &str) -> Result<bool, SpeechError> {
        let Judge { split, training: train, classes, front_end, filter, whole } = *self.judge;
        let seconds = utterance.samples as f64 / f64::from(front_end.rate());
        if train && filter.min_seconds.is_some_and(|least| seconds < least) {
            self.statistics.too_short += 1;
            return Ok(false);
        }
        if train && filter.max_seconds.is_some_and(|most| seconds > most) {
            self.statistics.too_long += 1;
            return Ok(false);
        }
        let text = classes.normalized(raw);
        let labels = classes.labels_of_normalized(&text);
        let fault = match &labels {
            Err(unknown) => Some((Fault::UnknownText, unknown.to_string())),
            Ok(_) if text.trim().is_empty() => {
                Some((Fault::NoText, "its text is empty\nhint: say what is said, or leave it out".into()))
            }
            Ok(_) if front_end.frames(utterance.samples as usize) == 0 => {
                let samples = utterance.samples;
                Some((
                    Fault::NoFrame,
                    format!("its {samples} samples are less than a frame\nhint: leave it out"),
                ))
            }
            Ok(_) => None,
        };
        if let Some((fault, problem)) = fault {
            self.left_out.push(Skipped::new(&utterance.id, fault, problem));
            self.left_out.check(split, whole)?;
            return Ok(false);
        }
        let statistics = &mut self.statistics;
        let first = statistics.utterances == 0;
        statistics.utterances += 1;
        statistics.seconds += seconds;
        statistics.longest_seconds = statistics.longest_seconds.max(seconds);
        statistics.shortest_seconds = if first { seconds } else { statistics.shortest_seconds.min(seconds) };
        statistics.words += text.split_whitespace().count() as u64;
        statistics.labels += labels.map_or(0, |labels| labels.len() as u64);
        if !train {
            self.raw.push(raw.to_owned());
        }
        self.utterances.push(utterance);
        self.references.push(text);
        Ok(true)
    }

    fn finish(self, sounds: Sounds) -> Result<SpeechSplit, SpeechError> {
        let Self { judge, left_out, utterances, references, raw, mut statistics } = self;
        let read = statistics.read;
        let nothing =
            |problem| SpeechError::NothingToTrainOn { split: judge.split.into(), left: 0, read, problem };
        if utterances.is_empty() && judge.training {
            return Err(nothing("which is nothing to train on"));
        }
        if u32::try_from(utterances.len()).is_err() {
            return Err(nothing("for more than 2^32 cannot be numbered"));
        }
        statistics.skipped = left_out.counts;
        Ok(SpeechSplit {
            name: judge.split.into(),
            utterances,
            references,
            raw,
            statistics,
            skipped: left_out.first,
            sounds,
            classes: judge.classes.clone(),
        })
    }
}
