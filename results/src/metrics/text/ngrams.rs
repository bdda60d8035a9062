//! n-grams as dense numbers, for one segment at a time.

use std::collections::HashMap;

/// Assigns numbers to the tokens and n-grams of one segment (hypothesis and references together).
pub(super) struct Lexicon<'a> {
    words: HashMap<&'a str, u32>,
    /// For order n + 2: (number of the n-gram of the first n + 1 tokens, last token) -> number.
    longer: Vec<HashMap<(u32, u32), u32>>,
}

/// The n-grams of one line: for each order, the number of the n-gram at each position.
pub(super) struct Grams(Vec<Vec<u32>>);

impl<'a> Lexicon<'a> {
    /// A lexicon for n-grams of order 1 to `order`.
    pub(super) fn new(order: usize) -> Self {
        Lexicon { words: HashMap::new(), longer: vec![HashMap::new(); order.saturating_sub(1)] }
    }

    /// n-grams of a line of tokens. `None` is a token that equals no other token, not even another
    /// `None`.
    pub(super) fn grams(&mut self, tokens: impl Iterator<Item = Option<&'a str>>) -> Grams {
        let mut first: Vec<u32> = Vec::new();
        for token in tokens {
            let next = self.words.len() as u32;
            // Unmatched tokens are numbered downwards from the maximum, so they never collide with
            // word numbers.
            first.push(match token {
                Some(word) => *self.words.entry(word).or_insert(next),
                None => u32::MAX,
            });
        }
        let tokens = first.clone();
        let mut orders = vec![first];
        for (i, map) in self.longer.iter_mut().enumerate() {
            let shorter = &orders[i];
            let ids = tokens
                .iter()
                .skip(i + 1)
                .zip(shorter)
                .map(|(&last, &head)| {
                    if last == u32::MAX || head == u32::MAX {
                        return u32::MAX;
                    }
                    let next = map.len() as u32;
                    *map.entry((head, last)).or_insert(next)
                })
                .collect();
            orders.push(ids);
        }
        Grams(orders)
    }

    /// Number of distinct n-grams of this order (from 0).
    fn size(&self, order: usize) -> usize {
        if order == 0 { self.words.len() } else { self.longer[order - 1].len() }
    }

    /// Counts by n-gram number.
    fn counts(&self, grams: &Grams, order: usize) -> Vec<u32> {
        let mut counts = vec![0u32; self.size(order)];
        for &id in &grams.0[order] {
            if let Some(count) = counts.get_mut(id as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Number of n-grams of this order (from 0) in `hypothesis` that also occur in a reference.
    /// Each counts at most as often as in the reference where it is most frequent.
    pub(super) fn clipped(&self, hypothesis: &Grams, references: &[Grams], order: usize) -> u64 {
        let mut most = vec![0u32; self.size(order)];
        for reference in references {
            for (m, c) in most.iter_mut().zip(self.counts(reference, order)) {
                *m = (*m).max(c);
            }
        }
        self.counts(hypothesis, order).iter().zip(&most).map(|(h, r)| u64::from(*h.min(r))).sum()
    }
}

impl Grams {
    /// Number of n-grams of this order (from 0), including repetitions.
    pub(super) fn total(&self, order: usize) -> u64 {
        self.0[order].len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_clipped_by_the_best_reference() {
        let mut lexicon = Lexicon::new(2);
        let line = |s: &'static str| s.split(' ').map(Some);
        let h = lexicon.grams(line("the the the cat"));
        let references = [lexicon.grams(line("the cat the")), lexicon.grams(line("the dog"))];
        assert_eq!((h.total(0), h.total(1)), (4, 3));
        assert_eq!(lexicon.clipped(&h, &references, 0), 3);
        assert_eq!(lexicon.clipped(&h, &references, 1), 1);
        assert_eq!(lexicon.clipped(&h, &[], 0), 0);
    }

    #[test]
    fn unmatched_tokens_count_but_never_match() {
        let mut lexicon = Lexicon::new(2);
        let h = lexicon.grams([Some("a"), None, Some("b")].into_iter());
        let r = [lexicon.grams([Some("a"), None, Some("b")].into_iter())];
        assert_eq!((h.total(0), lexicon.clipped(&h, &r, 0)), (3, 2));
        assert_eq!((h.total(1), lexicon.clipped(&h, &r, 1)), (2, 0));
    }
}
