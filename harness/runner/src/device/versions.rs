//! Check that a CUDA driver accepts the code of a run-time compiler.

use std::fmt;

/// A version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major number: 12 of 12.4.
    pub major: i32,
    /// Minor number: 4 of 12.4.
    pub minor: i32,
}

impl Version {
    /// Converts the number that `cuDriverGetVersion` returns: 12040 is 12.4.
    pub fn of_driver(number: i32) -> Self {
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }

    /// The release that introduced the PTX version that NVRTC of this release writes. Every release
    /// except 12.6 has its own.
    fn of_ptx(self) -> Self {
        if self == (Self { major: 12, minor: 6 }) { Self { major: 12, minor: 5 } } else { self }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The two CUDA components that a kernel passes through. They are installed separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolchain {
    /// The newest CUDA that the driver supports.
    pub driver: Version,
    /// The CUDA release of NVRTC.
    pub compiler: Version,
}

impl Toolchain {
    /// Why no kernel would run, and what to install. `None` if the driver accepts the compiler's
    /// output. A driver loads PTX of its own version and of older ones.
    pub fn refusal(self) -> Option<(String, String)> {
        let Self { driver, compiler } = self;
        if compiler.of_ptx() <= driver.of_ptx() {
            return None;
        }
        let Version { major, minor } = driver;
        Some((
            format!(
                "the CUDA driver supports CUDA {driver} and refuses kernels that NVRTC {compiler} compiles"
            ),
            format!(
                "install NVRTC and headers of CUDA {driver} or older (packages cuda-nvrtc-{major}-{minor} and \
                 cuda-cudart-dev-{major}-{minor}), or a driver that supports CUDA {compiler}"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(driver: i32, compiler: (i32, i32)) -> Option<(String, String)> {
        let compiler = Version { major: compiler.0, minor: compiler.1 };
        Toolchain { driver: Version::of_driver(driver), compiler }.refusal()
    }

    #[test]
    fn a_driver_refuses_a_newer_compiler() {
        let (why, hint) = refusal(12040, (12, 9)).unwrap();
        assert!(why.contains("CUDA 12.4") && why.contains("NVRTC 12.9"), "{why}");
        assert!(hint.contains("cuda-nvrtc-12-4") && hint.contains("CUDA 12.9"), "{hint}");
        assert!(refusal(12090, (13, 0)).is_some());
        assert!(refusal(12050, (12, 8)).is_some());
    }

    #[test]
    fn a_driver_takes_its_own_and_older_compilers() {
        for (driver, compiler) in [(12040, (12, 4)), (12080, (12, 4)), (13000, (12, 9)), (12080, (11, 8))] {
            assert_eq!(refusal(driver, compiler), None, "{driver} {compiler:?}");
        }
    }

    #[test]
    fn cuda_12_6_writes_the_ptx_of_12_5() {
        assert_eq!(refusal(12050, (12, 6)), None);
        assert!(refusal(12040, (12, 6)).is_some());
    }
}
