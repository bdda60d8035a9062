//! Keys, types and choices that the schema does not have.

use std::path::Path;

use zoo_recipes::Document;

use super::{NAME, one, text};

#[test]
fn unknown_keys_are_named_with_the_nearest_valid_one() {
    one(
        "zero_padding",
        "zero_pading",
        "zero_pading",
        "`model.embedding` has no key `zero_pading`",
        "`zero_padding`?",
    );
    one("[loss]", "[losss]", "losss]", "a recipe has no key `losss`", "did you mean `loss`?");
    one(
        "epsilon_place",
        "momentum = 0.9\nepsilon_place",
        "momentum",
        "`train.optimizer` has no key",
        "of kind `sgd`",
    );
    one("[arm.mixed.precision]", "[arm.mixed.precison]", "precison", "a recipe has no key", "`precision`?");
    one(
        "merges = 10000",
        "merges = 10000\nzzz = 1",
        "zzz",
        "has no key `zzz`",
        "the keys here: `kind`, `merges`",
    );
}

#[test]
fn wrong_types_are_named() {
    one("merges = 10000", "merges = \"many\"", "\"many\"", "is a string; expected an integer", "");
    one("merges = 10000", "merges = 1e4", "1e4", "is a float; expected an integer", "");
    one(
        "scale = true",
        "scale = 1",
        "1\nzero",
        "`model.embedding.scale` is an integer; expected a boolean",
        "",
    );
    one("lr = 0.005", "lr = \"0.005\"", "\"0.005\"", "is a string; expected a number", "");
    one("lr = 0.005", "lr = inf", "inf", "expected a finite number", "");
    one("lr = 0.005", "lr = nan", "nan", "expected a finite number", "");
    one(
        "normalize = [\"lowercase\"",
        "normalize = [7",
        "7,",
        "`data.tokenizer.normalize.0` is an integer",
        "",
    );
    one(
        "patience = { epochs = 10 }",
        "patience = 10",
        "10\nlog_every",
        "is an integer; expected a table",
        "",
    );
    one("lines = 1014", "lines = -1", "-1\n", "is -1; it must be 0 to 4294967295", "");
    one("tags = [", "tags = 1 #", "1 #", "`recipe.tags` is an integer; expected an array", "");
    one("name = \"multi", "name = 1 # \"multi", "1 # ", "`recipe.name` is an integer", "");
    assert!(
        Document::parse(
            &text(NAME).replace("lr = 0.005", "lr = 1"),
            "multi30k-transformer-tiny.toml",
            Path::new("")
        )
        .unwrap()
        .check()
        .is_ok()
    );
}

#[test]
fn missing_keys_are_named_at_their_table_with_their_meaning() {
    one(
        "merges = 10000\n",
        "",
        "tokenizer]",
        "`data.tokenizer` lacks `merges`",
        "Number of merge operations",
    );
    one(
        "label_smoothing = 0.1\n",
        "",
        "loss]",
        "`loss` lacks `label_smoothing`",
        "Mass taken from the true class",
    );
    one(
        "[data.batching]\nkind = \"tokens\"\n",
        "[data.batching]\n",
        "batching]",
        "lacks its `kind`",
        "`sentences`, `tokens`",
    );
    one("status = \"public\"\n", "", "recipe]", "`recipe` lacks `status`", "Can anybody get the data?");
}

#[test]
fn unknown_words_are_named_with_the_nearest_choice() {
    one(
        "norm = \"post\"",
        "norm = \"pst\"",
        "\"pst\"",
        "`model.encoder.norm` does not accept `pst`",
        "did you mean `post`?",
    );
    one("kind = \"subword-nmt\"", "kind = \"subwordnmt\"", "\"subwordnmt\"", "has no kind", "`subword-nmt`?");
    one(
        "\"moses-tokenize\"",
        "\"moses-tokenise\"",
        "\"moses-tokenise\"",
        "does not accept",
        "`moses-tokenize`?",
    );
}
