//! Mechanisms of one update: accumulation, scaling, overflow, clipping, the penalty, workers. Each
//! has a control that shows the result without it.

use std::sync::{Arc, Barrier, Mutex};

use super::toy::*;
use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use zoo_models::parameters;
use zoo_models::precision::{Compute, matmul, to_f32};
use zoo_models::{Objective, Pass, Term};
use zoo_recipes::{
    GradientGroupSpec, LossScalingSpec, OptimizerSpec, RegularizerSpec, ScheduleSpec, Velocity,
};
use zoo_training::flat::Flat;
use zoo_training::parts::{Part, Unwatched, Watch};
use zoo_training::reduce::{Local, ReduceError, Reducer};
use zoo_training::scaling::LossScaler;
use zoo_training::update::{MicroBatch, PhaseReport, Surroundings, run_phase};
use zoo_training::{Phase, TrainError};

const F16: Compute = Compute(FloatDType::F16);
const BF16: Compute = Compute(FloatDType::BF16);

fn constant(lr: f64) -> ScheduleSpec {
    ScheduleSpec::Fixed { lr }
}

fn around(compute: Compute, group: usize) -> Surroundings {
    Surroundings { compute, seed: 3, micro_step: 0, group: group as u64 }
}

fn micro(batches: &[Batch]) -> Vec<MicroBatch<Batch>> {
    (0..).zip(batches).map(|(position, batch)| MicroBatch { position, batch: batch.clone() }).collect()
}

fn step(
    phase: &mut Phase<Toy, Batch>,
    model: Toy,
    batches: &[Batch],
    compute: Compute,
) -> (Toy, PhaseReport) {
    run_phase(
        phase,
        (0, 1),
        model,
        &micro(batches),
        around(compute, batches.len()),
        &mut Local,
        &mut Unwatched,
    )
    .unwrap()
}

fn plain(index: u64) -> Batch {
    Batch { dropout: false, ..Batch::draw(5, 0, index) }
}

fn largest_difference(a: &Toy, b: &Toy) -> f32 {
    let (a, b) = (weights(a), weights(b));
    let pairs = a.iter().flat_map(|(path, a)| a.iter().zip(&b[path]));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn micro_batches_of_unequal_size_equal_the_large_batch() {
    let batches: Vec<Batch> = (0..5).map(plain).collect();
    let sizes: Vec<usize> = batches.iter().map(|b| b.ids.len()).collect();
    assert!(
        sizes.iter().any(|n| *n != sizes[0]),
        "the sizes must differ for this test to mean anything: {sizes:?}"
    );
    let new = || phase(&sgd(), &constant(0.1), &LossScalingSpec::None);
    let (small, report) = step(&mut new(), Toy::new(1), &batches, Compute::FP32);
    let (large, whole) = step(&mut new(), Toy::new(1), &[Batch::joined(&batches)], Compute::FP32);
    // The running mean is computed for each micro-batch and differs by design.
    let without_mean = |model: Toy| Toy { mean: Toy::new(1).mean, ..model };
    let (small, large) = (without_mean(small), without_mean(large));
    assert!(largest_difference(&small, &Toy::new(1)) > 1e-2);
    assert!(largest_difference(&small, &large) < 1e-6);
    assert!((report.loss() / whole.loss() - 1.0).abs() < 1e-6);
    assert!((report.grad_norm / whole.grad_norm - 1.0).abs() < 1e-6);
    assert_eq!(report.terms[0].count, sizes.iter().sum::<usize>() as f64);
    // Control: the mean of the micro-batches' means, as a loop computes that normalises each
    // micro-batch separately.
    let mut means = [0.0f64; WIDTH];
    for batch in &batches {
        let (moved, _) = step(&mut new(), Toy::new(1), std::slice::from_ref(batch), Compute::FP32);
        let moved = &weights(&moved)["bias"];
        means.iter_mut().zip(moved).for_each(|(m, w)| *m += f64::from(*w) / batches.len() as f64);
    }
    let wrong = means
        .iter()
        .zip(&weights(&large)["bias"])
        .map(|(a, b)| (a - f64::from(*b)).abs())
        .fold(0.0, f64::max);
    assert!(wrong > 1e-3, "{wrong}");
}

/// Groups are clipped after the loss scale is divided out: a power of two changes nothing.
#[test]
fn groups_of_gradients_are_the_same_under_a_loss_scale() {
    let group = |parameters: &str, factor, clip_norm| GradientGroupSpec {
        parameters: parameters.to_owned(),
        factor,
        clip_norm,
    };
    let update = |scaling: &LossScalingSpec, groups: &[GradientGroupSpec]| {
        let mut phase = phase(&sgd(), &constant(0.1), scaling).grouped(groups);
        step(&mut phase, Toy::new(1), &[plain(0)], Compute::FP32).0
    };
    let groups = [group("embedding", Some(4.0), None), group("hidden", None, Some(0.01))];
    let scaled = update(&LossScalingSpec::Static { scale: 128.0 }, &groups);
    assert_eq!(weights(&scaled), weights(&update(&LossScalingSpec::None, &groups)));
    let without = update(&LossScalingSpec::None, &[]);
    let start = weights(&Toy::new(1));
    let moved = |model: &Toy, path: &str| {
        let squares =
            weights(model)[path].iter().zip(&start[path]).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
        squares.sqrt()
    };
    assert!((moved(&scaled, "hidden") - 0.1 * 0.01).abs() < 1e-5, "the rate times the norm of the group");
    assert!(moved(&without, "hidden") > 0.01);
    let [scaled, without] = [&scaled, &without].map(|model| moved(model, "embedding"));
    assert!((scaled / without - 4.0).abs() < 1e-3, "{scaled} {without}");
}

#[test]
fn masters_take_updates_that_a_half_precision_weight_would_lose() {
    // A weight of 1 and a step of 2^-13: a quarter of the distance to the next f16 below 1.
    let batch = Batch { ids: vec![0], targets: vec![0.0; WIDTH], factor: 1.0, dropout: false };
    let start =
        || {
            let ones =
                |model: Toy| {
                    parameters::update(model, |path, value| {
                        if path == "bias" { value.ones_like() } else { value.zeros_like() }
                    })
                };
            ones(Toy::new(1))
        };
    let lr = f64::from(2f32.powi(-13));
    let mut masters = phase(&sgd(), &constant(lr), &LossScalingSpec::None);
    let mut halves = phase(&sgd(), &constant(lr), &LossScalingSpec::None);
    let (mut with, mut without) = (start(), start());
    for _ in 0..8 {
        with = step(&mut masters, with, std::slice::from_ref(&batch), F16).0;
        without = step(&mut halves, without, std::slice::from_ref(&batch), F16).0;
        // Control: weights kept in the compute type.
        without = parameters::update(without, |_, value| value.cast(FloatDType::F16).cast(FloatDType::F32));
    }
    let moved = 1.0 - weights(&with)["bias"][0];
    // The gradient is w itself, so the distance is a little less than eight steps.
    assert!((moved / 2f32.powi(-10) - 1.0).abs() < 1e-2, "{moved}");
    assert_eq!(weights(&without)["bias"][0], 1.0);
}

#[test]
fn an_update_vanishes_at_the_ratio_of_2048_without_masters() {
    // At a ratio of 2048 the step still reaches the next f16 below 1; from 4096 on it rounds away.
    // FP32 keeps both.
    let half = |x: f32| {
        parameters::host_values(Tensor::<1>::from_data([x], &Device::flex()).cast(FloatDType::F16))[0]
    };
    assert!(half(1.0 - 1.0 / 2048.0) < 1.0);
    assert_eq!(half(1.0 - 1.0 / 4097.0), 1.0);
    assert_eq!(half(1.0 + 1.0 / 2048.0), 1.0, "above 1 the ratio 2048 is a tie and is lost");
    let single = |x: f32| parameters::host_values(Tensor::<1>::from_data([x], &Device::flex()))[0];
    assert!(single(1.0 + 1.0 / 2048.0) > 1.0);
}

/// y = x w in the compute type; loss = 2^-26 sum(y).
#[derive(Module, Debug)]
struct Small {
    w: Param<Tensor<2>>,
}

struct TinyGradient;

impl Objective<Small, ()> for TinyGradient {
    fn counts(&self, _: &()) -> Vec<(&'static str, f64)> {
        vec![("tiny", 1.0)]
    }

    fn terms(&self, model: &Small, _: &(), pass: &mut Pass) -> Vec<Term> {
        let w = model.w.val();
        let x = Tensor::<2>::ones([1, 2], &w.device());
        let y = to_f32(matmul(pass.compute.cast(x), pass.compute.cast(w)));
        vec![Term { name: "tiny", sum: y.sum().mul_scalar(2f32.powi(-26)), weight: 1.0 }]
    }
}

fn tiny_update(compute: Compute, scaling: &LossScalingSpec) -> (f32, PhaseReport) {
    let device = Device::flex().autodiff();
    let model = Small { w: Param::from_tensor(Tensor::zeros([2, 1], &device)) };
    let scaler = LossScaler::new(scaling).unwrap();
    let lr = f64::from(2f32.powi(26));
    let mut phase = Phase::single(Box::new(TinyGradient), &sgd(), &constant(lr), scaler, None).unwrap();
    let batches = [MicroBatch { position: 0, batch: () }];
    let (model, report) =
        run_phase(&mut phase, (0, 1), model, &batches, around(compute, 1), &mut Local, &mut Unwatched)
            .unwrap();
    (parameters::export(&model)[0].values[0], report)
}

#[test]
fn gradients_below_the_range_of_f16_survive_with_loss_scaling_alone() {
    // The step is lr x gradient = 2^26 x 2^-26 = 1.
    assert_eq!(tiny_update(F16, &LossScalingSpec::None).0, 0.0, "without scaling the gradient is 0");
    assert_eq!(tiny_update(F16, &LossScalingSpec::Static { scale: 8.0 }).0, -1.0);
    assert_eq!(tiny_update(F16, &backoff(1024.0)).0, -1.0);
    assert_eq!(tiny_update(BF16, &LossScalingSpec::None).0, -1.0, "bf16 has the range of FP32");
    assert_eq!(tiny_update(Compute::FP32, &LossScalingSpec::None).0, -1.0);
    // Too large a scale overflows f16 and is detected: 2^-26 x 2^43 > 65504.
    let (moved, report) = tiny_update(F16, &LossScalingSpec::Static { scale: 2f64.powi(43) });
    assert_eq!(moved, 0.0);
    assert!(report.skipped);
}

#[test]
fn an_overflow_changes_the_scale_and_nothing_else() {
    let good = |index| plain(index);
    let bad = Batch { factor: 1e6, ..plain(7) };
    let mut phase = phase(&ADAM, &warm_up(), &backoff(1024.0));
    let mut model = Toy::new(1);
    for index in 0..2 {
        model = step(&mut phase, model, &[good(index)], F16).0;
    }
    let before = (weights(&model), phase.optimizer.export(), phase.updates, phase.schedule.lr(phase.updates));
    assert!(before.0["mean"].iter().any(|x| *x != 0.0), "running statistics were committed");
    assert_eq!(phase.scaler.scale(), 1024.0);
    // The second of two micro-batches overflows: the statistics of the first one must also be
    // discarded.
    let (after, report) = step(&mut phase, model, &[good(2), bad.clone()], F16);
    assert!(report.skipped && !report.grad_norm.is_finite());
    assert_eq!(
        (weights(&after), phase.optimizer.export(), phase.updates, phase.schedule.lr(phase.updates)),
        before
    );
    assert_eq!(phase.scaler.scale(), 512.0);
    // The next successful update is the same as without the skipped one.
    let (next, _) = step(&mut phase, after, &[good(3)], Compute::FP32);
    let mut undisturbed = super::toy::phase(&ADAM, &warm_up(), &backoff(1024.0));
    let mut other = Toy::new(1);
    for index in 0..2 {
        other = step(&mut undisturbed, other, &[good(index)], F16).0;
    }
    let (other, _) = step(&mut undisturbed, other, &[good(3)], Compute::FP32);
    assert_eq!(weights(&next), weights(&other));
    // Control: the same batch does not overflow in FP32, and changes everything.
    let (moved, report) = step(&mut undisturbed, other, &[bad], Compute::FP32);
    assert!(!report.skipped);
    assert_ne!(weights(&moved), weights(&next));
}

#[test]
fn gradients_that_are_not_finite_are_caught_without_scaling_too() {
    let mut phase = phase(&sgd(), &constant(0.1), &LossScalingSpec::None);
    let bad = Batch { factor: f32::NAN, ..plain(0) };
    let (model, report) = step(&mut phase, Toy::new(1), &[bad], Compute::FP32);
    assert!(report.skipped);
    assert_eq!(weights(&model), weights(&Toy::new(1)));
    assert_eq!((phase.updates, phase.hopeless), (0, 1));
}

#[test]
fn clipping_sees_unscaled_gradients() {
    let run = |scaling: &LossScalingSpec, clip: Option<f64>| {
        let mut phase = phase(&sgd(), &constant(0.1), scaling).clipped(clip);
        step(&mut phase, Toy::new(1), &[plain(0), plain(1)], Compute::FP32)
    };
    let (free, report) = run(&LossScalingSpec::None, None);
    let limit = report.grad_norm / 4.0;
    let (clipped, one) = run(&LossScalingSpec::None, Some(limit));
    // A power of two: scaling and unscaling are exact in FP32.
    let (scaled, other) = run(&LossScalingSpec::Static { scale: 1024.0 }, Some(limit));
    assert_eq!(weights(&clipped), weights(&scaled));
    assert_eq!(one.grad_norm, other.grad_norm);
    // The step has a quarter of the length.
    let start = weights(&Toy::new(1));
    let length = |model: &Toy| {
        let w = weights(model);
        let paths = ["embedding", "hidden", "bias"];
        let squares =
            paths.iter().flat_map(|p| w[*p].iter().zip(&start[*p])).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt()
    };
    assert!((length(&clipped) / length(&free) - 0.25).abs() < 1e-5);
    // A limit above the norm changes nothing.
    assert_eq!(weights(&run(&LossScalingSpec::None, Some(report.grad_norm * 2.0)).0), weights(&free));
}

#[test]
fn the_penalty_is_added_in_fp32_to_matrices_alone() {
    // Weights of 1e-4 and a scale of 1e-4: a gradient of 1e-8, which is 0 in f16.
    let small = |_: &str, value: Tensor<1>| value.ones_like().mul_scalar(1e-4f32);
    let start = || parameters::update(Toy::new(1), small);
    // A batch of one row with factor 0: the loss gives the embedding no gradient, and the output
    // equals the targets.
    let batch = Batch { ids: vec![0], targets: vec![1e-4; WIDTH], factor: 0.0, dropout: false };
    let of = |l2: Option<f64>, embeddings: bool| {
        let spec =
            l2.map(|scale| RegularizerSpec::L2 { scale, recurrent: true, embeddings, norm_scales: false });
        let mut phase = phase(&sgd(), &constant(1e3), &LossScalingSpec::None).regularized(spec.as_ref());
        weights(&step(&mut phase, start(), std::slice::from_ref(&batch), F16).0)
    };
    let run = |l2| of(l2, true);
    let (with, without) = (run(Some(1e-4)), run(None));
    let others = of(Some(1e-4), false);
    assert_eq!((others["embedding"][5], others["hidden"][5]), (1e-4, with["hidden"][5]));
    for path in ["embedding", "hidden"] {
        assert_eq!(without[path][5], 1e-4);
        // 1e-4 - 1000 x 1e-8.
        assert!((with[path][5] - 9e-5).abs() < 1e-10, "{path} {}", with[path][5]);
    }
    assert_eq!(with["bias"], without["bias"]);
    let half = Tensor::<1>::from_data([1e-8f32], &Device::flex()).cast(FloatDType::F16);
    assert_eq!(parameters::host_values(half)[0], 0.0, "control: in f16 this gradient does not exist");
}

/// Caffe's LeNet: `lr_mult` 2, `decay_mult` 1.
#[test]
fn biases_have_a_rate_of_their_own_and_the_decay_of_all() {
    let start = || parameters::update(Toy::new(1), |_, value: Tensor<1>| value.ones_like());
    let run = |rule: &OptimizerSpec, batch: &Batch, bias_lr: Option<f64>| {
        let mut phase = phase(rule, &constant(0.125), &LossScalingSpec::None).with_bias_lr(bias_lr);
        let (model, report) = step(&mut phase, start(), std::slice::from_ref(batch), Compute::FP32);
        assert_eq!(report.lr, 0.125);
        weights(&model)
    };
    // Of the second batch no parameter has a gradient: the output equals the targets.
    let (moving, still) =
        (plain(0), Batch { ids: vec![0], targets: vec![1.0; WIDTH], factor: 0.0, dropout: false });
    for (momentum, velocity) in
        [(0.0, Velocity::Gradients), (0.5, Velocity::Gradients), (0.5, Velocity::Steps)]
    {
        let rule = |weight_decay| OptimizerSpec::Sgd { momentum, weight_decay, nesterov: false, velocity };
        let [none, one, two] = [Some(0.0), None, Some(2.0)].map(|factor| run(&rule(0.0), &moving, factor));
        for path in ["embedding", "hidden"] {
            assert_eq!(one[path], two[path], "{path}");
            assert_ne!(one[path], weights(&start())[path], "{path}");
        }
        for (one, two) in one["bias"].iter().zip(&two["bias"]) {
            assert!(*one != 1.0 && (2.0 * (one - 1.0) - (two - 1.0)).abs() < 1e-6, "{one} {two}");
        }
        assert_eq!(none["bias"], [1.0; WIDTH], "a rate of 0");
        // 1 - 0.125 x 0.25 and, for a bias, 1 - 2 x 0.125 x 0.25.
        let decayed = run(&rule(0.25), &still, Some(2.0));
        assert_eq!((decayed["hidden"][0], decayed["bias"][0]), (0.968_75, 0.937_5));
    }
}

#[test]
fn terms_must_match_the_counts() {
    struct Wrong;
    impl Objective<Small, ()> for Wrong {
        fn counts(&self, _: &()) -> Vec<(&'static str, f64)> {
            vec![("other", 1.0)]
        }
        fn terms(&self, model: &Small, batch: &(), pass: &mut Pass) -> Vec<Term> {
            TinyGradient.terms(model, batch, pass)
        }
    }
    let device = Device::flex();
    let batches = [MicroBatch { position: 0, batch: () }];
    let run = |objective: Box<dyn Objective<Small, ()> + Send>| {
        let model = Small { w: Param::from_tensor(Tensor::zeros([2, 1], &device)) };
        let scaler = LossScaler::new(&LossScalingSpec::None).unwrap();
        let mut phase = Phase::single(objective, &sgd(), &constant(1.0), scaler, None).unwrap();
        run_phase(&mut phase, (0, 1), model, &batches, around(Compute::FP32, 1), &mut Local, &mut Unwatched)
            .map(|_| ())
    };
    assert!(matches!(run(Box::new(Wrong)), Err(TrainError::Terms { .. })));
    // A model outside autodiff cannot be trained, and the error states this.
    assert!(matches!(run(Box::new(TinyGradient)), Err(TrainError::Untracked(_))));
}

/// A reducer that sums over threads, in the order of their ranks.
struct Threads {
    rank: u32,
    world: u32,
    board: Arc<(Barrier, Mutex<Vec<Vec<f64>>>)>,
}

impl Threads {
    fn group(world: u32) -> Vec<Self> {
        let board = Arc::new((Barrier::new(world as usize), Mutex::new(vec![Vec::new(); world as usize])));
        (0..world).map(|rank| Self { rank, world, board: board.clone() }).collect()
    }

    fn exchange(&self, mine: Vec<f64>) -> Vec<f64> {
        self.board.1.lock().unwrap()[self.rank as usize] = mine;
        self.board.0.wait();
        let all = self.board.1.lock().unwrap().clone();
        self.board.0.wait();
        assert!(all.iter().all(|values| values.len() == all[0].len()), "workers sum buffers of one length");
        (0..all[0].len()).map(|i| all.iter().map(|values| values[i]).sum()).collect()
    }
}

impl Reducer for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }
    fn world(&self) -> u32 {
        self.world
    }
    fn sum(&mut self, buckets: &mut [Flat]) -> Result<(), ReduceError> {
        for bucket in buckets {
            let sum = self.exchange(bucket.to_vec().into_iter().map(f64::from).collect());
            *bucket = Flat::Host(sum.into_iter().map(|x| x as f32).collect());
        }
        Ok(())
    }
    fn sum_values(&mut self, values: &mut [f64]) -> Result<(), ReduceError> {
        values.copy_from_slice(&self.exchange(values.to_vec()));
        Ok(())
    }
}

/// Three updates of `groups` on `world` workers. Returns the weights of each worker and the last
/// report of rank 0.
fn distributed(world: u32, groups: &[Vec<Batch>]) -> (Vec<Toy>, PhaseReport) {
    let workers = Threads::group(world).into_iter().map(|mut reducer| {
        let groups = groups.to_vec();
        std::thread::spawn(move || {
            let mut phase = phase(&ADAM, &warm_up(), &backoff(64.0)).clipped(Some(0.5));
            phase.running = None;
            let (mut model, mut last, mut micro_step) = (Toy::new(1), None, 0);
            for batches in groups {
                let mut mine = micro(&batches);
                mine.retain(|m| m.position % u64::from(world) == u64::from(reducer.rank()));
                let around = Surroundings { micro_step, ..around(Compute::FP32, batches.len()) };
                micro_step += batches.len() as u64;
                let (moved, report) =
                    run_phase(&mut phase, (0, 1), model, &mine, around, &mut reducer, &mut Unwatched)
                        .unwrap();
                (model, last) = (moved, Some(report));
            }
            (model, last.unwrap())
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut results: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    let report = results[0].1.clone();
    (results.drain(..).map(|(model, _)| model).collect(), report)
}

#[test]
fn two_workers_equal_one_with_twice_the_batches_dropout_and_all() {
    // The last group has one batch: the second worker has none.
    let groups: Vec<Vec<Batch>> = vec![
        (0..4).map(|i| Batch::draw(5, 0, i)).collect(),
        (4..8).map(|i| Batch::draw(5, 0, i)).collect(),
        vec![Batch::draw(5, 0, 8)],
    ];
    let (one, single) = distributed(1, &groups);
    let (two, double) = distributed(2, &groups);
    assert_eq!(weights(&two[0]), weights(&two[1]), "all workers have the same bits");
    assert!(largest_difference(&one[0], &Toy::new(1)) > 1e-3);
    assert!(largest_difference(&one[0], &two[0]) < 2e-6, "{}", largest_difference(&one[0], &two[0]));
    assert!((single.loss() / double.loss() - 1.0).abs() < 1e-5);
    assert_eq!(single.terms[0].count, double.terms[0].count);
}

/// Records the reported parts.
#[derive(Default)]
struct Told(Vec<Part>);

impl Watch for Told {
    fn ended(&mut self, part: Part) -> Result<(), TrainError> {
        self.0.push(part);
        Ok(())
    }
}

#[test]
fn a_watch_is_told_of_every_part_and_of_those_of_a_skipped_update() {
    let told = |factor| {
        let batches: Vec<Batch> = (0..2).map(|index| Batch { factor, ..plain(index) }).collect();
        let mut phase = phase(&sgd(), &constant(0.1), &LossScalingSpec::None);
        let mut told = Told::default();
        let around = around(Compute::FP32, 2);
        let (_, report) =
            run_phase(&mut phase, (0, 1), Toy::new(1), &micro(&batches), around, &mut Local, &mut told)
                .unwrap();
        (report.skipped, told.0)
    };
    let expected = vec![Part::Forward, Part::Backward, Part::Forward, Part::Backward, Part::Update];
    assert_eq!(told(1.0), (false, expected.clone()));
    assert_eq!(told(f32::NAN), (true, expected));
}
