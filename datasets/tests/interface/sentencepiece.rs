//! SentencePiece's own models, and the results of SentencePiece with them
//! (`tests/reference/sentencepiece_fixtures.py`).

use std::io::Read;
use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;
use zoo_datasets::text::sentencepiece::{SentencePiece, learn};
use zoo_datasets::text::vocabulary::SpecialIds;

#[derive(Deserialize)]
struct Fixture {
    text: Vec<String>,
    lines: Vec<String>,
    learnt: std::collections::BTreeMap<String, Described>,
    others: std::collections::BTreeMap<String, Other>,
}

#[derive(Deserialize)]
struct Described {
    pieces: Vec<String>,
    ids: Vec<Vec<u32>>,
    surfaces: Vec<Vec<String>>,
    decoded: Vec<String>,
}

#[derive(Deserialize)]
struct Other {
    model: String,
    #[serde(flatten)]
    described: Described,
}

fn fixture() -> Fixture {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/sentencepiece.json.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let group = |four: &[u8]| {
        let bits = four.iter().fold(0_u32, |bits, d| bits << 6 | u32::from(*d)) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

const SPECIALS: SpecialIds = SpecialIds { pad: 0, end: 1, begin: 2, unknown: 3 };

fn assert_same(model: &SentencePiece, lines: &[String], due: &Described, what: &str) {
    let pieces: Vec<&str> = (0..model.len() as u32).map(|id| model.piece(id).unwrap()).collect();
    assert_eq!(pieces, due.pieces, "{what}");
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(model.ids(line), due.ids[index], "{what}: ids of {line:?}");
        assert_eq!(model.pieces(line), due.surfaces[index], "{what}: pieces of {line:?}");
        assert_eq!(model.text(&due.ids[index]), due.decoded[index], "{what}: text of {line:?}");
    }
}

#[test]
fn models_of_others_encode_and_decode_as_sentencepiece_does() {
    let fixture = fixture();
    assert_eq!(fixture.others.len(), 3);
    for (name, other) in &fixture.others {
        let model = SentencePiece::parse(base64(&other.model), Path::new(name)).unwrap();
        assert_same(&model, &fixture.lines, &other.described, name);
        // The bytes of a model are unchanged after parsing.
        let again = SentencePiece::parse(model.bytes().to_vec(), Path::new(name)).unwrap();
        assert_eq!(again.specials(), model.specials());
    }
}

#[test]
fn the_pieces_that_sentencepiece_learns_are_learnt_and_applied_alike() {
    let fixture = fixture();
    assert_eq!(fixture.learnt.len(), 2);
    for (size, due) in &fixture.learnt {
        let model = learn(&fixture.text, size.parse().unwrap(), SPECIALS).unwrap();
        assert_same(&model, &fixture.lines, due, size);
    }
}

#[test]
fn a_learnt_model_survives_the_way_through_a_file() {
    let model = learn(&fixture().text, 250, SPECIALS).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.model");
    model.save(&file).unwrap();
    let loaded = SentencePiece::load(&file).unwrap();
    assert_eq!(loaded.bytes(), model.bytes());
    assert_eq!(
        (loaded.specials().pad, loaded.specials().end, loaded.specials().begin, loaded.specials().unknown),
        (Some(0), Some(1), Some(2), Some(3))
    );
    // Written for a manual comparison with other programs.
    if let Some(folder) = std::env::var_os("ZOO_WRITE_SENTENCEPIECE") {
        model.save(&Path::new(&folder).join("m.model")).unwrap();
    }
}

#[test]
fn what_is_no_model_or_would_be_applied_otherwise_is_refused() {
    let refusal = |bytes: &[u8]| {
        let error = SentencePiece::parse(bytes.to_vec(), Path::new("x.model")).unwrap_err().to_string();
        assert!(error.starts_with("x.model: ") && error.contains("hint:"), "{error}");
        error
    };
    refusal(b"");
    refusal(b"<unk>\t0\n<s>\t0\n");
    // Pieces encoded by hand: `<unk>` of type 2, `a` twice; then `a` as a user-defined piece, of
    // type 4.
    let unknown: &[u8] = b"\x0a\x09\x0a\x05<unk>\x18\x02";
    assert!(refusal(&[unknown, b"\x0a\x03\x0a\x01a", b"\x0a\x03\x0a\x01a"].concat()).contains("there twice"));
    assert!(refusal(&[unknown, b"\x0a\x05\x0a\x01a\x18\x04"].concat()).contains("user-defined"));
    assert!(refusal(b"\x0a\x03\x0a\x01a").contains("no piece for unknown"));
    // TrainerSpec with model_type 4.
    assert!(refusal(&[unknown, b"\x12\x02\x18\x04"].concat()).contains("character model"));
    let error = SentencePiece::load(Path::new("no/such.model")).unwrap_err().to_string();
    assert!(error.starts_with("no/such.model: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_model_and_no_text_panics(at in 0.0..1.0_f64, byte in any::<u8>(), which in 0_usize..3, line in "\\PC{0,30}") {
        let fixture = fixture();
        let mut bytes = base64(&fixture.others.values().nth(which).unwrap().model);
        let index = (at * bytes.len() as f64) as usize;
        bytes[index] = byte;
        if let Ok(model) = SentencePiece::parse(bytes, Path::new("x")) {
            let ids = model.ids(&line);
            model.pieces(&line);
            model.text(&ids);
        }
    }

    #[test]
    fn raw_text_comes_back_up_to_its_spaces(words in prop::collection::vec("[a-zäöüß]{1,9}", 0..12)) {
        let model = learn(["abcdefghijklmnopqrstuvwxyz äöüß the house ist alt die Häuser"], 60, SPECIALS).unwrap();
        let line = words.join("  ");
        prop_assert_eq!(model.text(&model.ids(&line)), words.join(" "));
    }
}
