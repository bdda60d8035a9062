use std::path::Path;
use std::sync::Arc;

use zoo_recipes::ShareSpec;
use zoo_recipes::tasks::language_modelling::{LanguageDataSpec, LastWindow};

use super::*;

/// The recipe's data, from the text of its block.
fn data(reader: &str, unit: &str, vocabulary: &str) -> LanguageDataSpec {
    let text = format!(
        "reader = {{ {reader} }}
        unit = {{ {unit} }}
        vocabulary = {{ {vocabulary} }}
        batching = {{ kind = 'contiguous', rows = 2, steps = 3, last = 'short', state = 'carried' }}
        [eval.valid]
        split = 'valid'
        lines = 2
        windows = {{ kind = 'contiguous', rows = 1, steps = 4, last = 'short', state = 'carried' }}"
    );
    toml::from_str(&text).unwrap()
}

fn files(texts: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut named = Vec::new();
    for (split, text) in texts {
        std::fs::write(folder.path().join(split), text).unwrap();
        named.push(format!("{split} = '{split}'"));
    }
    (folder, format!("kind = 'text', files = {{ {} }}", named.join(", ")))
}

const WORDS: &str = "kind = 'word', end_of_line = '<eos>'";

#[test]
fn words_are_numbered_in_each_order_and_written_back() {
    let (folder, reader) = files(&[("train", " b a b \n c a\n"), ("valid", "a\nd b\n")]);
    let of = |vocabulary: &str| {
        let data = data(&reader, WORDS, vocabulary);
        prepare_language(&data, None, folder.path()).unwrap()
    };
    let names = |prepared: &PreparedLanguage| {
        (0..prepared.units.len() as u32).map(|id| prepared.units.name(id).to_owned()).collect::<Vec<_>>()
    };
    let appearance = of("size = 5, order = 'appearance', of = 'all'");
    assert_eq!(names(&appearance), ["b", "a", "<eos>", "c", "d"]);
    assert_eq!(&*appearance.splits["train"].units, [0, 1, 0, 2, 3, 1, 2]);
    assert_eq!(&*appearance.splits["valid"].units, [1, 2, 4, 0, 2]);
    assert_eq!(appearance.units.text(&appearance.splits["train"].units), "b a b\nc a\n");
    let unknown_size = data(&reader, WORDS, "size = 0, order = 'appearance', of = 'training'");
    assert_eq!(own_units(&unknown_size, folder.path()).unwrap(), 5, "of all splits");
    // <eos> four times, a and b three times, c and d once.
    assert_eq!(names(&of("size = 5, order = 'frequency', of = 'all'")), ["<eos>", "a", "b", "c", "d"]);
    assert_eq!(names(&of("size = 5, order = 'sorted', of = 'all'")), ["<eos>", "a", "b", "c", "d"]);
}

#[test]
fn a_word_that_is_not_in_training_is_an_error_or_the_unknown_word() {
    let (folder, reader) = files(&[("train", "a <unk>\nb\n"), ("valid", "a\nd b\n")]);
    let prepare = |unit: &str, size: u32| {
        let vocabulary = format!("size = {size}, order = 'appearance', of = 'training'");
        prepare_language(&data(&reader, unit, &vocabulary), None, folder.path())
    };
    let error = prepare(WORDS, 4).unwrap_err().to_string();
    assert!(error.starts_with("line 2 of the split valid has \"d\""), "{error}");
    let unknown = prepare(&format!("{WORDS}, unknown = '<unk>'"), 4).unwrap();
    assert_eq!(&*unknown.splits["valid"].units, [0, 2, 1, 3, 2]);
    let error = prepare(&format!("{WORDS}, unknown = 'd'"), 4).unwrap_err().to_string();
    assert!(error.contains("does not have the word \"d\""), "{error}");
    let error = prepare(WORDS, 5).unwrap_err().to_string();
    assert!(error.contains("has 4 different units, `data.vocabulary.size` is 5"), "{error}");
}

#[test]
fn characters_keep_line_feeds_and_a_text_is_cut_by_characters() {
    let (folder, reader) = files(&[("text", "é\nab\ncé\n")]);
    let reader = format!("{reader}, training_share = 0.63");
    let mut data = data(&reader, "kind = 'character'", "size = 5, order = 'sorted', of = 'all'");
    let prepared = prepare_language(&data, None, folder.path()).unwrap();
    // Sorted: line feed, a, b, c, é. 0.63 of 8 characters are 5.
    assert_eq!(&*prepared.splits["train"].units, [4, 0, 1, 2, 0]);
    assert_eq!(&*prepared.splits["valid"].units, [3, 4, 0]);
    assert_eq!(prepared.units.text(&[3, 4, 0]), "cé\n");
    assert_eq!(prepared.units.end_of_line(), Some(0));
    // The set must have two lines and has one.
    let error = prepared.eval_set("valid", &data).unwrap_err().to_string();
    assert!(error.contains("has 1 lines, the recipe says 2"), "{error}");
    data.eval.get_mut("valid").unwrap().lines = 1;
    prepared.eval_set("valid", &data).unwrap();
    // A share is of lines; the vocabulary stays that of the whole text.
    data.share = Some(ShareSpec { train: 1, eval: 1 });
    let prepared = prepare_language(&data, None, folder.path()).unwrap();
    assert_eq!((&*prepared.splits["train"].units, prepared.units.len()), (&[4, 0][..], 5));
}

fn text(units: u32) -> Arc<[u32]> {
    (0..units).collect()
}

#[test]
fn contiguous_windows_cover_every_part_once() {
    // Two parts of 7; 6 predictions each, in windows of 4 and 2.
    let windows = Contiguous::new("train", &text(15), [2, 4], LastWindow::Short).unwrap();
    assert_eq!((windows.len(), windows.units()), (2, 14));
    let first = windows.batch(0);
    assert_eq!(first.inputs, [0, 1, 2, 3, 7, 8, 9, 10]);
    assert_eq!(first.targets, [1, 2, 3, 4, 8, 9, 10, 11]);
    assert_eq!((first.rows, first.steps(), first.begins), (2, 4, true));
    let last = windows.batch(1);
    assert_eq!((last.inputs.as_slice(), last.targets.as_slice()), (&[4, 5, 11, 12][..], &[5, 6, 12, 13][..]));
    assert!(!last.begins);
    let dropped = Contiguous::new("train", &text(15), [2, 4], LastWindow::Drop).unwrap();
    assert_eq!(dropped.len(), 1);
    let error = Contiguous::new("train", &text(9), [2, 4], LastWindow::Drop).unwrap_err().to_string();
    assert!(error.starts_with("train has 9 units, too few for 2 rows of 4"), "{error}");
    assert!(Contiguous::new("train", &text(9), [2, 4], LastWindow::Short).is_ok());
    assert!(Contiguous::new("train", &text(3), [2, 4], LastWindow::Short).is_err());
}

#[test]
fn scattered_windows_are_a_function_of_seed_and_index_and_reach_both_ends() {
    let of = |training, seed| Scattered::new("train", &text(10), [4, 3], training, seed).unwrap();
    let windows = of(true, 1);
    assert_eq!(windows.batch(5), windows.batch(5));
    assert_ne!(windows.batch(5), windows.batch(6));
    assert_ne!(windows.batch(5), of(true, 2).batch(5));
    assert_ne!(windows.batch(5), of(false, 1).batch(5));
    let starts: std::collections::BTreeSet<u32> =
        (0..50).flat_map(|index| windows.batch(index).inputs.into_iter().step_by(3)).collect();
    // The last window of ten units has the inputs 6 to 8 and the target 9.
    assert_eq!(starts, (0..=6).collect());
    let batch = windows.batch(0);
    assert!(batch.begins && batch.inputs.iter().zip(&batch.targets).all(|(x, y)| x + 1 == *y));
    assert!(Scattered::new("train", &text(3), [4, 3], true, 1).is_err());
}

#[test]
fn an_evaluation_reads_all_units_once_and_says_what_is_given() {
    let (folder, reader) = files(&[("train", "a b c d e f g h\n"), ("valid", "a b c d\ne f g\n")]);
    let mut data = data(&reader, WORDS, "size = 9, order = 'appearance', of = 'all'");
    let prepared = prepare_language(&data, None, folder.path()).unwrap();
    let counts = |data: &LanguageDataSpec| {
        let batches = prepared.evaluation("valid", data).unwrap();
        batches.map(|(batch, given)| (batch.targets.len(), given)).collect::<Vec<_>>()
    };
    // Nine units, eight of them predicted.
    assert_eq!(counts(&data), [(4, 0), (4, 0)]);
    let text =
        "{ kind = 'contiguous', rows = 2, steps = 2, last = 'short', state = 'carried', divisor = 'all' }";
    #[derive(serde::Deserialize)]
    struct Windows {
        windows: zoo_recipes::tasks::language_modelling::EvaluationWindowsSpec,
    }
    let Windows { windows } = toml::from_str(&format!("windows = {text}")).unwrap();
    data.eval.get_mut("valid").unwrap().windows = windows;
    // Two parts of four, of which three are predicted.
    assert_eq!(counts(&data), [(4, 2), (2, 0)]);
}

#[test]
fn training_batches_are_the_same_ahead_and_from_any_place() {
    let (folder, reader) = files(&[("train", "a b c d e f g h i j\n"), ("valid", "a\nb\n")]);
    let mut data = data(&reader, WORDS, "size = 11, order = 'appearance', of = 'all'");
    for batching in [
        "kind = 'contiguous', rows = 2, steps = 2, last = 'short', state = 'carried'",
        "kind = 'random', rows = 2, steps = 3, batches = 4",
    ] {
        data.batching = toml::from_str(&batching.replace(", ", "\n")).unwrap();
        let prepared = prepare_language(&data, None, folder.path()).unwrap();
        let training = TrainingWindows::new(&prepared, &data, 3).unwrap();
        let per_epoch = training.per_epoch();
        let ahead: Vec<WindowBatch> = training.ahead(1, 1, |_| true).map(Result::unwrap).collect();
        let one_by_one: Vec<WindowBatch> = (1..per_epoch).map(|index| training.batch(1, index)).collect();
        assert_eq!(ahead, one_by_one);
        assert!(per_epoch >= 2);
    }
    let training = TrainingWindows::new(&prepare_language(&data, None, folder.path()).unwrap(), &data, 3);
    let training = training.unwrap();
    assert_ne!(training.batch(0, 0), training.batch(1, 0), "random windows are new in each epoch");
}

#[test]
fn babble_is_a_function_of_its_seed_and_has_all_its_words() {
    let reader =
        |seed| format!("kind = 'babble', words = 30, train = 200, valid = 2, test = 9, seed = {seed}");
    let of = |seed| {
        let data = data(&reader(seed), WORDS, "size = 31, order = 'appearance', of = 'training'");
        prepare_language(&data, None, Path::new("")).unwrap()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).splits["train"], of(2).splits["train"]);
    let prepared = of(1);
    assert_eq!((prepared.splits["train"].lines, prepared.splits["valid"].lines), (200, 2));
    // Pairs of the chain are much more frequent than others.
    let end = prepared.units.end_of_line().unwrap();
    let mut pairs = std::collections::BTreeMap::<(u32, u32), u32>::new();
    for pair in prepared.splits["train"].units.windows(2).filter(|pair| !pair.contains(&end)) {
        *pairs.entry((pair[0], pair[1])).or_default() += 1;
    }
    let mut counts: Vec<u32> = pairs.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let likely: u32 = counts.iter().take(60).sum();
    let all: u32 = counts.iter().sum();
    assert!(f64::from(likely) > 0.8 * f64::from(all), "{likely} of {all}");
}

#[test]
fn rare_words_are_the_unknown_word_and_openseq2seq_does_not_count_the_first_line() {
    let train = "rare a\na-b a b\n\nb a x\nb a\n";
    let (folder, reader) = files(&[("train", train), ("valid", "a x\nrare-b\n")]);
    let words = format!("{WORDS}, unknown = '<unk>', rules = 'openseq2seq'");
    let of = |vocabulary: &str| {
        let data = data(&reader, &words, &format!("{vocabulary}, of = 'training', least_count = 2"));
        prepare_language(&data, None, folder.path())
    };
    let names = |prepared: &PreparedLanguage| {
        (0..prepared.units.len() as u32).map(|id| prepared.units.name(id).to_owned()).collect::<Vec<_>>()
    };
    // Without the first line: a, b and <eos> four times each, a first; the hyphen and x once.
    let prepared = of("size = 4, order = 'openseq2seq'").unwrap();
    assert_eq!(names(&prepared), ["<unk>", "a", "b", "<eos>"]);
    assert_eq!(prepared.splits["train"].units[..8], [0, 1, 3, 1, 0, 2, 1, 2]);
    assert_eq!(&*prepared.splits["valid"].units, [1, 0, 3, 0, 0, 2, 3]);
    let error = of("size = 9, order = 'openseq2seq'").unwrap_err().to_string();
    assert!(error.contains("has 4 different units, `data.vocabulary.size` is 9"), "{error}");
    let estimated = of("size = 9, estimated = true, order = 'openseq2seq'").unwrap();
    assert_eq!(estimated, prepared);
    // In the other orders every line counts.
    let error = of("size = 3, order = 'frequency'").unwrap_err().to_string();
    assert!(error.contains("does not have the word \"<unk>\""), "{error}");
}

#[test]
fn an_unknown_word_that_the_text_has_often_enough_is_written_twice_by_openseq2seq() {
    let (folder, reader) = files(&[("train", "\n<unk> a a\n<unk> a\n"), ("valid", "x\n<unk>\n")]);
    let words = format!("{WORDS}, unknown = '<unk>'");
    let vocabulary = "size = 3, order = 'openseq2seq', of = 'training', least_count = 3";
    let prepared = prepare_language(&data(&reader, &words, vocabulary), None, folder.path()).unwrap();
    // Once by itself and twice in the text, like the a's; <eos> only twice.
    let names: Vec<&str> = (0..3).map(|id| prepared.units.name(id)).collect();
    assert_eq!(names, ["<unk>", "<unk>", "a"]);
    assert_eq!(&*prepared.splits["valid"].units, [1, 1, 1, 1]);
}

#[test]
fn chunks_of_a_recipe_are_new_in_each_epoch_and_the_same_in_each_evaluation() {
    let lines: String = (0..60).map(|i| format!("a b c d {i}\n")).collect();
    let (folder, reader) = files(&[("train", &lines), ("valid", "a b c d\na b c d\n")]);
    let mut data = data(&reader, WORDS, "size = 65, order = 'appearance', of = 'all'");
    data.batching = toml::from_str("kind = 'chunks'\nrows = 5\nsteps = 8\nshuffled = true").unwrap();
    #[derive(serde::Deserialize)]
    struct Windows {
        windows: zoo_recipes::tasks::language_modelling::EvaluationWindowsSpec,
    }
    let Windows { windows } =
        toml::from_str("windows = { kind = 'chunks', rows = 4, steps = 2, first_units = 9 }").unwrap();
    data.eval.get_mut("valid").unwrap().windows = windows;
    let prepared = prepare_language(&data, None, folder.path()).unwrap();
    let training = TrainingWindows::new(&prepared, &data, 3).unwrap();
    // 360 units are 45 windows.
    assert_eq!(training.per_epoch(), 9);
    assert_ne!(training.batch(0, 0), training.batch(1, 0));
    let ahead: Vec<WindowBatch> = training.ahead(1, 7, |_| true).map(Result::unwrap).collect();
    assert_eq!(ahead, [training.batch(1, 7), training.batch(1, 8)]);
    let batches: Vec<_> = prepared.evaluation("valid", &data).unwrap().collect();
    assert_eq!(batches.len(), 1);
    assert_eq!((batches[0].0.rows, batches[0].1), (4, 0));
}

#[test]
fn kept_units_read_and_write_a_text_as_before() {
    let (root, reader) = files(&[("train", "\n<unk> a a\n<unk> a\n"), ("valid", "a\n<unk>\n")]);
    let word = format!("{WORDS}, unknown = '<unk>'");
    for (unit, vocabulary) in [
        (word.as_str(), "size = 3, order = 'appearance', of = 'all'"),
        // <unk> has the numbers 0 and 1, and 1 is used.
        (&word, "size = 3, order = 'openseq2seq', of = 'training', least_count = 3"),
        // The line feed is a unit.
        ("kind = 'character'", "size = 8, order = 'sorted', of = 'all'"),
    ] {
        let data = data(&reader, unit, vocabulary);
        let read = prepare_language(&data, None, root.path()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(PreparedLanguage::kept(&data, folder.path()).unwrap(), None, "nothing was kept");
        read.keep(folder.path()).unwrap();
        let kept = PreparedLanguage::kept(&data, folder.path()).unwrap().unwrap();
        assert!(kept.units == read.units && kept.splits.is_empty(), "{vocabulary}");
        assert_eq!(
            kept.units.numbers("text", "a <unk>\n").unwrap(),
            read.units.numbers("text", "a <unk>\n").unwrap()
        );
        let file = folder.path().join("kept.json");
        let json = std::fs::read_to_string(&file).unwrap();
        assert!(json.contains("\"a\""), "{json}");
        for (content, due) in [(json.replace("\"a\"", "\"b\""), "it was changed"), ("{".to_owned(), "EOF")] {
            std::fs::write(&file, content).unwrap();
            let error = PreparedLanguage::kept(&data, folder.path()).unwrap_err().to_string();
            assert!(error.contains("kept.json: ") && error.contains(due), "{error}");
        }
    }
}

#[test]
fn a_list_numbers_the_words_and_lacks_none_that_the_recipe_names() {
    let texts =
        [("train", "a b\nc a\n"), ("valid", "d a\n\n"), ("vocabulary", "<S> 9\na 5\n<UNK> 3\na 2\nb 1\n")];
    let unit = "kind = 'word', end_of_line = '<S>', unknown = '<UNK>'";
    let of = |texts: &[(&str, &str)], size: u32| {
        let (folder, reader) = files(texts);
        let data = data(&reader, unit, &format!("size = {size}, order = 'appearance', of = 'list'"));
        prepare_language(&data, None, folder.path())
    };
    let prepared = of(&texts, 4).unwrap();
    assert_eq!(&*prepared.splits["train"].units, [1, 3, 0, 2, 1, 0]);
    assert_eq!(&*prepared.splits["valid"].units, [2, 1, 0, 0]);
    assert_eq!(prepared.splits.len(), 2, "the list is not a split");
    let error = of(&texts, 5).unwrap_err().to_string();
    assert!(error.contains("has 4 different units") && error.contains("hint:"), "{error}");
    let without = [texts[0], texts[1], ("vocabulary", "a\n<UNK>\nb\nc\n")];
    let error = of(&without, 4).unwrap_err().to_string();
    assert!(error.contains("does not have the word \"<S>\""), "{error}");
    assert!(of(&texts[..2], 4).unwrap_err().to_string().contains("vocabulary"));
}

#[test]
fn sentences_train_and_evaluate_with_the_end_of_lines() {
    let (folder, reader) = files(&[("train", "a b\nc\na c b\n"), ("valid", "a b\nc\n")]);
    let mut data = data(&reader, WORDS, "size = 4, order = 'appearance', of = 'training'");
    #[derive(serde::Deserialize)]
    struct Windows {
        training: zoo_recipes::tasks::language_modelling::TrainingWindowsSpec,
        valid: zoo_recipes::tasks::language_modelling::EvaluationWindowsSpec,
    }
    let Windows { training, valid } = toml::from_str(
        "training = { kind = 'sentences', rows = 2, steps = 2 }
        valid = { kind = 'sentences', rows = 2, steps = 2 }",
    )
    .unwrap();
    data.batching = training;
    data.eval.get_mut("valid").unwrap().windows = valid;
    let prepared = prepare_language(&data, None, folder.path()).unwrap();
    // Nine units, four in a batch.
    let windows = TrainingWindows::new(&prepared, &data, 1).unwrap();
    assert_eq!(windows.per_epoch(), 2);
    assert!(windows.batch(0, 0).begins && !windows.batch(1, 0).begins, "the state goes on");
    let ahead: Vec<WindowBatch> = windows.ahead(1, 0, |_| true).map(Result::unwrap).collect();
    assert_eq!(ahead, [windows.batch(1, 0), windows.batch(1, 1)]);
    // a b <eos> and c <eos>: the first row has a third unit.
    let batches: Vec<_> = prepared.evaluation("valid", &data).unwrap().collect();
    let counts = |batch: &WindowBatch| batch.targets.iter().filter(|unit| **unit != NO_TARGET).count();
    assert_eq!(
        batches.iter().map(|(batch, given)| (counts(batch), *given)).collect::<Vec<_>>(),
        [(4, 0), (1, 0)]
    );
}
