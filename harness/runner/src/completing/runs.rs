//! Runs of a home by the names of their folders. No file is read.

use std::path::Path;

use crate::runs::names;

/// What the path of a run's folder says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    /// The recipe, then its tier after a dot.
    pub name: String,
    pub arm: String,
    pub seed: u64,
}

impl RunFolder {
    /// Name of the recipe.
    pub fn recipe(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(recipe, _)| recipe)
    }

    /// Tier; `None` is the published size.
    pub fn tier(&self) -> Option<&str> {
        self.name.split_once('.').map(|(_, tier)| tier)
    }

    /// The run of a folder `ARM-seedN-KEY`, or `ARM-seedN-KEY-2`.
    fn parse(name: &str, folder: &str) -> Option<Self> {
        let (arm, rest) = folder.rsplit_once("-seed")?;
        let (seed, key) = rest.split_once('-')?;
        let is_run = !arm.is_empty() && !key.is_empty();
        is_run.then_some(Self { name: name.to_owned(), arm: arm.to_owned(), seed: seed.parse().ok()? })
    }
}

/// The runs of a home's folder of runs, sorted by name.
pub fn all(runs: &Path) -> Vec<RunFolder> {
    let of_name = |name: &String| -> Vec<RunFolder> {
        names(&runs.join(name)).iter().filter_map(|folder| RunFolder::parse(name, folder)).collect()
    };
    names(runs).iter().flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_folder_has_the_arm_and_the_seed() {
        let run = RunFolder::parse("toy.smoke", "mixed-no-masters-seed12-0123456789ab-2").unwrap();
        assert_eq!((run.arm.as_str(), run.seed), ("mixed-no-masters", 12));
        assert_eq!((run.recipe(), run.tier()), ("toy", Some("smoke")));
        for none in [".removing-abc123", "fp32", "fp32-seed-a", "fp32-seedx-a", "-seed1-a", "fp32-seed1-"] {
            assert_eq!(RunFolder::parse("toy", none), None, "{none}");
        }
    }
}
