//! Options of the commands that use a model, or its features, on a user's own input.

use std::path::PathBuf;

use clap::Args;

use super::checks::ComputeChoice;
use crate::completing;

/// Arguments of `zoo infer`.
#[derive(Debug, Args)]
pub struct InferArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Recordings (WAV, FLAC), their folders, or `-` for stdin; pictures; one file of lines
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// File of lines to translate, score or classify [default: stdin, also `-`]
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub input: Option<PathBuf>,
    /// Target language of a multilingual model [default: its first]
    #[arg(long, value_name = "LANGUAGE")]
    pub target: Option<String>,
    /// Name of a search [default: that of the claims]
    #[arg(long, value_name = "SEARCH", add = completing::searches())]
    pub decode: Option<String>,
    /// Change a search; repeatable, e.g. decode.beam.language_model=model.arpa.gz
    #[arg(long = "set", value_name = "decode.NAME.KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Compute in this type [default: that of the run]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub compute: Option<ComputeChoice>,
    /// Print the N best hypotheses of a recording, or the N best classes, each after its score
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nbest: Option<u32>,
    /// Beginning of a text that a language model continues [default: score the lines of --input]
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["files", "input"])]
    pub prompt: Option<String>,
    /// Number of words or characters to write [default: 200]
    #[arg(long, value_name = "N", requires = "prompt", value_parser = clap::value_parser!(u32).range(1..))]
    pub length: Option<u32>,
    /// Divisor of the scores before a draw; 0 always takes the likeliest [default: 1]
    #[arg(long, value_name = "T", requires = "prompt", value_parser = not_negative)]
    #[arg(allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// Draw from the K likeliest words or characters only [default: all]
    #[arg(long, value_name = "K", requires = "prompt", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_k: Option<u32>,
    /// Seed of the draws [default: 1]
    #[arg(long, value_name = "SEED", requires = "prompt")]
    pub seed: Option<u64>,
}

/// A finite number that is not negative.
fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("give a number from 0 on, e.g. 0.8".to_owned()),
    }
}

/// Arguments of `zoo synthesize`.
#[derive(Debug, Args)]
pub struct SynthesizeArgs {
    /// Folder of a run, or its name: NAME[:ARM[:SEED]] or @last
    #[arg(add = completing::runs())]
    pub run: PathBuf,
    /// Text to synthesize
    pub text: Option<String>,
    /// File of lines to synthesize [default: stdin, also `-`]
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub input: Option<PathBuf>,
    /// WAV file to write; a folder if the input is lines
    #[arg(long, short, value_name = "PATH")]
    pub out: PathBuf,
    /// Also draw the attention alignment as an SVG file
    #[arg(long)]
    pub picture: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Maximum number of frames [default: the search's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_frames: Option<u32>,
    /// Name of a search [default: the free-running one]
    #[arg(long, value_name = "SEARCH", add = completing::searches())]
    pub decode: Option<String>,
    /// Change a search; repeatable, e.g. decode.free.vocoder.iterations=100
    #[arg(long = "set", value_name = "decode.NAME.KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Compute in this type [default: that of the run]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub compute: Option<ComputeChoice>,
}

/// Arguments of `zoo features`.
#[derive(Debug, Args)]
pub struct FeaturesArgs {
    /// Name or path of a speech recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// A recording: WAV or FLAC
    pub file: PathBuf,
    /// File to write; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Apply the recipe's augmentation, as in training
    #[arg(long)]
    pub training: bool,
    /// Use this tier instead of the published size, e.g. smoke
    #[arg(long, value_name = "TIER", add = completing::tiers())]
    pub tier: Option<String>,
    /// Change a key, e.g. data.features.dither=0
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}
