//! `zoo doctor`: findings and exit codes.

use crate::binary::Zoo;

fn state(found: &serde_json::Value, subject: &str) -> String {
    let findings = found["findings"].as_array().unwrap();
    let one = findings.iter().find(|finding| finding["subject"] == subject);
    one.unwrap_or_else(|| panic!("{subject} is not in {found}"))["state"].as_str().unwrap().to_string()
}

#[test]
fn the_machine_is_described_and_every_finding_that_is_not_right_has_a_mend() {
    let zoo = Zoo::new();
    let found = zoo.ends_with(0, &["doctor", "--format", "json"]).json();
    for subject in ["program", "processor", "home", "mirror", "cuda", "cuda driver", "cuda compiler", "wgpu"]
    {
        state(&found, subject);
    }
    assert_eq!(state(&found, "device"), "ok");
    for finding in found["findings"].as_array().unwrap() {
        assert_eq!(finding["state"] != "ok", finding["mend"].is_string(), "{finding}");
    }
    let text = zoo.ends_with(0, &["doctor"]).stdout;
    assert!(text.contains("ok     device"), "{text}");
    assert!(text.contains("fp32, fp16, bf16"), "{text}");
}

#[test]
fn what_was_asked_for_and_is_not_there_is_a_fault() {
    let zoo = Zoo::new();
    // If CUDA is built in, this is more devices than any machine has. If not, the device is not
    // built in.
    let found = zoo.ends_with(8, &["doctor", "--device", "cuda:99", "--format", "json"]).json();
    assert_eq!(state(&found, "device"), "fault");
    let found = zoo.ends_with(4, &["doctor", "--mirror", "no/such/folder", "--format", "json"]).json();
    assert_eq!((state(&found, "mirror").as_str(), state(&found, "device").as_str()), ("fault", "ok"));
    let found = zoo.ends_with(8, &["doctor", "--device", "cpu", "--fp32", "tf32", "--format", "json"]).json();
    assert_eq!(state(&found, "device"), "fault");
    zoo.file("file", "");
    let home = zoo.home().join("file").join("home");
    let found = zoo.run(&["doctor", "--home", home.to_str().unwrap(), "--format", "json"]);
    // The folder above the file is writable, but the home cannot be created.
    assert_eq!(found.code, 4, "{}", found.stdout);
}
