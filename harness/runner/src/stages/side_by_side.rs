//! `zoo reproduce --jobs N`: trains and evaluates runs in separate processes of this program, N at
//! a time. A small model uses a part of a GPU, or of a processor with many cores.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use zoo_recipes::Resolved;
use zoo_results::exit::Exit;

use super::Request;
use super::own_process;
use super::reproduce::called;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::Sets;
use crate::tasks;
use crate::tracking::Folders;

/// Interval between checks of the processes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A run that is not trained, or lacks an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Missing<'a> {
    /// The recipe of the run's arm.
    pub resolved: &'a Resolved,
    pub seed: u64,
    /// Whether only evaluations are missing.
    pub is_trained: bool,
}

impl Missing<'_> {
    /// Whether this is the run of an arm and seed, and is not trained yet.
    pub fn trains(&self, resolved: &Resolved, seed: u64) -> bool {
        !self.is_trained && std::ptr::eq(self.resolved, resolved) && self.seed == seed
    }
}

/// Trains and evaluates runs in at most `request.jobs` processes at a time, in the given order.
/// After Ctrl-C or a failure, the processes are asked to save their runs, and are waited for.
///
/// # Errors
/// The data cannot be prepared, a process cannot be started or fails, or Ctrl-C.
pub fn train(ctx: &Context, request: &Request, runs: &[Missing]) -> Result<()> {
    let Some(Missing { resolved: first, .. }) = runs.first() else { return Ok(()) };
    // Once here, so that the processes find fetched files and vocabularies.
    drop(tasks::of(&first.recipe).prepare(ctx, &first.folder, Sets::All)?);
    let mut waiting = runs.iter();
    let mut processes: Vec<Process> = Vec::new();
    let mut failed = None;
    loop {
        while failed.is_none()
            && processes.len() < usize::from(request.jobs)
            && let Some(Missing { resolved, seed, .. }) = waiting.next()
        {
            let arm = resolved.arm.clone().unwrap_or_default();
            let started = command(ctx, request, &arm, *seed)
                .and_then(|command| Process::start(ctx, command, format!("{arm} seed {seed}")));
            match started {
                Ok(process) => processes.push(process),
                Err(failure) => failed = Some(failure),
            }
        }
        let mut running = Vec::new();
        for mut process in processes {
            match process.ended() {
                Ok(None) => running.push(process),
                Ok(Some(status)) => failed = failed.or(process.result(status).err()),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        processes = running;
        failed = failed.or(ctx.check_stop().err());
        if let Some(failure) = &failed {
            if !ctx.stopped() && processes.iter().any(|process| !process.interrupted) {
                ctx.progress.note(&format!("{failure}\nthe other processes save their runs and stop"));
            }
            processes.iter_mut().for_each(Process::interrupt);
        }
        match (processes.is_empty(), failed) {
            (true, Some(failure)) => return Err(failure),
            (true, None) if waiting.len() == 0 => return Ok(()),
            (_, still) => failed = still,
        }
        sleep(LOOK_EVERY);
    }
}

/// Command line of this program that trains and evaluates one run. The user has consented already.
fn command(ctx: &Context, request: &Request, arm: &str, seed: u64) -> Result<Command> {
    let jobs = usize::from(request.jobs.max(1));
    let threads = if ctx.threads_given { ctx.threads } else { (ctx.threads / jobs).max(1) };
    let words = ["reproduce", called(&request.document), "--arms", &request.arms.join(",")];
    let mut command = own_process::command(ctx, request, words)?;
    command.args(["--job", &format!("{arm}:{seed}"), "--threads", &threads.to_string(), "--yes"]);
    command.args(ctx.mirror.iter().flat_map(|mirror| ["--mirror", mirror]));
    command.args(ctx.offline.then_some("--offline"));
    command.args(request.evals.iter().flat_map(|eval| ["--eval", eval]));
    command.args(request.stop_early.then_some("--stop-early"));
    let Folders { tensorboard, mlflow } = &request.track;
    for (option, folder) in [("--tensorboard", tensorboard), ("--mlflow", mlflow)] {
        if let Some(folder) = folder {
            command.arg(option).arg(folder);
        }
    }
    if let Some(initial) = &request.initial {
        command.arg("--init-from").arg(initial.place());
    }
    match ctx.progress.verbosity() {
        quiet if quiet < 0 => command.arg("--quiet"),
        verbosity => command.args((0..verbosity).map(|_| "--verbose")),
    };
    Ok(command)
}

/// A process that trains and evaluates one run.
struct Process {
    child: Child,
    /// Arm and seed, for messages.
    name: String,
    interrupted: bool,
    relay: Option<JoinHandle<()>>,
}

impl Process {
    fn start(ctx: &Context, mut command: Command, name: String) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C on a terminal reaches a whole group. These get it once, from this process.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|error| Failure::new(Exit::Internal, format!("cannot start a process: {error}")))?;
        let (console, run) = (ctx.progress.clone(), name.clone());
        let relay = child.stderr.take().map(|stderr| {
            spawn(move || {
                for line in BufReader::new(stderr).split(b'\n').map_while(|line| line.ok()) {
                    console.relay(&format!("{run}: {}", String::from_utf8_lossy(&line)));
                }
            })
        });
        Ok(Self { child, name, interrupted: false, relay })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .map_err(|error| Failure::new(Exit::Internal, format!("cannot wait for {}: {error}", self.name)))
    }

    /// Asks the process once to save and stop.
    fn interrupt(&mut self) {
        if std::mem::replace(&mut self.interrupted, true) {
            return;
        }
        #[cfg(unix)]
        {
            // A process that has ended already cannot be signalled.
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_child(&self.child),
                rustix::process::Signal::INT,
            );
        }
        #[cfg(not(unix))]
        {
            let _ = self.child.kill();
        }
    }

    /// Result of an ended process.
    fn result(mut self, status: ExitStatus) -> Result<()> {
        if let Some(relay) = self.relay.take() {
            // The thread ends with the process.
            let _ = relay.join();
        }
        let exit = Exit::ALL.into_iter().find(|exit| status.code() == Some(exit.code().into()));
        match exit {
            Some(Exit::Ok) => Ok(()),
            exit => {
                let message = match status.code() {
                    Some(code) => format!("{} ended with exit code {code}", self.name),
                    None => format!("{} ended with {status}", self.name),
                };
                Err(Failure::new(exit.unwrap_or(Exit::Internal), message)
                    .hint("the same command resumes the runs; lines of this run above may tell more"))
            }
        }
    }
}
