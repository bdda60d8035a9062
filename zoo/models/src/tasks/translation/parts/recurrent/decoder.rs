//! Recurrent decoder.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_recipes::tasks::translation::{
    AttentionSpec, ContextUse, InitialState, RecurrentDecoderSpec, RecurrentInit, TranslationModelSpec,
};

use super::attention::{Asked, RecurrentAttention};
use super::{Between, Kind, cost_of_layer};
use crate::nn::{Init, LayerState, Linear, RecurrentLayer};
use crate::ops::{self, Segment, Segments, Sequences};
use crate::precision::to_f32;
use crate::tasks::translation::{Memory, Sources, TokenDecoder};
use crate::{Cost, Pass};

/// A stack of recurrent layers with attention. [`ContextUse`] defines which layers receive the
/// context. Where only the first layer is in the attention's loop, the layers above it run over
/// whole sequences.
#[derive(Module, Debug)]
pub struct RecurrentDecoder {
    pub layers: Vec<RecurrentLayer>,
    /// Queried by the first layer or by the last.
    pub attention: RecurrentAttention,
    /// `[units, units + memory]`, for input feeding.
    pub combine: Option<Linear>,
    #[module(skip)]
    context: ContextUse,
    #[module(skip)]
    initial_state: Option<InitialState>,
    /// Dropout of the input of `combine`.
    #[module(skip)]
    combine_dropout: f64,
    #[module(skip)]
    between: Between,
    /// Width of the vector that is fed back.
    #[module(skip)]
    fed: usize,
}

/// Decoder state that is kept between two steps of a search.
#[derive(Debug, Clone)]
pub struct RecurrentCache {
    asked: Asked,
    walk: Walk,
    /// Attention weights of the last step, concatenated over the hypotheses.
    weights: Option<Tensor<1>>,
}

/// State of a group of sequences.
#[derive(Debug, Clone)]
struct Walk {
    states: Vec<Option<LayerState>>,
    /// Vector that is fed back to the first layer.
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

/// A group of sequences and the sources that they attend to.
struct Span<'a> {
    sequences: &'a Sequences,
    asked: &'a Asked,
    segments: &'a Segments,
}

impl TokenDecoder for RecurrentDecoder {
    type Spec = RecurrentDecoderSpec;
    type Cache = RecurrentCache;

    fn new(init: &Init, spec: &RecurrentDecoderSpec, model: &TranslationModelSpec) -> Self {
        let (width, memory) = (model.width as usize, model.memory_width() as usize);
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

    fn forward(&self, x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2> {
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

    /// Computes the keys of the source.
    fn begin(&self, memory: Memory, pass: &Pass) -> RecurrentCache {
        let walk = self.start(&memory, None);
        RecurrentCache { asked: self.attention.about(&memory, pass), walk, weights: None }
    }

    fn step(
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

    fn select(cache: &mut RecurrentCache, rows: &Tensor<1, Int>) {
        let walk = std::mem::replace(&mut cache.walk, Walk { states: Vec::new(), feed: None });
        cache.walk = walk.map(|x| x.select(0, rows.clone()));
        cache.weights = None;
    }

    fn attention(cache: &RecurrentCache) -> Option<Tensor<1>> {
        cache.weights.clone()
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let (width, memory) = (u64::from(model.width), u64::from(model.memory_width()));
        let (units, layers) = (u64::from(spec.units), u64::from(spec.layers));
        let fed = match spec.context {
            ContextUse::UpperLayers => 0,
            ContextUse::AllLayers | ContextUse::Output => memory,
            ContextUse::InputFeeding => units,
        };
        let beside = match spec.context {
            ContextUse::UpperLayers | ContextUse::AllLayers => memory,
            ContextUse::Output | ContextUse::InputFeeding => 0,
        };
        let layer = |input| cost_of_layer(false, spec.cell, spec.biases, [input, units]);
        let attention = match spec.attention {
            AttentionSpec::Multiplicative {} => Cost::product(true, [memory, units]),
            AttentionSpec::Additive { units: inner, normalized } => {
                let inner = u64::from(inner);
                Cost::product(false, [units, inner])
                    + Cost::product(true, [memory, inner])
                    + Cost::held(inner + if normalized { 1 + inner } else { 0 })
            }
        };
        let combine = match spec.context {
            ContextUse::InputFeeding => {
                let bias = if spec.combine_bias { units } else { 0 };
                Cost::product(false, [units + memory, units]) + Cost::held(bias)
            }
            _ => Cost::default(),
        };
        layer(width + fed) + layer(units + beside).times(layers - 1) + attention + combine
    }
}

impl RecurrentDecoder {
    /// Number of layers that run in the loop with the attention, because the context is fed back to
    /// them.
    fn looped(&self) -> usize {
        match self.context {
            ContextUse::UpperLayers => 0,
            ContextUse::AllLayers => 1,
            ContextUse::Output | ContextUse::InputFeeding => self.layers.len(),
        }
    }

    /// Runs the loop over the steps, in which all sequences that have a step run together; then the
    /// layers above the loop.
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
        // Ordered by step, and within a step by falling length, so that every step is a range of
        // rows.
        let by_step: Vec<usize> = (0..sequences.steps())
            .flat_map(|step| (0..sequences.active(step)).map(move |i| (i, step)))
            .map(|(i, step)| sequences.row(i, step))
            .collect();
        let mut back = vec![0; by_step.len()];
        by_step.iter().enumerate().for_each(|(at, &row)| back[row] = at);
        let x = x.select(0, ints(by_step));
        // Sources in the order of the sequences, so that the sequences that continue come first.
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
                // The layers above the loop start from their initial state.
                let mut walk = self.start(memory, None);
                self.above(joined(outputs), joined(contexts), sequences, &mut walk, pass)
            }
            _ => joined(outputs),
        }
    }

    /// Initial state: one sequence for each source, in the given order.
    fn start(&self, memory: &Memory, order: Option<&[usize]>) -> Walk {
        let state = self.initial_state.map(|InitialState::LastOfEncoder| {
            let sources = Sources::new(&memory.lengths);
            let last = |source: usize| sources.rows(source).end.saturating_sub(1);
            let rows: Vec<usize> = match order {
                Some(order) => order.iter().map(|&source| last(source)).collect(),
                None => (0..sources.count()).map(last).collect(),
            };
            let rows = rows_of(rows, &memory.keys.device());
            // With two directions side by side, the forward one comes first.
            let h = memory.keys.clone().select(0, rows).narrow(1, 0, self.units());
            let c = matches!(self.layers[0], RecurrentLayer::Lstm(_)).then(|| h.clone());
            LayerState { h, c }
        });
        Walk { states: vec![state; self.layers.len()], feed: None }
    }

    /// Width of the output projection's input.
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

    /// Runs the layers up to the one that queries the attention, and the attention. Returns the
    /// output, the context and the weights, and updates the fed-back vector in `walk`.
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

    /// Runs the layers above the one that queried the attention, each with the context concatenated
    /// to its input.
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

/// Row indices as a tensor, for `select`.
fn rows_of(rows: Vec<usize>, device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.into_iter().map(|row| row as i32).collect();
    Tensor::from_data(TensorData::new(rows.clone(), [rows.len()]), device)
}

/// Segments in which each of the first `active` sources has one query row, and the others have
/// none.
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
