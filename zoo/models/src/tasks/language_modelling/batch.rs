//! Batches of windows of a text.

use zoo_recipes::tasks::language_modelling::NO_TARGET;

/// A batch of windows of equal length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowBatch {
    /// Units that are read `[rows, steps]`.
    pub inputs: Vec<u32>,
    /// The unit after each of them `[rows, steps]`, or [`NO_TARGET`].
    pub targets: Vec<u32>,
    /// Number of windows.
    pub rows: usize,
    /// Whether the windows begin with a state of zeros, also where states are carried.
    pub begins: bool,
}

impl WindowBatch {
    /// Number of targets.
    pub fn predicted(&self) -> usize {
        self.targets.iter().filter(|target| **target != NO_TARGET).count()
    }
}
