//! Language modelling: comparison of its models with those of another framework.

mod align;

pub use align::LanguageCase;
