//! Changes of a line of text before it is split into words.

use std::borrow::Cow;

use zoo_recipes::tasks::language_modelling::WordRules;

use crate::text::reviews;

/// A line as the rules change it.
pub(super) fn ruled(line: &str, rules: Option<WordRules>) -> Cow<'_, str> {
    match rules {
        None => Cow::Borrowed(line),
        Some(WordRules::Openseq2seq) => Cow::Owned(openseq2seq(line)),
        Some(WordRules::Reviews) => {
            Cow::Owned(reviews::words(line, reviews::Kind::Review, |_| false).join(" "))
        }
    }
}

/// OpenSeq2Seq, `open_seq2seq/data/lm/lmutils.py`, `Corpus.preprocess`: four substitutions, one
/// after the other. In the third, `etc .`, the dot is any character.
fn openseq2seq(line: &str) -> String {
    let line = line.replace("@-@", "-").replace('-', " - ");
    let mut changed = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(at) = rest.find("etc ") {
        let (before, after) = rest.split_at(at + "etc ".len());
        match after.chars().next().filter(|next| *next != '\n') {
            Some(next) => {
                changed.push_str(before.strip_suffix(' ').unwrap_or(before));
                changed.push('.');
                rest = &after[next.len_utf8()..];
            }
            None => {
                changed.push_str(before);
                rest = after;
            }
        }
    }
    changed.push_str(rest);
    changed.replace("n 't", " n't")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of Python's `re.sub` with the four patterns.
    #[test]
    fn the_rules_of_openseq2seq_are_its_substitutions() {
        for (line, due) in [
            ("a well @-@ known 12-year @-@@-@ x\n", "a well  -  known 12 - year  -  -  x\n"),
            ("etc . , etc ) etc\n", "etc. , etc. etc\n"),
            ("etc \n", "etc \n"),
            ("etc é etc  etc etc x", "etc. etc.etc.tc x"),
            ("do n't is n 't ca n 't", "do n't is  n't ca  n't"),
            ("", ""),
        ] {
            assert_eq!(ruled(line, Some(WordRules::Openseq2seq)), due, "{line:?}");
        }
        assert_eq!(ruled("a-b", None), "a-b");
        assert_eq!(ruled("A-b didn't.\n", Some(WordRules::Reviews)), "a - b did n't .");
    }
}
