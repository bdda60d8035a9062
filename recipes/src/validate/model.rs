//! The `[model]`, `[loss]` and `[precision]` blocks.

use super::Findings;
use crate::spec::{
    ComputeType, DecoderSpec, DecoderStart, EncoderSpec, LossScalingSpec, LossSpec, Positions, PrecisionSpec,
    ReaderSpec, Recipe, Specials, TokenizerSpec, Tying,
};

pub(super) fn validate(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let model = &recipe.model;
    findings.positive(u64::from(model.width), "model.width");
    findings.share(model.embedding.dropout, "model.embedding.dropout");
    if let Some(std) = model.embedding.init_std {
        findings.above_zero(std, "model.embedding.init_std");
    }
    findings.require(model.width.is_multiple_of(2), "model.width", || {
        format!("`model.width` is {}; sinusoidal positions need an even width", model.width)
    });
    vocabulary(recipe, findings);

    let EncoderSpec::Transformer(encoder) = &model.encoder;
    let DecoderSpec::Transformer(decoder) = &model.decoder;
    for (part, layers, heads, ffn, epsilon, rates) in [
        (
            "model.encoder",
            encoder.layers,
            encoder.heads,
            encoder.ffn,
            encoder.norm_epsilon,
            [encoder.dropout, encoder.attention_dropout, encoder.activation_dropout],
        ),
        (
            "model.decoder",
            decoder.layers,
            decoder.heads,
            decoder.ffn,
            decoder.norm_epsilon,
            [decoder.dropout, decoder.attention_dropout, decoder.activation_dropout],
        ),
    ] {
        for (value, key) in [(layers, "layers"), (heads, "heads"), (ffn, "ffn")] {
            findings.positive(u64::from(value), &format!("{part}.{key}"));
        }
        findings.require(heads == 0 || model.width.is_multiple_of(heads), &format!("{part}.heads"), || {
            format!("{heads} heads do not divide the model width {}", model.width)
        });
        findings.above_zero(epsilon, &format!("{part}.norm_epsilon"));
        for (rate, key) in rates.into_iter().zip(["dropout", "attention_dropout", "activation_dropout"]) {
            findings.share(rate, &format!("{part}.{key}"));
        }
    }
    findings.require(
        !(decoder.begin_token_in_target && decoder.start == DecoderStart::Begin),
        "model.decoder.begin_token_in_target",
        || "the begin token would stand there twice: `start` puts it before the target already".to_owned(),
    );

    let LossSpec::CrossEntropy { label_smoothing, smoothing: _, denominator: _ } = &recipe.loss;
    findings.share(*label_smoothing, "loss.label_smoothing");
    precision(&recipe.precision, findings);
}

/// What the tables need of the vocabulary.
fn vocabulary(recipe: &Recipe, findings: &mut Findings<'_, '_>) {
    let (specials, joint, key) = match &recipe.data.tokenizer {
        TokenizerSpec::Words { specials, .. } => (specials, true, ""),
        TokenizerSpec::SubwordNmt { specials, joined_dictionary, .. } => {
            (specials, *joined_dictionary, "joined_dictionary")
        }
        TokenizerSpec::SentencePiece { specials, joint, .. } => (specials, *joint, "joint"),
    };
    if recipe.model.embedding.tied == Tying::All && !joint {
        findings.report_with(
            "model.embedding.tied",
            "one matrix for source and target needs one vocabulary for both",
            format!("data.tokenizer.{key} = true, or tied = \"decoder\""),
        );
    }
    if recipe.model.embedding.positions == Positions::SinusoidFairseq && *specials != Specials::Fairseq {
        findings.report_with(
            "model.embedding.positions",
            "fairseq's positions begin behind its padding index 1",
            "data.tokenizer.specials = \"fairseq\", or another layout of positions",
        );
    }
    // Generated text is made of symbols; the other tokenizers learn from it as well, so this is no error, but Moses is.
    let moses = match (&recipe.data.reader, &recipe.data.tokenizer) {
        (
            ReaderSpec::Reversal { .. },
            TokenizerSpec::Words { normalize, .. } | TokenizerSpec::SubwordNmt { normalize, .. },
        ) => !normalize.is_empty(),
        _ => false,
    };
    findings.require(!moses, "data.tokenizer.normalize", || {
        "generated strings of symbols are in no language; there is nothing to normalize".to_owned()
    });
}

fn precision(precision: &PrecisionSpec, findings: &mut Findings<'_, '_>) {
    findings.require(
        precision.compute_on_cpu.is_none() || precision.compute != ComputeType::Fp32,
        "precision.compute_on_cpu",
        || "`compute` is `fp32`, which every CPU has; `compute_on_cpu` is for half types".to_owned(),
    );
    let range = |min: f64, max: f64, findings: &mut Findings<'_, '_>| {
        findings.above_zero(min, "precision.loss_scaling.scale_min");
        findings.require(min <= max, "precision.loss_scaling.scale_max", || {
            format!("the largest scale, {max}, is less than the least, {min}")
        });
    };
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
