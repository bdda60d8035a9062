//! Progress on stderr: a bar on a terminal, plain lines at a limited rate elsewhere, nothing with
//! `-q`.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use zoo_datasets::corpora::ByteCount;
use zoo_datasets::fetch::Event;
use zoo_recipes::untrusted::escaped;
use zoo_results::report::duration;

/// Minimum time between two plain lines of one stage.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Minimum time between two plain lines of one stage with `-v`.
const PLAIN_EVERY_VERBOSE: Duration = Duration::from_secs(1);

/// Progress of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Number of finished updates, sentences, …, including those of an earlier call.
    pub done: u64,
    /// Total number, if it is known.
    pub total: Option<u64>,
    pub loss: Option<f64>,
    /// Speed with its unit.
    pub speed: Option<(f64, &'static str)>,
}

/// Progress reports for the user. All methods may be called from any thread.
#[derive(Debug)]
pub struct Console {
    mode: Mode,
    verbosity: i8,
    stop: Arc<AtomicBool>,
    stage: Mutex<Option<Stage>>,
}

#[derive(Debug)]
enum Mode {
    Quiet,
    Plain,
    Bar(ProgressBar),
}

#[derive(Debug)]
struct Stage {
    name: String,
    unit: Unit,
    started: Instant,
    /// `done` of the first step. Work of an earlier call does not count for the speed.
    first: Option<u64>,
    printed: Option<Instant>,
    /// Whether the terminal shows a bar: the total of the stage is known.
    has_bar: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Steps,
    Bytes,
}

impl Console {
    /// A console for stderr. `verbosity` below 0 is quiet. `stop` is the flag that fetches check.
    pub fn new(verbosity: i8, stop: Arc<AtomicBool>) -> Self {
        let mode = if verbosity < 0 {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::no_length();
            bar.set_style(style(false));
            Mode::Bar(bar)
        } else {
            Mode::Plain
        };
        Self { mode, verbosity, stop, stage: Mutex::new(None) }
    }

    /// Begins a stage, e.g. `train fp32, seed 1`.
    pub fn stage(&self, name: &str) {
        self.begin(name, Unit::Steps);
    }

    /// Reports progress of the stage.
    pub fn step(&self, step: &Step) {
        let mut stage = self.lock();
        let Some(stage) = stage.as_mut() else { return };
        let now = Instant::now();
        let first = *stage.first.get_or_insert(step.done);
        let line = stage.line(step, first, now);
        match &self.mode {
            Mode::Quiet => {}
            Mode::Bar(bar) => {
                if let Some(total) = step.total {
                    bar.set_length(total);
                    bar.set_position(step.done);
                }
                if stage.has_bar != step.total.is_some() {
                    stage.has_bar = !stage.has_bar;
                    bar.set_style(style(stage.has_bar));
                }
                bar.set_prefix(escaped(&stage.name).into_owned());
                bar.set_message(escaped(&line).into_owned());
                bar.tick();
            }
            Mode::Plain => {
                let every = if self.verbosity > 0 { PLAIN_EVERY_VERBOSE } else { PLAIN_EVERY };
                let due = stage.printed.is_none_or(|printed| now.duration_since(printed) >= every);
                if due || step.total == Some(step.done) {
                    stage.printed = Some(now);
                    write_line(&format!("{}: {line}", stage.name));
                }
            }
        }
    }

    /// Ends the stage and removes its bar.
    pub fn end_stage(&self) {
        if self.lock().take().is_some()
            && let Mode::Bar(bar) = &self.mode
        {
            bar.finish_and_clear();
        }
    }

    /// Prints a permanent line, unless `-q` is set.
    pub fn note(&self, text: &str) {
        match &self.mode {
            Mode::Quiet => {}
            Mode::Plain | Mode::Bar(_) => self.aside(|| write_line(text)),
        }
    }

    /// The number of `-v`; negative for `-q`.
    pub fn verbosity(&self) -> i8 {
        self.verbosity
    }

    /// Prints a line of another process of this program, which is as quiet as this one.
    pub fn relay(&self, line: &str) {
        self.aside(|| write_line(line));
    }

    /// Runs other terminal output, e.g. a question, while the bar is hidden.
    pub fn aside<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.mode {
            Mode::Bar(bar) => bar.suspend(run),
            Mode::Quiet | Mode::Plain => run(),
        }
    }

    /// Prints a line only with `-v`.
    pub fn detail(&self, text: &str) {
        if self.verbosity > 0 {
            self.note(text);
        }
    }

    fn begin(&self, name: &str, unit: Unit) {
        let stage = Stage {
            name: name.to_owned(),
            unit,
            started: Instant::now(),
            first: None,
            printed: None,
            has_bar: false,
        };
        let previous = self.lock().replace(stage);
        match &self.mode {
            Mode::Quiet => {}
            Mode::Plain => write_line(name),
            Mode::Bar(bar) => {
                if previous.is_none() {
                    bar.reset();
                }
                bar.set_style(style(false));
                bar.set_prefix(escaped(name).into_owned());
                bar.set_message("");
                bar.tick();
            }
        }
    }

    /// Ignores poisoning, so that messages still appear after a panic in another thread.
    fn lock(&self) -> MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stage(&self, name: &str) -> bool {
        self.lock().as_ref().is_some_and(|stage| stage.name == name)
    }
}

impl Stage {
    fn line(&self, step: &Step, first: u64, now: Instant) -> String {
        let count = |n: u64| match self.unit {
            Unit::Steps => n.to_string(),
            Unit::Bytes => ByteCount { known: n, unknown: 0 }.to_string(),
        };
        let mut parts = vec![match step.total {
            Some(total) => format!("{} of {}", count(step.done), count(total)),
            None => count(step.done),
        }];
        parts.extend(step.loss.map(|loss| format!("loss {loss:.4}")));
        parts.extend(step.speed.map(|(speed, unit)| format!("{speed:.0} {unit}/s")));
        let done = step.done.saturating_sub(first);
        let spent = now.duration_since(self.started).as_secs_f64();
        if let Some(total) = step.total
            && done > 0
            && total > step.done
        {
            let left = spent * (total - step.done) as f64 / done as f64;
            parts.push(format!("{} left", duration(left)));
        }
        parts.join(", ")
    }
}

impl zoo_datasets::fetch::Progress for Console {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Started { name, from, .. } => {
                self.detail(&format!("{name} from {from}"));
                self.begin(&format!("fetch {name}"), Unit::Bytes);
            }
            Event::Advanced { done, total, .. } => {
                self.step(&Step { done, total, ..Step::default() });
            }
            Event::Unpacking { name, done } => {
                let stage = format!("unpack {name}");
                if !self.is_stage(&stage) {
                    self.begin(&stage, Unit::Bytes);
                }
                self.step(&Step { done, ..Step::default() });
            }
            Event::Retrying { name, reason, wait } => {
                self.note(&format!("{name}: {reason}; again in {} s", wait.as_secs_f64().ceil()));
            }
            Event::Refused { name, from, reason } => self.note(&format!("{name}: {from}: {reason}")),
            Event::Verifying { name, bytes } => {
                let size = ByteCount { known: bytes, unknown: 0 };
                self.detail(&format!("verify {name} ({size})"));
            }
            Event::Finished { name, bytes } => {
                self.end_stage();
                let size = ByteCount { known: bytes, unknown: 0 };
                self.note(&format!("fetched {name} ({size})"));
            }
            Event::Pinned { name, sha256 } => {
                self.note(&format!("{name} had no published digest and is pinned to sha256 {sha256}"));
            }
            Event::Waiting { name } => {
                self.note(&format!("{name} is being fetched by another process; waiting for it"));
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The line on a terminal: name, bar if the total is known, and what [`Stage::line`] says. What does
/// not fit is cut, because a line that wraps could not be redrawn.
fn style(has_bar: bool) -> ProgressStyle {
    let template = if has_bar { "{prefix} [{bar:24}] {wide_msg}" } else { "{prefix} {wide_msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

/// A closed stderr does not stop the program.
fn write_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(text));
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal of 120 columns that keeps the lines that are written to it.
    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl TermLike for Lines {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.trim_end().to_owned());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stage_with_a_total_has_a_bar_on_a_terminal() {
        let lines = Lines::default();
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(lines.clone()), 255));
        let (mode, stop) = (Mode::Bar(bar), Arc::default());
        let console = Console { mode, verbosity: 0, stop, stage: Mutex::default() };
        let drawn = |line: &str| lines.0.lock().unwrap().iter().any(|drawn| drawn.starts_with(line));
        let step = |step: &Step| {
            // Drawing is limited to 255 times a second.
            std::thread::sleep(Duration::from_millis(20));
            console.step(step);
        };
        console.stage("train toy fp32, seed 1");
        let (loss, speed) = (Some(1.25), Some((900.0, "tokens")));
        step(&Step { done: 0, total: Some(800), loss, speed });
        step(&Step { done: 400, total: Some(800), loss, speed });
        let bar = "train toy fp32, seed 1 [============>           ] 400 of 800, loss 1.2500, 900 tokens/s, 0 s left";
        assert!(drawn(bar), "{lines:?}");
        console.stage("read text");
        step(&Step { done: 4, ..Step::default() });
        assert!(drawn("read text 4"), "{lines:?}");
    }

    #[test]
    fn what_was_done_before_does_not_count_for_the_speed() {
        let started = Instant::now();
        let stage = Stage {
            name: "train".into(),
            unit: Unit::Steps,
            started,
            first: Some(500),
            printed: None,
            has_bar: false,
        };
        let step = Step { done: 510, total: Some(610), loss: Some(1.25), speed: Some((900.4, "tokens")) };
        let line = stage.line(&step, 500, started + Duration::from_secs(20));
        assert_eq!(line, "510 of 610, loss 1.2500, 900 tokens/s, 3 min 20 s left");
    }
}
