//! Shortest edit scripts between two sequences of symbols.
//!
//! Of equally short scripts, the one of RapidFuzz 3.14 (and so of jiwer 4.0) is chosen. Common
//! prefixes and suffixes are skipped. Then, from the end to the start, the script takes a deletion
//! if one is on a shortest path, else an insertion if it is cheaper than the diagonal, else the
//! diagonal. A pair whose table would exceed one mebibyte, by RapidFuzz's measure, is split in two
//! with Hirschberg's method (1975).
//!
//! A column of the table is computed 64 cells at a time from the differences of neighbouring cells
//! (Hyyrö 2003, *A bit-vector algorithm for computing Levenshtein and Damerau edit distances*).
//! Memory is linear in the lengths.

use serde::{Deserialize, Serialize};

/// Edit of one unit of the reference, or an insertion of one unit of the hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edit {
    /// Both units are equal.
    Hit,
    /// The hypothesis has another unit.
    Substitution,
    /// The unit is missing in the hypothesis.
    Deletion,
    /// The hypothesis has an additional unit.
    Insertion,
}

/// No position.
const NONE: u32 = u32::MAX;

/// Size in bytes from which a table is split in two.
const TABLE: u64 = 1 << 20;

/// Finds edit scripts; reuses its buffers.
#[derive(Debug, Default)]
pub(crate) struct Aligner {
    /// First position of each symbol in the reference.
    first: Vec<u32>,
    /// Next position of the same symbol.
    next: Vec<u32>,
    /// Number of occurrences of each symbol in the reference.
    counts: Vec<u32>,
    /// Offset in `masks` of the mask of each frequent symbol. If a symbol makes up a tenth of a
    /// long line, following its positions would cost more than the column itself.
    mask_of: Vec<u32>,
    /// Masks of a column's blocks. There are at most 64 masks, because a frequent symbol has more
    /// positions than a column has blocks.
    masks: Vec<u64>,
    column: Vec<Block>,
    /// Differences of earlier columns, for the traceback: one window of blocks per column.
    kept: Vec<(u64, u64)>,
    edits: Vec<Edit>,
}

/// 64 cells of a column: bit masks of the cells where the table rises by one from the cell above,
/// and where it falls by one.
#[derive(Debug, Clone, Copy)]
struct Block {
    rises: u64,
    falls: u64,
    /// Mask of the positions where the reference has the column's symbol.
    equal: u64,
}

impl Aligner {
    /// The script that turns `reference` into `hypothesis`. Symbols are numbered from 0 and number
    /// fewer than `u32::MAX`; those of the reference are smaller than its length.
    pub fn align(&mut self, reference: &[u32], hypothesis: &[u32]) -> &[Edit] {
        self.edits.clear();
        self.first.clear();
        self.first.resize(reference.len(), NONE);
        self.next.resize(reference.len().max(self.next.len()), NONE);
        self.counts.clear();
        self.counts.resize(reference.len(), 0);
        self.mask_of.clear();
        self.mask_of.resize(reference.len(), NONE);
        self.part(reference, hypothesis, usize::MAX);
        &self.edits
    }

    /// Appends the script of a part that has at most `most` edits.
    fn part(&mut self, reference: &[u32], hypothesis: &[u32], most: usize) {
        let before = reference.iter().zip(hypothesis).take_while(|(r, h)| r == h).count();
        let (reference, hypothesis) = (&reference[before..], &hypothesis[before..]);
        let ends = reference.iter().rev().zip(hypothesis.iter().rev());
        let after = ends.take_while(|(r, h)| r == h).count();
        let (reference, hypothesis) =
            (&reference[..reference.len() - after], &hypothesis[..hypothesis.len() - after]);
        self.edits.extend(std::iter::repeat_n(Edit::Hit, before));
        let (rows, columns) = (reference.len(), hypothesis.len());
        let most = most.min(rows.max(columns));
        let band = rows.min(2 * most + 1) as u64;
        if rows == 0 || columns == 0 {
            self.edits.extend(std::iter::repeat_n(Edit::Deletion, rows));
            self.edits.extend(std::iter::repeat_n(Edit::Insertion, columns));
        } else if 2 * band * columns as u64 / 8 < TABLE || rows < 65 || columns < 10 {
            self.way_back(reference, hypothesis, most);
        } else {
            let ((left, right), middle) = self.middle(reference, hypothesis);
            self.part(&reference[..middle], &hypothesis[..columns / 2], left);
            self.part(&reference[middle..], &hypothesis[columns / 2..], right);
        }
        self.edits.extend(std::iter::repeat_n(Edit::Hit, after));
    }

    /// Fills the table and traces back from its end to its start. Neither sequence may be empty.
    fn way_back(&mut self, reference: &[u32], hypothesis: &[u32], most: usize) {
        // A cell further from the diagonal than the number of edits is not on a shortest path.
        let blocks = reference.len().div_ceil(64);
        let window = blocks.min((2 * most + 2) / 64 + 2);
        let start = |column: usize| (column.saturating_sub(most + 1) / 64).min(blocks - window);
        self.kept.clear();
        self.index(reference.iter().copied());
        for (at, symbol) in hypothesis.iter().enumerate() {
            self.advance(*symbol);
            let near = &self.column[start(at)..start(at) + window];
            self.kept.extend(near.iter().map(|block| (block.rises, block.falls)));
        }
        self.forget(reference);
        // (rises, falls) of the cell below `row` symbols of the reference and `column` symbols of
        // the hypothesis, both from 1.
        let differences = |row: usize, column: usize| {
            let (block, bit) = ((row - 1) / 64, (row - 1) % 64);
            let (rises, falls) = self.kept[(column - 1) * window + block - start(column - 1)];
            (rises >> bit & 1 == 1, falls >> bit & 1 == 1)
        };
        let from = self.edits.len();
        let (mut row, mut column) = (reference.len(), hypothesis.len());
        while row > 0 && column > 0 {
            let edit = if differences(row, column).0 {
                Edit::Deletion
            } else if column > 1 && differences(row, column - 1).1 {
                Edit::Insertion
            } else if reference[row - 1] == hypothesis[column - 1] {
                Edit::Hit
            } else {
                Edit::Substitution
            };
            row -= usize::from(edit != Edit::Insertion);
            column -= usize::from(edit != Edit::Deletion);
            self.edits.push(edit);
        }
        self.edits.extend(std::iter::repeat_n(Edit::Deletion, row));
        self.edits.extend(std::iter::repeat_n(Edit::Insertion, column));
        self.edits[from..].reverse();
    }

    /// Where a shortest path crosses the middle of the hypothesis: the first such position in the
    /// reference, and the edits on each side.
    fn middle(&mut self, reference: &[u32], hypothesis: &[u32]) -> ((usize, usize), usize) {
        let (left, right) = hypothesis.split_at(hypothesis.len() / 2);
        let left = self.distances(reference.iter().copied(), left.iter().copied());
        self.forget(reference);
        let right = self.distances(reference.iter().rev().copied(), right.iter().rev().copied());
        self.forget(reference);
        let both = left.into_iter().zip(right.into_iter().rev()).zip(0..);
        both.min_by_key(|((left, right), _)| left + right).unwrap_or_default()
    }

    /// Last column of the table: edits from each prefix of the reference to the whole hypothesis.
    fn distances(
        &mut self,
        reference: impl ExactSizeIterator<Item = u32> + Clone,
        hypothesis: impl ExactSizeIterator<Item = u32>,
    ) -> Vec<usize> {
        let (rows, mut distance) = (reference.len(), hypothesis.len());
        self.index(reference);
        hypothesis.for_each(|symbol| self.advance(symbol));
        let mut all = vec![distance];
        all.extend((0..rows).map(|row| {
            let (block, bit) = (self.column[row / 64], row % 64);
            distance = distance + (block.rises >> bit & 1) as usize - (block.falls >> bit & 1) as usize;
            distance
        }));
        all
    }

    /// Initialises the column before the first symbol of the hypothesis, and the positions of each
    /// symbol in the reference.
    fn index(&mut self, reference: impl ExactSizeIterator<Item = u32> + Clone) {
        self.column.clear();
        let blank = Block { rises: u64::MAX, falls: 0, equal: 0 };
        let blocks = reference.len().div_ceil(64);
        self.column.resize(blocks, blank);
        self.masks.clear();
        for (at, symbol) in (0..).zip(reference.clone()) {
            self.next[at as usize] = std::mem::replace(&mut self.first[symbol as usize], at);
            self.counts[symbol as usize] += 1;
        }
        for symbol in reference.map(|symbol| symbol as usize) {
            if self.counts[symbol] as usize <= blocks || self.mask_of[symbol] != NONE {
                continue;
            }
            let start = self.masks.len();
            self.mask_of[symbol] = start as u32;
            self.masks.resize(start + blocks, 0);
            let mut at = self.first[symbol];
            while at != NONE {
                self.masks[start + at as usize / 64] |= 1 << (at % 64);
                at = self.next[at as usize];
            }
        }
    }

    fn forget(&mut self, reference: &[u32]) {
        for symbol in reference.iter().map(|symbol| *symbol as usize) {
            (self.first[symbol], self.counts[symbol], self.mask_of[symbol]) = (NONE, 0, NONE);
        }
    }

    /// Advances from one column to the next (Hyyrö 2003, figure 8, with carries between blocks).
    fn advance(&mut self, symbol: u32) {
        match self.mask_of.get(symbol as usize) {
            None => {}
            Some(&NONE) => {
                let mut at = self.first[symbol as usize];
                while at != NONE {
                    self.column[at as usize / 64].equal |= 1 << (at % 64);
                    at = self.next[at as usize];
                }
            }
            Some(&start) => {
                let masks = &self.masks[start as usize..];
                self.column.iter_mut().zip(masks).for_each(|(block, mask)| block.equal = *mask);
            }
        }
        let (mut rise, mut fall) = (1, 0);
        for Block { rises, falls, equal } in &mut self.column {
            let x = *equal | fall;
            let diagonal = (((x & *rises).wrapping_add(*rises)) ^ *rises) | x | *falls;
            let right_rises = *falls | !(diagonal | *rises);
            let right_falls = diagonal & *rises;
            let (above_rises, above_falls) = (right_rises << 1 | rise, right_falls << 1 | fall);
            (rise, fall) = (right_rises >> 63, right_falls >> 63);
            *rises = above_falls | !(diagonal | above_rises);
            *falls = above_rises & diagonal;
            *equal = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The full table, from its definition.
    fn table(reference: &[u32], hypothesis: &[u32]) -> Vec<Vec<usize>> {
        let mut table = vec![vec![0; hypothesis.len() + 1]; reference.len() + 1];
        for i in 0..=reference.len() {
            for j in 0..=hypothesis.len() {
                table[i][j] = match (i, j) {
                    (0, n) | (n, 0) => n,
                    _ => {
                        let other = usize::from(reference[i - 1] != hypothesis[j - 1]);
                        (table[i - 1][j] + 1).min(table[i][j - 1] + 1).min(table[i - 1][j - 1] + other)
                    }
                };
            }
        }
        table
    }

    /// Numbers in the form that [`Aligner::align`] requires.
    fn numbered(reference: &[u32], hypothesis: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let number = |symbol: &u32| reference.iter().position(|r| r == symbol).map_or(NONE, |at| at as u32);
        (reference.iter().map(number).collect(), hypothesis.iter().map(number).collect())
    }

    /// Whether the script covers every symbol of both sequences, in order, with hits where they are
    /// equal.
    fn replays(edits: &[Edit], reference: &[u32], hypothesis: &[u32]) -> bool {
        let (mut r, mut h) = (reference.iter(), hypothesis.iter());
        let sound = edits.iter().all(|edit| match edit {
            Edit::Hit => matches!((r.next(), h.next()), (Some(r), Some(h)) if r == h),
            Edit::Substitution => matches!((r.next(), h.next()), (Some(r), Some(h)) if r != h),
            Edit::Deletion => r.next().is_some(),
            Edit::Insertion => h.next().is_some(),
        });
        sound && r.next().is_none() && h.next().is_none()
    }

    fn cost(edits: &[Edit]) -> usize {
        edits.iter().filter(|edit| **edit != Edit::Hit).count()
    }

    fn symbols(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u32>> {
        (1u32..6).prop_flat_map(move |kinds| prop::collection::vec(0..kinds, length.clone()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        /// A single aligner serves all pairs: no state carries over from one pair to the next.
        #[test]
        fn scripts_are_sound_and_as_short_as_the_table_says(
            pairs in prop::collection::vec((symbols(0..150), symbols(0..150)), 1..4),
        ) {
            let mut aligner = Aligner::default();
            for (reference, hypothesis) in pairs {
                let (r, h) = numbered(&reference, &hypothesis);
                let edits = aligner.align(&r, &h);
                prop_assert!(replays(edits, &reference, &hypothesis));
                prop_assert_eq!(cost(edits), table(&reference, &hypothesis)[r.len()][h.len()]);
            }
        }

        #[test]
        fn the_last_column_is_the_table_s(reference in symbols(1..200), hypothesis in symbols(0..200)) {
            let (r, h) = numbered(&reference, &hypothesis);
            let nowhere = || vec![NONE; r.len()];
            let counts = vec![0; r.len()];
            let (first, next, mask_of) = (nowhere(), nowhere(), nowhere());
            let mut aligner = Aligner { first, next, counts, mask_of, ..Aligner::default() };
            let column = aligner.distances(r.iter().copied(), h.iter().copied());
            let expected: Vec<usize> = table(&reference, &hypothesis).iter().map(|row| row[h.len()]).collect();
            prop_assert_eq!(column, expected);
        }
    }

    #[test]
    fn long_pairs_are_cut_and_stay_shortest() {
        // Every third symbol of the reference is wrong, and every tenth is missing.
        let reference: Vec<u32> = (0..4000u32).map(|at| at * at % 97).collect();
        let kept = (0..).zip(&reference).filter(|(at, _)| at % 10 != 7);
        let hypothesis: Vec<u32> =
            kept.map(|(at, symbol)| if at % 3 == 0 { (symbol + 1) % 97 } else { *symbol }).collect();
        let (r, h) = numbered(&reference, &hypothesis);
        let mut aligner = Aligner::default();
        let edits = aligner.align(&r, &h).to_vec();
        assert!(replays(&edits, &reference, &hypothesis));
        let table = table(&reference, &hypothesis);
        assert_eq!(cost(&edits), table[reference.len()][hypothesis.len()]);
    }

    #[test]
    fn masks_of_frequent_symbols_take_memory_linear_in_the_reference() {
        for kinds in [1, 2, 60, 1000] {
            let line =
                |step: u32| -> Vec<u32> { (0..20_000u32).map(|at| (at * step + at / 7) % kinds).collect() };
            let (r, h) = numbered(&line(3), &line(5));
            let mut aligner = Aligner::default();
            aligner.align(&r, &h);
            aligner.index(r.iter().copied());
            assert!(
                aligner.masks.len() <= 64 * r.len().div_ceil(64),
                "{kinds} kinds: {}",
                aligner.masks.len()
            );
            assert_eq!(aligner.masks.is_empty(), kinds == 1000, "{kinds} kinds");
        }
    }

    #[test]
    fn of_equally_short_scripts_one_is_taken() {
        use Edit::{Deletion as D, Hit as H, Insertion as I, Substitution as S};
        let mut aligner = Aligner::default();
        for (reference, hypothesis, expected) in [
            (&[1, 2][..], &[3][..], &[S, D][..]),
            (&[1], &[2, 3], &[I, S]),
            (&[1, 2, 1], &[1, 3], &[H, S, D]),
            (&[1], &[1, 1, 2, 2], &[H, I, I, I]),
            (&[1, 2, 3], &[2, 3, 4], &[D, H, H, I]),
            (&[], &[1], &[I]),
            (&[1], &[], &[D]),
            (&[], &[], &[]),
        ] {
            let (r, h) = numbered(reference, hypothesis);
            assert_eq!(aligner.align(&r, &h), expected, "{reference:?} {hypothesis:?}");
        }
    }
}
