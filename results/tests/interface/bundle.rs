//! Bundles: round trip, missing references, and changes of every kind.

use crate::toy;

use std::collections::BTreeMap;

use toy::{bundle, hash};
use zoo_results::bundle::{Bundle, BundleError, VERSION, check};

#[test]
fn what_was_written_reads_back_and_holds() {
    let (bundle, references) = bundle();
    let text = bundle.encode().unwrap();
    assert_eq!(Bundle::decode(&text).unwrap(), bundle);
    // Any JSON reader can open it.
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["format"], "zoo-bundle");
    let checked = check(&bundle, &references).unwrap();
    assert!(checked.holds(), "{checked:?}");
    assert_eq!(
        (checked.recheck.scores, checked.recheck.verdicts, checked.recheck.taken_from_record),
        (2, 1, 0)
    );
    // Without references the scores are taken as recorded, and the result says so.
    let checked = check(&bundle, &BTreeMap::new()).unwrap();
    assert!(checked.holds());
    assert_eq!(checked.without_references, ["test"]);
    assert_eq!((checked.recheck.scores, checked.recheck.taken_from_record), (0, 2));
}

#[test]
fn every_changed_byte_breaks_the_seal() {
    let text = bundle().0.encode().unwrap();
    for at in (0..text.len()).step_by(97).chain(text.len() - 80..text.len() - 3) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        assert!(Bundle::decode(&changed).is_err(), "byte {at}");
    }
    assert!(matches!(Bundle::decode(&text[..text.len() / 2]), Err(BundleError::Changed(_))));
    for other in ["", "{}", "{\"sha256\": \"x\"\n}\n", "α"] {
        assert!(matches!(Bundle::decode(other), Err(BundleError::Foreign(_))), "{other}");
    }
    let (mut newer, _) = bundle();
    newer.version = VERSION + 1;
    assert_eq!(Bundle::decode(&newer.encode().unwrap()), Err(BundleError::Version(u64::from(VERSION) + 1)));
}

/// Someone who knows the format changes the content and seals it again: the inconsistencies are
/// found.
#[test]
fn what_was_talked_up_and_sealed_anew_is_caught() {
    let (whole, references) = bundle();
    let faults = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = whole.clone();
        change(&mut bundle);
        let bundle = Bundle::decode(&bundle.encode().unwrap()).unwrap();
        let checked = match check(&bundle, &references) {
            Ok(checked) => checked,
            Err(error) => return error.to_string(),
        };
        assert!(!checked.holds());
        let found = checked.recheck.disagreements.iter().map(|one| format!("{}: {}", one.what, one.how));
        checked.faults.iter().cloned().chain(found).collect::<Vec<_>>().join("\n")
    };
    // A better hypothesis.
    let said =
        faults(&|bundle| bundle.hypotheses[0].text = bundle.hypotheses[0].text.replacen("x y", "c d", 1));
    assert!(said.contains("toy/fp32-seed1-abc/test.txt is not the file that was scored"), "{said}");
    // A better hypothesis with its own digest: the record has another digest.
    let said = faults(&|bundle| {
        let one = &mut bundle.hypotheses[0];
        one.text = one.text.replacen("x y", "c d", 1);
        one.file.sha256 = hash(&one.text);
    });
    assert!(said.contains("is not the file that was scored"), "{said}");
    // A score in the record, with the line hashed again.
    let rehashed = |bundle: &mut Bundle, change: &dyn Fn(&str) -> String| {
        let (sealed, _) = bundle.record.rsplit_once(",\"hash\":\"").unwrap();
        let changed = change(sealed);
        assert_ne!(sealed, changed);
        bundle.record = format!("{changed},\"hash\":\"{}\"}}", hash(&changed));
    };
    let said = faults(&|bundle| rehashed(bundle, &|line| line.replace("INCONCLUSIVE", "REPRODUCED")));
    assert!(said.contains("recorded REPRODUCED, derived INCONCLUSIVE"), "{said}");
    let value = whole.entry().unwrap().record.scores[0].value.to_string();
    let said = faults(&|bundle| rehashed(bundle, &|line| line.replacen(&value, "99.5", 1)));
    assert!(said.contains("score bleu test beam5 fp32 seed 1: recorded 99.5"), "{said}");
    // Another recipe.
    let said = faults(&|bundle| {
        let toml = bundle.recipe.resolved.get_mut("mixed").unwrap();
        *toml = toml.replacen("max_updates = 800", "max_updates = 900", 1);
    });
    assert!(said.contains("the recipe has hash"), "{said}");
    // A wider margin in the judged claim.
    let (margin, wider) = ("\"margin_of_error\":0.5", "\"margin_of_error\":9.0");
    let said = faults(&|bundle| rehashed(bundle, &|line| line.replacen(margin, wider, 1)));
    assert!(said.contains("the recipe does not have the claim that was judged"), "{said}");
    // Hypotheses left out, and an incomplete line.
    let said = faults(&|bundle| bundle.hypotheses.truncate(1));
    assert!(said.contains("the bundle has no toy/mixed-seed1-abc/test.txt"), "{said}");
    let said = faults(&|bundle| bundle.record = bundle.record.replacen("\"seeds\":[1]", "\"seeds\":[2]", 1));
    assert!(said.contains("changed after it was written: `seeds`"), "{said}");
}

#[test]
fn other_references_are_refused() {
    let (bundle, mut references) = bundle();
    references.get_mut("test").unwrap()[7].push_str(" more");
    let checked = check(&bundle, &references).unwrap();
    assert!(checked.faults[0].contains("are not those of the bundle: 60 lines"), "{:?}", checked.faults);
    let checked = check(&bundle, &[("dev".to_owned(), vec!["a".to_owned()])].into()).unwrap();
    assert!(checked.faults[0].contains("nothing in the bundle was scored on dev"), "{:?}", checked.faults);
}
