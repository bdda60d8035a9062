//! Own files, batches and their orders, on pictures that the tests write.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use zoo_recipes::tasks::image_classification::PictureDataSpec;

use super::*;
use crate::image::{Picture, encode_png};

/// An IDX file of bytes.
fn idx(lengths: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, lengths.len() as u8];
    bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
    bytes.extend(data);
    bytes
}

/// Writes a picture of 2 x 3 pixels for each label. Its first pixel is its number.
fn write_split(folder: &Path, split: &str, labels: &[u8]) {
    let pixels: Vec<u8> = (0..labels.len()).flat_map(|n| (0..6).map(move |at| (n + 40 * at) as u8)).collect();
    let count = labels.len() as u32;
    fs::write(folder.join(format!("{split}-images")), idx(&[count, 2, 3], &pixels)).unwrap();
    fs::write(folder.join(format!("{split}-labels")), idx(&[count], labels)).unwrap();
}

/// `[data]` for ten training and three test pictures of three classes; the keys of `change` replace
/// its own.
fn data(change: Value) -> PictureDataSpec {
    let files =
        |split: &str| json!({"images": format!("{split}-images"), "labels": format!("{split}-labels")});
    let mut data = json!({
        "reader": {"kind": "idx", "files": {"train": files("train"), "test": files("test")}},
        "picture": {"height": 2, "width": 3, "channels": 1},
        "classes": 3,
        "pixels": {"divisor": "none"},
        "batching": {"pictures": 4, "order": "file", "remainder": "short"},
        "eval": {"test": {"split": "test", "lines": 3}},
    });
    for (key, value) in change.as_object().unwrap() {
        data[key] = value.clone();
    }
    serde_json::from_value(data).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_split(folder.path(), "train", &[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    write_split(folder.path(), "test", &[2, 2, 0]);
    folder
}

fn prepared(root: &Path, data: &PictureDataSpec) -> Result<Arc<PreparedPictures>, PictureDataError> {
    prepare_pictures(data, None, root, &["train", "test"]).map(Arc::new)
}

fn message(root: &Path, data: &PictureDataSpec) -> String {
    prepared(root, data).unwrap_err().to_string()
}

fn training(change: Value, seed: u64) -> Arc<TrainingPictures> {
    let (folder, data) = (folder(), data(change));
    Arc::new(TrainingPictures::new(&prepared(folder.path(), &data).unwrap(), &data, seed).unwrap())
}

/// Numbers of the pictures of the first epochs, batch by batch.
fn numbers(training: &TrainingPictures, epochs: u64) -> Vec<Vec<u32>> {
    let of = |epoch| (0..training.per_epoch(epoch)).map(move |index| training.batch(epoch, index).unwrap());
    let first = |batch: PictureBatch| batch.pixels.chunks(6).map(|pixels| pixels[0] as u32).collect();
    (0..epochs).flat_map(of).map(first).collect()
}

fn batching(order: &str, remainder: &str) -> Value {
    json!({"batching": {"pictures": 4, "order": order, "remainder": remainder}})
}

#[test]
fn each_remainder_is_treated_as_it_is_named() {
    let of = |remainder| numbers(&training(batching("file", remainder), 1), 2);
    let whole: Vec<Vec<u32>> = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
    let with = |more: &[Vec<u32>]| [whole.clone(), more.to_vec()].concat();
    assert_eq!(of("drop"), [whole.clone(), whole.clone()].concat());
    assert_eq!(of("short"), [with(&[vec![8, 9]]), with(&[vec![8, 9]])].concat());
    // The third batch goes on into the second epoch, in which two more begin.
    assert_eq!(of("continue"), with(&[vec![8, 9, 0, 1], vec![2, 3, 4, 5], vec![6, 7, 8, 9]]));
}

#[test]
fn a_shuffled_epoch_has_every_picture_once_in_an_order_of_its_own() {
    let order = |seed, epochs| numbers(&training(batching("shuffled", "short"), seed), epochs).concat();
    let (first, both) = (order(1, 1), order(1, 2));
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    assert_ne!(first, sorted);
    assert_eq!(both[..10], first, "a function of the seed and the epoch");
    assert_ne!(both[10..], first);
    assert_ne!(order(2, 1), first);
}

#[test]
fn batches_that_a_thread_makes_are_those_of_their_numbers() {
    let training = training(batching("shuffled", "continue"), 3);
    let ahead: Vec<PictureBatch> = training.ahead(1, 1, |_| true).map(Result::unwrap).collect();
    let here: Vec<PictureBatch> =
        (1..training.per_epoch(1)).map(|index| training.batch(1, index).unwrap()).collect();
    assert_eq!(ahead, here, "resumed within an epoch");
    let second: Vec<PictureBatch> =
        training.ahead(0, 0, |index| index % 2 == 1).map(Result::unwrap).collect();
    assert_eq!(second, [training.batch(0, 1).unwrap()], "those of another worker are left out");
}

#[test]
fn pixels_are_numbers_as_the_recipe_says() {
    let folder = folder();
    for (pixels, expected) in [
        (json!({"divisor": "by-255"}), 40.0 / 255.0),
        (json!({"divisor": "by-256"}), 40.0 / 256.0),
        (json!({"divisor": "none", "mean": [10.0], "deviation": [2.0]}), 15.0),
    ] {
        let data = data(json!({ "pixels": pixels }));
        let read = prepared(folder.path(), &data).unwrap();
        let batch = read.splits["train"].batches(&data.pixels, 10).unwrap().next().unwrap().unwrap();
        assert!((batch.pixels[1] - expected as f32).abs() < 1e-6, "{}", batch.pixels[1]);
        assert_eq!((batch.size, batch.labels.len()), ([2, 3, 1], 10));
    }
}

#[test]
fn what_is_not_as_the_recipe_says_is_refused() {
    let root = folder();
    let two = data(json!({"classes": 2}));
    assert!(
        message(root.path(), &two).contains("picture 3 of train is of class 2"),
        "{}",
        message(root.path(), &two)
    );
    let read = prepared(root.path(), &data(json!({}))).unwrap();
    let four = data(json!({"eval": {"test": {"split": "test", "lines": 4}}}));
    let error = read.eval_set("test", &four).unwrap_err().to_string();
    assert!(error.contains("its split `test` has 3 pictures, the recipe says 4"), "{error}");
    assert!(read.eval_set("valid", &four).is_err());
    fs::write(root.path().join("test-labels"), idx(&[2], &[0, 1])).unwrap();
    let error = message(root.path(), &data(json!({})));
    assert!(error.contains("has 3 pictures, ") && error.contains("has 2 labels"), "{error}");
    for remainder in ["drop", "continue"] {
        let large = data(json!({"batching": {"pictures": 11, "order": "file", "remainder": remainder}}));
        let error = TrainingPictures::new(&read, &large, 1).unwrap_err().to_string();
        assert!(error.contains("train has 10 pictures, and a batch has 11"), "{error}");
    }
    let channels = data(json!({"pixels": {"divisor": "none", "mean": [1.0, 2.0]}}));
    assert!(TrainingPictures::new(&read, &channels, 1).is_err());
}

/// Folders with four training pictures of two classes, and one test picture of the second.
fn folders() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, byte: u8| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let picture = Picture::new(1, 2, 3, vec![byte; 6]).unwrap();
        fs::write(path, encode_png(&picture).unwrap()).unwrap();
    };
    for (file, byte) in [("t/cat/1", 1), ("t/cat/2", 2), ("t/dog/3", 3), ("t/dog/4", 4), ("e/dog/5", 5)] {
        write(&format!("{file}.png"), byte);
    }
    root
}

fn of_folders(change: Value) -> PictureDataSpec {
    let mut whole = json!({
        "reader": {"kind": "image-folder", "folders": {"train": "t", "test": "e"}},
        "picture": {"height": 1, "width": 2, "channels": 3},
        "classes": 2,
        "eval": {"test": {"split": "test", "lines": 1}},
    });
    for (key, value) in change.as_object().unwrap() {
        whole[key] = value.clone();
    }
    data(whole)
}

#[test]
fn the_folders_of_training_number_the_classes() {
    let root = folders();
    let read = prepared(root.path(), &of_folders(json!({}))).unwrap();
    assert_eq!(read.classes, ["cat", "dog"]);
    let train = &read.splits["train"];
    assert_eq!((train.labels.as_slice(), train.bytes_of(1)), (&[0, 0, 1, 1][..], &[2; 6][..]));
    assert_eq!(train.names, ["cat/1.png", "cat/2.png", "dog/3.png", "dog/4.png"]);
    // The test folder has `dog` alone, which keeps its number.
    assert_eq!(read.splits["test"].labels, [1]);
    fs::rename(root.path().join("e/dog"), root.path().join("e/cow")).unwrap();
    let error = message(root.path(), &of_folders(json!({})));
    assert!(error.contains("a folder cow, which is no class of the training pictures"), "{error}");
    let error = message(root.path(), &of_folders(json!({"classes": 3})));
    assert!(error.contains("has 2 classes, `data.classes` is 3"), "{error}");
}

#[test]
fn a_share_of_folders_has_pictures_of_every_class() {
    let root = folders();
    let read = prepared(root.path(), &of_folders(json!({"share": {"train": 2, "eval": 1}}))).unwrap();
    assert_eq!(read.splits["train"].names, ["cat/1.png", "dog/3.png"]);
}

#[test]
fn pictures_take_the_size_and_channels_of_the_model() {
    let root = folders();
    let grey = of_folders(json!({"picture": {"height": 2, "width": 2, "channels": 1}}));
    let read = prepared(root.path(), &grey).unwrap();
    assert_eq!((read.splits["train"].size(), read.splits["train"].bytes_of(0)), ([2, 2, 1], &[1; 4][..]));
    assert_eq!(read_picture(&root.path().join("t/dog/4.png"), &grey).unwrap(), [4.0; 4]);
    assert!(read_picture(&root.path().join("t/dog/6.png"), &grey).is_err());
}

#[test]
fn own_files_are_told_apart_by_what_is_in_them() {
    let root = folders();
    let stamps = || own_stamps(&of_folders(json!({})), root.path()).unwrap();
    let before = stamps();
    assert_eq!(own_pictures(&of_folders(json!({})), root.path()).unwrap(), Some(4));
    let other = Picture::new(1, 2, 3, vec![9; 6]).unwrap();
    fs::write(root.path().join("t/dog/4.png"), encode_png(&other).unwrap()).unwrap();
    let after = stamps();
    let changed = before.iter().zip(&after).filter(|(one, other)| one != other).count();
    assert_eq!((before.len(), changed), (2, 1));
}

#[test]
fn a_flip_of_probability_one_mirrors_every_training_picture() {
    let change = json!({"augmentation": {"padding": 0, "flip": 1.0}});
    let batch = training(change, 1).batch(0, 0).unwrap();
    assert_eq!(batch.pixels[..3], [80.0, 40.0, 0.0]);
}

#[test]
fn stripes_are_a_function_of_the_seed_and_their_number() {
    let of = |seed: u64, train: u32| {
        let reader = json!({"kind": "stripes", "train": train, "test": 3, "seed": seed});
        let data = data(json!({"reader": reader, "picture": {"height": 9, "width": 8, "channels": 3}}));
        prepared(Path::new(""), &data).unwrap()
    };
    let (one, other) = (of(1, 20), of(2, 20));
    assert_eq!(one.splits["train"], of(1, 20).splits["train"]);
    assert_ne!(one.splits["train"].bytes, other.splits["train"].bytes);
    let classes: std::collections::BTreeSet<u32> = one.splits["train"].labels.iter().copied().collect();
    assert_eq!(classes.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    assert_ne!(one.splits["train"].bytes_of(0), one.splits["test"].bytes_of(0));
}

#[test]
fn classes_are_kept_for_pictures_of_a_user() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(kept_classes(folder.path(), 2).unwrap(), None);
    let classes = vec!["cat".to_owned(), "dog".to_owned()];
    let prepared = PreparedPictures { splits: std::collections::BTreeMap::new(), classes: classes.clone() };
    prepared.keep(folder.path()).unwrap();
    assert_eq!(kept_classes(folder.path(), 2).unwrap(), Some(classes));
    let error = kept_classes(folder.path(), 3).unwrap_err().to_string();
    assert!(error.contains("names 2 classes, the recipe has 3"), "{error}");
}
