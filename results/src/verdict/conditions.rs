//! The claim's own conditions. If they are not met, the numbers are not comparable.

use zoo_recipes::{ClaimSpec, DIRECT, Direction};

use super::evidence::{Evidence, Precision};
use super::rules::Rules;
use crate::metrics::Entry;

/// Direction in which the metric is better: the claim's, else the metric registry's. `None` if
/// neither gives one.
#[must_use]
pub fn direction_of(claim: &ClaimSpec) -> Option<Direction> {
    claim.direction.or_else(|| Some(Entry::find(&claim.metric)?.direction))
}

/// Reason why two signatures differ, or `None`. Every key in the claim's signature must have the
/// same value in the measured one. The tool's version and the parts that describe resampling do not
/// change a score and are ignored.
#[must_use]
pub fn signature_difference(claimed: &str, measured: &str) -> Option<String> {
    fn parts(signature: &str) -> impl Iterator<Item = (&str, &str)> {
        signature
            .split('|')
            .map(|part| part.trim().split_once(':').unwrap_or((part.trim(), "")))
            .filter(|(key, _)| !matches!(*key, "" | "#" | "version" | "bs" | "rs" | "ar" | "seed"))
    }
    // The presence of this part changes the metric.
    let splits = |signature| parts(signature).any(|(key, _)| key == "compounds");
    if splits(measured) && !splits(claimed) {
        return Some("ours splits compounds, the claim's signature does not".to_owned());
    }
    parts(claimed).find_map(|(key, value)| match parts(measured).find(|(other, _)| *other == key) {
        None => Some(format!("the claim's signature has {key}:{value}, ours has no {key}")),
        Some((_, ours)) if ours != value => {
            Some(format!("the claim's signature has {key}:{value}, ours has {key}:{ours}"))
        }
        Some(_) => None,
    })
}

/// Reason why the evidence is not comparable with the claim, or `Ok` with notes on the conditions
/// that could not be checked.
pub(super) fn met(claim: &ClaimSpec, evidence: &Evidence) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    if !evidence.overrides.is_empty() {
        return Err(format!(
            "the run was changed with --set {} and reproduces nothing",
            evidence.overrides.join(", ")
        ));
    }
    if let Some(tier) = evidence.tier.as_deref().filter(|tier| *tier != "full") {
        return Err(format!("tier {tier} is not the published run"));
    }
    // A claim without a search is on the outputs of a task that has no search.
    let search = evidence.decode.as_deref();
    let claimed_search = claim.decode.as_deref().or(search.map(|_| DIRECT));
    for (what, claimed, measured) in [
        ("evaluation set", claim.eval.as_deref(), evidence.eval.as_deref()),
        ("search", claimed_search, search),
        ("signature", claim.signature.as_deref(), evidence.signature.as_deref()),
    ] {
        let (Some(claimed), Some(measured)) = (claimed, measured) else {
            match claimed {
                Some(claimed) if evidence.external => {
                    notes.push(format!("{what} not given, taken to be the claim's ({claimed})"));
                }
                Some(claimed) => return Err(format!("the claim is on {what} {claimed}; ours is not known")),
                None => {}
            }
            continue;
        };
        if what == "signature" {
            if let Some(difference) = signature_difference(claimed, measured) {
                return Err(difference);
            }
        } else if claimed != measured {
            return Err(format!("the claim is on {what} {claimed}, ours is {measured}"));
        }
    }
    let claimed_arm = claim.arm.as_deref().filter(|arm| *arm != "any");
    if let (Some(claimed), Some(ours)) = (claimed_arm, evidence.arm.as_deref())
        && claimed != ours
    {
        return Err(format!("the claim is on arm {claimed}, ours is {ours}"));
    }
    probed(evidence)?;
    precision(evidence.rules, evidence.arm.as_deref(), evidence.precision)?;
    precision(evidence.rules, evidence.baseline.as_deref(), evidence.baseline_precision)?;
    if claimed_arm.is_some() && evidence.precision.is_none() && evidence.external {
        notes.push("the precision of the products was not probed".to_owned());
    }
    Ok(notes)
}

/// The part of an arm's name that may name a precision. A suffix after a hyphen (`mixed-a100`)
/// distinguishes arms of the same precision.
#[must_use]
pub fn precision_word(arm: &str) -> &str {
    arm.split('-').next().unwrap_or(arm)
}

/// Requires the probed product type for zoo's own runs in mixed precision. External scores get a
/// note instead.
fn probed(evidence: &Evidence) -> Result<(), String> {
    let ran = evidence.speed.is_some() || !evidence.runs.is_empty() || !evidence.points.is_empty();
    let mixed = evidence.arm.as_deref().filter(|arm| precision_word(arm) == "mixed");
    match mixed {
        Some(arm)
            if ran
                && !evidence.external
                && evidence.rules != Rules::First
                && evidence.precision.is_none() =>
        {
            Err(format!("no probe found in which type arm {arm} computed its products"))
        }
        _ => Ok(()),
    }
}

/// Checks that an arm computes in the type that its name gives. `mixed` is FP16 with loss scaling,
/// as the sources publish it. The first rules also accept bf16 under that name.
fn precision(rules: Rules, arm: Option<&str>, proved: Option<Precision>) -> Result<(), String> {
    let (Some(arm), Some(proved)) = (arm, proved) else { return Ok(()) };
    let bf16 = matches!(proved, Precision::Bf16 | Precision::Bf16Emulated);
    let word = precision_word(arm);
    let holds = match word {
        "fp32" => proved == Precision::Fp32,
        "tf32" => proved == Precision::Tf32,
        "fp16" => proved == Precision::Fp16,
        "bf16" => bf16,
        "mixed" => proved == Precision::Fp16 || (bf16 && rules == Rules::First),
        _ => true,
    };
    if holds {
        return Ok(());
    }
    let found = format!("arm {arm} was proved to compute its products in {}", proved.name());
    Err(match word {
        "mixed" if bf16 => format!(
            "{found}; mixed stands for FP16 with loss scaling, and bf16 does not show whether that works (an arm bf16 is \
             judged as bf16)"
        ),
        _ => found,
    })
}

/// Whether two hardware names mean the same machine. They match if they are equal up to case,
/// spaces and punctuation, or if they give the same number of cards of the same model, with the
/// same memory if both state it. A claim also names the system that holds the cards; a driver also
/// names their maker and socket.
pub(super) fn same_hardware(a: &str, b: &str) -> bool {
    let plain =
        |s: &str| s.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let same_cards = || {
        let (a, b) = (Cards::read(a)?, Cards::read(b)?);
        let memory = a.gigabytes.is_none() || b.gigabytes.is_none() || a.gigabytes == b.gigabytes;
        Some(a.count == b.count && a.model == b.model && memory)
    };
    plain(a) == plain(b) || same_cards() == Some(true)
}

/// Whether a hardware name is that of an accelerator. On other hardware, half precision is
/// emulated.
pub(super) fn names_accelerators(hardware: &str) -> bool {
    let words = hardware.to_lowercase();
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    Cards::read(hardware).is_some() || words.any(|word| matches!(word, "gpu" | "gpus"))
}

/// GPUs, parsed from names such as `8x V100 16GB, DGX-1` and `1x Tesla V100-SXM2-16GB`.
struct Cards {
    count: u32,
    model: String,
    gigabytes: Option<u32>,
}

impl Cards {
    fn read(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let words = || lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        // A model name is one or two letters and a number: V100, A100, H200, T4.
        let is_model = |word: &&str| {
            let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let letters = word.len() - digits.len();
            (1..=2).contains(&letters) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        };
        Some(Self {
            count: words().next()?.strip_suffix('x')?.parse().ok()?,
            model: words().find(is_model)?.to_owned(),
            gigabytes: words().find_map(|word| word.strip_suffix("gb")?.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_compared_by_key() {
        let claim = "nrefs:1|case:lc|eff:no|tok:none|smooth:none";
        let ours = "nrefs:1|bs:1000|seed:12345|case:lc|eff:no|tok:none|smooth:none|version:2.6.0";
        assert_eq!(signature_difference(claim, ours), None);
        let unlike = ours.replace("tok:none", "tok:13a");
        assert!(signature_difference(claim, &unlike).unwrap().contains("tok:13a"));
        assert!(signature_difference(claim, "nrefs:1").unwrap().contains("no case"));
        assert_eq!(signature_difference("", ours), None);
        let split = format!("{claim}|compounds:split");
        assert!(signature_difference(claim, &split).unwrap().contains("compounds"));
        assert!(signature_difference(&split, claim).unwrap().contains("no compounds"));
        assert_eq!(signature_difference(&split, &split), None);
    }

    #[test]
    fn arms_of_one_precision_are_told_apart_behind_a_hyphen() {
        for (arm, proved, holds) in [
            ("mixed-a100", Precision::Fp16, true),
            ("mixed-a100", Precision::Fp32, false),
            ("mixed-a100", Precision::Bf16, false),
            ("bf16", Precision::Bf16, true),
            ("bf16", Precision::Bf16Emulated, true),
            ("bf16", Precision::Fp16, false),
            ("fp32-dgx2", Precision::Tf32, false),
            ("tf32", Precision::Tf32, true),
            ("larger", Precision::Bf16, true),
        ] {
            assert_eq!(precision(Rules::Second, Some(arm), Some(proved)).is_ok(), holds, "{arm}");
        }
    }

    #[test]
    fn bf16_passed_as_mixed_under_the_first_rules_alone() {
        for bf16 in [Precision::Bf16, Precision::Bf16Emulated] {
            assert_eq!(precision(Rules::First, Some("mixed"), Some(bf16)), Ok(()));
            let words = precision(Rules::Second, Some("mixed"), Some(bf16)).unwrap_err();
            assert!(words.contains("bf16; mixed stands for FP16 with loss scaling"), "{words}");
        }
    }

    #[test]
    fn graphics_processors_are_told_from_processors() {
        assert!(names_accelerators("1x NVIDIA H200") && names_accelerators("4 GPUs, V100 generation"));
        assert!(!names_accelerators("Intel(R) Xeon(R) Processor"));
    }

    #[test]
    fn hardware_names() {
        assert!(same_hardware("4 GPUs, V100 generation", "4 gpus V100-generation"));
        assert!(!same_hardware("8 GPUs, V100 generation", "4 GPUs, V100 generation"));
        for (claimed, ours, same) in [
            ("1x V100 16GB, DGX-1", "1x Tesla V100-SXM2-16GB", true),
            ("1x V100 32GB, DGX-2", "1x Tesla V100-SXM2-16GB", false),
            ("8x V100 16GB, DGX-1", "1x Tesla V100-SXM2-16GB", false),
            ("1x A100 40GB, DGX A100", "1x NVIDIA A100-SXM4-40GB", true),
            ("1x A100 40GB, DGX A100", "1x NVIDIA H200", false),
            ("4 GPUs, model unstated", "1x NVIDIA H200", false),
            ("1x V100 16GB, DGX-1", "Intel(R) Xeon(R) Processor", false),
        ] {
            assert_eq!(same_hardware(claimed, ours), same, "{claimed}: {ours}");
        }
    }
}
