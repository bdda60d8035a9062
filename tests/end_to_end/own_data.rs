//! A user's own text: from two files to a translation, to exported weights, and back.

use crate::binary::{Zoo, in_root};

/// Random lines of a language with five words. The same draw with other words gives their
/// translation.
fn text(lines: usize, words: [&str; 5]) -> String {
    let mut draw = 7u64;
    let mut next = || {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) as usize
    };
    (0..lines)
        .map(|_| {
            let line: Vec<&str> = (0..2 + next() % 4).map(|_| words[next() % 5]).collect();
            line.join(" ") + "\n"
        })
        .collect()
}

fn with_text() -> Zoo {
    let zoo = Zoo::new();
    for (name, lines) in [("train", 300), ("valid", 20)] {
        zoo.file(&format!("{name}.en"), &text(lines, ["one", "two", "three", "four", "five"]));
        zoo.file(&format!("{name}.de"), &text(lines, ["eins", "zwei", "drei", "vier", "fünf"]));
    }
    zoo
}

const SMALL: [&str; 6] = [
    "--set=data.tokenizer.merges=40",
    "--set=model.width=32",
    "--set=model.encoder.layers=1",
    "--set=model.decoder.layers=1",
    "--set=train.log_every=1",
    "--set=train.checkpoint.every_updates=2",
];

/// Folder of the first run in the JSON output of a call.
fn run_folder(zoo: &Zoo, recipe: &str, more: &[&str]) -> String {
    let call = [&["reproduce", recipe, "--format", "json"][..], &SMALL, more].concat();
    let ended = zoo.ends_with(0, &call).json();
    ended["runs"][0]["folder"].as_str().unwrap().to_string()
}

#[test]
fn two_files_and_twenty_lines_train_translate_and_go_on_in_the_other_arm() {
    let zoo = with_text();
    let new = ["new", "captions", "--base", "multi30k-transformer-tiny", "--train", "train.en,train.de"];
    zoo.ends_with(0, &new);
    zoo.ends_with(2, &new).says("captions.toml is there already");
    let written = std::fs::read_to_string(zoo.home().join("captions.toml")).unwrap();
    assert!(written.lines().count() <= 20, "{written}");
    zoo.ends_with(0, &["check", "./captions.toml"]);
    zoo.ends_with(0, &["show", "./captions.toml"]);

    let run = run_folder(&zoo, "./captions.toml", &["--arms", "fp32", "--set=train.max_updates=6"]);
    std::fs::write(zoo.home().join("bad"), b"one\n\xff\n").unwrap();
    zoo.ends_with(4, &["infer", &run, "--input", "bad"]).says("bad:2: ");
    let translated = zoo.run_with_input(&["infer", &run], "one two three\nfive\n");
    assert_eq!((translated.code, translated.stdout.lines().count()), (0, 2), "{}", translated.stderr);

    // Exports the weights as safetensors and starts another run from them, with BF16 products.
    zoo.ends_with(0, &["export", &run, "model.safetensors"]);
    zoo.ends_with(2, &["export", &run, "model.safetensors"]).says("is there already");
    let more = ["--arms", "mixed", "--set=train.max_updates=1"];
    let from_file = [&more[..], &["--init-from", "model.safetensors"]].concat();
    let from_run = [&more[..], &["--init-from", &run]].concat();
    let first = run_folder(&zoo, "./captions.toml", &from_file);
    assert_eq!(first, run_folder(&zoo, "./captions.toml", &from_run), "the same weights are the same start");
    assert_ne!(first, run_folder(&zoo, "./captions.toml", &more));
    let losses = |run: &str| -> f64 {
        let trained = std::fs::read_to_string(std::path::Path::new(run).join("trained.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&trained).unwrap()["first_loss"].as_f64().unwrap()
    };
    assert!(losses(&first) < losses(&run), "six updates were of use: {} {}", losses(&first), losses(&run));
    let record = std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    assert!(record.contains("\"init-from\":\"sha256:"), "{record}");
}

#[test]
fn a_watched_and_scored_recipe_says_its_score_without_a_claim() {
    let zoo = with_text();
    let valid = ["--valid", "valid.en,valid.de", "--test", "valid.en,valid.de"];
    let new = ["new", "captions", "--base", "multi30k-transformer-tiny", "--train", "train.en,train.de"];
    zoo.ends_with(0, &[&new[..], &valid].concat());
    let call = ["reproduce", "./captions.toml", "--arms=fp32", "--set=train.max_updates=2"];
    let ended = zoo.ends_with(0, &[&call[..], &SMALL].concat());
    assert!(ended.stdout.contains("this recipe has no claims: nothing to judge"), "{}", ended.stdout);
    assert!(ended.stdout.contains("fp32, seed 1, test, beam5: bleu "), "{}", ended.stdout);
    // A recheck does not need the recipe file, although the recipe is not built in.
    std::fs::remove_file(zoo.home().join("captions.toml")).unwrap();
    zoo.ends_with(0, &["ledger", "recheck"]);
    // Nor does a report need the text.
    for side in ["train.en", "train.de", "valid.en", "valid.de"] {
        std::fs::remove_file(zoo.home().join(side)).unwrap();
    }
    std::fs::remove_dir_all(zoo.home().join("prepared")).unwrap();
    let said = zoo.ends_with(0, &["report", "@last", "-o", "page.html"]).stderr;
    assert!(!said.contains("is not at hand"), "{said}");
    let page = std::fs::read_to_string(zoo.home().join("page.html")).unwrap();
    assert!(page.contains("<dt>source</dt>"), "the source of each example is in the run");
    // A changed text is named and not shown.
    let run = ended.stdout.lines().find_map(|line| line.strip_prefix("run ")).unwrap();
    let source = zoo.home().join(run).join("eval/test.beam5.src.txt");
    std::fs::write(&source, "changed\n").unwrap();
    zoo.ends_with(0, &["report", "@last", "-o", "page.html"]);
    let page = std::fs::read_to_string(zoo.home().join("page.html")).unwrap();
    assert!(page.contains("The source of test is left out.") && !page.contains("<dt>source</dt>"));
    let verified = zoo.ends_with(7, &["cache", "verify"]);
    assert!(verified.stdout.contains("test.beam5"), "{}", verified.stdout);
}

#[test]
fn valid_is_scored_where_there_is_no_test_set() {
    let zoo = with_text();
    let base = "multi30k-transformer-tiny";
    let new =
        ["new", "captions", "--base", base, "--train", "train.en,train.de", "--valid", "valid.en,valid.de"];
    zoo.ends_with(0, &new);
    let call = ["reproduce", "./captions.toml", "--arms=fp32", "--set=train.max_updates=2"];
    let ended = zoo.ends_with(0, &[&call[..], &SMALL].concat());
    assert!(ended.stdout.contains("fp32, seed 1, valid, beam5: bleu "), "{}", ended.stdout);
    let run = ended.stdout.lines().find_map(|line| line.strip_prefix("run ")).unwrap();
    zoo.ends_with(0, &["evaluate", run]);
}

#[test]
fn every_recipe_of_translation_is_a_base() {
    let zoo = with_text();
    let listed = zoo.ends_with(0, &["list", "--format", "json"]).part("recipes");
    let names = listed.as_array().unwrap().iter().filter(|one| one["task"] == "translation");
    let names: Vec<&str> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 27, "{names:?}");
    for base in names {
        let files = ["--train", "train.en,train.de", "--valid", "valid.en,valid.de"];
        let name = format!("from-{base}");
        zoo.ends_with(0, &[&["new", &name, "--base", base][..], &files].concat());
        let file = format!("./{name}.toml");
        zoo.ends_with(0, &["check", &file]);
        let plan = zoo
            .ends_with(0, &["reproduce", &file, "--tier", "smoke", "--plan", "--format", "json"])
            .part("plan");
        assert!(plan["runs"][0]["updates"].as_u64().unwrap() <= 10, "{base}: {plan}");
    }
}

/// Content of a file in a run's folder.
fn part(run: &str, file: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(run).join(file)).unwrap()
}

#[test]
fn the_smoke_tier_of_own_recipes_trains_their_model_on_their_text() {
    let zoo = with_text();
    zoo.file("other.en", &text(300, ["six", "seven", "eight", "nine", "ten"]));
    zoo.file("other.de", &text(300, ["sechs", "sieben", "acht", "neun", "zehn"]));
    let base = "multi30k-transformer-tiny";
    for (name, train) in
        [("one", "train.en,train.de"), ("two", "other.en,other.de"), ("three", "train.en,train.de")]
    {
        zoo.ends_with(0, &["new", name, "--base", base, "--train", train, "--valid", "valid.en,valid.de"]);
    }
    let three = zoo.home().join("three.toml");
    let own = "\n[model]\nwidth = 64\nencoder = { layers = 2, heads = 2, ffn = 128 }\ndecoder = { layers = 2, heads = 2, ffn = 128 }\n";
    std::fs::write(&three, std::fs::read_to_string(&three).unwrap() + own).unwrap();

    let mut keys = std::collections::BTreeSet::new();
    let smoke = ["--arms=fp32", "--tier=smoke", "--format=json", "--set=train.max_updates=2"];
    for (name, width, word) in [("one", 128, "zwei"), ("two", 128, "acht"), ("three", 64, "zwei")] {
        let file = format!("./{name}.toml");
        let ended = zoo.ends_with(0, &[&["reproduce", &file][..], &smoke].concat());
        // The recipe is named by its path, because its name alone would not be found.
        let next = format!("next: `zoo reproduce ./{name}.toml --plan`");
        assert!(ended.stderr.contains(&next), "{}", ended.stderr);
        let ended = ended.json();
        assert_eq!(ended["scores"][0]["eval"], "valid", "{ended}");
        let run = ended["runs"][0]["folder"].as_str().unwrap();
        let card: serde_json::Value = serde_json::from_str(&part(run, "run.json")).unwrap();
        keys.insert(card["key"].as_str().unwrap().to_owned());
        let recipe = part(run, "recipe.toml");
        assert!(recipe.contains(&format!("width = {width}\n")), "{recipe}");
        assert_eq!(part(run, "eval/valid.ref.txt"), first_lines(&zoo, "valid.de", 8));
        let session: serde_json::Value =
            serde_json::from_str(part(run, "log.jsonl").lines().next().unwrap()).unwrap();
        let train = &session["splits"]["train"];
        assert_eq!(train["read"], 32, "{session}");
        // The vocabulary is learned from the user's own words.
        let prepared = zoo.home().join("prepared");
        let texts = std::fs::read_dir(&prepared).unwrap().flatten();
        let trained =
            texts.filter_map(|entry| std::fs::read_to_string(entry.path().join("train.target")).ok());
        assert!(trained.map(|text| text.replace("@@ ", "")).any(|text| text.contains(word)), "{name}");
    }
    assert_eq!(keys.len(), 3, "three recipes, three keys");
}

fn first_lines(zoo: &Zoo, file: &str, count: usize) -> String {
    let text = std::fs::read_to_string(zoo.home().join(file)).unwrap();
    text.lines().take(count).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_plan_says_where_the_schedule_is_for_more_text() {
    let zoo = with_text();
    for side in ["en", "de"] {
        let few = first_lines(&zoo, &format!("train.{side}"), 20);
        zoo.file(&format!("few.{side}"), &few);
    }
    zoo.ends_with(0, &["new", "few", "--base", "transformer-base", "--train", "few.en,few.de"]);
    let plan = |more: &[&str]| {
        zoo.ends_with(0, &[&["reproduce", "./few.toml", "--arms=fp32", "--plan"][..], more].concat()).stdout
    };
    let long = plan(&[]);
    assert!(long.contains("note    20 training examples, each used about "), "{long}");
    let offered = long.split('`').find(|part| part.starts_with("--set train.max_updates=")).unwrap();
    let short = plan(&["--set", offered.strip_prefix("--set ").unwrap()]);
    assert!(!short.contains("note "), "{short}");
    // The published recipe has enough text for its schedule.
    let published = zoo.ends_with(0, &["reproduce", "transformer-base", "--arms=fp32", "--plan"]).stdout;
    assert!(!published.contains("note "), "{published}");
}

#[test]
fn a_file_that_is_asked_for_by_its_name_is_offered_by_its_path() {
    let zoo = with_text();
    zoo.ends_with(
        0,
        &[
            "new",
            "my-tiny",
            "--base",
            "multi30k-gnmt",
            "--train",
            "train.en,train.de",
            "--valid",
            "valid.en,valid.de",
        ],
    );
    let ended = zoo.ends_with(2, &["reproduce", "my-tiny"]);
    ended.says("there is no recipe `my-tiny`");
    assert!(
        ended.stderr.contains("hint: the file my-tiny.toml is named by its path: ./my-tiny.toml"),
        "{}",
        ended.stderr
    );
}

/// One encoder, two decoders: each language is written with its own words.
#[test]
fn one_text_in_two_languages_trains_one_encoder_and_two_decoders() {
    let zoo = with_text();
    let french = ["un", "deux", "trois", "quatre", "cinq"];
    for (name, lines) in [("train", 300), ("valid", 20)] {
        zoo.file(&format!("{name}.fr"), &text(lines, french));
    }
    let sets = ["de", "fr"].map(|language| {
        format!("[data.eval.test_{language}]\nsplit = \"valid\"\ntarget = \"{language}\"\nlines = 20\n")
    });
    let recipe = format!(
        "# zoo reproduce ./numbers.toml\n[recipe]\nbase = \"multi30k-transformer-tiny\"\nname = \"numbers\"\n\
         summary = \"Numbers\"\norigin = \"this file\"\nwithout = [\"data.corpus\", \"data.eval\"]\n\n\
         [data.reader]\nkind = \"parallel-text\"\nsource = \"en\"\ntarget = \"de\"\nfurther_targets = [\"fr\"]\n\
         files.train = {{ source = \"train.en\", target = \"train.de\", further_targets = [\"train.fr\"] }}\n\
         files.valid = {{ source = \"valid.en\", target = \"valid.de\", further_targets = [\"valid.fr\"] }}\n\n\
         [data.eval.valid]\nsplit = \"valid\"\nlines = 20\n\n{}",
        sets.join("\n")
    );
    zoo.file("numbers.toml", &recipe);
    zoo.ends_with(0, &["check", "./numbers.toml"]);
    let more = [
        "--arms=fp32",
        "--set=train.max_updates=150",
        "--set=train.schedule.warmup_updates=50",
        "--set=train.checkpoint.evaluate={ kind = \"last\" }",
        "--eval=test_de,test_fr",
    ];
    let run = run_folder(&zoo, "./numbers.toml", &more);
    for (language, words) in [("de", ["eins", "zwei", "drei", "vier", "fünf"]), ("fr", french)] {
        let translated =
            zoo.run_with_input(&["infer", &run, "--target", language], "one two three\nfive two\n");
        assert_eq!((translated.code, translated.stdout.lines().count()), (0, 2), "{}", translated.stderr);
        assert!(translated.stdout.split_whitespace().count() > 2, "{}", translated.stdout);
        assert!(translated.stdout.split_whitespace().all(|w| words.contains(&w)), "{}", translated.stdout);
        let eval = std::path::Path::new(&run).join(format!("eval/test_{language}.beam5.hyp.txt"));
        let hypotheses = std::fs::read_to_string(eval).unwrap();
        assert!(hypotheses.split_whitespace().all(|w| words.contains(&w)), "{hypotheses}");
    }
    let ended = zoo.run_with_input(&["infer", &run, "--target", "fi"], "one\n");
    assert_eq!(ended.code, 2);
    ended.says("the model does not write `fi`");
    zoo.ends_with(2, &["evaluate", &run, "--eval", "valid"]).says("`valid` mixes the languages de, fr");
    let all = [&["reproduce", "./numbers.toml", "--seed=2", "--eval=valid"][..], &SMALL, &more[..4]].concat();
    zoo.ends_with(2, &all).says("`valid` mixes the languages de, fr");
    zoo.file("valid.fr", &text(19, french));
    let call = [&["reproduce", "./numbers.toml"][..], &SMALL, &more].concat();
    zoo.ends_with(4, &call).says("valid.fr");
}

#[test]
fn own_text_that_cannot_be_used_is_named() {
    let zoo = with_text();
    let new = |more: &[&str]| -> Vec<String> {
        let call = [&["new", "captions", "--base"][..], more].concat();
        call.into_iter().map(str::to_string).collect()
    };
    let says = |code: i32, call: Vec<String>, text: &str| {
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        zoo.ends_with(code, &call).says(text);
        assert!(!zoo.home().join("captions.toml").exists());
    };
    let base = "multi30k-transformer-tiny";
    says(2, new(&[base]), "the training text is missing");
    says(2, new(&[base, "--train", "train.en"]), "needs two files");
    says(4, new(&[base, "--train", "train.en,none.de"]), "none.de");
    says(4, new(&[base, "--train", "train.en,valid.de"]), "valid.de");
    let plateau = new(&["multi30k-lstm", "--train", "train.en,train.de"]);
    says(2, plateau, "needs a validation set to lower its learning rate");
    says(
        2,
        new(&["fsdd-digits", "--train", "train.en,train.de"]),
        "is speech-recognition; `zoo new` does not write",
    );
    zoo.file("weights.pt", "no weights");
    let smoke = ["reproduce", "reversal-transformer", "--tier", "smoke", "--init-from"];
    zoo.ends_with(4, &[&smoke[..], &["weights.pt"]].concat())
        .says("weights.pt has no weights that can be read");
    let fixture = in_root("tests/fixtures/state_dict.pt");
    zoo.ends_with(4, &[&smoke[..], &[&fixture]].concat()).says("state_dict.pt");
}
