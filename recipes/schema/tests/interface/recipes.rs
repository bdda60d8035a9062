//! Every embedded recipe, in every arm and tier.

use zoo_recipes::TextBatchingSpec;
use zoo_recipes::tasks::speech_recognition::{AcousticLayerSpec, AcousticSpec};
use zoo_recipes::tasks::translation::{TokenDecoderSpec, TokenEncoderSpec, TranslationModelSpec};
use zoo_recipes::*;

/// All selections of a document: body and arms, at the published size and in every tier.
fn selections(document: &Document) -> Vec<Selection> {
    let tiers: Vec<Option<&str>> =
        std::iter::once(None).chain(document.tiers().into_iter().map(Some)).collect();
    let arms: Vec<Option<&str>> =
        std::iter::once(None).chain(document.arms().into_iter().map(Some)).collect();
    tiers
        .iter()
        .flat_map(|tier| {
            arms.iter().map(|arm| Selection {
                arm: arm.map(str::to_owned),
                tier: tier.map(str::to_owned),
                overrides: Vec::new(),
            })
        })
        .collect()
}

fn load(name: &str) -> Document {
    Document::load(name).unwrap_or_else(|error| panic!("{name}:\n{error}"))
}

#[test]
fn every_recipe_resolves_in_every_arm_and_tier() {
    assert!(names().len() >= 4, "{:?}", names());
    for recipe in embedded() {
        let document = load(recipe.name);
        document.check().unwrap_or_else(|found| panic!("{}:\n{found}", recipe.name));
        assert!(document.arms().contains(&"fp32"), "{}", recipe.name);
        assert!(document.tiers().contains(&"smoke"), "{}: CI runs the smoke tier", recipe.name);
        for selection in selections(&document) {
            let resolved =
                document.resolve(&selection).unwrap_or_else(|found| panic!("{}:\n{found}", recipe.name));
            assert_eq!(resolved.reproduces(), selection.tier.is_none(), "{} {selection:?}", recipe.name);
            assert_eq!(resolved.hash.len(), 64);
        }
    }
}

#[test]
fn the_folders_of_the_catalog_are_the_tasks() {
    for recipe in embedded() {
        assert_eq!(load(recipe.name).task().as_str(), recipe.task, "{}: the folder is the task", recipe.name);
    }
    for task in Task::ALL {
        assert!(embedded().iter().any(|recipe| *task == *recipe.task), "{task} has no recipe");
    }
}

#[test]
fn printing_and_parsing_a_resolved_recipe_changes_nothing() {
    for name in names() {
        let document = load(name);
        for selection in selections(&document) {
            let resolved = document.resolve(&selection).unwrap();
            let again = Recipe::from_toml(&resolved.toml).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(again, resolved.recipe, "{name} {selection:?}");
            assert_eq!(again.hash(), resolved.hash, "{name} {selection:?}");
            assert_eq!(again.to_toml().unwrap(), resolved.toml, "{name} {selection:?}");
        }
    }
}

#[test]
fn every_recipe_begins_with_its_command() {
    for recipe in embedded() {
        let first = recipe.text.lines().next().unwrap_or_default();
        assert_eq!(first, format!("# zoo reproduce {}", recipe.name));
    }
}

#[test]
fn blocks_stand_in_their_fixed_order() {
    const ORDER: [&str; 11] =
        ["recipe", "data", "model", "loss", "train", "precision", "arm", "decode", "tier", "claims", "claim"];
    for recipe in embedded() {
        let blocks: Vec<usize> = recipe
            .text
            .lines()
            .filter_map(|line| line.strip_prefix('[').map(|rest| rest.trim_start_matches('[')))
            .map(|rest| rest.split(['.', ']']).next().unwrap_or_default())
            .map(|block| ORDER.iter().position(|known| *known == block).unwrap_or_else(|| panic!("{block}")))
            .collect();
        assert!(blocks.is_sorted(), "{}: {ORDER:?}", recipe.name);
    }
}

/// A recipe of translation as one of that task.
fn translation(recipe: Recipe) -> RecipeOf<Translation> {
    Translation::take(recipe).expect("a recipe of translation")
}

#[test]
fn smoke_tiers_need_no_download_and_are_small() {
    for name in names() {
        let document = load(name);
        for arm in document.arms() {
            let selection =
                Selection { arm: Some(arm.into()), tier: Some("smoke".into()), overrides: vec![] };
            let recipe = document.resolve(&selection).unwrap().recipe;
            assert_eq!(recipe.data().corpus(), None, "{name}");
            assert!(recipe.data().is_generated(), "{name} reads files");
            let train = recipe.block("data")["reader"]["train"].as_u64().unwrap();
            assert!(train <= 1000 && recipe.train.max_updates.is_some_and(|most| most <= 50), "{name}");
            match &recipe {
                Recipe::Translation(recipe) => small_translator(name, &recipe.model),
                Recipe::SpeechRecognition(recipe) => small_recogniser(name, recipe.model.layers()),
                Recipe::SpeechSynthesis(recipe) => {
                    let (encoder, decoder) = recipe.model.parts();
                    assert!(encoder.units <= 32 && decoder.units <= 64, "{name}");
                }
                Recipe::ImageClassification(_)
                | Recipe::LanguageModelling(_)
                | Recipe::TextClassification(_) => {}
            }
        }
    }
}

fn small_translator(name: &str, model: &TranslationModelSpec) {
    let (layers, wide) = match &model.encoder {
        TokenEncoderSpec::Transformer(encoder) => (encoder.layers, encoder.ffn / 4),
        TokenEncoderSpec::Recurrent(encoder) => (encoder.layers, encoder.units),
        TokenEncoderSpec::Convolutional(encoder) => (
            encoder.layer.iter().map(|layer| layer.repeat).sum(),
            encoder.layer.iter().map(|layer| layer.channels).max().unwrap_or(0),
        ),
    };
    assert!(model.width <= 64 && layers <= 3 && wide <= 64, "{name}");
}

fn small_recogniser(name: &str, encoder: &AcousticSpec) {
    assert!(encoder.layer.len() <= 8, "{name}");
    for layer in &encoder.layer {
        let (wide, deep) = match layer {
            AcousticLayerSpec::Convolution2d(layer) => (layer.channels, 1),
            AcousticLayerSpec::Convolution(layer) => (layer.channels, layer.repeat),
            AcousticLayerSpec::Recurrent(layer) => (layer.hidden, layer.layers),
            AcousticLayerSpec::RowConvolution(_) => (1, 1),
            AcousticLayerSpec::Dense(layer) => (layer.units, 1),
        };
        assert!(wide <= 32 && deep <= 2, "{name}: {layer:?}");
    }
}

#[test]
fn claims_reach_every_search_and_set_they_name() {
    for name in names() {
        let recipe = load(name).resolve(&Selection::default()).unwrap().recipe;
        assert!(!recipe.claim.is_empty(), "{name}");
        assert!(recipe.claim.iter().any(|claim| claim.kind == ClaimKind::Parity), "{name}");
        for claim in &recipe.claim {
            let printed = match name {
                "jasper-10x5-nvidia" => claim.kind == ClaimKind::Value,
                "fashion-mnist-lenet-d2l" => claim.kind == ClaimKind::Value,
                "gnmt-v2" => claim.kind == ClaimKind::Value && claim.statistic == Statistic::Mean,
                _ => false,
            };
            assert_eq!(claim.sigma.is_some(), printed, "{name}: three sources print what their seeds did");
            let novograd = matches!(recipe.train.optimizer, OptimizerSpec::Novograd { .. });
            assert!(claim.value != Some(28.0) || novograd, "{name}: 28.0 is the NovoGrad configuration's");
        }
    }
}

fn values(name: &str) -> Vec<(ClaimKind, f64, String)> {
    let recipe = load(name).resolve(&Selection::default()).unwrap().recipe;
    recipe
        .claim
        .iter()
        .filter_map(|claim| Some((claim.kind, claim.value?, claim.arm.clone().unwrap_or_default())))
        .collect()
}

#[test]
fn published_numbers_are_those_of_the_sources() {
    use ClaimKind::{Bound, Ratio, Value};
    let expected = |list: &[(ClaimKind, f64, &str)]| -> Vec<(ClaimKind, f64, String)> {
        list.iter().map(|(kind, value, arm)| (*kind, *value, (*arm).to_owned())).collect()
    };
    assert_eq!(values("reversal-transformer"), expected(&[(Bound, 90.0, "any")]));
    assert_eq!(values("multi30k-transformer-tiny"), expected(&[(Value, 41.02, "fp32")]));
    assert_eq!(
        values("transformer-base"),
        expected(&[
            (Value, 26.4, "any"),
            (Value, 26.6, "mixed"),
            (Ratio, 1.53, "mixed"),
            (Value, 0.7, "any")
        ])
    );
    assert_eq!(
        values("transformer-big"),
        expected(&[
            (Value, 27.5, "any"),
            (Value, 27.5, "mixed"),
            (Ratio, 1.5, "mixed"),
            (Ratio, 1.5, "mixed")
        ])
    );
    let iwslt = [26.46, 27.06, 26.68, 27.03, 28.35, 28.85].map(|value| (Value, value, "fp32"));
    assert_eq!(values("iwslt14-lstm"), expected(&iwslt));
    assert_eq!(values("transformer-nvgrad"), expected(&[(Value, 28.0, "mixed")]));
    assert_eq!(values("vaswani-base"), expected(&[(Value, 27.3, "any")]));
    assert_eq!(values("vaswani-big"), expected(&[(Value, 28.4, "any")]));
    assert_eq!(
        values("fairseq-transformer-big"),
        expected(&[(Value, 29.29, "mixed"), (Value, 28.6, "mixed")])
    );
    assert_eq!(
        values("transformer-big-nvidia"),
        expected(&[
            (Value, 27.66, "fp32"),
            (Value, 27.82, "mixed"),
            (Value, 27.92, "tf32"),
            (Value, 27.76, "mixed-a100"),
            (Ratio, 3.62, "mixed"),
            (Ratio, 3.63, "mixed"),
            (Ratio, 3.77, "mixed"),
            (Ratio, 3.48, "mixed"),
            (Ratio, 3.47, "mixed"),
            (Ratio, 3.12, "mixed"),
            (Ratio, 1.59, "mixed-a100"),
            (Ratio, 1.6, "mixed-a100"),
            (Ratio, 1.6, "mixed-a100"),
            (Ratio, 3.8, "mixed-dgx2"),
            (Ratio, 3.89, "mixed-dgx2"),
            (Ratio, 3.91, "mixed-dgx2"),
            (Ratio, 4.06, "mixed-dgx2"),
            (Ratio, 2.62, "mixed"),
            (Ratio, 1.04, "mixed-a100"),
        ])
    );
    let toy = load("reversal-transformer").resolve(&Selection::default()).unwrap().recipe;
    assert_eq!(toy.claim[0].extends.as_deref(), Some("reversal-rnn-rnn"));
}

#[test]
fn test_sets_are_the_published_ones() {
    let lines = |name: &str, set: &str| {
        let recipe = translation(load(name).resolve(&Selection::default()).unwrap().recipe);
        let set = &recipe.data.eval[set];
        (set.lines, set.reference_tokens)
    };
    assert_eq!(lines("transformer-base", "test"), (2737, None));
    assert_eq!(lines("transformer-big", "test"), (2737, None));
    assert_eq!(lines("transformer-base", "valid"), (3000, None));
    assert_eq!(lines("multi30k-transformer-tiny", "valid").0, 1014);
    assert_eq!(lines("multi30k-transformer-tiny", "test"), (1000, Some(12103)));
    assert_eq!(lines("multi30k-transformer-tiny", "test_2017_mscoco").0, 461);
    assert_eq!(lines("reversal-transformer", "test"), (2000, None));
    assert_eq!(lines("transformer-nvgrad", "test"), (2737, None));
    for full in ["transformer-big-nvidia", "vaswani-base", "vaswani-big", "fairseq-transformer-big"] {
        assert_eq!(lines(full, "test"), (3003, None), "{full}");
    }
    assert_eq!(lines("fairseq-transformer-big", "test_raw"), (3003, None));
}

#[test]
fn big_is_base_with_other_sizes_and_its_own_claims() {
    let base = load("transformer-base");
    let big = load("transformer-big");
    assert_eq!(big.base(), Some("transformer-base"));
    assert_eq!(big.arms(), base.arms());
    assert_eq!(big.tiers(), base.tiers());
    let (base, big) = (
        translation(base.resolve(&Selection::default()).unwrap().recipe),
        translation(big.resolve(&Selection::default()).unwrap().recipe),
    );
    assert_eq!(big.data, base.data);
    assert_eq!(big.decode, base.decode);
    assert_eq!(big.loss, base.loss);
    assert_eq!(big.train.optimizer, base.train.optimizer);
    assert_eq!(big.train.max_updates, Some(300_000));
    assert_eq!(big.model.width, 1024);
    let TokenEncoderSpec::Transformer(encoder) = &big.model.encoder else { panic!("no Transformer") };
    assert_eq!((encoder.layers, encoder.heads, encoder.ffn), (6, 16, 4096));
    assert_eq!((encoder.dropout, encoder.attention_dropout, encoder.activation_dropout), (0.3, 0.1, 0.3));
    assert!(big.claim.iter().all(|claim| claim.value != Some(1.53)), "claims are not inherited");
}

#[test]
fn what_differs_from_a_source_is_not_inherited_and_makes_no_other_recipe() {
    let whole = |name: &str| load(name).resolve(&Selection::default()).unwrap();
    let base = whole("wave2letter");
    assert!(!base.recipe.recipe.differs.is_empty());
    assert_eq!(load("fsdd-digits-deepspeech2").base(), Some("fsdd-digits"));
    assert!(whole("fsdd-digits-deepspeech2").recipe.recipe.differs.is_empty());

    let stated = base.toml.find("differs = ").expect("it is printed");
    let end = stated + base.toml[stated..].find("]\n").unwrap() + 2;
    let silent = Recipe::from_toml(&[&base.toml[..stated], &base.toml[end..]].concat()).unwrap();
    assert!(silent.recipe.differs.is_empty());
    assert_eq!(silent.hash(), base.hash);

    let text = "[recipe]\nbase = \"wave2letter\"\nname = \"own\"\norigin = \"this file\"\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    std::fs::write(&file, text).unwrap();
    let own = load(file.to_str().unwrap()).resolve(&Selection::default()).unwrap().recipe;
    assert!(own.recipe.differs.is_empty(), "its source is not wave2letter's");

    let base = whole("multi30k-transformer-tiny");
    let counted = base.recipe.recipe.vocabulary_rows;
    assert_eq!(counted, Some(9712));
    std::fs::write(&file, text.replace("wave2letter", "multi30k-transformer-tiny")).unwrap();
    let own = load(file.to_str().unwrap()).resolve(&Selection::default()).unwrap().recipe;
    assert_eq!(own.recipe.vocabulary_rows, None, "its data may be other data");
    let silent = Recipe::from_toml(&base.toml.replace("vocabulary_rows = 9712\n", "")).unwrap();
    assert_eq!((silent.recipe.vocabulary_rows, silent.hash()), (None, base.hash));
}

#[test]
fn nvgrad_is_big_with_another_optimizer_and_twice_the_updates() {
    let whole = |name: &str| translation(load(name).resolve(&Selection::default()).unwrap().recipe);
    let (big, nvgrad) = (whole("transformer-big"), whole("transformer-nvgrad"));
    let mut model = nvgrad.model.clone();
    let (TokenEncoderSpec::Transformer(encoder), TokenDecoderSpec::Transformer(decoder)) =
        (&mut model.encoder, &mut model.decoder)
    else {
        panic!("no Transformer")
    };
    assert_eq!((encoder.norm_epsilon, decoder.norm_epsilon), (1e-5, 1e-5));
    (encoder.norm_epsilon, decoder.norm_epsilon) = (1e-6, 1e-6);
    assert_eq!(model, big.model);
    assert_eq!((&nvgrad.loss, &nvgrad.decode), (&big.loss, &big.decode));
    assert_eq!(nvgrad.train.max_updates, Some(600_000));
    let OptimizerSpec::Novograd { variant, .. } = nvgrad.train.optimizer else { panic!("no NovoGrad") };
    assert_eq!(variant, NovogradVariant::AsCoded);
    // The override that selects the published formula.
    let overrides = vec!["train.optimizer.variant=published".to_owned()];
    let selection = Selection { overrides, ..Selection::arm("mixed") };
    let switched = load("transformer-nvgrad").resolve(&selection).unwrap();
    assert!(!switched.reproduces());
    let OptimizerSpec::Novograd { variant, beta2, .. } = switched.recipe.train.optimizer else {
        panic!("no NovoGrad")
    };
    assert_eq!((variant, beta2), (NovogradVariant::Published, 0.99));
}

#[test]
fn nvidias_arms_have_the_batches_and_rates_of_its_machines() {
    let document = load("transformer-big-nvidia");
    let found: Vec<(&str, u32, u32, f64, ComputeType)> = document
        .arms()
        .into_iter()
        .map(|arm| {
            let recipe = translation(document.resolve(&Selection::arm(arm)).unwrap().recipe);
            let TextBatchingSpec::Tokens { max_tokens, .. } = recipe.data.batching else { panic!("{arm}") };
            let ScheduleSpec::InverseSqrt { lr, .. } = recipe.train.schedule else { panic!("{arm}") };
            (arm, recipe.train.batches_per_update, max_tokens, lr, recipe.precision.compute)
        })
        .collect();
    use ComputeType::{Fp16, Fp32};
    assert_eq!(
        found,
        [
            ("fp32", 8, 2560, 8.46e-4, Fp32),
            ("mixed", 8, 5120, 6e-4, Fp16),
            ("tf32", 8, 10240, 8.46e-4, Fp32),
            ("mixed-a100", 8, 10240, 8.46e-4, Fp16),
            ("fp32-dgx2", 16, 5120, 8.46e-4, Fp32),
            ("mixed-dgx2", 16, 10240, 1e-3, Fp16),
        ]
    );
    // Half-precision arms use the same loss scaling. The arms of an equal-batch claim have equal
    // batches, or the claim's note gives the batch.
    let scaling = |arm| document.resolve(&Selection::arm(arm)).unwrap().recipe.precision.loss_scaling.clone();
    assert_eq!(scaling("mixed"), scaling("mixed-a100"));
    assert_eq!(scaling("mixed"), scaling("mixed-dgx2"));
    let claims = document.resolve(&Selection::default()).unwrap().recipe.claim.clone();
    let tokens = |arm: &str| found.iter().find(|row| row.0 == arm).unwrap().2;
    for claim in claims.iter().filter(|claim| claim.kind == ClaimKind::Ratio) {
        let (arm, baseline) = (claim.arm.as_deref().unwrap(), claim.baseline.as_deref().unwrap());
        let equal = tokens(arm) == tokens(baseline);
        let said = claim.note.as_deref().unwrap_or_default().contains("in both arms");
        match claim.protocol.unwrap() {
            RatioProtocol::AsPublished => assert!(!equal && !said, "{claim:?}"),
            RatioProtocol::EqualBatch => assert!(equal || said, "{claim:?}"),
        }
    }
}

/// 310,000 updates of 512 pairs are 35 epochs, according to the configuration's comment.
#[test]
fn convs2s_sees_its_pairs_equally_often_in_both_arms() {
    let arm = |arm: &str, tier: Option<&str>| {
        let selection = Selection { tier: tier.map(str::to_owned), ..Selection::arm(arm) };
        load("convs2s").resolve(&selection).unwrap().recipe.train.clone()
    };
    let (fp32, mixed) = (arm("fp32", None), arm("mixed", None));
    assert_eq!((fp32.max_updates, fp32.max_epochs), (Some(310_000), None));
    assert_eq!((mixed.max_updates, mixed.max_epochs), (Some(310_000), Some(35)));
    assert_eq!(fp32.batches_per_update, mixed.batches_per_update);
    assert_eq!(arm("mixed", Some("smoke")).max_updates, Some(20), "the tier ends first");
}

#[test]
fn arms_differ_in_precision_alone() {
    for name in names().into_iter().filter(|name| *name != "transformer-big-nvidia") {
        let document = load(name);
        assert_eq!(document.differences("fp32").unwrap(), [], "{name}");
        let differences = document.differences("mixed").unwrap();
        let keys: Vec<&str> = differences.iter().map(|difference| difference.key.as_str()).collect();
        assert!(keys.contains(&"precision.compute"), "{name}: {keys:?}");
        // The published batches of these recipes differ between arms.
        let batches = [
            "data.batching.utterances",
            "data.batching.sentences",
            "train.schedule.decay_updates",
            "train.schedule.boundaries",
            "train.schedule.factors",
            "train.max_epochs",
        ];
        let others = ["convs2s", "tacotron2", "tacotron2-nvidia"];
        let batch =
            |key: &str| (name.starts_with("wave2letter") || others.contains(&name)) && batches.contains(&key);
        // Both arms go on in the type of their training.
        let source = |key: &str| name == "fsdd-digits-finetuned" && key == "train.transfer.arm";
        let allowed = |key: &&str| key.starts_with("precision.") || batch(key) || source(key);
        assert!(keys.iter().all(allowed), "{name}: {keys:?}");
        let compute = differences.iter().find(|difference| difference.key == "precision.compute").unwrap();
        assert_eq!(compute.base.as_deref(), Some("\"fp32\""));
        assert_eq!(compute.arm.as_deref(), Some("\"fp16\""));
    }
}

#[test]
fn hashes_tell_arms_tiers_and_recipes_apart() {
    let mut seen = std::collections::BTreeMap::new();
    for name in names() {
        let document = load(name);
        for arm in ["fp32", "mixed"] {
            for tier in [None, Some("smoke".to_owned())] {
                let selection = Selection { arm: Some(arm.into()), tier, overrides: vec![] };
                let resolved = document.resolve(&selection).unwrap();
                let other = seen.insert(resolved.hash.clone(), format!("{name} {selection:?}"));
                assert_eq!(other, None, "{name} {selection:?}");
                assert_eq!(document.resolve(&selection).unwrap().hash, resolved.hash);
            }
        }
        let whole = document.hash(None, &[]).unwrap();
        assert_eq!(seen.insert(whole.clone(), name.to_owned()), None);
        assert_ne!(whole, document.hash(Some("smoke"), &[]).unwrap());
        assert_ne!(whole, document.hash(None, &["train.seed=9".into()]).unwrap());
    }
}

#[test]
fn a_claim_changes_the_recipe_but_not_what_training_depends_on() {
    let selection = Selection::arm("fp32");
    let text = embedded().iter().find(|recipe| recipe.name == "multi30k-transformer-tiny").unwrap().text;
    let changed = text.replace("value = 41.02", "value = 42.02");
    let resolve = |text: &str| {
        let document =
            Document::parse(text, "multi30k-transformer-tiny.toml", std::path::Path::new("")).unwrap();
        document.resolve(&selection).unwrap()
    };
    let (one, other) = (resolve(text), resolve(&changed));
    assert_ne!(one.hash, other.hash);
    let training = ["data", "model", "loss", "train", "precision"];
    assert_eq!(one.hash_of(&training), other.hash_of(&training));
    assert_ne!(one.hash_of(&["data"]), one.hash_of(&["model"]));
}

/// Counts claims by who makes the statement. A parity claim is published only if its source prints
/// the scores of both arms for this system.
#[test]
fn parity_is_published_only_where_both_scores_are_printed() {
    let mut counts = std::collections::BTreeMap::new();
    let mut published = Vec::new();
    for name in names() {
        let recipe = load(name).resolve(&Selection::default()).unwrap().recipe;
        for (at, claim) in recipe.claim.iter().enumerate() {
            let statement = claim.statement();
            *counts.entry(statement).or_insert(0) += 1;
            if claim.kind == ClaimKind::Parity && statement == Statement::Published {
                published.push(format!("{name} {}", at + 1));
            }
            // A note with these words belongs to an own check.
            let unpublished = claim.note.as_ref().is_some_and(|note| note.contains("nobody published"));
            assert!(!unpublished || statement == Statement::Own, "{name}: {:?}", claim.note);
        }
    }
    let pairs = [
        "deepspeech2-english 3",
        "deepspeech2-mandarin 3",
        "gnmt-v2 14",
        "gnmt-v2 15",
        "transformer-big-nvidia 5",
        "transformer-big-nvidia 6",
    ];
    assert_eq!(published, pairs);
    assert_eq!(counts[&Statement::Extended], 8);
    assert_eq!(counts[&Statement::Own], 147);
}
