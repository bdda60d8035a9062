//! Image classification: from generated pictures or own folders to verdicts, pictures of errors,
//! and the class of a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{Zoo, in_root};

/// The smoke tier of a recipe, in FP32.
fn smoke(zoo: &Zoo, recipe: &str) -> PathBuf {
    let call = ["reproduce", recipe, "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    assert_eq!(outcome["claims"][0]["verdict"]["outcome"], "NOT-COMPARABLE", "{outcome}");
    PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap())
}

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn generated_pictures_go_from_a_recipe_to_records_and_pictures_of_errors() {
    let zoo = Zoo::new();
    let run = smoke(&zoo, "fashion-mnist-lenet-d2l");
    let eval = run.join("eval");
    let records = fs::read_to_string(eval.join("test.direct.hyp.txt")).unwrap();
    assert_eq!(records.lines().count(), 64);
    let first: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    assert_eq!(first["scores"].as_array().unwrap().len(), 10);
    let labels = fs::read_to_string(eval.join("test.ref.txt")).unwrap();
    // Of a model that has hardly learned, most answers are wrong: twelve of them are kept.
    let samples = json_of(&eval.join("test.direct.samples.json"));
    assert_eq!(samples[0]["title"], "Confusion matrix");
    let right = samples[0]["scores"]["right"].as_u64().unwrap();
    let scored = json_of(&eval.join("test.direct.json"))["scores"][0]["value"].as_f64().unwrap();
    assert!((scored - 100.0 * right as f64 / 64.0).abs() < 1e-9, "{scored} {right}");
    assert_eq!(samples.as_array().unwrap().len(), 13);
    let confidences: Vec<f64> = samples.as_array().unwrap()[1..]
        .iter()
        .map(|one| one["scores"]["confidence"].as_f64().unwrap())
        .collect();
    assert!(confidences.is_sorted_by(|one, next| one >= next), "{confidences:?}");
    assert!(labels.lines().all(|label| label.parse::<u32>().is_ok_and(|label| label < 10)));

    // The picture of an error gets the answer that the evaluation gave. Enlarged pixels shrink to
    // themselves.
    let error = &samples[1];
    let picture = eval.join(error["files"][0]["file"].as_str().unwrap());
    let run = run.to_str().unwrap();
    let call = ["infer", run, picture.to_str().unwrap(), "--format", "json"];
    let found: Value = serde_json::from_str(&zoo.ends_with(0, &call).stdout).unwrap();
    assert_eq!(found["class"], error["scores"]["answer"], "{found}");
    let plain = zoo.ends_with(0, &["infer", run, picture.to_str().unwrap(), "--nbest", "3"]).stdout;
    assert_eq!(plain.lines().count(), 3, "{plain}");
    zoo.ends_with(2, &["infer", run]).says("no picture is named");
    zoo.file("no.png", "text");
    zoo.ends_with(4, &["infer", run, "no.png"]).says("no.png");

    // Tokens, case and searches have no meaning for a picture.
    let explained = zoo.ends_with(0, &["explain", run]).stdout;
    assert!(explained.contains("accuracy") && explained.contains("weights"), "{explained}");
    for word in ["tokens", "compounds", "case", "search", "direct", "language"] {
        assert!(!explained.contains(word), "{word} is in\n{explained}");
    }

    zoo.ends_with(0, &["report", run, "-o", "page.html"]);
    let page = fs::read_to_string(zoo.home().join("page.html")).unwrap();
    assert!(page.contains("Confusion matrix") && page.contains("taken for"), "the page shows the errors");
}

#[test]
fn every_recipe_of_pictures_trains_in_both_arms() {
    let zoo = Zoo::new();
    for recipe in ["mnist-lenet-caffe", "mnist-cnn-keras", "mnist-mlp-keras"] {
        let call = ["reproduce", recipe, "--tier", "smoke", "--format", "json"];
        let outcome = zoo.ends_with(0, &call).json();
        assert_eq!(outcome["runs"].as_array().unwrap().len(), 2, "{recipe}");
        for score in outcome["scores"].as_array().unwrap() {
            let value = score["scores"][0]["value"].as_f64().unwrap();
            assert!((0.0..=100.0).contains(&value), "{recipe}: {score}");
        }
    }
}

/// A model of two classes upon the published one.
const TWO_CLASSES: &str = r#"
[data]
classes = 2
reader = { kind = "image-folder", folders = { train = "pictures", test = "pictures" } }
batching = { pictures = 4, order = "shuffled", remainder = "short" }
eval.test = { split = "test", lines = 12 }

[model]
layer = [
    { kind = "flatten", order = "channels-last" },
    { kind = "dense", units = 2, weights = "xavier-uniform", bias = "zero" },
]

[train]
max_epochs = 400
schedule = { kind = "fixed", lr = 0.01 }
"#;

#[test]
fn own_folders_of_pictures_are_learned_and_told_apart() {
    let zoo = Zoo::new();
    // Pictures of one class of stripes each, as the smoke tier draws them.
    let run = smoke(&zoo, "fashion-mnist-lenet-d2l");
    let samples = json_of(&run.join("eval/test.direct.samples.json"));
    for (at, sample) in samples.as_array().unwrap()[1..].iter().enumerate() {
        let class = ["even", "odd"][at % 2];
        let folder = zoo.home().join("pictures").join(class);
        fs::create_dir_all(&folder).unwrap();
        let file = run.join("eval").join(sample["files"][0]["file"].as_str().unwrap());
        fs::copy(file, folder.join(format!("{at}.png"))).unwrap();
    }
    let about = "[recipe]\nname = \"mine\"\nbase = \"fashion-mnist-lenet-d2l\"\nsummary = \"Mine\"\norigin = \"mine\"\n\
                 status = \"private\"\nwithout = [\"data.corpus\", \"data.eval\"]\n";
    zoo.file("mine.toml", &format!("{about}{TWO_CLASSES}"));
    let outcome = zoo.ends_with(0, &["reproduce", "mine.toml", "--arms", "fp32", "--format", "json"]).json();
    let right = outcome["scores"][0]["scores"][0]["value"].as_f64().unwrap();
    assert!(right > 99.0, "twelve pictures are learned by heart: {right}");
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let found = zoo.ends_with(0, &["infer", run, "pictures/even/0.png", "pictures/odd/1.png"]).stdout;
    assert_eq!(found, "pictures/even/0.png\teven\npictures/odd/1.png\todd\n");

    let plan = || zoo.ends_with(0, &["reproduce", "mine.toml", "--arms", "fp32", "--plan"]).stdout;
    assert!(plan().contains("trained already"), "{}", plan());

    // A picture that changed makes another run of it.
    fs::copy(zoo.home().join("pictures/odd/1.png"), zoo.home().join("pictures/odd/3.png")).unwrap();
    assert!(!plan().contains("trained already"), "{}", plan());
    fs::remove_dir_all(zoo.home().join("pictures/odd")).unwrap();
    zoo.ends_with(4, &["reproduce", "mine.toml", "--arms", "fp32"]).says("has 1 classes");
}

/// A grey picture of one pixel, as a PNG file.
const PIXEL: [u8; 67] = *b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55\
    \x00\x00\x00\nIDAT\x78\xda\x63\x68\x00\x00\x00\x82\x00\x81\xda\x45\x08\x3b\x00\x00\x00\x00IEND\xae\x42\x60\x82";

#[test]
fn the_recipe_of_own_pictures_in_the_document_is_sound_and_trains() {
    let zoo = Zoo::new();
    let text = fs::read_to_string(in_root("docs/images.md")).unwrap();
    let recipe = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(recipe.starts_with("# zoo reproduce ./pets.toml\n"), "{recipe}");
    zoo.file("pets.toml", recipe);
    for folder in ["train/cats", "train/dogs", "test/cats", "test/dogs"] {
        fs::create_dir_all(zoo.home().join(folder)).unwrap();
        for number in 0..2 {
            fs::write(zoo.home().join(folder).join(format!("{number}.png")), PIXEL).unwrap();
        }
    }
    let checked = zoo.ends_with(0, &["check", "pets.toml", "--format", "json"]).part("recipes");
    assert_eq!(
        (&checked[0]["recipe"], &checked[0]["findings"]),
        (&"pets".into(), &serde_json::json!([])),
        "{checked}"
    );
    // The document's set has 200 pictures, and these folders have four.
    zoo.ends_with(4, &["reproduce", "./pets.toml", "--arms", "fp32"]).says("the recipe says 200");
    let small = ["--set", "data.eval.test.lines=4", "--set", "train.max_epochs=1"];
    let call = [&["reproduce", "./pets.toml", "--arms", "fp32", "--format", "json"], &small[..]].concat();
    let outcome = zoo.ends_with(0, &call).json();
    assert_eq!(outcome["scores"][0]["scores"][0]["value"], 50.0, "all pictures are equal: {outcome}");
}

#[test]
fn what_an_image_recipe_lacks_is_said() {
    let zoo = Zoo::new();
    let show = |key: &str| zoo.ends_with(3, &["show", "mnist-cnn-keras", "--set", key]).stderr;
    let search = show("decode.beam.beam=4");
    assert!(search.contains("no key `decode`"), "{search}");
    let tokenizer = show("data.tokenizer.kind=words");
    assert!(tokenizer.contains("`data` has no key `tokenizer`"), "{tokenizer}");
    let classes = show("data.classes=9");
    assert!(classes.contains("the last layer has 10 units, and `data.classes` is 9"), "{classes}");
    zoo.ends_with(2, &["bench", "mnist-cnn-keras", "--decode", "direct"]).says("no searches");
    for (recipe, parameters) in [
        ("fashion-mnist-lenet-d2l", "61,706"),
        ("mnist-lenet-caffe", "431,080"),
        ("mnist-cnn-keras", "1,199,882"),
        ("mnist-mlp-keras", "669,706"),
    ] {
        let shown = zoo.ends_with(0, &["show", recipe]).stdout;
        assert!(shown.contains(&format!("parameters  {parameters}\n")), "{shown}");
    }
}
