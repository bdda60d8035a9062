//! Answers of classifiers: the class with the highest score, records of scores, and the confusion
//! matrix.

mod answer;
mod confusion;
mod inferred;

pub use answer::{Answer, record, wrong};
pub use confusion::confusion;
pub use inferred::Inferred;
