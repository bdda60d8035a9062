//! The built-in corpus definitions, and one of them fetched through a mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use zoo_datasets::corpora::{CorpusDefinition, CorpusError};
use zoo_datasets::fetch::{DataHome, Digest, FetchError, FetchOptions, Silent};

#[test]
fn every_file_in_corpora_is_built_in_and_sound() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora");
    let stems: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let names: BTreeSet<String> = CorpusDefinition::names().into_iter().map(Into::into).collect();
    assert_eq!(stems, names);
    for name in names {
        let corpus = CorpusDefinition::find(&name).unwrap();
        assert_eq!(corpus.name, name);
        for (file, definition) in &corpus.files {
            assert!(definition.source.place().is_ok(), "{name}: {file}");
        }
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = CorpusDefinition::find("multi30k").unwrap_err().to_string();
    assert!(error.contains("multi30k-en-de") && error.contains("hint:"), "{error}");
}

#[test]
fn sizes_are_sums_of_what_is_known() {
    let multi30k = CorpusDefinition::find("multi30k-en-de").unwrap();
    assert_eq!(multi30k.download_bytes().known, 1_355_954);
    assert_eq!(multi30k.download_bytes().to_string(), "1.4 MB");
    assert_eq!(multi30k.disk_bytes(), multi30k.download_bytes());
    let wmt = CorpusDefinition::find("wmt-en-de-openseq2seq").unwrap();
    assert_eq!(wmt.download_bytes().unknown, 3);
    assert_eq!(wmt.download_bytes().to_string(), "at least 994 MB (the sizes of 3 files are not known)");
    // The newstest2014 text of the published scores and the longer text are two splits.
    assert_eq!(wmt.splits["newstest2014"].lines, Some(2737));
    assert_eq!(wmt.splits["newstest2014-full"].lines, Some(3003));
    assert_eq!(wmt.files["europarl-v7"].source.digest, Digest::Unknown);
    for name in ["wmt16-en-de-nvidia", "wmt17-en-de-nvidia"] {
        let corpus = CorpusDefinition::find(name).unwrap();
        assert_eq!(corpus.splits["newstest2014-full"].lines, Some(3003), "{name}");
        assert!(!corpus.splits.contains_key("newstest2014"), "{name}");
    }
}

#[test]
fn multi30k_comes_through_the_mirror() {
    let Some(mirror) = std::env::var_os("ZOO_MIRROR") else {
        println!("skipped: ZOO_MIRROR is not set");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path());
    let corpus = CorpusDefinition::find("multi30k-en-de").unwrap();
    let mirror = Some(mirror.to_string_lossy().into_owned());
    let options = FetchOptions { mirror, offline: true, ..FetchOptions::default() };
    assert_eq!(corpus.bytes_to_download(&home).known, 1_355_954);
    let fetched = corpus.fetch_all(&home, &options).unwrap();
    assert_eq!(corpus.bytes_to_download(&home).known, 0);
    for (file, print) in &fetched.fingerprints {
        assert_eq!(print.checked, format!("sha256:{}", print.sha256), "{file}");
    }
    for (name, split) in &fetched.splits {
        for language in ["en", "de"] {
            assert_eq!(split.read(language).unwrap().len() as u64, split.lines.unwrap(), "{name} {language}");
        }
    }
    let train = fetched.split("train").unwrap();
    assert!(matches!(train.read("fr"), Err(CorpusError::UnknownLanguage { .. })));
    assert!(corpus.verify(&home, &Silent).iter().all(|c| c.result.is_ok()));

    // All files are available without the mirror.
    let alone = FetchOptions { offline: true, ..FetchOptions::default() };
    assert_eq!(corpus.fetch_all(&home, &alone).unwrap(), fetched);

    // After one flipped bit, the error names the file.
    let damaged = train.text["de"][0].path.clone();
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let checks = corpus.verify(&home, &Silent);
    let bad: Vec<_> = checks.iter().filter(|c| c.result.is_err()).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!((bad[0].file.as_str(), &bad[0].path), ("train.de", &damaged));
    let error = corpus.fetch_all(&home, &options).unwrap_err();
    let CorpusError::Fetch { file, source, .. } = &error else { panic!("{error}") };
    assert_eq!(file, "train.de");
    assert!(matches!(**source, FetchError::Corrupt { .. }));
    assert!(error.to_string().contains("726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"));
}

#[test]
fn every_recipe_names_a_corpus_and_splits_that_there_are() {
    fn walk(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "toml") {
                found.push(path);
            }
        }
    }
    let mut recipes = Vec::new();
    // Recipes, and the parts that they use.
    for folder in ["../recipes/catalog", "../recipes/parts"] {
        walk(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder), &mut recipes);
    }
    let read =
        |path: &PathBuf| -> toml::Value { toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    let all: BTreeMap<String, toml::Value> = recipes
        .iter()
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), read(path)))
        .collect();
    // Splits that a recipe, or a base of it, makes of training texts: held out, or cut into folds.
    let made = |recipe: &toml::Value| {
        let (mut found, mut next) = (Vec::new(), Some(recipe.clone()));
        while let Some(one) = next {
            for (block, key) in [("held_out", "split"), ("folds", "tested"), ("folds", "held_out")] {
                let name = one.get("data").and_then(|data| data.get(block)?.get(key)?.as_str());
                found.extend(name.map(str::to_owned));
            }
            let base = one.get("recipe").and_then(|about| about.get("base")?.as_str());
            next = base.and_then(|base| all.get(base).cloned());
        }
        found
    };
    let mut named = 0;
    for path in &recipes {
        let recipe = read(path);
        let Some(data) = recipe.get("data") else { continue };
        let Some(corpus) = data.get("corpus").and_then(toml::Value::as_str) else { continue };
        let corpus = CorpusDefinition::find(corpus).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // One text is cut into a part to train on and a part to validate.
        let cut = data.get("reader").is_some_and(|reader| reader.get("training_share").is_some());
        let first = if cut { "text" } else { "train" };
        assert!(corpus.splits.contains_key(first), "{}", path.display());
        named += 1;
        if cut {
            continue;
        }
        for (name, set) in data.get("eval").and_then(toml::Value::as_table).into_iter().flatten() {
            let split = set["split"].as_str().unwrap();
            if made(&recipe).iter().any(|name| name == split) {
                continue;
            }
            let definition =
                corpus.splits.get(split).unwrap_or_else(|| panic!("{}: {name}: {split}", path.display()));
            // Joined utterances have their own number.
            let joined = data.get("reader").is_some_and(|reader| reader.get("join").is_some());
            if let (Some(due), Some(lines), false) = (set.get("lines"), definition.lines, joined) {
                assert_eq!(due.as_integer(), Some(lines as i64), "{}: {name}", path.display());
            }
        }
    }
    assert!(named > 0);
}

#[test]
fn selections_that_cannot_be_right_say_why() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora/ljspeech.toml");
    let sound = std::fs::read_to_string(file).unwrap();
    for (from, to, why) in [
        ("[\"valid\", \"test\"]", "[\"valid\", \"tset\"]", "\"tset\" is no split that selects"),
        ("[\"valid\", \"test\"]", "[\"train-own\"]", "\"train-own\" is no split that selects"),
        ("from = \"LJ001", "from = \"LJ002", "takes no name from"),
        ("every = 131", "every = 0", "every` is 0"),
        ("\"metadata.csv\"", "\"../metadata.csv\"", "leaves its folder"),
        (
            "kind = \"between\", from = \"LJ001-0001\", to = \"LJ001-0032\"",
            "kind = \"numbers\", from = 1, to = 2",
            "is by numbers",
        ),
    ] {
        assert!(sound.contains(from), "{from}");
        let error = CorpusDefinition::parse(&sound.replace(from, to), "x.toml").unwrap_err().to_string();
        assert!(error.contains("x.toml: ") && error.contains(why), "{error}");
    }
}

#[test]
fn recordings_that_cannot_be_right_say_why() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora/fsdd.toml");
    let sound = std::fs::read_to_string(file).unwrap();
    CorpusDefinition::parse(&sound, "x.toml").unwrap();
    for (from, to, why) in [
        ("file = \"digits\"", "file = \"digit\"", "there is no [file.\"digit\"]"),
        ("/recordings\"", "/../recordings\"", "leaves its folder"),
        ("\".wav\"", "\"wav\"", "not an ending"),
        ("\"word\", \"speaker\"", "\"speaker\", \"speaker\"", "has no `word`"),
        ("\"speaker\", \"number\"", "\"speaker\", \"word\"", "is by numbers"),
        ("from = 5", "from = 50", "takes no number from 50 to 49"),
        ("unpack = \"tar.gz\"", "", "is not an archive"),
        ("zero", " ", "says nothing"),
        ("lines = 2700", "text.en = [{ file = \"digits\", member = \"a\" }]", "both text and recordings"),
        (
            "source.content_sha256",
            "source.content_suffix = \"x\"\nsource.sha256",
            "`content_suffix` says of which",
        ),
        (
            "source.content_sha256",
            "source.content_folders = [\"x\"]\nsource.sha256",
            "`content_folders` says of which",
        ),
    ] {
        assert!(sound.contains(from), "{from}");
        let error = CorpusDefinition::parse(&sound.replacen(from, to, 1), "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml: ") && error.contains(why), "{to}: {error}");
    }
    let splits = CorpusDefinition::find("librispeech").unwrap().splits;
    let lines = |names: &[&str]| names.iter().map(|name| splits[*name].lines.unwrap()).sum::<u64>();
    assert_eq!(lines(&["train-clean-100", "train-clean-360", "train-other-500"]), lines(&["train"]));
    assert_eq!(lines(&["train-clean-100", "train-clean-360"]), lines(&["train-clean"]));
}

#[test]
fn preparations_that_cannot_be_right_say_why() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora/wmt16-en-de-nvidia.toml");
    let sound = std::fs::read_to_string(file).unwrap();
    CorpusDefinition::parse(&sound, "x.toml").unwrap();
    for (from, to, why) in [
        ("\"newstest_dev\"]", "\"newstest_def\"]", "names split \"newstest_def\""),
        ("[preparation.md5.train]", "[preparation.md5.training]", "names split \"training\""),
        ("\"raw.de\"", "\"raw.fr\"", "names \"raw.fr\""),
        ("min_words = 1", "min_words = 0", "0 to 80 words"),
        ("min_words = 1", "min_words = 81", "81 to 80 words"),
        ("\"b7482095", "\"B7482095", "is not 32 lower-case"),
        ("kind = \"subword-nmt\"", "kind = \"subword\"", "unknown variant"),
        ("latin1 = true", "latin2 = true", "latin2"),
        ("source = \"NVIDIA", "source = \"\" # \"NVIDIA", "`preparation.source` is empty"),
    ] {
        assert!(sound.contains(from), "{from}");
        let error = CorpusDefinition::parse(&sound.replacen(from, to, 1), "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml: ") && error.contains(why), "{to}: {error}");
    }
}

#[test]
fn splits_of_pictures_that_cannot_be_right_say_why() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora/fashion-mnist.toml");
    let sound = std::fs::read_to_string(file).unwrap();
    CorpusDefinition::parse(&sound, "x.toml").unwrap();
    for (from, to, why) in [
        ("images = \"train-images\"", "images = \"train-image\"", "there is no [file.\"train-image\"]"),
        ("images = \"train-images\"", "images = \"train-labels\"", "are the same file"),
        ("\"Trouser\"", "\"T-shirt/top\"", "different names"),
        ("\"Trouser\"", "\" \"", "different names"),
        ("kind = \"idx\"", "kind = \"csv\"", "unknown variant"),
        ("lines = 60000", "text.en = [{ file = \"train-images\" }]", "both text and pictures"),
        ("[file.train-images]", "[file.train-images]\nunpack = \"tar.gz\"", "is an archive"),
        ("[split.test.pictures]", "[split.train.recordings]", "unknown field `kind`"),
    ] {
        assert!(sound.contains(from), "{from}");
        let error = CorpusDefinition::parse(&sound.replacen(from, to, 1), "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml: ") && error.contains(why), "{to}: {error}");
    }
}

#[test]
fn pictures_come_through_the_mirror() {
    let Some(mirror) = std::env::var_os("ZOO_MIRROR") else {
        println!("skipped: ZOO_MIRROR is not set");
        return;
    };
    // Means and standard deviations of the training pixels divided by 255: the constants that are
    // commonly used to normalise these sets.
    for (name, mean, deviation, first) in
        [("fashion-mnist", 0.2860, 0.3530, [9_u8, 0, 0, 3, 0]), ("mnist", 0.1307, 0.3081, [5, 0, 4, 1, 9])]
    {
        let dir = tempfile::tempdir().unwrap();
        let home = DataHome::new(dir.path());
        let corpus = CorpusDefinition::find(name).unwrap();
        let mirror = Some(mirror.to_string_lossy().into_owned());
        let options = FetchOptions { mirror, offline: true, ..FetchOptions::default() };
        let test = corpus.fetch_splits(&["test"], &home, &options).unwrap();
        assert_eq!(test.fingerprints.len(), 2, "{name}");
        let fetched = corpus.fetch_all(&home, &options).unwrap();
        for (file, print) in &fetched.fingerprints {
            assert_eq!(print.checked, format!("sha256:{}", print.sha256), "{file}");
        }
        let read = |split: &str| {
            let pictures = fetched.split(split).unwrap().pictures.as_ref().unwrap();
            assert_eq!(pictures.classes.len(), 10);
            pictures.read().unwrap()
        };
        let (train, test) = (read("train"), read("test"));
        assert_eq!((train.pictures.len(), test.pictures.len()), (60_000, 10_000));
        assert_eq!((train.pictures.size(), test.pictures.size()), ((28, 28), (28, 28)));
        assert_eq!(train.labels[..5], first, "{name}");
        let count = |class| test.labels.iter().filter(|label| **label == class).count();
        assert_eq!((0..10).map(count).sum::<usize>(), 10_000);
        let pixels = train.pictures.pixels();
        let moment = |power: i32| {
            pixels.iter().map(|pixel| (f64::from(*pixel) / 255.0).powi(power)).sum::<f64>()
                / pixels.len() as f64
        };
        let found = (moment(1), (moment(2) - moment(1).powi(2)).sqrt());
        assert!((found.0 - mean).abs() < 5e-5 && (found.1 - deviation).abs() < 5e-5, "{name}: {found:?}");
        assert!(corpus.verify(&home, &Silent).iter().all(|check| check.result.is_ok()));
    }
}
