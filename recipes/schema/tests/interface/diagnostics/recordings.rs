//! The `[data]` block of speech recipes: symbols, features, folders, and what belongs to text.

use zoo_recipes::Diagnostic;

use super::findings;

#[track_caller]
fn wrong(name: &str, from: &str, to: &str, message: &str, hint: &str) {
    let found = findings(name, from, to);
    let fits = |one: &Diagnostic| {
        one.message.contains(message) && one.hint.as_deref().unwrap_or_default().contains(hint)
    };
    assert!(found.iter().any(fits), "{message} (hint: {hint})\nfound:\n{found}");
}

#[test]
fn symbols_that_cannot_be_are_refused() {
    let symbols = "symbols = \"openseq2seq\"\ncleaners = \"lowercase\"\nends = true\npad_to = 8";
    for (to, message, hint) in [
        ("symbols = \"nvida\"", "nvida", "nvidia"),
        ("symbols = \"own\"", "the set `own` has no characters", "characters ="),
        ("symbols = \"own\"\ncharacters = \"\"", "the set `own` is empty", ""),
        ("symbols = \"own\"\ncharacters = \"aba\"", "'a' is there twice", ""),
        ("symbols = \"nvidia\"\ncharacters = \"ab\"", "has characters of its own", "symbols = \"own\""),
        ("symbols = \"nvidia\"\nleave_out = \"\\\"a\"", "'a' is a symbol", ""),
        ("symbols = \"nvidia\"\nends = true", "has no begin and no end", "without"),
        ("symbols = \"openseq2seq\"\npad_to = 0", "must be at least 1", ""),
    ] {
        wrong("tacotron2", symbols, to, message, hint);
    }
}

#[test]
fn features_are_those_of_the_task() {
    let kaldi = "kind = \"kaldi\"\nfeatures = 23";
    let tacotron = "kind = \"tacotron\"\nmel = { high_hz = 4000.0 }";
    wrong("yesno-tdnn", kaldi, tacotron, "these features are what a synthesiser writes", "\"kaldi\"");
    wrong("yesno-tdnn", kaldi, "kind = \"tacotron\"", "ends at 8000 Hz", "");
    let ours = "fft = 2048\nwindow_samples = 2048\nhop_samples = 512";
    let librosa = "kind = \"librosa\"\noutput = \"log-mel\"\nfeatures = 64";
    wrong("ljspeech-32", ours, librosa, "these features are those of a recogniser", "kind = \"tacotron\"");
    let augmented = format!("{ours}\n[data.augmentation]\nnoise = {{ min_db = -90, max_db = -60 }}");
    wrong("ljspeech-32", ours, &augmented, "the recordings are what is to be learnt", "leave it out");
}

#[test]
fn recordings_have_no_keys_of_text() {
    let kept = "corpus = \"yesno\"\n";
    let key = |line: &str| format!("{kept}{line}\n");
    wrong("yesno-tdnn", kept, &key("begin_token_in_source = false"), "no key `begin_token_in_source`", "");
    wrong("yesno-tdnn", kept, &key("filter.too_long = \"drop\""), "`data.filter` has no key `too_long`", "");
    wrong("yesno-tdnn", "kind = \"seconds\"", "kind = \"tokens\"", "no kind `tokens`", "`utterances`");
    wrong("yesno-tdnn", "kind = \"lexicon\"", "kind = \"symbols\"", "no kind `symbols`", "`lexicon`");
    wrong(
        "yesno-tdnn",
        "[data.features]\nkind = \"kaldi\"\nfeatures = 23\n",
        "",
        "lacks `features`",
        "frames",
    );
    wrong("iwslt14-lstm", "max_source_tokens = 51", "max_seconds = 16.7", "no key `max_seconds`", "");
    wrong("iwslt14-lstm", "[data.filter]", "[data.features]\n\n[data.filter]", "no key `features`", "");
}

#[test]
fn folders_and_texts_are_those_of_a_corpus() {
    let strict = "corpus = \"yesno\"\n\n[data.reader]\nkind = \"audio-manifest\"";
    let own = "[data.reader]\nkind = \"audio-manifest\"\nfiles = { train = \"a\", test = \"b\" }";
    wrong(
        "yesno-tdnn",
        strict,
        &format!("{own}\nfolder = \"c\""),
        "a folder holds a corpus",
        "data.reader.files",
    );
    wrong(
        "yesno-tdnn",
        strict,
        &format!("{own}\ntranscript = \"raw\""),
        "one text for each recording",
        "name the corpus",
    );
    wrong("yesno-tdnn", strict, &format!("{strict}\nfolder = \"\""), "`data.reader.folder` is empty", "");
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
