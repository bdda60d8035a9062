//! Each kind of claim needs its keys, and the names in it must exist.

use super::{NAME, findings, one};

#[test]
fn claims_have_the_keys_of_their_kind() {
    for (line, hint) in [
        ("value = 41.02\n", "docs/recipes.md"),
        ("direction = \"higher\"\n", "docs/recipes.md"),
        ("eval = \"test\"\n", "docs/recipes.md"),
        ("decode = \"beam5\"\n", "docs/recipes.md"),
        ("signature = \"nrefs:1|case:lc|eff:no|tok:none|smooth:none\"\n", "docs/recipes.md"),
        ("arm = \"fp32\"\n", "arm = \"any\""),
        ("margin = 0.5\n", "docs/recipes.md"),
    ] {
        let key = line.split(' ').next().unwrap();
        one(line, "", "[[claim]]", &format!("the value claim on bleu lacks `{key}`"), hint);
    }
    one("margin = 0.5\n", "", "\"half a point", "`margin_reason` stands without a `margin`", "");
    let claim = "[[claim]]";
    one("kind = \"value\"\n", "", claim, "`claim.0` lacks `kind`", "What is claimed");
    one("margin_reason = \"half", "extends = \"half", claim, "lacks `margin_reason`", "as wide as it is");
    let row = "spread = \"multi30k-validation\"";
    one(row, "assumed_sigma = 0.5", claim, "lacks `sigma_reason`", "where it is taken from");
    one("statistic = \"single\"", "statistic = \"mean\"", claim, "lacks `n`", "");
    one(
        "statistic = \"single\"",
        "n = 3\nstatistic = \"single\"",
        "3\nstatistic",
        "a single run is not 3",
        "",
    );
    one(
        "statistic = \"single\"\nspread = \"multi30k-validation\"",
        "statistic = \"best\"\nn = 5",
        claim,
        "takes `sigma` or a row, `spread`",
        "",
    );
    for stated in ["sigma = 0.5", row] {
        let both = format!("{stated}\nassumed_sigma = 0.5\nsigma_reason = \"x\"");
        one(row, &both, "0.5\nsigma_reason", "leaves nothing to assume", "");
    }
    let zero = "assumed_sigma = 0.0\nsigma_reason = \"x\"";
    one(row, zero, "0.0\nsigma_reason", "must be greater than 0", "");
    one(
        "margin = 0.5",
        "margin = 0.5\nmargin_of_error = 0.5",
        "0.5\nmargin_reason",
        "instead of a `margin`",
        "",
    );
    one("margin = 0.5", "margin_of_error = 0.0", "0.0\nmargin_reason", "must be greater than 0", "");
    one("margin = 0.5", "margin = -0.5", "-0.5", "must not be negative", "");
    one(
        "margin = 0.5",
        "protocol = \"equal-batch\"\nmargin = 0.5",
        "\"equal-batch\"",
        "has no use for `protocol`",
        "",
    );
    one(
        "source = \"LividWo/Revisit-MMT@dc368d0 README-baseline.md\"",
        "source = \"\"",
        "\"\"",
        "is empty",
        "",
    );
    for key in [
        "baseline = \"fp32\"\n",
        "hardware = \"4 GPUs, model unstated\"\n",
        "protocol = \"equal-batch\"\n",
        "value = 1.53\n",
    ] {
        let name = key.split(' ').next().unwrap();
        let found = if name == "baseline" {
            findings("transformer-base", "baseline = \"fp32\"\nvalue", "value")
        } else {
            findings("transformer-base", key, "")
        };
        let message = format!("the ratio claim on updates-per-second lacks `{name}`");
        assert!(found.to_string().contains(&message), "{found}");
    }
}

#[test]
fn claims_on_a_machine_name_it_and_no_evaluation_set() {
    let machine = "hardware = \"1x GTX 680\"\n";
    let found = findings("deepspeech-mozilla", machine, "");
    assert!(found.to_string().contains("the value claim on latency-ms lacks `hardware`"), "{found}");
    let found = findings("deepspeech-mozilla", machine, &format!("{machine}eval = \"test\"\n"));
    assert!(found.to_string().contains("has no use for `eval`"), "{found}");
}

#[test]
fn claims_name_what_is_there() {
    one(
        "decode = \"beam5\"",
        "decode = \"beam4\"",
        "\"beam4\"",
        "names the search `beam4`",
        "did you mean `beam5`?",
    );
    one(
        "eval = \"test\"",
        "eval = \"tests\"",
        "\"tests\"",
        "names the evaluation set `tests`",
        "did you mean `test`?",
    );
    one("arm = \"fp32\"", "arm = \"fp23\"", "\"fp23\"", "names the arm `fp23`", "did you mean `fp32`?");
    one(
        "baseline = \"fp32\"",
        "baseline = \"mixed\"",
        "\"mixed\"\nbaseline",
        "compares `mixed` with itself",
        "",
    );
    let found = findings(NAME, "arm = \"mixed\"", "arm = \"any\"");
    assert!(found.to_string().contains("a parity claim is about one arm"), "{found}");
}

#[test]
fn an_own_check_says_why_and_is_not_carried_over_as_well() {
    one("kind = \"value\"\n", "kind = \"value\"\nown = \" \"\n", "\" \"", "`claim.0.own` is empty", "");
    one(
        "kind = \"value\"\n",
        "kind = \"value\"\nown = \"why\"\nextends = \"a sibling\"\n",
        "\"why\"",
        "a claim has `own` or `extends`, not both",
        "nobody printed it",
    );
}
