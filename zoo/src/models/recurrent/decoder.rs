//! Writing.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::{ContextUse, InitialState, RecurrentDecoderSpec, RecurrentInit};

use super::attention::{Asked, RecurrentAttention};
use super::{Between, Kind};
use crate::contract::Pass;
use crate::models::{Memory, Sources};
use crate::nn::{Init, LayerState, Linear, RecurrentLayer};
use crate::ops::{self, Segment, Segments, Sequences};
use crate::precision::to_f32;

/// A stack with attention. Where the context goes, [`ContextUse`] says; where it comes back to the first layer, what is above that
/// layer's loop still goes over whole sequences.
#[derive(Module, Debug)]
pub struct RecurrentDecoder {
    /// First to last.
    pub layers: Vec<RecurrentLayer>,
    /// Of the first layer or of the last.
    pub attention: RecurrentAttention,
    /// [units, units + memory], of input feeding.
    pub combine: Option<Linear>,
    #[module(skip)]
    context: ContextUse,
    #[module(skip)]
    initial_state: Option<InitialState>,
    /// Of what `combine` is multiplied with.
    #[module(skip)]
    combine_dropout: f64,
    #[module(skip)]
    between: Between,
    /// Width of what is fed back.
    #[module(skip)]
    fed: usize,
}

/// What a search keeps between two steps.
#[derive(Debug, Clone)]
pub struct RecurrentCache {
    asked: Asked,
    walk: Walk,
    /// Weights of the last step's attention: of each hypothesis, one behind the other.
    pub weights: Option<Tensor<1>>,
}

/// Where some sequences are.
#[derive(Debug, Clone)]
struct Walk {
    states: Vec<Option<LayerState>>,
    /// What comes back to the first layer.
    feed: Option<Tensor<2>>,
}

impl Walk {
    fn map(self, mut of: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            states: self.states.into_iter().map(|state| state.map(|state| state.map(&mut of))).collect(),
            feed: self.feed.map(of),
        }
    }
}

/// Sequences, where each of them is, and whom it asks.
struct Span<'a> {
    sequences: &'a Sequences,
    asked: &'a Asked,
    segments: &'a Segments,
}

impl RecurrentDecoder {
    /// From its spec; tokens and rows of memory have these widths.
    pub fn new(init: &Init, spec: &RecurrentDecoderSpec, width: usize, memory: usize) -> Self {
        let units = spec.units as usize;
        let kind = Kind {
            cell: spec.cell,
            units,
            biases: spec.biases,
            forget_bias: spec.forget_bias,
            init: spec.init,
        };
        let fed = match spec.context {
            ContextUse::UpperLayers => 0,
            ContextUse::AllLayers | ContextUse::Output => memory,
            ContextUse::InputFeeding => units,
        };
        let upper = match spec.context {
            ContextUse::UpperLayers | ContextUse::AllLayers => units + memory,
            ContextUse::Output | ContextUse::InputFeeding => units,
        };
        let layer = |i: u32| kind.layer(&init.at("layers").at(i), if i == 0 { width + fed } else { upper });
        let at = init.at("attention");
        Self {
            layers: (0..spec.layers).map(layer).collect(),
            attention: RecurrentAttention::new(&at, &spec.attention, spec.init, [units, memory]),
            combine: (spec.context == ContextUse::InputFeeding).then(|| {
                let mut combine =
                    Linear::new(&init.at("combine"), units + memory, units, spec.combine_bias, 1.0);
                if let RecurrentInit::Uniform { bound } = spec.init {
                    combine.weight = init.at("combine").at("weight").uniform([units, units + memory], bound);
                }
                combine
            }),
            context: spec.context,
            initial_state: spec.initial_state,
            combine_dropout: spec.combine_dropout.unwrap_or(0.0),
            between: Between::new(spec.dropout, spec.residual_from),
            fed,
        }
    }

    /// Layers that the context comes back to, and so go step by step with it.
    fn looped(&self) -> usize {
        match self.context {
            ContextUse::UpperLayers => 0,
            ContextUse::AllLayers => 1,
            ContextUse::Output | ContextUse::InputFeeding => self.layers.len(),
        }
    }

    /// Whole targets at once, the tokens before each position given: x [target rows, width] FP32 -> what is projected, FP32.
    pub fn forward(&self, x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2> {
        let sequences = Sequences::new(lengths);
        let asked = self.attention.about(memory, pass);
        if self.looped() > 0 {
            return self.forward_by_steps(x, &sequences, memory, asked, pass);
        }
        let segments = Segments::across(lengths, &memory.lengths);
        let span = Span { sequences: &sequences, asked: &asked, segments: &segments };
        let mut walk = self.start(memory, None);
        let (h, context, _) = self.question(x, &span, &mut walk, pass);
        self.above(h, context, &sequences, &mut walk, pass)
    }

    /// The loop over the steps, in which all sequences that have such a step go together; then what is above it.
    fn forward_by_steps(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        memory: &Memory,
        asked: Asked,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let device = x.device();
        if sequences.rows() == 0 {
            return Tensor::zeros([0, self.projected()], &device);
        }
        let ints = |rows: Vec<usize>| rows_of(rows, &device);
        // By steps, and in a step by falling length: then every step is a range of rows.
        let by_step: Vec<usize> = (0..sequences.steps())
            .flat_map(|step| (0..sequences.active(step)).map(move |i| (i, step)))
            .map(|(i, step)| sequences.row(i, step))
            .collect();
        let mut back = vec![0; by_step.len()];
        by_step.iter().enumerate().for_each(|(at, &row)| back[row] = at);
        let x = x.select(0, ints(by_step));
        // Sources in the order of the sequences, so that those that go on are the first.
        let sources = Sources::new(&memory.lengths);
        let order = sequences.order();
        let rows: Vec<usize> = order.iter().flat_map(|&i| sources.rows(i)).collect();
        let asked = asked.map(|part| part.select(0, ints(rows.clone())));
        let lengths: Vec<u32> = order.iter().map(|&i| memory.lengths[i]).collect();

        let mut walk = self.start(memory, Some(order));
        let (mut outputs, mut contexts) = (Vec::new(), Vec::new());
        let mut first = 0;
        for step in 0..sequences.steps() {
            let active = sequences.active(step);
            let each = Sequences::new(&vec![1; active]);
            let segments = each_asks(&lengths, active);
            walk = walk.map(|x| if x.dims()[0] == active { x } else { x.narrow(0, 0, active) });
            let span = Span { sequences: &each, asked: &asked, segments: &segments };
            let (out, context, _) = self.question(x.clone().narrow(0, first, active), &span, &mut walk, pass);
            outputs.push(out);
            contexts.push(context);
            first += active;
        }
        let joined = |parts: Vec<Tensor<2>>| Tensor::cat(parts, 0).select(0, ints(back.clone()));
        match self.context {
            ContextUse::AllLayers => {
                // The layers above have not begun.
                let mut walk = self.start(memory, None);
                self.above(joined(outputs), joined(contexts), sequences, &mut walk, pass)
            }
            _ => joined(outputs),
        }
    }

    /// Keys of the source: computed once for a search.
    pub fn begin(&self, memory: &Memory, pass: &Pass) -> RecurrentCache {
        let walk = self.start(memory, None);
        RecurrentCache { asked: self.attention.about(memory, pass), walk, weights: None }
    }

    /// One more token of every hypothesis: x [hypotheses, width] -> what is projected.
    pub fn step(
        &self,
        x: Tensor<2>,
        cache: &mut RecurrentCache,
        sources: &Sources,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let each = Sequences::new(&vec![1; sources.count()]);
        let segments = sources.segments();
        let span = Span { sequences: &each, asked: &cache.asked, segments: &segments };
        let (h, context, weights) = self.question(x, &span, &mut cache.walk, pass);
        cache.weights = Some(weights);
        match self.context {
            ContextUse::UpperLayers | ContextUse::AllLayers => {
                self.above(h, context, &each, &mut cache.walk, pass)
            }
            ContextUse::Output | ContextUse::InputFeeding => h,
        }
    }

    /// One sequence for each source, in this order.
    fn start(&self, memory: &Memory, order: Option<&[usize]>) -> Walk {
        let state = self.initial_state.map(|InitialState::LastOfEncoder| {
            let sources = Sources::new(&memory.lengths);
            let last = |source: usize| sources.rows(source).end.saturating_sub(1);
            let rows: Vec<usize> = match order {
                Some(order) => order.iter().map(|&source| last(source)).collect(),
                None => (0..sources.count()).map(last).collect(),
            };
            let rows = rows_of(rows, &memory.keys.device());
            // Of two directions side by side, the forward one is the first.
            let h = memory.keys.clone().select(0, rows).narrow(1, 0, self.units());
            let c = matches!(self.layers[0], RecurrentLayer::Lstm(_)).then(|| h.clone());
            LayerState { h, c }
        });
        Walk { states: vec![state; self.layers.len()], feed: None }
    }

    /// Width of what is projected.
    fn projected(&self) -> usize {
        match self.context {
            ContextUse::Output => self.fed,
            _ => self.units(),
        }
    }

    fn units(&self) -> usize {
        match &self.layers[0] {
            RecurrentLayer::Lstm(layer) => layer.weight_hh.dims()[1],
            RecurrentLayer::Gru(layer) => layer.weight_hh.dims()[1],
        }
    }

    /// Up to the layer that asks, and the answer: what goes on, the context, and the weights. What comes back is brought up to date.
    fn question(
        &self,
        x: Tensor<2>,
        span: &Span<'_>,
        walk: &mut Walk,
        pass: &mut Pass,
    ) -> (Tensor<2>, Tensor<2>, Tensor<1>) {
        let asking = self.looped().max(1);
        let feed = (self.fed > 0).then(|| {
            let zeros = || Tensor::zeros([x.dims()[0], self.fed], &x.device());
            walk.feed.clone().unwrap_or_else(zeros)
        });
        let mut beside = feed;
        let mut x = x;
        for (i, layer) in self.layers[..asking].iter().enumerate() {
            let state = walk.states[i].take();
            let (out, state) =
                self.between.through((i, layer), x, beside.take(), (span.sequences, state), pass);
            walk.states[i] = Some(state);
            x = out;
        }
        let (context, weights) = self.attention.ask(x.clone(), span.asked, span.segments, pass);
        let out = match (self.context, &self.combine) {
            (ContextUse::Output, _) => context.clone(),
            (ContextUse::InputFeeding, Some(combine)) => {
                let both = Tensor::cat(vec![x, context.clone()], 1);
                let both = ops::dropout(both, self.combine_dropout, pass);
                ops::stored(to_f32(combine.forward(both, pass)).tanh(), pass.compute)
            }
            _ => x,
        };
        walk.feed = match self.context {
            ContextUse::UpperLayers => None,
            ContextUse::AllLayers => Some(context.clone()),
            ContextUse::Output | ContextUse::InputFeeding => Some(out.clone()),
        };
        (out, context, weights)
    }

    /// The layers above the one that asked, each with the context beside its input.
    fn above(
        &self,
        mut x: Tensor<2>,
        context: Tensor<2>,
        sequences: &Sequences,
        walk: &mut Walk,
        pass: &mut Pass,
    ) -> Tensor<2> {
        for (i, layer) in self.layers.iter().enumerate().skip(1) {
            let state = walk.states[i].take();
            let beside = Some(context.clone());
            let (out, state) = self.between.through((i, layer), x, beside, (sequences, state), pass);
            walk.states[i] = Some(state);
            x = out;
        }
        x
    }
}

impl RecurrentCache {
    /// These hypotheses; the source is theirs as before.
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        let walk = std::mem::replace(&mut self.walk, Walk { states: Vec::new(), feed: None });
        self.walk = walk.map(|x| x.select(0, rows.clone()));
        self.weights = None;
    }
}

/// Numbers of rows, for `select`.
fn rows_of(rows: Vec<usize>, device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.into_iter().map(|row| row as i32).collect();
    Tensor::from_data(TensorData::new(rows.clone(), [rows.len()]), device)
}

/// The first so many sources are asked by a row each; the others are not.
fn each_asks(lengths: &[u32], active: usize) -> Segments {
    let mut key = 0;
    let list = lengths.iter().enumerate().map(|(i, &length)| {
        let segment =
            Segment { query: i.min(active), queries: usize::from(i < active), key, keys: length as usize };
        key += segment.keys;
        segment
    });
    Segments::new(list.collect(), false)
}
