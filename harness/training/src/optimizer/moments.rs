//! The arrays that an update rule keeps for each parameter.

use std::collections::BTreeMap;

use super::adam::placed;
use super::{Moment, OptimizerError, OptimizerState, export_moments, import_moments};
use crate::flat::Flat;

/// `N` arrays of each parameter, and the number of updates.
#[derive(Debug)]
pub(super) struct Moments<const N: usize> {
    names: [&'static str; N],
    steps: u64,
    kept: BTreeMap<String, [Flat; N]>,
    /// Arrays from a checkpoint. They move to their device at the first step of their parameter.
    loaded: BTreeMap<String, [Vec<f32>; N]>,
}

impl<const N: usize> Moments<N> {
    /// No arrays, and no updates. `names` are those of the arrays in checkpoints.
    pub fn new(names: [&'static str; N]) -> Self {
        Self { names, steps: 0, kept: BTreeMap::new(), loaded: BTreeMap::new() }
    }

    /// Starts an update.
    pub fn begin(&mut self) {
        self.steps += 1;
    }

    /// Number of updates.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes the arrays of a parameter: those of `first` if it has none yet.
    pub fn take(&mut self, path: &str, weight: &Flat, first: impl FnOnce() -> [Flat; N]) -> [Flat; N] {
        match (self.kept.remove(path), self.loaded.remove(path)) {
            (Some(arrays), _) => arrays,
            (None, Some(arrays)) => arrays.map(|values| placed(values, weight)),
            (None, None) => first(),
        }
    }

    /// Puts the arrays of a parameter back.
    pub fn put(&mut self, path: &str, arrays: [Flat; N]) {
        self.kept.insert(path.to_owned(), arrays);
    }

    /// Returns a copy of the state.
    pub fn export(&self) -> OptimizerState {
        let mut moments = Vec::new();
        for (at, name) in self.names.into_iter().enumerate() {
            moments.extend(export_moments(name, self.kept.iter().map(|(path, arrays)| (path, &arrays[at]))));
            moments.extend(self.loaded.iter().map(|(path, arrays)| Moment {
                name: name.to_owned(),
                path: path.clone(),
                values: arrays[at].clone(),
            }));
        }
        moments.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        OptimizerState { steps: self.steps, moments }
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// The state has other arrays.
    pub fn import(&mut self, state: OptimizerState) -> Result<(), OptimizerError> {
        let mut found = import_moments(self.names, state.moments)?;
        let paths: Vec<String> = found.first().into_iter().flat_map(BTreeMap::keys).cloned().collect();
        self.steps = state.steps;
        self.kept.clear();
        self.loaded = paths
            .into_iter()
            .map(|path| {
                let arrays = found.each_mut().map(|arrays| arrays.remove(&path).unwrap_or_default());
                (path, arrays)
            })
            .collect();
        Ok(())
    }
}
