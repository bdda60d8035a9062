//! Own files, numbers and batches, on texts that the tests write; and the published counts of IMDB,
//! TREC and SST, where `ZOO_MIRROR` names a mirror.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use zoo_recipes::tasks::text_classification::{LabelledDataSpec, NO_WORD};

use super::*;
use crate::corpora::CorpusDefinition;
use crate::fetch::{DataHome, FetchOptions};
use crate::text::kept_units;

/// `[data]` for generated texts; the keys of `change` replace its own.
fn data(change: Value) -> LabelledDataSpec {
    let mut data = json!({
        "reader": {"kind": "marked-words", "train": 10, "test": 3, "seed": 1},
        "classes": 2,
        "tokenizer": {"kind": "keras", "words": 20},
        "length": {"kind": "last", "positions": 6},
        "batching": {"texts": 4, "order": "shuffled", "remainder": "short"},
        "eval": {"test": {"split": "test", "lines": 3}},
    });
    for (key, value) in change.as_object().unwrap() {
        data[key] = value.clone();
    }
    serde_json::from_value(data).unwrap()
}

fn prepared(root: &Path, data: &LabelledDataSpec) -> Result<Arc<PreparedTexts>, LabelledTextError> {
    prepare_texts(data, None, root, None).map(Arc::new)
}

/// A folder with three training texts and one test text; the classes are 9 and 10.
fn lines() -> (tempfile::TempDir, Value) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("train"), "10 good, good film\n9 bad film\n9 film\n").unwrap();
    fs::write(root.path().join("test"), "10 a good film isn't bad\n").unwrap();
    let change = json!({
        "reader": {"kind": "labelled-lines", "files": {"train": "train", "test": "test"}},
        "eval": {"test": {"split": "test", "lines": 1}},
    });
    (root, change)
}

fn with(change: Value, key: &str, value: Value) -> LabelledDataSpec {
    data(with_value(change, key, value))
}

fn with_value(mut change: Value, key: &str, value: Value) -> Value {
    change[key] = value;
    change
}

#[test]
fn words_of_own_lines_get_the_numbers_of_the_training_texts() {
    let (root, change) = lines();
    let read = prepared(root.path(), &data(change.clone())).unwrap();
    assert_eq!(
        (read.classes.as_slice(), read.vocabulary.rows()),
        (&["9".to_owned(), "10".to_owned()][..], 20)
    );
    // film 4, good 5, bad 6; `a` and `isn't` are in no training text.
    assert_eq!(read.splits["train"].texts, [vec![1, 5, 5, 4], vec![1, 6, 4], vec![1, 4]]);
    assert_eq!(read.splits["test"].texts, [[1, 5, 4, 6]]);
    assert_eq!((read.splits["train"].labels.as_slice(), read.splits["test"].labels[0]), (&[1, 0, 0][..], 1));
    let batch = read.splits["test"].batches(9).next().unwrap();
    assert_eq!(batch, TextBatch { ids: vec![0, 0, 1, 5, 4, 6], labels: vec![1], fold: 0 });
    let short = with(change.clone(), "length", json!({"kind": "last", "positions": 2}));
    let read = prepared(root.path(), &short).unwrap();
    assert_eq!(read.splits["train"].batches(2).next().unwrap().ids, [5, 4, 6, 4], "the last numbers stay");
    // Pairs begin behind the words and one number: (1 5) 21, (5 5) 22, (5 4) 23, (1 6) 24, (6 4)
    // 25, (1 4) 26.
    let pairs = with(change, "tokenizer", json!({"kind": "keras", "words": 20, "bigrams": true}));
    let read = prepared(root.path(), &pairs).unwrap();
    assert_eq!((&read.splits["test"].texts[0], read.vocabulary.rows()), (&vec![1, 5, 4, 6, 21, 23], 27));
}

#[test]
fn kims_words_are_those_of_all_splits_between_margins() {
    let (root, mut change) = lines();
    change["length"] = json!({"kind": "longest", "margin": 2});
    let read = prepared(root.path(), &with(change, "tokenizer", json!({"kind": "kim"}))).unwrap();
    // good , film bad | a is n't; the longest text is the test text with six words.
    assert_eq!((read.positions, read.vocabulary.rows()), (10, 8));
    let train = read.splits["train"].batches(1).next().unwrap();
    assert_eq!(train.ids, [0, 0, 1, 2, 1, 3, 0, 0, 0, 0]);
    let test = read.splits["test"].batches(1).next().unwrap();
    assert_eq!(test.ids, [0, 0, 5, 1, 3, 6, 7, 4, 0, 0]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_class() {
    let (root, change) = lines();
    let data = data(change);
    let before = prepared(root.path(), &data).unwrap();
    let train = fs::read_to_string(root.path().join("train")).unwrap();
    fs::write(root.path().join("train"), format!("\u{feff}{train}")).unwrap();
    assert_eq!(prepared(root.path(), &data).unwrap().classes, before.classes);
}

#[test]
fn kept_words_and_classes_read_a_text_as_before() {
    let (root, mut change) = lines();
    change["length"] = json!({"kind": "longest", "margin": 2});
    for tokenizer in [
        json!({"kind": "keras", "words": 6}),
        json!({"kind": "keras", "words": 20, "bigrams": true}),
        json!({"kind": "kim"}),
    ] {
        let data = with(change.clone(), "tokenizer", tokenizer.clone());
        let read = prepared(root.path(), &data).unwrap();
        let longest = read.splits.values().flat_map(|split| &split.texts).map(Vec::len).max();
        assert_eq!(Some(read.positions), longest.map(|longest| longest + 4), "{tokenizer}: nothing is cut");
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(PreparedTexts::kept(&data, folder.path()).unwrap(), None, "nothing was kept");
        read.keep(folder.path()).unwrap();
        let kept = PreparedTexts::kept(&data, folder.path()).unwrap().unwrap();
        assert_eq!((&kept.vocabulary, &kept.classes), (&read.vocabulary, &read.classes), "{tokenizer}");
        let text = "a good film isn't bad".as_bytes();
        assert_eq!(kept.text(&data, text), read.text(&data, text), "{tokenizer}");
        let json = fs::read_to_string(folder.path().join("kept.json")).unwrap();
        for (from, to) in [("\"positions\": ", "\"positions\": 1"), ("\"10\"", "\"11\"")] {
            assert!(json.contains(from), "{json}");
            fs::write(folder.path().join("kept.json"), json.replace(from, to)).unwrap();
            let error = PreparedTexts::kept(&data, folder.path()).unwrap_err().to_string();
            assert!(error.contains("kept.json: it was changed"), "{error}");
        }
        fs::write(folder.path().join("kept.json"), json).unwrap();
        fs::write(folder.path().join("words.txt"), "film\n").unwrap();
        let error = PreparedTexts::kept(&data, folder.path()).unwrap_err().to_string();
        assert!(error.contains("words.txt: it was changed"), "{error}");
    }
    let plain = with(change.clone(), "tokenizer", json!({"kind": "keras", "words": 20}));
    let folder = tempfile::tempdir().unwrap();
    prepared(root.path(), &plain).unwrap().keep(folder.path()).unwrap();
    let pairs = with(change, "tokenizer", json!({"kind": "keras", "words": 20, "bigrams": true}));
    let error = PreparedTexts::kept(&pairs, folder.path()).unwrap_err().to_string();
    assert!(error.contains("it has no pairs, and the recipe has them"), "{error}");
}

#[test]
fn what_is_not_as_the_recipe_says_is_refused() {
    let (root, change) = lines();
    let message = |data: &LabelledDataSpec| prepared(root.path(), data).unwrap_err().to_string();
    let three = with(change.clone(), "classes", json!(3));
    assert!(message(&three).contains("train has 2 classes, `data.classes` is 3"), "{}", message(&three));
    let all = with(change.clone(), "held_out", json!({"split": "dev", "texts": 3, "seed": 1}));
    assert!(message(&all).contains("takes 3 of 3 training texts"), "{}", message(&all));
    let other = with(change.clone(), "eval", json!({"test": {"split": "test", "lines": 2}}));
    let error = prepared(root.path(), &other).unwrap().eval_set("test", &other).unwrap_err().to_string();
    assert!(error.contains("has 1 texts, the recipe says 2"), "{error}");
    let missing = with(change.clone(), "eval", json!({"dev": {"split": "dev", "lines": 1}}));
    assert!(message(&missing).contains("no split dev\nhint: it has test, train"), "{}", message(&missing));
    let large = json!({"texts": 4, "order": "shuffled", "remainder": "drop"});
    let large = with(change.clone(), "batching", large);
    let read = prepared(root.path(), &large).unwrap();
    let error = TrainingTexts::new(&read, &large, 1).unwrap_err().to_string();
    assert!(error.contains("train has 3 texts, and a batch has 4"), "{error}");
    fs::write(root.path().join("test"), "8 a\n").unwrap();
    let message = |change: &Value| prepared(root.path(), &data(change.clone())).unwrap_err().to_string();
    assert!(message(&change).contains("test has the class 8"), "{}", message(&change));
    fs::write(root.path().join("test"), "9 a\n\n9 b").unwrap();
    assert!(message(&change).contains("line 2"), "{}", message(&change));
}

#[test]
fn folders_are_classes_and_stamps_change_with_a_text() {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in [("t/pos/1.txt", "good"), ("t/neg/1.txt", "bad"), ("e/pos/1.txt", "good good")] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let data = data(json!({
        "reader": {"kind": "text-folder", "folders": {"train": "t", "test": "e"}},
        "eval": {"test": {"split": "test", "lines": 1}},
    }));
    let read = prepared(root.path(), &data).unwrap();
    assert_eq!(
        (read.classes.as_slice(), read.splits["test"].labels[0]),
        (&["neg".to_owned(), "pos".to_owned()][..], 1)
    );
    assert_eq!(own_texts(&data, root.path()).unwrap(), Some(2));
    assert_eq!(own_classes(&data, root.path()).unwrap(), ["neg", "pos"]);
    let before = own_stamps(&data, root.path()).unwrap();
    fs::write(root.path().join("t/neg/1.txt"), "worse").unwrap();
    let after = own_stamps(&data, root.path()).unwrap();
    assert_eq!(before.iter().zip(&after).filter(|(one, other)| one != other).count(), 1);
}

/// Sorted texts of the batches of an epoch.
fn batches(change: Value, seed: u64, epoch: u64) -> Vec<Vec<Vec<u32>>> {
    let data = data(change);
    let read = prepared(Path::new(""), &data).unwrap();
    let training = TrainingTexts::new(&read, &data, seed).unwrap();
    let rows = |ids: &[u32]| ids.chunks(read.positions).map(<[u32]>::to_vec).collect();
    training.epoch(epoch).map(|batch| rows(&batch.ids)).collect()
}

fn batching(order: &str, remainder: &str) -> Value {
    json!({"batching": {"texts": 4, "order": order, "remainder": remainder}, "length": {"kind": "last", "positions": 20}})
}

#[test]
fn an_epoch_has_every_text_once_in_an_order_of_its_own() {
    let of = |seed, epoch| batches(batching("shuffled", "short"), seed, epoch);
    let sorted = |mut texts: Vec<Vec<u32>>| {
        texts.sort_unstable();
        texts
    };
    assert_eq!(of(1, 0).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(of(1, 0), of(1, 0));
    assert_ne!(of(1, 0), of(1, 1));
    assert_ne!(of(1, 0), of(2, 0));
    assert_eq!(sorted(of(1, 0).concat()), sorted(of(2, 1).concat()));
    assert_eq!(batches(batching("shuffled", "drop"), 1, 0), of(1, 0)[..2]);
}

#[test]
fn shuffled_batches_keep_their_texts() {
    let of = |epoch| batches(batching("shuffled-batches", "drop"), 1, epoch);
    let mut epochs: Vec<_> = (0..8).map(of).collect();
    assert!(epochs.iter().any(|epoch| *epoch != epochs[0]), "the order changes");
    epochs.iter_mut().for_each(|epoch| epoch.sort_unstable());
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0] && epoch.len() == 2));
}

#[test]
fn batches_of_the_thread_are_those_made_here() {
    let data = data(batching("shuffled", "short"));
    let training = TrainingTexts::new(&prepared(Path::new(""), &data).unwrap(), &data, 3).unwrap();
    let here: Vec<TextBatch> = training.epoch(1).collect();
    let training = Arc::new(training);
    let ahead: Vec<TextBatch> = training.ahead(1, 1, |index| index != 2).map(Result::unwrap).collect();
    assert_eq!(ahead, here[1..2]);
}

#[test]
fn a_held_out_part_is_not_trained_on_and_is_drawn_once() {
    let change = json!({
        "reader": {"kind": "marked-words", "train": 30, "test": 3, "seed": 1},
        "held_out": {"split": "dev", "texts": 7, "seed": 5},
        "eval": {"dev": {"split": "dev", "lines": 7}, "test": {"split": "test", "lines": 3}},
    });
    let read = prepared(Path::new(""), &data(change.clone())).unwrap();
    assert_eq!((read.splits["train"].texts.len(), read.splits["dev"].texts.len()), (23, 7));
    assert_eq!(read, prepared(Path::new(""), &data(change.clone())).unwrap());
    let other = with(change, "held_out", json!({"split": "dev", "texts": 7, "seed": 6}));
    assert_ne!(read.splits["dev"].labels, prepared(Path::new(""), &other).unwrap().splits["dev"].labels);
}

/// Words of a language model, in their order.
fn known(words: &[&str]) -> KnownWords {
    KnownWords::new(words.iter().map(|word| (*word).to_owned()).collect(), "<unk>").unwrap()
}

#[test]
fn words_of_a_language_model_have_its_numbers_and_padding_has_none() {
    let (root, change) = lines();
    fs::write(root.path().join("test"), "10 A good <br /> Film isn't \u{fc}ber-bad.\n9\n").unwrap();
    let tokenizer = json!({"kind": "language-model", "rules": "reviews", "unknown": "<unk>", "words": 9});
    let mut change = with_value(change, "tokenizer", tokenizer);
    change["length"] = json!({"kind": "last", "positions": 5});
    change["eval"]["test"]["lines"] = json!(2);
    let data = data(change);
    let model = known(&["the", "<unk>", "good", "Film", "film", "bad", "n't", ".", "-"]);
    let read = prepare_texts(&data, None, root.path(), Some(model.clone())).unwrap();
    assert_eq!((read.vocabulary.rows(), read.positions), (9, 5));
    assert_eq!(read.splits["train"].texts, [vec![2, 1, 2, 4], vec![5, 4], vec![4]]);
    // a good Film is n't über - bad .
    assert_eq!(read.splits["test"].texts, [vec![1, 2, 3, 1, 6, 1, 8, 5, 7], vec![]]);
    let batch = read.splits["train"].batches(3).next().unwrap();
    let none = NO_WORD;
    assert_eq!(batch.ids, [none, 2, 1, 2, 4, none, none, none, 5, 4, none, none, none, none, 4]);
    assert_eq!(read.splits["test"].batches(1).next().unwrap().ids, [6, 1, 8, 5, 7]);
    assert_eq!(read.splits["test"].batches(2).next().unwrap().ids[5..], [none; 5]);
    assert_eq!(read.text(&data, b"bad FILM").ids, [none, none, none, 5, 4]);
    assert_eq!(read.vocabulary.text(&[3, 1, 4]), "Film <unk> film");

    // Kept words are read again.
    let folder = tempfile::tempdir().unwrap();
    read.keep(folder.path()).unwrap();
    let kept = PreparedTexts::kept(&data, folder.path()).unwrap().unwrap();
    assert_eq!(kept.vocabulary, read.vocabulary);
    assert_eq!(kept.text(&data, b"bad FILM"), read.text(&data, b"bad FILM"));

    let error = prepare_texts(&data, None, root.path(), None).unwrap_err().to_string();
    assert!(error.contains("the words of a language model are needed"), "{error}");
}

#[test]
fn the_run_of_a_language_model_gives_its_words() {
    let tokenizer = json!({"kind": "language-model", "rules": "sentences", "unknown": "<unk>", "words": 9});
    let tokenizer = data(json!({"tokenizer": tokenizer})).tokenizer;
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(KnownWords::of_run(&tokenizer, folder.path()).unwrap(), None);
    let words = ["<unk>", "a", "<unk>"].map(str::to_owned);
    kept_units::write(folder.path(), &words).unwrap();
    let found = KnownWords::of_run(&tokenizer, folder.path()).unwrap().unwrap();
    assert_eq!(found, known(&["<unk>", "a", "<unk>"]));
    kept_units::write(folder.path(), &words[1..2]).unwrap();
    let error = KnownWords::of_run(&tokenizer, folder.path()).unwrap_err().to_string();
    assert!(error.contains("does not have the word \"<unk>\""), "{error}");
    fs::write(folder.path().join("kept.json"), "{}").unwrap();
    let error = KnownWords::of_run(&tokenizer, folder.path()).unwrap_err().to_string();
    assert!(error.contains("kept.json: ") && error.contains("train again"), "{error}");
}

/// A corpus of the mirror, prepared; `None` without a mirror.
fn of_mirror(corpus: &str, change: Value) -> Option<PreparedTexts> {
    let Some(mirror) = std::env::var_os("ZOO_MIRROR") else {
        println!("skipped: ZOO_MIRROR is not set");
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let options = FetchOptions {
        mirror: Some(mirror.to_string_lossy().into_owned()),
        offline: true,
        ..FetchOptions::default()
    };
    let definition = CorpusDefinition::find(corpus).unwrap();
    let fetched = definition.fetch_all(&DataHome::new(home.path()), &options).unwrap();
    Some(prepare_texts(&data(change), Some(&fetched), Path::new(""), None).unwrap())
}

#[test]
fn imdb_has_the_counts_that_keras_prints() {
    let change = json!({
        "reader": {"kind": "corpus"},
        "corpus": "imdb",
        "tokenizer": {"kind": "keras", "words": 20000},
        "length": {"kind": "last", "positions": 400},
        "eval": {"test": {"split": "test", "lines": 25000}},
    });
    let Some(read) = of_mirror("imdb", change) else { return };
    let LabelledVocabulary::Keras { ranks, .. } = &read.vocabulary else { panic!("another tokenizer") };
    assert_eq!(ranks.words().len(), 88_584);
    assert_eq!(ranks.words()[..4].join(&b' '), b"the and a of");
    let lengths: Vec<usize> = read.splits["train"].texts.iter().map(Vec::len).collect();
    assert_eq!(lengths.iter().sum::<usize>() / lengths.len(), 238);
    assert_eq!(lengths.iter().filter(|length| **length > 400).count(), 3484);
    assert_eq!(read.splits["test"].texts.len(), 25_000);
}

#[test]
fn trec_has_the_counts_of_its_authors() {
    let change = json!({
        "reader": {"kind": "corpus"},
        "corpus": "trec",
        "classes": 6,
        "tokenizer": {"kind": "kim"},
        "length": {"kind": "longest", "margin": 4},
        "eval": {"test": {"split": "test", "lines": 500}},
    });
    let Some(read) = of_mirror("trec", change) else { return };
    assert_eq!((read.splits["train"].texts.len(), read.splits["test"].texts.len()), (5452, 500));
    assert_eq!((read.vocabulary.rows(), read.positions), (8765, 45));
}

#[test]
fn sst_has_the_counts_of_its_binary_sets() {
    let change = json!({
        "reader": {"kind": "corpus"},
        "corpus": "sst-binary",
        "tokenizer": {"kind": "kim"},
        "length": {"kind": "longest", "margin": 0},
        "eval": {"valid": {"split": "valid", "lines": 872}, "test": {"split": "test", "lines": 1821}},
    });
    let Some(read) = of_mirror("sst-binary", change) else { return };
    let positive = |split: &str| read.splits[split].labels.iter().filter(|label| **label == 1).count();
    assert_eq!(["train", "valid", "test"].map(positive), [3610, 444, 909]);
    assert_eq!(read.splits["train"].texts.len(), 6920);
}

/// Ten texts of one word each, in three parts.
fn parts(order: &str, seed: u64) -> (tempfile::TempDir, LabelledDataSpec) {
    let root = tempfile::tempdir().unwrap();
    let lines: String = (0..10).map(|i| format!("{} w{i}\n", i / 5)).collect();
    fs::write(root.path().join("train"), lines).unwrap();
    let data = data(json!({
        "reader": {"kind": "labelled-lines", "files": {"train": "train"}},
        "tokenizer": {"kind": "kim"},
        "length": {"kind": "longest", "margin": 0},
        "folds": {"count": 3, "order": order, "tested": "all", "held_out": "dev", "trained": 0.7, "seed": seed},
        "batching": {"texts": 2, "order": "shuffled-batches", "remainder": "drop"},
        "eval": {"test": {"split": "all", "lines": 10}},
    }));
    (root, data)
}

/// Sorted words of the texts of a part in a split.
fn of_part(read: &PreparedTexts, split: &str, fold: u32) -> Vec<u32> {
    let split = &read.splits[split];
    let texts = split.texts.iter().zip(&split.folds).filter(|(_, of)| **of == fold);
    let mut texts: Vec<u32> = texts.map(|(text, _)| text[0]).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn slices_of_the_file_are_tested_in_its_order_and_overlap_at_their_ends() {
    let (root, data) = parts("as-in-the-file", 1);
    let read = prepared(root.path(), &data).unwrap();
    let all = read.eval_set("test", &data).unwrap();
    // Words are numbered from 1 on, in the order of the file.
    assert_eq!(all.texts.concat(), (1..=10).collect::<Vec<u32>>());
    assert_eq!(all.folds, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]);
    for (fold, due) in [
        (0, vec![1, 3, 4, 5, 6, 7, 8, 9, 10]),
        (1, vec![1, 2, 3, 4, 6, 7, 8, 9, 10]),
        (2, vec![1, 2, 3, 4, 5, 6, 7, 10]),
    ] {
        let mut both = [of_part(&read, "train", fold), of_part(&read, "dev", fold)].concat();
        both.sort_unstable();
        assert_eq!(both, due, "part {fold}");
        // Of four whole batches of two, 2.8 are trained on: three.
        assert_eq!(of_part(&read, "train", fold).len(), 6);
    }
    assert_eq!(read, prepared(root.path(), &data).unwrap());
    let sets: Vec<TextBatch> = all.batches(3).collect();
    assert_eq!(sets.iter().map(|batch| batch.fold).collect::<Vec<_>>(), [0, 1, 2, 2]);
    assert_eq!(sets.iter().map(|batch| batch.labels.len()).collect::<Vec<_>>(), [3, 3, 3, 1]);
}

#[test]
fn shuffled_parts_have_every_text_once_and_no_model_is_trained_on_its_part() {
    let (root, data) = parts("shuffled", 1);
    let read = prepared(root.path(), &data).unwrap();
    let all = read.eval_set("test", &data).unwrap();
    assert_eq!(all.folds, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]);
    for fold in 0..3 {
        let seen = [of_part(&read, "train", fold), of_part(&read, "dev", fold)].concat();
        let mut both = [seen, of_part(&read, "all", fold)].concat();
        both.sort_unstable();
        assert_eq!(both, (1..=10).collect::<Vec<u32>>(), "part {fold}");
        // Of three whole batches of two, 2.1 are trained on: two.
        assert_eq!(of_part(&read, "train", fold).len(), 4);
    }
    // A label stays with its text: the first five of the file are of the class 0.
    assert!(all.texts.iter().zip(&all.labels).all(|(text, label)| *label == u32::from(text[0] > 5)));
    let slices: Vec<u32> = (1..=10).collect();
    assert_ne!(all.texts.concat(), slices, "the parts are drawn");
    assert_eq!(read, prepared(root.path(), &data).unwrap());
    let (root, other) = parts("shuffled", 2);
    assert_ne!(all.texts, prepared(root.path(), &other).unwrap().splits["all"].texts);
}

#[test]
fn a_training_batch_has_texts_of_one_part() {
    let (root, data) = parts("as-in-the-file", 1);
    let read = prepared(root.path(), &data).unwrap();
    let training = TrainingTexts::new(&read, &data, 1).unwrap();
    assert_eq!(training.per_epoch(), 9);
    let epochs: Vec<Vec<TextBatch>> = (0..2).map(|epoch| training.epoch(epoch).collect()).collect();
    assert_ne!(epochs[0], epochs[1]);
    let train = &read.splits["train"];
    for batch in epochs.concat() {
        let known =
            |id: &u32| train.texts.iter().zip(&train.folds).any(|(t, f)| t[0] == *id && *f == batch.fold);
        assert!(batch.ids.len() == 2 && batch.ids.iter().all(known), "{batch:?}");
    }
    let folds: Vec<u32> = epochs[0].iter().map(|batch| batch.fold).collect();
    assert!([0, 1, 2].iter().all(|fold| folds.iter().filter(|of| *of == fold).count() == 3), "{folds:?}");
    assert!(!folds.is_sorted(), "the parts take turns: {folds:?}");
}

#[test]
fn ten_parts_of_mr_have_the_batches_of_its_authors() {
    for (order, held_out) in [("as-in-the-file", 9_978), ("shuffled", 9_958)] {
        let change = json!({
            "reader": {"kind": "corpus"},
            "corpus": "mr",
            "tokenizer": {"kind": "kim"},
            "length": {"kind": "longest", "margin": 4},
            "folds": {"count": 10, "order": order, "tested": "all", "held_out": "dev", "trained": 0.9, "seed": 1},
            "batching": {"texts": 50, "order": "shuffled-batches", "remainder": "drop"},
            "eval": {"test": {"split": "all", "lines": 10662}},
        });
        let Some(read) = of_mirror("mr", change) else { return };
        assert_eq!((read.vocabulary.rows(), read.positions), (18_766, 64));
        let texts = |split: &str| read.splits[split].texts.len();
        assert_eq!((texts("all"), texts("train"), texts("dev")), (10_662, 10 * 172 * 50, held_out));
    }
}
