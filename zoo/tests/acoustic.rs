//! Parameters of published models, by arithmetic.

use serde_json::json;
use zoo_models::models::acoustic::cost;
use zoo_recipes::{AcousticInit, AcousticSpec, BatchNormSpec};

fn spec(layer: serde_json::Value) -> AcousticSpec {
    let norm = BatchNormSpec { epsilon: 1e-3, momentum: 0.1, affine: true, unbiased: true };
    AcousticSpec { init: AcousticInit::XavierUniform, norm, layer: serde_json::from_value(layer).unwrap() }
}

/// Mozilla's DeepSpeech 0.x: 26 cepstra of 9 frames on each side, 2,048 units, 29 classes.
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
