//! Scores during training, and runs that are stopped early.

use serde_json::Value;

use crate::binary::Zoo;

/// 256 strings in batches of 64 give four updates per epoch.
const RECIPE: &str = r#"[recipe]
base = "reversal-transformer"
name = "way"
summary = "Scored on the way"
origin = "this file"

[data.reader]
min_length = 2
max_length = 6
train = 256
valid = 16
test = 16

[data.eval.valid]
lines = 16

[data.eval.test]
lines = 16

[train]
max_updates = 12

[train.schedule]
warmup_updates = 20
"#;

/// A trajectory claim. Only sixteen strings are scored; a value of 0 always holds.
fn claim(clock: &str, points: &str) -> String {
    format!(
        r#"
[[claim]]
kind = "trajectory"
metric = "bleu"
signature = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp"
eval = "test"
decode = "beam5"
arm = "any"
direction = "higher"
clock = "{clock}"
points = [{points}]
n = 32
margin = 3.0
margin_reason = "one score counts the sigma three times"
source = "a test"
"#
    )
}

/// A home with `published` as the value for the first epoch, and 0 for the other epochs and the
/// sixth update.
fn zoo(published: &str) -> Zoo {
    let zoo = Zoo::new();
    let point = |at: u32, value: &str| format!("{{ at = {at}, value = {value}, sigma = 0.5 }}");
    let epochs = [point(1, published), point(2, "0.0"), point(3, "0.0")].join(", ");
    zoo.file(
        "way.toml",
        &[RECIPE.to_owned(), claim("epochs", &epochs), claim("updates", &point(6, "0.0"))].concat(),
    );
    zoo
}

const REPRODUCE: [&str; 7] = ["reproduce", "./way.toml", "--arms", "fp32", "--offline", "--format", "json"];

fn outcomes(found: &Value) -> Vec<&str> {
    let judged = found["claims"].as_array().unwrap();
    judged.iter().map(|one| one["verdict"]["outcome"].as_str().unwrap()).collect()
}

#[test]
fn every_point_is_decoded_scored_judged_and_recorded() {
    let zoo = zoo("0.0");
    let ended = zoo.ends_with(0, &REPRODUCE);
    let found = ended.json();
    assert_eq!(outcomes(&found), ["REPRODUCED", "REPRODUCED"]);
    for (claim, due) in [(0, &[1, 2, 3][..]), (1, &[6])] {
        let points = found["claims"][claim]["evidence"]["points"].as_array().unwrap();
        let at: Vec<i64> = points.iter().map(|point| point["at"].as_i64().unwrap()).collect();
        assert_eq!(at, due);
        assert!(points.iter().all(|point| point["runs"][0]["score"].is_f64()));
    }
    // The last point is the end, with the text that was evaluated.
    let run = zoo.home().join(found["runs"][0]["folder"].as_str().unwrap());
    let text = |place: &str| {
        std::fs::read_to_string(run.join("eval").join(place).join("test.beam5.hyp.txt")).unwrap()
    };
    assert_eq!(text("epoch-3"), text(""));
    assert_ne!(text("epoch-1"), text("epoch-2"));
    assert!(run.join("eval/update-6/test.beam5.json").is_file());
    // Reports show no examples of moments.
    assert!(run.join("eval/test.beam5.src.txt").is_file());
    assert!(!run.join("eval/update-6/test.beam5.src.txt").exists());
    // A second call computes nothing. The ledger recomputes all scores from the hypotheses.
    let again = zoo.ends_with(0, &REPRODUCE);
    assert_eq!(again.json()["claims"], found["claims"]);
    let recheck = zoo.ends_with(0, &["ledger", "recheck"]);
    // Four points and the end.
    assert!(recheck.stdout.contains("5 scores and 2 verdicts"), "{}", recheck.stdout);
    let ledger = std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    assert_eq!(ledger.matches(r#""moment":{"clock":"epochs","at":2}"#).count(), 1, "{ledger}");
    // Hypotheses of a point are protected like those of the end.
    std::fs::write(run.join("eval/epoch-2/test.beam5.hyp.txt"), "x\n").unwrap();
    zoo.run(&REPRODUCE).says("was changed");
    // A report shows the scores by update.
    let run = run.to_str().unwrap();
    std::fs::write(format!("{run}/eval/epoch-2/test.beam5.hyp.txt"), text_of_ledger(&zoo)).unwrap();
    zoo.ends_with(0, &["report", run, "-o", "page.html"]);
    let page = std::fs::read_to_string(zoo.home().join("page.html")).unwrap();
    assert!(
        page.contains("bleu of checkpoints") || page.contains("BLEU of checkpoints"),
        "no chart of the scores"
    );
}

/// Claims on what training logs: the loss at the end of each epoch, and the perplexity at the end.
const TRAINING_CLAIMS: &str = r#"
[[claim]]
kind = "trajectory"
metric = "train-loss"
signature = "metric:train-loss|of:objective|unit:UNIT|over:epoch|mean:unit"
arm = "any"
direction = "lower"
clock = "epochs"
points = [{ at = 1, value = 1e6, sigma = 0.5 }, { at = 3, value = 1e6, sigma = 0.5 }]
n = 32
margin = 3.0
margin_reason = "one score counts the sigma three times"
source = "a test"

[[claim]]
kind = "value"
metric = "train-perplexity"
signature = "metric:train-perplexity|unit:token|over:epoch|mean:unit"
arm = "any"
direction = "lower"
value = 1e6
sigma = 0.5
n = 32
margin = 3.0
margin_reason = "one score counts the sigma three times"
source = "a test"
"#;

#[test]
fn means_over_training_are_judged_and_a_unit_that_is_not_logged_is_not_run() {
    let judged = |unit: &str, updates: u32| {
        let zoo = Zoo::new();
        let recipe = RECIPE.replace("max_updates = 12", &format!("max_updates = {updates}"));
        zoo.file("way.toml", &[recipe, TRAINING_CLAIMS.replace("UNIT", unit)].concat());
        let code = if updates == 12 { 0 } else { 11 };
        let found = zoo.ends_with(code, &REPRODUCE).json();
        assert!(zoo.ends_with(0, &["ledger", "recheck"]).stdout.contains("derived again"));
        (outcomes(&found).join(" "), found["claims"].clone())
    };
    let (outcomes, found) = judged("token", 12);
    assert_eq!(outcomes, "REPRODUCED REPRODUCED");
    let points = found[0]["evidence"]["points"].as_array().unwrap();
    let of =
        |point: &Value| (point["at"].as_i64().unwrap(), point["runs"][0]["term"]["update"].as_i64().unwrap());
    assert_eq!(points.iter().map(of).collect::<Vec<_>>(), [(1, 4), (3, 12)]);
    let [first, last] = [&points[0], &points[1]].map(|point| point["runs"][0]["score"].as_f64().unwrap());
    assert!(last < first, "the loss falls: {first}, then {last}");
    // The perplexity is of the plain likelihood, in the last epoch.
    let term = &found[1]["evidence"]["runs"][0]["term"];
    let nats = term["sum"].as_f64().unwrap() / term["count"].as_f64().unwrap();
    let perplexity = found[1]["evidence"]["runs"][0]["score"].as_f64().unwrap();
    assert!((perplexity - nats.exp()).abs() < 1e-9 * perplexity, "{perplexity}");
    // The log counts tokens. A search, which the claim has no use for, is not scored.
    let in_sentences = "sentence|over:epoch|mean:unit\"\neval = \"test\"\ndecode = \"beam5\"\n#";
    assert_eq!(judged(in_sentences, 12).0, "NOT-RUN REPRODUCED");
    // A run that ends within an epoch has no pass that ends with it.
    assert_eq!(judged("token", 11).0, "INCONCLUSIVE NOT-RUN");
}

/// The stored hypotheses of epoch 2.
fn text_of_ledger(zoo: &Zoo) -> String {
    let mut folders = vec![zoo.home().join("hypotheses")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() == "epoch-2-test.beam5.hyp.txt" {
                return std::fs::read_to_string(path).unwrap();
            }
        }
    }
    panic!("the hypotheses of epoch 2 are not beside the ledger");
}

#[test]
fn a_run_off_the_published_course_is_given_up_where_that_is_asked_for_and_goes_on_where_not() {
    let zoo = zoo("90.0");
    let stopping = [&REPRODUCE[..], &["--stop-early"]].concat();
    let ended = zoo.run(&stopping);
    assert!(ended.stderr.contains("too far from the published trajectory"), "{}", ended.stderr);
    let found = ended.json();
    assert_eq!(outcomes(&found), ["NOT-REPRODUCED", "NOT-RUN"]);
    let verdict = &found["claims"][0]["verdict"];
    assert_eq!((verdict["at"].as_u64(), verdict["published"].as_f64()), (Some(1), Some(90.0)));
    let run = zoo.home().join(found["runs"][0]["folder"].as_str().unwrap());
    let trained = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(run.join("trained.json")).unwrap()).unwrap()
    };
    assert_eq!(
        (trained()["ending"]["kind"].as_str(), trained()["updates"].as_u64()),
        (Some("off-course"), Some(4))
    );
    // On the second call the run stays ended, and nothing is recorded twice.
    let records = || std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap().lines().count();
    let before = records();
    assert_eq!(zoo.run(&stopping).json()["claims"], found["claims"]);
    assert_eq!(records(), before);
    // Without the option the run continues to its end, with the result of an uninterrupted run.
    let whole = zoo.run(&REPRODUCE);
    assert!(whole.stderr.contains("resuming after update 4"), "{}", whole.stderr);
    assert_eq!(outcomes(&whole.json()), ["NOT-REPRODUCED", "REPRODUCED"]);
    assert_eq!(
        (trained()["ending"]["kind"].as_str(), trained()["updates"].as_u64()),
        (Some("max-updates"), Some(12))
    );
    let straight = self::zoo("90.0");
    let text = |run: &std::path::Path| std::fs::read_to_string(run.join("eval/test.beam5.hyp.txt")).unwrap();
    let other = straight.run(&REPRODUCE).json();
    assert_eq!(text(&run), text(&straight.home().join(other["runs"][0]["folder"].as_str().unwrap())));
}
