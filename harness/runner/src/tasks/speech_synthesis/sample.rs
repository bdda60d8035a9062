//! Pictures and audio of an evaluation's first utterances.

use zoo_models::tasks::speech_synthesis::Spoken;
use zoo_results::metrics::{Attention, LogMel};
use zoo_results::report::heatmap::Heatmap;

use super::speak::Voice;
use crate::error::Result;
use crate::run::data::{Kept, KeptSample};

/// Number of utterances per evaluation set whose pictures and audio are kept: the first of the set.
pub const KEPT: u32 = 8;

/// Frames of a recording: log-mels, and log-magnitudes if the model has them.
pub struct Frames {
    pub mels: Vec<f32>,
    pub magnitudes: Vec<f32>,
}

impl Frames {
    /// Splits rows of `width` values, in which the mels come first.
    pub fn of_rows(rows: &[f32], width: usize, mels: usize) -> Self {
        let part = |columns: std::ops::Range<usize>| {
            rows.chunks_exact(width).flat_map(|row| &row[columns.clone()]).copied().collect()
        };
        Self { mels: part(0..mels), magnitudes: part(mels..width) }
    }
}

/// Pictures of spectrogram and alignment, and audio, of the output next to the recording's own
/// frames.
///
/// # Errors
/// The frames cannot be converted to audio.
pub fn sample(
    (name, text): (&str, &str),
    spoken: &Spoken,
    target: Frames,
    symbols: &[String],
    voice: &Voice,
    number: u64,
    forced: bool,
) -> Result<KeptSample> {
    let mels = voice.mels();
    let mut files = Vec::new();
    let mut picture = |ending: &str, caption: &str, svg: Option<String>| {
        if let Some(svg) = svg {
            files.push((format!("{ending}.svg"), caption.to_owned(), Kept::Bytes(svg.into_bytes())));
        }
    };
    let of_mels = LogMel::new(&target.mels, mels).ok().zip(LogMel::new(&spoken.mels, mels).ok());
    let drawn = of_mels.and_then(|(target, predicted)| {
        Heatmap::mels(name, target, predicted, voice.seconds_a_frame()).and_then(|map| map.svg()).ok()
    });
    picture("mel", "log-mel spectrograms", drawn);
    let attention = Attention::new(&spoken.alignment, symbols.len(), spoken.frames, symbols.len()).ok();
    let drawn = attention.and_then(|attention| {
        let map = Heatmap::alignment(name, attention, voice.seconds_a_frame(), symbols);
        map.and_then(|map| map.svg()).ok()
    });
    picture("alignment", "attention alignment of text and frames", drawn);
    let words = if forced { "as predicted from the true frames" } else { "as synthesised" };
    let sound = Kept::Sound(voice.sound(spoken, number)?, voice.rate());
    files.push(("wav".to_owned(), words.to_owned(), sound));
    let truth = Spoken { mels: target.mels, magnitudes: target.magnitudes, ..spoken.clone() };
    let sound = Kept::Sound(voice.sound(&truth, number)?, voice.rate());
    let words = "the recording's frames through the same vocoder";
    files.push(("target.wav".to_owned(), words.to_owned(), sound));
    Ok(KeptSample { title: name.to_owned(), text: text.to_owned(), scores: serde_json::Map::new(), files })
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn rows_are_mels_and_behind_them_magnitudes() {
        let rows = [1.0, 2.0, 9.0, 3.0, 4.0, 8.0];
        let frames = Frames::of_rows(&rows, 3, 2);
        assert_eq!((frames.mels, frames.magnitudes), (vec![1.0, 2.0, 3.0, 4.0], vec![9.0, 8.0]));
        assert!(Frames::of_rows(&rows, 2, 2).magnitudes.is_empty());
    }
}
