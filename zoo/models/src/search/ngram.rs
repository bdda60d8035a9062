//! Back-off n-gram language models of words, read from ARPA files.

use std::collections::HashMap;
use std::io::BufRead;

/// Maximum n-gram order that is read.
const MOST: usize = 8;

/// A back-off n-gram model.
#[derive(Debug, Clone)]
pub struct Ngram {
    order: usize,
    words: HashMap<Box<str>, u32>,
    /// For the hash of each n-gram: log10 of the probability of its last word given the others, and
    /// log10 of its back-off weight.
    grams: HashMap<u64, (f32, f32)>,
    begin: Option<u32>,
}

/// Marks words in histories that are not in the model.
const UNKNOWN: u32 = u32::MAX;

/// The previous words that the next word depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    words: [u32; MOST],
    len: u8,
}

/// Error of an ARPA file, with its line.
#[derive(Debug, thiserror::Error)]
#[error(
    "line {line}: {reason}\nhint: a language model in ARPA's format begins with \\data\\ and ends with \\end\\"
)]
pub struct NgramError {
    /// Line number, starting at 1.
    pub line: usize,
    /// What the reader expected.
    pub reason: String,
}

impl History {
    const NONE: Self = Self { words: [0; MOST], len: 0 };

    fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }

    /// Appends a word and keeps the last `most` words.
    fn then(mut self, word: u32, most: usize) -> Self {
        if most == 0 {
            return Self::NONE;
        }
        if usize::from(self.len) == most {
            self.words.copy_within(1..most, 0);
            self.len -= 1;
        }
        self.words[usize::from(self.len)] = word;
        self.len += 1;
        self
    }
}

/// 64-bit hash of words in order. In a model of a hundred million n-grams two hashes collide with a
/// probability of about 1 in some thousand.
fn key(words: &[u32]) -> u64 {
    words.iter().fold(words.len() as u64, |key, &word| {
        let x = (key ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 29)
    })
}

impl Ngram {
    /// Reads a model. `spelling` maps each word (except `<s>` and the like) to the letters of a
    /// search's labels.
    ///
    /// # Errors
    /// If the text is not an ARPA model or cannot be read.
    pub fn read(text: impl BufRead, spelling: impl Fn(&str) -> String) -> Result<Self, NgramError> {
        let mut model = Self { order: 0, words: HashMap::new(), grams: HashMap::new(), begin: None };
        let (mut part, mut counts, mut read, mut number) = (Part::Before, Vec::new(), Vec::new(), 0);
        for line in text.lines() {
            number += 1;
            let failure = |reason: String| NgramError { line: number, reason };
            let line = line.map_err(|error| failure(error.to_string()))?;
            let line = line.trim();
            match (part, line) {
                (_, "") => {}
                (Part::Before, "\\data\\") => part = Part::Counts,
                (Part::Before, _) => {}
                (_, "\\end\\") => part = Part::End,
                (Part::End, _) => return Err(failure("text behind \\end\\".to_owned())),
                (Part::Counts, line) if line.starts_with("ngram ") => {
                    let count = line[6..].split_once('=').and_then(|(order, count)| {
                        let order: usize = order.trim().parse().ok()?;
                        Some((order, count.trim().parse::<usize>().ok()?))
                    });
                    let (order, count) = count.ok_or_else(|| failure(format!("`{line}` is no count")))?;
                    if order != counts.len() + 1 || order > MOST {
                        return Err(failure(format!(
                            "n-grams of order {order}: 1 to {MOST}, in order, are read"
                        )));
                    }
                    counts.push(count);
                    read.push(0);
                }
                (_, line) if line.starts_with('\\') => {
                    let order = line[1..].strip_suffix("-grams:").and_then(|order| order.parse().ok());
                    let order: usize =
                        order.ok_or_else(|| failure(format!("`{line}` is no part of a model")))?;
                    if order == 0 || order > counts.len() {
                        return Err(failure(format!("no count of {order}-grams was given")));
                    }
                    model.order = model.order.max(order);
                    part = Part::Grams(order);
                }
                (Part::Grams(order), line) => {
                    model.add(line, order, &spelling).map_err(failure)?;
                    read[order - 1] += 1;
                }
                (Part::Counts, line) => return Err(failure(format!("`{line}` is no count"))),
            }
        }
        if part != Part::End {
            return Err(NgramError { line: number, reason: "the text ends without \\end\\".to_owned() });
        }
        if let Some(order) = (0..counts.len()).find(|&i| counts[i] != read[i]) {
            let (counted, read) = (counts[order], read[order]);
            let reason = format!("{counted} {}-grams were announced, and {read} are there", order + 1);
            return Err(NgramError { line: number, reason });
        }
        model.begin = model.words.get("<s>").copied();
        Ok(model)
    }

    fn add(&mut self, line: &str, order: usize, spelling: impl Fn(&str) -> String) -> Result<(), String> {
        let mut fields = line.split_ascii_whitespace();
        let number = |what: &str, field: Option<&str>| match field.map(str::parse::<f32>) {
            Some(Ok(number)) if !number.is_nan() => Ok(number),
            _ => Err(format!("the {what} of an n-gram is a number: `{line}`")),
        };
        let probability = number("probability", fields.next())?;
        let mut words = [0u32; MOST];
        for to in &mut words[..order] {
            let word = fields.next().ok_or_else(|| format!("{order} words were due: `{line}`"))?;
            let word = if word.starts_with('<') { word.to_owned() } else { spelling(word) };
            let known = self.words.get(word.as_str()).copied();
            *to = match known {
                Some(id) => id,
                None if order == 1 => {
                    let id = self.words.len() as u32;
                    self.words.insert(word.into(), id);
                    id
                }
                None => return Err(format!("`{word}` is not among the 1-grams")),
            };
        }
        let weight = match fields.next() {
            None => 0.0,
            field => number("weight of backing off", field)?,
        };
        match fields.next() {
            None => {}
            Some(_) => return Err(format!("more than {order} words and two numbers: `{line}`")),
        }
        self.grams.insert(key(&words[..order]), (probability, weight));
        Ok(())
    }

    /// The words of the model, in no order, without `<s>` and the like.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(|word| &**word).filter(|word| !word.starts_with('<'))
    }

    /// History at the start of a sentence.
    pub fn begin(&self) -> History {
        self.begin.map_or(History::NONE, |begin| History::NONE.then(begin, self.order.saturating_sub(1)))
    }

    /// Returns log10 of the probability of a word, and the history of the next word. The
    /// probability is `None` if the word, or a word of its history, is not in the model.
    pub fn score(&self, history: &History, word: &str) -> (Option<f64>, History) {
        let word = self.words.get(word).copied();
        let after = history.then(word.unwrap_or(UNKNOWN), self.order.saturating_sub(1));
        let known = word.filter(|_| !history.words().contains(&UNKNOWN));
        (known.map(|word| self.log10(history.words(), word)), after)
    }

    fn log10(&self, history: &[u32], word: u32) -> f64 {
        let mut weight = 0.0;
        for first in 0..=history.len() {
            let context = &history[first..];
            let mut words = [0u32; MOST + 1];
            words[..context.len()].copy_from_slice(context);
            words[context.len()] = word;
            if let Some(&(probability, _)) = self.grams.get(&key(&words[..=context.len()])) {
                return weight + f64::from(probability);
            }
            weight += self.grams.get(&key(context)).map_or(0.0, |&(_, weight)| f64::from(weight));
        }
        f64::NEG_INFINITY
    }
}

/// Section of an ARPA file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Counts,
    Grams(usize),
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "made by hand\n\\data\\\nngram 1=5\nngram 2=3\nngram 3=1\n\n\\1-grams:\n-1.0 <unk>\n-99 <s> -0.3\n-0.9 </s>\n\
                         -0.5 a -0.2\n-0.8 b -0.1\n\n\\2-grams:\n-0.4 <s> a -0.05\n-0.6 a b -0.7\n-0.1 b </s>\n\n\\3-grams:\n\
                         -0.25 <s> a b\n\n\\end\\\n";

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    fn score(model: &Ngram, history: &History, word: &str) -> (f64, History) {
        let (log10, history) = model.score(history, word);
        (log10.unwrap(), history)
    }

    #[test]
    fn the_longest_known_history_counts() {
        let model = Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap();
        let (first, history) = score(&model, &model.begin(), "a");
        close(first, -0.4);
        let (second, history) = score(&model, &history, "b");
        close(second, -0.25);
        // The model has neither the trigram `a b b` nor the bigram `b b`: the weights of `a b` and
        // of `b` apply.
        close(score(&model, &history, "b").0, -0.7 - 0.1 - 0.8);
        // `a b </s>` backs off to `b </s>`.
        close(score(&model, &history, "</s>").0, -0.7 - 0.1);
        close(score(&model, &model.begin(), "b").0, -0.3 - 0.8);
        let mut words: Vec<&str> = model.words().collect();
        words.sort_unstable();
        assert_eq!(words, ["a", "b"]);
    }

    #[test]
    fn unknown_words_have_no_probability_until_they_are_forgotten() {
        let model = Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap();
        let (log10, mut history) = model.score(&model.begin(), "zebra");
        assert_eq!(log10, None);
        // A history of two words.
        for word in ["a", "b"] {
            let (log10, after) = model.score(&history, word);
            assert_eq!(log10, None, "{word}");
            history = after;
        }
        close(score(&model, &history, "b").0, -0.7 - 0.1 - 0.8);
    }

    #[test]
    fn words_are_spelt_as_they_are_asked_for() {
        let upper = MODEL.replace(" a", " A").replace(" b", " B");
        let model = Ngram::read(upper.as_bytes(), str::to_lowercase).unwrap();
        let plain = Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap();
        assert_eq!(model.score(&model.begin(), "a").0, plain.score(&plain.begin(), "a").0);
        assert!(
            model.begin().then(0, 2) == plain.begin().then(0, 2)
                && model.score(&model.begin(), "A").0.is_none()
        );
    }

    #[test]
    fn what_is_no_model_is_told_by_its_line() {
        for (text, line, reason) in [
            ("hello\n".to_owned(), 1, "without"),
            (MODEL.replace("ngram 2=3", "ngram 2=4"), 22, "4 2-grams were announced, and 3 are there"),
            (MODEL.replace("-0.6 a b", "x a b"), 16, "is a number"),
            (MODEL.replace("-0.6 a b -0.7", "-0.6 a"), 16, "2 words were due"),
            (MODEL.replace("-0.6 a b", "-0.6 a zebra"), 16, "`zebra` is not among the 1-grams"),
            (MODEL.replace("-0.7", "-0.7 c"), 16, "more than"),
            (MODEL.replace("\\3-grams", "\\9-grams"), 19, "no count"),
            (MODEL.replace("ngram 3=1", "ngram 4=1"), 5, "in order"),
        ] {
            let error = Ngram::read(text.as_bytes(), str::to_owned).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.reason.contains(reason), "{error}");
        }
    }
}
