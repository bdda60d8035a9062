//! Set-up of the process before a command runs: memory, panics, Ctrl-C and threads.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use zoo_datasets::temporary::remove_leftovers;
use zoo_results::exit::Exit;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::device;
use crate::error::{Failure, Result};
use crate::output;
use crate::progress::Console;

/// `mi_option_purge_delay` of mimalloc.h, which the Rust bindings lack.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Configures mimalloc to keep freed pages. A training step re-allocates the memory that the
/// previous one freed, and clearing new pages takes a fifth of its time.
pub fn keep_pages() {
    // SAFETY: sets a number in a table of options; the index is within it (checked against versions
    // 2 and 3 of mimalloc).
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, -1);
    }
}

/// The process is ending. The driver of a GPU is closed then, and threads of CubeCL that still use
/// it panic.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Runs a command, prints its failure on stderr, as a line of JSON if `json` is set, and returns the
/// exit code. A panic is a fault of this program. It is reported as one, with its place, and has its
/// own exit code.
pub fn guarded(json: bool, command: impl FnOnce() -> Result<Exit>) -> ExitCode {
    let print = move |failure: &Failure| match json {
        true => failure.print_json(&mut std::io::stderr()),
        false => failure.print(&mut std::io::stderr(), output::colour_on_stderr()),
    };
    std::panic::set_hook(Box::new(move |panic| {
        if ENDING.load(Ordering::Relaxed) {
            return;
        }
        let place =
            panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let message =
            panic.payload_as_str().map_or_else(|| "a panic without a message".to_owned(), str::to_owned);
        let failure = Failure::new(Exit::Internal, format!("internal error{place}: {message}"));
        print(
            &failure.hint("this is a fault of the program; please report it with the command and this text"),
        );
    }));
    let code = match catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(failure)) => {
            print(&failure);
            failure.exit.into()
        }
        // The panic hook has already printed the message.
        Err(_) => Exit::Internal.into(),
    };
    ENDING.store(true, Ordering::Relaxed);
    code
}

/// Context with the settings of the global options. Installs the Ctrl-C handler and the thread
/// pool.
///
/// # Errors
/// There is no home folder, or the handler or pool cannot be installed.
pub fn context(cli: &Cli) -> Result<Context> {
    let global = &cli.global;
    let stop = Arc::new(AtomicBool::new(false));
    let is_job = is_job(&cli.command);
    if stops_gently(&cli.command) {
        watch_interrupts(Arc::clone(&stop), is_job)?;
    }
    if is_job {
        end_with_parent();
    }
    let threads = match global.threads {
        Some(threads) => usize::from(threads),
        None => available_parallelism().map_or(1, usize::from),
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot start {threads} threads: {error}")))?;
    let verbosity = if global.quiet { -1 } else { i8::try_from(global.verbose).unwrap_or(i8::MAX) };
    let context = Context {
        home: crate::home::resolve(global.home.as_deref())?,
        mirror: global.mirror.clone().filter(|mirror| !mirror.is_empty()),
        offline: global.offline,
        yes: global.yes,
        format: global.format,
        device: global.device,
        fp32: global.fp32,
        threads,
        threads_given: global.threads.is_some(),
        source: None,
        progress: Arc::new(Console::new(verbosity, Arc::clone(&stop))),
        stop,
    };
    // `zoo cache` shows what is left.
    if stops_gently(&cli.command) && !matches!(cli.command, Command::Cache(_)) {
        // Leftovers of killed programs can be large: half a corpus may be tens of gigabytes.
        remove_leftovers(&context.home);
    }
    device::keep_kernels(&context.kernels_dir());
    Ok(context)
}

/// Commands that check the stop flag. Ctrl-C ends other commands at once.
fn stops_gently(command: &Command) -> bool {
    matches!(
        command,
        Command::Fetch(_)
            | Command::Reproduce(_)
            | Command::Bench(_)
            | Command::Profile(_)
            | Command::Replay(_)
            | Command::Evaluate(_)
            | Command::Explain(_)
            | Command::Regress(_)
            | Command::Verify(_)
            | Command::Cache(_)
    )
}

/// Whether this process trains one run for another process of this program.
fn is_job(command: &Command) -> bool {
    matches!(command, Command::Reproduce(args) if args.job.is_some())
}

/// Makes this process save and stop, as after Ctrl-C, when the process that started it ends. Other
/// systems than Linux have no such signal: there the process trains its run to the end.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        // If the signal cannot be set, the process trains its run to the end.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT));
    }
}

fn watch_interrupts(stop: Arc<AtomicBool>, is_job: bool) -> Result<()> {
    let handler = move || {
        // A job receives a second signal when its parent ends, and saves nevertheless.
        if stop.swap(true, Ordering::Relaxed) && !is_job {
            ENDING.store(true, Ordering::Relaxed);
            std::process::exit(Exit::Interrupted.code().into());
        }
        if is_job {
            return;
        }
        // `eprintln!` would panic if stderr is closed.
        let _ = writeln!(std::io::stderr(), "stopping at the next step; press Ctrl-C again to stop at once");
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot watch for Ctrl-C: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // The default is 10 ms in version 2 and 1,000 in version 3. Later it is the value that was
        // set.
        // SAFETY: reads a number from a table of options; the index is within it.
        let read = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        let before = read();
        assert!(before == 10 || before == 1000 || before == -1, "{before}");
        keep_pages();
        assert_eq!(read(), -1);
    }
}
