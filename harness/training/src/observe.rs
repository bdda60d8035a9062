//! Observation of the values of an update. A [`Watch`](crate::parts::Watch) may have an observer;
//! training has none. An observed update has the same bits as another one, but takes longer, and
//! reads its values from the device.

use std::sync::Arc;

use zoo_models::ops::OutputReceiver;

use crate::flat::{Flat, Magnitude};

/// Observer of the values of one update. Its methods are called in the order in which they stand
/// here.
pub trait Observer {
    /// Called before each forward pass. Returns the receiver of the gradients of layers' outputs,
    /// which are those of the loss times `scale`, and of the outputs if it asks for them.
    fn outputs(&mut self, scale: f64) -> Arc<dyn OutputReceiver>;

    /// Called with the gradient of each parameter that the update moves, also if the update is then
    /// skipped. It is summed over micro-batches and workers and divided by the loss scale, before
    /// regularisation and clipping. `largest` is its largest magnitude, where the update finds it and
    /// all values are finite.
    fn gradient(&mut self, path: &str, gradient: &[f32], largest: Option<f32>);

    /// Called with the values of each moved parameter before the optimizer's step.
    fn moves(&mut self, _path: &str, _before: &[f32]) {}

    /// Called with the values of the same parameter after the step.
    fn moved(&mut self, path: &str, after: &[f32]);
}

/// Hands the gradients of the parameters that have one to an observer. `magnitudes` has those of
/// these parameters, or is empty if they are not known.
pub(crate) fn hand_over(
    observer: &mut dyn Observer,
    paths: &[(String, Vec<usize>)],
    gradients: &[Option<Flat>],
    magnitudes: &[Magnitude],
) {
    let mut magnitudes = magnitudes.iter();
    for ((path, _), gradient) in paths.iter().zip(gradients) {
        if let Some(gradient) = gradient {
            let of_finite = magnitudes.next().filter(|magnitude| magnitude.square_sum.is_finite());
            observer.gradient(path, &gradient.on_host(), of_finite.map(|magnitude| magnitude.largest as f32));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use burn::module::{Module, Param};
    use burn::tensor::{Device, Tensor, TensorData};
    use zoo_models::precision::Compute;
    use zoo_models::{Objective, Pass, Term, ops, parameters};
    use zoo_recipes::{LossScalingSpec, OptimizerSpec, RegularizerSpec, ScheduleSpec, Velocity};

    use super::*;
    use crate::error::TrainError;
    use crate::flat::measure;
    use crate::parts::{Part, Unwatched, Watch};
    use crate::reduce::Local;
    use crate::scaling::LossScaler;
    use crate::update::{MicroBatch, Phase, Surroundings, run_phase};

    const INPUTS: [[f32; 2]; 2] = [[1.0, 2.0], [5.0, -4.0]];
    const WEIGHT: [f32; 4] = [0.5, -1.0, 2.0, 0.25];
    /// The outer product of (1, 3) and the mean of the inputs.
    const GRADIENT: [f32; 4] = [3.0, -1.0, 9.0, -3.0];

    #[derive(Module, Debug)]
    struct Layer {
        weight: Param<Tensor<2>>,
    }

    #[derive(Module, Debug)]
    struct Model {
        layer: Layer,
    }

    /// The sum of W x, times 1 and 3 for its two values: their gradients are 1 and 3.
    struct Weighted;

    impl Objective<Model, [f32; 2]> for Weighted {
        fn counts(&self, _: &[f32; 2]) -> Vec<(&'static str, f64)> {
            vec![("sum", 1.0)]
        }

        fn terms(&self, model: &Model, x: &[f32; 2], pass: &mut Pass) -> Vec<Term> {
            let weight = model.layer.weight.val();
            let device = weight.device();
            let y = ops::linear(Tensor::from_data([*x], &device), weight, None, pass);
            let sum = (y * Tensor::<2>::from_data([[1.0f32, 3.0]], &device)).sum();
            vec![Term { name: "sum", sum, weight: 1.0 }]
        }
    }

    /// What an observer is given, in order.
    #[derive(Debug, Clone, PartialEq)]
    enum Seen {
        Scale(f64),
        Output(String, Vec<f32>),
        Gradient(String, Vec<f32>, Option<f32>),
        Moves(String, Vec<f32>),
        Moved(String, Vec<f32>),
    }

    #[derive(Debug, Clone, Default)]
    struct Observing(Arc<Mutex<Vec<Seen>>>);

    impl Observing {
        fn saw(&self, seen: Seen) {
            self.0.lock().unwrap().push(seen);
        }
    }

    impl OutputReceiver for Observing {
        fn received(&self, layer: &str, gradient: &[f32]) {
            self.saw(Seen::Output(layer.to_owned(), gradient.to_vec()));
        }
    }

    impl Observer for Observing {
        fn outputs(&mut self, scale: f64) -> Arc<dyn OutputReceiver> {
            self.saw(Seen::Scale(scale));
            Arc::new(self.clone())
        }

        fn gradient(&mut self, path: &str, gradient: &[f32], largest: Option<f32>) {
            self.saw(Seen::Gradient(path.to_owned(), gradient.to_vec(), largest));
        }

        fn moves(&mut self, path: &str, before: &[f32]) {
            self.saw(Seen::Moves(path.to_owned(), before.to_vec()));
        }

        fn moved(&mut self, path: &str, after: &[f32]) {
            self.saw(Seen::Moved(path.to_owned(), after.to_vec()));
        }
    }

    impl Watch for Observing {
        fn ended(&mut self, _: Part) -> Result<(), TrainError> {
            Ok(())
        }

        fn observer(&mut self) -> Option<&mut dyn Observer> {
            Some(self)
        }
    }

    /// New weights of an update of two micro-batches by SGD with the rate 0.5, a loss scale of 8, an
    /// L2 penalty and clipping.
    fn updated(inputs: [[f32; 2]; 2], watch: &mut dyn Watch) -> Vec<f32> {
        let l2 = RegularizerSpec::L2 { scale: 0.5, recurrent: true, embeddings: true, norm_scales: true };
        updated_with(Some(&l2), inputs, watch)
    }

    /// The same with this penalty or without one.
    fn updated_with(l2: Option<&RegularizerSpec>, inputs: [[f32; 2]; 2], watch: &mut dyn Watch) -> Vec<f32> {
        let rule = OptimizerSpec::Sgd {
            momentum: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            velocity: Velocity::Gradients,
        };
        let scaler = LossScaler::new(&LossScalingSpec::Static { scale: 8.0 }).unwrap();
        let schedule = ScheduleSpec::Fixed { lr: 0.5 };
        let phase = Phase::single(Box::new(Weighted), &rule, &schedule, scaler, None).unwrap();
        let mut phase = phase.clipped(Some(1.0)).regularized(l2);
        let weight = TensorData::new(WEIGHT.to_vec(), [2, 2]);
        let weight = Param::from_tensor(Tensor::from_data(weight, &Device::flex().autodiff()));
        let model = Model { layer: Layer { weight } };
        let [first, second] = inputs;
        let batches = [(0, first), (1, second)].map(|(position, batch)| MicroBatch { position, batch });
        let around = Surroundings { compute: Compute::FP32, seed: 1, micro_step: 0, group: 2 };
        let (model, _) = run_phase(&mut phase, (0, 1), model, &batches, around, &mut Local, watch).unwrap();
        parameters::export(&model).swap_remove(0).values
    }

    /// The loss is the mean of two sums, so the gradient of an output is 8 / 2 times 1 and 3.
    #[test]
    fn an_observer_sees_gradients_before_penalty_and_clipping_and_the_step_after() {
        let mut observing = Observing::default();
        let after = updated(INPUTS, &mut observing);
        let output = || Seen::Output("layer".to_owned(), vec![4.0, 12.0]);
        let path = || "layer.weight".to_owned();
        let due = [
            Seen::Scale(8.0),
            output(),
            Seen::Scale(8.0),
            output(),
            Seen::Gradient(path(), GRADIENT.to_vec(), None),
            Seen::Moves(path(), WEIGHT.to_vec()),
            Seen::Moved(path(), after.clone()),
        ];
        assert_eq!(*observing.0.lock().unwrap(), due);
        assert_ne!(after, WEIGHT);
    }

    #[test]
    fn an_observer_is_told_the_largest_of_finite_gradients() {
        for (inputs, due) in [(INPUTS, Some(9.0)), ([[f32::INFINITY, 1.0], [1.0, 1.0]], None)] {
            let mut observing = Observing::default();
            updated_with(None, inputs, &mut observing);
            let seen = observing.0.lock().unwrap();
            let found = seen.iter().find_map(|seen| match seen {
                Seen::Gradient(_, gradient, largest) => Some((gradient.clone(), *largest)),
                _ => None,
            });
            let (gradient, largest) = found.unwrap();
            assert_eq!(largest, due);
            assert_eq!(gradient == GRADIENT, due.is_some(), "{gradient:?}");
        }
    }

    #[test]
    fn each_gradient_has_its_own_largest() {
        let paths = ["idle", "infinite", "finite"].map(|path| (path.to_owned(), vec![2]));
        let gradients = [None, Some(vec![f32::INFINITY, 1.0]), Some(vec![-4.0, 3.0])];
        let flats = gradients.map(|values| values.map(Flat::Host));
        let (magnitudes, _) = measure(&flats.iter().flatten().collect::<Vec<_>>(), Vec::new());
        let mut observing = Observing::default();
        hand_over(&mut observing, &paths, &flats, &magnitudes);
        let due = [
            Seen::Gradient("infinite".to_owned(), vec![f32::INFINITY, 1.0], None),
            Seen::Gradient("finite".to_owned(), vec![-4.0, 3.0], Some(4.0)),
        ];
        assert_eq!(*observing.0.lock().unwrap(), due);
    }

    #[test]
    fn an_observer_of_a_skipped_update_sees_gradients_and_no_step() {
        let mut observing = Observing::default();
        assert_eq!(updated([[f32::INFINITY, 1.0], [1.0, 1.0]], &mut observing), WEIGHT);
        let seen = observing.0.lock().unwrap();
        assert!(seen.iter().any(|seen| matches!(seen, Seen::Gradient(..))), "{seen:?}");
        assert!(!seen.iter().any(|seen| matches!(seen, Seen::Moves(..) | Seen::Moved(..))), "{seen:?}");
    }

    #[test]
    fn an_observed_update_has_the_bits_of_another_one() {
        assert_eq!(updated(INPUTS, &mut Observing::default()), updated(INPUTS, &mut Unwatched));
    }
}
