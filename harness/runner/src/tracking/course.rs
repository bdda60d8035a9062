//! Points of a run's curves, from the lines of its log.

use serde_json::Value;

/// Values of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    /// Number of updates.
    pub step: u64,
    /// Seconds since 1970.
    pub time: f64,
    /// Names and values. A loss or norm that was not finite is NaN.
    pub values: Vec<(String, f64)>,
}

/// Reads the lines of a log in their order.
///
/// The log states when a session began and how long its updates took. The time of a line is the
/// sum. It does not include validations and saves.
#[derive(Debug, Clone)]
pub struct Course {
    /// Time of the first session.
    pub started: f64,
    /// Time of the last line.
    pub now: f64,
    sessions: u32,
    /// Unit of the speed.
    unit: String,
}

impl Course {
    /// The start of a log. `created` is the time of a first session that does not state it, in
    /// seconds since 1970.
    pub fn new(created: f64) -> Self {
        Self { started: created, now: created, sessions: 0, unit: "tokens".to_owned() }
    }

    /// The points of a line. Lines without points, and damaged ones, have none.
    pub fn line(&mut self, line: &[u8]) -> Option<Points> {
        let line: Value = serde_json::from_slice(line).ok()?;
        match line["event"].as_str()? {
            "session" => {
                self.session(&line);
                None
            }
            "train" => self.training(&line),
            "epoch" => self.validation(&line),
            "end" => self.end(&line),
            _ => None,
        }
    }

    fn session(&mut self, line: &Value) {
        if let Some(unit) = line["unit"].as_str() {
            self.unit = unit.to_owned();
        }
        // The clock of a machine may have been set back since.
        if let Some(time) = line["time"].as_f64() {
            self.now = if self.sessions == 0 { time } else { time.max(self.now) };
        }
        if self.sessions == 0 {
            self.started = self.now;
        }
        self.sessions += 1;
    }

    fn points(&self, line: &Value, values: Vec<(String, f64)>) -> Option<Points> {
        let step = line["update"].as_u64().filter(|_| !values.is_empty())?;
        Some(Points { step, time: self.now, values })
    }

    fn training(&mut self, line: &Value) -> Option<Points> {
        let seconds = line["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
        self.now += seconds.unwrap_or(0.0);
        let mut values = Vec::new();
        let mut add = |name: &str, key: &str| {
            // JSON has null for a number that is not finite.
            let number = line.get(key).map(|value| value.as_f64().unwrap_or(f64::NAN));
            values.extend(number.map(|number| (name.to_owned(), number)));
        };
        add("train/loss", "loss");
        add("train/learning_rate", "lr");
        add("train/gradient_norm", "grad_norm");
        add("train/loss_scale", "scale");
        add("train/skipped_updates", "skipped");
        if let (Some(amount), Some(seconds)) = (line["tokens"].as_f64(), seconds) {
            values.push((format!("train/{}_per_second", self.unit), amount / seconds));
        }
        terms("train/terms", &line["terms"], &mut values);
        self.points(line, values)
    }

    fn validation(&mut self, line: &Value) -> Option<Points> {
        let mut values = Vec::new();
        for (name, key) in
            [("epoch/train_loss", "train_loss"), ("valid/loss", "valid_loss"), ("valid/score", "valid_score")]
        {
            values.extend(line[key].as_f64().map(|number| (name.to_owned(), number)));
        }
        terms("valid/terms", &line["terms"], &mut values);
        if !values.is_empty() {
            values.extend(line["epoch"].as_f64().map(|epoch| ("epoch/number".to_owned(), epoch)));
        }
        self.points(line, values)
    }

    /// The end of training, with the loss since the last line of training.
    fn end(&mut self, line: &Value) -> Option<Points> {
        // The duration of all sessions, with validations and saves.
        if let (1, Some(seconds)) = (self.sessions, line["seconds"].as_f64()) {
            self.now = self.now.max(self.started + seconds);
        }
        let loss = line["updates"].as_u64().filter(|updates| *updates > 0).and(line.get("loss"))?;
        self.points(line, vec![("train/loss".to_owned(), loss.as_f64().unwrap_or(f64::NAN))])
    }
}

/// Means of named loss terms.
fn terms(group: &str, terms: &Value, values: &mut Vec<(String, f64)>) {
    for (name, term) in terms.as_object().into_iter().flatten() {
        values.push((format!("{group}/{name}"), term["mean"].as_f64().unwrap_or(f64::NAN)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn points(course: &mut Course, line: Value) -> Option<Points> {
        course.line(line.to_string().as_bytes())
    }

    #[test]
    fn a_line_of_training_has_its_numbers_and_its_time() {
        let mut course = Course::new(5.0);
        let session = json!({ "event": "session", "time": 100.5, "unit": "frames", "batch": 0 });
        assert_eq!(points(&mut course, session), None);
        let terms = json!({ "ctc": { "sum": 8.0, "count": 4.0, "mean": 2.0, "weight": 1.0 } });
        let train = json!({ "event": "train", "update": 4, "skipped": 1, "tokens": 30, "loss": null, "terms": terms,
            "lr": 0.5, "scale": 128.0, "grad_norm": 3.0, "seconds": 1.5 });
        let found = points(&mut course, train).unwrap();
        assert_eq!((found.step, found.time), (4, 102.0));
        let names: Vec<&str> = found.values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "train/loss",
                "train/learning_rate",
                "train/gradient_norm",
                "train/loss_scale",
                "train/skipped_updates",
                "train/frames_per_second",
                "train/terms/ctc"
            ]
        );
        let values: Vec<f64> = found.values.iter().map(|(_, value)| *value).collect();
        assert!(values[0].is_nan());
        assert_eq!(values[1..], [0.5, 3.0, 128.0, 1.0, 20.0, 2.0]);
    }

    #[test]
    fn a_validation_and_the_end_have_what_they_state() {
        let mut course = Course::new(5.0);
        points(&mut course, json!({ "event": "session" }));
        let epoch = json!({ "event": "epoch", "update": 9, "epoch": 2, "train_loss": 1.0, "valid_loss": null,
            "valid_score": 20.5, "terms": {} });
        let due = [("epoch/train_loss", 1.0), ("valid/score", 20.5), ("epoch/number", 2.0)];
        let due = due.map(|(name, value)| (name.to_owned(), value)).to_vec();
        assert_eq!(points(&mut course, epoch), Some(Points { step: 9, time: 5.0, values: due }));
        let none =
            json!({ "event": "epoch", "update": 9, "epoch": 2, "train_loss": null, "valid_loss": null });
        assert_eq!(points(&mut course, none), None);
        let end = json!({ "event": "end", "update": 9, "updates": 2, "loss": 0.5, "seconds": 60.0 });
        let loss = vec![("train/loss".to_owned(), 0.5)];
        assert_eq!(points(&mut course, end), Some(Points { step: 9, time: 65.0, values: loss }));
        let end = json!({ "event": "end", "update": 9, "updates": 0, "loss": null, "seconds": 60.0 });
        assert_eq!(points(&mut course, end), None);
    }

    #[test]
    fn the_time_of_a_later_session_counts_and_never_goes_back() {
        let mut course = Course::new(5.0);
        let session = |time: Option<f64>| json!({ "event": "session", "time": time });
        let mut time_after = |time: Option<f64>| {
            points(&mut course, session(time));
            let train = json!({ "event": "train", "update": 1, "loss": 1.0, "seconds": 10.0 });
            (points(&mut course, train).unwrap().time, course.started)
        };
        assert_eq!(time_after(Some(100.0)), (110.0, 100.0));
        assert_eq!(time_after(None), (120.0, 100.0));
        assert_eq!(time_after(Some(500.0)), (510.0, 100.0));
        assert_eq!(time_after(Some(50.0)), (520.0, 100.0));
    }

    #[test]
    fn damaged_lines_have_no_points() {
        let mut course = Course::new(0.0);
        for line in ["", "not JSON", "[1]", "{\"event\":7}", "{\"event\":\"train\",\"loss\":1.0}"] {
            assert_eq!(course.line(line.as_bytes()), None, "{line}");
        }
    }
}
