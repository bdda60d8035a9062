//! Tokenised BLEU compared with the output of Moses' multi-bleu.perl and fairseq's libbleu.
//! `tests/reference/tokenised_bleu_goldens.py` at the root of the repository writes the fixture.

use crate::bleu;

use std::collections::BTreeMap;

use serde::Deserialize;
use zoo_results::metrics::{
    BleuDetail, Case, Compounds, ScoreOptions, Scorer, TokenisedBleu, TokenisedBleuOptions, score,
};

#[derive(Deserialize)]
struct Goldens {
    corpora: BTreeMap<String, Vec<Vec<String>>>,
    multi_bleu: Vec<Moses>,
    fairseq: Vec<Fairseq>,
}

#[derive(Deserialize)]
struct Moses {
    corpus: String,
    references: usize,
    lower: bool,
    line: String,
}

#[derive(Deserialize)]
struct Fairseq {
    corpus: String,
    lower: bool,
    score: f64,
    correct: [u64; 4],
    total: [u64; 4],
    lengths: [u64; 2],
    brevity_penalty: f64,
}

fn goldens() -> Goldens {
    serde_json::from_str(include_str!("../fixtures/tokenised_bleu_goldens.json"))
        .expect("the fixture is JSON")
}

fn measure(streams: &[Vec<String>], references: usize, whose: TokenisedBleu, lower: bool) -> BleuDetail {
    let case = if lower { Case::Lower } else { Case::Mixed };
    let scorer =
        Scorer::new(TokenisedBleuOptions { whose, case, compounds: Compounds::Whole }.into()).unwrap();
    bleu::detail(&scorer, streams.last().unwrap(), &streams[..references]).unwrap()
}

#[test]
fn lines_are_multi_bleus() {
    let goldens = goldens();
    assert!(goldens.multi_bleu.iter().any(|g| g.references > 1 && !g.line.starts_with("BLEU = 0.00")));
    for golden in &goldens.multi_bleu {
        let streams = &goldens.corpora[&golden.corpus];
        let detail = measure(streams, golden.references, TokenisedBleu::MultiBleu, golden.lower);
        let what = format!("`{}`, {} references, -lc {}", golden.corpus, golden.references, golden.lower);
        assert_eq!(detail.multi_bleu_line(), golden.line, "{what}");
    }
}

#[test]
fn counts_are_fairseqs() {
    let goldens = goldens();
    for golden in &goldens.fairseq {
        let streams = &goldens.corpora[&golden.corpus];
        let found = measure(streams, 1, TokenisedBleu::Fairseq, golden.lower);
        let what = format!("`{}`, lower {}", golden.corpus, golden.lower);
        assert_eq!((found.correct, found.total), (golden.correct, golden.total), "{what}");
        assert_eq!([found.hypothesis_length, found.reference_length], golden.lengths, "{what}");
        assert!((found.score - golden.score).abs() < 1e-12, "{what}: {}", found.score);
        assert!((found.brevity_penalty - golden.brevity_penalty).abs() < 1e-14, "{what}");
    }
}

/// The three agree on clean text. The signature of a claim without `impl:` is sacreBLEU's.
#[test]
fn on_clean_text_all_three_are_one() {
    let goldens = goldens();
    let streams = &goldens.corpora["plain"];
    let without_empty: Vec<Vec<String>> = streams
        .iter()
        .map(|stream| {
            let whole = |i: &usize| streams.iter().all(|s| !s[*i].trim().is_empty());
            (0..stream.len()).filter(whole).map(|i| stream[i].to_lowercase()).collect()
        })
        .collect();
    let (hypotheses, reference) = (without_empty.last().unwrap(), &without_empty[..1]);
    let of = |signature: &str| {
        let options = ScoreOptions { scorer: Scorer::from_signature(signature).unwrap(), resampling: None };
        score(hypotheses, reference, &options).unwrap()
    };
    let base = of("nrefs:1|case:lc|eff:no|tok:none|smooth:none");
    assert!(base.value > 50.0);
    for whose in ["multi-bleu", "fairseq"] {
        let other = of(&format!("nrefs:1|case:lc|eff:no|tok:none|smooth:none|impl:{whose}"));
        assert!((other.value - base.value).abs() < 1e-12);
        assert_eq!(other.detail["line"], base.detail["line"]);
        // The values are equal here, but the measures differ, so they are not comparable.
        assert!(other.signature.comparable(&base.signature).is_err());
    }
}
