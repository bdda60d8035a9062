//! The kernel agrees with the sum over every alignment and with the composition, also in corner
//! cases.

use burn::tensor::{Device, FloatDType, TensorData};

use super::*;
use crate::parameters::host_values;
use crate::precision::to_f32;
use crate::random::Key;

fn logits(rows: usize, classes: usize, scale: f32, device: &Device) -> Tensor<2> {
    let key = Key::new(17, classes as u64, rows as u64);
    let values: Vec<f32> = (0..rows * classes).map(|i| scale * key.normal(i as u32)).collect();
    Tensor::from_data(TensorData::new(values, [rows, classes]), device).require_grad()
}

/// The sum, and the gradient of half of it.
fn run(x: &Tensor<2>, of: impl Fn(Tensor<2>) -> Tensor<1>) -> (f32, Vec<f32>) {
    let sum = of(x.clone());
    let value = host_values(sum.clone().inner())[0];
    (value, host_values(to_f32(x.grad(&(sum * 0.5).backward()).unwrap())))
}

fn assert_close(found: &(f32, Vec<f32>), expected: &(f32, Vec<f32>), limit: f32) {
    assert!((found.0 - expected.0).abs() < limit * (1.0 + expected.0.abs()), "{} {}", found.0, expected.0);
    for (a, b) in found.1.iter().zip(&expected.1) {
        assert!((a - b).abs() < limit, "{a} {b}");
    }
}

/// Labels without repeats and blanks.
fn collapsed(path: &[u32], blank: u32) -> Vec<u32> {
    let mut labels = path.to_vec();
    labels.dedup();
    labels.retain(|&class| class != blank);
    labels
}

#[test]
fn every_path_counts_once() {
    let (frames, classes, blank) = (6usize, 3usize, 1u32);
    let x = logits(frames, classes, 1.0, &Device::flex().autodiff());
    let mut rows: Vec<Vec<f64>> = host_values(x.clone().inner())
        .chunks(classes)
        .map(|row| row.iter().map(|&v| f64::from(v)).collect())
        .collect();
    for row in &mut rows {
        let mass: f64 = row.iter().map(|v| v.exp()).sum();
        row.iter_mut().for_each(|v| *v = v.exp() / mass);
    }
    for labels in [&[][..], &[0], &[2, 2], &[0, 2, 0], &[2, 0, 0, 2]] {
        let mut expected = 0.0;
        for number in 0..classes.pow(frames as u32) {
            let path: Vec<u32> =
                (0..frames as u32).map(|t| (number / classes.pow(t) % classes) as u32).collect();
            if collapsed(&path, blank) == labels {
                expected += path.iter().zip(&rows).map(|(&class, row)| row[class as usize]).product::<f64>();
            }
        }
        let utterances = Utterances::new(&[labels], &[(0, frames)], blank);
        let (loss, _) = run(&x, |x| ctc(x, &utterances));
        assert!((f64::from(loss) + expected.ln()).abs() < 1e-5, "{labels:?}: {loss} {}", -expected.ln());
    }
}

/// All label sequences that result from omitting optional labels.
fn ways(labels: &[u32], optional: u32) -> Vec<Vec<u32>> {
    let places: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == optional).collect();
    (0..1usize << places.len())
        .map(|kept| {
            let said =
                |i: &usize| places.iter().position(|place| place == i).is_none_or(|bit| kept >> bit & 1 == 1);
            (0..labels.len()).filter(said).map(|i| labels[i]).collect()
        })
        .collect()
}

#[test]
fn optional_labels_are_all_ways_together() {
    let (frames, classes, blank) = (9, 5, 4);
    let x = logits(frames, classes, 1.5, &Device::flex().autodiff());
    for labels in
        [&[0u32, 1, 0, 2, 0][..], &[0, 1, 0, 1, 0], &[1, 0, 2], &[0], &[0, 3], &[3, 0], &[1, 1, 0, 1]]
    {
        let (mut likelihood, mut expected) = (0.0, vec![0f64; frames * classes]);
        for way in ways(labels, 0) {
            let utterances = Utterances::new(&[&way], &[(0, frames)], blank);
            if utterances.alignable() == 0 {
                continue;
            }
            let (loss, gradient) = run(&x, |x| ctc(x, &utterances));
            let probability = f64::from(-loss).exp();
            likelihood += probability;
            expected.iter_mut().zip(gradient).for_each(|(to, slope)| *to += probability * f64::from(slope));
        }
        let utterances = Utterances::new(&[labels], &[(0, frames)], blank).with_optional(0);
        let (loss, gradient) = run(&x, |x| ctc(x, &utterances));
        assert!((f64::from(loss) + likelihood.ln()).abs() < 1e-5, "{labels:?}: {loss} {}", -likelihood.ln());
        for (slope, expected) in gradient.iter().zip(&expected) {
            assert!((f64::from(*slope) - expected / likelihood).abs() < 1e-6, "{labels:?}: {slope}");
        }
        assert_close(&run(&x, |x| composed::ctc(x, &utterances)), &(loss, gradient), 1e-7);
    }
}

#[test]
fn what_is_optional_needs_no_frames() {
    let count = |frames: usize| {
        Utterances::new(&[[0u32, 1, 0, 1, 0]], &[(0, frames)], 4).with_optional(0).alignable()
    };
    assert_eq!([2, 3].map(count), [0, 1]);
}

/// Utterances with unused rows between them; one that cannot be aligned; one without labels; one
/// without frames.
fn several() -> Utterances {
    let labels: [&[u32]; 5] = [&[3, 3, 1], &[2, 2, 2], &[], &[], &[5, 4, 0, 1]];
    Utterances::new(&labels, &[(20, 9), (2, 4), (40, 3), (43, 0), (6, 11)], 6)
}

#[test]
fn kernel_and_compositions_agree_in_value_and_gradient() {
    let device = Device::flex().autodiff();
    let (x, utterances) = (logits(45, 7, 2.0, &device), several());
    assert_eq!(utterances.alignable(), 4);
    let own = run(&x, |x| ctc(x, &utterances));
    assert_close(&run(&x, |x| composed::ctc(x, &utterances)), &own, 5e-6);
    assert_close(&run(&x, |x| composed::on_the_host(x, &utterances)), &own, 1e-7);
    let nobody = (0..6).chain(17..20).chain(29..40).chain(43..45);
    assert!(nobody.flat_map(|row| &own.1[row * 7..][..7]).all(|&slope| slope == 0.0));
    assert!(own.1[20 * 7..29 * 7].iter().all(|&slope| slope != 0.0));
}

#[test]
fn an_utterance_does_not_depend_on_its_batch() {
    let device = Device::flex().autodiff();
    let x = logits(45, 7, 2.0, &device);
    let (_, together) = run(&x, |x| ctc(x, &several()));
    let alone = Utterances::new(&[&[5, 4, 0, 1]], &[(6, 11)], 6);
    let (_, alone) = run(&x, |x| ctc(x, &alone));
    assert_eq!(alone[6 * 7..17 * 7], together[6 * 7..17 * 7]);
}

#[test]
fn bf16_logits_are_read_as_they_are() {
    let device = Device::flex().autodiff();
    let (x, utterances) = (logits(45, 7, 2.0, &device), several());
    let half = x.clone().inner().cast(FloatDType::BF16);
    let wide = Tensor::from_inner(to_f32(half.clone())).require_grad();
    let half = Tensor::from_inner(half).require_grad();
    let found = run(&half, |x| ctc(x, &utterances));
    // The gradient is rounded to bf16.
    assert_close(&found, &run(&wide, |x| ctc(x, &utterances)), 4e-3);
}

/// A model that is almost certain of blanks: the labels' probabilities are e^-40 each, for 5,000
/// frames.
#[test]
fn long_utterances_lose_nothing() {
    let (frames, classes, blank) = (5_000usize, 29usize, 28u32);
    let device = Device::flex().autodiff();
    let mut values = host_values(logits(frames, classes, 1.0, &device).inner());
    values.chunks_exact_mut(classes).for_each(|row| row[blank as usize] += 40.0);
    let labels: Vec<u32> = (0..600).map(|i| i * 7 % 28).collect();
    let mut room = align::Room::default();
    let labels = align::Labels { list: &labels, blank, optional: None };
    let loss = room.loss(&values, classes, labels);
    let mut gradient = vec![0f32; values.len()];
    room.gradient(&mut gradient, classes, labels, loss);
    assert!(loss > 10_000.0 && loss.is_finite(), "{loss}");
    // A frame's softmax and its occupancy each sum to 1, and every label has occupancy somewhere.
    let mut occupied = vec![0f64; classes];
    for (row, values) in gradient.chunks_exact(classes).zip(values.chunks_exact(classes)) {
        let sum: f32 = row.iter().sum();
        assert!(sum.abs() < 1e-4, "{sum}");
        let mass: f64 = values.iter().map(|&x| f64::from(x).exp()).sum();
        for ((to, slope), x) in occupied.iter_mut().zip(row).zip(values) {
            *to += f64::from(*x).exp() / mass - f64::from(*slope);
        }
    }
    let labels: f64 = occupied[..28].iter().sum();
    assert!((labels - 600.0).abs() < 1.0, "as many frames as labels, where blanks are certain: {labels}");
}

#[test]
fn what_is_not_a_number_comes_through() {
    for bad in [f32::NAN, f32::INFINITY] {
        let device = Device::flex().autodiff();
        let mut values = host_values(logits(9, 7, 1.0, &device).inner());
        values[30] = bad;
        let x = Tensor::<2>::from_data(TensorData::new(values, [9, 7]), &device).require_grad();
        let (loss, gradient) = run(&x, |x| ctc(x, &Utterances::new(&[[3u32, 3, 1]], &[(0, 9)], 6)));
        assert!(!loss.is_finite() && gradient.iter().any(|slope| !slope.is_finite()));
    }
}

#[test]
fn nobody_to_be_aligned_is_no_loss() {
    let x = logits(4, 7, 1.0, &Device::flex().autodiff());
    let utterances = Utterances::new(&[[2u32, 2, 2]], &[(0, 4)], 6);
    for found in [run(&x, |x| ctc(x, &utterances)), run(&x, |x| composed::ctc(x, &utterances))] {
        assert_eq!(found, (0.0, vec![0.0; 28]));
    }
}
