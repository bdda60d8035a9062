//! The input symbols of a text for speech synthesis.

use std::collections::{BTreeMap, BTreeSet};

use zoo_recipes::tasks::speech_synthesis::{Cleaners, SymbolSet, SymbolTokenizerSpec};

use super::classes::UnknownText;
use super::error::SpeechError;
use crate::text::english;

/// Id of the pad in every set. The sets with ends also have the next two ids.
const PAD: u32 = 0;
const BEGIN: u32 = 1;
const END: u32 = 2;

/// A set of symbols, and the rules to encode a text in it.
#[derive(Debug)]
pub(super) struct Symbols {
    characters: BTreeMap<char, u32>,
    /// ARPAbet sounds, which are written in braces. If empty, braces are ordinary characters.
    sounds: BTreeMap<String, u32>,
    cleaners: Cleaners,
    leave_out: BTreeSet<char>,
    ends: bool,
    pad_to: Option<usize>,
}

/// A part of a text.
enum Part<'t> {
    Text(&'t str),
    Sounds(&'t str),
}

impl Symbols {
    /// # Errors
    /// The set's own characters contain one twice, or the tokenizer asks for ends that its set does
    /// not have.
    pub fn new(tokenizer: &SymbolTokenizerSpec) -> Result<Self, SpeechError> {
        let error = |key: &str, problem: String, hint| {
            Err(SpeechError::recipe(format!("tokenizer.{key}"), problem, hint))
        };
        let SymbolTokenizerSpec::Symbols { symbols, characters: own, cleaners, leave_out, ends, pad_to } =
            tokenizer;
        if *symbols == SymbolSet::Own && own.as_deref().unwrap_or_default().is_empty() {
            return error("characters", "the set `own` is empty".into(), "name its characters");
        }
        if *ends && !symbols.has_ends() {
            return error("ends", "the set has no begin and no end".into(), "leave it out");
        }
        let (mut characters, mut sounds) = (BTreeMap::new(), BTreeMap::new());
        let names = tokenizer.names();
        // The pad is never a character of a text, whatever its name is.
        for (id, name) in (0..).zip(&names).skip(1) {
            let mut letters = name.chars();
            match (letters.next(), letters.next()) {
                (Some(character), None) if characters.contains_key(&character) => {
                    let problem = format!("{character:?} is there twice");
                    return error("characters", problem, "name each once");
                }
                (Some(character), None) => {
                    characters.insert(character, id);
                }
                (Some('@'), Some(_)) => {
                    sounds.insert(name[1..].to_owned(), id);
                }
                _ => {}
            }
        }
        Ok(Self {
            characters,
            sounds,
            cleaners: *cleaners,
            leave_out: leave_out.chars().collect(),
            ends: *ends,
            pad_to: pad_to.map(|pad_to| pad_to.max(1) as usize),
        })
    }

    /// Cleans a text for reading aloud. Sounds in braces are not changed.
    pub fn cleaned(&self, text: &str) -> String {
        let clean = |text: &str| match self.cleaners {
            Cleaners::None => text.to_owned(),
            Cleaners::Lowercase => text.to_lowercase(),
            Cleaners::English => english::clean(text),
        };
        let part = |part: Part<'_>| match part {
            Part::Text(text) => clean(text),
            Part::Sounds(sounds) => format!("{{{sounds}}}"),
        };
        self.parts(text).into_iter().map(part).collect()
    }

    /// The ids of a cleaned text, with its ends and pads.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, UnknownText> {
        let mut ids: Vec<u32> = self.ends.then_some(BEGIN).into_iter().collect();
        for part in self.parts(text) {
            match part {
                Part::Text(text) => {
                    for character in text.chars().filter(|character| !self.leave_out.contains(character)) {
                        ids.push(*self.characters.get(&character).ok_or(UnknownText::Symbol(character))?);
                    }
                }
                Part::Sounds(sounds) => {
                    for sound in sounds.split_whitespace() {
                        ids.push(*self.sounds.get(sound).ok_or_else(|| UnknownText::Sound(sound.into()))?);
                    }
                }
            }
        }
        ids.extend(self.ends.then_some(END));
        if let Some(multiple) = self.pad_to {
            ids.resize((ids.len() + 1).next_multiple_of(multiple), PAD);
        }
        Ok(ids)
    }

    /// Splits a text into plain text and sounds in turn. Empty or unclosed braces are plain text.
    fn parts<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, sounds, behind)) = (!self.sounds.is_empty()).then(|| braces(rest)).flatten() {
            parts.extend([Part::Text(before), Part::Sounds(sounds)]);
            rest = behind;
        }
        parts.push(Part::Text(rest));
        parts
    }
}

/// The text before, in and after the first braces.
fn braces(text: &str) -> Option<(&str, &str, &str)> {
    let (before, opened) = text.split_once('{')?;
    let (sounds, behind) = opened.split_once('}')?;
    (!sounds.trim().is_empty()).then_some((before, sounds, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(spec: &str) -> Result<Symbols, SpeechError> {
        Symbols::new(&serde_json::from_str(&format!("{{\"kind\": \"symbols\", {spec}}}")).unwrap())
    }

    #[test]
    fn openseq2seq_reads_lower_case_between_ends_and_pads() {
        let read = symbols(r#""symbols": "openseq2seq", "cleaners": "lowercase", "ends": true, "pad_to": 8"#);
        let read = read.unwrap();
        let ids = |text: &str| read.ids(&read.cleaned(text)).unwrap();
        // `a` is on line 53 of the vocabulary; ids begin with 3.
        let a = 3 + " !\"'(),-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]".chars().count() as u32;
        assert_eq!(ids("A b"), [1, a, 3, a + 1, 2, 0, 0, 0]);
        // There is at least one pad: eight if the text with its ends fills a multiple.
        assert_eq!(ids("aaaaaa").len(), 16);
        assert_eq!(ids("aaaaa"), [1, a, a, a, a, a, 2, 0]);
        assert_eq!(read.ids("a~"), Err(UnknownText::Symbol('~')));
    }

    #[test]
    fn nvidia_reads_words_and_sounds() {
        let read = symbols(r#""symbols": "nvidia", "cleaners": "english", "leave_out": "\"[]""#).unwrap();
        let ids = |text: &str| read.ids(&read.cleaned(text));
        assert_eq!(ids("Ab-").unwrap(), [38, 39, 1]);
        assert_eq!(read.cleaned("\"2\" {HH AW1} Mr. X"), "\"two\" {HH AW1} mister x");
        assert_eq!(ids("\"a\" {HH AA0}b").unwrap(), [38, 11, 106, 65, 39]);
        assert_eq!(ids("{H}"), Err(UnknownText::Sound("H".into())));
        for (text, unknown) in [("a_", '_'), ("{}", '{'), ("a{b", '{'), ("10%", '%'), ("中", '中')] {
            assert_eq!(ids(text), Err(UnknownText::Symbol(unknown)), "{text}");
        }
    }

    #[test]
    fn sets_of_ones_own_come_behind_the_pad_and_the_ends() {
        let read = symbols(r#""symbols": "own", "characters": "b a{}", "ends": true"#).unwrap();
        assert_eq!(read.ids(&read.cleaned("ab {}")).unwrap(), [1, 5, 3, 4, 6, 7, 2]);
        for bad in [
            r#""symbols": "own""#,
            r#""symbols": "own", "characters": "aba""#,
            r#""symbols": "nvidia", "ends": true"#,
        ] {
            assert!(symbols(bad).unwrap_err().to_string().contains("data.tokenizer."), "{bad}");
        }
    }
}
