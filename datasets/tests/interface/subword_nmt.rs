//! Byte pair encoding against subword-nmt's own reference data: corpus, codes and encoded corpus.
//! Needs `ZOO_PARITY`, a folder with `subword_nmt/`, and the program `xz` to unpack it; without
//! either the test prints that it was skipped.

use std::path::Path;
use std::process::Command;

use zoo_datasets::text::bpe::{Codes, Encoder, learn};

fn unpacked(file: &Path) -> Option<String> {
    let output = Command::new("xz").arg("-dc").arg(file).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_reference_merges_are_learnt_and_the_reference_text_is_made() {
    let Some(parity) = std::env::var_os("ZOO_PARITY") else {
        eprintln!("skipped: ZOO_PARITY is not set");
        return;
    };
    let folder = Path::new(&parity).join("subword_nmt");
    let (Some(corpus), Some(encoded)) =
        (unpacked(&folder.join("corpus.en.xz")), unpacked(&folder.join("corpus.bpe.ref.en.xz")))
    else {
        eprintln!("skipped: xz is not there");
        return;
    };
    let reference = Codes::load(&folder.join("bpe.ref")).unwrap();
    let lines: Vec<&str> = corpus.split_terminator('\n').collect();
    let learnt = learn(&lines, reference.merges.len());
    assert_eq!(learnt.merges.len(), 1000);
    assert_eq!(learnt, reference);
    let ours = Encoder::new(&reference).lines(&lines);
    let theirs: Vec<&str> = encoded.split_terminator('\n').collect();
    assert_eq!(ours.len(), theirs.len());
    for (line, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours, theirs, "line {}", line + 1);
    }
}
