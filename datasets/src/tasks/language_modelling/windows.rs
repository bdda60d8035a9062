//! Windows of a text: the input of a language model, and the units that follow.

use std::sync::Arc;

use zoo_recipes::tasks::language_modelling::LastWindow;

use super::error::LanguageDataError;
use crate::random::{Purpose, RandomStream};

/// A batch of windows of equal length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowBatch {
    /// Units that are read `[rows, steps]`.
    pub inputs: Vec<u32>,
    /// The unit after each of them `[rows, steps]`, or [`NO_TARGET`](super::NO_TARGET).
    pub targets: Vec<u32>,
    /// Number of windows.
    pub rows: usize,
    /// Whether the windows begin their parts of the text: no state precedes them.
    pub begins: bool,
}

impl WindowBatch {
    pub(super) fn new(text: &[u32], starts: impl Iterator<Item = usize>, steps: usize, begins: bool) -> Self {
        let mut batch = Self { begins, ..Self::default() };
        for start in starts {
            batch.inputs.extend_from_slice(&text[start..start + steps]);
            batch.targets.extend_from_slice(&text[start + 1..start + steps + 1]);
            batch.rows += 1;
        }
        batch
    }

    /// Units of a window.
    pub fn steps(&self) -> usize {
        self.inputs.len() / self.rows.max(1)
    }
}

/// A text cut into contiguous parts, which are read side by side.
#[derive(Debug, Clone)]
pub struct Contiguous {
    text: Arc<[u32]>,
    rows: usize,
    steps: usize,
    /// Units of a part.
    part: usize,
    windows: usize,
}

impl Contiguous {
    /// Cuts a text into `rows` parts of equal length; what does not fill a part is left out.
    /// `split` is the text's name in errors.
    ///
    /// # Errors
    /// The parts have no window.
    pub fn new(
        split: &str,
        text: &Arc<[u32]>,
        [rows, steps]: [u32; 2],
        last: LastWindow,
    ) -> Result<Self, LanguageDataError> {
        let [rows, steps] = [rows, steps].map(|n| (n as usize).max(1));
        let part = text.len() / rows;
        // The last unit of a part has no unit after it.
        let predicted = part.saturating_sub(1);
        let (windows, least) = match last {
            LastWindow::Short => (predicted.div_ceil(steps), 1),
            LastWindow::Drop => (predicted / steps, steps),
        };
        if windows == 0 {
            let (split, units) = (split.to_owned(), text.len());
            return Err(LanguageDataError::TooShort { split, units, rows, steps: least });
        }
        Ok(Self { text: text.clone(), rows, steps, part, windows })
    }

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.windows
    }

    /// Whether there are no batches; never.
    pub fn is_empty(&self) -> bool {
        self.windows == 0
    }

    /// Units of all parts, including the first of each, which is not predicted.
    pub fn units(&self) -> usize {
        self.rows * self.part
    }

    /// One batch: the same window of every part.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn batch(&self, index: usize) -> WindowBatch {
        assert!(index < self.windows, "window {index} of {}", self.windows);
        let from = index * self.steps;
        let steps = self.steps.min(self.part - 1 - from);
        WindowBatch::new(&self.text, (0..self.rows).map(|row| row * self.part + from), steps, index == 0)
    }
}

/// Windows at random places of a text.
#[derive(Debug, Clone)]
pub struct Scattered {
    text: Arc<[u32]>,
    rows: usize,
    steps: usize,
    purpose: Purpose,
    seed: u64,
}

impl Scattered {
    /// Windows of a text for training, or for evaluation, which draws other places from the same
    /// seed.
    ///
    /// # Errors
    /// The text is shorter than a window.
    pub fn new(
        split: &str,
        text: &Arc<[u32]>,
        [rows, steps]: [u32; 2],
        training: bool,
        seed: u64,
    ) -> Result<Self, LanguageDataError> {
        let [rows, steps] = [rows, steps].map(|n| (n as usize).max(1));
        if text.len() <= steps || u32::try_from(text.len()).is_err() {
            let (split, units) = (split.to_owned(), text.len());
            return Err(LanguageDataError::TooShort { split, units, rows: 1, steps });
        }
        let purpose = if training { Purpose::EpochOrder } else { Purpose::Examples };
        Ok(Self { text: text.clone(), rows, steps, purpose, seed })
    }

    /// Batch `index`, counted over all epochs. Its places are a function of the seed and the index.
    pub fn batch(&self, index: u64) -> WindowBatch {
        let mut stream = RandomStream::new(self.seed, self.purpose, index);
        // The last start leaves room for the window and the unit after it.
        let places = (self.text.len() - self.steps) as u32;
        let starts: Vec<usize> = (0..self.rows).map(|_| stream.below(places) as usize).collect();
        WindowBatch::new(&self.text, starts.into_iter(), self.steps, true)
    }
}
