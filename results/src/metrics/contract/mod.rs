//! What a family of metrics implements and is written with. Nothing here depends on a family, on
//! the registry or on a score.

mod arithmetic;
mod entry;
mod error;
mod limits;
mod lines;
mod metric;
mod parts;
mod record;
mod resampling;
mod rows;
mod unit;

pub use arithmetic::Arithmetic;
pub use entry::{Entry, Path, Work};
pub(crate) use error::unknown;
pub use error::{ScoreError, SignatureError};
pub(crate) use limits::{Limit, check_cells, check_lines};
pub use lines::Case;
pub(crate) use lines::{check_streams, is_separator, is_space, separators_to_spaces};
pub use metric::{Metric, Reading, Source};
pub use parts::Parts;
pub(crate) use parts::{EXAMPLE, join, malformed, yes};
pub(crate) use record::{is_object, parse, wrong};
pub use resampling::{Resampling, ResamplingError};
pub(crate) use rows::column_sums;
pub use rows::{Drawn, Rows};
pub use unit::Unit;
