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
pub(crate) struct Comparison<'a> {
    case: &'a Fixture,
    limits: Limits,
    compared: BTreeSet<String>,
}

impl<'a> Comparison<'a> {
    /// Nothing is compared yet.
    pub fn of(case: &'a Fixture, compute: Compute) -> Self {
        Self { case, limits: Limits::of(compute), compared: BTreeSet::new() }
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
                Kind::Output => case.compare(key, found, self.limits.outputs)?,
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
    /// precision.
    pub fn finish(self, is_due: impl Fn(&str) -> bool) -> Result<usize, String> {
        let is_due = |key: &str| is_due(key) && (self.limits.to_the_end || Kind::of(key) != Kind::Update);
        match self.case.keys().find(|key| is_due(key) && !self.compared.contains(*key)) {
            None => Ok(self.compared.len()),
            Some(key) => Err(format!("{}/{key} is given and was not computed", self.case.name())),
        }
    }
}
