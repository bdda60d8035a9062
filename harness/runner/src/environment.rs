//! Description of sources, machine and device of a run, for the run's folder and the ledger.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::device;

/// Properties of this program and this machine that a result may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of zoo.
    pub version: String,
    /// Commit of the sources.
    pub commit: String,
    /// Whether the sources differed from the commit.
    pub dirty: bool,
    /// SHA-256 of the sources if they differed from the commit; absent in records by earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirt: Option<String>,
    /// SHA-256 of the dependency lock.
    pub lock: String,
    /// Build profile.
    pub profile: String,
    /// Operating system and architecture.
    pub platform: String,
    /// Model name of the processor.
    pub processor: String,
    /// Instruction sets that change results or speed.
    pub instructions: Vec<String>,
    /// Number of threads of the pool.
    pub threads: usize,
    /// Device of the tensors.
    pub device: String,
}

impl Environment {
    /// Environment of this process.
    pub fn current(device: &str, threads: usize) -> Self {
        let Program { commit, dirt, lock } = Program::current();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            dirty: env!("ZOO_DIRTY") == "true",
            dirt,
            lock,
            profile: env!("ZOO_PROFILE").into(),
            platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            processor: processor(),
            instructions: instructions(),
            threads,
            device: device.into(),
        }
    }
}

/// Sources of a program. Two programs are equal if all fields are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    /// Commit of the sources.
    pub commit: String,
    /// SHA-256 of the sources if they differed from the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirt: Option<String>,
    /// SHA-256 of the dependency lock.
    pub lock: String,
}

impl Program {
    /// The running program.
    pub fn current() -> Self {
        let dirt = env!("ZOO_DIRT");
        Self {
            commit: env!("ZOO_COMMIT").into(),
            dirt: (!dirt.is_empty()).then(|| dirt.to_owned()),
            lock: hex::encode(Sha256::digest(include_bytes!("../../../Cargo.lock"))),
        }
    }

    /// SHA-256 of the commit, the changes and the dependency lock, in hexadecimal digits.
    #[cfg(feature = "gpu")]
    pub fn digest(&self) -> String {
        let dirt = self.dirt.as_deref().unwrap_or_default();
        hex::encode(Sha256::digest(format!("{} {dirt} {}", self.commit, self.lock)))
    }

    /// The commit, with a mark if the sources were changed.
    pub fn sources(&self) -> String {
        let changes = if self.dirt.is_some() { "+changes" } else { "" };
        format!("{}{changes}", self.commit)
    }
}

impl Environment {
    /// The program; `None` if it is unknown how its sources differed from the commit. Such a
    /// program is not equal to any other.
    pub fn program(&self) -> Option<Program> {
        let known = self.dirty == self.dirt.is_some();
        known.then(|| Program {
            commit: self.commit.clone(),
            dirt: self.dirt.clone(),
            lock: self.lock.clone(),
        })
    }

    /// The commit, with a mark if the sources were changed.
    pub fn sources(&self) -> String {
        let changes = if self.dirty { "+changes" } else { "" };
        format!("{}{changes}", self.commit)
    }

    /// What a result depends on and differs in another environment: name, value here, value there.
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
        let program = |of: &Self| {
            let dirt = of.dirt.as_deref().map_or_else(String::new, |dirt| format!(" {}", short(dirt)));
            format!("{}{dirt}, lock {}", of.sources(), short(&of.lock))
        };
        let of = |of: &Self| {
            [
                ("program", program(of)),
                ("build profile", of.profile.clone()),
                ("platform", of.platform.clone()),
                ("processor", of.processor.clone()),
                ("instructions", of.instructions.join(" ")),
                ("threads", of.threads.to_string()),
                ("device", of.device.clone()),
            ]
        };
        let pairs = of(self).into_iter().zip(of(other));
        pairs
            .filter(|(one, other)| one != other)
            .map(|((what, one), (_, other))| (what, one, other))
            .collect()
    }

    /// A value of [`Self::differences`] for programs: a number, a list or words.
    pub fn value_of(what: &str, text: &str) -> Value {
        match what {
            "threads" => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
            "instructions" => text.split_whitespace().collect(),
            _ => text.into(),
        }
    }

    /// The processor, or the name of the GPU as the driver reports it.
    pub fn hardware(&self) -> String {
        match self.device.split_once(':') {
            None if self.device == "cpu" => self.processor.clone(),
            Some(("cuda", number)) => match number.parse().ok().and_then(device::cuda_card) {
                Some(card) => format!("1x {card}"),
                None => "1x CUDA device of an unknown kind".into(),
            },
            _ => format!("1x {} device of an unknown kind", self.device),
        }
    }
}

/// Whether this program's GPU backend fuses operations.
pub fn fused() -> bool {
    cfg!(any(feature = "cuda", feature = "wgpu"))
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_string())
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> Vec<String> {
    let known = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bf16", is_x86_feature_detected!("avx512bf16")),
        ("amx-bf16", zoo_models::ops::bf16_instruction() == Some(zoo_models::ops::Instruction::Amx)),
    ];
    known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_string()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_sources_are_the_same_program_only_where_their_digests_are_equal() {
        let this = Environment { dirty: false, dirt: None, ..Environment::current("cpu", 1) };
        let changed =
            |dirt: Option<&str>| Environment { dirty: true, dirt: dirt.map(str::to_owned), ..this.clone() };
        assert_eq!(this.program(), this.clone().program());
        assert_eq!(changed(Some("a")).program(), changed(Some("a")).program());
        assert_ne!(changed(Some("a")).program(), changed(Some("b")).program());
        assert_ne!(changed(Some("a")).program(), this.program());
        // Records by earlier versions do not state what was changed.
        assert_eq!(changed(None).program(), None);
        let current = Environment::current("cpu", 1);
        assert_eq!(current.program(), Some(Program::current()));
        assert_eq!(current.sources(), Program::current().sources());
    }
}
