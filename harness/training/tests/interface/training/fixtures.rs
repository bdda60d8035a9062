//! Schedules, loss scalers and update rules agree with independent Python (`tests/reference/`).

use std::path::PathBuf;

use zoo_recipes::ScheduleSpec;
use zoo_training::traces::{RuleTraces, ScalerTrace, ScheduleTrace};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn schedules_equal_the_reference() {
    let traces = ScheduleTrace::read_all(&fixture("schedules.json")).unwrap();
    assert!(traces.len() >= 28);
    for trace in traces {
        assert!(trace.follow().unwrap() >= 10, "{}", trace.name);
    }
}

#[test]
fn loss_scalers_equal_the_reference() {
    let traces = ScalerTrace::read_all(&fixture("scalers.json")).unwrap();
    assert!(traces.len() >= 16);
    for trace in traces {
        assert_eq!(trace.follow().unwrap() as u64, trace.steps + 1, "{}", trace.name);
    }
}

#[test]
fn update_rules_equal_the_reference() {
    let traces = RuleTraces::read(&fixture("optimizers.safetensors")).unwrap();
    assert!(traces.rules.len() >= 25);
    for name in traces.rules.keys() {
        assert!(traces.follow(name).unwrap() > 0, "{name}");
    }
}

/// A planted difference must make the comparison fail.
#[test]
fn a_planted_difference_is_named() {
    let mut schedules = ScheduleTrace::read_all(&fixture("schedules.json")).unwrap();
    let trace = schedules.iter_mut().find(|t| matches!(t.schedule, ScheduleSpec::Fixed { .. })).unwrap();
    trace.rates[3].1 *= 1.0 + 1e-9;
    let said = trace.follow().unwrap_err();
    assert!(said.contains(&format!("update {}", trace.rates[3].0)), "{said}");

    let text = String::from_utf8(fixture("scalers.json")).unwrap();
    let changed = text.replacen("[1, 8192.0]", "[2, 8192.0]", 1);
    assert_ne!(text, changed);
    let said: Vec<String> = (ScalerTrace::read_all(changed.as_bytes()).unwrap().iter())
        .filter_map(|trace| trace.follow().err())
        .collect();
    assert!(said.len() == 1 && said[0].contains("step 1: 8192, not 16384"), "{said:?}");

    let mut bytes = fixture("optimizers.safetensors");
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let rule = json.as_object().unwrap().keys().find_map(|key| key.strip_suffix("/weights")).unwrap();
    let at = json[format!("{rule}/weights")]["data_offsets"][0].as_u64().unwrap() as usize;
    // A high bit of the first weight's mantissa.
    bytes[8 + header + at + 2] ^= 0x10;
    let said = RuleTraces::read(&bytes).unwrap().follow(rule).unwrap_err();
    assert!(said.contains("step 0, weight 0"), "{said}");
}
