//! Options of `zoo bench`.

use clap::Args;

use super::OverlayArgs;
use super::checks::ComputeChoice;
use crate::completing;

/// Examples of the command.
pub const EXAMPLES: &str = "\
Examples:
  zoo bench multi30k-transformer-tiny
  zoo bench transformer-base --arms fp32,mixed --device cuda:0 --format json
  zoo bench transformer-big --arms fp32 --steps 4
  zoo bench transformer-base --max-batch --shape 64x32 --memory 8GB
  zoo bench transformer-base --kernels --shape 128x32 --device cuda:0
  zoo bench gnmt-v2 --decode beam5 --shape 16x32
  zoo bench wave2letter-plus --decode greedy --shape 1x400 --arms fp32 --compute fp32,fp16,bf16

Batches are real if the data was fetched, else generated. The first arm is 1.0. Records nothing.
docs/devices.md describes the columns.";

/// Arguments of `zoo bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Name or path of a recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Tier and overrides
    #[command(flatten)]
    pub overlay: OverlayArgs,
    /// Arms to time [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", add = completing::arms())]
    pub arms: Vec<String>,
    /// Minimum updates per arm (batches with --decode); a speed-up needs 4 [default: about 12 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Use full batches of this shape, one per update, to compare with programs that pad
    #[arg(long, value_name = "SENTENCESxTOKENS")]
    pub shape: Option<crate::task::shape::Shape>,
    /// Time this search, with initial weights, instead of updates; --shape sets the lengths (frames
    /// of recordings)
    #[arg(
        long,
        value_name = "SEARCH",
        conflicts_with_all = ["max_batch", "kernels", "probe"],
        add = completing::searches()
    )]
    pub decode: Option<String>,
    /// Time the search in these types instead of those of the arms
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPE,…", requires = "decode")]
    pub compute: Vec<ComputeChoice>,
    /// Find the largest batch of each arm that fits, instead of timing. Starts at --shape, else at
    /// about the recipe's batch; doubles, then bisects to 1/16. Each attempt is a separate process
    #[arg(long, conflicts_with = "steps")]
    pub max_batch: bool,
    /// Memory limit of a batch on the CPU [default and maximum: 90 % of the available memory]
    #[arg(long, value_name = "SIZE", requires = "max_batch")]
    pub memory: Option<crate::memory::Bytes>,
    /// Time limit for one batch in seconds; a slower batch counts as too large
    #[arg(long, value_name = "N", requires = "max_batch", default_value_t = 120,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_seconds: u32,
    /// Show the kernels of one update of each arm on a GPU, instead of timing: launches and time
    #[arg(long, conflicts_with_all = ["max_batch", "steps"])]
    pub kernels: bool,
    /// Try one batch of --shape and print its time and memory as JSON; used by --max-batch
    #[arg(long, hide = true, requires = "shape", conflicts_with_all = ["max_batch", "kernels", "steps"])]
    pub probe: bool,
}
