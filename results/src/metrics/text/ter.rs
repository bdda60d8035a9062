//! TER (Tercom), as sacreBLEU 2.6.0 computes it.

use std::sync::LazyLock;

use rayon::prelude::*;
use regex::Regex;

use super::options::TerOptions;
use super::tercom;
use crate::metrics::contract::{
    Arithmetic, Case, Drawn, Entry, Limit, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source,
    check_lines, check_streams, separators_to_spaces, yes,
};
use zoo_recipes::Direction;

/// Translation edit rate.
pub static TER: Entry = Entry::percent("ter", "percent", Direction::Lower);

/// Columns of a segment's statistics: fewest edits, mean reference length.
pub(crate) const WIDTH: usize = 2;

/// Maximum words of a line that Tercom aligns: it tries a thousand candidate shifts, each with a
/// beam of 50 cells per word.
const MOST_WORDS: usize = 20_000;

/// TER in percent from summed statistics.
pub(crate) fn from_sums(sums: &[f64], arithmetic: Arithmetic) -> f64 {
    let (edits, length) = (sums[0], sums[1]);
    let r = |x: f64| arithmetic.round(x);
    if length > 0.0 {
        r(100.0 * r(edits / length))
    } else if edits > 0.0 {
        100.0
    } else {
        0.0
    }
}

/// Rows of statistics by segment: the edits to the reference that needs fewest, and the references'
/// mean length.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &TerOptions,
) -> Result<Vec<f64>, ScoreError> {
    check_streams(hypotheses, references)?;
    Ok((0..hypotheses.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let hypothesis = normalise(&hypotheses[i], options);
            let hypothesis = words(&hypothesis);
            let (mut fewest, mut length) = (u64::MAX, 0);
            for stream in references {
                let reference = normalise(&stream[i], options);
                let reference = words(&reference);
                fewest = fewest.min(tercom::edits(&hypothesis, &reference));
                length += reference.len();
            }
            [fewest as f64, length as f64 / references.len() as f64]
        })
        .collect())
}

/// Number of words of a line after normalisation.
fn count_words(line: &str, options: &TerOptions) -> usize {
    words(&normalise(line, options)).len()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Tercom's normalisation of Western text, as far as the options request it.
fn normalise(line: &str, options: &TerOptions) -> String {
    let line = separators_to_spaces(line);
    let line = line.trim_end();
    let mut text = if options.case == Case::Mixed { line.to_owned() } else { line.to_lowercase() };
    if options.normalized && !text.is_empty() {
        text = western(&text);
    }
    if options.no_punct {
        text.retain(|c| !".,?:;!\"()".contains(c));
    }
    text
}

fn western(text: &str) -> String {
    /// Rules in order: separate punctuation; a final possessive `'s`; full stops and commas unless
    /// after a digit, then unless before a digit; dashes after a digit.
    static RULES: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
        let rule = |pattern: &str| Regex::new(pattern).expect("written here");
        [
            (rule(r"([\x20-\x26\x28-\x2b\x2f\x3a-\x40\x5b-\x60\x7b-\x7e])"), " $1 "),
            (rule(r"'s$"), " 's"),
            (rule(r"([^0-9])([\.,])"), "$1 $2 "),
            (rule(r"([\.,])([^0-9])"), " $1 $2"),
            (rule(r"([0-9])(-)"), "$1 $2 "),
        ]
    });
    let mut text = text.replace("\n-", "").replace('\n', " ");
    for (entity, mark) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
        text = text.replace(entity, mark);
    }
    text = format!(" {text} ");
    for (at, (rule, by)) in RULES.iter().enumerate() {
        text = rule.replace_all(&text, *by).into_owned();
        if at == 0 {
            text = text.replace("'s ", " 's ");
        }
    }
    text
}

impl Metric for TerOptions {
    fn entry(&self) -> &'static Entry {
        &TER
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![
            self.case.part(),
            ("tok", "tercom".to_string()),
            ("norm", yes(self.normalized)),
            ("punct", yes(!self.no_punct)),
            ("asian", yes(false)),
        ]
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn is_sacrebleu(&self) -> bool {
        true
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let count = |line: &str| count_words(line, self);
        let limit = Limit { most: MOST_WORDS, unit: "words", count: &count };
        check_lines(&TER, limit, records, references)?;
        Ok(Rows::even(WIDTH, corpus(records, references, self)?).into())
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        from_sums(sums, arithmetic)
    }
}

/// Reads the options of TER.
pub fn read<C: From<TerOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let case = parts.case()?;
    parts.take("tok")?;
    let (normalized, no_punct) = (parts.yes("norm")?, !parts.yes("punct")?);
    if parts.yes("asian")? {
        let hint = "segment such text first and score with asian:no";
        return parts.fail("Tercom's Asian normalisation is not built in".into(), hint);
    }
    Ok(TerOptions { case, normalized, no_punct }.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// The library's own steps before counting are private, so whole segments are compared with
        /// it.
        #[test]
        fn segments_are_the_library_s(
            hypothesis in "[aAbB'.,0-9 \"&;()quot\\-s]{0,40}",
            references in prop::collection::vec("[aAbB'.,0-9 \"&;()quot\\-s]{0,40}", 1..3),
            normalized: bool, no_punct: bool, lower: bool,
        ) {
            let case = if lower { Case::Lower } else { Case::Mixed };
            let options = TerOptions { normalized, no_punct, case };
            let streams: Vec<Vec<String>> = references.iter().map(|line| vec![line.clone()]).collect();
            let row = corpus(std::slice::from_ref(&hypothesis), &streams, &options).unwrap();
            let library = sacrebleu_rs::Ter { normalized, no_punct, case_sensitive: !lower };
            let score = library.sentence_score(&hypothesis, &references);
            prop_assert_eq!(row, vec![score.num_edits as f64, score.ref_length]);
        }
    }
}
