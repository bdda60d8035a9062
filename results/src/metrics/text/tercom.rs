//! Fewest edits of a segment, as Tercom counts them in sacreBLEU 2.6.0. Shifts of blocks are tried
//! greedily; the rest is an edit distance within a beam around the diagonal.
//!
//! `sacrebleu-rs` stores the whole table. Here a row has only the cells of the beam, so memory is
//! linear in the number of words. A candidate shift changes the table only between the first moved
//! word and the row from which it differs from the unshifted table by a constant, so only those
//! rows are computed. The counts equal the library's, which a property test checks.

use std::collections::HashMap;

const MAX_SHIFT_SIZE: usize = 10;
const MAX_SHIFT_DISTANCE: usize = 50;
const BEAM_WIDTH: usize = 25;
const MAX_CANDIDATES: usize = 1000;

/// Cost of a cell outside the beam.
const FAR: u32 = u32::MAX / 2;

/// Number of edits that turn `hypothesis` into `reference`: shifts, insertions, deletions and
/// substitutions.
pub(super) fn edits(hypothesis: &[&str], reference: &[&str]) -> u64 {
    if reference.is_empty() {
        return hypothesis.len() as u64;
    }
    let mut numbers = HashMap::new();
    let (mut words, reference) = (numbered(hypothesis, &mut numbers), numbered(reference, &mut numbers));
    let mut shifts = 0;
    let mut checked = 0;
    loop {
        let table = Table::of(&words, &reference);
        let best = best_shift(&table, &words, &reference, &mut checked);
        match best {
            Some(shift) if checked < MAX_CANDIDATES && shift.gain > 0 => words = shift.apply(&words),
            _ => return shifts + u64::from(table.distance()),
        }
        shifts += 1;
    }
}

/// Words as numbers; equal words have equal numbers.
fn numbered<'w>(words: &[&'w str], numbers: &mut HashMap<&'w str, u32>) -> Vec<u32> {
    let mut of = |word: &'w str| {
        let next = numbers.len() as u32;
        *numbers.entry(word).or_insert(next)
    };
    words.iter().map(|word| of(word)).collect()
}

/// The last step of the path into a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No step leads to this cell.
    None,
    /// Both words are equal.
    Same,
    Substitution,
    /// A word of the reference is missing in the hypothesis.
    Insertion,
    /// The hypothesis has an additional word.
    Deletion,
}

/// The beam: the cells of each row that are computed.
#[derive(Debug, Clone, Copy)]
struct Beam {
    rows: usize,
    columns: usize,
    ratio: f64,
    width: usize,
}

impl Beam {
    fn of(hypothesis: &[u32], reference: &[u32]) -> Self {
        let (rows, columns) = (hypothesis.len(), reference.len());
        let ratio = if rows > 0 { columns as f64 / rows as f64 } else { 1.0 };
        let width = match ratio / 2.0 {
            half if (BEAM_WIDTH as f64) < half => (half + BEAM_WIDTH as f64).ceil() as usize,
            _ => BEAM_WIDTH,
        };
        Self { rows, columns, ratio, width }
    }

    /// Cells of row `row`, from 1.
    fn cells(&self, row: usize) -> std::ops::Range<usize> {
        let diagonal = (row as f64 * self.ratio).floor() as usize;
        let end =
            if row == self.rows { self.columns + 1 } else { (diagonal + self.width).min(self.columns + 1) };
        diagonal.saturating_sub(self.width)..end
    }
}

/// A row of the table, or part of it.
#[derive(Debug, Clone, Copy)]
struct Row<'t> {
    /// First column. `None` is the row above the first word, where each cell's cost is its column.
    start: Option<usize>,
    costs: &'t [u32],
}

impl Row<'_> {
    fn cost(&self, column: usize) -> u32 {
        match self.start {
            None => column as u32,
            Some(start) => {
                column.checked_sub(start).and_then(|at| self.costs.get(at)).copied().unwrap_or(FAR)
            }
        }
    }
}

/// Computes a row of the beam from the row above it.
fn fill(
    cells: std::ops::Range<usize>,
    word: u32,
    reference: &[u32],
    above: Row<'_>,
    costs: &mut Vec<u32>,
    steps: Option<&mut Vec<Step>>,
) {
    costs.clear();
    let mut steps = steps;
    for column in cells {
        let mut best = (FAR, Step::None);
        let mut offer = |cost: u32, step: Step| {
            if cost < best.0 {
                best = (cost, step);
            }
        };
        if column == 0 {
            offer(above.cost(0) + 1, Step::Deletion);
        } else {
            let same = word == reference[column - 1];
            let (cost, step) = if same { (0, Step::Same) } else { (1, Step::Substitution) };
            offer(above.cost(column - 1) + cost, step);
            offer(above.cost(column) + 1, Step::Deletion);
            offer(costs.last().map_or(FAR, |left| left + 1), Step::Insertion);
        }
        costs.push(best.0);
        if let Some(steps) = &mut steps {
            steps.push(best.1);
        }
    }
}

/// The beam's cells of a whole table, and the steps for the traceback.
struct Table {
    beam: Beam,
    costs: Vec<u32>,
    steps: Vec<Step>,
    /// Offset of the cells of each row, from row 1.
    offsets: Vec<usize>,
}

impl Table {
    fn of(words: &[u32], reference: &[u32]) -> Self {
        let beam = Beam::of(words, reference);
        let (mut costs, mut steps, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
        let mut row = Vec::new();
        let mut table = Self { beam, costs: Vec::new(), steps: Vec::new(), offsets: Vec::new() };
        for (at, word) in (1..).zip(words) {
            let from = offsets[at - 1];
            let above = match at {
                1 => Row { start: None, costs: &[] },
                _ => Row { start: Some(beam.cells(at - 1).start), costs: &costs[offsets[at - 2]..from] },
            };
            fill(beam.cells(at), *word, reference, above, &mut row, Some(&mut steps));
            costs.extend_from_slice(&row);
            offsets.push(costs.len());
        }
        (table.costs, table.steps, table.offsets) = (costs, steps, offsets);
        table
    }

    fn row(&self, row: usize) -> Row<'_> {
        match row {
            0 => Row { start: None, costs: &[] },
            _ => Row {
                start: Some(self.beam.cells(row).start),
                costs: &self.costs[self.offsets[row - 1]..self.offsets[row]],
            },
        }
    }

    fn distance(&self) -> u32 {
        self.row(self.beam.rows).cost(self.beam.columns)
    }

    /// For each word of the reference, the position of the last hypothesis word up to it (-1 before
    /// the first); and which words of each side are in error.
    fn alignment(&self) -> (Vec<i64>, Vec<bool>, Vec<bool>) {
        let (mut row, mut column) = (self.beam.rows, self.beam.columns);
        let (mut aligned, mut reference, mut hypothesis) =
            (vec![0; column], vec![false; column], vec![false; row]);
        while row > 0 || column > 0 {
            let step = match row {
                0 => Step::Insertion,
                _ => self.steps[self.offsets[row - 1] + column - self.beam.cells(row).start],
            };
            if column > 0 && step != Step::Deletion {
                aligned[column - 1] = row as i64 - 1;
                reference[column - 1] = step != Step::Same;
            }
            if row > 0 && step != Step::Insertion {
                hypothesis[row - 1] = step != Step::Same;
            }
            row -= usize::from(step != Step::Insertion);
            column -= usize::from(step != Step::Deletion);
        }
        (aligned, reference, hypothesis)
    }

    /// Distance of `words` after a shift that changes no row up to `first` and no words after
    /// `last`.
    fn shifted(&self, words: &[u32], reference: &[u32], first: usize, last: usize) -> u32 {
        let (mut above, mut row) = (Vec::new(), Vec::new());
        for at in first + 1..=self.beam.rows {
            let before = match at - 1 {
                before if before == first => self.row(before),
                before => Row { start: Some(self.beam.cells(before).start), costs: &above },
            };
            fill(self.beam.cells(at), words[at - 1], reference, before, &mut row, None);
            // From this row on, every cell keeps this difference.
            if at >= last
                && let Some(difference) = constant_difference(&row, self.row(at).costs)
            {
                return (i64::from(self.distance()) + difference) as u32;
            }
            std::mem::swap(&mut above, &mut row);
        }
        above.last().copied().unwrap_or_else(|| self.distance())
    }
}

/// The difference between all cells within the beam, if it is constant.
fn constant_difference(ours: &[u32], theirs: &[u32]) -> Option<i64> {
    let mut found = None;
    for (a, b) in ours.iter().zip(theirs) {
        match (*a >= FAR, *b >= FAR) {
            (true, true) => {}
            (false, false) => {
                let difference = i64::from(*a) - i64::from(*b);
                if *found.get_or_insert(difference) != difference {
                    return None;
                }
            }
            _ => return None,
        }
    }
    found
}

/// A block of words moved to another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shift {
    gain: i64,
    start: usize,
    length: usize,
    target: usize,
}

impl Shift {
    /// Rank of the shift; larger is better.
    fn rank(&self) -> (i64, usize, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>) {
        (self.gain, self.length, std::cmp::Reverse(self.start), std::cmp::Reverse(self.target))
    }

    /// First position and end (exclusive) of the words that change.
    fn touched(&self) -> (usize, usize) {
        let end = self.start + self.length;
        if self.target < self.start {
            (self.target, end)
        } else {
            (self.start, end.max(self.length + self.target))
        }
    }

    fn apply(&self, words: &[u32]) -> Vec<u32> {
        let Self { start, length, target, .. } = *self;
        let n = words.len();
        let part = |from: usize, to: usize| &words[from.min(n)..to.min(n).max(from.min(n))];
        let block = part(start, start + length);
        match target {
            _ if target < start => {
                [part(0, target), block, part(target, start), part(start + length, n)].concat()
            }
            _ if target > start + length => {
                [part(0, start), part(start + length, target), block, part(target, n)].concat()
            }
            _ => {
                let behind = length + target;
                [part(0, start), part(start + length, behind), block, part(behind, n)].concat()
            }
        }
    }
}

/// The shift that lowers the distance most. Stops when the limit of candidates over all rounds is
/// reached.
fn best_shift(table: &Table, words: &[u32], reference: &[u32], checked: &mut usize) -> Option<Shift> {
    let (aligned, reference_errors, hypothesis_errors) = table.alignment();
    let before = i64::from(table.distance());
    let mut best: Option<Shift> = None;
    for start in 0..words.len() {
        let near =
            start.saturating_sub(MAX_SHIFT_DISTANCE)..reference.len().min(start + MAX_SHIFT_DISTANCE + 1);
        for place in near {
            let pairs = words[start..].iter().zip(&reference[place..]).take(MAX_SHIFT_SIZE);
            let longest = pairs.take_while(|(ours, theirs)| ours == theirs).count();
            for length in 1..=longest {
                let wrong = |errors: &[bool], from: usize| errors[from..from + length].contains(&true);
                let there = aligned[place];
                let overlaps = start as i64 <= there && there < (start + length) as i64;
                if !wrong(&hypothesis_errors, start) || !wrong(&reference_errors, place) || overlaps {
                    continue;
                }
                let mut previous = None;
                for offset in 0..=length {
                    // Insert after the word before the block, or after each of its words.
                    let target = match place + offset {
                        0 => 0,
                        at => (aligned[at - 1] + 1) as usize,
                    };
                    if previous.replace(target) == Some(target) {
                        continue;
                    }
                    let mut shift = Shift { gain: 0, start, length, target };
                    let (first, last) = shift.touched();
                    let after = table.shifted(&shift.apply(words), reference, first, last);
                    shift.gain = before - i64::from(after);
                    *checked += 1;
                    if best.is_none_or(|best| shift.rank() > best.rank()) {
                        best = Some(shift);
                    }
                }
                if *checked >= MAX_CANDIDATES {
                    return best;
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn library(hypothesis: &[&str], reference: &[&str]) -> u64 {
        let score = sacrebleu_rs::Ter { normalized: false, no_punct: false, case_sensitive: true }
            .sentence_score(&hypothesis.join(" "), &[reference.join(" ")]);
        score.num_edits as u64
    }

    const WORDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    fn sentence(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
        (1usize..8).prop_flat_map(move |kinds| {
            prop::collection::vec((0..kinds).prop_map(|at| WORDS[at]), length.clone())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn edits_are_the_library_s(hypothesis in sentence(0..60), reference in sentence(0..60)) {
            prop_assert_eq!(edits(&hypothesis, &reference), library(&hypothesis, &reference));
        }

        /// Long lines with exchanged blocks, where the beam and the limit of candidates take
        /// effect.
        #[test]
        fn edits_of_shifted_blocks_are_the_library_s(
            mut words in prop::collection::vec(0usize..40, 100..240),
            swaps in prop::collection::vec((0usize..100, 1usize..12, 0usize..100), 0..4),
        ) {
            let names: Vec<String> = (0..40).map(|at| format!("w{at}")).collect();
            let reference: Vec<&str> = words.iter().map(|at| names[*at].as_str()).collect();
            for (from, length, to) in swaps {
                let block: Vec<usize> = words.drain(from..(from + length).min(words.len())).collect();
                let to = to.min(words.len());
                words.splice(to..to, block);
            }
            let hypothesis: Vec<&str> = words.iter().map(|at| names[*at].as_str()).collect();
            prop_assert_eq!(edits(&hypothesis, &reference), library(&hypothesis, &reference));
        }

        #[test]
        fn edits_of_unequal_lengths_are_the_library_s(hypothesis in sentence(1..4), reference in sentence(150..300)) {
            prop_assert_eq!(edits(&hypothesis, &reference), library(&hypothesis, &reference));
            prop_assert_eq!(edits(&reference, &hypothesis), library(&reference, &hypothesis));
        }
    }

    #[test]
    fn a_table_has_the_beam_s_cells_only() {
        let words: Vec<u32> = (0..5000).collect();
        let table = Table::of(&words, &words);
        assert!(table.costs.len() <= words.len() * 2 * BEAM_WIDTH + BEAM_WIDTH, "{}", table.costs.len());
        assert_eq!(table.distance(), 0);
    }
}
