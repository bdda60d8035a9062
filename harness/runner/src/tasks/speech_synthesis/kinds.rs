//! Comparison of losses of synthesizers.

use zoo_recipes::tasks::speech_synthesis::SpectrogramLossSpec;

/// Whether two losses are equal except for the numbers of the attention guide.
pub fn same_loss(one: &SpectrogramLossSpec, other: &SpectrogramLossSpec) -> bool {
    let kinds = |SpectrogramLossSpec::Spectrogram { padding, guide }: &SpectrogramLossSpec| {
        (*padding, guide.is_some())
    };
    kinds(one) == kinds(other)
}
