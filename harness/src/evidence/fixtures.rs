//! What the build collected from `tests/fixtures`: the descriptions of the fixtures of other frameworks, and the traces.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use zoo_recipes::{LossScalingSpec, OptimizerSpec, ScheduleSpec};

/// Descriptions and traces.
#[derive(Debug, Deserialize)]
pub struct Fixtures {
    /// The key `zoo` of a file's metadata, by the file's name.
    described: BTreeMap<String, Value>,
    /// Update rules that are traced.
    pub optimizers: Vec<OptimizerSpec>,
    /// Schedules that are traced.
    pub schedules: Vec<ScheduleSpec>,
    /// Loss scalings that are traced.
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
    /// If it is not there or of another form: fixtures are committed, and a test of each task reads its own.
    pub fn described<T: DeserializeOwned>(&self, file: &str) -> T {
        let value = self.described.get(file).cloned().unwrap_or_default();
        serde_json::from_value(value).expect("a committed fixture describes itself")
    }

    /// All descriptions that have a key, by file.
    ///
    /// # Panics
    /// As [`Self::described`].
    pub fn with<T: DeserializeOwned>(&'static self, key: &str) -> BTreeMap<&'static str, T> {
        let with_key = self.described.iter().filter(|(_, value)| value.get(key).is_some());
        with_key.map(|(file, _)| (file.as_str(), self.described(file))).collect()
    }
}
