//! Learning merge operations.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::counts::WordCounts;
use super::super::merges::{self, Pair, Rule, Words};
use super::{Codes, END_OF_WORD};

/// Minimum count of a pair that is merged.
const MIN_FREQUENCY: u64 = 2;

/// Learns `merges` operations from lines of text, or fewer if no pair is left that occurs twice.
/// Words are separated by ASCII spaces.
pub fn learn<S: AsRef<str>>(lines: impl IntoIterator<Item = S>, merges: usize) -> Codes {
    let mut counts = WordCounts::default();
    for line in lines {
        words_of(line.as_ref()).for_each(|word| counts.add(word, 1));
    }
    learn_from_counts(&[&counts], merges)
}

/// The words of a line, split as in subword-nmt.
pub fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches(['\r', '\n', ' ']).split(' ').filter(|w| !w.is_empty())
}

/// [`learn`] from counted words. The result does not depend on their order, nor on whether a word
/// is in several of the counts.
pub fn learn_from_counts(counts: &[&WordCounts], merges: usize) -> Codes {
    let all = || counts.iter().flat_map(|counts| counts.iter());
    let (different, letters) =
        all().fold((0, 0), |(words, letters), (word, _)| (words + 1, letters + word.chars().count()));
    let mut rule = SubwordNmt::default();
    let mut words = Words::with_capacity(different, letters);
    let mut buffer = String::new();
    let mut ids = Vec::new();
    for (word, count) in all() {
        ids.clear();
        let mut characters = word.chars().peekable();
        while let Some(character) = characters.next() {
            buffer.clear();
            buffer.push(character);
            if characters.peek().is_none() {
                buffer.push_str(END_OF_WORD);
            }
            ids.push(rule.symbol(&buffer));
        }
        words.push(ids.iter().copied(), count);
    }
    merges::learn(words, &mut rule, merges);
    Codes { merges: rule.learnt }
}

/// Symbols by number. Two merges that give the same string give the same symbol.
#[derive(Default)]
struct SubwordNmt {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
    learnt: Vec<(String, String)>,
}

impl SubwordNmt {
    fn symbol(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = u32::try_from(self.texts.len()).expect("fewer than 2^32 symbols fit in memory");
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }
}

impl Rule for SubwordNmt {
    /// Count, then left symbol, then right symbol.
    type Rank = (u64, Arc<str>, Arc<str>);

    fn least_count(&self) -> u64 {
        MIN_FREQUENCY
    }

    fn rank(&self, (left, right): Pair, count: u64) -> Option<Self::Rank> {
        Some((count, self.texts[left as usize].clone(), self.texts[right as usize].clone()))
    }

    fn accept(&mut self, (left, right): Pair) -> Option<u32> {
        let (left, right) = (&self.texts[left as usize], &self.texts[right as usize]);
        let merged = format!("{left}{right}");
        self.learnt.push((left.to_string(), right.to_string()));
        Some(self.symbol(&merged))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: counts all pairs again for every merge.
    fn learn_slowly(lines: &[String], merges: usize) -> Vec<(String, String)> {
        let mut words: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        for word in lines.iter().flat_map(|l| l.split(' ')).filter(|w| !w.is_empty()) {
            let mut symbols: Vec<String> = word.chars().map(String::from).collect();
            symbols.last_mut().unwrap().push_str(END_OF_WORD);
            *words.entry(symbols).or_default() += 1;
        }
        let mut learnt = Vec::new();
        while learnt.len() < merges {
            let mut counts: BTreeMap<(String, String), i64> = BTreeMap::new();
            for (word, count) in &words {
                for pair in word.windows(2) {
                    *counts.entry((pair[0].clone(), pair[1].clone())).or_default() += count;
                }
            }
            let best = counts.into_iter().map(|(pair, count)| (count, pair)).max();
            let Some((count, pair)) = best else { break };
            if count < MIN_FREQUENCY as i64 {
                break;
            }
            let mut next: BTreeMap<Vec<String>, i64> = BTreeMap::new();
            for (word, count) in words {
                let mut merged: Vec<String> = Vec::new();
                let mut at = 0;
                while at < word.len() {
                    if at + 1 < word.len() && word[at] == pair.0 && word[at + 1] == pair.1 {
                        merged.push(format!("{}{}", pair.0, pair.1));
                        at += 2;
                    } else {
                        merged.push(word[at].clone());
                        at += 1;
                    }
                }
                *next.entry(merged).or_default() += count;
            }
            words = next;
            learnt.push(pair);
        }
        learnt
    }

    #[test]
    fn the_most_frequent_pair_comes_first_and_the_greatest_among_equals() {
        let codes = learn(["ab ab ab cd cd"], 10);
        assert_eq!(codes.merges, [("a".into(), "b</w>".into()), ("c".into(), "d</w>".into())]);
        let codes = learn(["ab ab cd cd"], 1);
        assert_eq!(codes.merges, [("c".into(), "d</w>".into())]);
    }

    #[test]
    fn a_pair_seen_once_is_not_merged_and_no_text_gives_no_merges() {
        assert!(learn(["ab cd"], 10).merges.is_empty());
        assert!(learn(Vec::<String>::new(), 10).merges.is_empty());
        assert!(learn(["ab ab"], 0).merges.is_empty());
    }

    proptest! {
        #[test]
        fn kept_statistics_learn_what_counting_afresh_learns(
            lines in prop::collection::vec("[abc]{1,6}( [abc]{1,6}){0,8}", 1..12),
            merges in 0_usize..40,
        ) {
            prop_assert_eq!(learn(&lines, merges).merges, learn_slowly(&lines, merges));
        }
    }
}
