//! Translation of fairseq's parameter names of a Transformer.
//!
//! Supports fairseq 0.9 and later, with separate projections, and earlier versions, where `in_proj`
//! stacks query, key and value.

use super::Named;

/// Parts of a layer: fairseq's name, our name.
const LAYER: [(&str, &str); 8] = [
    ("self_attn_layer_norm", "self_attention_norm"),
    ("encoder_attn_layer_norm", "cross_attention_norm"),
    ("final_layer_norm", "feed_forward_norm"),
    ("self_attn", "self_attention"),
    ("encoder_attn", "cross_attention"),
    ("fc1", "feed_forward.input"),
    ("fc2", "feed_forward.output"),
    ("layer_norm", "norm"),
];

/// Projections of an attention: fairseq's name, our name.
const PROJECTIONS: [(&str, &str); 4] =
    [("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output")];

/// Parameters outside layers: fairseq's name, our name.
const OUTSIDE: [(&str, &str); 5] = [
    ("encoder.embed_tokens.weight", "embedding.weight"),
    ("decoder.embed_tokens.weight", "target_embedding.weight"),
    ("decoder.output_projection.weight", "output.weight"),
    ("encoder.layer_norm", "encoder.norm"),
    ("decoder.layer_norm", "decoder.norm"),
];

/// Whether these are fairseq's names.
pub fn is_fairseq<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
    names.any(|name| name.starts_with("encoder.layers.") && name.contains(".self_attn."))
}

/// Translates names to our paths. Entries that are not parameters (versions, positions) are left
/// out.
pub fn translate(named: Named) -> Named {
    let mut found = Named::new();
    for (name, (shape, values)) in named {
        if name.ends_with(".version") || name.contains(".embed_positions.") {
            continue;
        }
        // An array that cannot be split into three projections keeps its name, and is then reported
        // as unknown.
        let joint = name.split_once(".in_proj_").zip(shape.first().filter(|rows| rows.is_multiple_of(3)));
        let Some(((before, kind), rows)) = joint else {
            found.insert(path(&name), (shape, values));
            continue;
        };
        let (rows, one) = (rows / 3, values.len() / 3);
        for (i, (projection, _)) in PROJECTIONS.iter().take(3).enumerate() {
            let mut part = shape.clone();
            part[0] = rows;
            let part_of = values[i * one..(i + 1) * one].to_vec();
            found.insert(path(&format!("{before}.{projection}.{kind}")), (part, part_of));
        }
    }
    found
}

fn path(name: &str) -> String {
    if let Some((from, to)) =
        OUTSIDE.iter().find(|(from, _)| name == *from || name.starts_with(&format!("{from}.")))
    {
        return format!("{to}{}", &name[from.len()..]);
    }
    let rename = |part: &str| {
        let known = LAYER.iter().chain(&PROJECTIONS).find(|(from, _)| *from == part);
        known.map_or(part, |(_, to)| to).to_string()
    };
    name.split('.').map(rename).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_ages_become_paths() {
        let array = |n: usize| (vec![n], (0..n).map(|i| i as f32).collect::<Vec<f32>>());
        let named: Named = [
            ("encoder.embed_tokens.weight", 2),
            ("encoder.embed_positions._float_tensor", 1),
            ("encoder.layers.0.self_attn.in_proj_weight", 6),
            ("encoder.layers.0.self_attn.out_proj.bias", 1),
            ("encoder.layers.0.fc1.weight", 1),
            ("decoder.layers.3.encoder_attn.k_proj.weight", 1),
            ("decoder.layers.3.encoder_attn_layer_norm.bias", 1),
            ("decoder.layers.3.final_layer_norm.weight", 1),
            ("decoder.layer_norm.weight", 1),
            ("decoder.version", 1),
        ]
        .into_iter()
        .map(|(name, n)| (name.to_string(), array(n)))
        .collect();
        assert!(is_fairseq(named.keys()));
        let found = translate(named);
        let paths: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "decoder.layers.3.cross_attention.key.weight",
                "decoder.layers.3.cross_attention_norm.bias",
                "decoder.layers.3.feed_forward_norm.weight",
                "decoder.norm.weight",
                "embedding.weight",
                "encoder.layers.0.feed_forward.input.weight",
                "encoder.layers.0.self_attention.key.weight",
                "encoder.layers.0.self_attention.output.bias",
                "encoder.layers.0.self_attention.query.weight",
                "encoder.layers.0.self_attention.value.weight",
            ]
        );
        assert_eq!(found["encoder.layers.0.self_attention.key.weight"], (vec![2], vec![2.0, 3.0]));
        for shape in [vec![], vec![4]] {
            let odd: Named =
                [("encoder.layers.0.self_attn.in_proj_bias".to_string(), (shape, vec![0.0; 4]))].into();
            let found = translate(odd);
            assert_eq!(found.keys().collect::<Vec<_>>(), ["encoder.layers.0.self_attention.in_proj_bias"]);
        }
    }
}
