//! Comparison of translation models, losses and searches by the kinds of their parts.

use std::mem::discriminant;

use zoo_recipes::tasks::translation::{TokenLossSpec, TokenSearchSpec, TranslationModelSpec};

use crate::kinds::differences;

/// The dotted keys in which the kinds of two models differ.
pub fn differences_of(one: &TranslationModelSpec, other: &TranslationModelSpec) -> Vec<String> {
    differences("model", &one.kinds(), &other.kinds())
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

    fn model(name: &str) -> TranslationModelSpec {
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
