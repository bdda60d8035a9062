//! `--fp32`: arithmetic of FP32 matrix products on devices that could round the operands to TF32.
//!
//! A process uses one kind of arithmetic, because it is a property of the device that cannot change
//! once the device is open.

use clap::ValueEnum;
use zoo_models::precision::Compute;
use zoo_results::verdict::precision_word;

use crate::error::{Failure, Result};

/// Treatment of the operands of FP32 products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, ValueEnum)]
pub enum Fp32 {
    /// Multiply operands with all 23 mantissa bits
    #[default]
    Strict,
    /// Round operands to 10 mantissa bits where that is faster
    Tf32,
}

impl Fp32 {
    /// The option's value: `strict` or `tf32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Tf32 => "tf32",
        }
    }

    pub fn compute_name(self, compute: Compute) -> &'static str {
        match self {
            Self::Tf32 if compute == Compute::FP32 => self.name(),
            _ => compute.name(),
        }
    }

    /// A type of products in the keys of runs. Where a device has both, a plain `fp32` could mean
    /// either: it did before `--fp32` was there.
    pub fn key(compute: &str, has_tf32: bool) -> &str {
        if has_tf32 && compute == Compute::FP32.name() { "fp32-strict" } else { compute }
    }

    /// What a run with products of this type goes on with, where `given` is what the call asks for.
    pub fn of_run(compute: &str, has_tf32: bool, given: Option<Self>) -> Result<Self> {
        let as_trained = if has_tf32 && compute == Self::Tf32.name() { Self::Tf32 } else { Self::Strict };
        let in_fp32 = [Compute::FP32.name(), Self::Tf32.name()].contains(&compute);
        match given {
            Some(given) if in_fp32 && given != as_trained => Err(Failure::usage(format!(
                "the run was trained with --fp32 {}, and is asked for with {}",
                as_trained.name(),
                given.name()
            ))
            .hint("omit --fp32, or train a separate run with `zoo reproduce --fp32`")),
            given => Ok(given.unwrap_or(as_trained)),
        }
    }

    /// The arithmetic that an arm's name stands for; `None` if its products are in half precision,
    /// which it does not affect.
    pub fn of_arm(arm: &str, compute: Compute) -> Option<Self> {
        match precision_word(arm) {
            _ if compute != Compute::FP32 => None,
            "tf32" => Some(Self::Tf32),
            _ => Some(Self::Strict),
        }
    }

    /// What arms of these names and types stand for together; those of one kind, and those of the
    /// other, where they disagree.
    pub fn of_arms(arms: &[(&str, Compute)]) -> std::result::Result<Self, [Vec<String>; 2]> {
        let of = |kind: Self| -> Vec<String> {
            let asking = arms.iter().filter(|(arm, compute)| Self::of_arm(arm, *compute) == Some(kind));
            asking.map(|(arm, _)| (*arm).to_owned()).collect()
        };
        match (of(Self::Strict), of(Self::Tf32)) {
            (_, tf32) if tf32.is_empty() => Ok(Self::Strict),
            (strict, _) if strict.is_empty() => Ok(Self::Tf32),
            (strict, tf32) => Err([strict, tf32]),
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::FloatDType;

    use super::*;

    #[test]
    fn arms_say_by_their_names_what_fp32_is_to_them() {
        let bf16 = Compute(FloatDType::BF16);
        for (arms, expected) in [
            (&[("fp32", Compute::FP32), ("mixed", bf16)][..], Ok(Fp32::Strict)),
            (&[("tf32", Compute::FP32), ("mixed-a100", bf16)], Ok(Fp32::Tf32)),
            (&[("tf32-large", Compute::FP32)], Ok(Fp32::Tf32)),
            // An arm name without a precision word counts as its compute type.
            (&[("baseline", Compute::FP32)], Ok(Fp32::Strict)),
            (&[("mixed", bf16)], Ok(Fp32::Strict)),
            (
                &[
                    ("fp32", Compute::FP32),
                    ("tf32", Compute::FP32),
                    ("mixed", bf16),
                    ("fp32-dgx2", Compute::FP32),
                ],
                Err([vec!["fp32".to_owned(), "fp32-dgx2".to_owned()], vec!["tf32".to_owned()]]),
            ),
        ] {
            assert_eq!(Fp32::of_arms(arms), expected, "{arms:?}");
        }
    }

    #[test]
    fn strict_runs_have_the_names_that_they_always_had() {
        let bf16 = Compute(FloatDType::BF16);
        let names = |fp32: Fp32| [Compute::FP32, bf16].map(|compute| fp32.compute_name(compute));
        assert_eq!(names(Fp32::Strict), ["fp32", "bf16"]);
        assert_eq!(names(Fp32::Tf32), ["tf32", "bf16"]);
    }

    #[test]
    fn strict_runs_of_a_device_with_tf32_are_not_those_of_before() {
        assert_eq!(
            ["fp32", "tf32", "bf16"].map(|name| Fp32::key(name, true)),
            ["fp32-strict", "tf32", "bf16"]
        );
        assert_eq!(["fp32", "bf16"].map(|name| Fp32::key(name, false)), ["fp32", "bf16"]);
    }

    #[test]
    fn a_run_goes_on_as_it_was_trained() {
        for (compute, has_tf32, given, expected) in [
            ("fp32", true, None, Some(Fp32::Strict)),
            ("tf32", true, None, Some(Fp32::Tf32)),
            ("tf32", true, Some(Fp32::Tf32), Some(Fp32::Tf32)),
            ("tf32", true, Some(Fp32::Strict), None),
            ("fp32", true, Some(Fp32::Tf32), None),
            // The option does not affect half precision, and a device without TF32 has one kind of
            // FP32.
            ("bf16", true, Some(Fp32::Tf32), Some(Fp32::Tf32)),
            ("tf32", false, Some(Fp32::Strict), Some(Fp32::Strict)),
        ] {
            let found = Fp32::of_run(compute, has_tf32, given);
            assert_eq!(found.ok(), expected, "{compute} {has_tf32} {given:?}");
        }
    }

    #[test]
    fn words_of_the_option_are_those_of_run_folders() {
        for fp32 in Fp32::value_variants() {
            assert_eq!(fp32.to_possible_value().unwrap().get_name(), fp32.name());
        }
    }
}
