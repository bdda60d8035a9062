//! Models of the same kinds of parts: equal but for sizes, rates and initialisers, which change numbers and not code.

use zoo_recipes::{
    AcousticLayerSpec, Activation, AttentionSpec, DecodeSpec, DecoderSpec, EncoderSpec,
    FrameConvolutionsSpec, FramePadding, GatedConvolutionSpec, LinearInit, LossSpec, ModelSpec,
    RecurrentBiases, RecurrentCell, RecurrentInit, Residual, SynthesisInit,
};

/// Two models, or the dotted keys in which their kinds differ.
pub fn model_differences(one: &ModelSpec, other: &ModelSpec) -> Vec<String> {
    let json = |model: &ModelSpec| serde_json::to_value(kinds_of(model)).unwrap_or_default();
    let mut keys = Vec::new();
    differences("model", &json(one), &json(other), &mut keys);
    keys
}

/// Do two decoders keep the same between two steps of a search: are they of one kind, and goes the attention's answer the same way?
pub fn same_states(one: &DecoderSpec, other: &DecoderSpec) -> bool {
    let context = |decoder: &DecoderSpec| match decoder {
        DecoderSpec::Recurrent(decoder) => Some(decoder.context),
        _ => None,
    };
    std::mem::discriminant(one) == std::mem::discriminant(other) && context(one) == context(other)
}

fn differences(path: &str, one: &serde_json::Value, other: &serde_json::Value, keys: &mut Vec<String>) {
    match (one.as_object(), other.as_object()) {
        (Some(left), Some(right)) if left.get("kind") == right.get("kind") => {
            for (key, value) in left {
                let missing = serde_json::Value::Null;
                differences(&format!("{path}.{key}"), value, right.get(key).unwrap_or(&missing), keys);
            }
        }
        _ if one != other => keys.push(path.to_owned()),
        _ => {}
    }
}

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
            // Computes less, not something else.
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
        // Held against a fixture by the parts of its layers.
        EncoderSpec::Acoustic(_) => {}
        EncoderSpec::Tacotron(e) => {
            (e.width, e.units, e.biases, e.init) = (1, 1, biases(e.biases), SynthesisInit::Nvidia);
            sizes(&mut e.convolutions);
        }
    }
    match &mut kinds.decoder {
        DecoderSpec::Transformer(d) => {
            (d.layers, d.heads, d.ffn, d.norm_epsilon) = (1, 1, 1, 0.0);
            (d.dropout, d.attention_dropout, d.activation_dropout) = (0.0, 0.0, 0.0);
            d.init = LinearInit::XavierUniform;
            // Whether the target begins with a token of its own is the data's affair.
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
        DecoderSpec::Ctc {} => {}
        DecoderSpec::Tacotron(d) => {
            (d.prenet.units, d.prenet.dropout) = (vec![1; d.prenet.units.len()], 0.0);
            (d.units, d.dropout, d.forget_bias) = (1, 0.0, None);
            (d.biases, d.init) = (biases(d.biases), SynthesisInit::Nvidia);
            (d.attention.units, d.attention.filters) = (1, 1);
            // An even number has no middle.
            d.attention.kernel = if d.attention.kernel.is_multiple_of(2) { 2 } else { 1 };
            sizes(&mut d.postnet);
            if let Some(magnitudes) = &mut d.magnitudes {
                magnitudes.channels = vec![1; magnitudes.channels.len()];
                magnitudes.kernel = if magnitudes.kernel.is_multiple_of(2) { 2 } else { 1 };
                (magnitudes.norm.epsilon, magnitudes.norm.momentum) = (1.0, 0.0);
            }
        }
    }
    kinds
}

/// Of convolutions over frames.
fn sizes(spec: &mut FrameConvolutionsSpec) {
    (spec.layers, spec.channels, spec.dropout) = (1, 1, 0.0);
    spec.kernel = if spec.kernel.is_multiple_of(2) { 2 } else { 1 };
    (spec.norm.epsilon, spec.norm.momentum) = (1.0, 0.0);
}

/// How they start is no kind.
fn biases(biases: RecurrentBiases) -> RecurrentBiases {
    match biases {
        RecurrentBiases::SecondOfZeros | RecurrentBiases::TwoOfZeros => RecurrentBiases::Two,
        other => other,
    }
}

/// One layer, or two where widths change: a layer of another width has a shortcut.
fn convolutions(layers: &[GatedConvolutionSpec]) -> Vec<GatedConvolutionSpec> {
    let changes = layers.windows(2).any(|pair| pair[0].channels != pair[1].channels);
    let layer = |channels| GatedConvolutionSpec { channels, kernel: 1, repeat: 1 };
    if changes { vec![layer(1), layer(2)] } else { vec![layer(1)] }
}

/// What a layer is made of, its sizes and rates left out.
pub fn layer_parts(layer: &AcousticLayerSpec) -> Vec<&'static str> {
    let activated = |activation: Activation| match activation {
        Activation::None => "layer without activation",
        Activation::Relu => "ReLU",
        Activation::Relu20 => "ReLU cut at 20",
    };
    match layer {
        AcousticLayerSpec::Convolution2d(layer) => vec!["2-D convolution", activated(layer.activation)],
        AcousticLayerSpec::Convolution(layer) => {
            let residual = match layer.residual {
                Residual::None => None,
                Residual::Block => Some("residual"),
                Residual::Dense => Some("dense residual"),
            };
            let options = [
                (layer.stride > 1, "stride"),
                (layer.dilation > 1, "dilation"),
                (layer.separable, "separable convolution"),
                (layer.padding == FramePadding::None, "convolution without padding"),
                (layer.bias, "convolution with a bias"),
                (layer.activation_before_norm, "activation before the norm"),
            ];
            let options = options.into_iter().filter(|(there, _)| *there).map(|(_, name)| name);
            ["convolution", activated(layer.activation)].into_iter().chain(residual).chain(options).collect()
        }
        AcousticLayerSpec::Recurrent(layer) => {
            let cell = match layer.cell {
                RecurrentCell::Lstm => "LSTM",
                RecurrentCell::Gru => "GRU",
            };
            [cell].into_iter().chain(layer.bidirectional.then_some("both directions")).collect()
        }
        AcousticLayerSpec::RowConvolution(layer) => vec!["row convolution", activated(layer.activation)],
        AcousticLayerSpec::Dense(layer) => vec!["dense layer", activated(layer.activation)],
    }
}

/// Is it the same loss but for the mass that smoothing takes and a guide's numbers? Without any mass the recipe's kind of smoothing does not
/// matter.
pub fn same_loss(recipe: &LossSpec, other: &LossSpec) -> bool {
    match (recipe, other) {
        (
            LossSpec::CrossEntropy { label_smoothing, smoothing, denominator },
            LossSpec::CrossEntropy { smoothing: other_smoothing, denominator: other_denominator, .. },
        ) => denominator == other_denominator && (*label_smoothing == 0.0 || smoothing == other_smoothing),
        (
            LossSpec::Spectrogram { padding, guide },
            LossSpec::Spectrogram { padding: other_padding, guide: other_guide },
        ) => padding == other_padding && guide.is_some() == other_guide.is_some(),
        (LossSpec::Ctc { .. }, LossSpec::Ctc { .. }) => recipe == other,
        _ => false,
    }
}

/// Is it the same search but for beam, exponent and lengths?
pub fn same_search(one: &DecodeSpec, other: &DecodeSpec) -> bool {
    use std::mem::discriminant;
    match (one, other) {
        (DecodeSpec::Greedy { .. }, DecodeSpec::Greedy { .. })
        | (DecodeSpec::CtcGreedy {}, DecodeSpec::CtcGreedy {})
        | (DecodeSpec::CtcLexicon { .. }, DecodeSpec::CtcLexicon { .. })
        | (DecodeSpec::FreeRunning(_), DecodeSpec::FreeRunning(_))
        | (DecodeSpec::TeacherForced {}, DecodeSpec::TeacherForced {}) => true,
        (
            DecodeSpec::CtcBeam { language_model, words, .. },
            DecodeSpec::CtcBeam { language_model: other_model, words: other_words, .. },
        ) => {
            language_model.is_some() == other_model.is_some()
                && words.as_ref().map(discriminant) == other_words.as_ref().map(discriminant)
        }
        (
            DecodeSpec::Beam { length_penalty, stop, .. },
            DecodeSpec::Beam { length_penalty: other_penalty, stop: other_stop, .. },
        ) => discriminant(length_penalty) == discriminant(other_penalty) && stop == other_stop,
        (DecodeSpec::TensorflowBeam { .. }, DecodeSpec::TensorflowBeam { .. }) => true,
        (
            DecodeSpec::GnmtBeam { coverage, as_coded, .. },
            DecodeSpec::GnmtBeam { coverage: other_coverage, as_coded: other_coded, .. },
        ) => (*coverage > 0.0) == (*other_coverage > 0.0) && as_coded == other_coded,
        (DecodeSpec::JoeynmtBeam { as_coded, .. }, DecodeSpec::JoeynmtBeam { as_coded: other_coded, .. }) => {
            as_coded == other_coded
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, Selection};

    use super::*;

    fn model(name: &str) -> ModelSpec {
        Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe.model
    }

    #[test]
    fn sizes_are_no_difference_and_kinds_are() {
        let (base, big) = (model("transformer-base"), model("transformer-big"));
        assert!(model_differences(&base, &big).is_empty());
        let differences = model_differences(&base, &model("multi30k-transformer-tiny"));
        for key in ["model.embedding.positions", "model.encoder.norm", "model.decoder.start"] {
            assert!(differences.contains(&key.to_owned()), "{differences:?}");
        }
    }
}
