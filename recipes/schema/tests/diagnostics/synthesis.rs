//! Keys of synthesis text in a recipe of speech recognition.

use crate::findings;

const LEXICON: &str = "kind = \"lexicon\"\nwords = { YES = [\"Y\"], NO = [\"N\"] }\nsilence = \"SIL\"";

#[track_caller]
fn wrong(from: &str, to: &str, message: &str, hint: &str) {
    let found = findings("yesno-tdnn", from, to);
    let fits = |one: &zoo_recipes::Diagnostic| {
        one.message.contains(message) && one.hint.as_deref().unwrap_or_default().contains(hint)
    };
    assert!(found.iter().any(fits), "{message} (hint: {hint})\nfound:\n{found}");
}

#[test]
fn symbols_that_cannot_be_are_refused() {
    let symbols = |rest: &str| format!("kind = \"symbols\"\n{rest}");
    for (rest, message, hint) in [
        ("symbols = \"nvida\"", "nvida", "nvidia"),
        ("symbols = \"own\"", "the set `own` has no characters", "characters ="),
        ("symbols = \"own\"\ncharacters = \"\"", "the set `own` is empty", ""),
        ("symbols = \"own\"\ncharacters = \"aba\"", "'a' is there twice", ""),
        ("symbols = \"nvidia\"\ncharacters = \"ab\"", "has characters of its own", "symbols = \"own\""),
        ("symbols = \"nvidia\"\nleave_out = \"\\\"a\"", "'a' is a symbol", ""),
        ("symbols = \"nvidia\"\nends = true", "has no begin and no end", "without"),
        ("symbols = \"openseq2seq\"\npad_to = 0", "must be at least 1", ""),
        ("symbols = \"openseq2seq\"", "these features are those of a recogniser", "kind = \"tacotron\""),
    ] {
        wrong(LEXICON, &symbols(rest), message, hint);
    }
}

#[test]
fn targets_of_synthesis_need_its_symbols() {
    let kaldi = "kind = \"kaldi\"\nfeatures = 23";
    let tacotron = "kind = \"tacotron\"\nmel = { high_hz = 4000.0 }";
    wrong(kaldi, tacotron, "it reads symbols", "kind = \"symbols\"");
    wrong(kaldi, "kind = \"tacotron\"", "ends at 8000 Hz", "");
}

#[test]
fn folders_and_texts_are_those_of_a_corpus() {
    let strict = "corpus = \"yesno\"\n\n[data.reader]\nkind = \"audio-manifest\"";
    let own = "[data.reader]\nkind = \"audio-manifest\"\nfiles = { train = \"a\", test = \"b\" }";
    wrong(strict, &format!("{own}\nfolder = \"c\""), "a folder holds a corpus", "data.reader.files");
    wrong(strict, &format!("{own}\ntranscript = \"raw\""), "one text for each recording", "name the corpus");
    wrong(strict, &format!("{strict}\nfolder = \"\""), "`data.reader.folder` is empty", "");
}

#[test]
fn an_attention_is_guided_by_a_width_and_a_weight_above_zero() {
    let guide = "guide = { width = 0.2, weight = 1.0 }";
    for (key, to) in [
        ("loss.guide.width", "width = 0.0, weight = 1.0"),
        ("loss.guide.weight", "width = 0.2, weight = -1.0"),
    ] {
        let found = findings("ljspeech-32", guide, &format!("guide = {{ {to} }}"));
        assert!(found.iter().any(|one| one.message.contains(key)), "{key}\nfound:\n{found}");
    }
}
