//! Word counts for millions of different words. All letters are in one block of memory.

use std::hash::{BuildHasher, RandomState};

/// A free slot of the table.
const FREE: u32 = u32::MAX;

/// Words and their counts, in the order in which they were first added.
#[derive(Debug, Clone, Default)]
pub struct WordCounts {
    letters: String,
    /// End of each word in `letters`.
    ends: Vec<usize>,
    counts: Vec<u64>,
    /// Hash table with open addressing: indices of words. Its size is a power of two, and at most
    /// three quarters are used.
    table: Vec<u32>,
    hasher: RandomState,
}

impl WordCounts {
    /// Adds `times` to the count of a word.
    pub fn add(&mut self, word: &str, times: u64) {
        if self.counts.len() * 4 >= self.table.len() * 3 {
            self.grow();
        }
        let place = self.place(word);
        match self.table[place] {
            FREE => {
                self.table[place] =
                    u32::try_from(self.counts.len()).expect("fewer than 2^32 different words fit in memory");
                self.letters.push_str(word);
                self.ends.push(self.letters.len());
                self.counts.push(times);
            }
            index => self.counts[index as usize] += times,
        }
    }

    /// Number of different words.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether no word was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Words and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().enumerate().map(|(index, count)| (self.word(index), *count))
    }

    fn word(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.letters[start..self.ends[index]]
    }

    /// The word's slot in the table, or the free slot where it would go.
    fn place(&self, word: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = self.hasher.hash_one(word) as usize & mask;
        while self.table[place] != FREE && self.word(self.table[place] as usize) != word {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(1 << 10);
        self.table = Vec::new();
        self.table = vec![FREE; size];
        for index in 0..self.counts.len() {
            // All words are different, so the first free slot is the right one.
            let mask = size - 1;
            let mut place = self.hasher.hash_one(self.word(index)) as usize & mask;
            while self.table[place] != FREE {
                place = (place + 1) & mask;
            }
            self.table[place] = index as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(words in prop::collection::vec("[abcä]{0,3}", 0..3000)) {
            let mut counts = WordCounts::default();
            let mut due: HashMap<&str, u64> = HashMap::new();
            for word in &words {
                counts.add(word, 1);
                *due.entry(word).or_default() += 1;
            }
            prop_assert_eq!((counts.len(), counts.is_empty()), (due.len(), due.is_empty()));
            prop_assert_eq!(counts.iter().collect::<HashMap<_, _>>(), due);
        }
    }

    #[test]
    fn words_keep_the_order_in_which_they_were_seen() {
        let mut counts = WordCounts::default();
        for number in 0..5000 {
            counts.add(&format!("w{}", number % 2500), 2);
        }
        assert!(counts.iter().enumerate().all(|(i, (word, n))| word == format!("w{i}") && n == 4));
        assert_eq!(counts.len(), 2500);
    }
}
