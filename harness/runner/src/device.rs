//! The option `--device`: parsing, and opening of the device.

use std::fmt;
use std::str::FromStr;

use std::path::Path;

use burn::tensor::Device;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};
use crate::fp32::Fp32;

#[cfg(feature = "cuda-unfused")]
mod driver;
#[cfg(feature = "gpu")]
mod kernels;
#[cfg(any(feature = "cuda-unfused", all(test, feature = "gpu")))]
mod registration;
#[cfg(any(feature = "cuda-unfused", test))]
mod versions;

/// Device that the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// CUDA if it is built in and a device exists, else the CPU.
    #[default]
    Auto,
    /// Burn's Flex backend.
    Cpu,
    /// CUDA device with this number.
    Cuda(usize),
    /// The graphics card that wgpu ranks first.
    Wgpu,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            None if text == "wgpu" => Ok(Self::Wgpu),
            Some(("cuda", number)) => match number.parse::<u16>() {
                Ok(number) => Ok(Self::Cuda(number.into())),
                Err(_) => Err(format!("`{number}` is not a valid device number; the first is cuda:0")),
            },
            _ => Err("the devices are auto, cpu, cuda, cuda:N and wgpu".to_owned()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Wgpu => f.write_str("wgpu"),
        }
    }
}

impl DeviceChoice {
    /// The device that `auto` stands for; other choices are unchanged. Opens no device.
    pub fn settled(self) -> Self {
        match self {
            Self::Auto if cuda::count() > 0 => Self::Cuda(0),
            Self::Auto => Self::Cpu,
            other => other,
        }
    }

    /// Whether the device is the CPU.
    pub fn is_cpu(self) -> bool {
        self.settled() == Self::Cpu
    }

    /// Whether the device can round operands of FP32 products to TF32.
    pub fn has_tf32(self) -> bool {
        matches!(self.settled(), Self::Cuda(_))
    }

    /// Opens the device without autodiff. There is no fallback: if the device cannot be opened, the
    /// error names what is missing.
    ///
    /// # Errors
    /// [`Exit::Device`], also if this process already opened the device with other FP32 arithmetic.
    pub fn open(self, fp32: Fp32) -> Result<Device> {
        match self.settled() {
            other if fp32 == Fp32::Tf32 && !other.has_tf32() => {
                Err(Failure::new(Exit::Device, format!("{other} does not support TF32"))
                    .hint("leave --fp32 tf32 out"))
            }
            Self::Auto | Self::Cpu => Ok(Device::flex()),
            Self::Cuda(number) => cuda::open(number, fp32),
            Self::Wgpu => wgpu::open(),
        }
    }
}

/// Makes this process store GPU kernels and autotuning results in a folder of its build below
/// `folder`. Must be called before any other function of this module.
pub fn keep_kernels(folder: &Path) {
    #[cfg(feature = "gpu")]
    kernels::keep_in(folder);
    #[cfg(not(feature = "gpu"))]
    let _ = folder;
}

/// Number of CUDA devices; `None` if CUDA is not built in.
pub fn cuda_devices() -> Option<usize> {
    cfg!(feature = "cuda-unfused").then(cuda::count)
}

/// Name of a CUDA device's card as the driver reports it; `None` if there is none or CUDA is not
/// built in.
pub fn cuda_card(number: usize) -> Option<String> {
    cuda::card(number)
}

/// The newest CUDA version that the driver supports, and the CUDA version of NVRTC; `None` if one
/// is missing or CUDA is not built in.
pub fn cuda_versions() -> Option<[String; 2]> {
    cuda::versions()
}

/// Why the CUDA driver would refuse kernels that NVRTC compiles, and what to install; `None` if it
/// would accept them.
pub fn cuda_refusal() -> Option<(String, String)> {
    cuda::refusal()
}

/// Number of cards that wgpu finds; `None` if wgpu is not built in.
pub fn wgpu_devices() -> Option<usize> {
    cfg!(feature = "wgpu-unfused").then(wgpu::count)
}

#[cfg(any(not(feature = "cuda-unfused"), not(feature = "wgpu-unfused")))]
fn not_built_in(device: &str, feature: &str) -> Failure {
    Failure::new(Exit::Device, format!("the device {device} is not built into this program"))
        .hint(format!("build it with `cargo build --release --features {feature}`, or use --device cpu"))
}

#[cfg(not(feature = "cuda-unfused"))]
mod cuda {
    use super::{Device, Fp32, Result, not_built_in};

    pub fn count() -> usize {
        0
    }

    pub fn card(_: usize) -> Option<String> {
        None
    }

    pub fn versions() -> Option<[String; 2]> {
        None
    }

    pub fn refusal() -> Option<(String, String)> {
        None
    }

    pub fn open(number: usize, _: Fp32) -> Result<Device> {
        Err(not_built_in(&format!("cuda:{number}"), "cuda"))
    }
}

#[cfg(feature = "cuda-unfused")]
mod cuda {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use burn::tensor::DeviceType;
    use cubecl::cuda::{CudaDevice, CudaRuntime};

    use super::{Device, Exit, Failure, Fp32, Result, driver, kernels, registration};
    use crate::libraries;

    /// FP32 arithmetic of the devices that this process opened.
    static OPENED: Mutex<BTreeMap<usize, Fp32>> = Mutex::new(BTreeMap::new());

    /// Number of CUDA devices. Enumeration needs the driver's library; without it the result is 0,
    /// without a panic.
    pub fn count() -> usize {
        Device::enumerate(DeviceType::Cuda).into_iter().count()
    }

    pub fn card(number: usize) -> Option<String> {
        driver::card(number)
    }

    pub fn versions() -> Option<[String; 2]> {
        driver::toolchain().map(|toolchain| [toolchain.driver, toolchain.compiler].map(|x| x.to_string()))
    }

    pub fn refusal() -> Option<(String, String)> {
        driver::toolchain()?.refusal()
    }

    pub fn open(number: usize, fp32: Fp32) -> Result<Device> {
        let failure = |message: String| Failure::new(Exit::Device, message);
        let count = count();
        if count == 0 {
            return Err(failure("no CUDA device found, or its driver is not installed".to_owned()).hint(
                "`nvidia-smi` must list a device and libcuda.so.1 must be found (LD_LIBRARY_PATH); \
                 else use --device cpu",
            ));
        }
        if number >= count {
            let last = count - 1;
            return Err(failure(format!("there is no CUDA device {number}"))
                .hint(format!("there are {count}, cuda:0 to cuda:{last}")));
        }
        // Kernels are compiled at run time, and the compiler needs the toolkit's headers.
        if libraries::cuda_headers().is_none() {
            return Err(failure("the headers of the CUDA toolkit are not there".to_owned())
                .hint("set CUDA_PATH to a folder that has include/cuda_runtime.h; `zoo doctor` tells more"));
        }
        // The loader looks up the library by its bare name. A missing library would cause a panic.
        #[cfg(target_os = "linux")]
        if let Some(mend) = libraries::find("libnvrtc.so").mend() {
            return Err(failure("CUDA's run-time compiler, libnvrtc.so, is not found".to_owned()).hint(mend));
        }
        // The first kernel would cause a panic.
        if let Some((why, hint)) = refusal() {
            return Err(failure(why).hint(hint));
        }
        settle(number, fp32)?;
        Ok(Device::cuda(number))
    }

    /// Opens the device with the requested FP32 arithmetic at the first call. Later calls must
    /// request the same arithmetic.
    fn settle(number: usize, fp32: Fp32) -> Result<()> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        match opened.get(&number) {
            Some(before) if *before == fp32 => return Ok(()),
            Some(before) => {
                let message = format!(
                    "this process has opened cuda:{number} with --fp32 {}, and now wants {}",
                    before.name(),
                    fp32.name()
                );
                return Err(Failure::new(Exit::Device, message)
                    .hint("run a separate command for each, or pass --fp32"));
            }
            None => {}
        }
        // The cache file is named before CubeCL opens it together with the device.
        let card = card(number).unwrap_or_else(|| number.to_string());
        kernels::belong_to(&["cuda", &card, fp32.name()]);
        let device = CudaDevice::new(number);
        match fp32 {
            Fp32::Tf32 => cubecl::Device::Cuda(device).client(),
            Fp32::Strict => registration::open_with::<CudaRuntime>(&device, |properties| {
                registration::without_tf32(&mut properties.features);
            })
            .map_err(|_| {
                Failure::new(
                    Exit::Internal,
                    format!("cuda:{number} was opened before TF32 was taken from it"),
                )
            })?,
        };
        opened.insert(number, fp32);
        Ok(())
    }
}

#[cfg(not(feature = "wgpu-unfused"))]
mod wgpu {
    use super::{Device, Result, not_built_in};

    pub fn count() -> usize {
        0
    }

    pub fn open() -> Result<Device> {
        Err(not_built_in("wgpu", "wgpu"))
    }
}

#[cfg(feature = "wgpu-unfused")]
mod wgpu {
    use std::sync::Once;

    use burn::tensor::{DeviceKind, DeviceType};
    use cubecl::wgpu::WgpuDevice;

    use super::{Device, Exit, Failure, Result, kernels};

    static OPENED: Once = Once::new();

    pub fn count() -> usize {
        Device::enumerate(DeviceType::Wgpu).into_iter().count()
    }

    pub fn open() -> Result<Device> {
        if count() == 0 {
            return Err(Failure::new(Exit::Device, "wgpu finds no graphics card")
                .hint("install a Vulkan driver (`vulkaninfo` lists it), or use --device cpu"));
        }
        OPENED.call_once(|| {
            let client = cubecl::Device::Wgpu(WgpuDevice::default()).client();
            kernels::belong_to(&["wgpu", &client.properties().identity.name]);
        });
        Ok(Device::wgpu(DeviceKind::DefaultDevice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_devices_and_back() {
        for (word, device) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda:0", DeviceChoice::Cuda(0)),
            ("cuda:3", DeviceChoice::Cuda(3)),
            ("wgpu", DeviceChoice::Wgpu),
        ] {
            assert_eq!(word.parse(), Ok(device));
            assert_eq!(device.to_string(), word);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert!("cuda:x".parse::<DeviceChoice>().unwrap_err().contains("cuda:0"));
        assert!("gpu".parse::<DeviceChoice>().unwrap_err().contains("cuda:N"));
    }

    #[test]
    fn a_device_without_tf32_says_so() {
        let failure = DeviceChoice::Cpu.open(Fp32::Tf32).unwrap_err();
        assert_eq!(failure.exit, Exit::Device);
        assert!(failure.to_string().contains("cpu does not support TF32"), "{failure}");
    }

    #[cfg(not(feature = "cuda-unfused"))]
    #[test]
    fn a_missing_feature_is_named() {
        let failure = DeviceChoice::Cuda(0).open(Fp32::Strict).unwrap_err();
        assert_eq!(failure.exit, Exit::Device);
        assert!(failure.to_string().contains("--features cuda"));
        assert_eq!(DeviceChoice::Auto.settled(), DeviceChoice::Cpu);
    }
}
