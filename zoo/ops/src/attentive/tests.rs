//! Kernels agree with the composition, and sequences are independent.

use burn::tensor::{Device, FloatDType, TensorData};

use super::*;
use crate::parameters::host_values;
use crate::random::Key;

const HIDDEN: usize = 37;
const UNITS: usize = 21;
const WIDTH: usize = 19;
const STEPS: usize = 5;
const LENGTHS: [u32; 3] = [7, 1, 12];

fn draw<const D: usize>(stream: u64, shape: [usize; D], size: f32) -> Tensor<D> {
    let key = Key::new(17, stream, 0);
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|i| size * key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff()).require_grad()
}

#[derive(Clone, Copy, Debug)]
struct Case {
    layers: usize,
    channels: usize,
    taps: usize,
    dropout: f64,
    state_dropout: bool,
    compute: Compute,
}

/// Output, weights, and the gradients of all inputs.
fn run(case: Case, own: bool, lengths: &[u32]) -> Vec<Vec<f32>> {
    let rows: usize = lengths.iter().map(|&n| n as usize).sum();
    let gates = draw(1, [lengths.len() * STEPS, 4 * HIDDEN], 0.5);
    let first = draw(2, [4 * HIDDEN, WIDTH + HIDDEN], 0.2);
    let second = draw(3, [4 * HIDDEN, 2 * HIDDEN], 0.2);
    let second_bias = draw(4, [4 * HIDDEN], 0.5);
    let (keys, values) = (draw(5, [rows, UNITS], 0.5), draw(6, [rows, WIDTH], 1.0));
    let query = draw(7, [UNITS, HIDDEN], 0.5);
    let filter = draw(8, [UNITS, case.channels * case.taps], 1.0);
    let (bias, vector) = (draw(9, [UNITS], 0.5), draw(10, [UNITS], 1.0));
    let mut layers = vec![AttentiveLayer { weight: first.clone(), bias: None }];
    if case.layers == 2 {
        layers.push(AttentiveLayer { weight: second.clone(), bias: Some(second_bias.clone()) });
    }
    let weights = AttentiveWeights {
        layers,
        query: query.clone(),
        filter: filter.clone(),
        bias: bias.clone(),
        vector: vector.clone(),
    };
    let source = Source { keys: keys.clone(), values: values.clone(), lengths: lengths.to_vec() };
    let spec =
        AttentiveSpec { channels: case.channels, dropout: case.dropout, state_dropout: case.state_dropout };
    let mut pass = Pass::training(case.compute, 3, 4);
    assert!(has_own_kernels(&gates.device()));
    let (out, looks) = match own {
        true => attentive_lstm(gates.clone(), &weights, &source, spec, &mut pass),
        false => {
            let masks = weights.layers.iter().map(|_| Mask::draw(case.dropout, &mut pass)).collect();
            let plan = Plan {
                lengths: lengths.to_vec(),
                channels: case.channels,
                masks,
                state_dropout: case.state_dropout,
                compute: case.compute,
                kept: None,
            };
            composed::attentive(gates.clone(), &weights, &source, &plan)
        }
    };
    let upstream = |stream: u64, of: &Tensor<2>| Tensor::from_inner(draw(stream, of.dims(), 1.0).inner());
    let (of_out, of_looks) = (upstream(11, &out), upstream(12, &looks));
    let grads = ((out.clone() * of_out).sum() + (looks.clone() * of_looks).sum()).backward();
    let mut found = vec![host_values(out.inner()), host_values(looks.inner())];
    let matrices = [Some(gates), Some(first), (case.layers == 2).then_some(second), Some(keys), Some(values)];
    let matrices = matrices.into_iter().flatten().chain([query, filter]);
    found.extend(matrices.map(|x| host_values(x.grad(&grads).unwrap())));
    let vectors = [(case.layers == 2).then_some(second_bias), Some(bias), Some(vector)];
    found.extend(vectors.into_iter().flatten().map(|x| host_values(x.grad(&grads).unwrap())));
    found
}

fn cases(compute: Compute) -> Vec<Case> {
    let mut cases = Vec::new();
    for (layers, channels, taps) in [(1, 2, 5), (2, 1, 4), (2, 2, 31), (1, 1, 1)] {
        for (dropout, state_dropout) in [(0.0, false), (0.3, false), (0.3, true)] {
            cases.push(Case { layers, channels, taps, dropout, state_dropout, compute });
        }
    }
    cases
}

fn apart(found: &[f32], due: &[f32]) -> f32 {
    assert_eq!(found.len(), due.len());
    let largest = due.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
    found.iter().zip(due).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max)
}

/// FP32 sums of some dozens of products in different orders, through five steps.
#[test]
fn kernels_agree_with_their_composition() {
    for case in cases(Compute::FP32) {
        let (own, composed) = (run(case, true, &LENGTHS), run(case, false, &LENGTHS));
        assert_eq!(own.len(), if case.layers == 2 { 12 } else { 10 });
        for (i, (own, composed)) in own.iter().zip(&composed).enumerate() {
            let apart = apart(own, composed);
            assert!(apart < 2e-5, "{case:?}, number {i}: {apart}");
        }
    }
}

/// Operands are rounded at the same places. Where an earlier product differs by one rounding, later
/// values differ too.
#[test]
fn kernels_agree_in_halves() {
    for (half, limit) in [(FloatDType::BF16, 4e-2), (FloatDType::F16, 5e-3)] {
        for case in cases(Compute(half)) {
            let (own, composed) = (run(case, true, &LENGTHS), run(case, false, &LENGTHS));
            for (i, (own, composed)) in own.iter().zip(&composed).enumerate() {
                let apart = apart(own, composed);
                assert!(apart < limit, "{case:?}, number {i}: {apart}");
            }
        }
    }
}

#[test]
fn weights_of_a_step_sum_to_one_and_a_sequence_depends_on_no_other() {
    let case = cases(Compute::FP32)[0];
    let together = run(case, true, &LENGTHS);
    for (step, weights) in together[1].chunks(20).enumerate() {
        let (first, rest) = weights.split_at(7);
        for of_source in [first, &rest[..1], &rest[1..]] {
            assert!((of_source.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{step}");
        }
    }
    // The rows of the first source do not depend on the other sources.
    let alone = run(case, true, &LENGTHS[..1]);
    let size = STEPS * (HIDDEN + WIDTH);
    assert_eq!(together[0][..size], alone[0][..size]);
}
