//! Information from NVIDIA's driver and run-time compiler. CubeCL opens a device without checking
//! it.

use cudarc::{driver, nvrtc};

use super::versions::{Toolchain, Version};

/// Name of the card with this number, as `nvidia-smi` prints it; `None` if there is no driver or no
/// such card.
///
/// The name comes from the driver, because `/proc/driver/nvidia`, which has it too, is missing in
/// many containers and in WSL.
pub fn card(number: usize) -> Option<String> {
    if !has_driver() {
        return None;
    }
    driver::result::init().ok()?;
    let device = driver::result::device::get(number.try_into().ok()?).ok()?;
    driver::result::device::get_name(device).ok()
}

/// Versions of the driver and of NVRTC; `None` if one of them is missing.
pub fn toolchain() -> Option<Toolchain> {
    if !has_driver() || !has_compiler() {
        return None;
    }
    let mut version = 0;
    // SAFETY: the call writes one number.
    unsafe { driver::sys::cuDriverGetVersion(&raw mut version).result() }.ok()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the call writes two numbers.
    unsafe { nvrtc::sys::nvrtcVersion(&raw mut major, &raw mut minor).result() }.ok()?;
    Some(Toolchain { driver: Version::of_driver(version), compiler: Version { major, minor } })
}

/// Whether the loader finds libcuda. cudarc panics if it does not.
fn has_driver() -> bool {
    // SAFETY: the call opens a library by its name, and closes it.
    unsafe { driver::sys::is_culib_present() }
}

/// Whether the loader finds libnvrtc.
fn has_compiler() -> bool {
    // SAFETY: the call opens a library by its name, and closes it.
    unsafe { nvrtc::sys::is_culib_present() }
}
