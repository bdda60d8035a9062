//! Acoustic models: number of parameters of published models, and effects of padding.

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use serde_json::json;
use zoo_models::Pass;
use zoo_models::ops::{Islands, Statistics};
use zoo_models::parameters::{export, host_values};
use zoo_models::precision::{Compute, to_f32};
use zoo_models::tasks::speech_recognition::{AcousticModel, Frames, cost};
use zoo_recipes::BatchNormSpec;
use zoo_recipes::tasks::speech_recognition::{AcousticInit, AcousticSpec, PaddedFrames};

fn spec(layer: serde_json::Value) -> AcousticSpec {
    let norm = BatchNormSpec { epsilon: 1e-3, momentum: 0.1, affine: true, unbiased: true };
    let layer = serde_json::from_value(layer).unwrap();
    AcousticSpec {
        init: AcousticInit::XavierUniform,
        output_init: None,
        norm,
        padded_frames: PaddedFrames::default(),
        layer,
    }
}

/// Mozilla's DeepSpeech 0.x: 26 cepstra with 9 frames of context on each side, 2,048 units, 29
/// classes.
#[test]
fn deep_speech_has_the_published_number_of_parameters() {
    let dense = json!({"kind": "dense", "units": 2048, "activation": "relu-20", "dropout": 0.05});
    let lstm = json!({"kind": "recurrent", "cell": "lstm", "layers": 1, "hidden": 2048, "biases": 1});
    let layers = json!([dense, dense, dense, lstm, dense]);
    let cost = cost(&spec(layers), 19 * 26, 29);
    assert_eq!(cost.parameters, 47_224_861);
}

/// Jasper 10x5 with dense residuals: 333 million (Li et al. 2019).
#[test]
fn jasper_has_the_published_number_of_parameters() {
    let plain = |channels: u32, kernel: u32| json!({"kind": "convolution", "channels": channels, "kernel": kernel, "activation": "relu"});
    let block = |(channels, kernel): (u32, u32)| {
        let mut block = plain(channels, kernel);
        (block["repeat"], block["residual"]) = (json!(5), json!("dense"));
        block
    };
    let sizes = [(256, 11), (384, 13), (512, 17), (640, 21), (768, 25)];
    let mut layers = vec![plain(256, 11)];
    layers.extend(sizes.into_iter().flat_map(|size| [block(size), block(size)]));
    layers.extend([plain(896, 29), plain(1024, 1)]);
    assert_eq!(cost(&spec(json!(layers)), 64, 29).parameters, 332_632_349);
}

/// Logits and batch-norm statistics of two utterances of 6 and 3 frames, padded with zeros to 6
/// frames.
fn padded(spec: &AcousticSpec, lengths: [usize; 2], pass: &mut Pass) -> (Vec<f32>, Vec<Statistics>) {
    let device = Device::flex().autodiff();
    let model = AcousticModel::new(spec, 4, 3, 1, &device);
    let value = |i: usize| if i / 4 < 9 { (i as f32 * 0.7).sin() + 0.3 } else { 0.0 };
    let x = TensorData::new((0..48).map(value).collect::<Vec<f32>>(), [2, 6, 4]);
    let frames = Frames::new(Tensor::from_data(x, &device), lengths.to_vec());
    let (logits, seen) = model.forward(frames, pass);
    (host_values(to_f32(logits.x).reshape([36]).inner()), seen)
}

#[test]
fn padded_frames_count_in_norms_and_reach_the_next_layer_as_the_source_has_them() {
    let image = |stride: u32| json!({"kind": "convolution2d", "channels": 3, "kernel": [3, 3], "stride": [stride, 1], "activation": "relu"});
    let block = json!({"kind": "convolution", "repeat": 2, "channels": 5, "kernel": 3, "residual": "dense", "activation": "relu"});
    let row = json!({"kind": "row-convolution", "width": 3, "activation": "relu"});
    for layers in [json!([image(1), image(1)]), json!([block, block]), json!([block, row, row])] {
        let of = |padded_frames| AcousticSpec { padded_frames, ..spec(layers.clone()) };
        let train = |padded_frames, lengths| {
            let mut pass = Pass::training(Compute::FP32, 1, 0);
            padded(&of(padded_frames), lengths, &mut pass)
        };
        let means = |seen: &[Statistics]| -> Vec<f32> {
            seen.iter().flat_map(|seen| host_values(seen.mean.clone())).collect()
        };
        let (left_out, counted, carried) = (
            train(PaddedFrames::LeftOut, [6, 3]),
            train(PaddedFrames::Counted, [6, 3]),
            train(PaddedFrames::Carried, [6, 3]),
        );
        for ((left_out, counted), carried) in left_out.1.iter().zip(&counted.1).zip(&carried.1) {
            assert_eq!((left_out.count * 12, left_out.count * 12), (counted.count * 9, carried.count * 9));
        }
        // When all frames count as valid, the result equals that of carried padding.
        let whole = train(PaddedFrames::LeftOut, [6, 6]);
        assert_eq!((&carried.0, means(&carried.1)), (&whole.0, means(&whole.1)), "{layers}");
        // The projection of zeros is zero, because its bias starts at 0; carried padding is not
        // zero.
        let behind = |logits: &[f32]| logits[27..].iter().all(|logit| *logit == 0.0);
        assert!(behind(&left_out.0) && behind(&counted.0) && !behind(&carried.0), "{layers}");
        assert!(left_out.0[..27] != counted.0[..27] && counted.0[..27] != carried.0[..27], "{layers}");

        let evaluate =
            |padded_frames| padded(&of(padded_frames), [6, 3], &mut Pass::evaluation(Compute::FP32)).0;
        let plain = evaluate(PaddedFrames::LeftOut);
        assert!(evaluate(PaddedFrames::Counted) == plain && evaluate(PaddedFrames::Carried) == plain);
    }
}

/// Convolutions over time and frequency, over time with a residual, and over rows have batch norms.
#[test]
fn norms_without_fp32_change_the_training_of_every_kind_of_convolution_and_no_evaluation() {
    let image = json!({"kind": "convolution2d", "channels": 3, "kernel": [3, 3], "stride": [1, 1], "activation": "relu"});
    let block = json!({"kind": "convolution", "repeat": 2, "channels": 5, "kernel": 3, "residual": "dense", "activation": "relu"});
    let row = json!({"kind": "row-convolution", "width": 3, "activation": "relu"});
    let f16 = Compute(FloatDType::F16);
    for layers in [json!([image]), json!([block]), json!([row])] {
        let spec = spec(layers.clone());
        let [(exact, seen), (found, rounded)] = [true, false].map(|norms| {
            let islands = Islands { norms, ..Islands::ALL };
            padded(&spec, [6, 3], &mut Pass::training(f16, 1, 0).with_islands(islands))
        });
        assert_ne!(found, exact, "{layers}");
        for (found, exact) in found.iter().zip(&exact) {
            assert!((found - exact).abs() < 0.03, "{layers}: {found} {exact}");
        }
        assert!(seen.len() == rounded.len() && !seen.is_empty());
        for (seen, rounded) in seen.into_iter().zip(rounded) {
            let [seen, found] = [seen, rounded].map(|of| [of.mean, of.variance].map(host_values).concat());
            let mut due = found.clone();
            f16.round(&mut due);
            assert!(found == due && found != seen, "{found:?} {seen:?}");
            assert!(found.iter().zip(&seen).all(|(found, seen)| (found - seen).abs() < 5e-3));
        }
        let [exact, found] = [true, false].map(|norms| {
            let islands = Islands { norms, ..Islands::ALL };
            padded(&spec, [6, 3], &mut Pass::evaluation(f16).with_islands(islands)).0
        });
        assert_eq!(found, exact, "{layers}");
    }
}

/// A convolution of one tap without a bias maps padding to zeros, so the mean is over nine valid
/// frames and three zeros.
#[test]
fn statistics_that_count_padding_are_those_of_all_rows() {
    let one = json!([{"kind": "convolution", "channels": 5, "kernel": 1, "activation": "relu"}]);
    let seen = |padded_frames| {
        let mut pass = Pass::training(Compute::FP32, 1, 0);
        let of = AcousticSpec { padded_frames, ..spec(one.clone()) };
        let mut seen = padded(&of, [6, 3], &mut pass).1;
        let seen = seen.remove(0);
        (host_values(seen.mean), host_values(seen.variance))
    };
    let ((mean, variance), (counted, of_counted)) =
        (seen(PaddedFrames::LeftOut), seen(PaddedFrames::Counted));
    for channel in 0..5 {
        let expected = mean[channel] * 0.75;
        assert!((counted[channel] - expected).abs() < 1e-5, "{counted:?} {expected}");
        let squares = 0.75 * (variance[channel] + mean[channel] * mean[channel]);
        assert!((of_counted[channel] - (squares - expected * expected)).abs() < 1e-5, "{of_counted:?}");
    }
}

/// TensorFlow's `xavier_initializer(uniform=False)` has the standard deviation of Xavier normal and
/// no value beyond two of its own standard deviations. Its uniform variant reaches sqrt(3) standard
/// deviations.
#[test]
fn a_truncated_start_keeps_its_deviation_and_the_projection_may_have_another() {
    let layers = json!([
        {"kind": "convolution", "channels": 64, "kernel": 5, "activation": "relu"},
        {"kind": "dense", "units": 96, "activation": "relu"},
    ]);
    let (init, output_init) = (AcousticInit::XavierTruncatedNormal, Some(AcousticInit::XavierUniform));
    let of = AcousticSpec { init, output_init, ..spec(layers) };
    let found = export(&AcousticModel::new(&of, 40, 64, 1, &Device::flex()));
    let values = |path: &str| &found.iter().find(|one| one.path == path).unwrap().values;
    for (path, fans, most) in [
        ("layers.0.convolutions.0.over_time.weight", (40.0 + 64.0) * 5.0, 2.0 * 1.3f64.sqrt()),
        ("layers.1.linear.weight", 64.0 + 96.0, 2.0 * 1.3f64.sqrt()),
        ("output.weight", 96.0 + 64.0, 3f64.sqrt()),
    ] {
        let values = values(path);
        let deviation = f64::sqrt(2.0 / fans);
        let square = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((square.sqrt() / deviation - 1.0).abs() < 0.03, "{path}: {}", square.sqrt() / deviation);
        let largest = f64::from(values.iter().fold(0f32, |most, x| most.max(x.abs()))) / deviation;
        assert!(largest <= most * 1.000_001 && largest > 0.97 * most, "{path}: {largest}");
    }
}
