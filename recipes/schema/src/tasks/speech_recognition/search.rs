//! The `[decode.NAME]` blocks of a speech recognition recipe: searches in the classes of frames.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClassTokenizerSpec;
use crate::spec::{SearchBlock, SearchFile};
use crate::validate::Findings;

/// A search for the transcript of a recording (CTC).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CtcSearchSpec {
    /// Greedy CTC: the most likely class of each frame, with repeats merged and blanks removed.
    #[serde(rename = "ctc-greedy")]
    Greedy {},
    /// The most likely path through the words of the lexicon in `data.tokenizer`, weighted by a
    /// unigram model, with optional silence between words.
    #[serde(rename = "ctc-lexicon")]
    Lexicon {
        /// log10 of each word's probability.
        log10: BTreeMap<String, f64>,
        /// log10 of the probability that no further word follows.
        end_log10: f64,
        /// Probability of a silence at each place where one may be.
        silence: f64,
    },
    /// CTC prefix beam search (Hannun et al. 2014), optionally with a language model of words.
    #[serde(rename = "ctc-beam")]
    Beam {
        /// Beam size: number of prefixes kept.
        beam: u32,
        /// Classes of a frame are taken by falling probability until their sum reaches this.
        /// 1 takes all classes.
        #[serde(default = "all")]
        cutoff: f64,
        /// Largest number of classes taken from a frame.
        #[serde(default = "classes")]
        cutoff_classes: u32,
        /// n-gram model in ARPA format, optionally gzipped.
        /// The path is relative to the recipe file. Absent: no language model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language_model: Option<String>,
        /// Whether the user must supply the language model.
        /// Without one the search is not run, and its claims are not judged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        needs_language_model: bool,
        /// Weight of the language model's log10 probabilities.
        #[serde(default)]
        alpha: f64,
        /// Bonus added for every word.
        #[serde(default)]
        beta: f64,
        /// Words that may be spelt. Absent: any words.
        /// Prefixes that do not begin any of these words are dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<WordsSpec>,
    },
}

/// Source of the words that may be spelt. Words that the alphabet cannot spell are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WordsSpec {
    /// The words of the language model, as in Baidu's decoder.
    OfLanguageModel {},
    /// The first word of each line of a file, optionally gzipped.
    Listed {
        /// Path of the file, relative to the recipe file.
        file: String,
    },
}

impl SearchBlock for CtcSearchSpec {
    fn language_model(&self) -> Option<&String> {
        match self {
            Self::Beam { language_model, .. } => language_model.as_ref(),
            Self::Greedy {} | Self::Lexicon { .. } => None,
        }
    }

    fn word_list(&self) -> Option<&String> {
        match self {
            Self::Beam { words: Some(WordsSpec::Listed { file }), .. } => Some(file),
            Self::Beam { .. } | Self::Greedy {} | Self::Lexicon { .. } => None,
        }
    }

    fn lacks_language_model(&self) -> bool {
        matches!(self, Self::Beam { needs_language_model: true, language_model: None, .. })
    }

    fn read(&mut self, of: SearchFile, path: String) {
        match (self, of) {
            (Self::Beam { language_model, .. }, SearchFile::LanguageModel) => *language_model = Some(path),
            (Self::Beam { words: Some(WordsSpec::Listed { file }), .. }, SearchFile::WordList) => {
                *file = path
            }
            _ => {}
        }
    }
}

impl CtcSearchSpec {
    /// Checks the search at `path`, which writes what the tokenizer reads.
    pub(super) fn check(&self, tokenizer: &ClassTokenizerSpec, path: &str, findings: &mut Findings<'_, '_>) {
        match self {
            Self::Greedy {} => {}
            Self::Lexicon { log10, end_log10, silence } => {
                in_lexicon(tokenizer, (log10, *end_log10, *silence), path, findings);
            }
            Self::Beam {
                beam,
                cutoff,
                cutoff_classes,
                language_model,
                needs_language_model,
                alpha,
                beta,
                words,
            } => {
                findings.positive(u64::from(*beam), &format!("{path}.beam"));
                findings.positive(u64::from(*cutoff_classes), &format!("{path}.cutoff_classes"));
                findings.require(*cutoff > 0.0 && *cutoff <= 1.0, &format!("{path}.cutoff"), || {
                    format!("`{path}.cutoff` is {cutoff}; it is a probability above 0")
                });
                if let Some(model) = language_model {
                    findings.said(model, &format!("{path}.language_model"));
                }
                let none = language_model.is_none() && !needs_language_model;
                if none && (*alpha != 0.0 || *beta != 0.0) {
                    findings.report_with(
                        path,
                        "`alpha` and `beta` weigh a language model, and there is none",
                        "language_model = \"model.arpa.gz\", or needs_language_model = true",
                    );
                }
                if let Some(words) = words {
                    spelt(tokenizer, words, none, &format!("{path}.words"), findings);
                }
            }
        }
    }
}

/// Checks a search through the words of the tokenizer.
fn in_lexicon(
    tokenizer: &ClassTokenizerSpec,
    (log10, end_log10, silence): (&BTreeMap<String, f64>, f64, f64),
    path: &str,
    findings: &mut Findings<'_, '_>,
) {
    let ClassTokenizerSpec::Lexicon { words, silence: sound } = tokenizer else {
        let hint = "[data.tokenizer] kind = \"lexicon\"";
        return findings.report_with(path, "the tokenizer has no lexicon to search in", hint);
    };
    for (word, log10) in log10 {
        let path = format!("{path}.log10.{word}");
        findings.exists(word, words.keys().map(String::as_str), &path, "word");
        findings.require(*log10 <= 0.0, &path, || format!("{log10} is not the logarithm of a probability"));
    }
    for word in words.keys().filter(|word| !log10.contains_key(*word)) {
        findings.report(&format!("{path}.log10"), format!("nothing is said of the word {word}"));
    }
    findings.require(end_log10 <= 0.0, &format!("{path}.end_log10"), || {
        format!("{end_log10} is not the logarithm of a probability")
    });
    findings.require((0.0..=1.0).contains(&silence), &format!("{path}.silence"), || {
        format!("`{path}.silence` is {silence}; it is a probability")
    });
    findings.require(sound.is_some() || silence == 0.0, &format!("{path}.silence"), || {
        "the lexicon has no silence".to_owned()
    });
}

/// Checks the words that a search may spell.
fn spelt(
    tokenizer: &ClassTokenizerSpec,
    words: &WordsSpec,
    no_language_model: bool,
    path: &str,
    findings: &mut Findings<'_, '_>,
) {
    match words {
        WordsSpec::OfLanguageModel {} => findings.require(!no_language_model, path, || {
            "the words are those of a language model, and there is none".to_owned()
        }),
        WordsSpec::Listed { file } => findings.said(file, &format!("{path}.file")),
    }
    let spelt =
        matches!(tokenizer, ClassTokenizerSpec::Characters { alphabet, .. } if alphabet.contains(' '));
    findings.require(spelt, path, || {
        "words are spelt in an alphabet that has a space, and the tokenizer has none".to_owned()
    });
}

fn all() -> f64 {
    1.0
}

/// Default of Baidu's decoder in OpenSeq2Seq.
fn classes() -> u32 {
    40
}
