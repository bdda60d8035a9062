//! What is wrong is said, where it was written, with the nearest right thing.

use std::path::Path;

use zoo_recipes::{Diagnostics, Document, embedded};

const NAME: &str = "multi30k-transformer-tiny";

fn text(name: &str) -> &'static str {
    embedded().iter().find(|recipe| recipe.name == name).unwrap().text
}

/// Everything that is wrong with a changed copy of a recipe.
fn findings(name: &str, from: &str, to: &str) -> Diagnostics {
    let text = text(name);
    assert!(text.contains(from), "{name} has no {from:?}");
    let changed = text.replacen(from, to, 1);
    match Document::parse(&changed, &format!("{name}.toml"), Path::new("")) {
        Ok(document) => match document.check() {
            Ok(()) => panic!("{from:?} -> {to:?} was accepted"),
            Err(found) => found,
        },
        Err(found) => found,
    }
}

/// `name.toml:line:column` of `needle` in the changed copy.
fn place(name: &str, from: &str, to: &str, needle: &str) -> String {
    let changed = text(name).replacen(from, to, 1);
    let at = changed.find(needle).unwrap_or_else(|| panic!("{needle:?} is not there"));
    let before = &changed[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{name}.toml:{line}:{column}")
}

/// Change, place, message and hint of one finding.
#[track_caller]
fn one(from: &str, to: &str, needle: &str, message: &str, hint: &str) {
    one_of(NAME, from, to, needle, message, hint);
}

#[track_caller]
fn one_of(name: &str, from: &str, to: &str, needle: &str, message: &str, hint: &str) {
    let found = findings(name, from, to);
    let at = place(name, from, to, needle);
    let fits = found.iter().any(|one| {
        one.origin.to_string() == at
            && one.message.contains(message)
            && one.hint.as_deref().unwrap_or_default().contains(hint)
    });
    assert!(fits, "{from:?} -> {to:?}: expected {at}: {message} (hint: {hint})\nfound:\n{found}");
}

#[test]
fn unknown_keys_are_named_with_the_nearest_valid_one() {
    one(
        "zero_padding",
        "zero_pading",
        "zero_pading",
        "`model.embedding` has no key `zero_pading`",
        "`zero_padding`?",
    );
    one("[loss]", "[losss]", "losss]", "a recipe has no key `losss`", "did you mean `loss`?");
    one(
        "epsilon_place",
        "momentum = 0.9\nepsilon_place",
        "momentum",
        "`train.optimizer` has no key",
        "of kind `sgd`",
    );
    one("[arm.mixed.precision]", "[arm.mixed.precison]", "precison", "a recipe has no key", "`precision`?");
    one(
        "merges = 10000",
        "merges = 10000\nzzz = 1",
        "zzz",
        "has no key `zzz`",
        "the keys here: `kind`, `merges`",
    );
}

#[test]
fn wrong_types_are_named() {
    one("merges = 10000", "merges = \"many\"", "\"many\"", "is a string; an integer is due here", "");
    one("merges = 10000", "merges = 1e4", "1e4", "is a float; an integer is due here", "");
    one(
        "scale = true",
        "scale = 1",
        "1\nzero",
        "`model.embedding.scale` is an integer; a boolean is due",
        "",
    );
    one("lr = 0.005", "lr = \"0.005\"", "\"0.005\"", "is a string; a number is due here", "");
    one("lr = 0.005", "lr = inf", "inf", "a finite number is due here", "");
    one("lr = 0.005", "lr = nan", "nan", "a finite number is due here", "");
    one(
        "normalize = [\"lowercase\"",
        "normalize = [7",
        "7,",
        "`data.tokenizer.normalize.0` is an integer",
        "",
    );
    one(
        "patience = { epochs = 10 }",
        "patience = 10",
        "10\nlog_every",
        "is an integer; a table is due here",
        "",
    );
    one("lines = 1014", "lines = -1", "-1\n", "is -1; it must be 0 to 4294967295", "");
    one("tags = [", "tags = 1 #", "1 #", "`recipe.tags` is an integer; an array is due here", "");
    one("name = \"multi", "name = 1 # \"multi", "1 # ", "`recipe.name` is an integer", "");
    assert!(
        Document::parse(
            &text(NAME).replace("lr = 0.005", "lr = 1"),
            "multi30k-transformer-tiny.toml",
            Path::new("")
        )
        .unwrap()
        .check()
        .is_ok()
    );
}

#[test]
fn missing_keys_are_named_at_their_table_with_their_meaning() {
    one(
        "merges = 10000\n",
        "",
        "tokenizer]",
        "`data.tokenizer` lacks `merges`",
        "Number of merge operations",
    );
    one(
        "label_smoothing = 0.1\n",
        "",
        "loss]",
        "`loss` lacks `label_smoothing`",
        "Mass taken from the true class",
    );
    one(
        "[data.batching]\nkind = \"tokens\"\n",
        "[data.batching]\n",
        "batching]",
        "lacks its `kind`",
        "`sentences`, `tokens`",
    );
    one("status = \"public\"\n", "", "recipe]", "`recipe` lacks `status`", "Can anybody get the data?");
}

#[test]
fn unknown_words_are_named_with_the_nearest_choice() {
    one(
        "norm = \"post\"",
        "norm = \"pst\"",
        "\"pst\"",
        "`model.encoder.norm` knows no `pst`",
        "did you mean `post`?",
    );
    one(
        "kind = \"subword-nmt\"",
        "kind = \"subwordnmt\"",
        "\"subwordnmt\"",
        "knows no kind",
        "`subword-nmt`?",
    );
    one("\"moses-tokenize\"", "\"moses-tokenise\"", "\"moses-tokenise\"", "knows no", "`moses-tokenize`?");
}

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
    nvgrad("as-coded", "as-code", "\"as-code\"", "knows no `as-code`", "did you mean `as-coded`?");
    nvgrad("grad_averaging", "grad_average", "grad_average", "has no key", "`grad_averaging`?");
    nvgrad("weight_decay", "epsilon_place", "epsilon_place", "has no key", "of kind `adam`");
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
        "[arm.fp32.precision]\ncompute = \"fp32\"",
        "[arm.fp32.precision]\ncompute_on_cpu = \"bf16\"",
        "\"bf16\"",
        "which every CPU has",
        "",
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
        "stand there twice",
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
        "max_source_tokens = 56\nmax_target_tokens = 56\n",
        "",
        "\"truncate\"",
        "nothing to truncate to",
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
    wrong("targets = [\"fr\"]", "targets = [\"pt/BR\"]", "\"pt/BR\"", "`pt/BR` is no language code", "pt-BR");
    let above = "without = [\"data.eval\"]\n\n[data]\ncorpus = \"multi30k-en-de-fr\"\n\n[data.reader]\n";
    let own = "without = [\"data.eval\", \"data.corpus\"]\n\n[data.reader]\n\
               files.train = { source = \"a\", target = \"b\" }\n\
               files.val = { source = \"a\", target = \"b\", further_targets = [\"c\"] }\n";
    wrong(above, own, "train = {", "`train` has 0 files in 1 further target languages", "in the same order");
}

#[test]
fn claims_have_the_keys_of_their_kind() {
    for (line, hint) in [
        ("value = 41.02\n", "docs/recipes.md"),
        ("direction = \"higher\"\n", "docs/recipes.md"),
        ("eval = \"test\"\n", "docs/recipes.md"),
        ("decode = \"beam5\"\n", "docs/recipes.md"),
        ("signature = \"nrefs:1|case:lc|eff:no|tok:none|smooth:none\"\n", "docs/recipes.md"),
        ("arm = \"fp32\"\n", "arm = \"any\""),
        ("margin = 0.5\n", "docs/recipes.md"),
    ] {
        let key = line.split(' ').next().unwrap();
        one(line, "", "[[claim]]", &format!("the value claim on bleu lacks `{key}`"), hint);
    }
    one("margin = 0.5\n", "", "\"half a point", "`margin_reason` stands without a `margin`", "");
    let claim = "[[claim]]";
    one("kind = \"value\"\n", "", claim, "`claim.0` lacks `kind`", "What is claimed");
    one("margin_reason = \"half", "extends = \"half", claim, "lacks `margin_reason`", "as wide as it is");
    one("sigma_reason = \"none", "extends = \"none", claim, "lacks `sigma_reason`", "where it is taken from");
    one("statistic = \"single\"", "statistic = \"mean\"", claim, "lacks `n`", "");
    one(
        "statistic = \"single\"",
        "n = 3\nstatistic = \"single\"",
        "3\nstatistic",
        "a single run is not 3",
        "",
    );
    one(
        "statistic = \"single\"\nassumed_sigma = 0.5\nsigma_reason",
        "statistic = \"best\"\nn = 5\nextends",
        claim,
        "takes `sigma` or `assumed_sigma`",
        "",
    );
    one(
        "assumed_sigma = 0.5",
        "sigma = 0.5\nassumed_sigma = 0.5",
        "0.5\nsigma_reason",
        "leaves nothing to assume",
        "",
    );
    one("assumed_sigma = 0.5", "assumed_sigma = 0.0", "0.0\nsigma_reason", "must be greater than 0", "");
    one("margin = 0.5", "margin = -0.5", "-0.5", "must not be negative", "");
    one(
        "margin = 0.5",
        "protocol = \"equal-batch\"\nmargin = 0.5",
        "\"equal-batch\"",
        "has no use for `protocol`",
        "",
    );
    one(
        "source = \"LividWo/Revisit-MMT@dc368d0 README-baseline.md\"",
        "source = \"\"",
        "\"\"",
        "is empty",
        "",
    );
    for key in [
        "baseline = \"fp32\"\n",
        "hardware = \"4 GPUs, model unstated\"\n",
        "protocol = \"equal-batch\"\n",
        "value = 1.53\n",
    ] {
        let name = key.split(' ').next().unwrap();
        let found = if name == "baseline" {
            findings("transformer-base", "baseline = \"fp32\"\nvalue", "value")
        } else {
            findings("transformer-base", key, "")
        };
        let message = format!("the ratio claim on updates-per-second lacks `{name}`");
        assert!(found.to_string().contains(&message), "{found}");
    }
}

#[test]
fn claims_name_what_is_there() {
    one(
        "decode = \"beam5\"",
        "decode = \"beam4\"",
        "\"beam4\"",
        "names the search `beam4`",
        "did you mean `beam5`?",
    );
    one(
        "eval = \"test\"",
        "eval = \"tests\"",
        "\"tests\"",
        "names the evaluation set `tests`",
        "did you mean `test`?",
    );
    one("arm = \"fp32\"", "arm = \"fp23\"", "\"fp23\"", "names the arm `fp23`", "did you mean `fp32`?");
    one(
        "baseline = \"fp32\"",
        "baseline = \"mixed\"",
        "\"mixed\"\nbaseline",
        "compares `mixed` with itself",
        "",
    );
    let found = findings(NAME, "arm = \"mixed\"", "arm = \"any\"");
    assert!(found.to_string().contains("a parity claim is about one arm"), "{found}");
}

#[test]
fn everything_wrong_is_said_at_once_in_the_order_of_the_file() {
    let changed = text(NAME)
        .replacen("status = \"public\"", "status = \"pubic\"", 1)
        .replacen("merges = 10000", "mergs = 10000", 1)
        .replacen("lr = 0.005", "lr = true", 1)
        .replacen("step_window = 8192", "step_window = 0.5", 1);
    let found = Document::parse(&changed, "multi30k-transformer-tiny.toml", Path::new("")).unwrap_err();
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 5, "{found}");
    assert!(shown[0].contains("knows no `pubic`\n  hint: did you mean `public`?"), "{found}");
    assert!(shown[1].contains("lacks `merges`") && shown[2].contains("no key `mergs`"), "{found}");
    assert!(shown[3].contains("`train.schedule.lr` is a boolean"), "{found}");
    assert!(shown[4].contains("`precision.loss_scaling.step_window` is a float"), "{found}");
    assert!(
        shown
            .iter()
            .all(|one| one.starts_with("multi30k-transformer-tiny.toml:") && one.contains(": error: "))
    );
}

#[test]
fn overlays_change_what_is_computed_alone() {
    one(
        "[tier.smoke.model]",
        "[tier.smoke.recipe]\nstatus = \"gated\"\n[tier.smoke.model]",
        "recipe]\nstatus",
        "`recipe` cannot stand in `tier.smoke`",
        "",
    );
    one(
        "[tier.smoke.model]",
        "[tier.smoke.arm.x]\n[tier.smoke.model]",
        "arm.x]\n[tier",
        "`arm` cannot stand in `tier.smoke`",
        "side by side",
    );
    one("[arm.fp32.precision]", "[arm.any.precision]", "any.precision]", "`any` is no name", "any arm");
    one(
        "[arm.fp32.precision]",
        "[arm.\"FP 32\".precision]",
        "\"FP 32\"",
        "is no name for a part of `arm`",
        "",
    );
    one(
        "without = [\"data.corpus\", ",
        "without = [\"data.corpse\", ",
        "\"data.corpse\"",
        "names `data.corpse`",
        "`corpus`?",
    );
}

#[test]
fn names_and_files_agree() {
    let found = Document::parse(text(NAME), "mine.toml", Path::new("")).unwrap_err().to_string();
    assert!(
        found.contains("calls itself `multi30k-transformer-tiny`, but its file is `mine.toml`"),
        "{found}"
    );
    assert!(found.contains("hint: name = \"mine\""), "{found}");
}

#[test]
fn no_text_makes_it_panic() {
    let text = text(NAME);
    let lines: Vec<&str> = text.lines().collect();
    // Every line left out, every line alone, and every line cut short.
    for at in 0..lines.len() {
        let without: Vec<&str> =
            lines.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| *line).collect();
        let line = lines[at];
        let half =
            line.char_indices().nth(line.chars().count() / 2).map_or("", |(middle, _)| &line[..middle]);
        let mut cut = lines.clone();
        cut[at] = half;
        for changed in [without.join("\n"), line.to_owned(), cut.join("\n")] {
            match Document::parse(&changed, "multi30k-transformer-tiny.toml", Path::new("")) {
                Ok(document) => {
                    let _ = document.check();
                }
                Err(found) => {
                    assert!(!found.is_empty());
                    assert!(
                        !found.to_string().contains("cannot be read"),
                        "serde knows more than the schema: {found}"
                    );
                }
            }
        }
    }
}
