//! Kernels agree with the composition, and sequences are independent.

use burn::tensor::{DType, Device, FloatDType, TensorData};

use super::*;
use crate::parameters::host_values;
use crate::precision::Compute;
use crate::random::Key;

const BF16: Compute = Compute(FloatDType::BF16);
const FP16: Compute = Compute(FloatDType::F16);
/// More than one tile of units, with an incomplete last one; several panels of rows.
const HIDDEN: usize = 37;
const LENGTHS: [u32; 7] = [3, 9, 0, 1, 9, 4, 2];
/// All sequences have the first step.
const NONE_EMPTY: [u32; 4] = [2, 5, 5, 3];

fn draw<const D: usize>(stream: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let key = Key::new(31, stream, 0);
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| 0.5 * key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Inputs of a run, and the parts of its loss.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    compute: Compute,
    lengths: &'static [u32],
    backwards: bool,
    initial: bool,
    biased: bool,
    /// Whether the outputs and the last states are part of the loss.
    asked: (bool, bool),
    mask: Option<Mask>,
}

/// Outputs, last states, and the gradients of gates, weight, bias and initial states.
fn run(case: Case, own: bool) -> Vec<Vec<f32>> {
    let device = Device::flex().autodiff();
    let Case { kind, compute, lengths, .. } = case;
    let sequences = Sequences::new(lengths);
    let sequences = if case.backwards { sequences.reversed() } else { sequences };
    let (rows, width) = (sequences.rows(), kind.gates() * HIDDEN);
    let gates = draw(1, [rows, width], &device).require_grad();
    let weight = (draw(2, [width, HIDDEN], &device) * 0.4).detach().require_grad();
    let bias = draw(3, [width], &device).require_grad();
    let initial = draw(4, [kind.states() * lengths.len(), HIDDEN], &device).require_grad();
    let pass = Pass::evaluation(compute);
    let x = compute.cast(gates.clone());
    let used = (case.biased.then(|| bias.clone()), case.initial.then(|| initial.clone()));
    let (out, last) = match own {
        true => recurrent(kind, x, weight.clone(), used.0, used.1, (&sequences, case.mask), &pass),
        false => composed::recurrent(kind, x, weight.clone(), used.0, used.1, (&sequences, case.mask), &pass),
    };
    assert_eq!((out.dtype(), last.dtype()), (DType::from(compute.0), DType::F32));
    let mut loss = Tensor::<1>::zeros([1], &device);
    if case.asked.0 {
        loss = loss + (to_f32(out.clone()) * draw(5, [rows, HIDDEN], &device)).sum();
    }
    if case.asked.1 {
        loss = loss + (last.clone() * draw(6, last.dims(), &device)).sum();
    }
    let grads = loss.backward();
    let mut found = vec![host_values(out.inner()), host_values(last.inner())];
    found.push(host_values(gates.grad(&grads).unwrap()));
    found.push(host_values(weight.grad(&grads).unwrap()));
    found.extend(case.biased.then(|| host_values(bias.grad(&grads).unwrap())));
    found.extend(case.initial.then(|| host_values(initial.grad(&grads).unwrap())));
    found
}

fn cases(compute: Compute) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::Lstm, Kind::HardLstm, Kind::Gru] {
        for (backwards, initial, biased) in [(false, false, false), (false, true, true), (true, true, false)]
        {
            for asked in [(true, true), (true, false), (false, true)] {
                for lengths in [&LENGTHS[..], &NONE_EMPTY] {
                    let case = Case { kind, compute, lengths, backwards, initial, biased, asked, mask: None };
                    cases.push(case);
                    if kind != Kind::Gru {
                        cases.push(Case { mask: Some(Mask::new(Key::new(5, 6, 7), 0.3)), ..case });
                    }
                }
            }
        }
    }
    cases
}

fn hold_together(compute: Compute, limit: f32) {
    for case in cases(compute) {
        for (i, (own, composed)) in run(case, true).iter().zip(&run(case, false)).enumerate() {
            let largest = composed.iter().fold(0f32, |most, x| most.max(x.abs()));
            assert_eq!(own.len(), composed.len());
            for (a, b) in own.iter().zip(composed) {
                assert!((a - b).abs() <= limit * largest, "{case:?}, tensor {i}: {a} {b} of {largest}");
            }
        }
    }
}

/// FP32 sums in different orders, and different exponential functions, through nine steps.
#[test]
fn kernel_and_composition_agree_in_fp32() {
    hold_together(Compute::FP32, 3e-6);
}

/// The composition rounds every product to bf16 before adding it to the input's part; the kernel
/// does not. A unit of bf16 is 1/128.
#[test]
fn kernel_and_composition_agree_in_bf16() {
    hold_together(BF16, 0.03);
}

/// As for bf16, with the unit 1/1024 of fp16.
#[test]
fn kernel_and_composition_agree_in_fp16() {
    hold_together(FP16, 0.004);
}

/// Outputs, last states, and the gradients of the gates: all results that belong to one sequence.
fn own_results(kind: Kind, compute: Compute, lengths: &[u32], first_row: usize) -> [Vec<f32>; 3] {
    let device = Device::flex().autodiff();
    let hidden = 70;
    let sequences = Sequences::new(lengths);
    let width = kind.gates() * hidden;
    let all = draw(7, [400, width], &device).inner();
    let gates = Tensor::from_inner(all.narrow(0, first_row, sequences.rows())).require_grad();
    let weight = draw(8, [width, hidden], &device) * 0.3;
    let pass = Pass::evaluation(compute);
    let x = compute.cast(gates.clone());
    let (out, last) = recurrent(kind, x, weight, None, None, (&sequences, None), &pass);
    let upstream = draw::<2>(9, [400, hidden], &device).narrow(0, first_row, sequences.rows());
    let grads = (to_f32(out.clone()) * upstream).sum().backward();
    [out.inner(), last.inner(), gates.grad(&grads).unwrap()].map(host_values)
}

#[test]
fn a_sequence_does_not_depend_on_its_batch_mates_bit_for_bit() {
    for kind in [Kind::Lstm, Kind::HardLstm, Kind::Gru] {
        for compute in [Compute::FP32, BF16, FP16] {
            let lengths: Vec<u32> = (0..40).map(|i| 1 + (i * 7) % 12).collect();
            let together = own_results(kind, compute, &lengths, 0);
            let mut first = 0;
            for (i, &length) in lengths.iter().enumerate() {
                let rows = length as usize;
                if i % 6 == 1 {
                    let alone = own_results(kind, compute, &[length], first);
                    for (together, alone) in [(&together[0], &alone[0]), (&together[2], &alone[2])] {
                        let width = alone.len() / rows;
                        assert_eq!(
                            together[first * width..][..rows * width],
                            alone[..],
                            "{kind:?} {compute:?}"
                        );
                    }
                    for state in 0..kind.states() {
                        let of = &together[1][(state * lengths.len() + i) * 70..][..70];
                        assert_eq!(*of, alone[1][state * 70..][..70]);
                    }
                }
                first += rows;
            }
        }
    }
}

#[test]
fn steps_one_by_one_are_the_sequence() {
    let device = Device::flex();
    let gates = draw(10, [12, 4 * HIDDEN], &device);
    let weight = draw(11, [4 * HIDDEN, HIDDEN], &device);
    let pass = Pass::evaluation(Compute::FP32);
    let (whole, last) = lstm(gates.clone(), weight.clone(), None, &Sequences::new(&[12]), &pass);
    let whole = host_values(whole);
    let mut state = None;
    for step in 0..12 {
        let x = gates.clone().narrow(0, step, 1);
        let (out, next) = lstm(x, weight.clone(), state, &Sequences::new(&[1]), &pass);
        assert_eq!(host_values(out), whole[step * HIDDEN..][..HIDDEN]);
        state = Some(next);
    }
    let (h, c) = state.unwrap();
    assert_eq!([h, c].map(host_values), [last.0, last.1].map(host_values));
}

#[test]
fn nothing_to_read_leaves_the_state() {
    let device = Device::flex();
    for lengths in [&[][..], &[0, 0]] {
        let sequences = Sequences::new(lengths);
        let h = draw(12, [lengths.len(), HIDDEN], &device);
        let (gates, weight) =
            (Tensor::zeros([0, 3 * HIDDEN], &device), draw(2, [3 * HIDDEN, HIDDEN], &device));
        let pass = Pass::evaluation(Compute::FP32);
        let (out, last) = gru(gates, weight, None, Some(h.clone()), &sequences, &pass);
        assert_eq!(out.dims(), [0, HIDDEN]);
        assert_eq!(host_values(last), host_values(h));
    }
}
