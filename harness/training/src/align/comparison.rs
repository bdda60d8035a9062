//! Comparison of all results of one case of a file of small models.

use std::collections::BTreeSet;

use burn::tensor::Tensor;
use zoo_models::precision::Compute;

use super::{Fixture, Limits};

/// What a result is, by the names in its key.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Output,
    Gradient,
    Update,
}

impl Kind {
    fn of(key: &str) -> Self {
        let names = |end: &str| key.split('/').any(|part| part.ends_with(end));
        if names("gradients") {
            Self::Gradient
        } else if names("updated") {
            Self::Update
        } else {
            Self::Output
        }
    }
}

/// A comparison of all results of a case, which are computed with products of one type.
///
/// In half precision, the limits of the callers do not apply: they are those of [`Limits`], relative
/// to the largest value of the tensor or, for gradients, of all gradients. Updates are not compared.
/// Outputs that are as near as in FP32 were not computed in half precision, which is an error.
pub(crate) struct Comparison<'a> {
    case: &'a Fixture,
    limits: Limits,
    compared: BTreeSet<String>,
    /// Largest error of the outputs in half precision.
    apart: f64,
}

/// Outputs with products in half precision differ by more than this from the reference: a hundredth of
/// fp16's unit, and the largest limit of outputs in FP32.
const HALVES_DIFFER: f64 = 2e-5;

impl<'a> Comparison<'a> {
    /// Nothing is compared yet.
    pub fn of(case: &'a Fixture, compute: Compute) -> Self {
        Self { case, limits: Limits::of(compute), compared: BTreeSet::new(), apart: 0.0 }
    }

    /// A loss times the scale with which its gradients are computed.
    pub fn scaled(&self, loss: Tensor<1>) -> Tensor<1> {
        loss * self.limits.scale
    }

    /// A gradient of a loss from [`Self::scaled`], divided by the scale.
    pub fn unscaled(&self, gradient: Tensor<1>) -> Tensor<1> {
        gradient / self.limits.scale
    }

    /// Compares one result relative to the largest value of its tensor. `limit` is that of FP32.
    ///
    /// # Errors
    /// A difference of the limit or more.
    pub fn compare(&mut self, key: &str, found: &[f32], limit: f64) -> Result<(), String> {
        self.compare_by(key, found, limit, self.case.largest(|other| other == key))
    }

    /// The same relative to `size`, in FP32.
    ///
    /// # Errors
    /// A difference of the limit or more.
    pub fn compare_by(&mut self, key: &str, found: &[f32], limit: f64, size: f64) -> Result<(), String> {
        let (case, kind) = (self.case, Kind::of(key));
        if self.limits.to_the_end {
            case.compare_by(key, found, limit, size)?;
        } else {
            match kind {
                Kind::Update => return Ok(()),
                Kind::Output => {
                    case.compare(key, found, self.limits.outputs)?;
                    self.apart = self.apart.max(case.farthest(key, found)?);
                }
                Kind::Gradient => {
                    let of_all = case.largest(|key| Kind::of(key) == kind);
                    case.compare_by(key, found, self.limits.gradients, of_all)?;
                    case.compare_most(key, found, self.limits.most_gradients, of_all)?;
                }
            }
        }
        self.compared.insert(key.to_owned());
        Ok(())
    }

    /// Number of compared tensors.
    ///
    /// # Errors
    /// A key for which `is_due` holds and which was not compared. Updates are not due in half
    /// precision. Outputs in half precision that are as near as in FP32.
    pub fn finish(self, is_due: impl Fn(&str) -> bool) -> Result<usize, String> {
        if !self.limits.to_the_end && self.apart < HALVES_DIFFER {
            let (name, apart) = (self.case.name(), self.apart);
            return Err(format!(
                "{name}: outputs differ by {apart:.1e}, so its products are not in half precision"
            ));
        }
        let is_due = |key: &str| is_due(key) && (self.limits.to_the_end || Kind::of(key) != Kind::Update);
        match self.case.keys().find(|key| is_due(key) && !self.compared.contains(*key)) {
            None => Ok(self.compared.len()),
            Some(key) => Err(format!("{}/{key} is given and was not computed", self.case.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::FloatDType;

    use super::*;

    /// Compares `found` with the outputs 1, 2 and 4, and the gradients 1, 2 and 4.
    fn compared(compute: Compute, found: [f32; 3], key: &str) -> Result<usize, String> {
        let case = Fixture::of("case", [("out", [1.0, 2.0, 4.0]), ("gradients/w", [1.0, 2.0, 4.0])]);
        let mut all = Comparison::of(&case, compute);
        all.compare(key, &found, 1e-6)?;
        all.finish(|other| other == key)
    }

    #[test]
    fn halves_have_their_own_limits_and_are_not_as_near_as_fp32() {
        let (fp16, bf16) = (Compute(FloatDType::F16), Compute(FloatDType::BF16));
        let off = |by: f32| [1.0, 2.0, 4.0 * (1.0 + by)];
        assert_eq!(compared(Compute::FP32, off(0.0), "out"), Ok(1));
        assert!(compared(Compute::FP32, off(1e-3), "out").is_err());
        assert_eq!(compared(fp16, off(1e-3), "out"), Ok(1));
        assert!(compared(fp16, off(1e-2), "out").is_err());
        assert_eq!(compared(bf16, off(1e-2), "out"), Ok(1));
        let said = compared(fp16, off(1e-6), "out").unwrap_err();
        assert!(said.ends_with("so its products are not in half precision"), "{said}");
    }

    #[test]
    fn nine_in_ten_gradients_have_a_narrower_limit() {
        let fp16 = Compute(FloatDType::F16);
        let mut values = [0.0f32; 20];
        values[0] = 4.0;
        let case = Fixture::of("case", [("gradients/w", values)]);
        let compare = |found: &[f32]| Comparison::of(&case, fp16).compare("gradients/w", found, 1e-6);
        let with = |count: usize| {
            let mut found = values;
            found[1..=count].fill(0.8);
            found
        };
        assert_eq!(compare(&with(1)), Ok(()));
        let said = compare(&with(4)).unwrap_err();
        assert!(said.starts_with("one in ten of case/gradients/w differs by 2.0e-1"), "{said}");
    }
}
