//! Location of CubeCL's cache of autotuning results and compiled kernels.
//!
//! By default CubeCL writes to `target/` of the current project, or to the user's cache. Here it
//! writes to one folder of the home, with one file for each card and setting. CubeCL's own keys
//! contain its version, the kernel and the architecture. They contain neither the card, which
//! determines the fastest kernel, nor whether TF32 was available.

use std::path::Path;

use cubecl::config::cache::CacheConfig;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::environment;

/// Makes this process use a folder for the cache. Must be called once, before any other use of
/// CubeCL. Nothing is written until a device is used.
///
/// Other settings in a `cubecl.toml` or `burn.toml` of the working directory stay in effect.
pub fn keep_in(folder: &Path) {
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.environment.path = CacheConfig::Directory(folder.to_owned());
    config.compilation.cache = true;
    CubeClRuntimeConfig::set(config);
}

/// Selects the cache file of a card and setting for all later results.
pub fn belong_to(words: &[&str]) {
    environment::activate(words.join("-"));
}
