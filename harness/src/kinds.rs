//! Models of the same kinds of parts: equal but for sizes, rates and initialisers, which change numbers and not code.

use zoo_recipes::{DecodeSpec, DecoderSpec, EncoderSpec, LinearInit, LossSpec, ModelSpec};

/// Two models, or the dotted keys in which their kinds differ.
pub fn model_differences(one: &ModelSpec, other: &ModelSpec) -> Vec<String> {
    let json = |model: &ModelSpec| serde_json::to_value(kinds_of(model)).unwrap_or_default();
    let mut keys = Vec::new();
    differences("model", &json(one), &json(other), &mut keys);
    keys
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
    kinds.width = 1;
    kinds.embedding.init_std = None;
    kinds.embedding.dropout = 0.0;
    let EncoderSpec::Transformer(e) = &mut kinds.encoder;
    (e.layers, e.heads, e.ffn, e.norm_epsilon) = (1, 1, 1, 0.0);
    (e.dropout, e.attention_dropout, e.activation_dropout) = (0.0, 0.0, 0.0);
    e.init = LinearInit::XavierUniform;
    // Computes less, not something else.
    e.remove_padding = false;
    let DecoderSpec::Transformer(d) = &mut kinds.decoder;
    (d.layers, d.heads, d.ffn, d.norm_epsilon) = (1, 1, 1, 0.0);
    (d.dropout, d.attention_dropout, d.activation_dropout) = (0.0, 0.0, 0.0);
    d.init = LinearInit::XavierUniform;
    // Whether the target begins with a token of its own is the data's affair.
    d.begin_token_in_target = false;
    kinds
}

/// Is it the same loss but for the mass that smoothing takes? Without any the recipe's kind of smoothing does not matter.
pub fn same_loss(recipe: &LossSpec, other: &LossSpec) -> bool {
    let LossSpec::CrossEntropy { label_smoothing, smoothing, denominator } = recipe;
    let LossSpec::CrossEntropy { smoothing: other_smoothing, denominator: other_denominator, .. } = other;
    denominator == other_denominator && (*label_smoothing == 0.0 || smoothing == other_smoothing)
}

/// Is it the same search but for beam, exponent and lengths?
pub fn same_search(one: &DecodeSpec, other: &DecodeSpec) -> bool {
    use std::mem::discriminant;
    match (one, other) {
        (DecodeSpec::Greedy { .. }, DecodeSpec::Greedy { .. }) => true,
        (
            DecodeSpec::Beam { length_penalty, stop, .. },
            DecodeSpec::Beam { length_penalty: other_penalty, stop: other_stop, .. },
        ) => discriminant(length_penalty) == discriminant(other_penalty) && stop == other_stop,
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
