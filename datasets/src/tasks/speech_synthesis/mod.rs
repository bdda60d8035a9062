//! Speech synthesis: the symbols of a text.

mod symbols;

use zoo_recipes::tasks::speech_synthesis::SymbolTokenizerSpec;

use self::symbols::Symbols;
use crate::speech::{Classes, Labels, SpeechError};

impl Labels for SymbolTokenizerSpec {
    fn classes(&self) -> Result<Classes, SpeechError> {
        Ok(Classes::of_texts(self.names(), Symbols::new(self)?))
    }
}
