//! One update of the weights.
//!
//! An update is a list of phases (one for most models, two for a GAN), each with its parameters,
//! objective, optimizer, schedule and loss scaler. A phase processes all micro-batches of the
//! update:
//!
//! 1. Count: sum the denominators of every term over micro-batches and workers, before the first
//!    product.
//! 2. For each micro-batch, compute loss = scale x sum over the terms of weight x sum / total, run
//!    the backward pass, and add up the FP32 gradients. With `loss_mean = "of-batches"`, sum /
//!    (micro-batches of the update x the micro-batch's own count) takes the place of sum / total.
//! 3. Unscale.
//! 4. Reduce over the workers.
//! 5. Add the gradient of the L2 penalty in FP32.
//! 6. Check that all values are finite and compute the global norm (and the norms of the
//!    parameters, for LARC), with one read from the device.
//! 7. Clip by the global norm, by the norm of each group of parameters, or by LARC.
//! 8. Update. Without FP32 masters, round the new weights to the phase's type.
//!
//! If step 6 finds that a gradient or the loss is not finite, the update is skipped: the scaler is
//! updated, and the caller counts batches and micro-steps. Weights, moments, running statistics,
//! the schedule and the counts of updates do not change. This also holds without loss scaling. (The
//! published loops check gradients only. They apply an update with a non-finite loss and finite
//! gradients; here it is skipped.)

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_models::ops::{Islands, Observation};
use zoo_models::parameters;
use zoo_models::precision::Compute;
use zoo_models::{Objective, Pass, Running};
use zoo_recipes::{
    GradientGroupSpec, LarcSpec, LossMean, OptimizerSpec, RecurrentGroup, RegularizerSpec, ScheduleSpec,
};

use crate::error::TrainError;
use crate::flat::{self, Flat, Magnitude};
use crate::groups::{group_factors, is_bias, is_embedding, is_norm_scale, is_recurrent};
use crate::observe::hand_over;
use crate::optimizer::{Gradient, Optimizer, Place, optimizer};
use crate::parts::{Part, Watch};
use crate::reduce::Reducer;
use crate::scaling::LossScaler;
use crate::schedule::Schedule;
pub use crate::term::{TermSum, loss_of};
use crate::terms::{TermSums, sum_ragged, total_counts};

/// Selects parameters by path.
pub type Filter = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// A phase of an update: a set of parameters, their objective, and their update rule.
pub struct Phase<M, B> {
    /// Name in logs and checkpoints, e.g. `main`, `generator`.
    pub name: String,
    /// The parameters that this phase moves.
    pub parameters: Filter,
    /// The parameters of this phase whose rows are looked up by index (for LazyAdam).
    pub embeddings: Filter,
    /// The objective to minimise.
    pub objective: Box<dyn Objective<M, B> + Send>,
    /// Update rule and its state.
    pub optimizer: Box<dyn Optimizer>,
    /// Learning rate, by this phase's updates.
    pub schedule: Schedule,
    /// Loss scaler and its state.
    pub scaler: LossScaler,
    /// Maximum global norm of the gradients.
    pub clip_norm: Option<f64>,
    /// Groups of parameters whose gradients are scaled or clipped separately.
    pub groups: Vec<GradientGroupSpec>,
    /// Limits each parameter's gradient by the parameter's norm (LARC).
    pub larc: Option<LarcSpec>,
    /// How the loss averages over the batches of an update.
    pub loss_mean: LossMean,
    /// Learning rate of biases, as a factor of that of the other parameters.
    pub bias_lr: f64,
    /// The L2 penalty.
    pub l2: Option<RegularizerSpec>,
    /// Type to whose values the weights are rounded: FP32 where they are masters. An update rounds this
    /// phase's parameters that have a gradient, not running statistics and moments.
    pub weights: Compute,
    /// Operations that training computes in FP32 where products are not. Validation and searches
    /// compute all of them in FP32.
    pub islands: Islands,
    /// Running statistics to commit after a successful update.
    pub running: Option<Box<dyn Running<M>>>,
    /// Number of successful updates of this phase.
    pub updates: u64,
    /// Number of consecutive non-finite updates that a smaller scale could not have fixed.
    pub hopeless: u32,
}

impl<M, B> Phase<M, B> {
    /// The only phase of most runs: it moves all parameters. Parameters with `embedding` in their
    /// path are looked up by row.
    pub fn single(
        objective: Box<dyn Objective<M, B> + Send>,
        rule: &OptimizerSpec,
        schedule: &ScheduleSpec,
        scaler: LossScaler,
        last_update: Option<u64>,
    ) -> Result<Self, TrainError> {
        Ok(Self {
            name: "main".to_string(),
            parameters: Box::new(|_| true),
            embeddings: Box::new(|path| path.contains("embedding")),
            objective,
            optimizer: optimizer(rule),
            schedule: Schedule::new(schedule, last_update)?,
            scaler,
            clip_norm: None,
            groups: Vec::new(),
            larc: None,
            loss_mean: LossMean::default(),
            bias_lr: 1.0,
            l2: None,
            weights: Compute::FP32,
            islands: Islands::ALL,
            running: None,
            updates: 0,
            hopeless: 0,
        })
    }

    /// Sets the maximum global norm of the gradients.
    pub fn clipped(mut self, norm: Option<f64>) -> Self {
        self.clip_norm = norm;
        self
    }

    /// Sets the groups of parameters whose gradients are scaled or clipped separately.
    pub fn grouped(mut self, groups: &[GradientGroupSpec]) -> Self {
        self.groups = groups.to_vec();
        self
    }

    /// Sets the learning rate of biases, as a factor of that of the other parameters.
    pub fn with_bias_lr(mut self, factor: Option<f64>) -> Self {
        self.bias_lr = factor.unwrap_or(1.0);
        self
    }

    /// Sets LARC.
    pub fn adapted(mut self, larc: Option<&LarcSpec>) -> Self {
        self.larc = larc.cloned();
        self
    }

    /// Sets the mean over the batches of an update.
    pub fn averaged(mut self, loss_mean: LossMean) -> Self {
        self.loss_mean = loss_mean;
        self
    }

    /// Sets the running statistics.
    pub fn with_running(mut self, running: Option<Box<dyn Running<M>>>) -> Self {
        self.running = running;
        self
    }

    /// Sets the type to whose values the weights are rounded.
    pub fn with_weights(mut self, weights: Compute) -> Self {
        self.weights = weights;
        self
    }

    /// Sets the operations that training computes in FP32.
    pub fn with_islands(mut self, islands: Islands) -> Self {
        self.islands = islands;
        self
    }

    /// Sets the L2 penalty.
    pub fn regularized(mut self, spec: Option<&RegularizerSpec>) -> Self {
        self.l2 = spec.cloned();
        self
    }
}

impl<M: Module, B> Phase<M, B> {
    /// A model as this phase begins to train it: without masters, its parameters are rounded, running
    /// statistics among them.
    ///
    /// # Errors
    /// The model's device cannot compute without an FP32 island.
    pub fn begun(&self, model: M) -> Result<M, TrainError> {
        if model.devices().iter().any(|device| !self.islands.suit(device)) {
            return Err(TrainError::Islands);
        }
        if self.weights == Compute::FP32 {
            return Ok(model);
        }
        Ok(parameters::update(model, |path, weight| {
            if !(self.parameters)(path) {
                return weight;
            }
            let device = weight.device();
            Flat::from_tensor(weight).rounded(self.weights).into_tensor(&device)
        }))
    }
}

/// A batch and its position in the update, which determines its random numbers.
#[derive(Debug, Clone)]
pub struct MicroBatch<B> {
    /// Position among the batches of the update over all workers, from 0.
    pub position: u64,
    pub batch: B,
}

/// Settings of one update, besides its batches.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// Type of products.
    pub compute: Compute,
    pub seed: u64,
    /// Micro-steps done before this update by all workers, including those of skipped updates.
    pub micro_step: u64,
    /// Number of batches of this update over all workers.
    pub group: u64,
}

/// Result of one phase of an update.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseReport {
    pub phase: String,
    /// Whether the update was skipped because it was not finite.
    pub skipped: bool,
    /// Learning rate of the update, also of a skipped one.
    pub lr: f64,
    /// Loss scale of the update.
    pub scale: f64,
    /// Global norm of the gradients before clipping; not finite where skipped for it.
    pub grad_norm: f64,
    /// Terms of the loss.
    pub terms: Vec<TermSum>,
}

impl PhaseReport {
    /// Loss of the update; see [`loss_of`].
    pub fn loss(&self) -> f64 {
        loss_of(&self.terms)
    }
}

/// Runs one phase over the micro-batches of an update. `phase_index` and `phases` define the
/// position of its micro-steps in the update. `watch` is called at the end of each part, and its
/// observer with the values.
pub fn run_phase<M: Module, B>(
    phase: &mut Phase<M, B>,
    (phase_index, phases): (u64, u64),
    model: M,
    batches: &[MicroBatch<B>],
    around: Surroundings,
    reducer: &mut dyn Reducer,
    watch: &mut (impl Watch + ?Sized),
) -> Result<(M, PhaseReport), TrainError> {
    debug_assert!(phase_index < phases);
    let mut counts = total_counts(phase.objective.as_ref(), batches.iter().map(|micro| &micro.batch));
    if reducer.world() > 1 {
        // A worker without a batch in the last group of an epoch has no terms, so the workers first
        // agree on their number.
        sum_ragged(&mut counts, reducer)?;
    }
    let scale = phase.scaler.scale();
    let mut sums = TermSums::new(&counts);
    let paths = parameters::shapes(&model);
    let mine: Vec<bool> = paths.iter().map(|(path, _)| (phase.parameters)(path)).collect();
    let mut gradients: Vec<Option<Flat>> = vec![None; paths.len()];
    for micro in batches {
        let step = around.micro_step + phase_index * around.group + micro.position;
        let mut pass = Pass::training(around.compute, around.seed, step).with_islands(phase.islands);
        if let Some(observer) = watch.observer() {
            pass = pass.observed(Observation::of(&model, observer.outputs(scale)));
        }
        let terms = phase.objective.terms(&model, &micro.batch, &mut pass);
        let shares = match phase.loss_mean {
            LossMean::WholeUpdate => None,
            LossMean::OfBatches => Some(sums.shares(&phase.objective.counts(&micro.batch), around.group)),
        };
        let loss = sums.add(&phase.name, &terms, scale, shares.as_deref())?;
        drop(terms);
        watch.ended(Part::Forward)?;
        let mut found = loss.backward();
        let taken = parameters::take_gradients(&model, &mut found);
        for ((total, taken), mine) in gradients.iter_mut().zip(taken).zip(&mine) {
            if let Some(gradient) = taken.filter(|_| *mine) {
                let gradient = Flat::from_tensor(gradient);
                *total = Some(match total.take() {
                    Some(sum) => sum.plus(gradient),
                    None => gradient,
                });
            }
        }
        watch.ended(Part::Backward)?;
    }
    if scale != 1.0 {
        let unscale = (1.0 / scale) as f32;
        gradients.iter_mut().for_each(|g| *g = g.take().map(|g| g.scaled(unscale)));
    }
    let device = model.devices().into_iter().next().map(Device::inner);
    if reducer.world() > 1 {
        reduce(&mut gradients, &paths, device.as_ref(), reducer)?;
    }
    // A penalty changes the gradients before they are measured.
    if phase.l2.is_some()
        && let Some(observer) = watch.observer()
    {
        hand_over(observer, &paths, &gradients, &[]);
    }
    let model = match &phase.l2 {
        Some(l2) => add_penalty(model, &mut gradients, &paths, &mine, l2),
        None => model,
    };
    let (model, weights) = match phase.larc {
        Some(_) => weights_with_gradient(model, &gradients),
        None => (model, Vec::new()),
    };
    let buffer: Vec<bool> = match &phase.larc {
        Some(LarcSpec { recurrent: RecurrentGroup::OneBuffer, .. }) => {
            let moved = paths.iter().zip(&gradients).filter(|(_, gradient)| gradient.is_some());
            moved.map(|((path, _), _)| is_recurrent(path)).collect()
        }
        _ => Vec::new(),
    };
    let moved = gradients.iter().flatten().count();
    let measured: Vec<&Flat> = gradients.iter().flatten().chain(&weights).collect();
    let (mut magnitudes, read) = flat::measure(&measured, sums.pending());
    drop(weights);
    let mut of_weights = magnitudes.split_off(moved);
    if phase.l2.is_none()
        && let Some(observer) = watch.observer()
    {
        hand_over(observer, &paths, &gradients, &magnitudes);
    }
    let norm = magnitudes.iter().map(|m| m.square_sum).sum::<f64>().sqrt();
    let largest = magnitudes.iter().map(|m| m.largest).fold(0.0, f64::max);
    let terms = sums.finish(read, reducer)?;
    let finite = norm.is_finite() && loss_of(&terms).is_finite();
    let lr = phase.schedule.lr(phase.updates);
    let report =
        PhaseReport { phase: phase.name.clone(), skipped: !finite, lr, scale, grad_norm: norm, terms };
    phase.hopeless = if finite { 0 } else { phase.hopeless + u32::from(phase.scaler.is_exhausted()) };
    phase.scaler.observe(finite, largest);
    if !finite {
        if let Some(running) = &phase.running {
            running.discard();
        }
        watch.ended(Part::Update)?;
        return Ok((model, report));
    }
    let of_groups = match phase.groups.as_slice() {
        [] => Vec::new(),
        groups => {
            let with_gradient = paths.iter().zip(&gradients).filter(|(_, gradient)| gradient.is_some());
            let moved: Vec<&str> = with_gradient.map(|((path, _), _)| path.as_str()).collect();
            group_factors(groups, &moved, &magnitudes)?
        }
    };
    let clip = phase.clip_norm.map_or(1.0, |limit| if norm > limit { limit / norm } else { 1.0 });
    let mut of_gradients = magnitudes.clone();
    join(&mut of_weights, &buffer);
    join(&mut of_gradients, &buffer);
    let factor = |moved: usize| match &phase.larc {
        Some(larc) => adapted_rate(larc, lr, &of_weights[moved], &of_gradients[moved]) as f32,
        None => of_groups.get(moved).map_or(clip, |factor| factor * clip) as f32,
    };
    phase.optimizer.begin();
    let (mut index, mut moved) = (0, 0);
    let model = parameters::update(model, |path, weight| {
        debug_assert_eq!(path, paths[index].0, "a module is mapped in the order in which it is visited");
        let (shape, gradient) = (&paths[index].1, gradients[index].take());
        index += 1;
        let Some(values) = gradient else { return weight };
        let device = weight.device();
        let place = Place { path, shape, embedding: (phase.embeddings)(path) };
        let weight = Flat::from_tensor(weight);
        let square_sum = Some(magnitudes[moved].square_sum);
        let gradient = Gradient { values, factor: factor(moved), square_sum };
        moved += 1;
        let lr = if is_bias(path) { lr * phase.bias_lr } else { lr };
        if let Some(observer) = watch.observer() {
            observer.moves(path, &weight.on_host());
        }
        let new = phase.optimizer.step(place, lr, weight, gradient).rounded(phase.weights);
        if let Some(observer) = watch.observer() {
            observer.moved(path, &new.on_host());
        }
        new.into_tensor(&device)
    });
    phase.updates += 1;
    let model = match &phase.running {
        Some(running) => running.commit(model),
        None => model,
    };
    watch.ended(Part::Update)?;
    Ok((model, report))
}

/// The factor of one parameter's gradient: see [`LarcSpec`].
fn adapted_rate(larc: &LarcSpec, lr: f64, weight: &Magnitude, gradient: &Magnitude) -> f64 {
    let (weight, gradient) = (weight.square_sum.sqrt(), gradient.square_sum.sqrt());
    (larc.eta * weight / (lr * (gradient + larc.epsilon))).max(larc.min_update).min(1.0)
}

/// Replaces the square sums of all magnitudes of one buffer by their total.
fn join(magnitudes: &mut [Magnitude], buffer: &[bool]) {
    let square_sum =
        magnitudes.iter().zip(buffer).filter(|(_, joint)| **joint).map(|(m, _)| m.square_sum).sum();
    for (magnitude, _) in magnitudes.iter_mut().zip(buffer).filter(|(_, joint)| **joint) {
        magnitude.square_sum = square_sum;
    }
}

/// The values of the parameters that have a gradient.
fn weights_with_gradient<M: Module>(model: M, gradients: &[Option<Flat>]) -> (M, Vec<Flat>) {
    let (mut gradients, mut found) = (gradients.iter(), Vec::new());
    let model = parameters::update(model, |_, weight| {
        if gradients.next().is_some_and(Option::is_some) {
            found.push(Flat::from_tensor(weight.clone()));
        }
        weight
    });
    (model, found)
}

/// Sums the gradients over the workers. A parameter has a gradient if it has one on any worker.
fn reduce(
    gradients: &mut [Option<Flat>],
    paths: &[(String, Vec<usize>)],
    device: Option<&Device>,
    reducer: &mut dyn Reducer,
) -> Result<(), TrainError> {
    let mut present: Vec<f64> = gradients.iter().map(|g| f64::from(u8::from(g.is_some()))).collect();
    reducer.sum_values(&mut present)?;
    let mut buckets: Vec<Flat> = Vec::new();
    for ((gradient, (_, shape)), workers) in gradients.iter_mut().zip(paths).zip(&present) {
        if *workers == 0.0 {
            continue;
        }
        buckets.push(gradient.take().unwrap_or_else(|| {
            let n = shape.iter().product::<usize>();
            match device {
                Some(device) if !flat::is_host(device) => Flat::Device(Tensor::zeros([n], device)),
                _ => Flat::Host(vec![0.0; n]),
            }
        }));
    }
    reducer.sum(&mut buckets)?;
    let mut buckets = buckets.into_iter();
    for (gradient, workers) in gradients.iter_mut().zip(&present) {
        *gradient = if *workers == 0.0 { None } else { buckets.next() };
    }
    Ok(())
}

/// Adds scale x w to the gradients of this phase's parameters to which the penalty applies. Weights
/// are not copied unless they have another reference.
fn add_penalty<M: Module>(
    model: M,
    gradients: &mut [Option<Flat>],
    paths: &[(String, Vec<usize>)],
    mine: &[bool],
    RegularizerSpec::L2 { scale, recurrent, embeddings, norm_scales }: &RegularizerSpec,
) -> M {
    let l2 = *scale as f32;
    let penalized = |(path, shape): &(String, Vec<usize>)| match shape.len() {
        0 | 1 => *norm_scales && is_norm_scale(path),
        _ => (*recurrent || !is_recurrent(path)) && (*embeddings || !is_embedding(path)),
    };
    let mut index = 0;
    parameters::update(model, |_, weight| {
        let (i, device) = (index, weight.device());
        index += 1;
        if !mine[i] || !penalized(&paths[i]) {
            return weight;
        }
        let weight = Flat::from_tensor(weight);
        gradients[i] = Some(match gradients[i].take() {
            Some(gradient) => gradient.plus_scaled(&weight, l2),
            None => weight.clone().scaled(l2),
        });
        weight.into_tensor(&device)
    })
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
