//! Learning merge operations.

use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use super::{Codes, END_OF_WORD};

/// Pairs seen less often than this are not merged.
const MIN_FREQUENCY: i64 = 2;

type Pair = (u32, u32);

/// Learns `merges` operations (fewer where no pair is left that occurs twice) from lines of text. Words are what
/// ASCII spaces separate.
pub fn learn<S: AsRef<str>>(lines: impl IntoIterator<Item = S>, merges: usize) -> Codes {
    let mut learner = Learner::default();
    for line in lines {
        learner.add_line(line.as_ref());
    }
    learner.learn(merges)
}

/// Counts words, then learns from the counts.
#[derive(Debug, Default)]
pub struct Learner {
    // Ordered, so that nothing depends on a hash.
    words: BTreeMap<String, i64>,
}

impl Learner {
    /// Counts the words of a line.
    pub fn add_line(&mut self, line: &str) {
        for word in line.trim_matches(['\r', '\n', ' ']).split(' ').filter(|w| !w.is_empty()) {
            match self.words.get_mut(word) {
                Some(count) => *count += 1,
                None => {
                    self.words.insert(word.to_string(), 1);
                }
            }
        }
    }

    /// Learns at most `merges` operations from the words counted so far.
    pub fn learn(&self, merges: usize) -> Codes {
        let mut state = State::new(&self.words);
        let mut learnt = Vec::with_capacity(merges.min(1 << 16));
        while learnt.len() < merges {
            let Some(pair) = state.most_frequent() else { break };
            learnt.push((state.symbols.text(pair.0).to_string(), state.symbols.text(pair.1).to_string()));
            state.merge(pair);
        }
        Codes { merges: learnt }
    }
}

/// Symbols by number. Two merges that make the same string make the same symbol.
#[derive(Default)]
struct Symbols {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Symbols {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = u32::try_from(self.texts.len()).expect("fewer than 2^32 symbols fit in memory");
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    fn text(&self, id: u32) -> &Arc<str> {
        &self.texts[id as usize]
    }
}

struct Word {
    symbols: Vec<u32>,
    count: i64,
}

#[derive(Default)]
struct Statistics {
    count: i64,
    /// Words that have had the pair, some of them more than once in the list or no longer having it.
    words: Vec<u32>,
}

/// In the order of the queue: count, then left, then right.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    count: i64,
    left: Arc<str>,
    right: Arc<str>,
    pair: Pair,
}

/// Words in symbols, the statistics of their pairs, and a queue of pairs. For every pair the queue holds an entry
/// with at least its count; entries with more are put right when they come up.
struct State {
    symbols: Symbols,
    words: Vec<Word>,
    statistics: HashMap<Pair, Statistics>,
    queue: BinaryHeap<Candidate>,
}

impl State {
    fn new(counts: &BTreeMap<String, i64>) -> Self {
        let mut symbols = Symbols::default();
        let mut words = Vec::with_capacity(counts.len());
        let mut buffer = String::new();
        for (text, &count) in counts {
            let mut ids = Vec::with_capacity(text.len());
            let mut characters = text.chars().peekable();
            while let Some(character) = characters.next() {
                buffer.clear();
                buffer.push(character);
                if characters.peek().is_none() {
                    buffer.push_str(END_OF_WORD);
                }
                ids.push(symbols.id(&buffer));
            }
            words.push(Word { symbols: ids, count });
        }
        let mut statistics: HashMap<Pair, Statistics> = HashMap::new();
        for (index, word) in words.iter().enumerate() {
            for pair in word.symbols.windows(2) {
                let entry = statistics.entry((pair[0], pair[1])).or_default();
                entry.count += word.count;
                entry.words.push(index as u32);
            }
        }
        let mut state = Self { symbols, words, statistics, queue: BinaryHeap::new() };
        let pairs: Vec<Pair> = state.statistics.keys().copied().collect();
        for pair in pairs {
            state.enqueue(pair);
        }
        state
    }

    fn enqueue(&mut self, pair: Pair) {
        let count = self.statistics.get(&pair).map_or(0, |s| s.count);
        if count >= MIN_FREQUENCY {
            let (left, right) = (self.symbols.text(pair.0).clone(), self.symbols.text(pair.1).clone());
            self.queue.push(Candidate { count, left, right, pair });
        }
    }

    fn most_frequent(&mut self) -> Option<Pair> {
        while let Some(candidate) = self.queue.pop() {
            let now = self.statistics.get(&candidate.pair).map_or(0, |s| s.count);
            if now == candidate.count {
                return Some(candidate.pair);
            }
            // An entry for a count that has grown since is followed or preceded by one with the new count.
            if now < candidate.count {
                self.enqueue(candidate.pair);
            }
        }
        None
    }

    fn merge(&mut self, pair: Pair) {
        let merged = format!("{}{}", self.symbols.text(pair.0), self.symbols.text(pair.1));
        let merged = self.symbols.id(&merged);
        let mut having = match self.statistics.get_mut(&pair) {
            Some(statistics) => std::mem::take(&mut statistics.words),
            None => return,
        };
        having.sort_unstable();
        having.dedup();
        let mut changes: HashMap<Pair, i64> = HashMap::new();
        for index in having {
            let word = &mut self.words[index as usize];
            let after = replace(&word.symbols, pair, merged);
            if after.len() == word.symbols.len() {
                continue;
            }
            for old in word.symbols.windows(2) {
                *changes.entry((old[0], old[1])).or_default() -= word.count;
            }
            for new in after.windows(2) {
                *changes.entry((new[0], new[1])).or_default() += word.count;
                if new[0] == merged || new[1] == merged {
                    self.statistics.entry((new[0], new[1])).or_default().words.push(index);
                }
            }
            word.symbols = after;
        }
        for (changed, difference) in changes {
            if difference != 0 {
                self.statistics.entry(changed).or_default().count += difference;
                if difference > 0 {
                    self.enqueue(changed);
                }
            }
        }
    }
}

/// `symbols` with `pair` made one, from the left, occurrences not overlapping.
fn replace(symbols: &[u32], pair: Pair, merged: u32) -> Vec<u32> {
    let mut after = Vec::with_capacity(symbols.len());
    let mut at = 0;
    while at < symbols.len() {
        if at + 1 < symbols.len() && (symbols[at], symbols[at + 1]) == pair {
            after.push(merged);
            at += 2;
        } else {
            after.push(symbols[at]);
            at += 1;
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, counted afresh for every merge.
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
            if count < MIN_FREQUENCY {
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
