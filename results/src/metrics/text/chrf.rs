//! chrF and chrF++, as sacreBLEU 2.6.0 computes them.

use rayon::prelude::*;

use super::ngrams::{Grams, Lexicon};
use super::options::ChrfOptions;
use crate::metrics::contract::{
    Arithmetic, Case, Drawn, Entry, Limit, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source,
    check_lines, check_streams, column_sums, is_separator, is_space, separators_to_spaces, yes,
};
use zoo_recipes::Direction;

/// chrF, and chrF++ if words are counted too.
pub static CHRF: Entry = Entry::percent("chrf", "points, 0 to 100", Direction::Higher);

/// A name that some sources use for chrF.
pub static CHRF2: Entry =
    Entry::unjudged("chrf2", "points, 0 to 100", Direction::Higher, "its name here is chrf");

const BETA: f64 = 2.0;

/// Maximum characters of a line, whose n-grams of characters are counted.
const MOST_CHARACTERS: usize = 100_000;

/// Number of columns of a segment's statistics: hypothesis count, reference count and matches for
/// each order.
pub(crate) fn width(options: &ChrfOptions) -> usize {
    3 * (options.char_order + options.word_order)
}

/// F-score in percent from summed statistics.
pub(crate) fn from_sums(sums: &[f64], options: &ChrfOptions, arithmetic: Arithmetic) -> f64 {
    let r = |x: f64| arithmetic.round(x);
    let (epsilon, factor) = (1e-16, BETA * BETA);
    let (mut all, mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0, 0.0);
    for counts in sums.chunks_exact(3) {
        let (hypothesis, reference, matches) = (counts[0], counts[1], counts[2]);
        let p = if hypothesis > 0.0 { r(matches / hypothesis) } else { epsilon };
        let q = if reference > 0.0 { r(matches / reference) } else { epsilon };
        // In sacreBLEU, two epsilons are Python floats and stay in double precision.
        let r = |x: f64| if hypothesis > 0.0 || reference > 0.0 { r(x) } else { x };
        let denominator = r(r(factor * p) + q);
        let f = if denominator > 0.0 { r(r(r((1.0 + factor) * p) * q) / denominator) } else { epsilon };
        all = r(all + f);
        if hypothesis > 0.0 && reference > 0.0 {
            precision = r(precision + p);
            recall = r(recall + q);
            orders += 1.0;
        }
    }
    if options.eps_smoothing {
        return r(r(100.0 * all) / (sums.len() / 3) as f64);
    }
    if orders > 0.0 {
        precision = r(precision / orders);
        recall = r(recall / orders);
    }
    if precision + recall == 0.0 {
        return 0.0;
    }
    let product = r(r((1.0 + factor) * precision) * recall);
    r(100.0 * r(product / r(r(factor * precision) + recall)))
}

/// Words, with a punctuation mark at the end, or else at the beginning, split off.
fn words(line: &str) -> Vec<&str> {
    let mark = |c: char| c.is_ascii_punctuation();
    let mut words = Vec::new();
    for word in line.split(is_space).filter(|w| !w.is_empty()) {
        let (Some(first), Some(last)) = (word.chars().next(), word.chars().next_back()) else { continue };
        if first.len_utf8() == word.len() {
            words.push(word);
        } else if mark(last) {
            words.extend([&word[..word.len() - 1], &word[word.len() - 1..]]);
        } else if mark(first) {
            words.extend([&word[..1], &word[1..]]);
        } else {
            words.push(word);
        }
    }
    words
}

/// The characters of a line, as strings.
fn characters(line: &str, whitespace: bool) -> impl Iterator<Item = Option<&str>> {
    line.char_indices()
        .filter(move |(_, c)| whitespace || !is_space(*c))
        .map(|(at, c)| Some(&line[at..at + c.len_utf8()]))
}

/// Statistics of one segment, for the reference with the best score.
fn row(hypothesis: &str, references: &[&str], options: &ChrfOptions) -> Vec<f64> {
    let mut chars = Lexicon::new(options.char_order);
    let mut tokens = Lexicon::new(options.word_order.max(1));
    let h_chars = chars.grams(characters(hypothesis, options.whitespace));
    let h_words = tokens.grams(words(hypothesis).into_iter().map(Some));
    let mut best: (f64, Vec<f64>) = (-1.0, vec![0.0; width(options)]);
    for reference in references {
        let r_chars = chars.grams(characters(reference, options.whitespace));
        let r_words = tokens.grams(words(reference).into_iter().map(Some));
        let mut row = Vec::with_capacity(width(options));
        let mut count = |lexicon: &Lexicon, h: &Grams, r: Grams, orders: usize| {
            let r = [r];
            for n in 0..orders {
                let total = r[0].total(n);
                // If the reference has no n-gram of this order, those of the hypothesis do not
                // count.
                row.push(if total == 0 { 0.0 } else { h.total(n) as f64 });
                row.push(total as f64);
                row.push(lexicon.clipped(h, &r, n) as f64);
            }
        };
        count(&chars, &h_chars, r_chars, options.char_order);
        count(&tokens, &h_words, r_words, options.word_order);
        let f = from_sums(&row, options, Arithmetic::Double);
        if f > best.0 {
            best = (f, row);
        }
    }
    best.1
}

/// Rows of statistics by segment, and the corpus score, computed both by the library and from the
/// rows.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &ChrfOptions,
) -> Result<(Vec<f64>, f64), ScoreError> {
    check_streams(hypotheses, references)?;
    options.check_orders()?;
    let lower = |lines: &[String]| -> Vec<String> {
        match options.case {
            Case::Lower => lines.par_iter().map(|l| l.to_lowercase()).collect(),
            Case::Mixed => lines.to_vec(),
        }
    };
    let hypotheses = lower(hypotheses);
    let references: Vec<Vec<String>> = references.iter().map(|stream| lower(stream)).collect();
    let rows: Vec<f64> = (0..hypotheses.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let segment: Vec<&str> = references.iter().map(|stream| stream[i].as_str()).collect();
            row(&hypotheses[i], &segment, options)
        })
        .collect();
    let score = from_sums(&column_sums(&rows, width(options)), options, Arithmetic::Double);
    against_library(hypotheses, references, options, score)?;
    Ok((rows, score))
}

/// The library must agree. It does not treat U+001C to U+001F as white space, so they are replaced
/// by spaces first, except when white space itself is counted. If words are counted as well, no
/// text satisfies both, and only the rows are used.
fn against_library(
    mut hypotheses: Vec<String>,
    mut references: Vec<Vec<String>>,
    options: &ChrfOptions,
    own: f64,
) -> Result<(), ScoreError> {
    let odd = std::iter::once(&hypotheses).chain(&references).flatten().any(|l| l.contains(is_separator));
    if odd && options.whitespace && options.word_order > 0 {
        return Ok(());
    }
    if odd && !options.whitespace {
        for line in std::iter::once(&mut hypotheses).chain(&mut references).flatten() {
            *line = separators_to_spaces(line).into_owned();
        }
    }
    let library = sacrebleu_rs::Chrf {
        char_order: options.char_order,
        word_order: options.word_order,
        beta: BETA as i64,
        lowercase: false,
        whitespace: options.whitespace,
        eps_smoothing: options.eps_smoothing,
    }
    .corpus_score(&hypotheses, &references);
    if (library.score - own).abs() <= 1e-9 {
        return Ok(());
    }
    let (library, own) = (library.score.to_string(), own.to_string());
    Err(ScoreError::Disagreement { metric: "chrF", library, own })
}

impl Metric for ChrfOptions {
    fn entry(&self) -> &'static Entry {
        &CHRF
    }

    fn check(&self) -> Result<(), ScoreError> {
        self.check_orders()
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![
            self.case.part(),
            ("eff", yes(!self.eps_smoothing)),
            ("nc", self.char_order.to_string()),
            ("nw", self.word_order.to_string()),
            ("space", yes(self.whitespace)),
        ]
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn is_sacrebleu(&self) -> bool {
        true
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let count = |line: &str| line.chars().count();
        let limit = Limit { most: MOST_CHARACTERS, unit: "characters", count: &count };
        check_lines(&CHRF, limit, records, references)?;
        Ok(Rows::even(width(self), corpus(records, references, self)?.0).into())
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        let (sums, arithmetic) = drawn.sums();
        from_sums(sums, self, arithmetic)
    }
}

/// Reads the options of chrF.
pub fn read<C: From<ChrfOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    let options = ChrfOptions {
        case: parts.case()?,
        eps_smoothing: !parts.yes("eff")?,
        char_order: parts.number("nc", 1)?,
        word_order: parts.number("nw", 0)?,
        whitespace: parts.yes("space")?,
    };
    Ok(options.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_split_off_one_end() {
        assert_eq!(words("(hi) 'a b, ! ü. .ü"), ["(hi", ")", "'", "a", "b", ",", "!", "ü", ".", ".", "ü"]);
    }
}
