//! Text that the classes of a frame or the symbols do not have.

/// The part of a text that has no label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownText {
    /// A character that is not in the alphabet.
    #[error(
        "its text has {0:?}, which is not in the alphabet\nhint: add it to data.tokenizer.alphabet, normalize it away, or mend the text"
    )]
    Character(char),
    /// A word that is not in the lexicon.
    #[error(
        "its text has the word {0:?}, which is not in the lexicon\nhint: add it to data.tokenizer.words, or mend the text"
    )]
    Word(String),
    /// A character that is not a symbol.
    #[error(
        "its text has {0:?}, which is not a symbol\nhint: fix the text, skip it with data.tokenizer.leave_out, or take other symbols or cleaners"
    )]
    Symbol(char),
    /// A sound in braces that is not in ARPAbet.
    #[error(
        "its text has the sound {0:?}, which is not in ARPAbet\nhint: write sounds in braces as {{HH AW1 S}}"
    )]
    Sound(String),
}
