//! Magnitudes of the values of training updates, and what FP16 makes of them: figures 2 and 3 of
//! Micikevicius et al. 2018, "Mixed Precision Training".
//!
//! Everything here is pure. The program that trains fills the histograms.

mod before;
mod counting;
mod fp16;
mod histogram;
mod layers;
mod quantity;
mod sample;

pub use before::WeightsBefore;
pub(crate) use fp16::{ABOVE, SMALLEST_NORMAL, SMALLEST_SUBNORMAL};
pub use fp16::{Fp16Shares, HEADROOM, LOST_LIMIT, Reason, SuggestedScale, suggest};
pub use histogram::{BELOW_NORMAL, ExponentHistogram};
pub use layers::{ByLayer, Pattern};
pub use quantity::{Profile, ProfiledUpdate, Quantity, Row};
