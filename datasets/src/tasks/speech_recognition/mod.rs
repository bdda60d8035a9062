//! Speech recognition: the classes of a frame.

use zoo_recipes::tasks::speech_recognition::ClassTokenizerSpec;

use crate::speech::{Classes, Labels, SpeechError};

impl Labels for ClassTokenizerSpec {
    fn classes(&self) -> Result<Classes, SpeechError> {
        match self {
            Self::Characters { alphabet, normalize } => Classes::characters(alphabet, normalize),
            Self::Lexicon { words, silence } => Classes::lexicon(words, silence.as_deref()),
        }
    }
}
