//! Measures of a synthesized utterance and the stored line that holds them.

use serde_json::{Map, json};
use zoo_models::tasks::speech_synthesis::Spoken;
use zoo_results::exit::Exit;
use zoo_results::metrics::{
    AlignmentScore, Attention, CepstralOptions, LogMel, MeasuredLine, MelErrorOptions, ScoreError, Stop,
    mel_cepstral_distortion, mel_error,
};

use crate::error::{Failure, Result};

/// A synthesized utterance with its true frames.
#[derive(Clone, Copy)]
pub struct Utterance<'a> {
    /// Output of the model.
    pub spoken: &'a Spoken,
    /// True frames, shape [frames, mels].
    pub target: &'a [f32],
    /// Number of mel bands.
    pub mels: usize,
    /// Number of symbols of the text.
    pub symbols: usize,
    /// Whether the decoder was teacher-forced, so that frames are compared position by position.
    pub forced: bool,
}

/// Scores of one utterance, and the line that stores them.
pub struct Measured {
    /// The stored line, from which every score is computed.
    pub line: String,
    /// The same scores with readable names.
    pub scores: Map<String, serde_json::Value>,
}

impl Utterance<'_> {
    /// Measures distortion, frame error (if teacher-forced), alignment and stop.
    ///
    /// # Errors
    /// A value is not finite.
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
        line.measure(&options, distortion.ratio());
        let mut scores = Map::new();
        scores.insert("mel-cepstral distortion, dB".into(), json!(distortion.decibels));
        if self.forced {
            let (sum, count) = mel_error(target, predicted).map_err(failed)?;
            line.measure(&MelErrorOptions { mels: self.mels }, (sum, count));
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
