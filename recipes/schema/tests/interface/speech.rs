//! Compares the recipes of speech with what their sources print.

use zoo_recipes::tasks::speech_recognition::{
    AcousticLayerSpec, AcousticSpec, Activation, ClassTokenizerSpec, CtcDenominator, CtcLossSpec,
    CtcSearchSpec, Residual, WordsSpec,
};
use zoo_recipes::*;

const LIBRISPEECH: [(&str, u32); 5] =
    [("dev-clean", 2703), ("dev-other", 2864), ("test-clean", 2620), ("test-other", 2939), ("valid", 2703)];

fn load(name: &str) -> Document {
    Document::load(name).unwrap_or_else(|error| panic!("{name}:\n{error}"))
}

type SpeechRecipe = RecipeOf<SpeechRecognition>;

fn resolved(name: &str, selection: &Selection) -> SpeechRecipe {
    let recipe = load(name).resolve(selection).unwrap_or_else(|found| panic!("{name}:\n{found}")).recipe;
    SpeechRecognition::take(recipe).unwrap_or_else(|| panic!("{name} is of another task"))
}

fn body(name: &str) -> SpeechRecipe {
    resolved(name, &Selection::default())
}

fn arm(name: &str, arm: &str) -> SpeechRecipe {
    resolved(name, &Selection::arm(arm))
}

fn speech() -> Vec<&'static str> {
    embedded().iter().filter(|recipe| recipe.task == "speech-recognition").map(|recipe| recipe.name).collect()
}

fn encoder(recipe: &SpeechRecipe) -> &AcousticSpec {
    recipe.model.layers()
}

fn utterances(recipe: &SpeechRecipe) -> u32 {
    let RecordingBatchingSpec::Utterances { utterances } = recipe.data.batching else {
        panic!("no utterances")
    };
    utterances
}

/// Initial learning rate, length of the decay, and power of a polynomial or factor of an
/// exponential.
fn schedule(recipe: &SpeechRecipe) -> (f64, Option<u64>, f64) {
    match recipe.train.schedule {
        ScheduleSpec::PolyDecay { lr, decay_updates, power, .. } => (lr, decay_updates, power),
        ScheduleSpec::ExpDecay { lr, decay_updates, decay_rate, .. } => (lr, decay_updates, decay_rate),
        ref other => panic!("{other:?}"),
    }
}

/// Repeats, kernel, channels, stride, dilation, and keep probability.
fn convolutions(recipe: &SpeechRecipe) -> Vec<(u32, u32, u32, u32, u32, f64)> {
    let row = |layer: &AcousticLayerSpec| {
        let AcousticLayerSpec::Convolution(layer) = layer else { panic!("{layer:?}") };
        let keep = ((1.0 - layer.dropout) * 10.0).round() / 10.0;
        (layer.repeat, layer.kernel, layer.channels, layer.stride, layer.dilation, keep)
    };
    encoder(recipe).layer.iter().map(row).collect()
}

#[test]
fn every_recipe_resolves_in_every_arm_and_tier() {
    let names = speech();
    assert_eq!(names.len(), 15, "{names:?}");
    for name in names {
        let document = load(name);
        document.check().unwrap_or_else(|found| panic!("{name}:\n{found}"));
        assert!(["fp32", "mixed"].iter().all(|arm| document.arms().contains(arm)), "{name}");
        assert_eq!(document.tiers(), ["smoke"], "{name}");
    }
}

#[test]
fn settings_are_those_of_the_configurations() {
    // Arm, utterances per GPU, GPUs, initial learning rate, length of the decay, power or factor,
    // L2, LARC.
    type Row = (&'static str, &'static str, u32, u32, f64, Option<u64>, f64, Option<f64>, bool);
    let rows: [Row; 9] = [
        ("wave2letter", "fp32", 32, 8, 0.05, Some(281_241 / 32 / 8 * 200), 2.0, Some(1e-3), true),
        ("wave2letter", "mixed", 64, 8, 0.05, Some(281_241 / 64 / 8 * 200), 2.0, Some(1e-3), true),
        ("wave2letter-plus", "fp32", 32, 8, 0.05, Some(219_600), 2.0, Some(1e-3), true),
        ("wave2letter-plus", "mixed", 64, 8, 0.05, Some(109_800), 2.0, Some(1e-3), true),
        ("deepspeech2-large", "mixed", 16, 8, 1e-3, None, 0.5, Some(5e-4), true),
        ("deepspeech2-medium", "fp32", 32, 4, 2e-4, None, 0.5, Some(5e-4), false),
        ("deepspeech2-small", "fp32", 32, 1, 1e-4, Some(5000), 0.9, Some(5e-4), false),
        ("jasper-10x5", "mixed", 32, 8, 0.02, None, 2.0, None, true),
        ("jasper-10x5-nvidia", "mixed", 32, 16, 0.01, Some(544), 0.981, None, false),
    ];
    for (name, selected, batch, gpus, lr, decay, power, l2, larc) in rows {
        let recipe = arm(name, selected);
        assert_eq!(
            (utterances(&recipe), recipe.train.batches_per_update),
            (batch, gpus),
            "{name} {selected}"
        );
        assert_eq!(schedule(&recipe), (lr, decay, power), "{name} {selected}");
        let scale = recipe.train.regularizer.as_ref().map(|RegularizerSpec::L2 { scale, .. }| *scale);
        assert_eq!(scale, l2, "{name}");
        assert_eq!(recipe.train.larc.as_ref().map(|larc| larc.eta), larc.then_some(1e-3), "{name}");
        assert_eq!(recipe.data.corpus.as_deref(), Some("librispeech"), "{name}");
        let CtcLossSpec::Ctc { denominator } = recipe.loss;
        assert_eq!(denominator, CtcDenominator::Utterances, "{name}");
        let sets: Vec<(&str, u32)> =
            recipe.data.eval.iter().map(|(name, set)| (name.as_str(), set.lines)).collect();
        assert_eq!(sets, LIBRISPEECH, "{name}");
        let ClassTokenizerSpec::Characters { alphabet, .. } = &recipe.data.tokenizer else {
            panic!("{name}")
        };
        assert_eq!(alphabet, " abcdefghijklmnopqrstuvwxyz'", "{name}");
    }
    // Utterances / batch / GPUs x epochs, rounded down at each step as in the source.
    for (name, updates) in [
        ("deepspeech2-large", 281_241 / 16 / 8 * 200),
        ("deepspeech2-medium", 281_241 / 32 / 4 * 50),
        ("deepspeech2-small", (28_539 + 104_014) / 32 * 12),
        ("jasper-10x5", 281_241 / 32 / 8 * 400),
        ("jasper-10x5-nvidia", 544 * 440),
    ] {
        assert_eq!(body(name).train.max_updates, Some(updates), "{name}");
    }
    assert_eq!(body("wave2letter").train.max_epochs, Some(200));
    assert_eq!(body("deepspeech-mozilla").train.max_epochs, Some(10));
}

#[test]
fn longest_utterances_and_training_splits_are_the_published_ones() {
    for (name, seconds, split) in [
        ("wave2letter-plus", Some(16.7), "train"),
        ("deepspeech2-large", Some(16.7), "train"),
        ("deepspeech2-medium", None, "train"),
        ("deepspeech2-small", None, "train-clean"),
        ("jasper-10x5", Some(16.7), "train"),
    ] {
        let data = body(name).data;
        assert_eq!((data.filter.max_seconds, data.training()), (seconds, split), "{name}");
    }
}

#[test]
fn wave2letter_has_the_published_convolutions_and_plus_changes_two() {
    let (plain, plus) = (body("wave2letter"), body("wave2letter-plus"));
    let mut published = vec![
        (3, 11, 256, 1, 1, 0.8),
        (3, 13, 384, 1, 1, 0.8),
        (3, 17, 512, 1, 1, 0.8),
        (3, 21, 640, 1, 1, 0.7),
        (3, 25, 768, 1, 1, 0.7),
        (1, 29, 896, 1, 1, 0.6),
        (1, 1, 1024, 1, 1, 0.6),
    ];
    assert_eq!(convolutions(&plain), published);
    published[5].4 = 2;
    published.insert(0, (1, 11, 256, 2, 1, 0.8));
    assert_eq!(convolutions(&plus), published);
    for layer in &encoder(&plus).layer {
        let AcousticLayerSpec::Convolution(layer) = layer else { panic!("{layer:?}") };
        assert_eq!((layer.activation, layer.residual), (Activation::Relu20, Residual::None));
    }
    let same = |recipe: &SpeechRecipe| (recipe.data.clone(), recipe.train.clone(), recipe.loss.clone());
    assert_eq!(same(&plain), same(&plus));
    assert_eq!((encoder(&plain).norm, encoder(&plain).init), (encoder(&plus).norm, encoder(&plus).init));
}

#[test]
fn jasper_is_ten_dense_blocks_of_five_in_both_sources() {
    let (first, second) = (body("jasper-10x5"), body("jasper-10x5-nvidia"));
    let mut published = vec![(1, 11, 256, 2, 1, 0.8)];
    for (kernel, channels, keep) in
        [(11, 256, 0.8), (13, 384, 0.8), (17, 512, 0.8), (21, 640, 0.7), (25, 768, 0.7)]
    {
        published.extend([(5, kernel, channels, 1, 1, keep); 2]);
    }
    published.extend([(1, 29, 896, 1, 2, 0.6), (1, 1, 1024, 1, 1, 0.6)]);
    assert_eq!(convolutions(&first), published);
    assert_eq!(encoder(&first).layer, encoder(&second).layer);
    let dense = |layer: &&AcousticLayerSpec| matches!(layer, AcousticLayerSpec::Convolution(layer) if layer.residual == Residual::Dense);
    assert_eq!(encoder(&first).layer.iter().filter(dense).count(), 10);
    let novograd = |recipe: &SpeechRecipe| match recipe.train.optimizer {
        OptimizerSpec::Novograd { beta1, beta2, weight_decay, variant, .. } => {
            (beta1, beta2, weight_decay, variant)
        }
        _ => panic!("no NovoGrad"),
    };
    assert_eq!(novograd(&first), (0.95, 0.98, 1e-3, NovogradVariant::AsCoded));
    assert_eq!(novograd(&second), (0.95, 0.0, 1e-3, NovogradVariant::Published));
}

#[test]
fn deep_speech_2_comes_in_the_published_sizes() {
    // Channels of the convolutions; cells, layers, directions; row convolution; dense units;
    // features.
    for (name, channels, (layers, hidden, both), row, units, features) in [
        ("deepspeech2-large", vec![32, 32], (5, 800, true), None, 1600, 160),
        ("deepspeech2-medium", vec![32, 64, 96], (3, 1024, false), Some(8), 2048, 160),
        ("deepspeech2-small", vec![32, 32], (2, 512, true), None, 1024, 96),
    ] {
        let recipe = body(name);
        let (mut images, mut rows, mut dense) = (Vec::new(), None, 0);
        for layer in &encoder(&recipe).layer {
            match layer {
                AcousticLayerSpec::Convolution2d(layer) => images.push(layer.channels),
                AcousticLayerSpec::Recurrent(layer) => {
                    assert_eq!((layer.layers, layer.hidden, layer.bidirectional), (layers, hidden, both));
                    assert_eq!((layer.cell, layer.biases, layer.dropout), (RecurrentCell::Gru, 2, 0.5));
                }
                AcousticLayerSpec::RowConvolution(layer) => rows = Some(layer.width),
                AcousticLayerSpec::Dense(layer) => dense = layer.units,
                AcousticLayerSpec::Convolution(layer) => panic!("{name}: {layer:?}"),
            }
        }
        assert_eq!((images, rows, dense), (channels, row, units), "{name}");
        assert_eq!(recipe.data.features.features(), features, "{name}");
    }
    let mixed = arm("deepspeech2-large", "mixed");
    assert_eq!(mixed.precision.loss_scaling, LossScalingSpec::None, "published without a scaler");
}

#[test]
fn published_scores_are_those_of_the_sources() {
    let scores = |name: &str, search: &str, arm: &str| -> Vec<(String, f64)> {
        let claims = body(name).common.claim.into_iter();
        claims
            .filter(|claim| claim.kind == ClaimKind::Value)
            .filter(|claim| claim.decode.as_deref() == Some(search) && claim.arm.as_deref() == Some(arm))
            .filter_map(|claim| Some((claim.eval?, claim.value?)))
            .collect()
    };
    let four = |values: [f64; 4]| -> Vec<(String, f64)> {
        LIBRISPEECH.iter().map(|(set, _)| (*set).to_owned()).zip(values).collect()
    };
    let sorted = |mut list: Vec<(String, f64)>| {
        list.sort_by(|one, other| one.0.cmp(&other.0));
        list
    };
    assert_eq!(scores("wave2letter", "greedy", "any"), [("dev-clean".to_owned(), 7.17)]);
    for (name, search, arm, values) in [
        ("wave2letter-plus", "greedy", "mixed", [6.67, 18.67, 6.58, 19.61]),
        ("wave2letter-plus", "beam-4-gram", "mixed", [4.75, 13.87, 4.94, 15.06]),
        ("jasper-10x5", "greedy", "mixed", [3.61, 11.36, 3.77, 11.08]),
        ("jasper-10x5", "beam-6-gram", "mixed", [2.78, 9.01, 3.19, 9.03]),
        ("jasper-10x5-nvidia", "greedy", "mixed", [3.34, 10.04, 3.54, 10.02]),
        ("jasper-10x5-nvidia", "greedy", "mixed-a100", [3.39, 10.25, 3.65, 10.26]),
    ] {
        assert_eq!(sorted(scores(name, search, arm)), four(values), "{name} {search} {arm}");
    }
    for (name, arm, value) in [
        ("deepspeech2-large", "mixed", 6.71),
        ("deepspeech2-medium", "any", 22.6),
        ("deepspeech2-small", "any", 39.08),
    ] {
        assert_eq!(scores(name, "greedy", arm), [("dev-clean".to_owned(), value)], "{name}");
    }
    for name in ["fsdd-digits", "fsdd-digits-deepspeech2"] {
        assert_eq!(body(name).claim.len(), 1, "{name}: nothing was published, and parity is no value");
    }
    let mozilla = body("deepspeech-mozilla").common.claim;
    let values = mozilla.iter().filter(|claim| claim.kind == ClaimKind::Value);
    let latencies: Vec<_> = values.map(|claim| (claim.metric.as_str(), claim.value.unwrap())).collect();
    let printed = [655.0, 700.0, 1200.0].map(|value| ("latency-ms", value));
    assert_eq!(latencies, printed, "no score is of a set that has a name");
    // Published training times: 2:27:54 and 1:39:03.
    let (fp32, mixed) = (2 * 3600 + 27 * 60 + 54, 3600 + 39 * 60 + 3);
    let ratio = (f64::from(fp32) / f64::from(mixed) * 100.0).round() / 100.0;
    assert!(mozilla.iter().any(|claim| claim.kind == ClaimKind::Ratio && claim.value == Some(ratio)));
    for name in ["deepspeech-mozilla", "deepspeech2-english", "deepspeech2-mandarin"] {
        assert_eq!(body(name).recipe.status, DataStatus::Private, "{name}");
    }
}

#[test]
fn the_sigmas_of_jasper_are_those_of_its_printed_seeds() {
    let mut seen = 0;
    for claim in body("jasper-10x5-nvidia").claim.iter().filter(|claim| claim.kind == ClaimKind::Value) {
        let note = claim.note.as_deref().unwrap();
        let list = note.split("seeds ").nth(1).unwrap().split(',').next().unwrap();
        let seeds: Vec<f64> = list.split(' ').map(|seed| seed.parse().unwrap()).collect();
        assert_eq!((seeds.len(), claim.n), (8, Some(8)), "{note}");
        let mean = seeds.iter().sum::<f64>() / 8.0;
        let sigma = (seeds.iter().map(|seed| (seed - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
        assert!((mean - claim.value.unwrap()).abs() < 0.0051, "{note}: {mean}");
        assert!((sigma - claim.sigma.unwrap()).abs() < 1e-4, "{note}: {sigma}");
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[test]
fn claims_say_where_they_are_from_and_searches_wait_for_their_language_model() {
    for name in speech() {
        let recipe = body(name);
        for claim in &recipe.claim {
            assert!(claim.source.len() > 20, "{name}: {:?}", claim.source);
            assert!(claim.note.is_some(), "{name}: {:?}", claim.source);
        }
        for (search, spec) in &recipe.decode {
            let CtcSearchSpec::Beam { needs_language_model, language_model, words, .. } = spec else {
                continue;
            };
            assert!(*needs_language_model && language_model.is_none(), "{name}.{search}");
            // All are Baidu's decoder or derived from it.
            assert_eq!(*words, Some(WordsSpec::OfLanguageModel {}), "{name}.{search}");
            // A run with a given language model still counts as a reproduction.
            let overrides = vec![format!("decode.{search}.language_model=model.arpa.gz")];
            let given = load(name).resolve(&Selection { overrides, ..Selection::arm("mixed") }).unwrap();
            assert!(given.reproduces(), "{name}.{search}");
        }
    }
}

/// The text of a recipe: that of `tests/written-out` if there is one, otherwise that of the
/// catalog.
fn text(name: &str) -> String {
    let written_out =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/written-out/{name}.toml"));
    std::fs::read_to_string(written_out)
        .unwrap_or_else(|_| embedded().iter().find(|recipe| recipe.name == name).unwrap().text.to_owned())
}

/// The errors of a changed copy.
fn wrong(name: &str, from: &str, to: &str) -> String {
    let text = text(name);
    assert!(text.contains(from), "{name} has no {from:?}");
    let changed = text.replacen(from, to, 1);
    match Document::parse(&changed, &format!("{name}.toml"), std::path::Path::new("")) {
        Ok(document) => document.check().expect_err("accepted").to_string(),
        Err(found) => found.to_string(),
    }
}

#[test]
fn the_training_split_must_be_there() {
    let name = "deepspeech-mozilla";
    for (from, to, message) in [
        ("{ train = ", "{ training = ", "`data.reader.files` has no split `train`"),
        (
            "[data.reader]",
            "[data]\ntrain_split = \"training\"\n\n[data.reader]",
            "`data.reader.files` has no split `training`",
        ),
        ("[data.reader]", "[data]\ntrain_split = \" \"\n\n[data.reader]", "`data.train_split` is empty"),
    ] {
        let found = wrong(name, from, to);
        assert!(found.contains(message), "{found}");
    }
    let found = wrong("fsdd-digits", "corpus = \"fsdd\"", "corpus = \"fsdd\"\ntrain_split = \"takes\"");
    assert!(found.contains("nothing is said of how many utterances `takes` has"), "{found}");
    // A tier with generated data removes the key.
    let found = wrong("deepspeech2-small", "without = [\"data.train_split\"]", "");
    assert!(found.contains("the reader makes its data"), "{found}");
    assert!(found.contains("without = [\"data.train_split\"]"), "{found}");
}

#[test]
fn weights_of_a_language_model_need_one_given_or_awaited() {
    let found = wrong("jasper-10x5", "needs_language_model = true\n", "");
    assert!(found.contains("`alpha` and `beta` weigh a language model, and there is none"), "{found}");
    assert!(found.contains("or needs_language_model = true"), "{found}");
    let found = wrong("jasper-10x5", "needs_language_model = true", "language_model = \"\"");
    assert!(found.contains("`decode.beam-6-gram.language_model` is empty"), "{found}");
}

#[test]
fn words_to_spell_need_a_source_and_an_alphabet_with_a_space() {
    let words = "words = { kind = \"of-language-model\" }";
    let found = wrong("wave2letter", words, "words = { kind = \"listed\", file = \" \" }");
    assert!(found.contains("`decode.beam-4-gram.words.file` is empty"), "{found}");
    let found = wrong("wave2letter", "\" abcdefghijklmnopqrstuvwxyz'\"", "\"abcdefghijklmnopqrstuvwxyz'\"");
    assert!(found.contains("the tokenizer has none"), "{found}");
    let bare = "[decode.greedy]\nkind = \"ctc-beam\"\nbeam = 8\n".to_owned() + words;
    let found = wrong("wave2letter", "[decode.greedy]\nkind = \"ctc-greedy\"", &bare);
    assert!(found.contains("the words are those of a language model, and there is none"), "{found}");
    let listed = bare.replace("of-language-model\"", "listed\", file = \"words.txt\"");
    let text = text("wave2letter");
    let changed = text.replacen("[decode.greedy]\nkind = \"ctc-greedy\"", &listed, 1);
    Document::parse(&changed, "wave2letter.toml", std::path::Path::new("")).unwrap().check().unwrap();
}

#[test]
fn nvidias_jasper_averages_its_weights_and_warms_up() {
    let train = body("jasper-10x5-nvidia").common.train;
    assert_eq!(train.checkpoint.ema, Some(0.999));
    let best = EvaluatedWeights::Best { decode: Some("greedy".into()), from_epoch: 380 };
    assert_eq!(train.checkpoint.evaluate, best);
    let ScheduleSpec::ExpDecay { warmup_updates, begin_decay_at, .. } = train.schedule else { panic!() };
    // Two epochs of warm-up and 140 at the peak. The decay's exponent is 1 in epoch 143.
    assert_eq!((warmup_updates, begin_decay_at), (2 * 544, (2 + 140 - 1) * 544));
    let name = "jasper-10x5-nvidia";
    let found = wrong(name, "warmup_updates = 1088", "warmup_updates = 80000");
    assert!(found.contains("the warm-up of 80000 updates ends behind the decay's begin, 76704"), "{found}");
    let best = "{ kind = \"best\", decode = \"greedy\", from_epoch = 380 }";
    let found = wrong(name, best, "{ kind = \"mean-of-epochs\", epochs = 2 }");
    assert!(found.contains("both make a mean of weights"), "{found}");
    let found = wrong(name, "decode = \"greedy\", from_epoch", "decode = \"gredy\", from_epoch");
    assert!(found.contains("names the search `gredy`") && found.contains("`greedy`"), "{found}");
    let found = wrong(name, "max_updates = 239360", "max_epochs = 379");
    assert!(
        found.contains("the run has 379 epochs, and the best is looked for from epoch 380 on"),
        "{found}"
    );
    let found =
        wrong(name, "batches_per_update = 16 #", "patience = { epochs = 3 }\nbatches_per_update = 16 #");
    assert!(found.contains("wait for a lower loss"), "{found}");
    let found = wrong(name, "ema = 0.999", "ema = 1.0");
    assert!(found.contains("train.checkpoint.ema"), "{found}");
}

#[test]
fn the_papers_deep_speech_2_has_nesterovs_momentum() {
    for name in ["deepspeech2-english", "deepspeech2-mandarin"] {
        let velocity = Velocity::Gradients;
        let sgd = OptimizerSpec::Sgd { momentum: 0.9, weight_decay: 0.0, nesterov: true, velocity };
        let rule = body(name).common.train.optimizer;
        assert_eq!(rule, sgd, "{name}");
    }
    let found = wrong("deepspeech2-english", "momentum = 0.9\nnesterov", "momentum = 0.0\nnesterov");
    assert!(found.contains("`momentum` must be above 0"), "{found}");
}

#[test]
fn numbers_and_arrays_that_no_type_holds_are_said_where_they_stand() {
    let name = "deepspeech2-large";
    let found = wrong(name, "max_db = -60", "max_db = -2147483649");
    assert!(
        found.contains("`data.augmentation.noise.max_db` is -2147483649; it must be -2147483648"),
        "{found}"
    );
    for (array, items) in [("[11]", 1), ("[11, 41, 3]", 3)] {
        let found = wrong(name, "[11, 41]", array);
        let message = format!("`model.encoder.layer.0.kernel` has {items} items; 2 are due here");
        assert!(found.contains(&message), "{found}");
        assert!(!found.contains("cannot be read"), "{found}");
    }
}
