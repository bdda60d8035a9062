//! Index of `tests/fixtures` that the build wrote: descriptions of the fixtures from other
//! frameworks, and traces.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use zoo_recipes::{LossScalingSpec, OptimizerSpec, ScheduleSpec};

/// Descriptions and traces.
#[derive(Debug, Deserialize)]
pub struct Fixtures {
    /// Value of the metadata key `zoo` by file name.
    described: BTreeMap<String, Value>,
    /// Update rules with a trace.
    pub optimizers: Vec<OptimizerSpec>,
    /// Schedules with a trace.
    pub schedules: Vec<ScheduleSpec>,
    /// Loss scalings with a trace.
    pub scalers: Vec<LossScalingSpec>,
}

/// The committed fixtures.
pub static FIXTURES: LazyLock<Fixtures> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/fixtures.json")))
        .expect("the fixtures are written in the recipe's own words; a test reads them")
});

impl Fixtures {
    /// The description of a file.
    ///
    /// # Panics
    /// If it is missing or has another format. Fixtures are committed, and a test of each task
    /// reads its own.
    pub fn described<T: DeserializeOwned>(&self, file: &str) -> T {
        let value = self.described.get(file).cloned().unwrap_or_default();
        serde_json::from_value(value).expect("a committed fixture describes itself")
    }

    /// All descriptions with the key `key`, by file.
    ///
    /// # Panics
    /// As for [`Self::described`].
    pub fn with<T: DeserializeOwned>(&'static self, key: &str) -> BTreeMap<&'static str, T> {
        let with_key = self.described.iter().filter(|(_, value)| value.get(key).is_some());
        with_key.map(|(file, _)| (file.as_str(), self.described(file))).collect()
    }
}
