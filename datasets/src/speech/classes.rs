//! The labels of speech: the classes of a frame or the symbols of a text. Converts text to labels.

use std::collections::{BTreeMap, BTreeSet};

use zoo_recipes::NormalizeStep;
use zoo_recipes::tasks::speech_recognition::ClassTokenizerSpec;
use zoo_recipes::tasks::speech_synthesis::SymbolTokenizerSpec;

use super::error::SpeechError;
use super::symbols::Symbols;
use crate::text::moses::Normalizer;

/// The classes of a frame: the tokenizer's labels in order, followed by the blank.
///
/// Labels of `characters` are positions in its alphabet. Labels of a `lexicon` are the silence (if
/// there is one), then all other sounds, sorted. Labels of `symbols` are the ids of its set; a
/// synthesiser reads them and does not use the blank.
#[derive(Debug)]
pub struct Classes {
    names: Vec<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Characters { labels: BTreeMap<char, u32>, normalizer: Normalizer },
    Lexicon { words: Vec<String>, sounds: Vec<Vec<u32>>, silence: Option<u32> },
    Symbols(Symbols),
}

/// A tokenizer of the texts of recordings.
pub trait Labels {
    /// The classes that it makes of texts.
    ///
    /// # Errors
    /// Its alphabet or set contains a character twice, a word has no sounds or a silent one, or the
    /// set does not have what the tokenizer asks for.
    fn classes(&self) -> Result<Classes, SpeechError>;
}

impl Labels for ClassTokenizerSpec {
    fn classes(&self) -> Result<Classes, SpeechError> {
        match self {
            Self::Characters { alphabet, normalize } => Classes::characters(alphabet, normalize),
            Self::Lexicon { words, silence } => Classes::lexicon(words, silence.as_deref()),
        }
    }
}

impl Labels for SymbolTokenizerSpec {
    fn classes(&self) -> Result<Classes, SpeechError> {
        let symbols = Symbols::new(self)?;
        Ok(Classes { names: self.names(), kind: Kind::Symbols(symbols) })
    }
}

impl Classes {
    /// The classes of a tokenizer.
    ///
    /// # Errors
    /// As for [`Labels::classes`].
    pub fn of(tokenizer: &impl Labels) -> Result<Self, SpeechError> {
        tokenizer.classes()
    }

    fn characters(alphabet: &str, normalize: &[NormalizeStep]) -> Result<Self, SpeechError> {
        let mut labels = BTreeMap::new();
        for (label, character) in (0..).zip(alphabet.chars()) {
            if labels.insert(character, label).is_some() {
                let problem = format!("{character:?} is in it twice");
                return Err(SpeechError::recipe("tokenizer.alphabet", problem, "name each once"));
            }
        }
        let names = alphabet.chars().map(String::from).collect();
        // Text of speech is at most lower-cased, and none of its steps depends on the language.
        let normalizer = Normalizer::new(normalize, "en")?;
        Ok(Self { names, kind: Kind::Characters { labels, normalizer } })
    }

    fn lexicon(words: &BTreeMap<String, Vec<String>>, silence: Option<&str>) -> Result<Self, SpeechError> {
        let others: BTreeSet<&str> = words.values().flatten().map(String::as_str).collect();
        if let Some(word) =
            words.iter().find(|(_, s)| s.is_empty() || s.iter().any(|s| Some(s.as_str()) == silence))
        {
            let key = format!("tokenizer.words.{}", word.0);
            return Err(SpeechError::recipe(key, "it has no sound, or a silent one", "spell it in sounds"));
        }
        let names: Vec<String> = silence.into_iter().chain(others).map(String::from).collect();
        let label = |sound: &String| names.iter().position(|name| name == sound).unwrap_or_default() as u32;
        let sounds = words.values().map(|sounds| sounds.iter().map(label).collect()).collect();
        let words = words.keys().cloned().collect();
        Ok(Self { kind: Kind::Lexicon { words, sounds, silence: silence.map(|_| 0) }, names })
    }

    /// Number of classes, including the blank.
    #[expect(clippy::len_without_is_empty, reason = "the blank is always there")]
    pub fn len(&self) -> usize {
        self.names.len() + 1
    }

    /// The blank, which is the last class.
    pub fn blank(&self) -> u32 {
        self.names.len() as u32
    }

    /// The label of a lexicon's silence.
    pub fn silence(&self) -> Option<u32> {
        match &self.kind {
            Kind::Lexicon { silence, .. } => *silence,
            Kind::Characters { .. } | Kind::Symbols(_) => None,
        }
    }

    /// The spelling or sound of each label, without the blank.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The label between words of `characters`.
    pub fn space(&self) -> Option<u32> {
        match &self.kind {
            Kind::Characters { labels, .. } => labels.get(&' ').copied(),
            Kind::Lexicon { .. } | Kind::Symbols(_) => None,
        }
    }

    /// The words of a lexicon, sorted; empty for characters.
    pub fn words(&self) -> &[String] {
        match &self.kind {
            Kind::Lexicon { words, .. } => words,
            Kind::Characters { .. } | Kind::Symbols(_) => &[],
        }
    }

    /// The sounds of word number `word` in [`Self::words`]; empty if there is no such word.
    pub fn pronunciation(&self, word: usize) -> &[u32] {
        match &self.kind {
            Kind::Lexicon { sounds, .. } => sounds.get(word).map_or(&[], Vec::as_slice),
            Kind::Characters { .. } | Kind::Symbols(_) => &[],
        }
    }

    /// Normalises a text for labelling and scoring: applies the tokenizer's steps, then puts single
    /// spaces between words and trims the ends. For `symbols`, spaces stay as the steps leave them.
    pub fn normalized(&self, text: &str) -> String {
        let collapsed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match &self.kind {
            Kind::Characters { normalizer, .. } => collapsed(&normalizer.line(text)),
            Kind::Lexicon { .. } => collapsed(text),
            Kind::Symbols(symbols) => symbols.cleaned(text),
        }
    }

    /// The labels of a text, which is normalised first:
    ///
    /// - Characters: one label per character.
    /// - Lexicon: the sounds of the words, with a silence before, between and after them if the
    ///   lexicon has one.
    /// - Symbols: one label per symbol, with the begin, end and pad symbols that the tokenizer asks
    ///   for.
    ///
    /// # Errors
    /// A part of the text has no label.
    pub fn labels(&self, text: &str) -> Result<Vec<u32>, UnknownText> {
        self.labels_of_normalized(&self.normalized(text))
    }

    pub(super) fn labels_of_normalized(&self, text: &str) -> Result<Vec<u32>, UnknownText> {
        match &self.kind {
            Kind::Characters { labels, .. } => {
                let label = |character: char| labels.get(&character).copied();
                text.chars().map(|c| label(c).ok_or(UnknownText::Character(c))).collect()
            }
            Kind::Lexicon { words, sounds, silence } => {
                let mut labels: Vec<u32> = silence.iter().copied().collect();
                for word in text.split_whitespace() {
                    let place = words.binary_search_by(|known| known.as_str().cmp(word));
                    let place = place.map_err(|_| UnknownText::Word(word.into()))?;
                    labels.extend(&sounds[place]);
                    labels.extend(silence);
                }
                Ok(labels)
            }
            Kind::Symbols(symbols) => symbols.ids(text),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn characters() -> Classes {
        let normalize = vec![NormalizeStep::Lowercase];
        Classes::of(&ClassTokenizerSpec::Characters { alphabet: " abß".into(), normalize }).unwrap()
    }

    fn yesno(silence: Option<&str>) -> Classes {
        let word =
            |word: &str, sounds: &[&str]| (word.to_owned(), sounds.iter().map(|s| (*s).into()).collect());
        let words = [word("YES", &["Y", "E"]), word("NO", &["N", "E"])].into();
        Classes::of(&ClassTokenizerSpec::Lexicon { words, silence: silence.map(Into::into) }).unwrap()
    }

    #[test]
    fn characters_are_their_places_in_the_alphabet() {
        let classes = characters();
        assert_eq!(
            (classes.len(), classes.blank(), classes.space(), classes.silence()),
            (5, 4, Some(0), None)
        );
        assert_eq!(classes.labels("  A \t bß").unwrap(), [1, 0, 2, 3]);
        assert_eq!(classes.labels("ac"), Err(UnknownText::Character('c')));
        assert!(classes.words().is_empty() && classes.pronunciation(0).is_empty());
    }

    #[test]
    fn words_are_their_sounds_with_silence_around_them() {
        let classes = yesno(Some("SIL"));
        assert_eq!(classes.names(), ["SIL", "E", "N", "Y"]);
        assert_eq!(
            (classes.len(), classes.blank(), classes.silence(), classes.space()),
            (5, 4, Some(0), None)
        );
        assert_eq!(classes.words(), ["NO", "YES"]);
        assert_eq!((classes.pronunciation(0), classes.pronunciation(1)), (&[2, 1][..], &[3, 1][..]));
        assert_eq!(classes.labels(" YES  NO ").unwrap(), [0, 3, 1, 0, 2, 1, 0]);
        assert_eq!(classes.labels("YES no"), Err(UnknownText::Word("no".into())));
        assert_eq!(yesno(None).labels("YES NO").unwrap(), [2, 0, 1, 0]);
        assert_eq!(yesno(None).silence(), None);
    }

    #[test]
    fn an_alphabet_with_a_character_twice_is_refused() {
        let twice = ClassTokenizerSpec::Characters { alphabet: "aba".into(), normalize: Vec::new() };
        assert!(Classes::of(&twice).unwrap_err().to_string().contains("twice"));
    }
}
