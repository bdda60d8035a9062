//! The classes of an input of `zoo infer`, as they are printed.

use serde::Serialize;
use zoo_results::exit::Exit;

use super::Answer;
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::Format;

/// Number of classes that are listed unless `--nbest` asks for another.
const SHOWN: u32 = 1;

/// Classes of one input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inferred {
    /// The class with the highest score.
    class: String,
    /// Its probability.
    confidence: f64,
    /// The classes of the highest scores, from the highest on.
    classes: Vec<Scored>,
    /// Seconds from the numbers that the model reads to scores.
    #[serde(rename = "latency_seconds")]
    latency: f64,
}

/// A class with its probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Scored {
    class: String,
    confidence: f64,
}

/// An input with its classes.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    input: serde_json::Map<String, serde_json::Value>,
    #[serde(flatten)]
    inferred: &'a Inferred,
}

impl Inferred {
    /// The classes that the scores of an input give. `names` are those of all classes.
    pub fn new(scores: &[f32], names: &[String], args: &InferArgs, latency: f64) -> Self {
        let shown = args.nbest.unwrap_or(SHOWN).max(1) as usize;
        let name = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
        let best = Answer::new(scores, 0);
        let highest = scores.get(best.class).copied().unwrap_or(0.0);
        let probability = |class: usize| best.confidence * f64::from(scores[class] - highest).exp();
        let scored = |&class: &usize| Scored { class: name(class), confidence: probability(class) };
        Self {
            class: name(best.class),
            confidence: best.confidence,
            classes: order.iter().take(shown).map(scored).collect(),
            latency,
        }
    }

    /// The printed lines of an input. `key` and `input` name it in JSON; as text it is printed in
    /// front of its class, but not if it is `alone`.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn lines(
        &self,
        (key, input): (&str, &str),
        ctx: &Context,
        args: &InferArgs,
        alone: bool,
    ) -> Result<String> {
        if matches!(ctx.format, Format::Json) {
            let input = [(key.to_owned(), input.into())].into_iter().collect();
            let json = serde_json::to_string(&Line { input, inferred: self });
            return json
                .map(|json| format!("{json}\n"))
                .map_err(|e| Failure::new(Exit::Internal, e.to_string()));
        }
        let input = if alone { String::new() } else { format!("{input}\t") };
        let of = |scored: &Scored| format!("{input}{:.4}\t{}\n", scored.confidence, scored.class);
        Ok(match args.nbest {
            Some(_) => self.classes.iter().map(of).collect(),
            None => format!("{input}{}\n", self.class),
        })
    }
}
