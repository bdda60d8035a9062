//! CTC without a custom kernel: Burn's kernel, within its numeric range.

use burn::tensor::{Int, Tensor, TensorData, activation, module};

use super::{Utterance, Utterances, align};
use crate::parameters::host_values;
use crate::precision::to_f32;

/// Burn's kernel uses -1e4 as the logarithm of zero: -frames x ln(classes) must stay above it.
const DEEPEST: f64 = 1e4;

/// Composition of [`super::ctc`].
pub fn ctc(logits: Tensor<2>, utterances: &Utterances) -> Tensor<1> {
    let [_, classes] = logits.dims();
    let aligned: Vec<&Utterance> =
        utterances.list.iter().filter(|u| utterances.has_alignment(u) && u.frames > 0).collect();
    let longest = aligned.iter().map(|utterance| utterance.frames).max().unwrap_or(0);
    if aligned.is_empty() {
        return logits.sum() * 0.0;
    }
    if utterances.optional.is_some() || longest as f64 * (classes as f64).ln() >= DEEPEST {
        return on_the_host(to_f32(logits), utterances);
    }
    let device = logits.device();
    let n = aligned.len();
    let ints = |values: Vec<i32>| {
        let count = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [count]), &device)
    };
    // Rows `[frames, utterances]`. After an utterance's end its last row repeats and is ignored.
    let rows = (0..longest).flat_map(|t| aligned.iter().map(move |u| (u.row + t.min(u.frames - 1)) as i32));
    let logs = activation::log_softmax(to_f32(logits).select(0, ints(rows.collect())), 1);
    let most = aligned.iter().map(|utterance| utterance.labels).max().unwrap_or(0).max(1);
    let mut labels = vec![0i32; n * most];
    for (row, utterance) in labels.chunks_exact_mut(most).zip(&aligned) {
        row.iter_mut().zip(utterances.labels(utterance)).for_each(|(to, &label)| *to = label as i32);
    }
    let lengths = |of: fn(&Utterance) -> usize| ints(aligned.iter().map(|u| of(u) as i32).collect());
    let losses = module::ctc_loss(
        logs.reshape([longest, n, classes]),
        ints(labels).reshape([n, most]),
        lengths(|utterance| utterance.frames),
        lengths(|utterance| utterance.labels),
        utterances.blank as usize,
    );
    losses.sum()
}

/// Computes on the host and returns the gradient to the device: for utterances of several thousand
/// frames, and for optional labels, on devices other than the CPU.
pub fn on_the_host(logits: Tensor<2>, utterances: &Utterances) -> Tensor<1> {
    let ([rows, classes], device) = (logits.dims(), logits.device());
    let values = host_values(logits.clone().detach());
    let (mut room, mut sum, mut gradient) = (align::Room::default(), 0.0, vec![0f32; rows * classes]);
    for utterance in utterances.list.iter().filter(|utterance| utterances.has_alignment(utterance)) {
        let rows = utterance.row * classes..(utterance.row + utterance.frames) * classes;
        let labels = utterances.aligned(utterance);
        let loss = room.loss(&values[rows.clone()], classes, labels);
        room.gradient(&mut gradient[rows], classes, labels, loss);
        sum += loss;
    }
    let gradient = Tensor::<2>::from_data(TensorData::new(gradient, [rows, classes]), &device);
    let tracked = (logits * gradient).sum();
    tracked.clone() - tracked.detach() + sum as f32
}
