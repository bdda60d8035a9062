//! Rows that read whole lines, one after the other (LM1B: Jozefowicz's `lm`, `data_utils.py`).

use std::sync::{Arc, Mutex, PoisonError};

use super::error::LanguageDataError;
use super::windows::WindowBatch;
use crate::random::{Purpose, RandomStream};
use zoo_recipes::tasks::language_modelling::NO_TARGET;

/// Windows of rows of lines. A row that has read a line takes the next one of the text; in a batch,
/// rows are filled in their order.
#[derive(Debug, Clone)]
pub struct Sentences {
    text: Arc<[u32]>,
    /// First place of each line, and the length of the text.
    starts: Arc<[u32]>,
    /// The unit that ends a line, and precedes one.
    end: u32,
    rows: usize,
    steps: usize,
    /// Seed of the order of the lines of each pass; `None` for one pass in their order.
    seed: Option<u64>,
    /// The state behind the last batch that was made. Clones share it.
    cursor: Arc<Mutex<Option<Cursor>>>,
}

/// A state between two batches.
#[derive(Debug, Clone)]
struct Cursor {
    /// Number of batches before.
    batch: u64,
    /// Position of each row.
    places: Vec<Place>,
    pass: u64,
    /// Number of lines of the pass that were taken.
    taken: usize,
    /// Lines of the pass in their order.
    order: Vec<u32>,
}

/// Position of a row in its line: it reads up to `until` and predicts `at` next.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: u32,
    at: u32,
    until: u32,
}

impl Sentences {
    /// Rows of an endless series of passes over a training text. The seed and the number of a pass
    /// give its order.
    ///
    /// # Errors
    /// A pass fills no batch.
    pub fn training(
        split: &str,
        text: &Arc<[u32]>,
        end: Option<u32>,
        shape: [u32; 2],
        seed: u64,
    ) -> Result<Self, LanguageDataError> {
        let sentences = Self::new(split, text, end, shape, Some(seed))?;
        match sentences.full() {
            0 => Err(sentences.too_short(split)),
            _ => Ok(sentences),
        }
    }

    /// Rows of one pass over the lines in their order.
    ///
    /// # Errors
    /// The text has no line.
    pub fn evaluation(
        split: &str,
        text: &Arc<[u32]>,
        end: Option<u32>,
        shape: [u32; 2],
    ) -> Result<Self, LanguageDataError> {
        Self::new(split, text, end, shape, None)
    }

    fn new(
        split: &str,
        text: &Arc<[u32]>,
        end: Option<u32>,
        [rows, steps]: [u32; 2],
        seed: Option<u64>,
    ) -> Result<Self, LanguageDataError> {
        let [rows, steps] = [rows, steps].map(|n| (n as usize).max(1));
        let mut starts = vec![0];
        let ends = text.iter().zip(1u32..).filter(|(unit, _)| Some(**unit) == end);
        starts.extend(ends.map(|(_, next)| next));
        let (text, cursor) = (text.clone(), Arc::default());
        let whole = u32::try_from(text.len()).ok().filter(|length| starts.last() == Some(length));
        let sentences =
            Self { text, starts: starts.into(), end: end.unwrap_or_default(), rows, steps, seed, cursor };
        match whole {
            Some(length) if length > 0 => Ok(sentences),
            _ => Err(sentences.too_short(split)),
        }
    }

    fn too_short(&self, split: &str) -> LanguageDataError {
        let (split, units) = (split.to_owned(), self.text.len());
        LanguageDataError::TooShort { split, units, rows: self.rows, steps: self.steps }
    }

    /// Number of batches that one pass fills.
    pub fn full(&self) -> u64 {
        self.text.len() as u64 / (self.rows * self.steps) as u64
    }

    /// Number of batches until every row has read its last line. For an evaluation.
    pub fn all(&self) -> u64 {
        let mut cursor = self.beginning();
        while self.advance(&mut cursor, None) {}
        cursor.batch - 1
    }

    /// Batch `index`, counted over all passes. The batch after the last one that was made costs
    /// least; an earlier one is reached from the beginning.
    pub fn batch(&self, index: u64) -> WindowBatch {
        let mut kept = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.take().filter(|cursor| cursor.batch <= index);
        let mut cursor = before.unwrap_or_else(|| self.beginning());
        while cursor.batch < index {
            self.advance(&mut cursor, None);
        }
        let mut batch = WindowBatch { rows: self.rows, begins: index == 0, ..WindowBatch::default() };
        self.advance(&mut cursor, Some(&mut batch));
        *kept = Some(cursor);
        batch
    }

    fn beginning(&self) -> Cursor {
        let places = vec![Place::default(); self.rows];
        Cursor { batch: 0, places, pass: 0, taken: 0, order: self.order(0) }
    }

    /// The lines of a pass in their order.
    fn order(&self, pass: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.starts.len() as u32 - 1).collect();
        if let Some(seed) = self.seed {
            RandomStream::new(seed, Purpose::EpochOrder, pass).shuffle(&mut order);
        }
        order
    }

    /// The next line of the text; `None` at the end of an evaluation.
    fn next_line(&self, cursor: &mut Cursor) -> Option<Place> {
        if cursor.taken == cursor.order.len() {
            self.seed?;
            cursor.pass += 1;
            (cursor.order, cursor.taken) = (self.order(cursor.pass), 0);
        }
        let line = cursor.order[cursor.taken] as usize;
        cursor.taken += 1;
        let start = self.starts[line];
        Some(Place { start, at: start, until: self.starts[line + 1] })
    }

    /// Moves every row by a window, and writes it. Returns whether any row had units left.
    fn advance(&self, cursor: &mut Cursor, mut batch: Option<&mut WindowBatch>) -> bool {
        let mut any = false;
        for row in 0..self.rows {
            let mut left = self.steps;
            while left > 0 {
                let mut place = cursor.places[row];
                if place.at == place.until {
                    let Some(next) = self.next_line(cursor) else { break };
                    place = next;
                }
                let units = left.min((place.until - place.at) as usize);
                if let Some(batch) = &mut batch {
                    let (first, from) = (place.at == place.start, place.at as usize);
                    batch.inputs.push(if first { self.end } else { self.text[from - 1] });
                    batch.inputs.extend_from_slice(&self.text[from..from + units - 1]);
                    batch.targets.extend_from_slice(&self.text[from..from + units]);
                }
                place.at += units as u32;
                cursor.places[row] = place;
                left -= units;
                any = true;
            }
            if let Some(batch) = &mut batch {
                batch.inputs.extend(std::iter::repeat_n(self.end, left));
                batch.targets.extend(std::iter::repeat_n(NO_TARGET, left));
            }
        }
        cursor.batch += 1;
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 1, 3, 2, 4 and 0 units, each with the end 0.
    fn text() -> Arc<[u32]> {
        vec![1, 0, 2, 3, 4, 0, 5, 6, 0, 7, 8, 9, 10, 0, 0].into()
    }

    fn rows(batch: &WindowBatch) -> Vec<(Vec<u32>, Vec<u32>)> {
        let steps = batch.steps();
        let both = batch.inputs.chunks(steps).zip(batch.targets.chunks(steps));
        both.map(|(x, y)| (x.to_vec(), y.to_vec())).collect()
    }

    /// What `Dataset._iterate` of the source gives for these lines, two rows of three.
    #[test]
    fn an_evaluation_deals_lines_to_the_rows_as_they_use_them_up() {
        let sentences = Sentences::evaluation("test", &text(), Some(0), [2, 3]).unwrap();
        assert_eq!(sentences.all(), 3);
        let none = NO_TARGET;
        let due = [
            // The first row takes the first line and one unit of the second.
            [(vec![0, 1, 0], vec![1, 0, 2]), (vec![0, 5, 6], vec![5, 6, 0])],
            [(vec![2, 3, 4], vec![3, 4, 0]), (vec![0, 7, 8], vec![7, 8, 9])],
            [(vec![0, 0, 0], vec![0, none, none]), (vec![9, 10, 0], vec![10, 0, none])],
        ];
        // The wrong order, so that the state of the batch before cannot be taken.
        for index in [2, 0, 1, 2] {
            let batch = sentences.batch(index);
            assert_eq!(batch.begins, index == 0);
            assert_eq!(rows(&batch), due[index as usize], "{index}");
        }
    }

    #[test]
    fn training_goes_on_from_pass_to_pass_with_all_lines_in_each() {
        let sentences = Sentences::training("train", &text(), Some(0), [1, 5], 3).unwrap();
        assert_eq!(sentences.full(), 3);
        let units: Vec<u32> = (0..30).flat_map(|index| sentences.batch(index).targets).collect();
        let lines = |pass: &[u32]| {
            let mut lines: Vec<Vec<u32>> =
                pass.split_inclusive(|unit| *unit == 0).map(<[_]>::to_vec).collect();
            lines.sort();
            lines
        };
        let passes: Vec<&[u32]> = units.chunks(15).collect();
        assert!(passes.iter().all(|pass| lines(pass) == lines(&text())));
        assert!(passes.iter().any(|pass| *pass != passes[0]), "the order is another one");
        assert!(units.iter().all(|unit| *unit != NO_TARGET));
        let inputs: Vec<u32> = (0..30).flat_map(|index| sentences.batch(index).inputs).collect();
        assert_eq!(inputs[0], 0);
        assert_eq!(inputs[1..], units[..units.len() - 1], "a line begins behind the end of the one before");
        let other = Sentences::training("train", &text(), Some(0), [1, 5], 4).unwrap();
        assert!((0..30).any(|index| other.batch(index) != sentences.batch(index)));
    }

    #[test]
    fn rows_share_the_lines_of_a_pass() {
        let sentences = Sentences::training("train", &text(), Some(0), [3, 1], 1).unwrap();
        // Five batches of three units are a pass if rows happen to be filled; count over many
        // passes.
        let mut counts = [0u32; 11];
        for index in 0..500 {
            sentences.batch(index).targets.iter().for_each(|unit| counts[*unit as usize] += 1);
        }
        assert!((1..11).all(|unit| counts[unit].abs_diff(100) <= 3), "{counts:?}");
        assert!(counts[0].abs_diff(500) <= 15, "{counts:?}");
        let again = Sentences::training("train", &text(), Some(0), [3, 1], 1).unwrap();
        assert_eq!(again.batch(321), sentences.batch(321));
    }

    #[test]
    fn a_text_without_a_line_or_a_batch_is_too_short() {
        assert!(Sentences::evaluation("test", &Vec::new().into(), Some(0), [1, 1]).is_err());
        assert!(Sentences::evaluation("test", &text(), None, [1, 1]).is_err());
        assert!(Sentences::training("train", &text(), Some(0), [4, 4], 1).is_err());
    }
}
