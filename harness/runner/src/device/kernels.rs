//! Location of CubeCL's cache of autotuning results and compiled kernels.
//!
//! By default CubeCL writes to `target/` of the current project, or to the user's cache. Here it
//! writes to one folder of the home for each build of zoo, with one file for each card and setting.
//! CubeCL's own keys contain its version, the build, the kernel and the architecture. They contain
//! neither the card, which determines the fastest kernel, nor whether TF32 was available.
//!
//! CubeCL takes kernels of other builds over if their sources are equal. Twice, a cache of several
//! builds then ended every call with "Should be cached now", so builds do not share a file.

use std::path::Path;

use cubecl::config::cache::CacheConfig;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::environment;

use crate::environment::Program;

/// Digits of a build's name.
const DIGITS: usize = 12;

/// Makes this process use the folder of its build below `folder` for the cache. Must be called once,
/// before any other use of CubeCL. Nothing is written until a device is used.
///
/// Other settings in a `cubecl.toml` or `burn.toml` of the working directory stay in effect.
pub fn keep_in(folder: &Path) {
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.environment.path = CacheConfig::Directory(folder.join(build()));
    config.compilation.cache = true;
    CubeClRuntimeConfig::set(config);
}

/// Selects the cache file of a card and setting for all later results.
pub fn belong_to(words: &[&str]) {
    environment::activate(words.join("-"));
}

/// The first digits of the id that the linker gave this program and that CubeCL's keys contain (`file`
/// shows it as BuildID), else of the commit and the changes of the sources.
fn build() -> String {
    let mut name = match buildid::build_id() {
        Some(id) => hex::encode(id),
        None => Program::current().digest(),
    };
    name.truncate(DIGITS);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_a_name_for_a_folder() {
        let name = build();
        assert_eq!(name.len(), DIGITS);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
}
