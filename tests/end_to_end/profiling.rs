//! `zoo profile` by the real binary: tables, JSON, CSV and a picture, of a recipe and of a run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{Zoo, files};

const SMOKE: [&str; 4] = ["profile", "reversal-transformer", "--tier", "smoke"];
const QUANTITIES: [&str; 5] = ["activation_gradients", "weight_gradients", "weights", "updates", "ratios"];

/// Number of values of a histogram in JSON; checks that its parts add up to it.
fn values(histogram: &Value) -> u64 {
    let of = |key: &str| histogram[key].as_u64().unwrap_or_else(|| panic!("{key} in {histogram}"));
    let bins = histogram["exponents"].as_array().unwrap();
    let with_exponent: u64 = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(of("values"), of("zeros") + of("not_finite") + with_exponent, "{histogram}");
    of("values")
}

/// One recipe of each task, with a layer of each kind: convolutions and CTC, an attentive decoder, an
/// LSTM, both directions of one, convolutions of pictures, attention of a recurrent decoder.
#[test]
fn a_recipe_of_each_task_names_its_layers() {
    for (recipe, layers) in [
        ("yesno-tdnn", ["layers.0.convolutions.0.over_time", "output"]),
        ("ljspeech-32", ["attentive 1", "postnet.0.convolution"]),
        ("ptb-lstm-small", ["layers.1.weight_hh", "softmax"]),
        ("imdb-bilstm-keras", ["layers.1.forward.weight_ih", "layers.1.backward.weight_ih"]),
        ("mnist-cnn-keras", ["layers.0", "output"]),
        ("gnmt", ["decoder.attention.query", "encoder.backward.0.weight_ih"]),
    ] {
        let zoo = Zoo::new();
        let smoke = ["--tier", "smoke", "--offline", "--format", "json"];
        let report = zoo.ends_with(0, &[&["profile", recipe, "--update", "1"][..], &smoke].concat()).json();
        let update = &report["updates"][0];
        let of = |quantity: &str| update[quantity].as_array().unwrap().iter().map(values).sum::<u64>();
        assert!(
            of("weights") > 0 && of("updates") == of("weights") && of("ratios") == of("weights"),
            "{update}"
        );
        assert_eq!(of("weight_gradients"), of("weights"), "{recipe}");
        let outputs = update["activation_gradients"].as_array().unwrap();
        let names: Vec<&str> = outputs.iter().map(|layer| layer["path"].as_str().unwrap()).collect();
        assert!(layers.iter().all(|layer| names.contains(layer)), "{recipe}: {names:?}");

        // The same layers have outputs and gradients in two types. No limit: the gradient of a bias
        // before a batch norm is 0 but for rounding.
        zoo.ends_with(0, &[&["reproduce", recipe, "--arms", "fp32"][..], &smoke].concat());
        let replay =
            ["replay", "@last", "--update", "2", "--compute", "fp16", "--limit", "1e9", "--format", "json"];
        let report = zoo.ends_with(0, &replay).json();
        let rows = report["compared"]["rows"].as_array().unwrap();
        for what in ["output", "output-gradient"] {
            let has = |layer: &&str| rows.iter().any(|row| row["what"] == what && row["layer"] == **layer);
            assert!(layers.iter().all(has), "{recipe}, {what}: {report}");
        }
    }
}

#[test]
fn a_recipe_is_profiled_in_every_format_and_nothing_is_kept() {
    let zoo = Zoo::new();
    let text = zoo.ends_with(0, &[&SMOKE[..], &["--update", "1,3", "--svg", "out.svg"]].concat());
    for part in [
        "reversal-transformer, tier smoke, fp32, seed 1: updates 1, 3\n",
        "\nactivation gradients, share of all values\n",
        "\nweight / update, share of all values\n",
        "\nsuggested static loss scale: ",
    ] {
        assert!(text.stdout.contains(part), "{part:?} is not in\n{}", text.stdout);
    }
    let svg = fs::read_to_string(zoo.home().join("out.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
    for element in ["svg", "title", "text"] {
        let (open, close) =
            (svg.matches(&format!("<{element}")).count(), svg.matches(&format!("</{element}>")).count());
        assert!(open == close && open > 0, "{element}: {open} and {close}");
    }
    assert!(svg.contains(">2^-24</text>") && svg.contains(">2048</text>"), "{svg}");

    let again = ["--update", "1,3", "--svg", "out.svg", "--format", "json"];
    let report = zoo.ends_with(0, &[&SMOKE[..], &again].concat()).json();
    assert_eq!(fs::read_to_string(zoo.home().join("out.svg")).unwrap(), svg, "a figure is overwritten");
    let updates = report["updates"].as_array().unwrap();
    assert_eq!(updates.iter().map(|one| &one["update"]).collect::<Vec<_>>(), [1, 3]);
    for update in updates {
        let layers = |quantity: &str| update[quantity].as_array().unwrap().clone();
        let all = |quantity: &str| layers(quantity).iter().map(values).sum::<u64>();
        assert!(QUANTITIES.iter().all(|quantity| all(quantity) > 0), "{update}");
        // Each parameter has a gradient, moves, and counts once.
        for quantity in &QUANTITIES[2..] {
            assert_eq!(all(quantity), all("weight_gradients"), "{quantity}");
        }
        let outputs = layers("activation_gradients");
        let names: Vec<&str> = outputs.iter().map(|layer| layer["path"].as_str().unwrap()).collect();
        assert!(names.contains(&"attention 1"), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("encoder.layers.0.")), "{names:?}");
        assert!(
            !names.iter().any(|name| name.starts_with("linear")),
            "every linear layer has a name: {names:?}"
        );
        let weights = layers("weight_gradients");
        let named = |name: &str| weights.iter().any(|layer| layer["path"] == format!("{name}.weight"));
        assert!(
            names.iter().filter(|name| !name.starts_with("attention")).all(|name| named(name)),
            "{names:?}"
        );
    }
    let csv = zoo.ends_with(
        0,
        &[&SMOKE[..], &["--update", "2", "--layer", "encoder*query", "--format", "csv"]].concat(),
    );
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert!(lines[0].starts_with("quantity,update,layer,values,zero,not_finite,lost,"), "{}", lines[0]);
    assert!(lines[1].starts_with("activation gradients,2,all,"), "{}", lines[1]);
    assert!(lines[2..].iter().all(|line| line.contains("query") || line.contains(",all,")), "{}", csv.stdout);
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text} in {line}"));
        let counts = cells.last().unwrap().split_whitespace();
        let counted: u64 = counts.map(|pair| number(pair.split_once(':').unwrap().1)).sum();
        assert_eq!(counted, number(cells[3]) - number(cells[4]) - number(cells[5]), "{line}");
    }
    let kept: Vec<_> =
        files(zoo.home()).into_keys().filter(|path| !path.starts_with(zoo.home().join("prepared"))).collect();
    assert_eq!(kept, [zoo.home().join("out.svg")], "no ledger, no run, no scratch folder");
}

#[test]
fn a_run_is_profiled_after_its_end_and_stays_as_it_is() {
    let zoo = Zoo::new();
    zoo.ends_with(0, &["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "mixed"]);
    let name = zoo.home().join("runs/reversal-transformer.smoke");
    let run = fs::read_dir(name).unwrap().next().unwrap().unwrap().path();
    let run = run.to_str().unwrap();
    let before = files(zoo.home());
    let profiled = zoo.ends_with(0, &["profile", "@last", "--format", "json"]);
    assert!(profiled.stderr.contains("lost values are already zero"), "{}", profiled.stderr);
    let report = profiled.json();
    assert_eq!(files(zoo.home()), before);
    assert_eq!((&report["arm"], &report["compute"]), (&"mixed".into(), &"fp16".into()));
    let trained: Value = serde_json::from_slice(&before[&Path::new(run).join("trained.json")]).unwrap();
    let next = trained["updates"].as_u64().unwrap() + 1;
    assert_eq!(report["updates"][0]["update"], next);
    assert!(report["updates"][0]["loss_scale"].as_f64().unwrap() > 1.0, "{report}");
    zoo.ends_with(2, &["profile", run, "--update", "1"]).says("the run is past update 1");
    let is_state = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("state-");
    let newest = before.keys().rfind(is_state).unwrap();
    zoo.ends_with(2, &["profile", newest.to_str().unwrap()]).says("is a checkpoint");
    zoo.ends_with(2, &["profile", run, "--arm", "fp32"]).says("cannot change a run");

    // Interrupted, and the newest state is damaged: the state before is copied, and none is renamed.
    fs::remove_file(Path::new(run).join("trained.json")).unwrap();
    fs::write(newest, &before[newest][..before[newest].len() - 1]).unwrap();
    let damaged = files(zoo.home());
    let profiled = zoo.ends_with(0, &["profile", run, "--format", "json"]);
    let name = newest.file_name().unwrap().to_str().unwrap();
    assert!(profiled.stderr.contains(name), "{}", profiled.stderr);
    assert_eq!(files(zoo.home()), damaged);
    // Neither from the start nor from the damaged state.
    let update = profiled.json()["updates"][0]["update"].as_u64().unwrap();
    assert!((2..next).contains(&update), "{update}");
}

#[test]
fn what_cannot_be_profiled_is_named() {
    let zoo = Zoo::new();
    zoo.ends_with(2, &[&SMOKE[..], &["--update", "100000"]].concat()).says("there is no update 100000");
    zoo.ends_with(2, &[&SMOKE[..], &["--update", "0"]].concat());
    let long = ["--set", "train.max_updates=1000000000", "--update", "1000000000"];
    zoo.ends_with(5, &[&SMOKE[..], &long].concat());
    let whole = zoo.ends_with(0, &[&SMOKE[..], &["--update", "1", "--layer", "nowhere"]].concat());
    assert!(whole.stderr.contains("no layer or parameter matches `nowhere`"), "{}", whole.stderr);
    assert!(whole.stdout.contains("activation gradients"), "nothing is lost: {}", whole.stdout);
    zoo.file("mine.svg", "<svg></svg>");
    zoo.ends_with(2, &[&SMOKE[..], &["--svg", "mine.svg"]].concat()).says("is not a figure of zoo profile");
    zoo.ends_with(2, &[&SMOKE[..], &["--arm", "fp64"]].concat()).says("has no arm fp64");
    zoo.ends_with(2, &["profile", "reversal-transfomer"]).says("there is no recipe `reversal-transfomer`");
    let empty = zoo.home().join("empty");
    fs::create_dir(&empty).unwrap();
    zoo.ends_with(2, &["profile", empty.to_str().unwrap()]).says("is not a run folder");
}

#[test]
fn a_saved_profile_is_shown_in_the_report_and_changes_nothing_else_of_the_run() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    let run = PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap());
    let row = || {
        let mut rows = zoo.ends_with(0, &["runs", "--format", "json"]).part("runs");
        let row = rows[0].as_object_mut().unwrap();
        let (bytes, age) = (row.remove("bytes").unwrap(), row.remove("age_seconds").unwrap());
        (row.clone(), bytes.as_u64().unwrap(), age.as_u64().unwrap())
    };
    // The run was written an hour ago.
    let hour = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for name in ["trained.json", "log.jsonl", "run.json"] {
        fs::File::options().append(true).open(run.join(name)).unwrap().set_modified(hour).unwrap();
    }
    let (before, (listed, bytes, _)) = (files(&run), row());
    let page = |name: &str| {
        zoo.ends_with(0, &["report", run.to_str().unwrap(), "--out", name]);
        fs::read_to_string(zoo.home().join(name)).unwrap()
    };
    assert!(!page("without.html").contains("id=\"profiles\""));

    let save = ["profile", "@last", "--save", "--update", "21,22", "--format", "json"];
    let report = zoo.ends_with(0, &save).json();
    let file = run.join("profile.json");
    let saved: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&saved["format"], &saved["updates"]), (&"zoo-profile-1".into(), &report["updates"]));
    let mut after = files(&run);
    let size = after.remove(&file).unwrap().len() as u64;
    assert_eq!(after, before);
    let (listed_then, bytes_then, age) = row();
    assert_eq!((listed_then, bytes_then), (listed, bytes + size));
    assert!(age >= 3600, "{age}");
    let again = zoo.ends_with(0, &call).json();
    assert_eq!(
        again["runs"][0]["folder"], outcome["runs"][0]["folder"],
        "the same run, which is not trained again"
    );
    assert_eq!(files(&run).remove(&run.join("log.jsonl")), before.get(&run.join("log.jsonl")).cloned());

    let text = page("with.html");
    let sentence = format!("Suggested static loss scale: {}, because ", report["suggested"]["scale"]);
    let sentence = sentence.replace(".0,", ",");
    for part in [
        "id=\"profiles\"",
        "<h3>fp32, seed 1: updates 21, 22</h3>",
        &sentence,
        "src=\"data:image/svg+xml;base64,",
    ] {
        assert!(text.contains(part), "{part} is not in the page");
    }

    // Only a saved profile is overwritten, and only a run has a place for one.
    zoo.ends_with(0, &["profile", "@last", "--save"]);
    fs::write(&file, "{}").unwrap();
    zoo.ends_with(2, &["profile", "@last", "--save"]).says("exists and is not a saved profile");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    zoo.ends_with(2, &[&SMOKE[..], &["--save"]].concat()).says("--save writes into the folder of a run");
    let noted = zoo.ends_with(0, &["report", run.to_str().unwrap(), "--out", "with.html"]).stderr;
    assert!(noted.contains("its profile cannot be read"), "{noted}");
}

/// With this learning rate, no update follows the first one.
#[test]
fn what_was_profiled_before_training_diverged_is_printed() {
    let zoo = Zoo::new();
    let diverging = [&SMOKE[..], &["--set", "train.schedule.lr=1e37"]].concat();
    let ended = zoo.ends_with(4, &[&diverging[..], &["--update", "1,20", "--svg", "out.svg"]].concat());
    ended.says("training diverged after update 1, before update 20");
    let title = "seed 1: update 1; training ended before update 20";
    assert!(ended.stdout.contains(&format!("{title}\n")), "{}", ended.stdout);
    let figure = || fs::read_to_string(zoo.home().join("out.svg")).unwrap();
    assert!(figure().contains(&format!("{title}<")));
    // A whole figure stays.
    zoo.ends_with(0, &[&diverging[..], &["--update", "1", "--svg", "out.svg"]].concat());
    let whole = figure();
    let ended = zoo.ends_with(4, &[&diverging[..], &["--update", "1,20", "--svg", "out.svg"]].concat());
    assert!(ended.stderr.contains("did not overwrite out.svg: updates are missing"), "{}", ended.stderr);
    assert_eq!(figure(), whole);
    let nothing = zoo.ends_with(4, &[&diverging[..], &["--update", "20"]].concat());
    nothing.says("training diverged after update 1, before update 20");
    assert_eq!(nothing.stdout, "");
}

#[cfg(unix)]
#[test]
fn an_interrupt_prints_what_was_profiled_and_keeps_a_whole_saved_profile() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let run = zoo.ends_with(0, &call).json()["runs"][0]["folder"].as_str().unwrap().to_owned();
    let file = Path::new(&run).join("profile.json");
    zoo.ends_with(0, &["profile", "@last", "--update", "21,22", "--save"]);
    let whole = fs::read(&file).unwrap();

    let call = ["profile", "@last", "--update", "22,1000000", "--save", "--yes", "-v", "--format", "json"];
    let printed = zoo.home().join("printed.json");
    let stdout = fs::File::create(&printed).unwrap();
    let mut child = zoo.command(&call).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The line after that of the first update is written a while later.
    let steps = stderr.by_ref().filter(|line| line.contains(" of 1000000, loss"));
    assert_eq!(steps.take(2).count(), 2);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = stderr.collect();
    assert_eq!(child.wait().unwrap().code(), Some(6), "{rest:?}");
    let says = |part: &str| rest.iter().any(|line| line.contains(part));
    assert!(says("did not overwrite") && says("interrupted after update"), "{rest:?}");
    let report: Value = serde_json::from_slice(&fs::read(&printed).unwrap()).unwrap();
    let updates = report["updates"].as_array().unwrap();
    assert_eq!(updates.iter().map(|one| &one["update"]).collect::<Vec<_>>(), [22]);
    assert_eq!(report["missing_updates"], serde_json::json!([1_000_000]));
    assert_eq!(fs::read(&file).unwrap(), whole);
}
