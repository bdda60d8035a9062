//! CTC agrees with PyTorch, computed in FP64: 200 random utterances, some of which cannot be
//! aligned (tests/reference/ctc_fixtures.py). It also agrees with the cases of Graves's
//! implementation and of warp-ctc where `ZOO_PARITY` has them.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use safetensors::SafeTensors;
use zoo_ops::parameters::host_values;
use zoo_ops::{Utterances, ctc};

/// Loss and gradient of logits `[frames, classes]`.
fn found(logits: Vec<f32>, classes: usize, labels: &[u32], blank: u32) -> (f32, Vec<f32>) {
    let (device, frames) = (Device::flex().autodiff(), logits.len() / classes);
    let logits = Tensor::<2>::from_data(TensorData::new(logits, [frames, classes]), &device).require_grad();
    let sum = ctc(logits.clone(), &Utterances::new(&[labels], &[(0, frames)], blank));
    let loss = host_values(sum.clone().inner())[0];
    (loss, host_values(logits.grad(&sum.backward()).unwrap()))
}

/// In FP32 a logarithm of up to 32 is rounded by 1e-6, in each of up to 24 frames.
fn assert_close(name: &str, (loss, gradient): (f32, Vec<f32>), expected: (f64, &[f32]), limit: f64) {
    assert!(
        (f64::from(loss) - expected.0).abs() < limit * (1.0 + expected.0),
        "{name}: {loss} {}",
        expected.0
    );
    assert_eq!(gradient.len(), expected.1.len());
    for (a, b) in gradient.iter().zip(expected.1) {
        assert!(f64::from((a - b).abs()) < limit, "{name}: {a} {b}");
    }
}

#[test]
fn random_utterances_have_pytorchs_losses_and_gradients() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/ctc.safetensors");
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let ints = |name: &str| -> Vec<usize> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as usize).collect()
    };
    let [frames, classes, blanks, lengths] = ["frames", "classes", "blank", "label_lengths"].map(ints);
    let (losses, labels) = (floats("loss"), ints("labels"));
    let (logits, gradients) = (floats("logits"), floats("gradient"));
    let (mut value, mut label, mut impossible) = (0, 0, 0);
    for case in 0..frames.len() {
        let n = frames[case] * classes[case];
        let labels: Vec<u32> = labels[label..][..lengths[case]].iter().map(|&x| x as u32).collect();
        let blank = blanks[case] as u32;
        let alignable = Utterances::new(&[&labels], &[(0, frames[case])], blank).alignable();
        assert_eq!(alignable == 1, losses[case].is_finite(), "utterance {case}");
        let expected = if alignable == 1 { f64::from(losses[case]) } else { 0.0 };
        impossible += 1 - alignable;
        let found = found(logits[value..][..n].to_vec(), classes[case], &labels, blank);
        assert_close(&format!("utterance {case}"), found, (expected, &gradients[value..][..n]), 4e-6);
        (value, label) = (value + n, label + lengths[case]);
    }
    assert_eq!((frames.len(), value, label), (200, logits.len(), ints("labels").len()));
    assert!(impossible >= 5);
}

#[test]
fn published_cases_hold() {
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        blank: u32,
        targets: Vec<u32>,
        /// Each case has either probabilities or logits.
        probs: Option<Vec<Vec<f32>>>,
        logits: Option<Vec<Vec<f32>>>,
        loss: f64,
        grad_wrt_logits: Option<Vec<Vec<f32>>>,
    }
    let Ok(folder) = std::env::var("ZOO_PARITY") else {
        eprintln!("skipped: ZOO_PARITY names no folder");
        return;
    };
    let text = std::fs::read_to_string(format!("{folder}/ctc/ctc_cases.json")).unwrap();
    let mut file: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let cases: Vec<Case> = serde_json::from_value(file.remove("cases").unwrap()).unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let of_probabilities =
            |rows: &Vec<Vec<f32>>| rows.iter().map(|row| row.iter().map(|p| p.ln()).collect()).collect();
        let logits: Vec<Vec<f32>> = case.logits.or(case.probs.as_ref().map(of_probabilities)).unwrap();
        let found = found(logits.concat(), logits[0].len(), &case.targets, case.blank);
        let gradient = case.grad_wrt_logits.map_or_else(|| found.1.clone(), |rows| rows.concat());
        // The files have six digits.
        assert_close(&case.name, found, (case.loss, &gradient), 4e-6);
    }
}
