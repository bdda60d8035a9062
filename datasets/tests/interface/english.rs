//! English text cleaning against the packages inflect 7.0.0 and Unidecode 1.3.8
//! (`tests/reference/english_cleaners.py`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use zoo_datasets::text::english::clean;

#[derive(Deserialize)]
struct Goldens {
    patterns: BTreeMap<String, String>,
    numbers: BTreeMap<String, String>,
    ordinals: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
    ascii: BTreeMap<char, String>,
}

fn goldens() -> Goldens {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/english_cleaners.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn numbers_money_and_abbreviations_are_read_as_the_packages_read_them() {
    let Goldens { patterns, numbers, ordinals, texts, .. } = goldens();
    assert_eq!((patterns.len(), texts.len()), (722, 22));
    assert!(numbers.len() > 600 && ordinals.len() == numbers.len());
    for (text, read) in patterns.iter().chain(&numbers).chain(&ordinals).chain(&texts) {
        assert_eq!(&clean(text), read, "{text}");
    }
}

#[test]
fn latin_letters_and_signs_become_the_ascii_of_unidecode() {
    let folded = |character: char| clean(&character.to_string());
    let (mut same, mut left) = (0, Vec::new());
    for (character, ascii) in goldens().ascii {
        let ours = folded(character);
        let theirs = clean(&ascii);
        if ours == theirs {
            same += 1;
        } else {
            assert_eq!(ours, character.to_lowercase().to_string(), "{character:?}: {ascii:?}");
            left.push(character);
        }
    }
    println!("{same} alike, {} left as they are: {left:?}", left.len());
    // Every letter is converted to ASCII. The remaining characters are signs and marks, which no
    // symbol set contains.
    assert!(left.iter().all(|character| !character.is_alphabetic()), "{left:?}");
}
