//! Penn Treebank and tiny Shakespeare as their published models read them. Needs `ZOO_MIRROR`, a
//! folder with the `<host>/<path>` layout; without it each test prints that it was skipped.

use std::path::Path;

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::fetch::{DataHome, FetchOptions};
use zoo_datasets::tasks::language_modelling::{PreparedLanguage, TrainingWindows, prepare_language};
use zoo_recipes::tasks::language_modelling::LanguageDataSpec;

/// The corpus in a temporary home, prepared.
fn prepared(data: &LanguageDataSpec) -> Option<PreparedLanguage> {
    let Some(mirror) = std::env::var("ZOO_MIRROR").ok() else {
        eprintln!("skipped: ZOO_MIRROR is not set");
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let options = FetchOptions { mirror: Some(mirror), ..FetchOptions::default() };
    let definition = CorpusDefinition::find(data.corpus.as_deref().unwrap()).unwrap();
    let fetched = definition.fetch_all(&DataHome::new(home.path()), &options).unwrap();
    Some(prepare_language(data, Some(&fetched), Path::new("")).unwrap())
}

fn ptb(vocabulary: &str, steps: u32, last: &str) -> LanguageDataSpec {
    let text = format!(
        "corpus = 'ptb'
        reader = {{ kind = 'text' }}
        unit = {{ kind = 'word', end_of_line = '<eos>' }}
        vocabulary = {{ size = 10000, {vocabulary} }}
        batching = {{ kind = 'contiguous', rows = 20, steps = {steps}, last = '{last}', state = 'carried' }}
        [eval.valid]
        split = 'valid'
        lines = 3370
        windows = {{ kind = 'contiguous', rows = 20, steps = {steps}, last = '{last}', state = 'carried' }}
        [eval.test]
        split = 'test'
        lines = 3761
        windows = {{ kind = 'contiguous', rows = 10, steps = 35, last = 'short', state = 'carried', divisor = 'all' }}"
    );
    toml::from_str(&text).unwrap()
}

#[test]
fn penn_treebank_has_its_published_counts_and_windows() {
    for (vocabulary, steps, last, updates, valid) in [
        ("order = 'frequency', of = 'training'", 20, "drop", 2323, 184),
        ("order = 'frequency', of = 'training'", 35, "drop", 1327, 105),
        ("order = 'appearance', of = 'all'", 35, "short", 1328, 106),
    ] {
        let data = ptb(vocabulary, steps, last);
        let Some(prepared) = prepared(&data) else { return };
        let units = |split: &str| prepared.splits[split].units.len();
        assert_eq!([units("train"), units("valid"), units("test")], [929_589, 73_760, 82_430]);
        assert_eq!(prepared.units.len(), 10_000);
        let training = TrainingWindows::new(&prepared, &data, 1).unwrap();
        assert_eq!(training.per_epoch(), updates, "{steps} {last}");
        let steps_of_last = training.batch(0, updates - 1).steps();
        assert_eq!(steps_of_last, if last == "short" { 33 } else { steps as usize });
        assert_eq!(prepared.evaluation("valid", &data).unwrap().len(), valid);
        // PyTorch's script reads 10 columns of 8,243 rows.
        let (predicted, given) = prepared
            .evaluation("test", &data)
            .unwrap()
            .fold((0, 0), |(sum, all), (batch, given)| (sum + batch.targets.len(), all + given));
        assert_eq!((predicted, given), (82_420, 10));
        let due = match vocabulary.contains("frequency") {
            true => ["the", "<unk>", "<eos>"],
            false => ["aer", "banknote", "berlitz"],
        };
        assert_eq!([0, 1, 2].map(|id| prepared.units.name(id)), due);
    }
}

#[test]
fn tiny_shakespeare_has_its_published_counts() {
    let data: LanguageDataSpec = toml::from_str(
        "corpus = 'tiny-shakespeare'
        reader = { kind = 'text', training_share = 0.9 }
        unit = { kind = 'character' }
        vocabulary = { size = 65, order = 'sorted', of = 'all' }
        batching = { kind = 'random', rows = 12, steps = 64, batches = 250 }
        [eval.valid]
        split = 'valid'
        lines = 4475
        windows = { kind = 'random', rows = 12, steps = 64, batches = 20, seed = 1 }",
    )
    .unwrap();
    let Some(prepared) = prepared(&data) else { return };
    let units = |split: &str| prepared.splits[split].units.len();
    assert_eq!([units("train"), units("valid")], [1_003_854, 111_540]);
    // nanoGPT prints the characters in this order.
    let names: String = (0..65).map(|id| prepared.units.name(id).to_owned()).collect();
    assert_eq!(names, "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    assert_eq!(prepared.units.text(&prepared.splits["train"].units[..14]), "First Citizen:");
    assert_eq!(prepared.evaluation("valid", &data).unwrap().len(), 20);
}
