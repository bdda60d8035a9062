//! Checks the `[precision]` block.

use super::Findings;
use crate::spec::{ComputeType, IslandsSpec, LossScalingSpec, Recipe};

/// Checks that the model has the operations of the islands that are off, in half precision.
fn islands(on: IslandsSpec, needed: IslandsSpec, findings: &mut Findings<'_, '_>) {
    for (on, needed, key, operation) in [
        (on.softmax, needed.softmax, "softmax", "attention's softmax"),
        (on.norms, needed.norms, "norms", "norms"),
        (on.loss, needed.loss, "loss", "the whole cross-entropy"),
    ] {
        if needed && !on {
            findings.report_with(
                &format!("precision.islands.{key}"),
                format!(
                    "this model cannot compute {operation} in half precision; docs/mixed-precision.md lists the models that can"
                ),
                format!("leave `{key}` out"),
            );
        }
    }
}

pub(super) fn validate(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let precision = &recipe.precision;
    let range = |min: f64, max: f64, findings: &mut Findings<'_, '_>| {
        findings.above_zero(min, "precision.loss_scaling.scale_min");
        findings.require(min <= max, "precision.loss_scaling.scale_max", || {
            format!("the largest scale, {max}, is less than the least, {min}")
        });
    };
    if !precision.masters && precision.compute == ComputeType::Fp32 {
        findings.report_with(
            "precision.masters",
            "weights in FP32 are their own masters, so an FP32 arm cannot train without masters",
            "precision.compute = \"fp16\" or \"bf16\"; or leave `masters` out",
        );
    }
    if !precision.islands.are_all() {
        findings.require(precision.compute != ComputeType::Fp32, "precision.islands", || {
            "`precision.compute` is fp32, so softmax, norms and the loss cannot be computed in another type"
                .to_owned()
        });
        islands(precision.islands, recipe.needed_islands(), findings);
    }
    match &precision.loss_scaling {
        LossScalingSpec::None => {}
        LossScalingSpec::Static { scale } => findings.above_zero(*scale, "precision.loss_scaling.scale"),
        LossScalingSpec::Backoff { scale_init, scale_min, scale_max, step_factor, step_window } => {
            range(*scale_min, *scale_max, findings);
            if let Some(init) = scale_init {
                findings.require(
                    scale_min <= init && init <= scale_max,
                    "precision.loss_scaling.scale_init",
                    || format!("the first scale, {init}, is not between {scale_min} and {scale_max}"),
                );
            }
            findings.require(*step_factor > 1.0, "precision.loss_scaling.step_factor", || {
                format!("`step_factor` is {step_factor}; the scale would not change")
            });
            findings.positive(*step_window, "precision.loss_scaling.step_window");
        }
        LossScalingSpec::Logmax {
            scale_min, scale_max, log_max: _, beta1, beta2, overflow_std_dev, ..
        } => {
            range(*scale_min, *scale_max, findings);
            findings.share(*beta1, "precision.loss_scaling.beta1");
            findings.share(*beta2, "precision.loss_scaling.beta2");
            findings.not_negative(*overflow_std_dev, "precision.loss_scaling.overflow_std_dev");
        }
    }
}
