//! Comparison of translation models, losses and searches by the kinds of their parts.

use std::mem::discriminant;

use zoo_recipes::tasks::translation::{TokenLossSpec, TokenSearchSpec};
use zoo_recipes::{
    AttentionSpec, DecoderSpec, EncoderSpec, GatedConvolutionSpec, LinearInit, ModelSpec, RecurrentInit,
};

use crate::kinds::{biases, differences};

/// The dotted keys in which the kinds of two models differ.
pub fn differences_of(one: &ModelSpec, other: &ModelSpec) -> Vec<String> {
    differences("model", &kinds_of(one), &kinds_of(other))
}

/// Whether two decoders carry the same search state: same kind, same routing of the attention
/// context.
pub fn same_states(one: &DecoderSpec, other: &DecoderSpec) -> bool {
    let context = |decoder: &DecoderSpec| match decoder {
        DecoderSpec::Recurrent(decoder) => Some(decoder.context),
        _ => None,
    };
    discriminant(one) == discriminant(other) && context(one) == context(other)
}

/// The model with sizes, rates and initialisers set to fixed values.
fn kinds_of(model: &ModelSpec) -> ModelSpec {
    let mut kinds = model.clone();
    kinds.width = kinds.width.map(|_| 1);
    if let Some(embedding) = &mut kinds.embedding {
        (embedding.init_std, embedding.init, embedding.dropout) = (None, None, 0.0);
    }
    match &mut kinds.encoder {
        EncoderSpec::Transformer(e) => {
            (e.layers, e.heads, e.ffn, e.norm_epsilon) = (1, 1, 1, 0.0);
            (e.dropout, e.attention_dropout, e.activation_dropout) = (0.0, 0.0, 0.0);
            e.init = LinearInit::XavierUniform;
            // Removing padding saves computation and does not change the result.
            e.remove_padding = false;
        }
        EncoderSpec::Recurrent(e) => {
            (e.layers, e.units, e.dropout, e.input_dropout) = (1, 1, 0.0, None);
            (e.residual_from, e.forget_bias) = (e.residual_from.map(|_| 1), None);
            (e.biases, e.init) = (biases(e.biases), RecurrentInit::XavierUniform);
        }
        EncoderSpec::Convolutional(e) => {
            (e.layer, e.dropout, e.attentions) = (convolutions(&e.layer), 0.0, 1);
            e.positions.iter_mut().for_each(|positions| positions.rows = 1);
        }
        // Parts of other tasks.
        _ => {}
    }
    match &mut kinds.decoder {
        DecoderSpec::Transformer(d) => {
            (d.layers, d.heads, d.ffn, d.norm_epsilon) = (1, 1, 1, 0.0);
            (d.dropout, d.attention_dropout, d.activation_dropout) = (0.0, 0.0, 0.0);
            d.init = LinearInit::XavierUniform;
            // Whether the target starts with a begin token is a property of the data.
            d.begin_token_in_target = false;
        }
        DecoderSpec::Recurrent(d) => {
            (d.layers, d.units, d.dropout, d.combine_dropout) = (1, 1, 0.0, None);
            (d.residual_from, d.forget_bias) = (d.residual_from.map(|_| 1), None);
            (d.biases, d.init) = (biases(d.biases), RecurrentInit::XavierUniform);
            if let AttentionSpec::Additive { units, .. } = &mut d.attention {
                *units = 1;
            }
            d.begin_token_in_target = false;
        }
        DecoderSpec::Convolutional(d) => {
            (d.layer, d.dropout) = (convolutions(&d.layer), 0.0);
            d.positions.iter_mut().for_each(|positions| positions.rows = 1);
            d.output_width = d.output_width.map(|_| 1);
            d.begin_token_in_target = false;
        }
        _ => {}
    }
    kinds
}

/// One layer, or two if the widths change, because a layer that changes the width has a projected
/// shortcut.
fn convolutions(layers: &[GatedConvolutionSpec]) -> Vec<GatedConvolutionSpec> {
    let changes = layers.windows(2).any(|pair| pair[0].channels != pair[1].channels);
    let layer = |channels| GatedConvolutionSpec { channels, kernel: 1, repeat: 1 };
    if changes { vec![layer(1), layer(2)] } else { vec![layer(1)] }
}

/// Whether two losses are equal except for the label smoothing mass. If the recipe's mass is 0, the
/// kind of smoothing does not matter.
pub fn same_loss(recipe: &TokenLossSpec, other: &TokenLossSpec) -> bool {
    let TokenLossSpec::CrossEntropy { label_smoothing, smoothing, denominator } = recipe;
    let TokenLossSpec::CrossEntropy { smoothing: other_smoothing, denominator: other_denominator, .. } =
        other;
    denominator == other_denominator && (*label_smoothing == 0.0 || smoothing == other_smoothing)
}

/// Whether two searches are equal except for beam size, length exponent and length limits.
pub fn same_search(one: &TokenSearchSpec, other: &TokenSearchSpec) -> bool {
    use TokenSearchSpec::{Beam, GnmtBeam, Greedy, JoeynmtBeam, TensorflowBeam};
    match (one, other) {
        (Beam { length_penalty, stop, .. }, Beam { length_penalty: other_penalty, stop: other_stop, .. }) => {
            discriminant(length_penalty) == discriminant(other_penalty) && stop == other_stop
        }
        (
            GnmtBeam { coverage, as_coded, .. },
            GnmtBeam { coverage: other_coverage, as_coded: other_coded, .. },
        ) => (*coverage > 0.0) == (*other_coverage > 0.0) && as_coded == other_coded,
        (JoeynmtBeam { as_coded, .. }, JoeynmtBeam { as_coded: other_coded, .. }) => as_coded == other_coded,
        (Greedy { .. } | Beam { .. } | TensorflowBeam { .. } | GnmtBeam { .. } | JoeynmtBeam { .. }, _) => {
            discriminant(one) == discriminant(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, ListedTask, Selection};

    use super::*;

    fn model(name: &str) -> ModelSpec {
        let recipe = Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe;
        zoo_recipes::Translation::take(recipe).unwrap().model
    }

    #[test]
    fn sizes_are_no_difference_and_kinds_are() {
        let (base, big) = (model("transformer-base"), model("transformer-big"));
        assert!(differences_of(&base, &big).is_empty());
        let differences = differences_of(&base, &model("multi30k-transformer-tiny"));
        for key in ["model.embedding.positions", "model.encoder.norm", "model.decoder.start"] {
            assert!(differences.contains(&key.to_owned()), "{differences:?}");
        }
    }
}
