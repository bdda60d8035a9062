//! From frames to words with a search of a recipe.

use std::ops::Range;
use std::path::Path;

use zoo_datasets::speech::Classes;
use zoo_datasets::text::open_text;
use zoo_models::Pass;
use zoo_models::models::SpeechBatch;
use zoo_models::models::acoustic::AcousticModel;
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;
use zoo_models::search::Logits;
use zoo_models::search::ctc::{
    Frames, Lexicon, PrefixBeam, Pronunciation, Silence, Transcript, Words, greedy,
};
use zoo_models::search::ngram::Ngram;
use zoo_recipes::DecodeSpec;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// What Baidu's decoder gives an n-gram with a word that the language model does not know: log10 of its probability.
const UNKNOWN: f64 = -1000.0;

/// A search and what it needs.
pub struct Recogniser<'a> {
    model: &'a AcousticModel,
    classes: &'a Classes,
    compute: Compute,
    search: Search,
}

enum Search {
    Greedy,
    Lexicon(Lexicon),
    Beam { beam: usize, cutoff: f64, classes: usize, words: Option<LanguageModel> },
}

/// A language model and its weights.
struct LanguageModel {
    model: Ngram,
    alpha: f64,
    beta: f64,
    space: u32,
}

/// What was recognised in one recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// What is said.
    pub text: String,
    /// Each word of it and its frames, of those that the model puts out.
    pub words: Vec<Word>,
    /// Logarithm of what the search maximises.
    pub score: f64,
}

/// A word and its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub text: String,
    /// First frame, and the one behind the last.
    pub frames: Range<usize>,
}

impl<'a> Recogniser<'a> {
    /// A search of a recipe. Paths are relative to `base`.
    ///
    /// # Errors
    /// The language model cannot be read.
    pub fn new(
        model: &'a AcousticModel,
        classes: &'a Classes,
        spec: &DecodeSpec,
        base: &Path,
        compute: Compute,
    ) -> Result<Self> {
        if spec.lacks_language_model() {
            let hint = "--set decode.NAME.language_model=model.arpa.gz, or another search";
            let message = "the search needs a language model, and none is given";
            return Err(Failure::new(Exit::Recipe, message).hint(hint));
        }
        let search = match spec {
            DecodeSpec::CtcGreedy {} => Search::Greedy,
            DecodeSpec::CtcLexicon { log10, end_log10, silence } => {
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
            DecodeSpec::CtcBeam {
                beam,
                cutoff,
                cutoff_classes,
                language_model,
                alpha,
                beta,
                needs_language_model: _,
            } => {
                let words = language_model.as_ref().map(|file| -> Result<LanguageModel> {
                    let (path, space) = (base.join(file), classes.space());
                    let space = space.ok_or_else(|| {
                        Failure::new(Exit::Recipe, "words cannot be told apart: the alphabet has no space")
                    })?;
                    let text = open_text(&path).map_err(|error| Failure::io("open", &path, &error))?;
                    let model = Ngram::read(text, |word| classes.normalized(word)).map_err(|error| {
                        Failure::new(Exit::Data, error.to_string()).about(&path.display().to_string())
                    })?;
                    Ok(LanguageModel { model, alpha: *alpha, beta: *beta, space })
                });
                Search::Beam {
                    beam: *beam as usize,
                    cutoff: *cutoff,
                    classes: *cutoff_classes as usize,
                    words: words.transpose()?,
                }
            }
            DecodeSpec::Greedy { .. } | DecodeSpec::Beam { .. } => {
                return Err(Failure::new(
                    Exit::Recipe,
                    "this search is of tokens; the model puts out frames",
                ));
            }
        };
        Ok(Self { model, classes, compute, search })
    }

    /// What is said in each utterance of a batch. It does not depend on the others of the batch.
    pub fn recognise(&self, batch: &SpeechBatch) -> Vec<Recognised> {
        let frames = batch.frames(&self.model.device());
        let (logits, _) = self.model.forward(frames, &mut Pass::evaluation(self.compute));
        let (places, rows) = (logits.places(), logits.rows());
        let [_, classes] = rows.dims();
        let mut log_probs = Logits { vocabulary: classes, values: host_values(rows) };
        log_probs.log_softmax();
        let of = |&(first, frames): &(usize, usize)| {
            let log_probs = &log_probs.values[first * classes..][..frames * classes];
            self.found(Frames { log_probs, classes, blank: self.classes.blank() })
        };
        use rayon::prelude::*;
        places.par_iter().map(of).collect()
    }

    fn found(&self, frames: Frames<'_>) -> Recognised {
        let transcript = match &self.search {
            Search::Greedy => greedy(frames),
            Search::Lexicon(lexicon) => lexicon.decode(frames),
            Search::Beam { beam, cutoff, classes, words } => {
                let words = words.as_ref().map(|words| Words {
                    model: &words.model,
                    alpha: words.alpha,
                    beta: words.beta,
                    unknown: UNKNOWN,
                    space: words.space,
                    letters: self.classes.names(),
                });
                let search = PrefixBeam { beam: *beam, cutoff: *cutoff, classes: *classes, words };
                let empty = Transcript { units: Vec::new(), times: Vec::new(), score: f64::NEG_INFINITY };
                search.decode(frames, 1).into_iter().next().unwrap_or(empty)
            }
        };
        let words = match &self.search {
            Search::Lexicon(_) => self.words_of_lexicon(&transcript),
            _ => self.spelt(&transcript),
        };
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let text = texts.join(" ");
        Recognised { text, words, score: transcript.score }
    }

    fn words_of_lexicon(&self, transcript: &Transcript) -> Vec<Word> {
        let words = self.classes.words();
        let units = transcript.units.iter().zip(&transcript.times);
        units
            .map(|(&word, frames)| Word { text: words[word as usize].clone(), frames: frames.clone() })
            .collect()
    }

    /// Labels between spaces; sounds of a lexicon that are searched as labels stand apart.
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
