//! Checks encoders and decoders of tokens.

use super::Findings;
use crate::spec::{
    AttentionSpec, ContextUse, DecoderSpec, Directions, EncoderSpec, GatedConvolutionSpec, LearnedPositions,
    RecurrentCell, RecurrentDecoderSpec, RecurrentInit, TokenModel, Tying,
};

/// Checks ranges and combinations of `model.encoder`, which reads embeddings of this width.
pub(super) fn encoder(encoder: &EncoderSpec, width: u32, findings: &mut Findings<'_, '_>) {
    match encoder {
        EncoderSpec::Transformer(e) => {
            let rates = [e.dropout, e.attention_dropout, e.activation_dropout];
            let sizes = [e.layers, e.heads, e.ffn];
            transformer("model.encoder", width, sizes, e.norm_epsilon, rates, findings);
        }
        EncoderSpec::Recurrent(e) => {
            let stack = Stack {
                part: "model.encoder",
                cell: e.cell,
                sizes: [e.layers, e.units],
                residual_from: e.residual_from,
                forget_bias: e.forget_bias,
                init: e.init,
                dropout: e.dropout,
            };
            stack.check(width, e.directions == Directions::FirstLayerBoth, findings);
            if let Some(rate) = e.input_dropout {
                findings.share(rate, "model.encoder.input_dropout");
            }
        }
        EncoderSpec::Convolutional(e) => {
            convolutions("model.encoder", &e.layer, e.positions, e.dropout, findings);
            findings.positive(u64::from(e.attentions), "model.encoder.attentions");
            for (i, layer) in e.layer.iter().enumerate() {
                findings.require(layer.kernel % 2 == 1, &format!("model.encoder.layer.{i}.kernel"), || {
                    format!("{} taps have no middle; an encoder's kernel is odd", layer.kernel)
                });
            }
        }
        EncoderSpec::Acoustic(_) | EncoderSpec::Tacotron(_) => {}
    }
}

/// Checks ranges and combinations of `model.decoder`.
pub(super) fn decoder(model: TokenModel<'_>, findings: &mut Findings<'_, '_>) {
    let TokenModel { width, embedding, decoder, .. } = model;
    match decoder {
        DecoderSpec::Transformer(d) => {
            let rates = [d.dropout, d.attention_dropout, d.activation_dropout];
            let sizes = [d.layers, d.heads, d.ffn];
            transformer("model.decoder", width, sizes, d.norm_epsilon, rates, findings);
        }
        DecoderSpec::Recurrent(d) => {
            let stack = Stack {
                part: "model.decoder",
                cell: d.cell,
                sizes: [d.layers, d.units],
                residual_from: d.residual_from,
                forget_bias: d.forget_bias,
                init: d.init,
                dropout: d.dropout,
            };
            stack.check(width, false, findings);
            if let AttentionSpec::Additive { units, .. } = d.attention {
                findings.positive(u64::from(units), "model.decoder.attention.units");
            }
            combination(d, findings);
            initial_state(model, d, findings);
        }
        DecoderSpec::Convolutional(d) => {
            convolutions("model.decoder", &d.layer, d.positions, d.dropout, findings);
            findings.positive(u64::from(d.output_width.unwrap_or(1)), "model.decoder.output_width");
            let memory = model.memory_width();
            findings.require(memory == width, "model.decoder.kind", || {
                format!(
                    "its attention multiplies tokens {width} wide with what the encoder writes, {memory} wide"
                )
            });
        }
        DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_) => return,
    }
    let own = matches!(embedding.tied, Tying::None | Tying::Inputs);
    findings.require(own || !decoder.output_bias(), "model.decoder.output_bias", || {
        "the output projection is the table of the target's tokens, which has no bias".to_owned()
    });
    let projected = model.projected_width();
    findings.require(own || projected == width, "model.embedding.tied", || {
        format!(
            "what the decoder projects is {projected} wide, its tokens {width}: they cannot share a matrix"
        )
    });
}

/// Checks the keys about the matrix W of input feeding.
fn combination(decoder: &RecurrentDecoderSpec, findings: &mut Findings<'_, '_>) {
    let feeds = decoder.context == ContextUse::InputFeeding;
    if let Some(rate) = decoder.combine_dropout {
        findings.share(rate, "model.decoder.combine_dropout");
    }
    for (there, key) in
        [(decoder.combine_bias, "combine_bias"), (decoder.combine_dropout.is_some(), "combine_dropout")]
    {
        findings.require(feeds || !there, &format!("model.decoder.{key}"), || {
            "the answer of the attention is combined with nothing; `context` is not \"input-feeding\""
                .to_owned()
        });
    }
}

/// Checks that states taken from the encoder have the decoder's width.
fn initial_state(model: TokenModel<'_>, decoder: &RecurrentDecoderSpec, findings: &mut Findings<'_, '_>) {
    let path = "model.decoder.initial_state";
    match (decoder.initial_state, model.encoder) {
        (None, _) => {}
        (Some(_), EncoderSpec::Recurrent(e)) => {
            findings.require(e.units == decoder.units, path, || {
                format!("the encoder's states are {} wide, the decoder's {}", e.units, decoder.units)
            });
        }
        (Some(_), _) => findings.report(path, "the encoder has no states; it is not recurrent"),
    }
}

fn transformer(
    part: &str,
    width: u32,
    [layers, heads, ffn]: [u32; 3],
    epsilon: f64,
    rates: [f64; 3],
    findings: &mut Findings<'_, '_>,
) {
    for (value, key) in [(layers, "layers"), (heads, "heads"), (ffn, "ffn")] {
        findings.positive(u64::from(value), &format!("{part}.{key}"));
    }
    findings.require(heads == 0 || width.is_multiple_of(heads), &format!("{part}.heads"), || {
        format!("{heads} heads do not divide the model width {width}")
    });
    findings.above_zero(epsilon, &format!("{part}.norm_epsilon"));
    for (rate, key) in rates.into_iter().zip(["dropout", "attention_dropout", "activation_dropout"]) {
        findings.share(rate, &format!("{part}.{key}"));
    }
}

/// Settings that recurrent encoders and decoders share.
struct Stack {
    part: &'static str,
    cell: RecurrentCell,
    /// Number of layers and of units.
    sizes: [u32; 2],
    residual_from: Option<u32>,
    forget_bias: Option<f64>,
    init: RecurrentInit,
    dropout: f64,
}

impl Stack {
    /// Checks the settings. `doubled`: the second layer's input is twice as wide as its output.
    fn check(&self, width: u32, doubled: bool, findings: &mut Findings<'_, '_>) {
        let Self { part, sizes: [layers, units], .. } = *self;
        findings.positive(u64::from(layers), &format!("{part}.layers"));
        findings.positive(u64::from(units), &format!("{part}.units"));
        findings.share(self.dropout, &format!("{part}.dropout"));
        if let RecurrentInit::Uniform { bound } = self.init {
            findings.above_zero(bound, &format!("{part}.init.bound"));
        }
        let gru = self.cell == RecurrentCell::Gru;
        findings.require(!(gru && self.forget_bias.is_some()), &format!("{part}.forget_bias"), || {
            "gated recurrent units have no forget gate".to_owned()
        });
        let path = format!("{part}.residual_from");
        match self.residual_from {
            Some(1) if width != units => {
                findings
                    .report(&path, format!("the first layer's input is {width} wide, its output {units}"));
            }
            Some(1 | 2) if doubled => {
                findings.report_with(
                    &path,
                    "the first layer writes both directions side by side: its and the second layer's inputs and outputs differ in width",
                    "residual_from = 3",
                );
            }
            Some(from) => findings.require((1..=layers).contains(&from), &path, || {
                format!("`{path}` is {from}; the layers are 1 to {layers}")
            }),
            None => {}
        }
    }
}

fn convolutions(
    part: &str,
    layers: &[GatedConvolutionSpec],
    positions: Option<LearnedPositions>,
    dropout: f64,
    findings: &mut Findings<'_, '_>,
) {
    findings.require(!layers.is_empty(), &format!("{part}.layer"), || format!("`{part}` has no layer"));
    for (i, layer) in layers.iter().enumerate() {
        for (value, key) in [(layer.channels, "channels"), (layer.kernel, "kernel"), (layer.repeat, "repeat")]
        {
            findings.positive(u64::from(value), &format!("{part}.layer.{i}.{key}"));
        }
    }
    if let Some(positions) = positions {
        findings.positive(u64::from(positions.rows), &format!("{part}.positions.rows"));
    }
    findings.share(dropout, &format!("{part}.dropout"));
}
