//! What is measured of an utterance, as the line that is kept of it.

use serde_json::{Map, json};
use zoo_models::models::synthesis::Spoken;
use zoo_results::exit::Exit;
use zoo_results::metrics::{
    AlignmentScore, Attention, CepstralOptions, Convention, LogMel, MeasuredLine, MelErrorOptions,
    ScoreError, Stop, mel_cepstral_distortion, mel_error,
};

use crate::error::{Failure, Result};

/// What came of an utterance, beside its true frames.
#[derive(Clone, Copy)]
pub struct Utterance<'a> {
    /// What was made of it.
    pub spoken: &'a Spoken,
    /// True frames [frames, mels].
    pub target: &'a [f32],
    /// Bands.
    pub mels: usize,
    /// Symbols of its text.
    pub symbols: usize,
    /// The decoder was told the true frames: they are compared place by place.
    pub forced: bool,
}

/// Scores of one utterance, and the line that says them.
pub struct Measured {
    /// What is kept, from which every score follows.
    pub line: String,
    /// The same for people.
    pub scores: Map<String, serde_json::Value>,
}

impl Utterance<'_> {
    /// Distortion, error where frames have places, alignment and end.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn measure(&self) -> Result<Measured> {
        let failed = |error: ScoreError| Failure::new(Exit::Data, error.to_string());
        let target = LogMel::new(self.target, self.mels).map_err(failed)?;
        let predicted = LogMel::new(&self.spoken.mels, self.mels).map_err(failed)?;
        let options = CepstralOptions { warped: !self.forced, mels: self.mels, ..CepstralOptions::default() };
        let distortion = mel_cepstral_distortion(target, predicted, options).map_err(failed)?;
        let attention =
            Attention::new(&self.spoken.alignment, self.symbols, self.spoken.frames, self.symbols);
        let alignment = AlignmentScore::new(attention.map_err(failed)?);
        let due = Some(target.frames());
        let stop = Stop::new(self.spoken.frames, self.spoken.stopped, self.symbols, &alignment, due);

        let mut line = MeasuredLine::default();
        line.measure(Convention::MelCepstral(options), distortion.ratio());
        let mut scores = Map::new();
        scores.insert("mel-cepstral distortion, dB".into(), json!(distortion.decibels));
        if self.forced {
            let (sum, count) = mel_error(target, predicted).map_err(failed)?;
            line.measure(MelErrorOptions { mels: self.mels }.into(), (sum, count));
            scores.insert("mel error".into(), json!(sum / count));
        }
        let facts = [
            ("frames", json!(self.spoken.frames)),
            ("frames of the recording", json!(target.frames())),
            ("focus", json!(alignment.focus)),
            ("coverage", json!(alignment.coverage)),
            ("diagonality", json!(alignment.diagonality)),
            ("reached", json!(alignment.reached)),
            ("ended", json!(stop.error().map_or("well", |error| error.name()))),
        ];
        for (name, value) in facts {
            line.say(name, value.clone());
            scores.insert(name.into(), value);
        }
        Ok(Measured { line: line.to_string(), scores })
    }
}
