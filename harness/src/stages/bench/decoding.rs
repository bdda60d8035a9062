//! `zoo bench --decode`: how many sentences a second a search writes here, or speaks.
//!
//! Weights are fresh and sources made up: all sources, and all that is written, are as long as the shape says, so that other programs
//! can be given the same work. Nothing is recorded.

use std::time::Instant;

use serde::Serialize;
use zoo_models::Pass;
use zoo_models::models::synthesis::{Limits, Synthesiser};
use zoo_models::models::{Packed, Seq2Seq, Vocabularies, Writer};
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_recipes::{Architecture, DecodeSpec, Resolved};

use super::shape::Shape;
use super::speeds::Spread;
use super::{ROUNDS, stopped};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::stages::Request;
use crate::stages::synthesis::{self, SynthesisMaterial};
use crate::stages::task::Material;
use crate::stages::translation::{Text, generated::full_batches};
use crate::{memory, size};

/// What `zoo bench --decode` was asked for.
#[derive(Debug, Clone)]
pub struct DecodingOptions {
    /// Name of the search.
    pub search: String,
    /// Sentences of a batch, and tokens of a source and of what is written; of texts, frames.
    pub shape: Option<Shape>,
    /// Batches of each arm.
    pub batches: Option<u64>,
}

/// Speeds of a search.
#[derive(Debug, Clone, Serialize)]
pub struct Decoding {
    /// Recipe.
    pub recipe: String,
    /// Tier.
    pub tier: Option<String>,
    /// Name of the search.
    pub search: String,
    /// What it was.
    pub spec: DecodeSpec,
    /// `SENTENCESxTOKENS`.
    pub shape: String,
    /// The machine in words.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Arms, in the order of the request.
    pub arms: Vec<ArmDecoding>,
    /// Most bytes that all arms together had in use.
    pub peak_memory: Option<u64>,
}

/// Speed of one arm.
#[derive(Debug, Clone, Serialize)]
pub struct ArmDecoding {
    /// Arm.
    pub arm: String,
    /// Type of products.
    pub compute: String,
    /// Parameters.
    pub parameters: u64,
    /// Rows of the vocabulary.
    pub vocabulary: usize,
    /// Sentences a second.
    pub sentences_per_second: Spread,
    /// Tokens of the best hypotheses, or frames: fewer than the shape's where random weights chanced upon the end.
    pub tokens: u64,
    /// Seconds of each batch.
    pub laps: Vec<f64>,
}

/// Batches that are decoded again and again.
trait Batches {
    /// Decodes one of them. Gives tokens that were written, or frames.
    fn decode(&self, number: usize) -> u64;
}

/// Sentences through a search.
struct Sentences {
    model: Seq2Seq,
    spec: DecodeSpec,
    vocabularies: Vocabularies,
    sources: Vec<Packed>,
    compute: Compute,
}

impl Batches for Sentences {
    fn decode(&self, number: usize) -> u64 {
        let sources = &self.sources[number % self.sources.len()];
        let ids = SearchIds { pad: self.vocabularies.pad, end: self.vocabularies.end };
        let writer = Writer::new(&self.model, 0, Pass::evaluation(self.compute));
        let found = search(&writer, sources, &self.spec, ids);
        found.iter().filter_map(|ranked| ranked.first()).map(|best| best.tokens.len() as u64).sum()
    }
}

/// Texts that are spoken, none of which ends by itself.
struct Texts {
    model: Synthesiser,
    limits: Limits,
    texts: Vec<Vec<Vec<u32>>>,
    compute: Compute,
}

impl Batches for Texts {
    fn decode(&self, number: usize) -> u64 {
        let texts = &self.texts[number % self.texts.len()];
        let spoken = self.model.speak(texts, self.limits, &mut Pass::evaluation(self.compute));
        spoken.iter().map(|one| one.frames as u64).sum()
    }
}

struct Contender {
    arm: String,
    batches: Box<dyn Batches>,
    compute: Compute,
    parameters: u64,
    vocabulary: usize,
    laps: Vec<f64>,
    tokens: u64,
}

/// Decodes batches of every arm of a request, turn by turn.
pub fn decoding(ctx: &Context, request: &Request, options: &DecodingOptions) -> Result<Decoding> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let first = &arms.first().ok_or_else(|| Failure::usage("no arm to time"))?.recipe;
    let speaks = matches!(first.model.architecture(), Some(Architecture::Synthesis(_)));
    if first.data.reader.sample_rate_hz().is_some() && !speaks {
        return Err(Failure::usage(
            "this is a speech recognition recipe: only searches of translation and synthesis are timed alone",
        )
        .hint("`zoo infer RUN RECORDING --format json` prints the time per recording"));
    }
    let spec = first.decode.get(&options.search).ok_or_else(|| {
        let known: Vec<&str> = first.decode.keys().map(String::as_str).collect();
        Failure::usage(format!("the recipe has no search `{}`", options.search))
            .hint(format!("it has {}", known.join(", ")))
    })?;
    let shape = options.shape.unwrap_or_else(|| Shape::of(first));
    let spec = spec.clone().writing(shape.tokens);
    if matches!(spec, DecodeSpec::TeacherForced {}) {
        return Err(Failure::usage("the search is teacher-forced").hint("time one of another kind"));
    }
    let rounds = options.batches.unwrap_or(ROUNDS);
    let mut contenders = Vec::new();
    for resolved in &arms {
        contenders.push(Contender::new(ctx, request, resolved, shape, &spec)?);
    }
    ctx.progress.stage(&format!("decode {} with {}", request.document.name(), options.search));
    for contender in &mut contenders {
        contender.lap(0);
        stopped(ctx)?;
    }
    for round in 0..rounds {
        // There and back, so that a machine that slows down does not look like a slow arm.
        let order: Vec<usize> = match round % 2 {
            0 => (0..contenders.len()).collect(),
            _ => (0..contenders.len()).rev().collect(),
        };
        for at in order {
            let (seconds, tokens) = contenders[at].lap(round as usize + 1);
            contenders[at].laps.push(seconds);
            contenders[at].tokens += tokens;
            stopped(ctx)?;
        }
        ctx.progress.step(&Step { done: round + 1, total: Some(rounds), ..Step::default() });
    }
    ctx.progress.end_stage();
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let sentences = f64::from(shape.sentences);
    Ok(Decoding {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        search: options.search.clone(),
        spec,
        shape: shape.to_string(),
        hardware: environment.hardware(),
        environment,
        arms: contenders.into_iter().map(|contender| contender.end(sentences)).collect(),
        peak_memory: memory::peak(ctx.device),
    })
}

impl Contender {
    fn new(
        ctx: &Context,
        request: &Request,
        resolved: &Resolved,
        shape: Shape,
        spec: &DecodeSpec,
    ) -> Result<Self> {
        let recipe = &resolved.recipe;
        let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
        let compute = Compute::of(&recipe.precision);
        let device = ctx.open_device()?;
        let (batches, parameters, vocabulary): (Box<dyn Batches>, _, _) = match spec {
            DecodeSpec::FreeRunning(spec) => {
                let material = SynthesisMaterial::of(recipe)?;
                let model = material.model(recipe, seed, &device);
                let full =
                    synthesis::generated::full_batches(recipe, &material, shape.sentences, shape.tokens);
                let texts = full.take(4).flatten().map(|fetched| fetched.batch.symbols).collect();
                let limits = Limits { threshold: 1.0, ..synthesis::limits(spec) };
                let parameters = material.cost(recipe).parameters;
                (Box::new(Texts { model, limits, texts, compute }), parameters, material.symbols)
            }
            _ => {
                let text = Text { train: Vec::new(), vocabularies: size::vocabularies(recipe) };
                let model = text.model(recipe, seed, &device);
                let parameters = text.cost(recipe).parameters;
                let vocabularies = text.vocabularies;
                let full = full_batches(&vocabularies, shape.sentences, shape.tokens);
                let sources = full.take(4).flatten().map(|fetched| fetched.batch.source).collect();
                let vocabulary = vocabularies.target;
                let sentences = Sentences { model, spec: spec.clone(), vocabularies, sources, compute };
                (Box::new(sentences), parameters, vocabulary)
            }
        };
        let arm = resolved.arm.clone().unwrap_or_default();
        Ok(Self { arm, batches, compute, parameters, vocabulary, laps: Vec::new(), tokens: 0 })
    }

    /// Seconds of a batch, and tokens that were written.
    fn lap(&self, number: usize) -> (f64, u64) {
        let begun = Instant::now();
        let tokens = self.batches.decode(number);
        (begun.elapsed().as_secs_f64(), tokens)
    }

    fn end(self, sentences: f64) -> ArmDecoding {
        ArmDecoding {
            arm: self.arm,
            compute: self.compute.name().to_string(),
            parameters: self.parameters,
            vocabulary: self.vocabulary,
            sentences_per_second: Spread::of(self.laps.iter().map(|seconds| sentences / seconds)),
            tokens: self.tokens,
            laps: self.laps,
        }
    }
}
