//! Language models with a sampled softmax agree with PyTorch over two windows, and the fixture
//! tells others apart.

use burn::tensor::Device;
use zoo_models::precision::Compute;
use zoo_recipes::OptimizerSpec;
use zoo_recipes::tasks::language_modelling::{LanguageLossSpec, LanguageModelSpec, LossOver};
use zoo_training::tasks::language_modelling::LanguageCase;

fn cases() -> Vec<LanguageCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/big_lstm.safetensors");
    LanguageCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn sampled_losses_gradients_and_updates_of_two_windows_are_pytorchs() {
    let cases = cases();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let compared = case.follow(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared >= 24, "{}: {compared}", case.name);
    }
}

#[test]
fn another_loss_or_update_of_a_sampled_model_is_told_apart() {
    let differs = |what: &str, change: &dyn Fn(&mut LanguageCase)| {
        for mut case in cases() {
            change(&mut case);
            let error = case.follow(&Device::flex(), Compute::FP32).expect_err(&case.name);
            assert!(error.contains(what), "{error}");
        }
    };
    differs("updated/", &|case| case.groups[0].factor = Some(3.0));
    differs("updated/", &|case| case.groups[1].clip_norm = Some(0.06));
    differs("updated/", &|case| case.groups.truncate(2));
    differs("updated/", &|case| case.optimizer = OptimizerSpec::Adagrad { initial_accumulator: 0.9 });
    differs("gradients/", &|case| {
        let LanguageLossSpec::SampledSoftmax { over, .. } = &mut case.loss else { panic!("{}", case.name) };
        *over = match over {
            LossOver::Mean => LossOver::SumOfSteps,
            LossOver::SumOfSteps => LossOver::Mean,
        };
    });
    // The sum among candidates is not that of all units.
    differs("loss", &|case| case.loss = LanguageLossSpec::CrossEntropy { over: LossOver::Mean });
    differs("weights/layers.0", &|case| match &mut case.model {
        LanguageModelSpec::Lstm(lstm) => lstm.projection = None,
        LanguageModelSpec::LayerNormLstm(lstm) => lstm.units += 1,
        LanguageModelSpec::Gpt(_) => panic!("{}", case.name),
    });
}
