//! Limits of the errors of a comparison.

use burn::tensor::FloatDType;
use zoo_models::precision::Compute;

/// Limits of the rungs that depend on the type of the products. `docs/align.md` explains how they
/// were chosen.
pub(crate) struct Limits {
    /// In fp16, embeddings are stored with an error of half a unit of its fraction; otherwise they
    /// are FP32.
    pub embeddings: f64,
    pub outputs: f64,
    pub losses: f64,
    pub gradients: f64,
    /// Limit for nine in ten elements of a tensor. In half precision a ReLU whose input is close to
    /// 0 may be on here and off in the reference, which changes a whole row of gradients.
    pub most_gradients: f64,
    /// Gradients are computed of the loss times this scale and divided by it, because fp16
    /// gradients would underflow.
    pub scale: f32,
    /// Whether updates and searches are compared. They follow from the earlier rungs; in half
    /// precision their differences exceed the effects that they would test.
    pub to_the_end: bool,
}

impl Limits {
    pub(crate) fn of(compute: Compute) -> Self {
        let half = |embeddings, outputs, losses, most_gradients| Self {
            embeddings,
            outputs,
            losses,
            gradients: 3e-1,
            most_gradients,
            scale: 1024.0,
            to_the_end: false,
        };
        match compute.0 {
            FloatDType::F16 => half(5e-4, 5e-3, 2e-3, 5e-2),
            FloatDType::BF16 => half(1e-6, 4e-2, 1e-2, 1e-1),
            _ => Self {
                embeddings: 1e-6,
                outputs: 5e-6,
                losses: 2e-6,
                gradients: 1e-5,
                most_gradients: 1e-5,
                scale: 1.0,
                to_the_end: true,
            },
        }
    }
}
