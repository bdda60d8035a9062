//! Text classification recipes: texts, words, layers, and losses that fit them.

use super::findings;

#[track_caller]
fn wrong(from: &str, to: &str, message: &str) {
    wrong_in("imdb-fasttext-keras", from, to, message);
}

#[track_caller]
fn wrong_in(name: &str, from: &str, to: &str, message: &str) {
    let found = findings(name, from, to);
    assert!(found.iter().any(|one| one.message.contains(message)), "{message}\nfound:\n{found}");
}

#[test]
fn sizes_and_rates_are_within_their_ranges() {
    wrong("texts = 32", "texts = 0", "must be at least 1");
    wrong("positions = 400", "positions = 0", "must be at least 1");
    wrong("words = 20000", "words = 4", "at least 5 are needed");
    wrong("width = 50", "width = 0", "must be at least 1");
    wrong("bound = 0.05", "bound = -1.0", "must not be negative");
    wrong_in("trec-cnn-kim", "vocabulary_rows = 8765", "vocabulary_rows = 0", "must be at least 1");
    wrong_in("imdb-cnn-keras", "rate = 0.2", "rate = 1.0", "less than 1");
    wrong_in("trec-cnn-kim", "row_norm = 3.0", "row_norm = 0.0", "must be greater than 0");
    wrong_in("trec-cnn-kim", "kernels = [3, 4, 5]", "kernels = []", "`kernels` is empty");
}

#[test]
fn the_last_layer_has_the_outputs_of_the_loss() {
    wrong("units = 1", "units = 2", "the last layer has 2 units, and the loss needs 1 for 2 classes");
    wrong("kind = \"binary-cross-entropy\"", "kind = \"cross-entropy\"", "the loss needs 2 for 2 classes");
    wrong_in("trec-cnn-kim", "units = 6", "units = 5", "the last layer has 5 units, and the loss needs 6");
    let binary = "`binary-cross-entropy` is of 2 classes, and `data.classes` is 6";
    wrong_in("trec-cnn-kim", "kind = \"cross-entropy\"", "kind = \"binary-cross-entropy\"", binary);
}

#[test]
fn layers_fit_one_another() {
    let average = "{ kind = \"over-positions\", of = \"average\" },";
    wrong(
        average,
        "",
        "`dense` needs a row, its input is 400 positions of 50: put `over-positions` before it",
    );
    wrong(average, &average.repeat(2), "`over-positions` needs positions, its input is a row of 50");
    wrong_in("imdb-cnn-keras", "kernel = 3", "kernel = 401", "a kernel of 401 is longer than its input");
}

#[test]
fn texts_are_in_one_place_and_have_their_splits() {
    let reader = |reader: &str| format!("[data]\nreader = {{ {reader} }}\n");
    let with = |to: &str, message: &str| wrong("[data]\n", &reader(to), message);
    with("kind = \"labelled-lines\", files = { train = \"a.txt\" }", "both `data.corpus` and `data.reader`");
    with("kind = \"labelled-lines\", files = { train = \"a.txt\" }", "names the split `test`");
    with("kind = \"text-folder\", folders = { test = \"a\" }", "the reader has no split `train` to train on");
    with(
        "kind = \"marked-words\", train = 8, test = 8, seed = 1",
        "the reader makes its data; no corpus is read",
    );
    wrong_in(
        "trec-cnn-kim",
        "split = \"dev\", texts",
        "split = \"train\", texts",
        "is the split that is trained on",
    );
    wrong_in("trec-cnn-kim", "texts = 552", "texts = 0", "must be at least 1");
    let files = "files = { train = \"a.txt\", test = \"b.txt\" }";
    let own = format!(
        "[data]\nreader = {{ kind = \"labelled-lines\", {files} }}\nheld_out = {{ split = \"test\", texts = 9, seed = 1 }}\n"
    );
    wrong("[data]\n", &own, "`test` is a split of the reader, too");
}

#[test]
fn parts_of_a_cross_validation_are_whole_and_have_names_of_their_own() {
    let folds = |from: &str, to: &str, message: &str| wrong_in("mr-cnn-kim", from, to, message);
    folds("count = 10", "count = 1", "there must be 2 to 20 parts");
    folds("tested = \"all\"", "tested = \"train\"", "`train` is the split that is trained on");
    folds("held_out = \"dev\"", "held_out = \"all\"", "`all` is the split of the held-out texts, too");
    folds("trained = 0.9", "trained = 1.5", "data.folds.trained");
    folds("order = \"shuffled\", tested", "order = \"sorted\", tested", "sorted");
}

#[test]
fn weights_are_taken_from_another_recipe_and_each_has_one_place() {
    let transfer = |from: &str, to: &str, message: &str| wrong_in("imdb-wkt2", from, to, message);
    transfer("recipe = \"lstm-wkt2-fp32\"", "recipe = \"\"", "`train.transfer.recipe` is empty");
    transfer("recipe = \"lstm-wkt2-fp32\"", "recipe = \"imdb-wkt2\"", "weights from its own run");
    let one = "{ from = \"layers\", to = \"layers.1.layers\" }";
    for to in ["layers.1.layers", "layers.1", "layers.1.layers.0.weight_hh"] {
        let two = format!("{one}, {{ from = \"embedding\", to = \"{to}\" }}");
        transfer(one, &two, &format!("`{to}` is taken twice"));
    }
    transfer("to = \"layers.1.layers\"", "to = \"\"", "is empty");
    let block = "[train.transfer]\nrecipe = \"lstm-wkt2-fp32\"\narm = \"fp32\"\nparameters = ";
    transfer(&format!("{block}[{one}]\n"), "", "the words are those of the run that `train.transfer` names");
}

#[test]
fn the_layers_and_words_of_a_language_model_are_within_their_ranges() {
    let of = |from: &str, to: &str, message: &str| wrong_in("imdb-wkt2", from, to, message);
    of("layers = 3, candidate", "layers = 0, candidate", "there must be a layer at least");
    of("units = 896", "units = 0", "must be at least 1");
    of("candidate_dropout = 0.0", "candidate_dropout = 1.0", "less than 1");
    of("dropout = 0.0, forget", "dropout = -0.1, forget", "at least 0 and less than 1");
    of("epsilon = 1e-12", "epsilon = 0.0", "must be greater than 0");
    of("words = 33000", "words = 0", "must be at least 1");
    of("unknown = \"<unk>\"", "unknown = \"\"", "`data.tokenizer.unknown` is empty");
    wrong_in("sst-wkt2", "element_dropout = 0.3", "element_dropout = 1.0", "less than 1");
}
