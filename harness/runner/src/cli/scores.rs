//! Options of the commands that read text or scores of any framework.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::completing;
use crate::external::row::ScoreRow;
use crate::tracking::series::At;

/// Arguments of `zoo score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// One hypothesis or one record of JSON a line; `-` or none: stdin
    #[arg(long, value_name = "FILE")]
    pub hypotheses: Option<PathBuf>,
    /// One reference a line; repeatable for several references a segment. Loss and perplexity need
    /// none
    #[arg(long, value_name = "FILE", required_unless_present = "signature")]
    pub references: Vec<PathBuf>,
    /// Metric to compute
    #[arg(long, value_enum, default_value_t)]
    pub metric: TextMetric,
    /// Full scoring convention, as published with scores; replaces the options below
    #[arg(long, value_name = "SIGNATURE", conflicts_with_all = ["tokenizer", "case", "smoothing", "smoothing_value", "split_compounds", "whitespace", "classes"])]
    pub signature: Option<String>,
    /// BLEU: 13a, intl, char, zh or none
    #[arg(long)]
    pub tokenizer: Option<String>,
    /// mixed or lower [default: the metric's usual one]
    #[arg(long, value_enum)]
    pub case: Option<CaseChoice>,
    /// BLEU: exp, none, floor or add-k
    #[arg(long)]
    pub smoothing: Option<String>,
    /// BLEU: value of floor or add-k
    #[arg(long, value_name = "X")]
    pub smoothing_value: Option<f64>,
    /// multi-bleu, fairseq-bleu: count the parts of hyphened words, as the scripts of tensor2tensor
    /// and fairseq do
    #[arg(long)]
    pub split_compounds: bool,
    /// wer, cer: white space as in jiwer, or `collapse` any run of it to one space [default: jiwer]
    #[arg(long, value_name = "NAME")]
    pub whitespace: Option<String>,
    /// accuracy, f1: number of classes
    #[arg(long, value_name = "N", required_if_eq_any = [("metric", "accuracy"), ("metric", "f1")])]
    pub classes: Option<usize>,
    /// wer, cer: also show the utterances with the most errors, aligned
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub worst: usize,
    /// wer, cer: also show the rate by reference length, in classes with these upper limits
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub lengths: Vec<u64>,
    /// chrF: order of word n-grams; 2 is chrF++
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub word_order: usize,
    /// Compute a 95 % interval by bootstrap resampling
    #[arg(long)]
    pub interval: bool,
    /// Number of bootstrap resamples
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "interval")]
    pub samples: usize,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = 12345, requires = "interval")]
    pub resampling_seed: u64,
    /// Name of the test set, for the signature
    #[arg(long, value_name = "SET")]
    pub eval: Option<String>,
}

/// Metrics that are computed from text or from records of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TextMetric {
    /// sacreBLEU's BLEU
    #[default]
    Bleu,
    /// BLEU as Moses' multi-bleu counts it, on tokenised text
    MultiBleu,
    /// BLEU as fairseq counts it, on tokenised text
    FairseqBleu,
    /// chrF and chrF++
    Chrf,
    /// Translation edit rate
    Ter,
    /// Word error rate, as jiwer counts it
    Wer,
    /// Character error rate, as jiwer counts it: spaces are characters
    Cer,
    /// Lines that equal a reference
    ExactMatch,
    /// Right answers of a classifier
    Accuracy,
    /// Mean over a classifier's classes of F1
    F1,
}

/// Treatment of case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CaseChoice {
    /// Keep case
    Mixed,
    /// Lower-case both sides
    Lower,
}

/// Arguments of `zoo judge`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("results").required(true).args(["hypotheses", "scores", "points", "tensorboard", "mlflow"]))]
pub struct JudgeArgs {
    /// Name or path of a recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Scores of runs that differ only in their seed
    #[arg(long, value_delimiter = ',', value_name = "SCORE,…", allow_negative_numbers = true)]
    pub scores: Vec<f64>,
    /// Hypotheses of one run, one per line; repeatable, one file per run
    #[arg(long, value_name = "FILE")]
    pub hypotheses: Vec<PathBuf>,
    /// References, instead of those of the recipe's data; repeatable for several references per
    /// segment
    #[arg(long, value_name = "FILE", requires = "hypotheses")]
    pub references: Vec<PathBuf>,
    /// Scores of one run at the points of a trajectory claim, in their order; repeatable, once per
    /// run
    #[arg(long, value_name = "SCORE,…", allow_negative_numbers = true)]
    pub points: Vec<ScoreRow>,
    /// Folder of TensorBoard whose runs differ only in their seed, with --tag; repeatable
    #[arg(long, value_name = "DIR", requires = "tag")]
    pub tensorboard: Vec<PathBuf>,
    /// Tag of the score in TensorBoard
    #[arg(long, value_name = "TAG", requires = "tensorboard")]
    pub tag: Option<String>,
    /// Folder of MLflow's file store, or of an experiment or run in it, with --metric; repeatable
    #[arg(long, value_name = "DIR", requires = "metric")]
    pub mlflow: Vec<PathBuf>,
    /// Name of the score in MLflow
    #[arg(long, value_name = "NAME", requires = "mlflow")]
    pub metric: Option<String>,
    /// Value of a run that is its score [default: last]
    #[arg(long, value_enum, conflicts_with_all = ["hypotheses", "scores", "points"])]
    pub at: Option<At>,
    /// Multiply the scores of a tracker, e.g. by 100 if they are fractions and the claim is in percent
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["hypotheses", "scores", "points"])]
    pub times: Option<f64>,
    /// Arm of the results [default: each claim's arm]
    #[arg(long, add = completing::arms())]
    pub arm: Option<String>,
    /// Scores of the baseline arm, in the order of --scores: judges parity claims
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SCORE,…",
        allow_negative_numbers = true,
        requires = "scores"
    )]
    pub baseline_scores: Vec<f64>,
    /// Hypotheses of the baseline arm, one file per run, in the order of --hypotheses: judges
    /// parity claims
    #[arg(long, value_name = "FILE", requires = "hypotheses")]
    pub baseline_hypotheses: Vec<PathBuf>,
    /// Judge this claim only: its number in `zoo show`, from 1; repeatable
    #[arg(long, value_name = "N")]
    pub claim: Vec<usize>,
    /// Signature that the scores were computed with [default: taken to be the claim's]
    #[arg(long, value_name = "SIGNATURE", conflicts_with_all = ["hypotheses", "points"])]
    pub signature: Option<String>,
    /// Take scores that look like fractions (0.271 for a BLEU of 27.5) as percentages
    #[arg(long)]
    pub as_given: bool,
    /// Write the verdicts to the ledger [default: print them only]
    #[arg(long)]
    pub record: bool,
}
