//! A model of three parameters with its loss and batches, small enough to compute by hand. It has
//! every kind of part that training handles: a lookup, a product in the compute type, a vector,
//! dropout, running statistics.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use zoo_models::Running;
use zoo_models::parameters;
use zoo_models::precision::{Compute, matmul, to_f32};
use zoo_models::random::Key;
use zoo_models::{Objective, Pass, Term};
use zoo_recipes::{EpsilonPlace, EvaluatedWeights, LossScalingSpec, OptimizerSpec, ScheduleSpec, Velocity};
use zoo_training::batches::{Batches, Fetched, Share};
use zoo_training::scaling::LossScaler;
use zoo_training::{
    Asked, BatchSource, LogFile, OtherError, Outcome, Phase, Progress, Seen, Silent, TermSum, TrainSettings,
    Trainer, UpdateReport,
};

pub const BEST: EvaluatedWeights = EvaluatedWeights::Best { decode: None, from_epoch: 0 };
pub const ROWS: usize = 6;
pub const WIDTH: usize = 4;

/// embedding `[6, 4]` -> product `[4, 4]` -> + bias `[4]`. `mean` `[4]` is a running statistic, not
/// a weight.
#[derive(Module, Debug)]
pub struct Toy {
    pub embedding: Param<Tensor<2>>,
    pub hidden: Param<Tensor<2>>,
    pub bias: Param<Tensor<1>>,
    pub mean: Param<Tensor<1>>,
}

impl Toy {
    pub fn new(seed: u64) -> Self {
        let device = Device::flex().autodiff();
        let values = |stream, n: usize| -> Vec<f32> {
            let key = Key::new(seed, stream, 0);
            (0..n as u32).map(|i| key.normal(i) * 0.5).collect()
        };
        let matrix = |stream, rows: usize| {
            Tensor::<2>::from_data(TensorData::new(values(stream, rows * WIDTH), [rows, WIDTH]), &device)
        };
        Self {
            embedding: Param::from_tensor(matrix(1, ROWS)),
            hidden: Param::from_tensor(matrix(2, WIDTH)),
            bias: Param::from_tensor(Tensor::zeros([WIDTH], &device)),
            mean: Param::from_tensor(Tensor::zeros([WIDTH], &device)),
        }
    }

    /// Rows by index, times `factor`, through the product: `[n, 4]`, FP32.
    pub fn forward(&self, batch: &Batch, pass: &mut Pass) -> Tensor<2> {
        let device = self.embedding.val().device();
        let n = batch.ids.len();
        let ids = Tensor::<1, Int>::from_data(TensorData::new(batch.ids.clone(), [n]), &device);
        let mut x = self.embedding.val().select(0, ids).mul_scalar(batch.factor);
        if let (Some(key), true) = (pass.dropout_key(), batch.dropout) {
            let kept = |i| if key.uniform(i) < 0.7 { 1.0 / 0.7 } else { 0.0f32 };
            let mask = TensorData::new((0..(n * WIDTH) as u32).map(kept).collect::<Vec<_>>(), [n, WIDTH]);
            x = x.mul(Tensor::from_data(mask, &device));
        }
        let y = to_f32(matmul(pass.compute.cast(x), pass.compute.cast(self.hidden.val())));
        y.add(self.bias.val().unsqueeze::<2>())
    }
}

#[derive(Debug, Clone)]
pub struct Batch {
    pub ids: Vec<i64>,
    pub targets: Vec<f32>,
    pub factor: f32,
    pub dropout: bool,
}

impl Batch {
    /// A batch that depends on the arguments alone. Lengths differ between batches.
    pub fn draw(seed: u64, epoch: u64, index: u64) -> Self {
        let key = Key::new(seed, 100 + epoch, index);
        let n = 2 + (key.bits(0) % 5) as usize;
        Self {
            ids: (0..n as u32).map(|i| i64::from(key.bits(1 + i)) % ROWS as i64).collect(),
            targets: (0..(n * WIDTH) as u32).map(|i| key.normal(1000 + i)).collect(),
            factor: 1.0,
            dropout: true,
        }
    }

    pub fn joined(batches: &[Self]) -> Self {
        Self {
            ids: batches.iter().flat_map(|b| b.ids.clone()).collect(),
            targets: batches.iter().flat_map(|b| b.targets.clone()).collect(),
            factor: 1.0,
            dropout: false,
        }
    }
}

/// Half the squared error, summed; the count is the number of rows. Proposes the mean of its
/// outputs as a running statistic.
#[derive(Clone, Default)]
pub struct SquaredError {
    pub proposed: Arc<Mutex<Vec<Vec<f32>>>>,
}

impl Objective<Toy, Batch> for SquaredError {
    fn counts(&self, batch: &Batch) -> Vec<(&'static str, f64)> {
        vec![("squared_error", batch.ids.len() as f64), ("rows", 1.0)]
    }

    fn terms(&self, model: &Toy, batch: &Batch, pass: &mut Pass) -> Vec<Term> {
        let y = model.forward(batch, pass);
        let n = batch.ids.len();
        let mean = parameters::host_values(y.clone().inner().mean_dim(0).reshape([WIDTH]));
        self.proposed.lock().unwrap().push(mean);
        let target = Tensor::<2>::from_data(TensorData::new(batch.targets.clone(), [n, WIDTH]), &y.device());
        let error = y.sub(target);
        let sum = error.clone().mul(error).sum().mul_scalar(0.5);
        let rows = Tensor::<1>::from_data([n as f32], &sum.device());
        vec![Term { name: "squared_error", sum, weight: 1.0 }, Term { name: "rows", sum: rows, weight: 0.0 }]
    }
}

/// Exponential mean of the proposed means.
pub struct RunningMean(pub Arc<Mutex<Vec<Vec<f32>>>>);

impl Running<Toy> for RunningMean {
    fn commit(&self, model: Toy) -> Toy {
        let proposed = std::mem::take(&mut *self.0.lock().unwrap());
        parameters::update(model, |path, value| {
            if path != "mean" {
                return value;
            }
            let device = value.device();
            let mut kept = parameters::host_values(value);
            for new in &proposed {
                kept.iter_mut().zip(new).for_each(|(kept, new)| *kept = 0.9 * *kept + 0.1 * new);
            }
            Tensor::from_data(TensorData::new(kept, [WIDTH]), &device)
        })
    }

    fn discard(&self) {
        self.0.lock().unwrap().clear();
    }
}

pub const ADAM: OptimizerSpec = OptimizerSpec::Adam {
    beta1: 0.9,
    beta2: 0.98,
    epsilon: 1e-8,
    epsilon_place: EpsilonPlace::CorrectedRoot,
    weight_decay: 0.0,
};

pub fn sgd() -> OptimizerSpec {
    OptimizerSpec::Sgd { momentum: 0.0, weight_decay: 0.0, nesterov: false, velocity: Velocity::Gradients }
}

pub fn warm_up() -> ScheduleSpec {
    ScheduleSpec::InverseSqrt { lr: 0.05, warmup_updates: 5, warmup_init_lr: 0.001 }
}

pub fn backoff(scale: f64) -> LossScalingSpec {
    LossScalingSpec::Backoff {
        scale_init: Some(scale),
        scale_min: 1.0,
        scale_max: 65536.0,
        step_factor: 2.0,
        step_window: 4,
    }
}

pub fn phase(rule: &OptimizerSpec, schedule: &ScheduleSpec, scaling: &LossScalingSpec) -> Phase<Toy, Batch> {
    let objective = SquaredError::default();
    let running = RunningMean(objective.proposed.clone());
    let scaler = LossScaler::new(scaling).unwrap();
    let mut phase = Phase::single(Box::new(objective), rule, schedule, scaler, None).unwrap();
    phase.running = Some(Box::new(running));
    phase
}

pub fn settings(folder: &Path) -> TrainSettings {
    TrainSettings {
        fingerprint: "toy".to_string(),
        seed: 3,
        compute: Compute::FP32,
        batches_per_update: 2,
        max_updates: Some(18),
        max_epochs: None,
        patience: None,
        checkpoint_every: 3,
        evaluate: EvaluatedWeights::MeanOfEpochs { epochs: 3 },
        ema: None,
        ema_of: Vec::new(),
        log_every: 2,
        folder: folder.to_path_buf(),
        diverged_after: 20,
    }
}

/// Epochs of seven batches. A batch whose (epoch, index) is listed is multiplied by a factor.
#[derive(Clone, Default)]
pub struct ToySource {
    pub factors: BTreeMap<(u64, u64), f32>,
    pub dropout_off: bool,
}

impl BatchSource<Batch> for ToySource {
    fn epoch_len(&mut self, _: u64) -> Result<u64, OtherError> {
        Ok(7)
    }

    fn batches(&mut self, epoch: u64, from: u64, share: Share) -> Result<Batches<'_, Batch>, OtherError> {
        let (factors, dropout) = (self.factors.clone(), !self.dropout_off);
        Ok(Box::new((from..7).filter(move |index| share.has(*index)).map(move |index| {
            let mut batch = Batch::draw(3, epoch, index);
            batch.factor = factors.get(&(epoch, index)).copied().unwrap_or(1.0);
            batch.dropout = dropout;
            Ok(Fetched { tokens: batch.ids.len() as u64, batch })
        })))
    }
}

/// Ten minus the error. It gets worse as training progresses, so the best validation is an early
/// one that the state must hold.
pub fn validate(model: &Toy, _: Asked) -> Result<Seen, OtherError> {
    let batches = (0..2).map(|i| Ok(Batch { dropout: false, ..Batch::draw(99, 0, i) }));
    let mut terms = zoo_training::evaluate(&SquaredError::default(), model, batches, Compute::FP32)?;
    terms[0].sum = 10.0 * terms[0].count - terms[0].sum;
    Ok(terms.into())
}

/// A validation with the given loss.
pub fn seen(loss: f64) -> Seen {
    vec![TermSum { name: "loss".into(), sum: loss, count: 1.0, weight: 1.0 }].into()
}

/// Keeps all reports, and sets the stop flag after the given number of updates of this session.
#[derive(Default)]
pub struct Watch<'a> {
    pub updates: Vec<UpdateReport>,
    pub stop_after: Option<(usize, &'a AtomicBool)>,
}

impl Progress for Watch<'_> {
    fn on_update(&mut self, report: &UpdateReport) {
        self.updates.push(report.clone());
        if let Some((after, flag)) = self.stop_after
            && self.updates.len() >= after
        {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

pub fn trainer(settings: TrainSettings, phase: Phase<Toy, Batch>) -> Trainer<Toy, Batch> {
    Trainer::new(settings, Toy::new(1), vec![phase]).unwrap()
}

/// Runs to the end without a log.
pub fn run(trainer: &mut Trainer<Toy, Batch>, source: &mut ToySource) -> Outcome {
    let stop = AtomicBool::new(false);
    trainer.run(source, Some(&mut validate), &mut Silent, None, &stop).unwrap()
}

/// Runs with a log in the settings' folder.
pub fn run_logged(
    trainer: &mut Trainer<Toy, Batch>,
    source: &mut ToySource,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Outcome {
    let path = trainer.folder().path().join("log.jsonl");
    let mut log = LogFile::open(&path, trainer.state().counters.batch).unwrap();
    trainer.run(source, Some(&mut validate), progress, Some(&mut log), stop).unwrap()
}

pub fn weights(model: &Toy) -> BTreeMap<String, Vec<f32>> {
    parameters::export(model).into_iter().map(|p| (p.path, p.values)).collect()
}
