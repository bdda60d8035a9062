//! Learning merges from counted words: the data structures that all byte pair encodings share.
//!
//! Words are symbols in one array. Every pair of neighbours has its count and a list of the words
//! that contain it. A queue holds the pairs by rank. A merge changes only the words with its pair.
//!
//! To limit memory for millions of different words, pairs below a threshold stay out of the queue.
//! When the queue is empty, the threshold is lowered and the queue is filled again. The learnt
//! merges do not depend on the threshold.

use std::collections::{BinaryHeap, HashMap, HashSet};

/// Two neighbouring symbols.
pub(super) type Pair = (u32, u32);

/// Rules of one kind of byte pair encoding.
pub(super) trait Rule {
    /// Rank of a merge; the greatest is made first. Pairs with a greater count must have a greater
    /// rank.
    type Rank: Ord;

    /// Minimum count of a pair that is merged.
    fn least_count(&self) -> u64;

    /// The rank of a pair with this count; `None` if it must never be merged.
    fn rank(&self, pair: Pair, count: u64) -> Option<Self::Rank>;

    /// Accepts `pair` as the next merge. Returns the symbol that it makes, or `None` to skip the
    /// pair for good.
    fn accept(&mut self, pair: Pair) -> Option<u32>;
}

#[derive(Debug, Clone, Copy)]
struct Word {
    /// Start in the array of all symbols, counted in symbols. The array may have up to 16 GiB.
    start: u32,
    length: u32,
    count: u64,
}

#[derive(Debug, Default)]
struct Statistics {
    count: u64,
    /// Words that contain or contained the pair. A word may be listed more than once.
    words: Vec<u32>,
}

struct Candidate<R> {
    rank: R,
    count: u64,
    pair: Pair,
}

impl<R: Ord> PartialEq for Candidate<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<R: Ord> Eq for Candidate<R> {}
impl<R: Ord> PartialOrd for Candidate<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<R: Ord> Ord for Candidate<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Rules should avoid equal ranks. Comparing the pairs as well makes the order total in any
        // case.
        self.rank.cmp(&other.rank).then(other.pair.cmp(&self.pair))
    }
}

/// Words as symbols, with their counts.
#[derive(Debug, Default)]
pub(super) struct Words {
    symbols: Vec<u32>,
    words: Vec<Word>,
}

impl Words {
    /// Reserves memory for this many words and symbols. Growing by doubling would temporarily need
    /// twice the memory.
    pub fn with_capacity(words: usize, symbols: usize) -> Self {
        Self { symbols: Vec::with_capacity(symbols), words: Vec::with_capacity(words) }
    }

    /// Adds a word. A word of a single symbol has nothing to merge and is not stored.
    pub fn push(&mut self, symbols: impl IntoIterator<Item = u32>, count: u64) {
        let start = self.symbols.len();
        self.symbols.extend(symbols);
        if self.symbols.len() < start + 2 {
            self.symbols.truncate(start);
            return;
        }
        let fits = |n: usize| u32::try_from(n).expect("the different words have fewer than 2^32 letters");
        let (length, start) = (fits(self.symbols.len() - start), fits(start));
        self.words.push(Word { start, length, count });
    }

    fn symbols(&self, word: Word) -> &[u32] {
        &self.symbols[word.start as usize..][..word.length as usize]
    }
}

/// Learns merges until `wanted` of them are accepted or none is left.
pub(super) fn learn<R: Rule>(words: Words, rule: &mut R, wanted: usize) {
    let mut state = State::new(words);
    let greatest = state.statistics.values().map(|s| s.count).max().unwrap_or(0);
    state.threshold = (greatest / 64).max(rule.least_count());
    state.fill(rule, u64::MAX);
    let mut accepted = 0;
    while accepted < wanted {
        let Some(pair) = state.next(rule) else { break };
        match rule.accept(pair) {
            Some(merged) => {
                accepted += 1;
                state.merge(rule, pair, merged);
            }
            None => {
                state.passed_over.insert(pair);
            }
        }
    }
}

struct State<R: Rule> {
    words: Words,
    statistics: HashMap<Pair, Statistics>,
    passed_over: HashSet<Pair>,
    /// Candidates by rank. Every pair whose count reaches the threshold has an entry with at least
    /// its count. An entry with a greater count is corrected when it is popped.
    queue: BinaryHeap<Candidate<R::Rank>>,
    threshold: u64,
}

impl<R: Rule> State<R> {
    fn new(words: Words) -> Self {
        // Count first, so that the lists are allocated with exactly the size that they need.
        let mut sizes: HashMap<Pair, u32> = HashMap::new();
        for word in &words.words {
            for pair in words.symbols(*word).windows(2) {
                *sizes.entry((pair[0], pair[1])).or_default() += 1;
            }
        }
        let mut statistics: HashMap<Pair, Statistics> = sizes
            .into_iter()
            .map(|(pair, size)| (pair, Statistics { count: 0, words: Vec::with_capacity(size as usize) }))
            .collect();
        for (index, word) in (0_u32..).zip(&words.words) {
            for pair in words.symbols(*word).windows(2) {
                let entry = statistics.entry((pair[0], pair[1])).or_default();
                entry.count += word.count;
                if entry.words.last() != Some(&index) {
                    entry.words.push(index);
                }
            }
        }
        Self { words, statistics, passed_over: HashSet::new(), queue: BinaryHeap::new(), threshold: 0 }
    }

    /// Adds every pair to the queue whose count is at least the threshold and less than `below`.
    fn fill(&mut self, rule: &R, below: u64) {
        let (threshold, queue) = (self.threshold, &mut self.queue);
        for (pair, statistics) in &self.statistics {
            if (threshold..below).contains(&statistics.count)
                && let Some(rank) = rule.rank(*pair, statistics.count)
            {
                queue.push(Candidate { rank, count: statistics.count, pair: *pair });
            }
        }
    }

    fn enqueue(&mut self, rule: &R, pair: Pair) {
        let count = self.statistics.get(&pair).map_or(0, |s| s.count);
        if count >= self.threshold
            && let Some(rank) = rule.rank(pair, count)
        {
            self.queue.push(Candidate { rank, count, pair });
        }
    }

    fn next(&mut self, rule: &R) -> Option<Pair> {
        loop {
            while let Some(candidate) = self.queue.pop() {
                if self.passed_over.contains(&candidate.pair) {
                    continue;
                }
                let now = self.statistics.get(&candidate.pair).map_or(0, |s| s.count);
                if now == candidate.count {
                    return Some(candidate.pair);
                }
                // If the count has grown since this entry was pushed, the queue also has or had an
                // entry with the new count.
                if now < candidate.count {
                    self.enqueue(rule, candidate.pair);
                }
            }
            if self.threshold <= rule.least_count() {
                return None;
            }
            let before = self.threshold;
            self.threshold = (before / 4).max(rule.least_count());
            self.fill(rule, before);
        }
    }

    fn merge(&mut self, rule: &R, pair: Pair, merged: u32) {
        let Some(mut having) = self.statistics.remove(&pair).map(|statistics| statistics.words) else {
            return;
        };
        having.sort_unstable();
        having.dedup();
        let mut changes: HashMap<Pair, i64> = HashMap::new();
        let mut before = Vec::new();
        for index in having {
            let word = self.words.words[index as usize];
            before.clear();
            before.extend_from_slice(self.words.symbols(word));
            let start = word.start as usize;
            let span = &mut self.words.symbols[start..][..word.length as usize];
            let length = replace(span, pair, merged);
            if length == before.len() {
                continue;
            }
            self.words.words[index as usize].length = length as u32;
            let count = word.count as i64;
            for old in before.windows(2) {
                *changes.entry((old[0], old[1])).or_default() -= count;
            }
            for new in self.words.symbols[start..][..length].windows(2) {
                *changes.entry((new[0], new[1])).or_default() += count;
                if new[0] == merged || new[1] == merged {
                    let words = &mut self.statistics.entry((new[0], new[1])).or_default().words;
                    if words.last() != Some(&index) {
                        words.push(index);
                    }
                }
            }
        }
        for (changed, difference) in changes {
            // The merged pair no longer occurs in any word.
            if changed == pair || difference == 0 {
                continue;
            }
            let statistics = self.statistics.entry(changed).or_default();
            statistics.count = statistics.count.saturating_add_signed(difference);
            if statistics.count == 0 {
                self.statistics.remove(&changed);
            } else if difference > 0 {
                self.enqueue(rule, changed);
            }
        }
    }
}

/// Replaces `pair` by one symbol in place, from left to right, without overlaps. Returns the number
/// of symbols left.
fn replace(symbols: &mut [u32], pair: Pair, merged: u32) -> usize {
    let (mut from, mut to) = (0, 0);
    while from < symbols.len() {
        if from + 1 < symbols.len() && (symbols[from], symbols[from + 1]) == pair {
            symbols[to] = merged;
            from += 2;
        } else {
            symbols[to] = symbols[from];
            from += 1;
        }
        to += 1;
    }
    to
}
