//! Word and character error rate: the edits that turn references into hypotheses, divided by the
//! units of the references.
//!
//! Each utterance is aligned separately. The corpus rate is the sum of the edits over the sum of
//! the units, in percent; it may exceed 100. The rates and the split into kinds of edits follow
//! jiwer 4.0:
//!
//! | | `space:jiwer` | `space:collapse` |
//! |---|---|---|
//! | ends of a line | stripped | stripped |
//! | two white-space characters or more | words: one space; characters: as they stand | one space |
//! | one tab, no-break space, … | no space: inside of a word; a character | one space |
//! | words | between U+0020 | between spaces |
//! | characters | code points, spaces among them | code points, spaces among them |
//!
//! `space:jiwer` is the default behaviour of `jiwer.wer` and `jiwer.cer`. The words of
//! `space:collapse` are those of Python's `str.split`, which OpenSeq2Seq counts. Insertions against
//! an empty reference count. If no reference has any unit, the rate is the number of insertions
//! times 100.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::levenshtein::{Aligner, Edit};
use super::options::{ErrorRateOptions, ErrorUnit, Whitespace};
use crate::metrics::contract::{
    Case, Drawn, Entry, Metric, Parts, Reading, Rows, ScoreError, SignatureError, Source, check_cells,
    check_streams, is_space,
};
use zoo_recipes::Direction;

/// Word error rate.
pub static WER: Entry = Entry::percent("wer", "percent", Direction::Lower);

/// Character error rate.
pub static CER: Entry = Entry::percent("cer", "percent", Direction::Lower);

/// Columns of a segment's statistics: edits, units of the reference.
pub(crate) const WIDTH: usize = 2;

/// Rate in percent from summed statistics. These are whole numbers, so no sum is rounded.
pub(crate) fn from_sums(sums: &[f64]) -> f64 {
    100.0 * if sums[1] > 0.0 { sums[0] / sums[1] } else { sums[0] }
}

/// Statistics of each segment, as rows.
pub(crate) fn rows(counts: &[EditCounts]) -> Vec<f64> {
    counts.iter().flat_map(|c| [c.errors() as f64, c.reference_length() as f64]).collect()
}

/// Edits of each segment. There must be exactly one reference stream.
pub(crate) fn corpus(
    hypotheses: &[String],
    references: &[impl AsRef<[String]>],
    options: &ErrorRateOptions,
) -> Result<Vec<EditCounts>, ScoreError> {
    check_streams(hypotheses, references)?;
    let [references] = references else {
        return Err(ScoreError::ReferenceCount { expected: 1, found: references.len() });
    };
    let count =
        |aligner: &mut Aligner, (r, h): (&String, &String)| options.edits(aligner, r, h, EditCounts::of);
    Ok(references.as_ref().par_iter().zip(hypotheses).map_init(Aligner::default, count).collect())
}

/// Number of edits of each kind. The signature states which of equally short alignments is counted;
/// the sum of the edits does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditCounts {
    /// Units that are equal.
    pub hits: u64,
    /// Units of the reference that were replaced by another unit.
    pub substitutions: u64,
    /// Units of the reference that are missing in the hypothesis.
    pub deletions: u64,
    /// Additional units of the hypothesis.
    pub insertions: u64,
}

impl EditCounts {
    fn of(edits: &[Edit]) -> Self {
        edits.iter().fold(Self::default(), |mut counts, edit| {
            *match edit {
                Edit::Hit => &mut counts.hits,
                Edit::Substitution => &mut counts.substitutions,
                Edit::Deletion => &mut counts.deletions,
                Edit::Insertion => &mut counts.insertions,
            } += 1;
            counts
        })
    }

    /// Total of substitutions, deletions and insertions.
    pub fn errors(&self) -> u64 {
        self.substitutions + self.deletions + self.insertions
    }

    /// Number of units of the reference.
    pub fn reference_length(&self) -> u64 {
        self.hits + self.substitutions + self.deletions
    }

    /// Number of units of the hypothesis.
    pub fn hypothesis_length(&self) -> u64 {
        self.hits + self.substitutions + self.insertions
    }

    /// Error rate in percent. If the reference has no units, 100 for each insertion.
    pub fn rate(&self) -> f64 {
        from_sums(&[self.errors() as f64, self.reference_length() as f64])
    }
}

impl EditCounts {
    /// The counts as parts of a score, with the `line` in Kaldi's format.
    fn parts(&self, metric: &Entry) -> Map<String, Value> {
        let mut parts = match serde_json::to_value(self) {
            Ok(Value::Object(parts)) => parts,
            _ => Map::new(),
        };
        parts.insert("line".into(), format!("%{} {self}", metric.name.to_uppercase()).into());
        parts.insert("errors".into(), self.errors().into());
        parts.insert("reference_length".into(), self.reference_length().into());
        parts.insert("hypothesis_length".into(), self.hypothesis_length().into());
        parts
    }
}

impl fmt::Display for EditCounts {
    /// `3.33 [ 8 / 240, 1 ins, 2 del, 5 sub ]`, as Kaldi's compute-wer prints it after `%WER`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errors, units) = (self.errors(), self.reference_length());
        let EditCounts { substitutions, deletions, insertions, .. } = self;
        write!(
            f,
            "{:.2} [ {errors} / {units}, {insertions} ins, {deletions} del, {substitutions} sub ]",
            self.rate()
        )
    }
}

impl std::ops::Add for EditCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        EditCounts {
            hits: self.hits + other.hits,
            substitutions: self.substitutions + other.substitutions,
            deletions: self.deletions + other.deletions,
            insertions: self.insertions + other.insertions,
        }
    }
}

impl std::iter::Sum for EditCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| sum + counts)
    }
}

/// Alignment of an utterance: all units of both sides, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Alignment {
    /// Steps from the first unit to the last.
    pub steps: Vec<Step>,
}

/// One step of an alignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Kind of the step.
    pub edit: Edit,
    /// Unit of the reference; `None` for an insertion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Unit of the hypothesis; `None` for a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
}

impl Alignment {
    /// Number of steps of each kind.
    pub fn counts(&self) -> EditCounts {
        EditCounts::of(&self.steps.iter().map(|step| step.edit).collect::<Vec<_>>())
    }
}

impl fmt::Display for Alignment {
    /// Reference, hypothesis and edits on separate lines; `*` marks a missing unit, `␣` a space
    /// that is a unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = ["REF:", "HYP:", "    "].map(str::to_owned);
        for Step { edit, reference, hypothesis } in &self.steps {
            let text = |side: &Option<String>| side.as_ref().map(|unit| unit.replace(is_space, "␣"));
            let (reference, hypothesis) = (text(reference), text(hypothesis));
            let sides = [&reference, &hypothesis];
            let length = |side: &Option<String>| side.as_ref().map_or(1, |unit| unit.chars().count());
            let width = sides.map(length).into_iter().max().unwrap_or(1);
            for (line, side) in lines.iter_mut().zip(sides) {
                let unit = side.clone().unwrap_or_else(|| "*".repeat(width));
                line.push_str(&format!(" {unit:width$}"));
            }
            let mark = match edit {
                Edit::Hit => "",
                Edit::Substitution => "S",
                Edit::Deletion => "D",
                Edit::Insertion => "I",
            };
            lines[2].push_str(&format!(" {mark:width$}"));
        }
        write!(f, "{}", lines.each_ref().map(|line| line.trim_end()).join("\n"))
    }
}

impl ErrorRateOptions {
    /// Aligns one utterance.
    pub fn align(&self, reference: &str, hypothesis: &str) -> Alignment {
        let edits = self.edits(&mut Aligner::default(), reference, hypothesis, <[Edit]>::to_vec);
        let (reference, hypothesis) = (self.cased(reference), self.cased(hypothesis));
        let owned = |line| -> Vec<String> {
            match self.unit {
                ErrorUnit::Word => words(line, self.whitespace).map(str::to_owned).collect(),
                ErrorUnit::Character => characters(line, self.whitespace).map(String::from).collect(),
            }
        };
        let (mut reference, mut hypothesis) = (owned(&reference).into_iter(), owned(&hypothesis).into_iter());
        let step = |edit: Edit| Step {
            edit,
            reference: if edit == Edit::Insertion { None } else { reference.next() },
            hypothesis: if edit == Edit::Deletion { None } else { hypothesis.next() },
        };
        Alignment { steps: edits.into_iter().map(step).collect() }
    }

    /// Number of units of a line that enter the alignment.
    pub(crate) fn count_units(&self, line: &str) -> usize {
        match self.unit {
            ErrorUnit::Word => words(line, self.whitespace).count(),
            ErrorUnit::Character => characters(line, self.whitespace).count(),
        }
    }

    fn cased<'a>(&self, line: &'a str) -> Cow<'a, str> {
        match self.case {
            Case::Mixed => Cow::Borrowed(line),
            Case::Lower => Cow::Owned(line.to_lowercase()),
        }
    }

    /// Applies `read` to the edits of an utterance.
    fn edits<T>(
        &self,
        aligner: &mut Aligner,
        reference: &str,
        hypothesis: &str,
        read: impl Fn(&[Edit]) -> T,
    ) -> T {
        let (reference, hypothesis) = (self.cased(reference), self.cased(hypothesis));
        let (reference, hypothesis) = match self.unit {
            ErrorUnit::Word => {
                numbered(words(&reference, self.whitespace), words(&hypothesis, self.whitespace))
            }
            ErrorUnit::Character => {
                numbered(characters(&reference, self.whitespace), characters(&hypothesis, self.whitespace))
            }
        };
        read(aligner.align(&reference, &hypothesis))
    }
}

/// Units as numbers, from 0 in the order of the reference. Units that are not in the reference all
/// get the largest number.
fn numbered<T: Hash + Eq>(
    reference: impl Iterator<Item = T>,
    hypothesis: impl Iterator<Item = T>,
) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: HashMap<T, u32> = HashMap::new();
    let number = |unit| {
        let next = numbers.len() as u32;
        *numbers.entry(unit).or_insert(next)
    };
    let reference = reference.map(number).collect();
    (reference, hypothesis.map(|unit| numbers.get(&unit).copied().unwrap_or(u32::MAX)).collect())
}

/// Words of a line.
fn words(line: &str, whitespace: Whitespace) -> impl Iterator<Item = &str> {
    let mut rest = line.trim_matches(is_space);
    std::iter::from_fn(move || {
        let (word, after) = match whitespace {
            Whitespace::Collapse => rest.split_once(is_space).unwrap_or((rest, "")),
            Whitespace::Jiwer => split_at_space(rest),
        };
        rest = after.trim_start_matches(is_space);
        (!word.is_empty()).then_some(word)
    })
}

/// The parts before and after the first separator: a space, or a run of two or more white-space
/// characters. The second part is empty if there is none.
fn split_at_space(line: &str) -> (&str, &str) {
    let mut spaces = line.char_indices().filter(|(_, c)| is_space(*c));
    let parts = |(at, c): &(usize, char)| *c == ' ' || line[at + c.len_utf8()..].starts_with(is_space);
    match spaces.find(parts) {
        Some((at, c)) => (&line[..at], &line[at + c.len_utf8()..]),
        None => (line, ""),
    }
}

/// Characters of a line, including spaces.
fn characters(line: &str, whitespace: Whitespace) -> impl Iterator<Item = char> {
    let mut after_space = false;
    line.trim_matches(is_space).chars().filter_map(move |c| match whitespace {
        Whitespace::Jiwer => Some(c),
        Whitespace::Collapse => {
            let again = std::mem::replace(&mut after_space, is_space(c)) && after_space;
            if again { None } else { Some(if after_space { ' ' } else { c }) }
        }
    })
}

impl Metric for ErrorRateOptions {
    fn entry(&self) -> &'static Entry {
        match self.unit {
            ErrorUnit::Word => &WER,
            ErrorUnit::Character => &CER,
        }
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![self.case.part(), ("space", self.whitespace.name().to_string()), ("align", "jiwer".to_string())]
    }

    fn source(&self) -> Source {
        Source::Text
    }

    fn read(&self, records: &[String], references: &[Vec<String>]) -> Result<Reading, ScoreError> {
        let unit = match self.unit {
            ErrorUnit::Word => "words",
            ErrorUnit::Character => "characters",
        };
        check_cells(unit, records, references, &|line| self.count_units(line))?;
        let counts = corpus(records, references, self)?;
        let detail = counts.iter().copied().sum::<EditCounts>().parts(self.entry());
        Ok(Reading { rows: Rows::even(WIDTH, rows(&counts)), detail })
    }

    fn value(&self, drawn: Drawn<'_>) -> f64 {
        from_sums(drawn.sums().0)
    }
}

/// Reads the options of word error rate.
pub fn read_words<C: From<ErrorRateOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(read(parts, ErrorUnit::Word)?.into())
}

/// Reads the options of character error rate.
pub fn read_characters<C: From<ErrorRateOptions>>(parts: &mut Parts<'_>) -> Result<C, SignatureError> {
    Ok(read(parts, ErrorUnit::Character)?.into())
}

fn read(parts: &mut Parts<'_>, unit: ErrorUnit) -> Result<ErrorRateOptions, SignatureError> {
    let (case, space) = (parts.case()?, parts.take("space")?);
    let whitespace = parts.name("space", Whitespace::parse(&space))?;
    let hint = "`align:jiwer`: edits cost 1 each, and of equally short alignments jiwer's is counted";
    parts.only("align", "jiwer", hint)?;
    Ok(ErrorRateOptions { unit, case, whitespace })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(unit: ErrorUnit, whitespace: Whitespace) -> ErrorRateOptions {
        ErrorRateOptions { unit, case: Case::Mixed, whitespace }
    }

    #[test]
    fn words_are_jiwers_or_pythons() {
        let of = |line, whitespace| words(line, whitespace).collect::<Vec<_>>();
        for (line, jiwer, collapsed) in [
            ("a b", &["a", "b"][..], &["a", "b"][..]),
            ("  a \t b\n", &["a", "b"], &["a", "b"]),
            ("a\tb c", &["a\tb", "c"], &["a", "b", "c"]),
            ("a\t\tb\u{a0}c", &["a", "b\u{a0}c"], &["a", "b", "c"]),
            ("a\u{1c}b \u{3000}c", &["a\u{1c}b", "c"], &["a", "b", "c"]),
            ("\ta\t", &["a"], &["a"]),
            (" \t ", &[], &[]),
            ("", &[], &[]),
        ] {
            assert_eq!(of(line, Whitespace::Jiwer), jiwer, "{line:?}");
            assert_eq!(of(line, Whitespace::Collapse), collapsed, "{line:?}");
        }
    }

    #[test]
    fn spaces_are_characters() {
        let of = |line, whitespace| characters(line, whitespace).collect::<String>();
        assert_eq!(of(" a  b\tc ", Whitespace::Jiwer), "a  b\tc");
        assert_eq!(of(" a  b\tc \u{a0}d\n", Whitespace::Collapse), "a b c d");
        let counts = options(ErrorUnit::Character, Whitespace::Jiwer).align("ab c", "abc").counts();
        assert_eq!((counts.deletions, counts.reference_length()), (1, 4));
    }

    #[test]
    fn an_alignment_shows_its_words() {
        let alignment =
            options(ErrorUnit::Word, Whitespace::Jiwer).align("the cat sat on it", "well the bat sat it");
        let text = "REF: **** the cat sat on it\nHYP: well the bat sat ** it\n     I        S       D";
        assert_eq!(alignment.to_string(), text);
        let counts = alignment.counts();
        assert_eq!(counts, EditCounts { hits: 3, substitutions: 1, deletions: 1, insertions: 1 });
        assert_eq!(counts.to_string(), "60.00 [ 3 / 5, 1 ins, 1 del, 1 sub ]");
        let json = serde_json::to_value(&alignment).unwrap();
        assert_eq!(
            json[2],
            serde_json::json!({"edit": "substitution", "reference": "cat", "hypothesis": "bat"})
        );
        assert_eq!(json[4], serde_json::json!({"edit": "deletion", "reference": "on"}));
        assert_eq!(serde_json::from_value::<Alignment>(json).unwrap(), alignment);
        let spaced = options(ErrorUnit::Character, Whitespace::Jiwer).align("a b", "ab").to_string();
        assert_eq!(spaced, "REF: a ␣ b\nHYP: a * b\n       D");
    }

    #[test]
    fn nothing_against_something() {
        let of = |reference, hypothesis| {
            options(ErrorUnit::Word, Whitespace::Jiwer).align(reference, hypothesis).counts().rate()
        };
        assert_eq!((of("", ""), of("a b", ""), of("", "a b c")), (0.0, 100.0, 300.0));
    }
}
