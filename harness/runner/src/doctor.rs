//! Check of this machine's set-up, with instructions for fixing problems.

use std::collections::BTreeSet;
use std::path::Path;

use burn::tensor::{Device, FloatDType};
use serde::Serialize;
use zoo_datasets::corpora::ByteCount;
use zoo_models::ops::{Products, probe};
use zoo_models::precision::Compute;

use crate::cache::Extent;
use crate::context::Context;
use crate::device;
use crate::environment::{Environment, fused};
use crate::fp32::Fp32;
use crate::libraries::{self, Found};

/// Free space in bytes below which a note is shown. It fits WMT's text with its prepared form and
/// the checkpoints of a big model.
const ROOM: u64 = 20_000_000_000;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No problem.
    Ok,
    /// Something is missing that not every user needs.
    Note,
    /// The requested settings cannot work.
    Fault,
}

/// Result of the check of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Checked subject.
    pub subject: &'static str,
    pub state: State,
    /// Description of what was found.
    pub found: String,
    /// Instructions for fixing the problem.
    pub mend: Option<String>,
}

fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
    Finding { subject, state: State::Ok, found: found.into(), mend: None }
}

fn note(subject: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { subject, state: State::Note, found: found.into(), mend: Some(mend.into()) }
}

fn fault(subject: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { subject, state: State::Fault, found: found.into(), mend: Some(mend.into()) }
}

/// Runs all checks. Opens no network connection. Writes only the kernels of a GPU's probe.
pub fn examine(ctx: &Context) -> Vec<Finding> {
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let mut findings = vec![program(&environment), processor(&environment)];
    findings.extend(home(&ctx.home));
    findings.push(mirror(ctx));
    findings.extend(cuda());
    findings.push(wgpu());
    findings.extend(chosen(ctx));
    if cfg!(feature = "gpu") {
        findings.push(kernels(&ctx.kernels_dir()));
    }
    findings
}

fn program(environment: &Environment) -> Finding {
    let features: Vec<&str> =
        [("flex", true), ("cuda", cfg!(feature = "cuda-unfused")), ("wgpu", cfg!(feature = "wgpu-unfused"))]
            .into_iter()
            .filter_map(|(name, there)| there.then_some(name))
            .collect();
    let found = format!(
        "zoo {} at {}{}, {} build; backends: {}{}",
        environment.version,
        environment.commit.get(..12).unwrap_or(&environment.commit),
        if environment.dirty { " with changes" } else { "" },
        environment.profile,
        features.join(", "),
        if fused() { "; operations are fused" } else { "" }
    );
    match environment.profile.as_str() {
        "release" => ok("program", found),
        _ => note("program", found, "cargo build --release: other builds train many times slower"),
    }
}

fn processor(environment: &Environment) -> Finding {
    let found = format!(
        "{}, {} threads; {}",
        environment.processor,
        environment.threads,
        environment.instructions.join(", ")
    );
    match zoo_models::ops::bf16_instruction() {
        Some(_) => ok("processor", found),
        None => note(
            "processor",
            format!("{found}; none for bf16 products"),
            "bf16 is emulated: correct, but not faster than FP32; fast bf16 needs AVX512-BF16, AMX or a GPU. CPUs always emulate fp16",
        ),
    }
}

/// Checks that the home, or the folder that it would be created in, is writable, and how much space
/// is free.
fn home(home: &Path) -> Vec<Finding> {
    let there = home.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let mend = "name another folder: --home or ZOO_HOME";
    let mut findings = vec![match tempfile::tempfile_in(there) {
        Ok(_) if there == home => ok("home", format!("{} can be written", home.display())),
        Ok(_) => ok("home", format!("{} is made when it is needed", home.display())),
        Err(error) => fault("home", format!("{} cannot be written: {error}", there.display()), mend),
    }];
    if let Some(free) = free_space(there) {
        let found = format!("{} free", ByteCount { known: free, unknown: 0 });
        findings.push(match free >= ROOM {
            true => ok("disk", found),
            false => note(
                "disk",
                found,
                format!("WMT recipes need {}; {mend}", ByteCount { known: ROOM, unknown: 0 }),
            ),
        });
    }
    findings
}

#[cfg(unix)]
fn free_space(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<u64> {
    None
}

fn mirror(ctx: &Context) -> Finding {
    match ctx.mirror.as_deref() {
        None if ctx.offline => ok("mirror", "none, and --offline: only existing files are used"),
        None => ok("mirror", "none: files come from their published addresses"),
        Some(url) if zoo_datasets::fetch::is_url(url) => {
            ok("mirror", format!("{url}, asked when something is fetched"))
        }
        Some(folder) => {
            let hosts = std::fs::read_dir(folder)
                .map(|entries| entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir()).count());
            let mend = "set --mirror or ZOO_MIRROR to a folder with one subfolder per host, <host>/<path>";
            match hosts {
                Ok(0) => note("mirror", format!("{folder} has no folder of a host"), mend),
                Ok(hosts) => ok("mirror", format!("{folder}, {hosts} hosts")),
                Err(error) => fault("mirror", format!("{folder}: {error}"), mend),
            }
        }
    }
}

/// Checks that the loader finds a shared library.
fn library(subject: &'static str, name: &str, mend: &str) -> Finding {
    let found = libraries::find(name);
    let place = match &found {
        Found::Loaded(file) => return ok(subject, file.display().to_string()),
        Found::Elsewhere(file) => format!("{} is not on the loader's search path", file.display()),
        Found::Missing => return note(subject, format!("{name} is not there"), mend),
    };
    note(subject, place, found.mend().unwrap_or_default())
}

/// Checks NVRTC, and that the driver accepts the code that it compiles.
fn compiler(version: Option<&str>) -> Finding {
    let mut finding =
        library("cuda compiler", "libnvrtc.so", "install CUDA's nvrtc library (package cuda-nvrtc)");
    match (device::cuda_refusal(), version) {
        (Some((why, hint)), _) => note("cuda compiler", format!("{}: {why}", finding.found), hint),
        (None, Some(version)) => {
            finding.found = format!("NVRTC {version}, {}", finding.found);
            finding
        }
        (None, None) => finding,
    }
}

/// Checks driver, run-time compiler and headers, and the devices if CUDA is built in.
fn cuda() -> Vec<Finding> {
    let driver = std::fs::read_to_string("/proc/driver/nvidia/version");
    let driver = driver.ok().and_then(|text| Some(text.lines().next()?.trim().to_owned()));
    let versions = device::cuda_versions();
    let version = |which: usize| versions.as_ref().map(|versions| versions[which].as_str());
    let devices = match device::cuda_devices() {
        None => note("cuda", "not built in", "cargo build --release --features cuda"),
        Some(0) => note("cuda", "built in; no device is seen", "`nvidia-smi` must list one"),
        Some(count) => ok("cuda", format!("{count} devices")),
    };
    vec![
        devices,
        match (driver, version(0)) {
            (Some(driver), Some(cuda)) => ok("cuda driver", format!("supports CUDA {cuda}; {driver}")),
            (Some(driver), None) => ok("cuda driver", driver),
            // Containers and WSL have the driver's library but no entry in /proc.
            (None, Some(cuda)) => ok("cuda driver", format!("supports CUDA {cuda}")),
            (None, None) => note(
                "cuda driver",
                "none is loaded",
                "an NVIDIA GPU needs its driver; check with `nvidia-smi`",
            ),
        },
        library(
            "cuda library",
            "libcuda.so.1",
            "it comes with the driver; in a container, run it with the GPU",
        ),
        compiler(version(1)),
        match libraries::cuda_headers() {
            Some(folder) => ok("cuda headers", folder.display().to_string()),
            None => note(
                "cuda headers",
                "include/cuda_runtime.h is not there",
                "install the toolkit's headers (package cuda-cudart-dev), or set CUDA_PATH to the toolkit",
            ),
        },
    ]
}

fn wgpu() -> Finding {
    match device::wgpu_devices() {
        None => note("wgpu", "not built in", "cargo build --release --features wgpu"),
        Some(0) => note(
            "wgpu",
            "built in; no card is seen",
            "install a Vulkan driver: `vulkaninfo` lists the drivers (Mesa has a software driver)",
        ),
        Some(1) => ok("wgpu", "1 card".to_owned()),
        Some(count) => ok("wgpu", format!("{count} cards")),
    }
}

/// Checks the device that `--device` selects, and its matrix products.
fn chosen(ctx: &Context) -> Vec<Finding> {
    let device = ctx.device;
    match ctx.open_device() {
        Ok(opened) => {
            vec![
                ok("device", format!("{} is used (--device {device})", device.settled())),
                products(&opened, device.has_tf32().then(|| ctx.fp32.unwrap_or_default())),
            ]
        }
        Err(failure) => {
            let (found, hint) = failure.parts();
            vec![fault("device", found, hint.unwrap_or("--device cpu"))]
        }
    }
}

/// Reports the folder of compiled kernels and autotuning results.
fn kernels(folder: &Path) -> Finding {
    let extent = Extent::of(folder, &BTreeSet::new());
    let size = ByteCount { known: extent.bytes, unknown: 0 };
    ok(
        "kernels",
        match extent.files {
            0 => format!("{} is empty; compiled GPU kernels are stored there", folder.display()),
            count => format!("{} has {size} in {count} files", folder.display()),
        },
    )
}

/// Reports the measured precision of products for each type that arms may use, and the requested
/// FP32 arithmetic if there is a choice.
fn products(device: &Device, asked: Option<Fp32>) -> Finding {
    /// Matrices of this width use tensor cores if the device has them.
    const WIDTH: usize = 512;
    let types = [FloatDType::F32, FloatDType::F16, FloatDType::BF16].map(Compute);
    let found = types.map(|compute| match device.supports_dtype(compute.0) {
        true => (compute.name(), Some(probe(device, compute, WIDTH))),
        false => (compute.name(), None),
    });
    let words = found.map(|(name, products)| match products {
        Some(Products::Tf32) => format!("{name} is TF32"),
        Some(found) if found.name() != name => format!("{name} is {}", found.name()),
        Some(_) => name.to_owned(),
        None => format!("no {name}"),
    });
    let words = words.join(", ");
    match (found[0].1, asked) {
        (Some(Products::Tf32), Some(Fp32::Tf32)) => note(
            "products",
            words,
            "as set by --fp32 tf32: FP32 arms are recorded as TF32, and `zoo verify` fails above the embeddings",
        ),
        (Some(Products::Tf32), _) => {
            fault("products", words, "FP32 products must not be rounded here; please report this")
        }
        (_, Some(fp32)) => ok("products", format!("{words} (--fp32 {})", fp32.name())),
        (_, None) => ok("products", words),
    }
}
