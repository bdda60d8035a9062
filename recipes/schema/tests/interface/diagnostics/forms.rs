//! Short forms: presets, parts, `model.both`, and tables of claims.

use std::path::Path;

use zoo_recipes::{Document, Recipe, Selection, parts};

const HEAD: &str = "[recipe]\nname = \"mine\"\nbase = \"multi30k-transformer-tiny\"\n";

fn load(rest: &str) -> Document {
    let text = format!("{HEAD}{rest}");
    Document::parse(&text, "mine.toml", Path::new("")).unwrap_or_else(|found| panic!("{found}"))
}

fn resolve(rest: &str, arm: Option<&str>) -> Recipe {
    let selection = Selection { arm: arm.map(str::to_owned), ..Selection::default() };
    load(rest).resolve(&selection).unwrap_or_else(|found| panic!("{found}")).recipe
}

/// All errors of a file with the base. The given text starts at line 4.
fn wrong(rest: &str) -> String {
    let text = format!("{HEAD}{rest}");
    match Document::parse(&text, "mine.toml", Path::new("")) {
        Ok(document) => document.check().expect_err("accepted").to_string(),
        Err(found) => found.to_string(),
    }
}

#[track_caller]
fn says(rest: &str, lines: &[&str]) {
    let found = wrong(rest);
    for line in lines {
        assert!(found.contains(line), "{rest}\n{found}\nlacks {line}");
    }
}

const CLAIM: &str = "\n[[claim]]\nkind = \"value\"\nmetric = \"bleu\"\neval = \"test\"\ndecode = \"beam5\"\narm = \"any\"\n\
    signature = \"nrefs:1|case:lc|eff:no|tok:none|smooth:none\"\ndirection = \"higher\"\nmargin = 0.5\nmargin_reason = \"ours\"\n";

#[test]
fn an_arm_is_a_preset_and_what_the_file_states_above_it() {
    let third = |arm: &str| resolve(&format!("[arm]\n{arm}\n"), Some("third")).precision.clone();
    let backoff = third("third = \"mixed-backoff\"");
    assert_eq!(third("third = { preset = \"mixed-backoff\" }"), backoff);
    assert_eq!(third("third = { preset = [\"mixed-backoff\"] }"), backoff);
    let json = serde_json::to_value(backoff).unwrap();
    assert_eq!((&json["compute"], &json["loss_scaling"]["scale_max"]), (&"fp16".into(), &16384.0.into()));
    let less = third("third = { preset = \"mixed-backoff\", precision.loss_scaling.scale_max = 512.0 }");
    let less = serde_json::to_value(less).unwrap();
    assert_eq!(
        (&less["loss_scaling"]["scale_max"], &less["loss_scaling"]["scale_min"]),
        (&512.0.into(), &1.0.into())
    );
    assert_eq!(load("[arm]\nthird = \"fp32\"\n").arms(), ["fp32", "mixed", "third"]);
}

#[test]
fn an_unknown_preset_is_named_with_the_nearest_one() {
    says(
        "[arm]\nmixed = \"mixed-backof\"\n",
        &[
            "mine.toml:5:9: error: there is no preset `mixed-backof` of an arm\n  hint: did you mean `mixed-backoff`?",
        ],
    );
    says(
        "[tier.smoke]\npreset = \"translatoin\"\n",
        &[
            "mine.toml:5:10: error: there is no preset `translatoin` of a tier\n  hint: did you mean `translation`?",
        ],
    );
    says("[arm.mixed]\npreset = 3\n", &["mine.toml:5:10: error: `arm.mixed.preset` is an integer"]);
    says(
        "[arm]\nmixed = 3\n",
        &["mine.toml:5:9: error: `arm.mixed` is an integer; expected a table, or the name of a preset"],
    );
}

#[test]
fn what_a_preset_states_wrongly_for_a_recipe_is_shown_in_the_preset() {
    // Frames of speech in a recipe of text.
    says(
        "[tier.smoke]\npreset = \"speech-synthesis\"\n",
        &["recipes/parts/tier/speech-synthesis.toml:", "error:"],
    );
}

#[test]
fn a_part_lies_above_the_base_and_below_the_file() {
    let part = parts().iter().find(|part| part.name == "model/jasper-10x5").expect("it is used");
    assert!(part.text.contains("kind = \"acoustic\""));
    let text = |of: &str| {
        format!(
            "[recipe]\nname = \"mine\"\nbase = \"wave2letter\"\nuse = {of}\n[model.encoder]\nseed_dropout = 1\n"
        )
    };
    let parse = |of: &str| Document::parse(&text(of), "mine.toml", Path::new(""));
    // The file's own unknown key is reported at its own place. The part lies below it.
    let found = parse("\"model/jasper-10x5\"").unwrap().check().unwrap_err().to_string();
    assert!(found.contains("mine.toml:6:1: error: `model.encoder` has no key `seed_dropout`"), "{found}");
    let plain = text("[\"model/jasper-10x5\"]").replace("[model.encoder]\nseed_dropout = 1\n", "");
    let document = Document::parse(&plain, "mine.toml", Path::new("")).unwrap();
    let model = |document: &Document| document.resolve(&Selection::default()).unwrap().recipe.block("model");
    let layers = |document: &Document| model(document)["encoder"]["layer"].clone();
    assert_eq!(layers(&document), layers(&Document::load("jasper-10x5").unwrap()));

    let slip = parse("[\"model/jasper-10x\"]").unwrap_err().to_string();
    assert!(slip.contains("mine.toml:4:8: error: there is no part `model/jasper-10x`"), "{slip}");
    assert!(slip.contains("did you mean `model/jasper-10x5`?"), "{slip}");
    let preset = parse("\"arm/fp32\"").unwrap_err().to_string();
    assert!(preset.contains("`arm/fp32` is a preset of an arm or tier"), "{preset}");
    assert!(preset.contains("hint: [arm.NAME] preset = \"fp32\""), "{preset}");
    let number = parse("[1]").unwrap_err().to_string();
    assert!(number.contains("`recipe.use` is an integer; expected names of parts"), "{number}");
}

#[test]
fn every_part_begins_with_its_name_and_says_what_it_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
    let page = std::fs::read_to_string(page).unwrap();
    for part in parts() {
        let mut lines = part.text.lines();
        assert_eq!(lines.next(), Some(format!("# zoo part {}", part.name).as_str()));
        assert_eq!(lines.next(), Some("#"), "{}", part.name);
        assert!(lines.next().is_some_and(|line| line.starts_with("# ")), "{}", part.name);
        let is_preset = part.name.starts_with("arm/") || part.name.starts_with("tier/");
        assert!(
            !is_preset || page.contains(&format!("| `{}` |", part.name)),
            "{} is not documented",
            part.name
        );
    }
}

#[test]
fn what_others_sent_is_read_with_the_parts_that_came_with_it() {
    let document = load("[arm]\nthird = \"mixed-backoff\"\n");
    let texts = document.base_texts();
    assert!(texts.iter().any(|text| text.starts_with("# zoo part arm/mixed-backoff\n")), "{texts:?}");
    let sealed = Document::parse_sealed(document.text(), "mine.toml", texts).unwrap();
    assert_eq!(sealed.hash(None, &[]).unwrap(), document.hash(None, &[]).unwrap());
    assert_eq!(sealed.base_texts(), texts);
    // The text that came with the recipe replaces the embedded one.
    let changed: Vec<String> =
        texts.iter().map(|text| text.replace("step_window = 2000", "step_window = 7")).collect();
    let sealed = Document::parse_sealed(document.text(), "mine.toml", &changed).unwrap();
    let third = sealed.resolve(&Selection::arm("third")).unwrap();
    assert!(third.toml.contains("step_window = 7"), "{}", third.toml);
    // Parts cannot change what was published by whom.
    let hostile: Vec<String> =
        texts.iter().map(|text| text.replace("[precision]", "[recipe]\nname = \"x\"\n[precision]")).collect();
    let found = Document::parse_sealed(document.text(), "mine.toml", &hostile).unwrap_err().to_string();
    assert!(
        found.contains("recipes/parts/arm/mixed-backoff.toml") && found.contains("a part has no `recipe`"),
        "{found}"
    );
}

#[test]
fn both_is_below_encoder_and_decoder_in_its_layer() {
    let model = |rest: &str| {
        let json = resolve(rest, None).block("model");
        (json["encoder"]["layers"].as_u64(), json["decoder"]["layers"].as_u64())
    };
    assert_eq!(model("[model.both]\nlayers = 2\n"), (Some(2), Some(2)));
    assert_eq!(model("[model.both]\nlayers = 2\n[model.decoder]\nlayers = 1\n"), (Some(2), Some(1)));
    says("[model]\nboth = 1\n", &["mine.toml:5:8: error: `model.both` is an integer; expected a table"]);
    says(
        "[model.both]\nlayrs = 1\n",
        &["mine.toml:5:1: error: `model.encoder` has no key `layrs`\n  hint: did you mean `layers`?"],
    );
    says(
        "[model.both]\nkind = \"transformer\"\n[model.decoder]\nkind = \"recurrent\"\n",
        &[
            "mine.toml:7:8: error: `model.decoder` is of kind `recurrent`, but `model.both` is of kind `transformer`",
        ],
    );
}

#[test]
fn rows_are_claims_and_stand_at_their_lines() {
    let rest = format!(
        "[claims]\nsource = \"a document\"\n{CLAIM}columns = [\"value\", \"line\"]\nrows = [\n    [41.0, 7],\n    [42.0, \"8-9\"],\n]\n\
         [[claim]]\nkind = \"diverges\"\nmetric = \"loss\"\narm = \"mixed\"\nsource = \"another\"\n"
    );
    let document = load(&rest);
    document.check().unwrap_or_else(|found| panic!("{found}"));
    let claims = resolve(&rest, None).claim.clone();
    let shown: Vec<(Option<f64>, &str)> =
        claims.iter().map(|claim| (claim.value, claim.source.as_str())).collect();
    assert_eq!(shown, [(Some(41.0), "a document:7"), (Some(42.0), "a document:8-9"), (None, "another")]);
    let text = document.text();
    let line = |needle: &str| 1 + text.lines().position(|line| line.contains(needle)).unwrap();
    for (at, needle) in ["[41.0, 7]", "[42.0, \"8-9\"]"].iter().enumerate() {
        assert_eq!(document.claim_origin(at).to_string(), format!("mine.toml:{}:5", line(needle)));
    }
    assert_eq!(document.claim_count(), 3);
    // An error of a value in a row is shown at its cell.
    let wrong = wrong(&rest.replace("[42.0,", "[\"x\","));
    assert!(
        wrong.contains(&format!("mine.toml:{}:6: error: `claim.1.value` is a string", line("[42.0"))),
        "{wrong}"
    );
}

#[test]
fn claims_of_a_base_and_what_they_share_are_not_inherited() {
    let document = load("[train]\nseed = 3\n");
    assert!(document.resolve(&Selection::default()).unwrap().recipe.claim.is_empty());
    let text = format!("[recipe]\nname = \"mine\"\nbase = \"transformer-big-nvidia\"\n{CLAIM}value = 3.0\n")
        .replace("beam5", "beam4");
    let found = Document::parse(&text, "mine.toml", Path::new("")).unwrap().check().unwrap_err().to_string();
    assert!(found.contains("`claim.0` lacks `source`"), "{found}");
}

#[test]
fn tables_of_claims_are_checked_where_they_are_written() {
    let claim = |more: &str| format!("{CLAIM}source = \"x\"\n{more}");
    says(
        &claim("columns = [\"valeu\"]\nrows = [[1.0]]\n"),
        &["mine.toml:16:12: error: a claim has no key `valeu`\n  hint: did you mean `value`?"],
    );
    says(
        &claim("columns = [\"value\", \"n\"]\nrows = [[1.0]]\n"),
        &[
            "mine.toml:17:9: error: the row has 1 cells, but `columns` lists 2\n  hint: a cell each for value, n",
        ],
    );
    says(
        &claim("columns = [\"arm\"]\nrows = [[\"fp32\"]]\n"),
        &["mine.toml:16:12: error: `arm` is a column, and stated beside it"],
    );
    says(&claim("rows = [[1.0]]\n"), &["mine.toml:16:1: error: the claim has `rows`, but no `columns`"]);
    says(
        &claim("columns = [\"value\"]\n"),
        &["mine.toml:16:1: error: the claim has `columns`, but no `rows`"],
    );
    says(
        &claim("columns = [\"value\"]\nrows = [1.0]\n"),
        &["mine.toml:17:9: error: the row is a float; expected an array"],
    );
    says(&claim("columns = [\"value\"]\nrows = 1\n"), &["mine.toml:17:8: error: `rows` is an integer"]);
    says(&claim("columns = \"value\"\nrows = [[1.0]]\n"), &["mine.toml:16:11: error: `columns` is a string"]);
    says(&claim("value = 1.0\nline = true\n"), &["mine.toml:17:8: error: `line` is a boolean"]);
    says(
        &format!("{CLAIM}value = 1.0\nline = 3\n"),
        &["mine.toml:16:1: error: `line` is a line of the source, and the claim has none"],
    );
    says(
        &format!("[claims]\nsorce = \"x\"\n{CLAIM}value = 1.0\n"),
        &["mine.toml:5:1: error: `claims` has no key `sorce`\n  hint: did you mean `source`?"],
    );
    says(
        "[claims]\nsource = \"x\"\n",
        &["mine.toml:5:1: error: `[claims]` is what claims share, and the file has no [[claim]]"],
    );
    says("[tier.smoke]\nclaims = {}\n", &["`claims` cannot stand in `tier.smoke`"]);
}

#[test]
fn what_a_short_file_stands_for_has_a_limit() {
    let rows = "[1.0], ".repeat(1000);
    let note = "x".repeat(20_000);
    says(
        &format!("{CLAIM}source = \"x\"\nnote = \"{note}\"\ncolumns = [\"value\"]\nrows = [{rows}]\n"),
        &["mine.toml:5:1: error: the claims of the file would take up more than 16777216 bytes"],
    );
    let text = format!("{HEAD}[arm]\na1 = \"mixed-backoff\"\na2 = \"mixed-backoff\"\n");
    let part = "# zoo part arm/mixed-backoff\n# ".to_owned() + &"x".repeat(3 << 20);
    let found = Document::parse_sealed(&text, "mine.toml", &[part]).unwrap_err().to_string();
    let says = "mine.toml:6:6: error: the parts that the recipe uses have more than 4194304 bytes together";
    assert!(found.contains(says), "{found}");
}
