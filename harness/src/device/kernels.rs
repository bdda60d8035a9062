//! Where CubeCL keeps what it finds out: which of several kernels is fastest for a shape, and kernels that were compiled.
//!
//! Left alone it writes to `target/` of the project that it is called in, or to the user's cache. Here it writes to one folder of the
//! home, one file for each card and setting: its own keys hold its version, the kernel and the architecture, but neither the card,
//! on which the fastest depends, nor whether TF32 was there to choose.

use std::path::Path;

use cubecl::config::cache::CacheConfig;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::environment;

/// Has this process keep them in a folder. To be called once, before anything else of CubeCL; nothing is written before a device is used.
///
/// What a `cubecl.toml` or `burn.toml` of the working directory says of other things is left as it is.
pub fn keep_in(folder: &Path) {
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.environment.path = CacheConfig::Directory(folder.to_owned());
    config.compilation.cache = true;
    CubeClRuntimeConfig::set(config);
}

/// From now on what is found out goes to the file of this card and setting.
pub fn belong_to(words: &[&str]) {
    environment::activate(words.join("-"));
}
