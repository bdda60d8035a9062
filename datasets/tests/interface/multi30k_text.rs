//! Text treatment against the files that the authors of Multi30k and of Revisit-MMT published, byte
//! for byte. Needs `ZOO_MIRROR`, a folder with the `<host>/<path>` layout; without it each test
//! prints that it was skipped.

use std::path::{Path, PathBuf};
use std::time::Instant;

use zoo_datasets::batches::{BatchPlan, Collator, PaddingWaste, PairSource};
use zoo_datasets::readers::parallel_text::read_lines;
use zoo_datasets::tasks::translation::prepare::{PrepareError, PrepareOptions, load, prepare_cached};
use zoo_datasets::tasks::translation::read_splits;
use zoo_datasets::text::bpe::{Codes, Encoder, learn, undo};
use zoo_datasets::text::moses::Normalizer;
use zoo_recipes::NormalizeStep;
use zoo_recipes::tasks::translation::TextDataSpec;

const TASK1: &str =
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1";
const BPE: &str = "raw.githubusercontent.com/LividWo/Revisit-MMT/dc368d0af8d60270b8f4aaa2f3ac58771c551da3/data/multi30k-en-de";

const STEPS: [NormalizeStep; 3] =
    [NormalizeStep::Lowercase, NormalizeStep::MosesPunctuation, NormalizeStep::MosesTokenize];

fn mirror(part: &str) -> Option<PathBuf> {
    match std::env::var_os("ZOO_MIRROR") {
        Some(mirror) => Some(Path::new(&mirror).join(part)),
        None => {
            eprintln!("skipped: ZOO_MIRROR is not set");
            None
        }
    }
}

fn assert_same(ours: &[String], theirs: &[String], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}: number of lines");
    let different: Vec<usize> = (0..ours.len()).filter(|&i| ours[i] != theirs[i]).collect();
    for &i in different.iter().take(5) {
        eprintln!("{what}:{}\n  ours   {}\n  theirs {}", i + 1, ours[i], theirs[i]);
    }
    assert!(different.is_empty(), "{what}: {} lines differ", different.len());
}

fn tok_files_are_made_from_raw_ones(language: &str) {
    let Some(folder) = mirror(TASK1) else { return };
    let normalizer = Normalizer::new(&STEPS, language).unwrap();
    for split in ["train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"] {
        let raw = read_lines(&folder.join(format!("raw/{split}.{language}.gz"))).unwrap();
        let tok =
            std::fs::read_to_string(folder.join(format!("tok/{split}.lc.norm.tok.{language}"))).unwrap();
        let tok: Vec<String> = tok.split_terminator('\n').map(String::from).collect();
        let start = Instant::now();
        let ours = normalizer.lines(&raw);
        eprintln!("{split}.{language}: {} lines in {:.2?}", raw.len(), start.elapsed());
        assert_same(&ours, &tok, &format!("{split}.{language}"));
    }
}

#[test]
fn every_english_tok_line_is_made_from_its_raw_line() {
    tok_files_are_made_from_raw_ones("en");
}

#[test]
fn every_german_tok_line_is_made_from_its_raw_line() {
    tok_files_are_made_from_raw_ones("de");
}

#[test]
fn every_french_tok_line_is_made_from_its_raw_line() {
    tok_files_are_made_from_raw_ones("fr");
}

#[test]
fn the_published_10000_merges_are_learnt_from_the_tok_files() {
    let (Some(text), Some(bpe)) = (mirror(TASK1), mirror(BPE)) else { return };
    let mut lines = read_lines(&text.join("tok/train.lc.norm.tok.en")).unwrap();
    lines.extend(read_lines(&text.join("tok/train.lc.norm.tok.de")).unwrap());
    let start = Instant::now();
    let codes = learn(&lines, 10_000);
    let learning = start.elapsed();
    eprintln!("learnt {} merges from {} lines in {learning:.2?}", codes.merges.len(), lines.len());
    assert_eq!(codes.to_text(), std::fs::read_to_string(bpe.join("code")).unwrap());
    assert!(learning.as_secs() < 60, "learning took {learning:?}");
}

#[test]
fn the_published_bpe_text_is_made_from_the_tok_files() {
    let (Some(text), Some(bpe)) = (mirror(TASK1), mirror(BPE)) else { return };
    let encoder = Encoder::new(&Codes::load(&bpe.join("code")).unwrap());
    let files = [
        ("train", "train"),
        ("val", "valid"),
        ("test_2016_flickr", "test.2016"),
        ("test_2017_flickr", "test.2017"),
        ("test_2017_mscoco", "test.coco"),
    ];
    for (tok, published) in files {
        for language in ["en", "de"] {
            let lines = read_lines(&text.join(format!("tok/{tok}.lc.norm.tok.{language}"))).unwrap();
            let theirs = read_lines(&bpe.join(format!("{published}.{language}"))).unwrap();
            let start = Instant::now();
            let ours = encoder.lines(&lines);
            eprintln!("{published}.{language}: {} lines in {:.2?}", lines.len(), start.elapsed());
            assert_same(&ours, &theirs, &format!("{published}.{language}"));
            // One line of train.en has a double space in its tok file; encoding makes it a single
            // space.
            let doubled = lines.iter().filter(|line| line.contains("  ")).count();
            assert_eq!(
                doubled,
                usize::from(published == "train" && language == "en"),
                "{published}.{language}"
            );
            let single: Vec<String> =
                lines.iter().map(|line| line.replace("  ", " ").trim_end().to_string()).collect();
            let undone: Vec<String> = ours.iter().map(|line| undo(line)).collect();
            assert_same(&undone, &single, &format!("{published}.{language} undone"));
        }
    }
}

#[test]
fn multi30k_is_prepared_from_raw_text_with_the_published_token_counts() {
    let Some(folder) = mirror(TASK1) else { return };
    let files = ["train", "val", "test_2016_flickr"].map(|split| {
        let side = |language: &str| folder.join(format!("raw/{split}.{language}.gz"));
        format!(r#""{split}": {{"source": {:?}, "target": {:?}}}"#, side("en"), side("de"))
    });
    let data: TextDataSpec = serde_json::from_str(&format!(
        r#"{{
            "reader": {{"kind": "parallel-text", "source": "en", "target": "de", "files": {{{}}}}},
            "tokenizer": {{"kind": "subword-nmt", "merges": 10000, "joined_dictionary": true, "specials": "fairseq",
                "pad_vocabulary_to": 8, "normalize": ["lowercase", "moses-punctuation", "moses-tokenize"]}},
            "filter": {{"max_source_tokens": 1024, "max_target_tokens": 1024}},
            "batching": {{"kind": "tokens", "max_tokens": 4096, "sentences_multiple_of": 8}},
            "eval": {{
                "valid": {{"split": "val", "lines": 1014, "reference_tokens": 12828}},
                "test": {{"split": "test_2016_flickr", "lines": 1000, "reference_tokens": 12103}}
            }}
        }}"#,
        files.join(", ")
    ))
    .unwrap();
    let texts = read_splits(&data, Path::new("."), None).unwrap();
    let home = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let prepared = prepare_cached(&home.path().join("p"), &data, PrepareOptions::default(), || {
        Ok::<_, PrepareError>(texts)
    })
    .unwrap();
    let preparing = start.elapsed();
    let start = Instant::now();
    let loaded = load(&home.path().join("p"), &data, PrepareOptions::default()).unwrap();
    eprintln!("prepared and kept in {preparing:.2?}, loaded in {:.2?}", start.elapsed());
    assert_eq!(loaded.splits, prepared.splits);
    for split in prepared.splits.values() {
        eprintln!("{}: {:?}", split.name, split.statistics);
        assert_eq!((split.statistics.dropped_too_long, split.statistics.skipped_empty), (0, 0));
    }
    let train = prepared.train().unwrap()[0];
    assert_eq!(train.statistics.pairs, 29_000);
    assert_eq!((train.statistics.source_unknown, train.statistics.target_unknown), (0, 0));
    eprintln!("{} rows, {}", prepared.pipeline.target.len(), prepared.pipeline.target.fingerprint());
    // The number was counted here. It is below 10,000 merges, because parts that are merged further
    // need not survive.
    assert_eq!(prepared.pipeline.target.len(), 9712);
    let test = prepared.eval_set("test", &data.eval["test"]).unwrap();
    assert_eq!(test.split.statistics.target_unknown, 0);
    for (index, reference) in test.references.iter().enumerate() {
        assert_eq!(prepared.undo(test.split.pair(index as u32).1), *reference);
    }

    let plan = BatchPlan::new(&train.lengths(), &data.batching, 1).unwrap();
    let collator = Collator { source_pad: 1, target_pad: 1, pad_length_to: 1 };
    let mut waste = PaddingWaste::default();
    for ids in plan.epoch(0) {
        waste.add(&collator.batch(train.as_ref(), &ids));
    }
    eprintln!("{} batches an epoch, {:.2} % padding", plan.batches_per_epoch(), 100.0 * waste.share());
    assert_eq!(plan.epoch(0).iter().map(Vec::len).sum::<usize>(), 29_000);
    assert!((110..140).contains(&plan.batches_per_epoch()), "about 60 updates of 2 batches an epoch");
}
