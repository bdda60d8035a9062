//! Language modelling recipes: text, units, windows, and models that read them.

use super::findings;

const NAME: &str = "ptb-lstm-pytorch-tied";

#[track_caller]
fn wrong(from: &str, to: &str, message: &str) {
    let found = findings(NAME, from, to);
    assert!(found.iter().any(|one| one.message.contains(message)), "{message}\nfound:\n{found}");
}

#[test]
fn sizes_and_rates_are_within_their_ranges() {
    wrong("rows = 20", "rows = 0", "must be at least 1");
    wrong("steps = 35, last", "steps = 0, last", "must be at least 1");
    wrong("size = 10000", "size = 1", "there must be 2 units");
    wrong("dropout = 0.2", "dropout = 1.5", "1.5");
    wrong("width = 200", "width = 100", "a tied softmax needs `width` 100 equal to `units` 200");
    wrong("embedding_bound = 0.1", "embedding_bound = 0.0", "embedding_bound");
    wrong("max_epochs = 6", "max_epochs = 6\nbatches_per_update = 2", "needs one batch in an update");
}

#[test]
fn the_text_is_in_one_place_and_has_its_splits() {
    let reader = |reader: &str| format!("[data]\nreader = {{ kind = \"text\", {reader} }}\n");
    let with = |to: &str, message: &str| wrong("[data]\n", &reader(to), message);
    with("files = { train = \"a.txt\" }", "both `data.corpus` and `data.reader.files`");
    with("training_share = 1.0", "it is a share between 0 and 1");
    // The corpus's test set is not a split of a text that is cut in two.
    with("training_share = 0.9", "split");
    wrong(
        "[data]\n",
        "[data]\nunit = { kind = \"word\", end_of_line = \"two words\" }\n",
        "must be one word",
    );
}

#[test]
fn a_transformer_reads_windows_within_its_context_and_carries_no_state() {
    let lstm = "kind = \"lstm\"\nwidth = 200\nunits = 200\nlayers = 2\ntied = true\ndropout = 0.2\nbiases = \"two\"\n\
                embedding_bound = 0.1\nsoftmax_bias_bound = 0.0";
    let gpt = |heads: u32| {
        format!(
            "kind = \"gpt\"\nwidth = 200\nlayers = 2\nheads = {heads}\ncontext = 32\ndropout = 0.0\ninit_std = 0.02\n\
             epsilon = 1e-5"
        )
    };
    wrong(lstm, &gpt(4), "a Transformer has no state to carry");
    wrong(lstm, &gpt(4), "a window of 35 units is longer than the model's context, 32");
    wrong(lstm, &gpt(3), "3 heads do not divide a width of 200");
}

#[test]
fn a_sampled_softmax_whole_lines_and_a_list_have_what_they_need() {
    let wrong = |from: &str, to: &str, message: &str| {
        let found = findings("lstm-2048-512-1b", from, to);
        assert!(found.iter().any(|one| one.message.contains(message)), "{message}\nfound:\n{found}");
    };
    wrong("sampled = 8192", "sampled = 0", "must be at least 1");
    wrong("draws = 8", "draws = 5", "5 draws do not divide 2048 rows");
    wrong("projection = { width = 512", "projection = { width = 0", "must be at least 1");
    wrong("initial_accumulator = 1.0", "initial_accumulator = 0.0", "must be greater than 0");
    wrong("factor = 8.0", "factor = 0.0", "must be greater than 0");
    wrong(", factor = 8.0", "", "the group is neither scaled nor clipped");
    wrong("\"softmax\", factor", "\"layers\", factor", "two groups are of `layers`");
    wrong("\"softmax\", factor", "\"layers.0\", factor", "two groups are of `layers.0`");
    wrong("log_every = 100", "log_every = 100\nclip_norm = 1.0", "says how each group's gradient is clipped");
    wrong("ema = 0.999, ", "", "`ema_of` says what `train.checkpoint.ema` averages");
    let unit = |unit: &str| format!("[data]\nunit = {{ {unit} }}\n");
    let lines = "need a word at the end of each line";
    wrong("[data]\n", &unit("kind = \"character\""), lines);
    wrong("[data]\n", &unit("kind = \"character\""), "a list of units is one of words");
    wrong(
        "[data]\n",
        "[data]\nvocabulary = { order = \"frequency\" }\n",
        "a list has an order: `order` must be \"appearance\"",
    );
    wrong("[data]\n", "[data]\nvocabulary = { least_count = 3 }\n", "a list is not counted");
    wrong("[data]\n", "[data]\nvocabulary = { of = \"training\" }\n", "draws low numbers most often");
    wrong(
        "[data]\n",
        "[data]\nreader = { kind = \"text\", training_share = 0.5 }\n",
        "a list is a split or file of its own",
    );
}
