//! An LSTM layer with layer norms of its gates and of its cell state.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, tanh};

use super::{Init, LayerNorm, LstmState};
use crate::Pass;
use crate::ops;
use crate::precision::to_f32;

/// Sizes and options of a [`LayerNormLstm`].
#[derive(Debug, Clone, Copy)]
pub struct LayerNormLstmSpec {
    /// Width of the input.
    pub input: usize,
    /// Number of units.
    pub hidden: usize,
    /// Number that is added to the forget gate before its sigmoid.
    pub forget_bias: f64,
    /// Dropout of the candidate, new at every step (Semeniuta et al. 2016).
    pub candidate_dropout: f64,
    /// Epsilon of the layer norms.
    pub epsilon: f64,
}

/// One layer of layer-normalised LSTM units without biases (Ba et al. 2016; OpenSeq2Seq's
/// `WeightDropLayerNormBasicLSTMCell`). Each gate and the candidate are normalised over the units
/// before their nonlinearity, and so is the new cell state before it is stored:
///
/// c' = norm(c sigmoid(norm(f) + forget bias) + sigmoid(norm(i)) dropout(tanh(norm(j)))),
/// h' = tanh(c') sigmoid(norm(o)).
///
/// The rows of the weights are those of the gates i, j, f, o.
#[derive(Module, Debug)]
pub struct LayerNormLstm {
    /// Shape `[4 hidden, in]`.
    pub weight_ih: Param<Tensor<2>>,
    /// Shape `[4 hidden, hidden]`.
    pub weight_hh: Param<Tensor<2>>,
    input_norm: LayerNorm,
    transform_norm: LayerNorm,
    forget_norm: LayerNorm,
    output_norm: LayerNorm,
    state_norm: LayerNorm,
    #[module(skip)]
    hidden: usize,
    #[module(skip)]
    forget_bias: f64,
    #[module(skip)]
    candidate_dropout: f64,
}

impl LayerNormLstm {
    /// Builds a layer with Glorot uniform weights. In the source both weights are one matrix, whose
    /// sizes give the bound.
    pub fn new(init: &Init, spec: LayerNormLstmSpec) -> Self {
        let LayerNormLstmSpec { input, hidden, forget_bias, candidate_dropout, epsilon } = spec;
        let bound = (6.0 / (input + hidden + 4 * hidden) as f64).sqrt();
        let norm = |name: &str| LayerNorm::new(&init.at(name), hidden, epsilon);
        Self {
            weight_ih: init.at("weight_ih").uniform([4 * hidden, input], bound),
            weight_hh: init.at("weight_hh").uniform([4 * hidden, hidden], bound),
            input_norm: norm("input_norm"),
            transform_norm: norm("transform_norm"),
            forget_norm: norm("forget_norm"),
            output_norm: norm("output_norm"),
            state_norm: norm("state_norm"),
            hidden,
            forget_bias,
            candidate_dropout,
        }
    }

    /// x `[rows x steps, in]`, the steps of a row one after the other -> outputs `[rows x steps,
    /// hidden]` in FP32, and the last state. Without a state the rows begin with zeros. Products
    /// are in the compute type; in FP16, outputs, states and the results of norms are rounded as
    /// they are stored.
    pub fn forward(
        &self,
        x: Tensor<2>,
        rows: usize,
        state: Option<LstmState>,
        pass: &mut Pass,
    ) -> (Tensor<2>, LstmState) {
        self.forward_over(x, rows, state, &[], pass)
    }

    /// Like [`Self::forward`], but a row keeps its state over the steps whose mask has 0 for it.
    /// `masks` has a column `[rows, 1]` of zeros and ones for each step; no mask reads all rows. No
    /// masks read all steps.
    pub fn forward_over(
        &self,
        x: Tensor<2>,
        rows: usize,
        state: Option<LstmState>,
        masks: &[Option<Tensor<2>>],
        pass: &mut Pass,
    ) -> (Tensor<2>, LstmState) {
        let (device, compute, width) = (x.device(), pass.compute, 4 * self.hidden);
        let steps = x.dims()[0] / rows.max(1);
        // The input's part of the gates, for all steps at once.
        let gates = ops::linear(x, self.weight_ih.val(), None, pass).reshape([rows, steps, width]);
        let zeros = || Tensor::zeros([rows, self.hidden], &device);
        let LstmState { mut h, mut c } = state.unwrap_or_else(|| LstmState { h: zeros(), c: zeros() });
        let mut outputs = Vec::with_capacity(steps);
        for step in 0..steps {
            let input = gates.clone().narrow(1, step, 1).reshape([rows, width]);
            let before = ops::linear(h.clone(), self.weight_hh.val(), None, pass);
            let sums = ops::stored(to_f32(input) + to_f32(before), compute);
            let gate = |at: usize, norm: &LayerNorm| {
                let gate = sums.clone().narrow(1, at * self.hidden, self.hidden);
                ops::stored(norm.forward(gate), compute)
            };
            let open = sigmoid(gate(0, &self.input_norm));
            let candidate = tanh(gate(1, &self.transform_norm));
            let kept = sigmoid(gate(2, &self.forget_norm) + self.forget_bias);
            let shown = sigmoid(gate(3, &self.output_norm));
            let candidate = ops::dropout(candidate, self.candidate_dropout, pass);
            let cell = ops::stored(c.clone() * kept + open * candidate, compute);
            let new = ops::stored(self.state_norm.forward(cell), compute);
            let shown = ops::stored(tanh(new.clone()) * shown, compute);
            (h, c) = match masks.get(step) {
                Some(Some(read)) => (chosen(read, shown, h), chosen(read, new, c)),
                _ => (shown, new),
            };
            outputs.push(h.clone().reshape([rows, 1, self.hidden]));
        }
        let out = match outputs.is_empty() {
            true => Tensor::zeros([0, self.hidden], &device),
            false => Tensor::cat(outputs, 1).reshape([rows * steps, self.hidden]),
        };
        (out, LstmState { h, c })
    }
}

/// `new` in the rows whose mask is 1, else `old`.
fn chosen(mask: &Tensor<2>, new: Tensor<2>, old: Tensor<2>) -> Tensor<2> {
    new * mask.clone() + old * (mask.clone().neg() + 1.0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::{count, host_values};
    use crate::precision::Compute;
    use crate::random::Key;

    fn layer(candidate_dropout: f64) -> LayerNormLstm {
        let spec =
            LayerNormLstmSpec { input: 4, hidden: 5, forget_bias: 1.0, candidate_dropout, epsilon: 1e-12 };
        LayerNormLstm::new(&Init::new(1, &Device::flex()), spec)
    }

    fn rows(count: usize) -> Tensor<2> {
        let key = Key::new(3, 1, 0);
        let values: Vec<f32> = (0..count * 4).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, [count, 4]), &Device::flex())
    }

    #[test]
    fn steps_are_those_of_the_whole_and_states_have_unit_variance() {
        let (layer, x) = (layer(0.0), rows(6));
        let mut pass = Pass::evaluation(Compute::FP32);
        let (whole, last) = layer.forward(x.clone(), 2, None, &mut pass);
        let whole = host_values(whole);
        let mut state = None;
        for step in 0..3 {
            let now = Tensor::cat(vec![x.clone().narrow(0, step, 1), x.clone().narrow(0, 3 + step, 1)], 0);
            let (out, next) = layer.forward(now, 2, state, &mut pass);
            let due: Vec<f32> =
                [step, 3 + step].iter().flat_map(|row| &whole[row * 5..][..5]).copied().collect();
            assert_eq!(host_values(out), due);
            state = Some(next);
        }
        let LstmState { c, .. } = state.unwrap();
        assert_eq!(host_values(c), host_values(last.c.clone()));
        for row in host_values(last.c).chunks(5) {
            let (mean, square) =
                (row.iter().sum::<f32>() / 5.0, row.iter().map(|x| x * x).sum::<f32>() / 5.0);
            assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-4, "{mean} {square}");
        }
    }

    #[test]
    fn a_row_keeps_its_state_over_steps_without_a_word() {
        let (layer, x) = (layer(0.0), rows(8));
        let mut pass = Pass::evaluation(Compute::FP32);
        // Two rows of four steps. The first one has words at 1 and 2, the second one at all steps.
        let mask = |read: f32| {
            Some(Tensor::<2>::from_data(TensorData::new(vec![read, 1.0], [2, 1]), &Device::flex()))
        };
        let masks = [mask(0.0), mask(1.0), None, mask(0.0)];
        let (out, last) = layer.forward_over(x.clone(), 2, None, &masks, &mut pass);
        let (_, words) = layer.forward(x.clone().narrow(0, 1, 2), 1, None, &mut pass);
        let (all, whole) = layer.forward(x.narrow(0, 4, 4), 1, None, &mut pass);
        for (found, short, long) in [(last.h, words.h, whole.h), (last.c, words.c, whole.c)] {
            let due = [host_values(short), host_values(long)].concat();
            assert_close(&host_values(found), &due);
        }
        let out = host_values(out);
        assert!(out[..5].iter().all(|x| *x == 0.0), "nothing is read yet: {:?}", &out[..5]);
        assert_eq!(out[10..15], out[15..20]);
        assert_close(&out[20..], &host_values(all));
    }

    fn assert_close(found: &[f32], due: &[f32]) {
        assert_eq!(found.len(), due.len());
        assert!(found.iter().zip(due).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {due:?}");
    }

    #[test]
    fn a_layer_has_one_matrix_and_ten_vectors() {
        assert_eq!(count(&layer(0.0)), (4 + 5) * 20 + 10 * 5);
        let bound = (6.0f32 / 29.0).sqrt();
        let weights = host_values(layer(0.0).weight_hh.val());
        let largest = weights.iter().fold(0f32, |most, x| most.max(x.abs()));
        assert!(largest <= bound && largest > 0.9 * bound, "{largest} {bound}");
    }

    #[test]
    fn the_candidate_is_dropped_anew_at_each_step_and_not_in_evaluation() {
        let run = |rate, mut pass: Pass| host_values(layer(rate).forward(rows(6), 2, None, &mut pass).0);
        let plain = run(0.0, Pass::training(Compute::FP32, 1, 0));
        assert_eq!(run(0.5, Pass::evaluation(Compute::FP32)), plain);
        assert_ne!(run(0.5, Pass::training(Compute::FP32, 1, 0)), plain);
        assert_ne!(
            run(0.5, Pass::training(Compute::FP32, 1, 0)),
            run(0.5, Pass::training(Compute::FP32, 1, 1))
        );
    }
}
