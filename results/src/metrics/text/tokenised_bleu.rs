//! BLEU-4 on text that is already tokenised: Moses' `multi-bleu.perl` and fairseq's libbleu.
//!
//! On clean text both equal sacreBLEU with `tok:none|smooth:none`. They differ in edge cases:
//!
//! | | multi-bleu | fairseq | sacreBLEU |
//! |---|---|---|---|
//! | white space | ASCII | Unicode | Unicode |
//! | `case:lc` | ASCII letters | Unicode | Unicode |
//! | empty line | no token | one end-of-sentence token | no token |
//! | `<unk>` in a reference | a word | matches nothing | a word |
//! | `</s>` at the end, `<pad>` at either end | words | cut off | words |
//! | references | any number | one | any number |
//! | an order without a match | score 0 | score 0 | score 0 |
//! | no reference token at all | prints zeros and fails | cannot happen | score 0 |
//! | no hypothesis token at all | division by zero | cannot happen | score 0 |
//!
//! Compounds may be split first: see [`split_compounds`].
//!
//! Cases where a tool fails are errors here. One behaviour is not reproduced: multi-bleu uses 9,999
//! as the length of a reference whose length differs from the hypothesis's by more than that.

use std::borrow::Cow;

use rayon::prelude::*;

use super::bleu::{self, BLEU, BleuDetail, ORDER, WIDTH, brevity, check_length, logarithm, row};
use super::options::{BleuOptions, Compounds, Smoothing, TokenisedBleu, TokenisedBleuOptions, Tokenizer};
use crate::metrics::contract::{
    Case, Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source, check_streams,
    column_sums, is_space, yes,
};

/// Score, precisions in percent and brevity penalty from summed statistics; 0 where the tools
/// divide by zero.
pub(crate) fn from_sums(sums: &[f64]) -> (f64, [f64; ORDER], f64) {
    let share = |n: usize| if sums[2 + ORDER + n] > 0.0 { sums[2 + n] / sums[2 + ORDER + n] } else { 0.0 };
    let shares: [f64; ORDER] = std::array::from_fn(share);
    let brevity_penalty = brevity(sums[0], sums[1]);
    let logarithms: f64 = shares.iter().map(|p| logarithm(*p)).sum();
    let score = 100.0 * brevity_penalty * (logarithms / ORDER as f64).exp();
    (score, shares.map(|p| 100.0 * p), brevity_penalty)
}

/// Rows of statistics by segment, and the corpus score.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[Vec<String>],
    whose: TokenisedBleu,
    case: Case,
    compounds: Compounds,
) -> Result<(Vec<f64>, BleuDetail), ScoreError> {
    check_streams(hypotheses, references)?;
    if whose == TokenisedBleu::Fairseq && references.len() > 1 {
        return Err(ScoreError::ReferenceCount { expected: 1, found: references.len() });
    }
    let prepared = |lines: &[String]| -> Vec<String> {
        lines
            .iter()
            .map(|line| match compounds {
                Compounds::Whole => Cow::Borrowed(line.as_str()),
                Compounds::Split => Cow::Owned(split_compounds(line)),
            })
            .map(|line| match (case, whose) {
                (Case::Mixed, _) => line.into_owned(),
                (Case::Lower, TokenisedBleu::MultiBleu) => line.to_ascii_lowercase(),
                (Case::Lower, TokenisedBleu::Fairseq) => line.to_lowercase(),
            })
            .collect()
    };
    let hypotheses = prepared(hypotheses);
    let references: Vec<Vec<String>> = references.iter().map(|stream| prepared(stream)).collect();
    let rows: Vec<f64> = (0..hypotheses.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let segment: Vec<_> = references.iter().map(|stream| tokens(&stream[i], whose, true)).collect();
            row(&tokens(&hypotheses[i], whose, false), &segment)
        })
        .collect();
    let sums = column_sums(&rows, WIDTH);
    let undefined = |reason, hint| Err(ScoreError::Undefined { tool: whose.name(), reason, hint });
    if sums[1] == 0.0 {
        return undefined("the references have no token", "is this the right reference file?");
    }
    if sums[0] == 0.0 {
        return undefined(
            "the hypotheses have no token",
            "look at the decoder's output: every line is empty",
        );
    }
    let (score, precisions, brevity_penalty) = from_sums(&sums);
    Ok((rows, BleuDetail::new(&sums, score, precisions, brevity_penalty)))
}

/// Splits hyphens between two bytes that are not ASCII white space into tokens of their own.
///
/// The published scripts replace `(\S)-(\S)` from left to right over bytes, so a byte that ended
/// one replacement cannot start the next one. The second hyphen of `a-b-c` is therefore kept, but
/// both of `a-ä-c` are split, since ä has two bytes.
pub fn split_compounds(line: &str) -> String {
    let bytes = line.as_bytes();
    let solid = |at: usize| bytes.get(at).is_some_and(|b| !matches!(b, b' ' | b'\t'..=b'\r'));
    let (mut split, mut copied, mut free) = (String::with_capacity(line.len() + 16), 0, 0);
    for at in (1..bytes.len()).filter(|at| bytes[*at] == b'-') {
        if at > free && solid(at - 1) && solid(at + 1) {
            split.push_str(&line[copied..at]);
            split.push_str(" ##AT##-##AT## ");
            (copied, free) = (at + 1, at + 2);
        }
    }
    split.push_str(&line[copied..]);
    split
}

/// The tokens that the tool counts; `None` matches nothing.
fn tokens(line: &str, whose: TokenisedBleu, reference: bool) -> Vec<Option<&str>> {
    match whose {
        TokenisedBleu::MultiBleu => line
            .split([' ', '\t', '\n', '\r', '\u{b}', '\u{c}'])
            .filter(|w| !w.is_empty())
            .map(Some)
            .collect(),
        TokenisedBleu::Fairseq => {
            let mut words: Vec<&str> = line.split(is_space).filter(|w| !w.is_empty()).collect();
            // The dictionary ends every line with this token. Trimming never removes the first
            // token.
            words.push("</s>");
            let start = words.iter().position(|w| *w != "<pad>").unwrap_or(0);
            let mut words = &words[start..];
            while let [_, .., "</s>" | "<pad>"] = words {
                words = &words[..words.len() - 1];
            }
            words.iter().map(|w| if reference && *w == "<unk>" { None } else { Some(*w) }).collect()
        }
    }
}

impl Metric for TokenisedBleuOptions {
    fn entry(&self) -> &'static Entry {
        &BLEU
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = vec![
            self.case.part(),
            ("eff", yes(false)),
            ("tok", Tokenizer::None.name().to_string()),
            ("smooth", Smoothing::None.to_string()),
            ("impl", self.whose.name().to_string()),
        ];
        if self.compounds == Compounds::Split {
            parts.push(("compounds", "split".to_string()));
        }
        parts
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        check_length(records, references)?;
        let (rows, detail) = corpus(records, references, self.whose, self.case, self.compounds)?;
        Ok(Reading { rows: Rows::even(WIDTH, rows), detail: detail.parts() })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        from_sums(drawn.sums().0).0
    }
}

/// Reads the options of any kind of BLEU: those of a tool if the signature names one, else
/// sacreBLEU's.
pub fn read<C: From<BleuOptions> + From<TokenisedBleuOptions>>(
    parts: &mut Parts<'_>,
) -> Result<C, SignatureError> {
    let options = bleu::read(parts)?;
    Ok(match of_tool(parts, &options)? {
        Some(tokenised) => tokenised.into(),
        None => options.into(),
    })
}

/// The options, if a signature names the tool; `None` if it is sacreBLEU's, whose `options` were
/// read.
fn of_tool(
    parts: &mut Parts<'_>,
    options: &BleuOptions,
) -> Result<Option<TokenisedBleuOptions>, SignatureError> {
    let compounds = match parts.optional("compounds").as_deref() {
        None => Compounds::Whole,
        Some("split") if parts.has("impl") => Compounds::Split,
        Some("split") => {
            let hint = "compounds are split in tokenised text: state whose BLEU it is, impl:fairseq or impl:multi-bleu";
            return parts.fail("`compounds:split` without `impl`".into(), hint);
        }
        Some(other) => {
            let problem = format!("`compounds:{other}`");
            return parts.fail(problem, "compounds is `split` or absent");
        }
    };
    let Some(whose) = parts.optional("impl") else { return Ok(None) };
    let Some(whose) =
        [TokenisedBleu::MultiBleu, TokenisedBleu::Fairseq].into_iter().find(|w| w.name() == whose)
    else {
        return parts
            .fail(format!("`impl:{whose}`"), "impl is `multi-bleu` or `fairseq`; sacreBLEU's has none");
    };
    let BleuOptions { case, effective_order, tokenizer, smoothing } = *options;
    if effective_order || tokenizer != Tokenizer::None || smoothing != Smoothing::None {
        let problem = format!("{} is eff:no, tok:none and smooth:none", whose.name());
        return parts.fail(problem, "omit `impl:` for sacreBLEU's");
    }
    Ok(Some(TokenisedBleuOptions { whose, case, compounds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|s| s.to_string()).collect()
    }

    fn score(h: &[&str], r: &[&[&str]], whose: TokenisedBleu, case: Case) -> Result<BleuDetail, ScoreError> {
        let references: Vec<Vec<String>> = r.iter().map(|s| lines(s)).collect();
        corpus(&lines(h), &references, whose, case, Compounds::Whole).map(|(_, detail)| detail)
    }

    #[test]
    fn white_space_and_case_are_the_tools_own() {
        // U+00A0 separates words for fairseq only, and multi-bleu lower-cases only ASCII letters.
        let (h, r) = (["A\u{a0}b c d Ä f"], ["a\u{a0}b c d ä f"]);
        let m = score(&h, &[&r], TokenisedBleu::MultiBleu, Case::Lower).unwrap();
        assert_eq!((m.hypothesis_length, m.correct), (5, [4, 2, 1, 0]));
        assert_eq!(m.score, 0.0);
        let f = score(&h, &[&r], TokenisedBleu::Fairseq, Case::Lower).unwrap();
        assert_eq!((f.hypothesis_length, f.correct), (6, [6, 5, 4, 3]));
        assert!((f.score - 100.0).abs() < 1e-9);
    }

    #[test]
    fn fairseq_counts_an_empty_line_and_never_matches_unknown_words() {
        let f =
            score(&["", "a b c d e"], &[&["", "a b c d e"]], TokenisedBleu::Fairseq, Case::Mixed).unwrap();
        assert_eq!((f.hypothesis_length, f.reference_length, f.correct[0]), (6, 6, 6));
        let f = score(&["a <unk> b"], &[&["a <unk> b </s>"]], TokenisedBleu::Fairseq, Case::Mixed).unwrap();
        assert_eq!((f.hypothesis_length, f.reference_length, f.correct), (3, 3, [2, 0, 0, 0]));
        let m = score(&["", "a <unk>"], &[&["", "a <unk>"]], TokenisedBleu::MultiBleu, Case::Mixed).unwrap();
        assert_eq!((m.hypothesis_length, m.correct), (2, [2, 1, 0, 0]));
    }

    /// The expected values are the output of the scripts' own Perl code.
    #[test]
    fn compounds_are_split_as_the_published_scripts_do() {
        for (line, expected) in [
            ("EU-weit", "EU ##AT##-##AT## weit"),
            ("a-b-c", "a ##AT##-##AT## b-c"),
            ("a - b", "a - b"),
            ("-a", "-a"),
            ("a-", "a-"),
            ("a--b", "a ##AT##-##AT## -b"),
            ("a---b", "a ##AT##-##AT## --b"),
            ("a-b c-d", "a ##AT##-##AT## b c ##AT##-##AT## d"),
            ("a-ä-c", "a ##AT##-##AT## ä ##AT##-##AT## c"),
            ("ä-ö-ü", "ä ##AT##-##AT## ö ##AT##-##AT## ü"),
            ("a-\u{a0}b", "a ##AT##-##AT## \u{a0}b"),
            ("x\u{a0}-y", "x\u{a0} ##AT##-##AT## y"),
            ("a-b-c-d-e", "a ##AT##-##AT## b-c ##AT##-##AT## d-e"),
            ("##AT##-##AT##", "##AT## ##AT##-##AT## ##AT##"),
            ("-", "-"),
            ("--", "--"),
            ("a\t-b", "a\t-b"),
            ("", ""),
            (
                "Bundes-Kanzler-Amt ist 5-10 mal",
                "Bundes ##AT##-##AT## Kanzler ##AT##-##AT## Amt ist 5 ##AT##-##AT## 10 mal",
            ),
        ] {
            assert_eq!(split_compounds(line), expected, "{line:?}");
        }
    }

    #[test]
    fn splitting_compounds_finds_matches_inside_of_them() {
        let (h, r) = (lines(&["der EU-weite Plan gilt"]), vec![lines(&["der US-weite Plan gilt"])]);
        let of = |compounds| corpus(&h, &r, TokenisedBleu::Fairseq, Case::Mixed, compounds).unwrap().1;
        let (whole, split) = (of(Compounds::Whole), of(Compounds::Split));
        assert_eq!((whole.hypothesis_length, whole.correct[0]), (4, 3));
        assert_eq!((split.hypothesis_length, split.correct[0]), (6, 5));
        assert!(split.score > whole.score);
    }

    #[test]
    fn what_the_tools_cannot_score_is_an_error() {
        let moses = |h: &[&str], r: &[&str]| score(h, &[r], TokenisedBleu::MultiBleu, Case::Mixed);
        assert!(moses(&["a"], &[""]).unwrap_err().to_string().contains("references have no token"));
        assert!(moses(&[""], &["a"]).unwrap_err().to_string().contains("hypotheses have no token"));
        let two = score(&["a"], &[&["a"], &["b"]], TokenisedBleu::Fairseq, Case::Mixed).unwrap_err();
        assert_eq!(two, ScoreError::ReferenceCount { expected: 1, found: 2 });
    }
}
