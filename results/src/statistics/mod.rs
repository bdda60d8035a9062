//! The statistics behind verdicts: distribution functions, order statistics, exact binomial limits,
//! and planned looks.
//!
//! The formulae are in `docs/verdicts.md`.

mod binomial;
mod distributions;
mod looks;
mod order;
mod sample;
mod speed;
mod spreads;

pub use binomial::{TRIAL_LIMIT, clopper_pearson, trials_needed};
pub use distributions::{
    chi_squared_cdf, chi_squared_quantile, normal_cdf, normal_quantile, t_cdf, t_quantile,
};
pub use looks::{ALPHA, Look, LookError, LookPlan};
pub use order::{MaximumOfNormals, maximum_of_normals};
pub use sample::{mean, median, standard_deviation};
pub use speed::{AbbaBlock, SpeedUp, speed_up};
pub use spreads::{MeasuredSpread, spread, spreads};
