//! Comparison of losses of synthesizers.

use zoo_recipes::LossSpec;

/// Whether two losses are equal except for the numbers of the attention guide.
pub fn same_loss(one: &LossSpec, other: &LossSpec) -> bool {
    match (one, other) {
        (
            LossSpec::Spectrogram { padding, guide },
            LossSpec::Spectrogram { padding: other_padding, guide: other_guide },
        ) => padding == other_padding && guide.is_some() == other_guide.is_some(),
        _ => false,
    }
}
