//! One encoder with several decoders: each language gets the same output as from a model that has
//! only its decoder.

use burn::tensor::Device;
use zoo_models::Packed;
use zoo_models::parameters::{self, ParameterValues, host_values};
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_models::tasks::translation::{PairBatch, Seq2Seq, TranslationLoss, Vocabularies, Writer};
use zoo_models::{Objective, Pass};
use zoo_recipes::{Document, ListedTask, RecipeOf, Selection, Translation};

const VOCABULARIES: Vocabularies =
    Vocabularies { source: 14, target: 14, languages: 3, pad: 1, begin: 0, end: 2 };

fn recipe() -> RecipeOf<Translation> {
    let selection = Selection { tier: Some("smoke".into()), ..Selection::default() };
    let recipe = Document::load("multi30k-en-de-fr").unwrap().resolve(&selection).unwrap().recipe;
    Translation::take(recipe).unwrap()
}

fn batch(language: usize) -> PairBatch {
    let source = Packed::new(&[vec![4, 5, 6, 2], vec![7, 2]]);
    let target = Packed::new(&[vec![9, 8, 2], vec![10, 11, 12, 2]]);
    PairBatch { source, target, language, target_positions: 8 }
}

/// Path prefix of a language's decoder in a model with several.
fn decoder_path(language: usize) -> String {
    match language.checked_sub(1) {
        None => "decoder.".to_string(),
        Some(further) => format!("further_decoders.{further}."),
    }
}

/// The model with the encoder, the tables and the decoder of one language.
fn alone(several: &Seq2Seq, language: usize, device: &Device) -> Seq2Seq {
    let own = decoder_path(language);
    let of_decoders = |path: &str| path.starts_with("decoder.") || path.starts_with("further_decoders.");
    let weights = parameters::export(several).into_iter().filter_map(|p| match p.path.strip_prefix(&own) {
        Some(rest) => Some(ParameterValues { path: format!("decoder.{rest}"), ..p }),
        None => (!of_decoders(&p.path)).then_some(p),
    });
    let vocabularies = Vocabularies { languages: 1, ..VOCABULARIES };
    let one = Seq2Seq::new(&recipe().model, &vocabularies, 9, device);
    parameters::import(one, weights.collect()).unwrap()
}

#[test]
fn every_language_is_written_as_by_a_model_of_its_own() {
    let (recipe, device) = (recipe(), Device::flex());
    let several = Seq2Seq::new(&recipe.model, &VOCABULARIES, 3, &device);
    let mut all = Vec::new();
    for language in 0..3 {
        let one = alone(&several, language, &device);
        let pass = || Pass::evaluation(Compute::FP32);
        let found = host_values(several.logits(&batch(language), &mut pass()));
        assert_eq!(found, host_values(one.logits(&batch(0), &mut pass())), "language {language}");
        let ids = SearchIds { pad: 1, end: 2 };
        let spec = &recipe.decode["beam5"];
        let sources = &batch(0).source;
        let written = search(&Writer::new(&several, language, pass()), sources, spec, ids);
        assert_eq!(written, search(&Writer::new(&one, 0, pass()), sources, spec, ids), "language {language}");
        all.push(found);
    }
    assert!(all[0] != all[1] && all[1] != all[2], "the decoders start unlike each other");
}

/// A batch has gradients for the encoder, the tables and its own decoder only. They equal those of
/// a model without other decoders.
#[test]
fn a_batch_teaches_the_decoder_of_its_language_alone() {
    let recipe = recipe();
    let device = Device::flex().autodiff();
    let several = Seq2Seq::new(&recipe.model, &VOCABULARIES, 3, &device);
    let gradients = |model: &Seq2Seq, batch: &PairBatch| {
        let loss = TranslationLoss::new(&recipe.loss);
        let terms = loss.terms(model, batch, &mut Pass::training(Compute::FP32, 1, 1));
        let mut found = terms[0].sum.clone().backward();
        let values = parameters::take_gradients(model, &mut found);
        let paths = parameters::shapes(model).into_iter().map(|(path, _)| path);
        paths.zip(values.into_iter().map(|g| g.map(host_values))).collect::<Vec<_>>()
    };
    for language in 0..3 {
        let one = alone(&several, language, &device);
        let due = gradients(&one, &batch(0));
        let own = decoder_path(language);
        let mut taught = 0;
        for (path, found) in gradients(&several, &batch(language)) {
            let of_one = match path.strip_prefix(&own) {
                Some(rest) => format!("decoder.{rest}"),
                None => path.clone(),
            };
            let other = path.contains("decoder") && !path.starts_with(&own);
            assert_eq!(found.is_none(), other, "language {language}: {path}");
            if !other {
                let (_, due) = due.iter().find(|(path, _)| *path == of_one).unwrap();
                assert_eq!(&found, due, "language {language}: {path}");
                taught += 1;
            }
        }
        assert_eq!(taught, due.len());
    }
}
