//! Language models agree with PyTorch over two windows, and the fixture tells other models apart.

use burn::tensor::Device;
use zoo_models::precision::Compute;
use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec, LossOver};
use zoo_training::tasks::language_modelling::LanguageCase;

fn cases() -> Vec<LanguageCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/language.safetensors");
    LanguageCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn logits_losses_gradients_and_updates_of_two_windows_are_pytorchs() {
    let cases = cases();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let compared = case.follow(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared >= 40, "{}: {compared}", case.name);
    }
}

#[test]
fn another_model_or_loss_is_told_apart() {
    let differs = |change: &dyn Fn(&mut LanguageCase) -> bool| {
        let mut told = 0;
        for mut case in cases() {
            if change(&mut case) {
                assert!(case.follow(&Device::flex(), Compute::FP32).is_err(), "{}", case.name);
                told += 1;
            }
        }
        told
    };
    let state = |case: &mut LanguageCase| std::mem::replace(&mut case.carries, false);
    assert_eq!(differs(&state), 3, "without the state of the first window");
    let over = |case: &mut LanguageCase| {
        let over = match case.loss.over() {
            LossOver::Mean => LossOver::SumOfSteps,
            LossOver::SumOfSteps => LossOver::Mean,
        };
        case.loss = LanguageLossSpec::CrossEntropy { over };
        true
    };
    assert_eq!(differs(&over), 5);
    let biases = |case: &mut LanguageCase| match &mut case.model {
        LanguageModelSpec::Lstm(lstm) if lstm.biases == RecurrentBiases::Two => {
            lstm.biases = RecurrentBiases::OneOfZeros;
            true
        }
        _ => false,
    };
    assert_eq!(differs(&biases), 2);
    let epsilon = |case: &mut LanguageCase| match &mut case.model {
        LanguageModelSpec::Gpt(gpt) => {
            gpt.epsilon = 1e-2;
            true
        }
        LanguageModelSpec::Lstm(_) | LanguageModelSpec::LayerNormLstm(_) => false,
    };
    assert_eq!(differs(&epsilon), 1);
    let heads = |case: &mut LanguageCase| match &mut case.model {
        LanguageModelSpec::Gpt(gpt) => {
            gpt.heads = 4;
            true
        }
        LanguageModelSpec::Lstm(_) | LanguageModelSpec::LayerNormLstm(_) => false,
    };
    assert_eq!(differs(&heads), 1);
    let forget = |case: &mut LanguageCase| match &mut case.model {
        LanguageModelSpec::LayerNormLstm(lstm) => {
            lstm.forget_bias = 0.0;
            true
        }
        _ => false,
    };
    assert_eq!(differs(&forget), 1);
    let norms = |case: &mut LanguageCase| match &mut case.model {
        LanguageModelSpec::LayerNormLstm(lstm) => {
            lstm.epsilon = 1e-3;
            true
        }
        _ => false,
    };
    assert_eq!(differs(&norms), 1);
}
