//! `zoo log`: prints the log of a run, and follows it.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use zoo_results::exit::Exit;

use crate::cli::LogArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::run::folder::Run;
use crate::run::log_reader::{Growth, LogReader};
use crate::runs::log::{LogText, Shown};
use crate::runs::{folder_of, state_of};

/// Time between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(500);

pub fn run(context: &Context, args: &LogArgs) -> Result<Exit> {
    if matches!(context.format, Format::Csv | Format::Md) {
        return Err(Failure::usage("`zoo log` prints text or lines of JSON, and no tables")
            .hint("--format human or --format json; `zoo report` draws the curves"));
    }
    let folder = Run::folder_of(&folder_of(context, &args.run)?)?;
    let path = folder.join("log.jsonl");
    let mut log = LogReader::new(&path);
    let mut printer = Printer { format: context.format, text: LogText::default() };
    let mut shown = Shown::new(args.lines);
    read(&mut log, &path, |line| shown.add(line))?;
    let (omitted, unreadable) = (shown.omitted, shown.unreadable);
    let lines = shown.lines();
    let is_empty = lines.is_empty();
    let mut is_open = printer.print(&lines)?;
    if unreadable > 0 {
        context.progress.note(&format!("{unreadable} lines of {} cannot be read", context.shown(&path)));
    }
    if omitted > 0 {
        let all = omitted + args.lines as u64;
        context
            .progress
            .note(&format!("{omitted} older lines of training are left out; -n {all} prints all"));
    }
    if !args.follow {
        if is_empty {
            context.progress.note(&format!("{} has no lines yet", context.shown(&path)));
        }
        return Ok(Exit::Ok);
    }
    while is_open {
        // Asked before the last look, so that no line is missed.
        let goes_on = state_of(&folder).may_be_training();
        is_open = printer.print(&new_lines(&mut log, &path)?)?;
        if !goes_on {
            context.progress.note(&format!("the run is {}", state_of(&folder).word()));
            break;
        }
        sleep(PAUSE);
    }
    Ok(Exit::Ok)
}

/// The lines since the last look. Of a log that was written anew, those from the newest session on:
/// the lines before it were printed already.
fn new_lines(log: &mut LogReader, path: &Path) -> Result<Vec<Vec<u8>>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let growth = read(log, path, |line| lines.push(line.to_owned()))?;
    if growth == Growth::Rewritten {
        let session = lines.iter().rposition(|line| line.starts_with(b"{\"event\":\"session\""));
        lines.drain(..session.unwrap_or(lines.len()));
    }
    Ok(lines)
}

fn read(log: &mut LogReader, path: &Path, each: impl FnMut(&[u8])) -> Result<Growth> {
    log.read(each).map_err(|error| Failure::io("read", path, &error))
}

/// Writes lines of a log to stdout.
struct Printer {
    format: Format,
    text: LogText,
}

impl Printer {
    /// Prints lines. Returns false if the reader has closed the pipe.
    fn print(&mut self, lines: &[Vec<u8>]) -> Result<bool> {
        let mut printed = String::new();
        for line in lines {
            let text = match self.format {
                Format::Json => Some(String::from_utf8_lossy(line).into_owned()),
                _ => self.text.line(line),
            };
            if let Some(text) = text {
                printed.push_str(&text);
                printed.push('\n');
            }
        }
        output::send(&printed)
    }
}
