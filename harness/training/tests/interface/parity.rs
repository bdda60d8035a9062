//! Every committed reference of a token model agrees with PyTorch: outputs, losses, gradients, one
//! update and searches.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, FloatDType};
use zoo_models::precision::Compute;
use zoo_recipes::tasks::translation::{TokenEncoderSpec, TokenLossSpec};
use zoo_training::align::Alignment;
use zoo_training::tasks::translation::Reference;

fn references() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("the fixtures are in the repository")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.ends_with(".safetensors")
                && ["transformer_", "seq2seq_", "search_"].iter().any(|kind| name.starts_with(kind))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_reference_agrees_on_every_rung() {
    let references = references();
    assert!(references.len() >= 18, "fixtures are missing");
    for path in references {
        let alignment = aligned(&path, Compute::FP32);
        assert!(alignment.holds(), "{}: {:#?}", path.display(), alignment.rungs.last());
    }
}

fn aligned(path: &Path, compute: Compute) -> Alignment {
    let alignment = Reference::read(path).unwrap().align(&Device::flex(), compute).unwrap();
    for rung in &alignment.rungs {
        println!(
            "{} in {}: {} {:.1e} of {:.0e} at {}",
            path.display(),
            compute.name(),
            rung.name,
            rung.error,
            rung.limit,
            rung.at
        );
    }
    alignment
}

/// Half-precision products are compared up to the gradients. Errors far below those of half
/// precision would show that the products were not computed in it.
#[test]
fn half_products_stay_within_what_halves_differ_by() {
    for (compute, least) in [(Compute(FloatDType::BF16), 5e-4), (Compute(FloatDType::F16), 5e-5)] {
        for path in references() {
            let alignment = aligned(&path, compute);
            assert!(alignment.holds(), "{}: {:#?}", path.display(), alignment.rungs.last());
            let names: Vec<&str> = alignment.rungs.iter().map(|rung| rung.name.as_str()).collect();
            if !path.file_name().unwrap().to_string_lossy().starts_with("search_") {
                assert_eq!(
                    names,
                    ["embeddings", "encoder", "logits", "losses", "gradients", "most gradients"]
                );
                assert!(alignment.rungs[5].error > least, "{:?}", alignment.rungs[5]);
            } else {
                assert_eq!(names, [""; 0]);
            }
        }
    }
}

/// Each planted mistake must break the rung that tests it.
#[test]
fn planted_mistakes_break_their_rung() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let path = folder.join("transformer_postnorm_fairseq.safetensors");
    let broken = |change: &dyn Fn(&mut zoo_training::tasks::translation::Description)| {
        let mut reference = Reference::read(&path).unwrap();
        change(&mut reference.description);
        reference.align(&Device::flex(), Compute::FP32).unwrap().rungs.pop().unwrap()
    };
    let rung = broken(&|d| {
        d.model.embedding.positions = zoo_recipes::Positions::SinusoidTensor2tensor;
    });
    assert!(!rung.holds() && rung.name == "embeddings", "{rung:?}");
    let rung = broken(&|d| {
        let TokenEncoderSpec::Transformer(encoder) = &mut d.model.encoder else { panic!("no Transformer") };
        encoder.norm_epsilon = 1e-3;
    });
    assert!(!rung.holds() && rung.name == "encoder", "{rung:?}");
    let rung = broken(&|d| {
        let TokenLossSpec::CrossEntropy { smoothing, .. } = &mut d.loss;
        *smoothing = zoo_recipes::Smoothing::OtherClasses;
    });
    assert!(!rung.holds() && rung.name == "losses", "{rung:?}");
    let rung = broken(&|d| d.clip_norm = None);
    assert!(!rung.holds() && rung.name == "update", "{rung:?}");
}
