//! The lines of a run's log: which of them are shown, and as which text.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use zoo_recipes::untrusted::one_line;
use zoo_results::report::{duration, grouped};
use zoo_training::state::Ending;

use crate::wording::ended;

/// Number of lines other than those of training that are shown at most: the newest.
const MOST_OTHERS: usize = 10_000;

/// The lines of a log to show: the newest lines of training, and all others.
#[derive(Debug)]
pub struct Shown {
    most: usize,
    training: VecDeque<(u64, Vec<u8>)>,
    others: VecDeque<(u64, Vec<u8>)>,
    /// Number of lines so far.
    count: u64,
    /// Lines of training that are not shown.
    pub omitted: u64,
    /// Lines that are not JSON with an event.
    pub unreadable: u64,
}

impl Shown {
    /// No lines yet. At most `most` lines of training are shown.
    pub fn new(most: usize) -> Self {
        let (training, others) = (VecDeque::new(), VecDeque::new());
        Self { most, training, others, count: 0, omitted: 0, unreadable: 0 }
    }

    /// Adds the next line of the log.
    pub fn add(&mut self, line: &[u8]) {
        self.count += 1;
        let Ok(Event { event }) = serde_json::from_slice(line) else {
            self.unreadable += 1;
            return;
        };
        let is_training = event == "train";
        let (lines, most) =
            if is_training { (&mut self.training, self.most) } else { (&mut self.others, MOST_OTHERS) };
        lines.push_back((self.count, line.to_owned()));
        if lines.len() > most {
            lines.pop_front();
            self.omitted += u64::from(is_training);
        }
    }

    /// The lines in the order of the log.
    pub fn lines(self) -> Vec<Vec<u8>> {
        let mut lines: Vec<(u64, Vec<u8>)> = self.training.into_iter().chain(self.others).collect();
        lines.sort_unstable();
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// The kind of a line.
#[derive(Deserialize)]
struct Event<'l> {
    event: &'l str,
}

/// The fields of a line that are shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    event: String,
    update: u64,
    epoch: u64,
    batch: u64,
    skipped: u64,
    tokens: u64,
    loss: Option<f64>,
    lr: Option<f64>,
    scale: Option<f64>,
    grad_norm: Option<f64>,
    seconds: Option<f64>,
    train_loss: Option<f64>,
    valid_loss: Option<f64>,
    valid_score: Option<f64>,
    best: bool,
    environment: Option<Maker>,
    unit: Option<String>,
    parameters: Option<u64>,
    transfer: Option<String>,
    ending: Option<Ending>,
    examples: BTreeMap<String, String>,
}

/// Program and machine of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Maker {
    version: String,
    commit: String,
    dirty: bool,
    threads: u64,
    device: String,
}

/// Lines of a log as text, in the order of the log.
#[derive(Debug, Default)]
pub struct LogText {
    /// Unit of the speed, which sessions state.
    unit: Option<String>,
}

impl LogText {
    /// The text of a line; `None` if the line says nothing. A line of an unknown kind is unchanged.
    pub fn line(&mut self, line: &[u8]) -> Option<String> {
        let raw = || one_line(&String::from_utf8_lossy(line)).into_owned();
        let Ok(parsed) = serde_json::from_slice::<Line>(line) else { return Some(raw()) };
        let text = match parsed.event.as_str() {
            "session" => self.session(&parsed),
            "train" => self.training(&parsed),
            "epoch" => epoch(&parsed)?,
            "end" => end(&parsed),
            "left-out" => left_out(&parsed),
            _ => raw(),
        };
        Some(one_line(&text).into_owned())
    }

    fn session(&mut self, line: &Line) -> String {
        self.unit = line.unit.clone().or(self.unit.take());
        let mut parts = Vec::new();
        match line.batch {
            0 => parts.push("from the start".to_owned()),
            batch => parts.push(format!("resumed after batch {}", grouped(batch))),
        }
        if let Some(Maker { version, commit, dirty, threads, device }) = &line.environment {
            let commit: String = commit.chars().take(12).collect();
            let changes = if *dirty { " with changes" } else { "" };
            let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
            parts.push(format!("zoo {version}, commit {commit}{changes}"));
            parts.push(format!("{device}, {threads}"));
        }
        parts.extend(line.parameters.map(|count| format!("{} parameters", grouped(count))));
        parts.extend(line.transfer.clone());
        headed("session", &parts)
    }

    fn training(&self, line: &Line) -> String {
        let mut parts = vec![format!("loss {}", loss(line.loss))];
        parts.extend(line.lr.map(|lr| format!("lr {}", short(lr))));
        parts.push(format!("gradient norm {}", line.grad_norm.map_or_else(not_finite, short)));
        parts.extend(line.scale.filter(|scale| *scale != 1.0).map(|scale| format!("loss scale {scale}")));
        if let Some(seconds) = line.seconds.filter(|seconds| *seconds > 0.0) {
            let unit = self.unit.as_deref().unwrap_or("tokens");
            parts.push(format!("{:.0} {unit}/s", line.tokens as f64 / seconds));
        }
        if line.skipped > 0 {
            parts.push(format!("{} skipped", line.skipped));
        }
        headed(&format!("update {}", line.update), &parts)
    }
}

fn headed(head: &str, parts: &[String]) -> String {
    format!("{head:<14} {}", parts.join(", "))
}

fn epoch(line: &Line) -> Option<String> {
    if line.train_loss.is_none() && line.valid_loss.is_none() && line.valid_score.is_none() {
        return None;
    }
    let best = if line.best { " (best)" } else { "" };
    let mut parts = vec![format!("update {}", line.update)];
    parts.extend(line.train_loss.map(|loss| format!("train loss {loss:.4}")));
    parts.extend(line.valid_loss.map(|loss| format!("valid loss {loss:.4}")));
    parts.extend(line.valid_score.map(|score| format!("valid score {score:.2}")));
    Some(format!("{}{best}", headed(&format!("epoch {}", line.epoch), &parts)))
}

fn end(line: &Line) -> String {
    let mut parts: Vec<String> = line.ending.iter().map(ended).collect();
    parts.push(format!("update {}, epoch {}", line.update, line.epoch));
    parts.extend(line.seconds.map(duration));
    headed("end", &parts)
}

fn left_out(line: &Line) -> String {
    let example = line.examples.iter().next().map(|(name, why)| format!("for example {name}: {why}"));
    let count = format!("{} examples could not be used", line.examples.len());
    headed("left out", &std::iter::once(count).chain(example).collect::<Vec<_>>())
}

/// JSON has neither NaN nor infinity; the log has null instead.
fn loss(value: Option<f64>) -> String {
    value.map_or_else(not_finite, |loss| format!("{loss:.4}"))
}

fn not_finite() -> String {
    "not finite".to_owned()
}

/// Four digits of a number.
fn short(value: f64) -> String {
    let rounded = format!("{value:.3e}");
    match rounded.parse::<f64>() {
        Ok(number) if number == 0.0 || (1e-4..1e6).contains(&number.abs()) => number.to_string(),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(log: &str, most: usize) -> (Vec<String>, u64, u64) {
        let mut shown = Shown::new(most);
        log.lines().for_each(|line| shown.add(line.as_bytes()));
        let (omitted, unreadable) = (shown.omitted, shown.unreadable);
        let lines = shown.lines().into_iter().map(|line| String::from_utf8(line).unwrap());
        (lines.collect(), omitted, unreadable)
    }

    #[test]
    fn old_lines_of_training_are_left_out_and_no_others() {
        let log = "{\"event\":\"session\"}\n{\"event\":\"train\",\"update\":1}\n{\"event\":\"epoch\"}\n\
                   {\"event\":\"train\",\"update\":2}\nnot JSON\n{\"event\":\"train\",\"update\":3}\n{\"event\":\"end\"}";
        let all: Vec<&str> = log.lines().filter(|line| *line != "not JSON").collect();
        assert_eq!(shown(log, 20), (all.iter().map(|line| (*line).to_owned()).collect(), 0, 1));
        let (two, omitted, _) = shown(log, 2);
        assert_eq!((two.len(), omitted), (5, 1));
        assert!(two[1] == all[2] && two[2] == all[3], "{two:?}");
        assert_eq!(shown(log, 0).0, [all[0], all[2], all[5]]);
    }

    #[test]
    fn a_long_log_takes_the_memory_of_what_is_shown() {
        let mut shown = Shown::new(20);
        for update in 0..50_000 {
            shown.add(format!("{{\"event\":\"train\",\"update\":{update}}}").as_bytes());
        }
        assert_eq!((shown.training.len(), shown.omitted), (20, 49_980));
        assert_eq!(shown.lines()[0], b"{\"event\":\"train\",\"update\":49980}");
    }

    #[test]
    fn lines_become_text() {
        let mut text = LogText::default();
        let mut line = |json: &str| text.line(json.as_bytes());
        let session = r#"{"event":"session","batch":0,"environment":{"version":"0.1.0","commit":"0123456789abcdef","dirty":true,"threads":1,"device":"cpu"},"unit":"frames","parameters":1200}"#;
        assert_eq!(
            line(session).as_deref(),
            Some(
                "session        from the start, zoo 0.1.0, commit 0123456789ab with changes, cpu, 1 thread, 1,200 parameters"
            )
        );
        let train = r#"{"event":"train","update":5,"epoch":0,"batch":7,"skipped":2,"tokens":100,"loss":2.5,"lr":0.00044721359549995795,"scale":128.0,"grad_norm":3.0,"seconds":0.5}"#;
        assert_eq!(
            line(train).as_deref(),
            Some(
                "update 5       loss 2.5000, lr 0.0004472, gradient norm 3, loss scale 128, 200 frames/s, 2 skipped"
            )
        );
        let lost = r#"{"event":"train","update":6,"loss":null,"lr":1e-7,"scale":1.0,"grad_norm":null}"#;
        assert_eq!(
            line(lost).as_deref(),
            Some("update 6       loss not finite, lr 1.000e-7, gradient norm not finite")
        );
        let epoch = r#"{"event":"epoch","update":6,"epoch":1,"train_loss":2.5,"valid_loss":2.0,"best":true}"#;
        assert_eq!(
            line(epoch).as_deref(),
            Some("epoch 1        update 6, train loss 2.5000, valid loss 2.0000 (best)")
        );
        // The end of training is a line of its own.
        assert_eq!(
            line(r#"{"event":"epoch","update":6,"epoch":1,"train_loss":null,"valid_loss":null}"#),
            None
        );
        let end = r#"{"event":"end","update":6,"epoch":1,"ending":{"kind":"max-updates"},"seconds":250.0}"#;
        assert_eq!(
            line(end).as_deref(),
            Some("end            ended after its updates, update 6, epoch 1, 4 min 10 s")
        );
        let left = r#"{"event":"left-out","batch":8,"examples":{"a":"too short","b":"unreadable"}}"#;
        assert_eq!(
            line(left).as_deref(),
            Some("left out       2 examples could not be used, for example a: too short")
        );
        assert_eq!(line("{\"event\":\"new\"}").as_deref(), Some("{\"event\":\"new\"}"));
    }

    #[test]
    fn text_of_a_log_does_not_control_the_terminal() {
        let mut text = LogText::default();
        let line = text.line(b"{\"event\":\"left-out\",\"examples\":{\"a\\u001b[2J\":\"b\\nc\"}}").unwrap();
        assert!(line.contains(r"a\u{1b}[2J: b\nc"), "{line}");
    }
}
