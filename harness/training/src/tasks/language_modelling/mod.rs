//! Language modelling: comparison of its models with those of another framework.

mod align;
mod sampled;

pub use align::LanguageCase;
pub use sampled::SampledCase;
