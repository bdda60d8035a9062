//! Checks of the `[model]` block of a speech synthesis recipe.

use super::{FrameConvolutionsSpec, SynthesisModelSpec};
use crate::spec::BatchNormSpec;
use crate::validate::Findings;

/// Checks ranges and combinations of encoder and decoder.
pub(super) fn model(model: &SynthesisModelSpec, findings: &mut Findings<'_, '_>) {
    let (encoder, decoder) = model.parts();
    for (value, key) in [
        (encoder.width, "encoder.width"),
        (encoder.units, "encoder.units"),
        (decoder.units, "decoder.units"),
        (decoder.attention.units, "decoder.attention.units"),
        (decoder.attention.filters, "decoder.attention.filters"),
        (decoder.attention.kernel, "decoder.attention.kernel"),
    ] {
        findings.positive(u64::from(value), &format!("model.{key}"));
    }
    convolutions(&encoder.convolutions, "model.encoder.convolutions", findings);
    convolutions(&decoder.postnet, "model.decoder.postnet", findings);
    for (i, units) in decoder.prenet.units.iter().enumerate() {
        findings.positive(u64::from(*units), &format!("model.decoder.prenet.units.{i}"));
    }
    findings.share(decoder.prenet.dropout, "model.decoder.prenet.dropout");
    findings.share(decoder.dropout, "model.decoder.dropout");
    findings.require(
        (1..=2).contains(&decoder.asking_layer) && decoder.asking_layer <= decoder.layers,
        "model.decoder.asking_layer",
        || {
            let (asking, layers) = (decoder.asking_layer, decoder.layers);
            format!("layer {asking} of {layers} is to ask; it is the first or the second")
        },
    );
    if let Some(magnitudes) = &decoder.magnitudes {
        findings.positive(u64::from(magnitudes.kernel), "model.decoder.magnitudes.kernel");
        for (i, channels) in magnitudes.channels.iter().enumerate() {
            findings.positive(u64::from(*channels), &format!("model.decoder.magnitudes.channels.{i}"));
        }
        norm(&magnitudes.norm, "model.decoder.magnitudes.norm", findings);
    }
}

fn convolutions(spec: &FrameConvolutionsSpec, path: &str, findings: &mut Findings<'_, '_>) {
    for (value, key) in [(spec.layers, "layers"), (spec.channels, "channels"), (spec.kernel, "kernel")] {
        findings.positive(u64::from(value), &format!("{path}.{key}"));
    }
    findings.share(spec.dropout, &format!("{path}.dropout"));
    norm(&spec.norm, &format!("{path}.norm"), findings);
}

fn norm(norm: &BatchNormSpec, path: &str, findings: &mut Findings<'_, '_>) {
    findings.above_zero(norm.epsilon, &format!("{path}.epsilon"));
    findings.require((0.0..=1.0).contains(&norm.momentum), &format!("{path}.momentum"), || {
        format!("`{path}.momentum` is {}; it is a share", norm.momentum)
    });
}
