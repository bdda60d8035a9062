//! Encoders and decoders of every kind in combination: trained for a few updates, decoded and
//! scored.

use crate::binary::Zoo;

const HEAD: &str = r#"[recipe]
base = "reversal-transformer"
name = "parts"
summary = "An encoder and a decoder"
origin = "this file"

[data.reader]
max_length = 12
train = 256
valid = 16
test = 16

[data.eval.valid]
lines = 16

[data.eval.test]
lines = 16

[train]
max_updates = 3

[model.embedding]
scale = false
zero_padding = false
positions = "none"
dropout = 0.0
init = { kind = "xavier-uniform" }
"#;

const RECURRENT: [&str; 2] = [
    r#"
[model.encoder]
kind = "recurrent"
cell = "lstm"
layers = 2
units = 64
directions = "two-stacks"
biases = "one-of-zeros"
forget_bias = 1.0
init = { kind = "xavier-uniform" }
dropout = 0.2
"#,
    r#"
[model.decoder]
kind = "recurrent"
cell = "lstm"
layers = 2
units = 32
biases = "one-of-zeros"
init = { kind = "uniform", bound = 0.1 }
dropout = 0.2
attention = { kind = "additive", units = 24, normalized = true }
context = "all-layers"
start = "begin"
"#,
];

const CONVOLUTIONAL: [&str; 2] = [
    r#"
[model.encoder]
kind = "convolutional"
layer = [{ channels = 32, kernel = 3, repeat = 2 }]
positions = { rows = 100 }
dropout = 0.1
attentions = 2
"#,
    r#"
[model.decoder]
kind = "convolutional"
layer = [{ channels = 32, kernel = 3, repeat = 1 }, { channels = 48, kernel = 1, repeat = 1 }]
positions = { rows = 120 }
dropout = 0.1
start = "begin"
"#,
];

#[test]
fn any_encoder_goes_with_any_decoder() {
    for (name, encoder, decoder, tied) in [
        ("recurrent", RECURRENT[0], RECURRENT[1], "none"),
        ("convolutional", CONVOLUTIONAL[0], CONVOLUTIONAL[1], "all"),
        ("recurrent, convolutional", RECURRENT[0], CONVOLUTIONAL[1], "decoder"),
        ("convolutional, recurrent", CONVOLUTIONAL[0], RECURRENT[1], "inputs"),
        ("recurrent, self-attention", RECURRENT[0], "", "all"),
        ("self-attention, recurrent", "", RECURRENT[1], "none"),
    ] {
        let zoo = Zoo::new();
        zoo.file("parts.toml", &format!("{HEAD}tied = \"{tied}\"\n{encoder}{decoder}"));
        let arm = if name == "recurrent" { "fp32,mixed" } else { "fp32" };
        let ended = zoo.run(&["reproduce", "./parts.toml", "--arms", arm, "--offline", "--format", "json"]);
        let scores = &ended.json()["runs"];
        assert!(!scores.as_array().unwrap().is_empty(), "{name}: {}", ended.stderr);
        assert!(!ended.stderr.contains("internal error"), "{name}: {}", ended.stderr);
        let run = ended.json()["runs"][0]["folder"].as_str().unwrap().to_owned();
        let scored = std::fs::read_dir(zoo.home().join(run).join("eval")).unwrap().count();
        assert!(scored > 0, "{name} was not decoded");
    }
}

/// Parts that cannot be combined are an error.
#[test]
fn parts_that_do_not_fit_are_named() {
    let zoo = Zoo::new();
    let refused = |text: &str, messages: &[&str]| {
        zoo.file("parts.toml", text);
        let ended = zoo.run(&["reproduce", "./parts.toml", "--offline"]);
        assert_ne!(ended.code, 0);
        for message in messages {
            assert!(ended.stderr.contains(message), "{message:?} is not in\n{}", ended.stderr);
        }
    };
    let encoder = RECURRENT[0].replace("units = 64", "units = 40");
    let text = format!("{HEAD}tied = \"decoder\"\n{encoder}{}", CONVOLUTIONAL[1]);
    refused(&text, &["what the encoder writes, 80 wide"]);
    let decoder = RECURRENT[1].replace("start = \"begin\"", "start = \"begin\"\nresidual_from = 1");
    let text = format!("{HEAD}tied = \"all\"\n{}{decoder}", RECURRENT[0]);
    refused(&text, &["they cannot share a matrix", "the first layer's input is 128 wide, its output 32"]);
}
