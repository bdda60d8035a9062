//! `zoo list`, `zoo show` and `zoo schema`.

use sha2::{Digest, Sha256};

use crate::binary::{Zoo, in_root};

#[test]
fn list_has_a_line_for_each_recipe() {
    let zoo = Zoo::new();
    let all = zoo.ends_with(0, &["list", "--format", "json"]).part("recipes");
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in ["reversal-transformer", "multi30k-transformer-tiny", "transformer-base", "transformer-big"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for row in all.as_array().unwrap() {
        assert!(
            [
                "image-classification",
                "language-modelling",
                "speech-recognition",
                "speech-synthesis",
                "text-classification",
                "translation"
            ]
            .contains(&row["task"].as_str().unwrap()),
            "{row}"
        );
        assert!(row["arms"].as_array().unwrap().contains(&"fp32".into()), "{row}");
        assert!(!row["evidence"].as_str().unwrap().is_empty());
    }
    let toy = all.as_array().unwrap().iter().find(|row| row["name"] == "reversal-transformer").unwrap();
    assert!(toy["parameters"].as_u64() > Some(900_000) && toy["parameters_exact"] == true, "{toy}");
    assert!(toy["train_seconds"].as_f64() > Some(1.0) && toy["trained_on"].is_string(), "{toy}");
    // The project has judged it. It has no published claim, so the extended one stands for it.
    assert_eq!((&toy["verdict"], &toy["statement"]), (&"REPRODUCED".into(), &"extended".into()), "{toy}");
    assert_eq!(toy["outcomes"]["extended"]["REPRODUCED"], 1, "{toy}");
    let human = zoo.ends_with(0, &["list"]).stdout;
    assert_eq!(human.lines().count(), names.len() + 1);
    let csv = zoo.ends_with(0, &["list", "--format", "csv"]).stdout;
    assert!(
        csv.starts_with(
            "name,task,arms,published,extended,own,not_judgeable,evidence,data,summary,parameters,"
        ),
        "{csv}"
    );
}

#[test]
fn list_is_filtered() {
    let zoo = Zoo::new();
    let names = |arguments: &[&str]| -> Vec<String> {
        let all = [&["list", "--format", "json"], arguments].concat();
        let rows = zoo.ends_with(0, &all).part("recipes");
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let toys = [
        "conv-conv",
        "conv-rnn",
        "rnn-conv",
        "rnn-rnn",
        "transformer",
        "transformer-large-batch",
        "transformer-precision",
    ];
    assert_eq!(names(&["--tag", "toy"]), toys.map(|toy| format!("reversal-{toy}")));
    assert_eq!(
        names(&["--tag", "wmt", "--tag", "openseq2seq"]),
        ["convs2s", "gnmt", "nmt-small", "transformer-base", "transformer-big", "transformer-nvgrad"]
    );
    // An empty list would look like a valid answer.
    let ended = zoo.ends_with(2, &["list", "--task", "speech-synthesiss"]);
    ended.says("no recipe has the task `speech-synthesiss`");
    assert!(ended.stderr.contains("did you mean `speech-synthesis`?"), "{}", ended.stderr);
    let ended = zoo.ends_with(2, &["list", "--tag", "toy", "--tag", "zzz"]);
    ended.says("no recipe has the tag `zzz`");
    assert!(ended.stderr.contains("the tags are "), "{}", ended.stderr);
    let at_least = |rung: &str| names(&["--evidence", rung]).len();
    assert!(at_least("schema") >= at_least("parity") && at_least("parity") >= at_least("full-run"));
    assert!(names(&["--evidence", "traces"]).contains(&"reversal-transformer".to_owned()));
}

#[test]
fn show_tells_what_the_arms_change_and_what_was_claimed() {
    let zoo = Zoo::new();
    let text = zoo.ends_with(0, &["show", "reversal-transformer"]).stdout;
    for part in [
        "bleu above 90 on test with beam5",
        "published for reversal-rnn-rnn",
        "get_started_nmt.rst:38",
        "precision.loss_scaling",
        "tests/fixtures/transformer_prenorm_openseq2seq.safetensors",
        "10000 training, 1000 validation, 2000 test pairs",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("DIFFERS FROM ITS SOURCE"), "{text}");
    let differs = "differs from its source";
    let text = zoo.ends_with(0, &["show", "wave2letter"]).stdout;
    let line = "\n- An epoch is a pass over what the filter keeps.";
    assert!(text.contains(&format!("\n{}\n- ", differs.to_uppercase())) && text.contains(line), "{text}");
    let text = zoo.ends_with(0, &["show", "wave2letter", "--format", "md"]).stdout;
    assert!(text.contains(&format!("\n## {differs}\n\n- ")) && text.contains(line), "{text}");
    let size = |options: &[&str]| {
        let command = ["show", "multi30k-transformer-tiny", "--format", "json"];
        let shown = zoo.ends_with(0, &[&command, options].concat()).json()["parameters"].clone();
        (shown["count"].as_u64().unwrap(), shown["exact"].as_bool().unwrap())
    };
    assert_eq!(size(&[]), (2_568_192, true), "9,712 rows were counted");
    assert!(!size(&["--set", "data.share={ train = 32, eval = 8 }"]).1, "a share has fewer sub-words");
    let json = zoo.ends_with(0, &["show", "transformer-big", "--format", "json"]).json();
    assert_eq!(json["base"], "transformer-base");
    assert_eq!(json["recipe"]["model"]["width"], 1024);
    assert_eq!(json["parameters"]["exact"], true);
    assert!(json["parameters"]["count"].as_u64().unwrap() > 200_000_000, "{}", json["parameters"]);
    assert!(json["data"]["corpus"]["licence"]["terms"].as_str().unwrap().contains("research"));
    let changed: Vec<&str> = (json["arms"]["mixed"].as_array().unwrap().iter())
        .map(|change| change["key"].as_str().unwrap())
        .collect();
    assert!(changed.contains(&"precision.compute"), "{changed:?}");
}

#[test]
fn show_resolves_arm_tier_and_overrides() {
    let zoo = Zoo::new();
    let arguments = [
        "show",
        "reversal-transformer",
        "--toml",
        "--arm",
        "mixed",
        "--tier",
        "smoke",
        "--set",
        "train.seed=7",
    ];
    let toml = zoo.ends_with(0, &arguments).stdout;
    for line in ["compute = \"fp16\"", "seed = 7", "width = 32"] {
        assert!(toml.lines().any(|found| found == line), "{line} is not in\n{toml}");
    }
    zoo.ends_with(3, &["show", "reversal-transformer", "--arm", "mxied"]);
    let ended = zoo.ends_with(3, &["show", "reversal-transformer", "--set", "train.sed=7"]);
    assert!(ended.stderr.contains("did you mean `seed`?"), "{}", ended.stderr);
}

#[test]
fn the_committed_schema_is_fresh() {
    let zoo = Zoo::new();
    zoo.ends_with(0, &["schema", "--check", &in_root("recipes/schema/schema.json")]);
    let old = zoo.file("old.json", "{}\n");
    zoo.ends_with(9, &["schema", "--check", old.to_str().unwrap()]).says("is not the schema of this program");
}

#[test]
fn a_list_is_kept_until_the_ledger_changes() {
    let zoo = Zoo::new();
    let list = || zoo.ends_with(0, &["list", "--tag", "toy", "--format", "json"]).stdout;
    let made = list();
    let kept = zoo.home().join("list.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(list(), made);
    // What is printed is what was kept.
    std::fs::write(&kept, text.replace("reverse strings", "sort strings")).unwrap();
    assert_eq!(list(), made.replace("reverse strings", "sort strings"));
    // A file that cannot be read, and one of another ledger, are made anew.
    std::fs::write(&kept, &text[..text.len() / 2]).unwrap();
    assert_eq!(list(), made);
    std::fs::write(&kept, text.replace("reverse strings", "sort strings")).unwrap();
    zoo.run(&["judge", "reversal-rnn-rnn", "--scores", "97.1,97.4", "--record"]);
    // The part of this recipe is made anew, and no other.
    let rows = zoo.ends_with(0, &["list", "--tag", "toy", "--format", "json"]).part("recipes");
    let summary = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["summary"].as_str().unwrap().to_owned()
    };
    assert!(summary("reversal-rnn-rnn").contains("reverse strings"), "{rows}");
    assert!(summary("reversal-rnn-conv").contains("sort strings"), "{rows}");
    // A damaged ledger is reported each time, and one with a line of another program, whose hash is right.
    let start = format!("{{\"schema\":1,\"sequence\":0,\"previous\":\"{}\"", "0".repeat(64));
    let line = format!("{start},\"time\":1,\"recipe\":\"later\"");
    let hash = hex::encode(Sha256::digest(&line));
    for text in ["{}\n".to_owned(), format!("{line},\"hash\":\"{hash}\"}}\n")] {
        std::fs::write(zoo.home().join("ledger.jsonl"), text).unwrap();
        std::fs::remove_file(&kept).ok();
        for _ in 0..2 {
            let ended = zoo.ends_with(0, &["list", "--tag", "toy"]);
            assert!(ended.stderr.contains("the ledger of this home is left aside"), "{}", ended.stderr);
        }
    }
}
