//! Searches over tables of logits agree with the un-batched Python specification, alone and in a
//! batch. The output of a model does not depend on the other sentences of a batch.

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::Deserialize;
use zoo_models::Packed;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::random::Key;
use zoo_models::search::{Logits, SearchIds, StepDecoder, search};
use zoo_models::tasks::translation::{Seq2Seq, Vocabularies, Writer};
use zoo_recipes::TokenSearchSpec;
use zoo_recipes::{Document, ListedTask, Selection, Translation};

#[derive(Deserialize)]
struct Fixture {
    searches: BTreeMap<String, TokenSearchSpec>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    vocabulary: Ids,
    source_tokens: usize,
    logits: Vec<Vec<f32>>,
    attention: Vec<Vec<f32>>,
    results: BTreeMap<String, Vec<Expected>>,
}

#[derive(Deserialize)]
struct Ids {
    size: usize,
    pad: u32,
    end: u32,
}

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    score: f64,
}

/// A decoder whose scores depend on the last token alone. The first token of a source selects its
/// table.
struct Tables<'a>(&'a [&'a Case]);

/// For each hypothesis, its table and the row that was read last.
struct Looks {
    tables: Vec<usize>,
    rows: Vec<usize>,
}

impl StepDecoder for Tables<'_> {
    type State = Looks;

    fn begin(&self, sources: &Packed) -> Looks {
        Looks { tables: sources.sequences().map(|source| source[0] as usize).collect(), rows: Vec::new() }
    }

    fn step(&self, looks: &mut Looks, last: Option<&[u32]>) -> Logits {
        let size = self.0[0].vocabulary.size;
        let row = |i: usize| last.map_or(size, |last| last[i] as usize);
        looks.rows = (0..looks.tables.len()).map(row).collect();
        let of = looks.tables.iter().zip(&looks.rows);
        let values = of.flat_map(|(&table, &row)| self.0[table].logits[row].clone()).collect();
        Logits { vocabulary: size, values }
    }

    fn select(&self, looks: &mut Looks, kept: &[usize]) {
        looks.tables = kept.iter().map(|&row| looks.tables[row]).collect();
    }

    fn attention(&self, looks: &Looks) -> Option<Vec<f32>> {
        let of = looks.tables.iter().zip(&looks.rows);
        Some(of.flat_map(|(&table, &row)| self.0[table].attention[row].clone()).collect())
    }
}

fn check(cases: &[&Case], name: &str, spec: &TokenSearchSpec) {
    let ids = SearchIds { pad: cases[0].vocabulary.pad, end: cases[0].vocabulary.end };
    let sources: Vec<Vec<u32>> =
        cases.iter().enumerate().map(|(i, case)| vec![i as u32; case.source_tokens]).collect();
    let found = search(&Tables(cases), &Packed::new(&sources), spec, ids);
    for (case, found) in cases.iter().zip(found) {
        let expected = &case.results[name];
        assert_eq!(found.len(), expected.len(), "{} {name}", case.name);
        for (found, expected) in found.iter().zip(expected) {
            let mut tokens = expected.tokens.clone();
            if tokens.last() == Some(&ids.end) {
                tokens.pop();
            }
            assert_eq!(found.tokens, tokens, "{} {name}", case.name);
            // FP32 log-probabilities of up to a dozen tokens are compared with FP64.
            assert!((found.score - expected.score).abs() < 1e-5, "{} {name}: {}", case.name, found.score);
        }
    }
}

#[test]
fn tables_are_searched_as_specified_alone_and_in_a_batch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/search_tables.json");
    let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(fixture.cases.len() >= 10 && fixture.searches.len() >= 20);
    for (name, spec) in &fixture.searches {
        for case in &fixture.cases {
            check(&[case], name, spec);
        }
        for end in [1, 2] {
            let together: Vec<&Case> =
                fixture.cases.iter().filter(|case| case.vocabulary.end == end).collect();
            check(&together, name, spec);
        }
    }
}

#[test]
fn what_is_written_does_not_depend_on_the_batch() {
    // One recipe for each kind of decoder, whose state follows its hypotheses.
    for recipe in
        ["reversal-transformer", "iwslt14-lstm", "gnmt-v2", "gnmt", "lstm-3x1024-en-fr", "multi30k-convs2s"]
    {
        writes_alike_in_a_batch(recipe);
    }
}

fn writes_alike_in_a_batch(recipe: &str) {
    let selection = Selection { tier: Some("smoke".into()), ..Selection::default() };
    let recipe = Document::load(recipe).unwrap().resolve(&selection).unwrap().recipe;
    let recipe = Translation::take(recipe).unwrap();
    let vocabularies = Vocabularies { source: 14, target: 14, languages: 1, pad: 0, begin: 2, end: 1 };
    let model = Seq2Seq::new(&recipe.model, &vocabularies, 3, &Device::flex());
    let key = Key::new(4, 0, 0);
    let sources: Vec<Vec<u32>> = (0..9u32)
        .map(|i| (0..2 + key.bits(i) % 7).map(|t| 4 + key.bits(100 + 10 * i + t) % 10).chain([1]).collect())
        .collect();
    let decoder = Writer::new(&model, 0, Pass::evaluation(Compute::FP32));
    for spec in recipe.decode.values() {
        let ids = SearchIds { pad: 0, end: 1 };
        let together = search(&decoder, &Packed::new(&sources), spec, ids);
        for (source, together) in sources.iter().zip(together) {
            let alone = search(&decoder, &Packed::new(&[source]), spec, ids).remove(0);
            let tokens = |found: &[zoo_models::search::Hypothesis]| {
                found.iter().map(|hypothesis| hypothesis.tokens.clone()).collect::<Vec<_>>()
            };
            assert_eq!(tokens(&alone), tokens(&together));
        }
    }
}
