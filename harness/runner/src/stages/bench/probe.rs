//! Trial of one batch in a separate process, so that running out of memory does not affect this
//! one.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zoo_models::ops::{self, count_launches};
use zoo_models::precision::Compute;
use zoo_results::exit::Exit;

use super::contender::Data;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::timed_arm::{Count, Making};
use crate::stages::Request;
use crate::task::shape::Shape;
use crate::{memory, tasks};

/// Interval between checks of a process. A process that allocates as fast as it can gets about 50
/// MB further.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Measurements of an update of one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Measured precision of matrix products.
    pub compute: String,
    /// Tokens of both sides.
    pub tokens: u64,
    /// Duration of the second update, in seconds.
    pub seconds: f64,
    /// Number of launched kernels; `None` if they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<usize>,
    /// Peak memory of the process in bytes. For a GPU it includes the memory of other programs.
    #[serde(rename = "memory_bytes")]
    pub memory: Option<u64>,
}

/// Reason why a batch did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The batch needs more memory than is allowed or available.
    Memory,
    /// The batch takes longer than is allowed.
    Time,
    /// The largest shape that can be requested was reached.
    Shape,
    /// The process failed with this message.
    Failure(String),
}

/// Limits for trying a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Resident memory of the process in bytes; `None` on a GPU, which reports when it is full.
    pub memory: Option<u64>,
    /// Seconds from the start of the process to the end of its second update.
    pub seconds: f64,
}

/// Makes two updates of the request's first arm with a batch of this shape, because the optimizer
/// has its state only after the first update.
pub fn probe(ctx: &Context, request: &Request, shape: Shape) -> Result<Probed> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let recipe = &arms.first().ok_or_else(|| Failure::usage("no arm to try"))?.recipe;
    let making = Making { initial: None, seed: recipe.train.seed, count: Count::Usual };
    let mut timed = Data::Shaped(shape).arm(ctx, recipe, making)?.timed;
    timed.clean_lap(1)?;
    let (lap, launches) = count_launches(|| timed.clean_lap(1));
    let lap = lap?;
    let compute = Compute::of(&recipe.precision);
    let found = ops::probe(&ctx.open_device()?, compute, tasks::of(recipe).width());
    let compute = found.name().to_string();
    Ok(Probed {
        compute,
        tokens: lap.tokens,
        seconds: lap.seconds,
        launches,
        memory: memory::peak(ctx.device),
    })
}

/// Runs a command that prints [`Probed`] within limits. Stops it when `go_on` fails.
///
/// # Errors
/// The process cannot be started or monitored, or `go_on` fails.
pub fn watched(
    mut command: Command,
    limits: Limits,
    go_on: impl Fn() -> Result<()>,
) -> Result<std::result::Result<Probed, Bound>> {
    let failed =
        |error| Failure::new(Exit::Internal, format!("cannot try a batch in a process of its own: {error}"));
    // Files instead of pipes, because an unread pipe fills up and blocks.
    let (mut out, mut told) = (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
    command.stdout(out.try_clone().map_err(failed)?).stderr(told.try_clone().map_err(failed)?);
    let mut process = Process(command.spawn().map_err(failed)?);
    process.is_first_to_go();
    let start = Instant::now();
    let status = loop {
        go_on()?;
        if let Some(status) = process.0.try_wait().map_err(failed)? {
            break status;
        }
        if limits.memory.is_some_and(|most| process.peak() > most) {
            return Ok(Err(Bound::Memory));
        }
        if start.elapsed().as_secs_f64() > limits.seconds {
            return Ok(Err(Bound::Time));
        }
        sleep(LOOK_EVERY);
    };
    // Ctrl-C interrupts both processes.
    go_on()?;
    if !status.success() {
        let told = text(&mut told).map_err(failed)?;
        return Ok(Err(if is_full(&told) || was_killed(status) {
            Bound::Memory
        } else {
            failure(&told, status)
        }));
    }
    let probed: Probed = serde_json::from_str(&text(&mut out).map_err(failed)?)
        .map_err(|error| failed(std::io::Error::other(error)))?;
    let too_much = limits.memory.zip(probed.memory).is_some_and(|(most, took)| took > most);
    Ok(if too_much { Err(Bound::Memory) } else { Ok(probed) })
}

/// A child process that is killed when this value is dropped.
struct Process(Child);

impl Process {
    /// Makes the kernel kill this process first if memory runs out.
    fn is_first_to_go(&self) {
        let _ = std::fs::write(format!("/proc/{}/oom_score_adj", self.0.id()), "1000");
    }

    fn peak(&self) -> u64 {
        memory::peak_of(self.0.id()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether an error message of a device or allocator reports full memory.
fn is_full(told: &str) -> bool {
    /// Messages of CubeCL, CUDA, wgpu and Rust's allocator.
    const WORDS: [&str; 8] = [
        "out of memory",
        "out-of-memory",
        "outofmemory",
        "out_of_memory",
        "out of device memory",
        "buffertoobig",
        "can't allocate buffer",
        "memory allocation of",
    ];
    let told = told.to_lowercase();
    WORDS.iter().any(|words| told.contains(words))
}

/// The kernel kills a process that requests the last page.
#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    const SIGKILL: i32 = 9;
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(_: ExitStatus) -> bool {
    false
}

fn failure(told: &str, status: ExitStatus) -> Bound {
    let error = told.lines().find_map(|line| line.strip_prefix("error: "));
    Bound::Failure(error.map_or_else(|| format!("it ended with {status}"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_memories_are_told_from_other_faults() {
        for told in [
            "error: internal error at x.rs:1: out of device memory allocating 8 bytes",
            "error: the device failed: OutOfMemory { size: 5 }",
            "DriverError(CUDA_ERROR_OUT_OF_MEMORY)",
            "memory allocation of 1099511627776 bytes failed",
        ] {
            assert!(is_full(told), "{told}");
        }
        assert!(!is_full("error: the headers of the CUDA toolkit are not there"));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_is_ended_or_heard() {
        let run = |script: &str, limits: Limits| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            watched(command, limits, || Ok(())).unwrap()
        };
        let free = Limits { memory: Some(u64::MAX), seconds: 600.0 };
        let probed =
            Probed { compute: "bf16".into(), tokens: 8, seconds: 0.5, launches: None, memory: Some(7) };
        let printed = format!("echo '{}'", serde_json::to_string(&probed).unwrap());
        assert_eq!(run(&printed, free), Ok(probed));
        assert_eq!(run(&printed, Limits { memory: Some(6), ..free }), Err(Bound::Memory));
        assert_eq!(run("exec sleep 600", Limits { seconds: 0.05, ..free }), Err(Bound::Time));
        assert_eq!(run("kill -9 $$", free), Err(Bound::Memory));
        assert_eq!(run("echo 'error: Out of memory' >&2; exit 1", free), Err(Bound::Memory));
        let other = run("echo 'error: no such kernel' >&2; exit 1", free);
        assert_eq!(other, Err(Bound::Failure("no such kernel".to_owned())));
        #[cfg(target_os = "linux")]
        assert_eq!(run("exec sleep 600", Limits { memory: Some(1), ..free }), Err(Bound::Memory));
        let interrupted = || Err(Failure::new(Exit::Interrupted, "interrupted"));
        let ended = watched(Command::new("true"), free, interrupted).unwrap_err();
        assert_eq!(ended.exit, Exit::Interrupted);
    }
}
