//! Words of film reviews and of single sentences for a model with a known list of words, as
//! OpenSeq2Seq's classifiers read them (`open_seq2seq/data/lm/lmutils.py`, `IMDBCorpus` and
//! `SSTCorpus`).

use super::treebank;

/// Changes of a review before it is split. Two of the source's marks are control characters that
/// its copies do not show; U+0096 and U+0097 are what reviews have of them.
const REVIEW: [(&str, &str); 11] = [
    ("<br />", " "),
    ("\u{96}", " "),
    ("\u{97}", " "),
    ("-", " - "),
    (".", " . "),
    ("+", " + "),
    ("*", " * "),
    ("/", " / "),
    ("`", "'"),
    (" ms .", " ms."),
    ("Ms .", "Ms."),
];

/// Changes of a sentence before it is split.
const SENTENCE: [(&str, &str); 5] = [("-", " - "), ("+", " + "), ("*", " * "), ("/", " / "), ("`", "'")];

/// Apostrophes that words which the model lacks get anywhere in them. `wounldn't` is the source's.
const CONTRACTIONS: [(&str, &str); 8] = [
    ("thats", "that's"),
    ("wouldnt", "wounldn't"),
    ("couldnt", "couldn't"),
    ("cant", "can't"),
    ("dont", "don't"),
    ("didnt", "didn't"),
    ("isnt", "isn't"),
    ("wasnt", "wasn't"),
];

/// Changes of the words of a text, which are joined by spaces.
const JOINED: [(&str, &str); 5] =
    [("''", "\""), ("' '", "\""), ("``", "\""), ("etc .", "etc. "), (" etc ", " etc. ")];

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A review with HTML line breaks; each full stop becomes a word of its own.
    Review,
    /// One sentence.
    Sentence,
}

fn replaced(text: &str, rules: &[(&str, &str)]) -> String {
    rules.iter().fold(text.to_owned(), |text, (from, to)| match text.contains(from) {
        true => text.replace(from, to),
        false => text,
    })
}

/// The words of a text. A word for which `known` returns false is split again in lower case, behind
/// an apostrophe at its beginning.
pub fn words(text: &str, kind: Kind, known: impl Fn(&str) -> bool) -> Vec<String> {
    let rules = match kind {
        Kind::Review => &REVIEW[..],
        Kind::Sentence => &SENTENCE,
    };
    let mut found = Vec::new();
    for word in treebank::words(&replaced(text, rules)) {
        if known(&word) {
            found.push(word);
            continue;
        }
        let rest = match word.strip_prefix('\'') {
            Some(rest) => {
                found.push("'".to_owned());
                rest
            }
            None => word.as_str(),
        };
        match known(rest) {
            true => found.push(rest.to_owned()),
            false => found.extend(treebank::words(&replaced(&rest.to_lowercase(), &CONTRACTIONS))),
        }
    }
    let joined = replaced(&found.join(" "), &JOINED);
    joined.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Goldens {
        known: BTreeSet<String>,
        reviews: Vec<(String, Vec<String>)>,
        sentences: Vec<(String, Vec<String>)>,
    }

    /// Results of the source's steps with NLTK 3.4.5, written by `tests/reference/review_words.py`.
    #[test]
    fn words_are_those_of_openseq2seq() {
        let goldens: Goldens =
            serde_json::from_str(include_str!("../../../tests/fixtures/review_words.json")).unwrap();
        for (kind, cases) in [(Kind::Review, goldens.reviews), (Kind::Sentence, goldens.sentences)] {
            assert!(cases.len() > 10, "{kind:?}");
            for (text, due) in cases {
                assert_eq!(words(&text, kind, |word| goldens.known.contains(word)), due, "{text:?}");
            }
        }
    }

    #[test]
    fn without_known_words_all_are_in_lower_case() {
        let found = words("The <br /> Dont-go isn't Mr. B.", Kind::Review, |_| false);
        assert_eq!(found.join(" "), "the do n't - go is n't mr . b .");
    }
}
