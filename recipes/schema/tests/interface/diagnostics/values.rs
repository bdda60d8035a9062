//! Numbers out of range, and parts that do not fit together.

use std::path::Path;

use zoo_recipes::{Document, Selection, embedded};

use super::{NAME, findings, one, one_of, text};

#[test]
fn ranges_are_checked() {
    one("heads = 4", "heads = 3", "3\nffn", "3 heads do not divide the model width 128", "");
    one("heads = 4", "heads = 0", "0\nffn", "`model.encoder.heads` is 0", "");
    one("width = 128", "width = 127", "127", "need an even width", "");
    one(
        "attention_dropout = 0.0",
        "attention_dropout = 1",
        "1\nactivation",
        "at least 0 and less than 1",
        "",
    );
    one("dropout = 0.3", "dropout = -0.1", "-0.1", "`model.embedding.dropout` is -0.1", "");
    one("label_smoothing = 0.1", "label_smoothing = 1.0", "1.0\nsmoothing", "less than 1", "");
    one("norm_epsilon = 1e-5", "norm_epsilon = 0", "0\nattention_bias", "must be greater than 0", "");
    one("clip_norm = 25.0", "clip_norm = 0.0", "0.0\npatience", "must be greater than 0", "");
    one("clip_norm = 25.0", "bias_lr = -1.0", "-1.0\npatience", "`train.bias_lr` is -1; it must not be", "");
    one("lr = 0.005", "lr = -0.005", "-0.005", "must not be negative", "");
    one("warmup_updates = 2000", "warmup_updates = 0", "0\nwarmup_init", "must be at least 1", "");
    one("beta2 = 0.98", "beta2 = 1.0", "1.0\nepsilon", "less than 1", "");
    one("epsilon = 1e-8", "epsilon = 0.0", "0.0\nepsilon_place", "greater than 0", "");
    one("beam = 5", "beam = 0", "0\nlength_penalty", "`decode.beam5.beam` is 0", "");
    one(
        "max_length = { factor = 0.0, extra = 201 }",
        "max_length = { factor = 0, extra = 0 }",
        "max_length = {",
        "lets nothing be written",
        "",
    );
    one("max_tokens = 4096", "max_tokens = 512", "512", "a batch holds 512 tokens", "");
    one(
        "max_source_tokens = 1024",
        "max_source_tokens = 1",
        "1\nmax_target",
        "nothing fits beside the end token",
        "",
    );
    one("scale_init = 128.0", "scale_init = 65537.0", "65537.0", "not between", "");
    one("scale_max = 65536.0", "scale_max = 1e-5", "1e-5\nstep_factor", "is less than the least", "");
    one("step_factor = 2.0", "step_factor = 1.0", "1.0\nstep_window", "the scale would not change", "");
    one("\"moses-tokenize\"]", "\"moses-tokenize\", \"lowercase\"]", "\"lowercase\"]", "there twice", "");
    one(
        "\"moses-tokenize\"]",
        "\"moses-tokenize\", \"moses-tokenize-aggressive\"]",
        "\"moses-tokenize-agg",
        "tokenized twice",
        "",
    );
}

#[test]
fn novograds_numbers_are_checked() {
    let nvgrad = |from: &str, to: &str, needle: &str, message: &str, hint: &str| {
        one_of("transformer-nvgrad", from, to, needle, message, hint);
    };
    nvgrad("beta1 = 0.95", "beta1 = 1.0", "1.0\nbeta2", "`train.optimizer.beta1` is 1", "");
    nvgrad("beta2 = 0.99", "beta2 = 1.5", "1.5\nepsilon", "`train.optimizer.beta2` is 1.5", "");
    nvgrad("epsilon = 1e-8", "epsilon = 0.0", "0.0\nweight", "must be greater than 0", "");
    nvgrad("weight_decay = 1e-5", "weight_decay = -1e-5", "-1e-5", "must not be negative", "");
    nvgrad("as-coded", "as-code", "\"as-code\"", "does not accept `as-code`", "did you mean `as-coded`?");
    nvgrad("grad_averaging", "grad_average", "grad_average", "has no key", "`grad_averaging`?");
    nvgrad("weight_decay", "epsilon_place", "epsilon_place", "has no key", "of kind `adam`");
}

#[test]
fn an_arm_without_masters_is_one_in_half_precision() {
    let masters = |compute: &str| format!("[arm.fp32.precision]\nmasters = false\ncompute = \"{compute}\"");
    one(
        "[arm.fp32.precision]\ncompute = \"fp32\"",
        &masters("fp32"),
        "false\ncompute",
        "an FP32 arm cannot train without masters",
        "or leave `masters` out",
    );
    accepted("[arm.fp32.precision]\ncompute = \"fp32\"", &masters("fp16"));
    accepted("[arm.fp32.precision]\ncompute = \"fp32\"", &masters("bf16"));
    one(
        "[arm.fp32.precision]",
        "[arm.fp32.precision]\nmaster = false",
        "master =",
        "has no key `master`",
        "did you mean `masters`?",
    );
}

#[test]
fn islands_are_left_in_half_precision_only() {
    const FP32: &str = "[arm.fp32.precision]\ncompute = \"fp32\"";
    let without =
        |compute: &str| format!("{FP32}\nislands = {{ norms = false }}").replace("fp32\"\n", compute);
    one(FP32, &without("fp32\"\n"), "islands = { norms", "`precision.compute` is fp32, so softmax", "");
    accepted(FP32, &without("fp16\"\n"));
    accepted(FP32, &without("bf16\"\n"));
    one(FP32, &without("bf16\"\n").replace("norms", "norm"), "norm = false", "has no key `norm`", "`norms`?");
    one_of(
        "multi30k-lstm",
        "mixed-unscaled = \"mixed-unscaled\"",
        "mixed-unscaled = { preset = \"mixed-unscaled\", precision.islands = { softmax = false } }",
        "false } }",
        "cannot compute attention's softmax in half precision; docs/mixed-precision.md lists",
        "leave `softmax` out",
    );
}

/// The hints of a changed copy of a recipe with an arm that switches all islands off.
fn hints(name: &str, from: &str, to: &str) -> Vec<String> {
    let text = embedded().iter().find(|recipe| recipe.name == name).unwrap().text;
    assert!(text.contains(from), "{name} has no {from:?}");
    let changed = text.replacen(from, to, 1)
        + "\n[arm.off.precision]\ncompute = \"fp16\"\nislands = { softmax = false, norms = false, loss = false }\n";
    let document = Document::parse(&changed, &format!("{name}.toml"), Path::new("")).unwrap();
    match document.resolve(&Selection::arm("off")) {
        Ok(_) => Vec::new(),
        Err(found) => found.iter().filter_map(|one| one.hint.clone()).collect(),
    }
}

#[test]
fn a_model_leaves_the_islands_of_the_operations_that_it_has() {
    let (softmax, norms, loss) = ("leave `softmax` out", "leave `norms` out", "leave `loss` out");
    for (name, due) in [
        ("multi30k-transformer-tiny", vec![]),
        ("shakespeare-char-nanogpt-cpu", vec![]),
        ("ptb-lstm-small", vec![softmax, norms]),
        ("lstm-wkt2-fp32", vec![softmax, norms]),
        ("fsdd-digits", vec![softmax, loss]),
        ("deepspeech2-small", vec![softmax, loss]),
        ("ljspeech-32", vec![softmax, loss]),
        ("fashion-mnist-lenet-d2l", vec![softmax, norms]),
        ("imdb-fasttext-keras", vec![softmax, norms]),
        ("multi30k-convs2s", vec![softmax, norms]),
    ] {
        assert_eq!(hints(name, "", ""), due, "{name}");
    }
    let (all, some) = ("kind = \"cross-entropy\"", "kind = \"sampled-softmax\"\nsampled = 8\ndraws = 1");
    assert_eq!(hints("shakespeare-char-nanogpt-cpu", all, some), [loss]);
    let layer = "{ kind = \"dense\", units = 2048, activation = \"relu-20\", dropout = 0.05 },";
    let convolution = "{ kind = \"convolution\", channels = 2048, kernel = 19, bias = true, activation = \"relu-20\", activation_before_norm = true, dropout = 0.05 },";
    assert_eq!(hints("deepspeech-mozilla", convolution, layer), [softmax, norms, loss]);
}

const ADAM: &str =
    "kind = \"adam\"\nbeta1 = 0.9\nbeta2 = 0.98\nepsilon = 1e-8\nepsilon_place = \"raw-root\"\n";

/// Checks that the recipe is valid after a change.
#[track_caller]
fn accepted(from: &str, to: &str) {
    let changed = text(NAME).replacen(from, to, 1);
    assert_ne!(changed, text(NAME));
    let document = Document::parse(&changed, &format!("{NAME}.toml"), Path::new("")).unwrap();
    // The body alone: a tier may set keys of the recipe's own kinds.
    document.resolve(&Selection::default()).unwrap();
}

#[test]
fn the_numbers_of_rmsprop_and_adadelta_are_checked() {
    for kind in ["rmsprop", "adadelta"] {
        let rule = |numbers: &str| format!("kind = \"{kind}\"\n{numbers}\n");
        let wrong = |numbers: &str, needle: &str, message: &str, hint: &str| {
            one(ADAM, &rule(numbers), needle, message, hint);
        };
        wrong("rho = 1.0\nepsilon = 1e-7", "1.0\neps", "`train.optimizer.rho` is 1; it must be", "");
        wrong("rho = -0.1\nepsilon = 1e-7", "-0.1", "at least 0 and less than 1", "");
        wrong(
            "rho = 0.9\nepsilon = 0.0",
            "0.0\n\n[train.sch",
            "`train.optimizer.epsilon` is 0; it must be greater",
            "",
        );
        wrong("rho = 0.9\nepsilon = 1e-7\nbeta1 = 0.9", "beta1 = 0.9", "`beta1`", "");
        accepted(ADAM, &rule("rho = 0.0\nepsilon = 1e-7"));
    }
}

#[test]
fn the_numbers_of_adamw_and_its_parameters_are_checked() {
    let rule = |numbers: &str| format!("kind = \"adamw\"\nbeta1 = 0.9\n{numbers}\n");
    let wrong = |numbers: &str, needle: &str, message: &str, hint: &str| {
        one(ADAM, &rule(numbers), needle, message, hint);
    };
    let rest = "epsilon = 1e-8\nweight_decay = 0.1";
    wrong(&format!("beta2 = 1.0\n{rest}"), "1.0\neps", "`train.optimizer.beta2` is 1; it must be", "");
    wrong("beta2 = 0.9\nepsilon = 0.0\nweight_decay = 0.1", "0.0\nweight", "it must be greater than 0", "");
    wrong("beta2 = 0.9\nepsilon = 1e-8\nweight_decay = -0.1", "-0.1", "must not be negative", "");
    wrong(
        &format!("beta2 = 0.9\n{rest}\ndecayed = \"matrix\""),
        "\"matrix\"",
        "does not accept `matrix`",
        "did you mean `matrices`?",
    );
    accepted(ADAM, &rule(&format!("beta2 = 0.9\n{rest}")));
    accepted(ADAM, &rule(&format!("beta2 = 0.9\n{rest}\ndecayed = \"matrices\"")));
}

#[test]
fn a_start_of_the_warm_up_needs_a_warm_up() {
    let inverse = "kind = \"inverse-sqrt\"\nlr = 0.005\nwarmup_updates = 2000\nwarmup_init_lr = 1e-7\n";
    let cosine = |rest: &str| format!("kind = \"cosine-decay\"\nlr = 0.005\ndecay_updates = 2000\n{rest}\n");
    let start = "warmup_start = \"step\"";
    one(inverse, &cosine(start), "\"step\"", "there is no warm-up to start", "");
    accepted(inverse, &cosine(&format!("warmup_updates = 10\n{start}")));
}

#[test]
fn a_velocity_needs_momentum_and_is_of_a_known_kind() {
    let sgd = |momentum: &str, velocity: &str| {
        format!("kind = \"sgd\"\nmomentum = {momentum}\nvelocity = \"{velocity}\"\n")
    };
    one(ADAM, &sgd("0.0", "steps"), "\"steps\"", "without momentum there is no velocity", "");
    one(ADAM, &sgd("0.9", "step"), "\"step\"", "does not accept `step`", "did you mean `steps`?");
    for sound in [sgd("0.9", "steps"), sgd("0.9", "gradients"), sgd("0.0", "gradients")] {
        accepted(ADAM, &sound);
    }
}

#[test]
fn the_numbers_of_inv_are_checked() {
    let rate = "kind = \"inverse-sqrt\"\nlr = 0.005\nwarmup_updates = 2000\nwarmup_init_lr = 1e-7\n";
    let inv = |numbers: &str| format!("kind = \"inv\"\n{numbers}\n");
    let wrong = |numbers: &str, needle: &str, message: &str| one(rate, &inv(numbers), needle, message, "");
    wrong("lr = -0.01\ngamma = 1e-4\npower = 0.75", "-0.01", "`train.schedule.lr` is -0.01");
    wrong(
        "lr = 0.01\ngamma = -1e-4\npower = 0.75",
        "-1e-4",
        "`train.schedule.gamma` is -0.0001; it must not",
    );
    wrong(
        "lr = 0.01\ngamma = 1e-4\npower = 0.0",
        "0.0\n\n[prec",
        "`train.schedule.power` is 0; it must be greater",
    );
    accepted(rate, &inv("lr = 0.01\ngamma = 0.0\npower = 0.75"));
}

#[test]
fn a_bias_has_one_rate() {
    let both = "bias_lr = 2.0\nlarc = { eta = 0.001 }";
    one("clip_norm = 25.0", both, "2.0\nlarc", "both change the learning rate of a bias", "");
    accepted("clip_norm = 25.0", "bias_lr = 2.0");
}

#[test]
fn means_of_checkpoints_and_limited_vocabularies_are_checked() {
    let vaswani = |from: &str, to: &str, needle: &str, message: &str| {
        one_of("vaswani-base", from, to, needle, message, "");
    };
    vaswani("checkpoints = 5", "checkpoints = 0", "0, every", "`train.checkpoint.evaluate.checkpoints` is 0");
    vaswani("every_updates = 1500", "every_updates = 0", "0 }", "every_updates` is 0");
    vaswani(
        "every_updates = 1500",
        "every_updates = 100001",
        "100001",
        "no checkpoint is written: 100001 updates is more than the run's 100000",
    );
    one_of(
        "transformer-big-nvidia",
        "max_vocabulary = 33712",
        "max_vocabulary = 4",
        "4\npad",
        "four of them are the special tokens",
        "",
    );
    one_of(
        "fairseq-transformer-big",
        "max_vocabulary = 32768",
        "max_vocabulary = 0",
        "0\npad",
        "four of them are the special tokens",
        "",
    );
    one_of(
        "transformer-big-nvidia",
        "references = \"raw\"",
        "references = \"normalized\"",
        "\"moses\"",
        "the references of `test` are tokenised",
        "",
    );
}

#[test]
fn impossible_combinations_are_refused() {
    one("max_updates = 8000\n", "", "train]", "training has no end", "max_updates or max_epochs");
    one(
        "[data.eval.valid]",
        "[data.eval.validation]",
        "patience = {",
        "looks at the evaluation set `valid`",
        "",
    );
    one(
        "joined_dictionary = true",
        "joined_dictionary = false",
        "\"all\"",
        "needs one vocabulary",
        "joined_dictionary = true",
    );
    one(
        "specials = \"fairseq\"",
        "specials = \"openseq2seq\"",
        "\"sinusoid-fairseq\"",
        "padding index 1",
        "",
    );
    one(
        "corpus = \"multi30k-en-de\"\n",
        "",
        "reader]",
        "says where the text is",
        "[data.reader.files.train]",
    );
    one(
        "without = [\"data.corpus\", \"data.eval\"]",
        "without = [\"data.eval\"]",
        "\"multi30k-en-de\"",
        "no corpus is read",
        "without",
    );
    one(
        "status = \"public\"",
        "status = \"generated\"",
        "\"generated\"",
        "but `data.reader` reads files",
        "",
    );
    one(
        "start = \"end\"",
        "start = \"begin\"\nbegin_token_in_target = true",
        "true\n\n[loss]",
        "duplicate begin token",
        "",
    );
    one_of(
        "reversal-transformer",
        "width = 128\n\n[precision]",
        "width = 256\n\n[precision]",
        "256\n",
        "is not the model's, 128",
        "",
    );
    one_of("reversal-transformer", "lines = 2000", "lines = 1999", "1999", "2000 are made for `test`", "");
    one_of(
        "reversal-transformer",
        "split = \"test\"",
        "split = \"tset\"",
        "\"tset\"",
        "names the split `tset`",
        "`test`?",
    );
    one_of(
        "reversal-transformer",
        "min_length = 5",
        "min_length = 51",
        "50\ntrain",
        "is shorter than the shortest, 51",
        "",
    );
    one_of(
        "transformer-base",
        "max_source_tokens = 56, max_target_tokens = 56, ",
        "",
        "\"truncate\"",
        "nothing to truncate to",
        "",
    );
    one_of("convs2s-fairseq", "max_ratio = 1.5", "max_ratio = 0.9", "0.9", "1 or more", "");
}

#[test]
fn what_input_feeding_and_initial_states_need_is_checked() {
    let lstm = |from: &str, to: &str, needle: &str, message: &str| {
        one_of("iwslt14-lstm", from, to, needle, message, "");
    };
    lstm(
        "combine_dropout = 0.2",
        "combine_dropout = 1.0",
        "1.0\nstart",
        "`model.decoder.combine_dropout` is 1",
    );
    lstm("\"input-feeding\"", "\"output\"", "true\ncombine_dropout", "`context` is not \"input-feeding\"");
    lstm("\"input-feeding\"", "\"output\"", "0.2\nstart", "`context` is not \"input-feeding\"");
    lstm(
        "units = 256\ndirections",
        "units = 200\ndirections",
        "\"last-of-encoder\"",
        "the encoder's states are 200 wide, the decoder's 256",
    );
    lstm("min_count = 3", "min_count = 0", "0\nspecials", "`data.tokenizer.min_count` is 0");
    lstm("beam = 10", "beam = 0", "0\nalpha", "`decode.beam10.beam` is 0");
    one_of(
        "reversal-conv-rnn",
        "context = \"output\"",
        "context = \"output\"\ninitial_state = \"last-of-encoder\"",
        "\"last-of-encoder\"",
        "the encoder has no states",
        "",
    );
}

#[test]
fn files_of_ones_own_must_name_every_split() {
    let files = "[data.reader.files]\ntrain = { source = \"a\", target = \"b\" }\nval = { source = \"a\", target = \"b\" }\n";
    let from = "target = \"de\"\n";
    let to = format!("target = \"de\"\n{files}");
    let found = findings(NAME, from, &to).to_string();
    assert!(found.contains("both `data.corpus` and `data.reader.files` say where the text is"), "{found}");
    let changed = text(NAME).replacen(from, &to, 1).replacen("corpus = \"multi30k-en-de\"\n", "", 1);
    let changed = changed.replace("without = [\"data.corpus\", ", "without = [");
    let found = Document::parse(&changed, "multi30k-transformer-tiny.toml", Path::new(""))
        .unwrap()
        .check()
        .unwrap_err();
    let text = found.to_string();
    assert!(text.contains("names the split `test_2016_flickr`, which the recipe does not have"), "{text}");
    assert_eq!(found.len(), 3, "{text}");
}

#[test]
fn several_target_languages_are_told_apart() {
    const NAME: &str = "multi30k-en-de-fr";
    let wrong = |from: &str, to: &str, needle: &str, message: &str, hint: &str| {
        one_of(NAME, from, to, needle, message, hint);
    };
    wrong(
        "target = \"fr\"\n",
        "",
        "test_fr]",
        "does not say which of the languages de, fr",
        "target = \"de\"",
    );
    wrong("target = \"fr\"", "target = \"fi\"", "\"fi\"", "names the target language `fi`", "fr");
    wrong(
        "targets = [\"fr\"]",
        "targets = [\"de\"]",
        "\"de\"]",
        "`de` is a target language already",
        "data.reader.target is the first",
    );
    wrong("targets = [\"copied\"]", "targets = [\"sorted\"]", "\"sorted\"", "sorted", "copied");
    wrong(
        "lines = 1014",
        "lines = 1014\nreference_tokens = 9",
        "9\n",
        "`valid` is in de, fr, and tokens are counted in one language",
        "a set that has a `target` can say it",
    );
    wrong(
        "eval = \"test_fr\"",
        "eval = \"valid\"",
        "\"valid\"\ndecode",
        "`valid` is in de, fr together",
        "what is scored is in one language",
    );
    wrong(
        "without = [\"data.eval\"]\n",
        "without = [\"data.eval\", \"train.checkpoint\"]\n\n[train.checkpoint]\nevaluate = { kind = \"best\", decode = \"beam5\" }\n",
        "\"beam5\" }",
        "`valid` is in several languages; what is scored is in one",
        "",
    );
    wrong(
        "targets = [\"fr\"]",
        "targets = [\"pt/BR\"]",
        "\"pt/BR\"",
        "`pt/BR` is not a language code",
        "pt-BR",
    );
    let above = "without = [\"data.eval\"]\n\n[data]\ncorpus = \"multi30k-en-de-fr\"\n\n[data.reader]\n";
    let own = "without = [\"data.eval\", \"data.corpus\"]\n\n[data.reader]\n\
               files.train = { source = \"a\", target = \"b\" }\n\
               files.val = { source = \"a\", target = \"b\", further_targets = [\"c\"] }\n";
    wrong(above, own, "train = {", "`train` has 0 files in 1 further target languages", "in the same order");
}
