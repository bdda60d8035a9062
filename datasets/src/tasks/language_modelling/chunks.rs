//! Windows that a text is cut into from one place on, in the order of the text or shuffled
//! (OpenSeq2Seq, `open_seq2seq/data/lm/lmdata.py`).

use std::sync::Arc;

use super::error::LanguageDataError;
use super::windows::WindowBatch;
use crate::random::{Purpose, RandomStream};

/// An endless stream of windows: one pass over the text after the other.
#[derive(Debug, Clone)]
pub struct Chunks {
    text: Arc<[u32]>,
    rows: usize,
    steps: usize,
    order: Order,
}

/// How the windows of a pass are cut, and their order.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// From the beginning of the text on, in its order.
    OfText,
    /// From a place on that is drawn for each pass.
    Drawn { seed: u64, shuffled: bool },
}

impl Chunks {
    /// The windows of a training text. Each pass begins at a place of its own in the first window.
    ///
    /// # Errors
    /// A pass may have no window, or fewer than a batch.
    pub fn training(
        split: &str,
        text: &Arc<[u32]>,
        shape: [u32; 2],
        first_units: Option<u32>,
        (seed, shuffled): (u64, bool),
    ) -> Result<Self, LanguageDataError> {
        let chunks = Self::new(text, shape, first_units, Order::Drawn { seed, shuffled });
        let (steps, batch) = (chunks.steps, chunks.rows * chunks.steps);
        chunks.long_enough(split, 2 * steps, batch)
    }

    /// The windows of an evaluation set, from the beginning on.
    ///
    /// # Errors
    /// The text is shorter than a window.
    pub fn evaluation(
        split: &str,
        text: &Arc<[u32]>,
        shape: [u32; 2],
        first_units: Option<u32>,
    ) -> Result<Self, LanguageDataError> {
        let chunks = Self::new(text, shape, first_units, Order::OfText);
        let one = chunks.steps + 1;
        chunks.long_enough(split, one, 0)
    }

    fn new(text: &Arc<[u32]>, [rows, steps]: [u32; 2], first_units: Option<u32>, order: Order) -> Self {
        let text = match first_units {
            Some(most) if (most as usize) < text.len() => text[..most as usize].into(),
            _ => text.clone(),
        };
        let [rows, steps] = [rows, steps].map(|n| (n as usize).max(1));
        Self { text, rows, steps, order }
    }

    fn long_enough(self, split: &str, one: usize, batch: usize) -> Result<Self, LanguageDataError> {
        let units = self.text.len();
        if units < one || units < batch || u32::try_from(units).is_err() {
            let rows = if units < one { 1 } else { self.rows };
            return Err(LanguageDataError::TooShort {
                split: split.to_owned(),
                units,
                rows,
                steps: self.steps,
            });
        }
        Ok(self)
    }

    /// Number of batches of an epoch of training: those that fit into one pass.
    pub fn full(&self) -> usize {
        self.text.len() / self.steps / self.rows
    }

    /// Number of batches of an evaluation: the last one may read windows again.
    pub fn filled(&self) -> usize {
        (self.text.len() / self.steps).div_ceil(self.rows)
    }

    /// Batch `index` of the stream, counted over all epochs.
    pub fn batch(&self, index: u64) -> WindowBatch {
        let from = index.wrapping_mul(self.rows as u64);
        let mut starts = Vec::with_capacity(self.rows);
        // Number of windows before the pass.
        let mut before = 0;
        for pass in 0u64.. {
            let (first, windows, stream) = self.pass(pass);
            let next = before + windows as u64;
            let wanted = from + starts.len() as u64;
            if next > wanted {
                let order = self.order(windows, stream);
                let left = self.rows - starts.len();
                let places = order.iter().skip((wanted - before) as usize).take(left);
                starts.extend(places.map(|window| first + *window as usize * self.steps));
            }
            if starts.len() == self.rows {
                break;
            }
            before = next;
        }
        WindowBatch::new(&self.text, starts.into_iter(), self.steps, true)
    }

    /// The first place of a pass, its number of windows, and the generator that shuffles them.
    fn pass(&self, pass: u64) -> (usize, usize, Option<RandomStream>) {
        let (first, stream) = match self.order {
            Order::OfText => (0, None),
            Order::Drawn { seed, shuffled } => {
                let mut stream = RandomStream::new(seed, Purpose::EpochOrder, pass);
                let first = stream.below(self.steps as u32) as usize;
                (first, shuffled.then_some(stream))
            }
        };
        // The last window leaves a unit after it.
        (first, (self.text.len() - first - 1) / self.steps, stream)
    }

    /// The numbers of the windows of a pass.
    fn order(&self, windows: usize, stream: Option<RandomStream>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..windows as u32).collect();
        if let Some(mut stream) = stream {
            stream.shuffle(&mut order);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text(units: u32) -> Arc<[u32]> {
        (0..units).collect()
    }

    /// First unit of each window of the first `batches` batches.
    fn firsts(chunks: &Chunks, batches: u64) -> Vec<u32> {
        (0..batches).flat_map(|index| chunks.batch(index).inputs.into_iter().step_by(chunks.steps)).collect()
    }

    #[test]
    fn an_evaluation_begins_at_the_beginning_and_fills_its_last_batch_from_there() {
        // 16 windows of 12; the 200th unit is the target of the last one.
        let chunks = Chunks::evaluation("valid", &text(200), [10, 12], None).unwrap();
        assert_eq!(chunks.filled(), 2);
        let due: Vec<u32> = (0..20).map(|window| window % 16 * 12).collect();
        assert_eq!(firsts(&chunks, 2), due);
        let batch = chunks.batch(1);
        assert!(batch.begins && batch.rows == 10);
        assert!(batch.inputs.iter().zip(&batch.targets).all(|(x, y)| x + 1 == *y));
        // A text of full windows has no target for its last unit.
        let chunks = Chunks::evaluation("valid", &text(192), [16, 12], None).unwrap();
        assert_eq!((chunks.filled(), firsts(&chunks, 1)[15]), (1, 0));
        let cut = Chunks::evaluation("valid", &text(500), [16, 12], Some(200)).unwrap();
        assert_eq!(firsts(&cut, 1), (0..16).map(|window| window * 12).collect::<Vec<_>>());
        assert!(Chunks::evaluation("valid", &text(12), [1, 12], None).is_err());
    }

    #[test]
    fn a_pass_begins_at_a_place_of_its_own_and_the_next_goes_on_in_the_same_batch() {
        let chunks = Chunks::training("train", &text(100), [4, 7], None, (1, false)).unwrap();
        assert_eq!(chunks.full(), 3);
        let firsts = firsts(&chunks, 400);
        // Passes are the climbs.
        let mut passes: Vec<Vec<u32>> = vec![vec![]];
        for first in firsts {
            if passes.last().unwrap().last().is_some_and(|last| first <= *last) {
                passes.push(vec![]);
            }
            passes.last_mut().unwrap().push(first);
        }
        passes.pop();
        assert!(passes.len() > 100);
        for pass in &passes {
            assert!(pass[0] < 7 && pass.windows(2).all(|pair| pair[1] - pair[0] == 7), "{pass:?}");
            assert_eq!(pass.len() as u32, (100 - pass[0] - 1) / 7);
        }
        let places: BTreeSet<u32> = passes.iter().map(|pass| pass[0]).collect();
        assert_eq!(places, (0..7).collect());
    }

    #[test]
    fn shuffled_windows_are_those_of_the_pass_in_another_order() {
        let of =
            |seed, shuffled| Chunks::training("train", &text(900), [16, 8], None, (seed, shuffled)).unwrap();
        let pass = |chunks: &Chunks| {
            let windows = chunks.pass(0).1;
            firsts(chunks, 7).into_iter().take(windows.min(112)).collect::<Vec<_>>()
        };
        let (plain, mixed) = (pass(&of(1, false)), pass(&of(1, true)));
        assert_ne!(plain, mixed);
        let sorted = mixed.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(sorted, plain.iter().copied().collect());
        assert_eq!(pass(&of(1, true)), mixed);
        assert_ne!(pass(&of(2, true)), mixed);
        // A batch across two passes has the end of one and the beginning of the other.
        let chunks = of(1, true);
        let windows = chunks.pass(0).1;
        let whole: Vec<u32> = (0..2)
            .flat_map(|pass| {
                let (first, windows, stream) = chunks.pass(pass);
                chunks.order(windows, stream).into_iter().map(move |at| (first + at as usize * 8) as u32)
            })
            .collect();
        assert!(!windows.is_multiple_of(16), "{windows} windows are whole batches");
        assert_eq!(firsts(&chunks, 13), whole[..13 * 16]);
        assert!(Chunks::training("train", &text(127), [16, 8], None, (1, true)).is_err(), "no whole batch");
    }
}
