//! The searches of a recipe with their language model and vocabulary: frames to words.

use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use zoo_datasets::speech::Classes;
use zoo_datasets::text::open_text;
use zoo_models::search::ctc::{
    Frames, Lexicon, PrefixBeam, Pronunciation, Silence, Transcript, Vocabulary, Words, greedy,
};
use zoo_models::search::ngram::Ngram;
use zoo_recipes::SearchBlock;
use zoo_recipes::tasks::speech_recognition::{CtcSearchSpec, WordsSpec};
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// log10 probability of an n-gram with a word that the language model does not contain, as in
/// Baidu's decoder.
const UNKNOWN: f64 = -1000.0;

/// A search that is ready to decode frames.
pub struct Searcher<'a> {
    classes: &'a Classes,
    search: Search,
}

enum Search {
    Greedy,
    Lexicon(Lexicon),
    Beam(Box<Beam>),
}

struct Beam {
    beam: usize,
    cutoff: f64,
    classes: usize,
    words: Option<LanguageModel>,
    vocabulary: Option<Vocabulary>,
}

/// A language model with its weights.
struct LanguageModel {
    model: Ngram,
    alpha: f64,
    beta: f64,
    space: u32,
}

/// Transcript of one recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    pub text: String,
    /// Words of the text with their output frames.
    pub words: Vec<Word>,
    /// Logarithm of the search's objective.
    pub score: f64,
    /// The language model's part of `score`; `None` if the search does not report it separately.
    pub language_model: Option<f64>,
}

/// A word with its output frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Spelling of the word.
    pub text: String,
    /// Frames of the word.
    pub frames: Range<usize>,
}

impl<'a> Searcher<'a> {
    /// Prepares a search of a recipe. Paths are relative to `base`.
    ///
    /// # Errors
    /// The language model cannot be read, or the search needs one and none is given.
    pub fn new(classes: &'a Classes, spec: &CtcSearchSpec, base: &Path) -> Result<Self> {
        if spec.lacks_language_model() {
            let hint = "--set decode.NAME.language_model=model.arpa.gz, or another search";
            let message = "the search needs a language model, and none is given";
            return Err(Failure::new(Exit::Recipe, message).hint(hint));
        }
        let search = match spec {
            CtcSearchSpec::Greedy {} => Search::Greedy,
            CtcSearchSpec::Lexicon { log10, end_log10, silence } => {
                let ln10 = std::f64::consts::LN_10;
                let words = classes.words().iter().enumerate().map(|(word, text)| Pronunciation {
                    word: word as u32,
                    labels: classes.pronunciation(word).to_vec(),
                    log_prob: log10.get(text).copied().unwrap_or(f64::NEG_INFINITY) * ln10,
                });
                let words: Vec<Pronunciation> = words.collect();
                let silence = classes
                    .silence()
                    .map(|label| Silence { label, log_probs: [silence.ln(), (1.0 - silence).ln()] });
                Search::Lexicon(Lexicon::new(&words, silence, end_log10 * ln10, classes.blank()))
            }
            CtcSearchSpec::Beam {
                beam,
                cutoff,
                cutoff_classes,
                language_model,
                alpha,
                beta,
                words,
                needs_language_model: _,
            } => {
                let space = || {
                    classes.space().ok_or_else(|| {
                        Failure::new(Exit::Recipe, "words cannot be separated: the alphabet has no space")
                    })
                };
                let language_model = language_model.as_ref().map(|file| -> Result<LanguageModel> {
                    let (path, space) = (base.join(file), space()?);
                    let text = open_text(&path).map_err(|error| Failure::io("open", &path, &error))?;
                    let model = Ngram::read(text, |word| classes.normalized(word)).map_err(|error| {
                        Failure::new(Exit::Data, error.to_string()).about(&path.display().to_string())
                    })?;
                    Ok(LanguageModel { model, alpha: *alpha, beta: *beta, space })
                });
                let language_model = language_model.transpose()?;
                let model = language_model.as_ref().map(|known| &known.model);
                let vocabulary =
                    words.as_ref().map(|words| vocabulary(words, model, classes, space()?, base));
                Search::Beam(Box::new(Beam {
                    beam: *beam as usize,
                    cutoff: *cutoff,
                    classes: *cutoff_classes as usize,
                    vocabulary: vocabulary.transpose()?,
                    words: language_model,
                }))
            }
        };
        Ok(Self { classes, search })
    }

    /// Mutable weights of the language model: `alpha` multiplies its log10 probabilities, `beta` is
    /// added per word. `None` if there is no language model.
    pub fn weights_mut(&mut self) -> Option<(&mut f64, &mut f64)> {
        match &mut self.search {
            Search::Beam(beam) => beam.words.as_mut().map(|words| (&mut words.alpha, &mut words.beta)),
            _ => None,
        }
    }

    /// Up to `count` transcripts with different spellings, in descending order of score. A search
    /// without a beam returns one.
    pub fn hypotheses(&self, frames: Frames<'_>, count: usize) -> Vec<Recognised> {
        let mut found: Vec<Recognised> = Vec::new();
        for transcript in self.transcripts(frames, count) {
            let one = self.written(transcript);
            // Spaces that do not end a word give several prefixes with the same text.
            if found.len() < count && found.iter().all(|known| known.text != one.text) {
                found.push(one);
            }
        }
        found
    }

    /// The best transcript; an empty one if the search finds none.
    pub fn best(&self, frames: Frames<'_>) -> Recognised {
        let nothing = Recognised {
            text: String::new(),
            words: Vec::new(),
            score: f64::NEG_INFINITY,
            language_model: None,
        };
        self.hypotheses(frames, 1).into_iter().next().unwrap_or(nothing)
    }

    fn transcripts(&self, frames: Frames<'_>, count: usize) -> Vec<Transcript> {
        match &self.search {
            Search::Greedy => vec![greedy(frames)],
            Search::Lexicon(lexicon) => vec![lexicon.decode(frames)],
            Search::Beam(search) => {
                let words = search.words.as_ref().map(|words| Words {
                    model: &words.model,
                    alpha: words.alpha,
                    beta: words.beta,
                    unknown: UNKNOWN,
                    space: words.space,
                    letters: self.classes.names(),
                });
                let Beam { beam, cutoff, classes, .. } = **search;
                let vocabulary = search.vocabulary.as_ref();
                let search = PrefixBeam { beam, cutoff, classes, words, vocabulary };
                search.decode(frames, if count == 1 { 1 } else { usize::MAX })
            }
        }
    }

    fn written(&self, transcript: Transcript) -> Recognised {
        let words = match &self.search {
            Search::Lexicon(_) => self.words_of_lexicon(&transcript),
            _ => self.spelt(&transcript),
        };
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let text = texts.join(" ");
        let Transcript { score, language_model, .. } = transcript;
        Recognised { text, words, score, language_model }
    }

    fn words_of_lexicon(&self, transcript: &Transcript) -> Vec<Word> {
        let words = self.classes.words();
        let units = transcript.units.iter().zip(&transcript.times);
        units
            .map(|(&word, frames)| Word { text: words[word as usize].clone(), frames: frames.clone() })
            .collect()
    }

    /// Splits labels at spaces into words. Labels are separate words if the classes are sounds of a
    /// lexicon.
    fn spelt(&self, transcript: &Transcript) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        let mut open = false;
        let apart = !self.classes.words().is_empty();
        for (&label, frames) in transcript.units.iter().zip(&transcript.times) {
            if Some(label) == self.classes.space() || Some(label) == self.classes.silence() {
                open = false;
                continue;
            }
            let name = &self.classes.names()[label as usize];
            match words.last_mut().filter(|_| open && !apart) {
                Some(word) => {
                    word.text.push_str(name);
                    word.frames.end = frames.end;
                }
                None => words.push(Word { text: name.clone(), frames: frames.clone() }),
            }
            open = true;
        }
        words
    }
}

/// The words that may be spelt, spelt as the tokenizer spells text.
fn vocabulary(
    words: &WordsSpec,
    model: Option<&Ngram>,
    classes: &Classes,
    space: u32,
    base: &Path,
) -> Result<Vocabulary> {
    let (found, of) = match words {
        WordsSpec::OfLanguageModel {} => {
            let known = model.into_iter().flat_map(Ngram::words);
            (Vocabulary::new(known, classes.names(), space), "the language model".to_owned())
        }
        WordsSpec::Listed { file } => {
            let path = base.join(file);
            let lines = open_text(&path).and_then(|text| text.lines().collect::<std::io::Result<Vec<_>>>());
            let lines = lines.map_err(|error| Failure::io("read", &path, &error))?;
            let first = lines.iter().filter_map(|line| line.split_whitespace().next());
            let known: Vec<String> = first.map(|word| classes.normalized(word)).collect();
            let known = known.iter().map(String::as_str);
            (Vocabulary::new(known, classes.names(), space), path.display().to_string())
        }
    };
    match found.is_empty() {
        true => {
            Err(Failure::new(Exit::Data, format!("no word of {of} can be spelt in the recipe's alphabet"))
                .hint("check data.tokenizer.normalize, which spells the words"))
        }
        false => Ok(found),
    }
}
