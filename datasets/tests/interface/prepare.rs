//! Preparing and caching of translation data, through the public interface.

use std::collections::BTreeMap;
use std::path::Path;

use zoo_datasets::batches::PairSource;
use zoo_datasets::readers::SplitText;
use zoo_datasets::tasks::translation::prepare::{
    PrepareError, PrepareOptions, PreparedTranslation, prepare_cached,
};
use zoo_datasets::tasks::translation::{TRAIN, read_splits};
use zoo_datasets::text::vocabulary::Vocabulary;
use zoo_recipes::ShareSpec;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec, TooLong};

fn spec(tokenizer: &str, filter: &str, eval: &str) -> TextDataSpec {
    let text = format!(
        r#"{{
            "reader": {{"kind": "parallel-text", "source": "en", "target": "de"}},
            "tokenizer": {tokenizer},
            "filter": {filter},
            "batching": {{"kind": "sentences", "sentences": 2}},
            "eval": {eval}
        }}"#
    );
    serde_json::from_str(&text).unwrap()
}

const WORDS: &str = r#"{"kind": "words", "specials": "fairseq"}"#;
const BPE: &str = r#"{"kind": "subword-nmt", "merges": 12, "joined_dictionary": true, "specials": "fairseq",
    "pad_vocabulary_to": 8, "normalize": ["lowercase", "moses-punctuation", "moses-tokenize"]}"#;
const EVAL: &str = r#"{"valid": {"split": "dev", "lines": 2, "reference_tokens": 5}}"#;

fn text(pairs: &[(&str, &str)]) -> SplitText {
    let (source, target) = pairs.iter().map(|(s, t)| (s.to_string(), t.to_string())).unzip();
    SplitText { source, target, skipped_empty: 0 }
}

/// Prepares in a folder that is removed afterwards.
fn prepare(
    data: &TextDataSpec,
    splits: &BTreeMap<String, SplitText>,
    options: PrepareOptions,
) -> Result<PreparedTranslation, PrepareError> {
    let temporary = tempfile::tempdir().unwrap();
    prepare_cached(&temporary.path().join("prepared"), data, options, || Ok(splits.clone()))
}

fn splits() -> BTreeMap<String, SplitText> {
    let mut train = text(&[
        ("The house is old.", "Das Haus ist alt."),
        ("The old mouse", "Die alte Maus"),
        ("A mouse, a house, a mouse's house", "Eine Maus, ein Haus, das Haus einer Maus"),
    ]);
    train.skipped_empty = 1;
    let dev = text(&[("the house of a zebra", "Das \"Haus\"."), ("", "")]);
    [(TRAIN.to_string(), train), ("dev".to_string(), dev)].into()
}

fn prepared(data: &TextDataSpec) -> Result<PreparedTranslation, PrepareError> {
    prepare(data, &splits(), PrepareOptions::default())
}

fn sequences(prepared: &PreparedTranslation, split: &str) -> Vec<(Vec<u32>, Vec<u32>)> {
    let split = &prepared.splits[split];
    (0..split.len() as u32).map(|i| (split.pair(i).0.to_vec(), split.pair(i).1.to_vec())).collect()
}

/// Pairs are filtered per language. The words of a source line count once, for the first language
/// that has it.
#[test]
fn several_target_languages_have_pairs_of_their_own_and_one_vocabulary() {
    let eval = r#"{"valid": {"split": "dev", "lines": 1}, "test_fr": {"split": "dev", "target": "fr", "lines": 1, "reference_tokens": 2}}"#;
    let mut data = spec(WORDS, r#"{"max_target_tokens": 3}"#, eval);
    let TextReaderSpec::ParallelText { further_targets, .. } = &mut data.reader else { unreachable!() };
    further_targets.push("fr".into());
    let texts: BTreeMap<String, SplitText> = [
        ("train", text(&[("a b", "A B"), ("c", "C C C C")])),
        ("train@fr", text(&[("a b", "x"), ("c", "y"), ("d", "z")])),
        ("dev", text(&[("a", "A")])),
        ("dev@fr", text(&[("a", "x y")])),
    ]
    .map(|(name, text)| (name.to_string(), text))
    .into();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("p");
    let made =
        prepare_cached::<PrepareError>(&folder, &data, PrepareOptions::default(), || Ok(texts)).unwrap();
    let vocabulary = &made.pipeline.source;
    let counts = ["a", "c", "d", "C", "x"].map(|word| vocabulary.count(vocabulary.id(word)));
    assert_eq!(counts, [1, 1, 1, 4, 1]);
    assert_eq!((made.targets.clone(), made.train().unwrap().len()), (vec!["de".into(), "fr".into()], 2));
    let pairs = |split: &str| sequences(&made, split).len();
    assert_eq!((pairs("train"), pairs("train@fr")), (1, 3), "the long pair is left out in German alone");
    let train = made.train().unwrap();
    assert_eq!(made.undo(train[1].pair(1).1), "y");
    assert_eq!(made.undo(train[1].pair(2).1), "z");
    assert_eq!(made.eval_sets("valid", &data.eval["valid"]).unwrap().len(), 2);
    let french = made.eval_set("test_fr", &data.eval["test_fr"]).unwrap();
    assert_eq!((french.target, french.references), (1, &["x y".to_string()][..]));
    let error = made.eval_set("valid", &data.eval["valid"]).unwrap_err().to_string();
    assert!(error.contains("it is in de, fr together"), "{error}");
    let again = reloaded(&folder, &data).unwrap();
    assert_eq!(sequences(&again, "train@fr"), sequences(&made, "train@fr"));
    let mut longer = data.eval["valid"].clone();
    longer.lines = 2;
    let error = made.eval_sets("valid", &longer).unwrap_err().to_string();
    assert!(error.contains("`dev` has 1 lines"), "{error}");
}

#[test]
fn the_reversal_task_has_14_rows_ends_in_end_tokens_and_is_undone() {
    let data: TextDataSpec = serde_json::from_str(
        r#"{
            "reader": {"kind": "reversal", "symbols": 10, "min_length": 5, "max_length": 50,
                       "train": 500, "valid": 20, "test": 30, "seed": 1},
            "tokenizer": {"kind": "words", "specials": "openseq2seq"},
            "filter": {"max_source_tokens": 56, "max_target_tokens": 56, "too_long": "truncate"},
            "batching": {"kind": "sentences", "sentences": 64},
            "eval": {"valid": {"split": "valid", "lines": 20}, "test": {"split": "test", "lines": 30}}
        }"#,
    )
    .unwrap();
    let texts = read_splits(&data, Path::new("."), None).unwrap();
    let prepared = prepare(&data, &texts, PrepareOptions::default()).unwrap();
    assert_eq!(prepared.pipeline.source.len(), 14);
    assert!(prepared.pipeline.joined());
    for name in ["train", "valid", "test"] {
        for (index, (source, target)) in sequences(&prepared, name).into_iter().enumerate() {
            let (end, letters) = source.split_last().unwrap();
            assert_eq!(*end, 1);
            let reversed: Vec<u32> = letters.iter().rev().copied().chain([1]).collect();
            assert_eq!(reversed, target);
            assert_eq!(prepared.undo(&target), texts[name].target[index]);
        }
    }
    assert_eq!(prepared.train().unwrap()[0].statistics.pairs, 500);
    let test = prepared.eval_set("test", &data.eval["test"]).unwrap();
    assert_eq!(test.references, texts["test"].target);
}

#[test]
fn references_are_normalised_and_hypotheses_come_back_as_such_text() {
    let data = spec(BPE, "{}", EVAL);
    let prepared = prepared(&data).unwrap();
    let dev = prepared.eval_set("valid", &data.eval["valid"]).unwrap();
    assert_eq!(dev.references, ["das &quot; haus &quot; .", ""]);
    assert_eq!(dev.split.references.as_ref().unwrap().raw, ["Das \"Haus\".", ""]);
    assert_eq!(prepared.pipeline.source.len() % 8, 0);
    let train = prepared.train().unwrap()[0];
    assert_eq!(prepared.undo(train.pair(0).1), "das haus ist alt .");
    assert_eq!(prepared.pipeline.encode_source("The house is old."), train.pair(0).0);
    assert_eq!(
        (train.statistics.pairs_read, train.statistics.skipped_empty, train.statistics.pairs),
        (4, 1, 3)
    );
}

#[test]
fn text_in_subwords_is_joined_before_it_is_scored_and_its_rarest_parts_are_unknown() {
    let tokenizer = r#"{"kind": "words", "specials": "fairseq", "subwords": true, "max_vocabulary": 8}"#;
    let data = spec(tokenizer, "{}", r#"{"valid": {"split": "dev", "lines": 2}}"#);
    let train = text(&[("das Haus", "das Ha@@ us"), ("das Ha@@ us", "das H@@ aus"), ("us das", "Ha@@ Haus")]);
    let dev = text(&[("Haus", "das Ha@@ us"), ("us", "aus@@ ")]);
    let splits = [(TRAIN.to_string(), train), ("dev".to_string(), dev)].into();
    let prepared = prepare(&data, &splits, PrepareOptions::default()).unwrap();
    // das 4, Ha@@ 3, us 3, Haus 2. H@@ and aus occur once each and have no row.
    assert_eq!(prepared.pipeline.source.len(), 8);
    let ids = prepared.pipeline.target.ids("das Ha@@ us H@@ aus");
    assert_eq!(ids, [4, 5, 6, 3, 3]);
    assert_eq!(prepared.undo(&ids[..3]), "das Haus");
    let valid = prepared.eval_set("valid", &data.eval["valid"]).unwrap();
    assert_eq!(valid.references, ["das Haus", "aus"]);
}

#[test]
fn evaluation_pairs_are_never_filtered_and_their_unknown_tokens_are_counted() {
    let filter = r#"{"max_source_tokens": 4, "max_target_tokens": 4}"#;
    let data = spec(WORDS, filter, r#"{"valid": {"split": "dev", "lines": 2}}"#);
    let prepared = prepared(&data).unwrap();
    let dev = &prepared.splits["dev"];
    assert_eq!(
        (dev.statistics.pairs, dev.statistics.dropped_too_long, dev.statistics.longest_source),
        (2, 0, 6)
    );
    // Of "the house of a zebra" only "house" and "a" are known; `end` is 2, `unknown` 3.
    assert_eq!(dev.statistics.source_unknown, 3);
    assert_eq!(dev.pair(1), (&[2][..], &[2][..]));
}

#[test]
fn pairs_that_are_too_long_are_dropped_or_cut_so_that_special_tokens_fit() {
    let eval = r#"{"valid": {"split": "dev", "lines": 2}}"#;
    let limits =
        |kind: &str| format!(r#"{{"max_source_tokens": 4, "max_target_tokens": 5, "too_long": "{kind}"}}"#);
    let dropped = prepared(&spec(WORDS, &limits("drop"), eval)).unwrap();
    let train = dropped.train().unwrap()[0];
    // Three words and the end token fit, four do not.
    assert_eq!((train.lines.as_slice(), train.statistics.dropped_too_long), (&[1][..], 2));

    let mut data = spec(WORDS, &limits("truncate"), eval);
    data.begin_token_in_source = true;
    let cut = prepare(&data, &splits(), PrepareOptions { begin_token_in_target: true }).unwrap();
    let train = cut.train().unwrap()[0];
    assert_eq!((train.statistics.truncated_source, train.statistics.truncated_target), (3, 2));
    for (source, target) in sequences(&cut, TRAIN) {
        assert_eq!((source.len(), target.len()), (4, 5));
        assert_eq!((source[0], source[3], target[0], target[4]), (0, 2, 0, 2));
    }
    assert_eq!(cut.undo(train.pair(2).1), "Eine Maus, ein");

    // The decoder starts from the begin token, so there is room for one less.
    let cut = prepare(&data, &splits(), PrepareOptions::default()).unwrap();
    let train = cut.train().unwrap()[0];
    assert_eq!(sequences(&cut, TRAIN).iter().map(|(_, target)| target.len()).max(), Some(4));
    assert_eq!(cut.undo(train.pair(2).1), "Eine Maus, ein");
    data.filter.too_long = TooLong::Drop;
    (data.filter.max_source_tokens, data.filter.max_target_tokens) = (None, Some(4));
    let kept = |data: &TextDataSpec| {
        prepare(data, &splits(), PrepareOptions::default()).map(|made| made.train().unwrap()[0].lines.clone())
    };
    assert!(kept(&data).is_err(), "three words, the begin and the end token are five");
    data.filter.max_target_tokens = Some(5);
    assert_eq!(kept(&data).unwrap(), [1]);
    data.begin_token_in_source = false;
    data.filter.max_target_tokens = Some(4);
    assert_eq!(kept(&data).unwrap(), [1]);
}

#[test]
fn pairs_of_unequal_sides_are_left_out() {
    let eval = r#"{"valid": {"split": "dev", "lines": 2}}"#;
    let mut splits = splits();
    let train = [("a b", "x y z"), ("a b c", "x y"), ("a b", "x y z w"), ("a b c d", "x y")];
    splits.insert(TRAIN.into(), text(&train));
    let data = spec(WORDS, r#"{"max_ratio": 1.5}"#, eval);
    let made = prepare(&data, &splits, PrepareOptions::default()).unwrap();
    let train = made.train().unwrap()[0];
    // Without special tokens, 3 to 2 is a ratio of 1.5; 4 to 2 is more.
    assert_eq!((train.lines.as_slice(), train.statistics.dropped_unequal), (&[0, 1][..], 2));
}

#[test]
fn dictionaries_are_joined_or_not_as_the_recipe_says() {
    let eval = r#"{"valid": {"split": "dev", "lines": 2}}"#;
    let joined = prepared(&spec(BPE, "{}", eval)).unwrap();
    let apart = prepared(&spec(&BPE.replace("true", "false"), "{}", eval)).unwrap();
    assert!(joined.pipeline.joined() && !apart.pipeline.joined());
    assert_eq!(joined.pipeline.codes, apart.pipeline.codes, "merges are learnt on both sides either way");
    assert_ne!(apart.pipeline.source.fingerprint(), apart.pipeline.target.fingerprint());
    assert!(apart.pipeline.source.len() < joined.pipeline.source.len());
}

/// Four special tokens and the given number of words; other words are unknown. Both vocabularies
/// are reloaded from their folder.
#[test]
fn words_have_a_vocabulary_a_side_where_they_are_not_joint() {
    let tokenizer = r#"{"kind": "words", "specials": "fairseq", "joint": false, "max_vocabulary": 7,
        "max_target_vocabulary": 6, "normalize": ["lowercase"]}"#;
    let data = spec(tokenizer, "{}", r#"{"valid": {"split": "dev", "lines": 2}}"#);
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("p");
    let made = cached(&folder, &data).unwrap();
    for prepared in [&made, &reloaded(&folder, &data).unwrap()] {
        let (source, target) = (&prepared.pipeline.source, &prepared.pipeline.target);
        assert_eq!((source.len(), target.len()), (7, 6));
        let unknown = source.specials().unknown;
        let known = |word: &str| (source.id(word) != unknown, target.id(word) != unknown);
        assert_eq!(
            [known("house"), known("haus"), known("alte")],
            [(true, false), (false, true), (false, false)]
        );
    }
    let one = spec(WORDS, "{}", r#"{"valid": {"split": "dev", "lines": 2}}"#);
    let one = prepared(&one).unwrap();
    assert_eq!(one.pipeline.source.id("Haus"), one.pipeline.target.id("Haus"));
}

#[test]
fn rare_words_are_left_out_of_each_side_by_their_count() {
    let tokenizer = r#"{"kind": "words", "specials": "fairseq", "joint": false, "min_count": 2}"#;
    let all = tokenizer.replace(r#", "min_count": 2"#, "");
    let eval = r#"{"valid": {"split": "dev", "lines": 2}}"#;
    let (few, all) =
        (prepared(&spec(tokenizer, "{}", eval)).unwrap(), prepared(&spec(&all, "{}", eval)).unwrap());
    for (few, all) in
        [(&few.pipeline.source, &all.pipeline.source), (&few.pipeline.target, &all.pipeline.target)]
    {
        let words = |known: &Vocabulary| {
            (4..known.len() as u32)
                .map(|id| (known.symbol(id).to_owned(), known.count(id)))
                .collect::<Vec<_>>()
        };
        let mut due = words(all);
        assert!(due.iter().any(|(_, count)| *count < 2), "{due:?}");
        due.retain(|(_, count)| *count >= 2);
        assert!(!due.is_empty());
        assert_eq!(words(few), due);
    }
}

#[test]
fn an_evaluation_set_that_is_not_the_one_meant_is_refused() {
    let message = |eval: &str| prepared(&spec(BPE, "{}", eval)).unwrap_err().to_string();
    let lines = message(r#"{"valid": {"split": "dev", "lines": 3}}"#);
    assert!(
        lines.contains("data.eval.valid") && lines.contains("2 lines") && lines.contains("says 3"),
        "{lines}"
    );
    let tokens = message(r#"{"valid": {"split": "dev", "lines": 2, "reference_tokens": 6}}"#);
    assert!(tokens.contains("5 reference tokens") && tokens.contains("says 6"), "{tokens}");
    let split = message(r#"{"valid": {"split": "test", "lines": 2}}"#);
    assert!(split.contains("no split `test`") && split.contains("`dev`, `train`"), "{split}");
}

#[test]
fn what_cannot_be_prepared_is_an_error_with_a_hint() {
    let pieces = |n: u32, rest: &str| {
        format!(
            r#"{{"kind": "sentence-piece", "pieces": {n}, "joint": true, "specials": "openseq2seq"{rest}}}"#
        )
    };
    let error = prepared(&spec(&pieces(8, ""), "{}", "{}")).unwrap_err().to_string();
    assert!(error.contains("do not fit into 8 pieces") && error.contains("hint:"), "{error}");
    let error = prepared(&spec(&pieces(5000, ""), "{}", "{}")).unwrap_err().to_string();
    assert!(error.contains("not the 5000 asked for") && error.contains("hint:"), "{error}");
    let error =
        prepared(&spec(&pieces(50, r#", "model": "no/such.model""#), "{}", "{}")).unwrap_err().to_string();
    assert!(error.contains("no/such.model") && error.contains("hint:"), "{error}");
    let error = prepared(&spec(WORDS, r#"{"max_source_tokens": 1}"#, "{}")).unwrap_err().to_string();
    assert!(error.contains("0 of 4 training examples are left"), "{error}");
    let mut uneven = splits();
    uneven.get_mut("dev").unwrap().source.pop();
    let error =
        prepare(&spec(WORDS, "{}", "{}"), &uneven, PrepareOptions::default()).unwrap_err().to_string();
    assert!(error.contains("1 source and 2 target lines"), "{error}");
}

fn cached(folder: &Path, data: &TextDataSpec) -> Result<PreparedTranslation, PrepareError> {
    prepare_cached(folder, data, PrepareOptions::default(), || Ok(splits()))
}

fn reloaded(folder: &Path, data: &TextDataSpec) -> Result<PreparedTranslation, PrepareError> {
    prepare_cached(folder, data, PrepareOptions::default(), || panic!("the text is not read again"))
}

#[test]
fn prepared_data_comes_back_from_its_folder_as_it_was() {
    let pieces = r#"{"kind": "sentence-piece", "pieces": 40, "joint": true, "specials": "openseq2seq"}"#;
    for data in [
        spec(BPE, "{}", EVAL),
        spec(&BPE.replace("true", "false"), "{}", EVAL),
        spec(WORDS, "{}", "{}"),
        spec(pieces, "{}", "{}"),
        spec(&pieces.replace("true", "false").replace("40", "31"), "{}", "{}"),
        // A share of the text may give fewer pieces, which is accepted.
        TextDataSpec {
            share: Some(ShareSpec { train: 9, eval: 9 }),
            ..spec(&pieces.replace("40", "5000"), "{}", "{}")
        },
    ] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        let first = cached(&folder, &data).unwrap();
        let second = reloaded(&folder, &data).unwrap();
        assert_eq!(first.splits, second.splits);
        assert_eq!(first.pipeline.codes, second.pipeline.codes);
        assert_eq!(first.pipeline.source, second.pipeline.source);
        assert_eq!(first.pipeline.target, second.pipeline.target);
        assert_eq!(first.pipeline.joined(), second.pipeline.joined());
        assert_eq!(
            first.undo(first.train().unwrap()[0].pair(0).1),
            second.undo(second.train().unwrap()[0].pair(0).1)
        );
        let line = "The mouse's \"house\"";
        assert_eq!(first.pipeline.encode_source(line), second.pipeline.encode_source(line));
        assert_eq!(std::fs::read_dir(home.path().join("a")).unwrap().count(), 1, "nothing temporary is left");
    }
}

#[test]
fn a_flipped_byte_in_any_file_is_found_and_the_file_named() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("prepared");
    let data = spec(BPE, "{}", EVAL);
    cached(&folder, &data).unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        for at in [0, whole.len() / 2, whole.len() - 2] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&path, flipped).unwrap();
            let error = reloaded(&folder, &data).unwrap_err().to_string();
            assert!(error.contains(&name) && error.contains("hint:"), "{name} at {at}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(reloaded(&folder, &data).unwrap_err().to_string().contains(&name), "{name} removed");
        std::fs::write(&path, whole).unwrap();
        files += 1;
    }
    // Manifest, codes, one vocabulary; three files of train, five of dev.
    assert_eq!(files, 11);
    reloaded(&folder, &data).unwrap();
}

#[test]
fn a_folder_made_with_other_settings_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("prepared");
    cached(&folder, &spec(BPE, "{}", EVAL)).unwrap();
    let error = reloaded(&folder, &spec(&BPE.replace("12", "11"), "{}", EVAL)).unwrap_err().to_string();
    assert!(error.contains("other settings (tokenizer)") && error.contains("hint:"), "{error}");
    let other = spec(BPE, r#"{"max_source_tokens": 40}"#, EVAL);
    assert!(reloaded(&folder, &other).unwrap_err().to_string().contains("(filter)"));
    let other_eval = spec(BPE, "{}", r#"{"valid": {"split": "dev", "lines": 7}}"#);
    assert!(reloaded(&folder, &other_eval).unwrap_err().to_string().contains("says 7"));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let data = spec(BPE, "{}", EVAL);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| prepared(&data).unwrap())
    };
    let (one, four) = (on(1), on(4));
    assert_eq!(one.splits, four.splits);
    assert_eq!(one.pipeline.source, four.pipeline.source);
    assert_eq!(one.pipeline.codes, four.pipeline.codes);
}

#[test]
fn a_kept_pipeline_reads_and_writes_text_as_the_prepared_one() {
    let pieces = r#"{"kind": "sentence-piece", "pieces": 40, "joint": true, "specials": "openseq2seq"}"#;
    let apart = r#"{"kind": "words", "specials": "fairseq", "joint": false}"#;
    for tokenizer in [WORDS, apart, BPE, pieces] {
        let data = spec(tokenizer, "{}", r#"{"valid": {"split": "dev", "lines": 2}}"#);
        let made = prepared(&data).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kept = || PreparedTranslation::kept(&data, PrepareOptions::default(), folder.path());
        assert!(kept().unwrap().is_none() && made.is_kept(folder.path()).unwrap().is_none());
        made.keep(folder.path()).unwrap();
        assert_eq!(made.is_kept(folder.path()).unwrap(), Some(true));
        let read = kept().unwrap().unwrap();
        assert!(read.splits.is_empty());
        assert_eq!(
            (read.targets.clone(), read.pipeline.joined()),
            (made.targets.clone(), made.pipeline.joined())
        );
        for line in ["The mouse's old house, a zebra", ""] {
            let ids = made.pipeline.encode_source(line);
            assert_eq!(read.pipeline.encode_source(line), ids, "{tokenizer}");
        }
        let (_, target) = made.splits[TRAIN].pair(1);
        assert_eq!(read.undo(target), made.undo(target), "{tokenizer}");

        let entries = std::fs::read_dir(folder.path()).unwrap();
        for file in entries.map(|entry| entry.unwrap().path()) {
            let bytes = std::fs::read(&file).unwrap();
            std::fs::write(&file, [&bytes[..], b"x"].concat()).unwrap();
            let error = kept().unwrap_err().to_string();
            assert!(error.contains(file.file_name().unwrap().to_str().unwrap()), "{error}");
            std::fs::write(&file, bytes).unwrap();
        }
    }
}

#[test]
fn text_of_other_words_is_not_what_was_kept() {
    let data = spec(WORDS, "{}", r#"{"valid": {"split": "dev", "lines": 2}}"#);
    let folder = tempfile::tempdir().unwrap();
    prepared(&data).unwrap().keep(folder.path()).unwrap();
    let mut others = splits();
    others.get_mut(TRAIN).unwrap().source[0] = "The barn is old.".into();
    let others = prepare(&data, &others, PrepareOptions::default()).unwrap();
    assert_eq!(others.is_kept(folder.path()).unwrap(), Some(false));
}
