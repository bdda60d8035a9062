//! `zoo bench` by the real binary: alternating arms, consistent numbers, and generated text without
//! data.

use serde_json::Value;

use crate::binary::Zoo;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn arms_take_turns_and_their_numbers_belong_together() {
    let zoo = Zoo::new();
    let call = ["bench", "reversal-transformer", "--tier", "smoke", "--steps", "8", "--format", "json"];
    let found = zoo.ends_with(0, &call).json();
    assert_eq!((&found["data"], &found["tier"]), (&"real".into(), &"smoke".into()));
    let arms = found["arms"].as_array().unwrap();
    assert_eq!(arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["fp32", "mixed"]);
    for arm in arms {
        let laps = arm["laps"].as_array().unwrap();
        let updates: u64 = laps.iter().map(|lap| lap["updates"].as_u64().unwrap()).sum();
        assert_eq!(updates, 8, "{arm}");
        let speed = &arm["tokens_per_second"];
        let (low, median, high) = (number(&speed["low"]), number(&speed["median"]), number(&speed["high"]));
        assert!(0.0 < low && low <= median && median <= high, "{speed}");
        // Sixteen pairs of two to six symbols and an end token.
        let tokens = number(&arm["tokens_per_update"]);
        assert!((96.0..=224.0).contains(&tokens), "{tokens}");
        assert!(
            number(&arm["operations_per_second"]["median"])
                > 6.0 * number(&arm["parameters"]) * median / 100.0
        );
        let split = |part: &str| number(&arm["split"][format!("{part}_seconds")]);
        let parts = split("forward") + split("backward") + split("update") + split("rest");
        let step = number(&arm["seconds_per_update"]["median"]);
        assert!((parts / step - 1.0).abs() < 1e-6, "{arm}");
        assert!((split("data") * number(&arm["split"]["data_ahead"]) / step - 1.0).abs() < 1e-6, "{arm}");
        let margin = &found["data_margin"];
        let made = 1.0 / split("data");
        assert!(
            number(&margin["times"]) <= made * number(&arm["seconds_per_update"]["low"]) * (1.0 + 1e-9),
            "{margin}"
        );
        if margin["arm"] == arm["arm"] {
            assert!((number(&margin["made_per_second"]) / made - 1.0).abs() < 1e-6, "{margin}");
        }
        let roofline = |part: &str| number(&arm["roofline"][part]);
        let reached = roofline("product_share") * roofline("product_operations_per_second")
            / number(&arm["operations_per_second"]["median"]);
        assert!((reached - 1.0).abs() < 1e-6, "{arm}");
        for positive in [split("data"), split("forward"), split("backward"), split("update")] {
            assert!(positive > 0.0, "{arm}");
        }
        assert!(roofline("copy_bytes_per_second") > 0.0 && roofline("update_share") > 0.0, "{arm}");
    }
    let speed_up = &found["speed_ups"][0];
    assert_eq!((&speed_up["arm"], &speed_up["baseline"]), (&"mixed".into(), &"fp32".into()));
    assert!(number(&speed_up["speed_up"]["ratio"]) > 0.0);
    assert!(!zoo.home().join("ledger.jsonl").exists(), "nothing is recorded");
}

#[test]
fn text_that_is_not_there_is_generated_and_one_arm_needs_no_other() {
    let zoo = Zoo::new();
    let call = [
        "bench",
        "multi30k-transformer-tiny",
        "--arms",
        "fp32",
        "--steps",
        "1",
        "--offline",
        "--format",
        "json",
    ];
    let found = zoo.ends_with(0, &call).json();
    assert_eq!((&found["data"], &found["speed_ups"]), (&"generated".into(), &Value::Array(vec![])));
    // Two batches of at most 4,096 tokens of the longer side.
    let tokens = number(&found["arms"][0]["tokens_per_update"]);
    assert!((8_000.0..=16_400.0).contains(&tokens), "{tokens}");
}

#[test]
fn a_shape_makes_full_batches() {
    let zoo = Zoo::new();
    let call = [
        "bench",
        "reversal-transformer",
        "--arms",
        "mixed",
        "--shape",
        "4x6",
        "--steps",
        "2",
        "--format",
        "json",
    ];
    let found = zoo.ends_with(0, &call).json();
    let arm = &found["arms"][0];
    assert_eq!((&found["data"], number(&arm["tokens_per_update"])), (&"4x6".into(), 48.0));
    assert_eq!(number(&arm["vocabulary"]), 14.0);
    assert!(arm["split"]["data_seconds"].is_null(), "nobody reads such batches");
    let call = ["bench", "reversal-transformer", "--shape", "4x6", "--steps", "1", "--format", "csv"];
    let rows = zoo.ends_with(0, &call).stdout;
    assert!(rows.starts_with("arm,products,batches,") && rows.contains("fp32,fp32,4x6,"), "{rows}");
    assert!(
        rows.contains(",forward_ms,") && rows.lines().count() == 3,
        "all columns are in one table\n{rows}"
    );
}

#[test]
fn speeds_are_counted_in_the_unit_of_the_task() {
    let zoo = Zoo::new();
    let heads = |recipe: &str, shape: &str| {
        let call = ["bench", recipe, "--arms", "fp32", "--shape", shape, "--steps", "1", "--format", "csv"];
        zoo.ends_with(0, &call).stdout.lines().next().unwrap_or_default().to_owned()
    };
    let text = heads("reversal-transformer", "4x6");
    assert!(text.contains(",tokens_an_update,seconds_an_update,tokens/s,"), "{text}");
    let pictures = heads("mnist-mlp-keras", "8x28");
    assert!(pictures.contains(",pictures_an_update,seconds_an_update,pictures/s,"), "{pictures}");
    let call = ["bench", "mnist-mlp-keras", "--arms", "fp32", "--shape", "8x28", "--steps", "1"];
    let found = zoo.ends_with(0, &[&call[..], &["--format", "json"]].concat()).json();
    assert_eq!((&found["unit"], number(&found["arms"][0]["tokens_per_update"])), (&"pictures".into(), 8.0));
}

/// Largest batch of the mixed arm of the smallest recipe within a memory limit.
#[cfg(target_os = "linux")]
fn largest(zoo: &Zoo, memory: &str) -> Value {
    let mut call =
        vec!["bench", "reversal-transformer", "--tier", "smoke", "--arms", "mixed", "--threads", "2"];
    call.extend(["--shape", "8x56", "--max-batch", "--memory", memory, "--format", "json"]);
    zoo.ends_with(0, &call).json()["arms"][0].clone()
}

#[cfg(target_os = "linux")]
#[test]
fn the_largest_batch_fits_and_grows_with_the_memory() {
    let zoo = Zoo::new();
    let (none, small, large) = (largest(&zoo, "10MB"), largest(&zoo, "80MB"), largest(&zoo, "160MB"));
    assert_eq!((&none["sentences"], &none["too_many"]), (&Value::Null, &1.into()));
    for (found, limit) in [(&small, 80e6), (&large, 160e6)] {
        let (fits, too_many) = (number(&found["sentences"]), number(&found["too_many"]));
        assert!(fits < too_many && too_many - fits <= (fits / 16.0).max(1.0), "{found}");
        assert_eq!(
            (&found["bound"], number(&found["largest"]["tokens"])),
            (&"memory".into(), fits * 2.0 * 56.0)
        );
        assert!(number(&found["largest"]["memory_bytes"]) <= limit, "{found}");
        assert!(number(&found["largest"]["seconds"]) > 0.0, "{found}");
    }
    assert!(number(&small["sentences"]) < number(&large["sentences"]), "{small} {large}");
    assert!(std::fs::read_dir(zoo.home()).unwrap().next().is_none(), "nothing is kept");
}

#[test]
fn kernels_of_a_cpu_are_refused() {
    let zoo = Zoo::new();
    let call = ["bench", "reversal-transformer", "--tier", "smoke", "--kernels", "--device", "cpu"];
    zoo.ends_with(8, &call).says("--kernels needs a GPU");
}

#[test]
fn an_arm_or_shape_that_is_not_there_is_named() {
    let zoo = Zoo::new();
    let ended = zoo.ends_with(2, &["bench", "reversal-transformer", "--shape", "64"]);
    assert!(ended.stderr.contains("64x56"), "{}", ended.stderr);
    zoo.ends_with(2, &["bench", "mnist-mlp-keras", "--shape", "8x7"]).says("has 28 rows");
    zoo.ends_with(2, &["bench", "reversal-transformer", "--arms", "fp64"]).says("has no arm fp64");
    let ended = zoo.ends_with(2, &["bench", "reversal-transformer", "--max-batch", "--memory", "80"]);
    assert!(ended.stderr.contains("600MB"), "{}", ended.stderr);
    let ended = zoo.ends_with(2, &["bench", "reversal-transformer", "--memory", "80MB"]);
    assert!(ended.stderr.contains("--max-batch"), "{}", ended.stderr);
}
