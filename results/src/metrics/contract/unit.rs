//! The units that likelihoods and objectives are divided by.

/// The unit that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tokens as the model sees them.
    Token,
    /// Words of the text.
    Word,
    /// Characters of the text: code points.
    Character,
    /// Bytes of the text.
    Byte,
    /// Sentences or utterances.
    Sentence,
    /// Single decisions: an image, a document.
    Example,
    /// Frames of speech or of a spectrogram.
    Frame,
}

impl Unit {
    /// All units, with their words in a signature's `unit:` part.
    pub(crate) const WORDS: [(&str, Self); 7] = [
        ("token", Unit::Token),
        ("word", Unit::Word),
        ("character", Unit::Character),
        ("byte", Unit::Byte),
        ("sentence", Unit::Sentence),
        ("example", Unit::Example),
        ("frame", Unit::Frame),
    ];

    /// The word in a signature's `unit:` part.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }
}
