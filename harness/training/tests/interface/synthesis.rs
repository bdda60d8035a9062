//! Synthesisers agree with PyTorch, and the result for a text does not depend on its batch.

use burn::tensor::{Device, FloatDType};
use zoo_models::Pass;
use zoo_models::parameters::{count, shapes};
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{FrameWidth, cost};
use zoo_recipes::tasks::speech_synthesis::SynthesisDecoderSpec;
use zoo_training::tasks::speech_synthesis::SynthesisCase;

fn cases() -> Vec<SynthesisCase> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/tacotron.safetensors");
    SynthesisCase::read_all(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn outputs_losses_gradients_an_update_and_statistics_are_pytorchs() {
    for case in cases() {
        let compared = case.train(&Device::flex(), Compute::FP32).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared > 80, "{}: {compared}", case.name);
    }
}

#[test]
fn what_is_spoken_is_pytorchs() {
    for case in cases() {
        let compared = case.speak(&Device::flex()).unwrap_or_else(|error| panic!("{error}"));
        assert!(compared >= 6, "{}", case.name);
    }
}

#[test]
fn another_model_is_told_apart() {
    for mut case in cases() {
        let SynthesisDecoderSpec::Tacotron(decoder) = &mut case.model.decoder;
        decoder.prenet.dropout = 0.4;
        assert!(
            case.train(&Device::flex(), Compute::FP32).is_err() && case.speak(&Device::flex()).is_err(),
            "{}",
            case.name
        );
    }
}

#[test]
fn what_is_made_of_a_text_does_not_depend_on_its_batch() {
    for case in cases() {
        let model = case.synthesiser(&Device::flex()).unwrap();
        let texts = case.texts().unwrap();
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            let say = |texts: &[Vec<u32>]| model.speak(texts, case.limits(), &mut Pass::evaluation(compute));
            let together = say(&texts);
            for (text, together) in texts.iter().zip(together) {
                let alone = say(std::slice::from_ref(text)).remove(0);
                assert_eq!(
                    (alone.frames, alone.stopped),
                    (together.frames, together.stopped),
                    "{}",
                    case.name
                );
                // Sums over a source end with a zero for each step by which other sources are
                // longer, and have another order.
                let limit = if compute == Compute::FP32 { 1e-5 } else { 5e-2 };
                for (a, b) in [(&alone.mels, &together.mels), (&alone.alignment, &together.alignment)] {
                    assert_eq!(a.len(), b.len());
                    assert!(
                        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= limit * (1.0 + b.abs())),
                        "{}",
                        case.name
                    );
                }
            }
        }
    }
}

#[test]
fn the_count_is_that_of_the_built_model() {
    for case in cases() {
        let model = case.synthesiser(&Device::flex()).unwrap();
        let running = shapes(&model).into_iter().filter(|(path, _)| path.contains("running_"));
        let running: usize = running.map(|(_, shape)| shape.iter().product::<usize>()).sum();
        let FrameWidth { mels, bins } = model.width();
        let counted = cost(&case.model, 11, FrameWidth { mels, bins }).parameters;
        assert_eq!(counted, (count(&model) - running) as u64, "{}", case.name);
    }
}
