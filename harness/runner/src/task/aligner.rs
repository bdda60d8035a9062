//! Recomputation of the fixtures from other frameworks on a device, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use burn::module::Module;
use burn::tensor::Device;
use zoo_models::parameters;
use zoo_models::precision::Compute;

/// Result of a check: a description of what holds, or of what failed.
pub type Found = Result<String, String>;

/// Source of the committed fixtures.
pub enum Files {
    /// Fixtures that are built into the program.
    Carried,
    /// Fixtures in a folder.
    Folder(PathBuf),
}

/// Names and contents of the fixtures that are built into the program.
static CARRIED: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/fixture_files.rs"));

/// Recomputes fixtures. A fixture that several recipes need is computed once.
pub struct Aligner {
    device: Device,
    device_name: String,
    compute: Compute,
    files: Files,
    done: BTreeMap<String, Found>,
}

impl Aligner {
    /// An aligner for a device and a precision of products. `device_name` is the name of the device
    /// in messages.
    pub fn new(device: Device, device_name: String, compute: Compute, files: Files) -> Self {
        Self { device, device_name, compute, files, done: BTreeMap::new() }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Name of the device in messages.
    pub fn device_name(&self) -> &str {
        &self.device_name
    }

    /// Precision of products.
    pub fn compute(&self) -> Compute {
        self.compute
    }

    /// What a result says of its products, before everything else: nothing in FP32.
    pub fn products(&self) -> String {
        match self.compute {
            Compute::FP32 => String::new(),
            half => format!("products in {}: ", half.name()),
        }
    }

    /// Content of a fixture.
    ///
    /// # Errors
    /// The fixture does not exist; the error is a description.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        match &self.files {
            Files::Carried => CARRIED
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, bytes)| bytes.to_vec())
                .ok_or_else(|| format!("there is no built-in fixture {name}")),
            Files::Folder(folder) => {
                let file = folder.join(name);
                std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
            }
        }
    }

    /// Result of `align` for a fixture. `align` runs once per fixture.
    pub fn once(&mut self, file: &str, align: impl FnOnce(&Self) -> Found) -> Found {
        if let Some(known) = self.done.get(file) {
            return known.clone();
        }
        let found = align(self);
        self.done.insert(file.to_owned(), found.clone());
        found
    }

    /// Recomputes all models of a fixture. `follow` returns the number of compared tensors.
    pub fn models<C>(
        &mut self,
        file: &str,
        read: impl FnOnce(&[u8]) -> Result<Vec<C>, String>,
        follow: impl Fn(&C, &Device, Compute) -> Result<usize, String>,
    ) -> Found {
        self.once(file, |aligner| {
            let cases = read(&aligner.bytes(file)?)?;
            let mut tensors = 0;
            for case in &cases {
                tensors += follow(case, aligner.device(), aligner.compute())?;
            }
            let products = aligner.products();
            Ok(format!("{products}{file}: {} models, {tensors} tensors", cases.len()))
        })
    }
}

/// Whether a fixture covers a model: its path, or the names of the parts that none of its models
/// has.
pub fn covered<'n>(
    file: &str,
    known: &BTreeSet<&'static str>,
    parts: impl IntoIterator<Item = &'n str>,
) -> Found {
    let unknown: BTreeSet<&str> = parts.into_iter().filter(|part| !known.contains(part)).collect();
    match unknown.is_empty() {
        true => Ok(format!("tests/fixtures/{file}")),
        false => {
            let unknown: Vec<&str> = unknown.into_iter().collect();
            Err(format!("tests/fixtures/{file} has no {}", unknown.join(", ")))
        }
    }
}

/// Number of a model's learned parameters. Running statistics are not learned.
pub fn learned<M: Module>(model: &M) -> u64 {
    let learned = |path: &str| !path.rsplit('.').next().is_some_and(|name| name.starts_with("running_"));
    let shapes = parameters::shapes(model);
    shapes
        .iter()
        .filter(|(path, _)| learned(path))
        .map(|(_, shape)| shape.iter().product::<usize>() as u64)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_carries_every_fixture_that_evidence_leans_on() {
        let names: Vec<&str> = CARRIED.iter().map(|(name, _)| *name).collect();
        let models = crate::task::fixtures::FIXTURES.with::<serde_json::Value>("model");
        assert!(models.keys().all(|file| names.contains(file)), "{names:?}");
        for name in ["schedules.json", "scalers.json", "optimizers.safetensors"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}
