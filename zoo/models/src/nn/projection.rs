//! The steps of an LSTM layer whose outputs are projected.

use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, tanh};

use super::LstmState;
use crate::Pass;
use crate::ops::{self, Sequences};
use crate::precision::to_f32;

/// Runs the steps. `gates` `[rows, 4 hidden]` is the input's part of the gates i, f, g, o with
/// every bias; `weight_hh` is `[4 hidden, width]` and `projection` `[width, hidden]`:
///
/// c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = projection (sigmoid(o) tanh(c')).
///
/// Returns the outputs `[rows, width]` in the compute type, and the last state of each sequence.
///
/// # Panics
/// If the sequences have different lengths, or are read backwards.
pub(super) fn projected_steps(
    gates: Tensor<2>,
    [weight_hh, projection]: [Tensor<2>; 2],
    sequences: &Sequences,
    state: Option<LstmState>,
    pass: &Pass,
) -> (Tensor<2>, LstmState) {
    let ([width, hidden], device, compute) = (projection.dims(), gates.device(), pass.compute);
    let (count, steps) = (sequences.count(), sequences.steps());
    let in_order = steps == 0 || (0..count).all(|sequence| sequences.row(sequence, 0) == sequence * steps);
    assert!(in_order && sequences.rows() == count * steps, "projected sequences of one length");
    let zeros = |width: usize| Tensor::zeros([count, width], &device);
    let LstmState { mut h, mut c } = state.unwrap_or_else(|| LstmState { h: zeros(width), c: zeros(hidden) });
    let gates = gates.reshape([count, steps, 4 * hidden]);
    let mut outputs = Vec::with_capacity(steps);
    for step in 0..steps {
        let input = gates.clone().narrow(1, step, 1).reshape([count, 4 * hidden]);
        let before = ops::linear(h, weight_hh.clone(), None, pass);
        let sums = to_f32(input) + to_f32(before);
        let gate = |at: usize| sums.clone().narrow(1, at * hidden, hidden);
        let candidate = sigmoid(gate(0)) * tanh(gate(2));
        c = ops::stored(sigmoid(gate(1)) * c + candidate, compute);
        let shown = ops::stored(sigmoid(gate(3)) * tanh(c.clone()), compute);
        h = ops::linear(shown, projection.clone(), None, pass);
        outputs.push(h.clone().reshape([count, 1, width]));
    }
    let out = match outputs.is_empty() {
        true => compute.cast(Tensor::zeros([0, width], &device)),
        false => Tensor::cat(outputs, 1).reshape([count * steps, width]),
    };
    (out, LstmState { h: to_f32(h), c })
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use crate::Pass;
    use crate::nn::{Biases, Init, Lstm, Recurrent};
    use crate::ops::Sequences;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;

    const WIDTHS: [usize; 3] = [4, 6, 3];

    fn rows(count: usize) -> burn::tensor::Tensor<2> {
        let key = Key::new(3, 1, 0);
        let values: Vec<f32> = (0..count * WIDTHS[0]).map(|i| key.normal(i as u32)).collect();
        burn::tensor::Tensor::from_data(TensorData::new(values, [count, WIDTHS[0]]), &Device::flex())
    }

    fn layer() -> Lstm {
        let init = Init::new(1, &Device::flex());
        let [input, hidden, width] = WIDTHS;
        Lstm::projected(&init, [input, hidden, width], Biases::OneOfZeros, [0.5, 0.7], Some(1.0))
    }

    #[test]
    fn steps_are_those_of_the_whole() {
        let (layer, pass, x) = (layer(), Pass::evaluation(Compute::FP32), rows(6));
        let (whole, last) = layer.forward(x.clone(), &Sequences::new(&[3, 3]), None, &pass);
        let whole = host_values(whole);
        let mut state = None;
        for step in 0..3 {
            let parts = [step, 3 + step].map(|row| x.clone().narrow(0, row, 1));
            let (out, next) = layer.step(burn::tensor::Tensor::cat(parts.into(), 0), state, &pass);
            let due = [step, 3 + step].map(|row| &whole[row * WIDTHS[2]..][..WIDTHS[2]]).concat();
            assert_eq!(host_values(out), due);
            state = Some(next);
        }
        let state = state.unwrap();
        assert_eq!(host_values(state.c), host_values(last.c));
        assert_eq!(host_values(state.h), host_values(last.h));
    }

    /// With an identity matrix as projection, the layer equals one without a projection.
    #[test]
    fn an_identity_changes_nothing() {
        let (device, pass) = (Device::flex(), Pass::evaluation(Compute::FP32));
        let init = Init::new(1, &device);
        let plain = Lstm::new(&init, 4, 6, Biases::Two, 0.5, None);
        let mut projected = Lstm::projected(&init, [4, 6, 6], Biases::Two, [0.5, 0.7], None);
        assert_eq!(host_values(plain.weight_hh.val()), host_values(projected.weight_hh.val()));
        let ones = burn::tensor::Tensor::eye(6, &device);
        projected.weight_hr = projected.weight_hr.map(|weight| weight.map(|_| ones.clone()));
        let sequences = Sequences::new(&[3, 3]);
        let [one, other] =
            [&plain, &projected].map(|layer| host_values(layer.forward(rows(6), &sequences, None, &pass).0));
        assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-6), "{one:?} {other:?}");
    }

    #[test]
    #[should_panic(expected = "of one length")]
    fn sequences_of_different_lengths_are_refused() {
        layer().forward(rows(5), &Sequences::new(&[3, 2]), None, &Pass::evaluation(Compute::FP32));
    }
}
