//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

pub use self::bench::BenchArgs;
pub use self::cache::{CacheArgs, CacheCommand, CacheGcArgs, CacheLsArgs, CacheVerifyArgs};
pub use self::checks::{
    AlignArgs, BundleArgs, CheckArgs, ComputeChoice, ExplainArgs, RegressArgs, VerifyArgs,
};
pub use self::inputs::{FeaturesArgs, InferArgs, SynthesizeArgs};
pub use self::ledger::{
    LedgerCommand, LedgerExportArgs, LedgerFile, LedgerListArgs, LedgerMergeArgs, LedgerRecheckArgs,
    LedgerRows, LedgerShowArgs, LedgerVerifyArgs, ReportArgs,
};
pub use self::profile::ProfileArgs;
pub use self::replay::ReplayArgs;
pub use self::runs::{DiffArgs, EvaluateArgs, ExportArgs, LogArgs, PackArgs, RunsArgs};
pub use self::scores::{CaseChoice, JudgeArgs, ScoreArgs, TextMetric};
pub use self::tracking::{TrackArgs, TrackOptions};
use crate::completing;
use crate::device::DeviceChoice;
use crate::fp32::Fp32;
use crate::output::Format;

mod bench;
mod cache;
mod checks;
mod inputs;
mod ledger;
pub mod parsing;
mod profile;
mod replay;
mod runs;
mod scores;
mod tracking;

/// A model zoo that reproduces published results: from a recipe to a verdict.
#[derive(Debug, Parser)]
#[command(name = "zoo", version, arg_required_else_help = true, subcommand_required = true, max_term_width = 120,
          after_help = crate::help::EXAMPLES, after_long_help = crate::help::LONG.as_str())]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of all commands")]
pub struct GlobalOptions {
    /// Folder for downloads, prepared data, runs and ledger [default: the platform's data folder]
    #[arg(long, global = true, value_name = "FOLDER", env = "ZOO_HOME", hide_env_values = true)]
    pub home: Option<PathBuf>,
    /// Mirror to try before the published URLs: a folder or URL laid out as <host>/<path>
    #[arg(long, global = true, value_name = "FOLDER|URL", env = "ZOO_MIRROR", hide_env_values = true)]
    pub mirror: Option<String>,
    /// Do not open network connections
    #[arg(long, global = true)]
    pub offline: bool,
    /// Do not ask: accept plans of over an hour or a gigabyte, and unchecked data over http
    #[arg(long, short, global = true)]
    pub yes: bool,
    /// Output format of stdout
    #[arg(long, global = true, default_value = "human", value_name = "FORMAT", value_parser = formats())]
    pub format: Format,
    /// auto, cpu, cuda[:N] or wgpu
    #[arg(long, global = true, default_value_t, value_name = "DEVICE")]
    pub device: DeviceChoice,
    /// Precision of FP32 products with TF32 hardware [default: from the arm names, else strict]
    #[arg(long, global = true, value_enum, value_name = "PRODUCTS")]
    pub fp32: Option<Fp32>,
    /// Number of CPU threads [default: all]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print only errors to stderr
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more on stderr
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["human", "json", "csv", "md"]).try_map(|word| word.parse::<Format>())
}

/// Subcommands of `zoo`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the recipes with verdict, size, training time and evidence
    #[command(after_help = "\
Examples:
  zoo list --task translation
  zoo list --tag openseq2seq --evidence smoke --format json
  zoo list --claims --task translation -o claims.csv

The verdict is the worst on the recipe's published claims; without such claims, on its extended ones
or its own checks: `2/3 pub` is two of three published claims. The time is that of a recorded
training at the published size. A terminal shows the columns that fit; JSON and CSV have all.

Evidence is the highest level that passes with all lower levels: schema, parameters, parity,
traces, smoke, small-run, full-run. `zoo show NAME` prints what each level is derived from.")]
    List(ListArgs),
    /// Show one recipe: resolved values, arms, claims with sources, size, licence, records
    #[command(after_help = "\
Examples:
  zoo show transformer-big
  zoo show ./my-recipe.toml --arm mixed --toml")]
    Show(ShowArgs),
    /// Check recipes: what is wrong, with file, line, column and the nearest key
    #[command(after_help = "\
Examples:
  zoo check                 every recipe that is built in
  zoo check my-recipe.toml")]
    Check(CheckArgs),
    /// Fetch, verify and unpack a recipe's data
    #[command(after_help = "\
Examples:
  zoo fetch multi30k-transformer-tiny
  zoo fetch multi30k-transformer-tiny --verify --offline")]
    Fetch(FetchArgs),
    /// Fetch, prepare, train, decode, score and judge; resumes an interrupted run
    #[command(after_help = "\
Examples:
  zoo reproduce reversal-transformer
  zoo reproduce multi30k-transformer-tiny --arms fp32 --seeds 3 --yes
  zoo reproduce multi30k-transformer-tiny --seeds 1,3,5,10 --jobs 2 --yes
  zoo reproduce transformer-big --plan --gpu h100
  zoo reproduce reversal-transformer --tier smoke --set train.log_every=1
  zoo reproduce reversal-transformer --tensorboard tb   # then: tensorboard --logdir tb")]
    Reproduce(ReproduceArgs),
    /// List the runs of the home: state, updates, score, verdict, size, age; newest first
    #[command(after_help = "\
Examples:
  zoo runs
  zoo runs reversal-transformer --arms fp32 --state evaluated
  zoo runs --newest 20 --watch
  zoo runs --format json

The name of a run, NAME[:ARM[:SEED]], selects it wherever a command takes a run, and so does @last.
The score is the first one of the evaluation that was written first. The verdict is the recorded one
on the first claim of the arm. docs/runs.md describes names, states and columns.")]
    Runs(RunsArgs),
    /// Print the log of a run: sessions, losses, validations, end; follow it with -f
    #[command(after_help = "\
Examples:
  zoo log @last
  zoo log reversal-transformer:fp32 -f
  zoo log reversal-transformer:fp32:1 -n 100 --format json

--format json prints the lines of log.jsonl as they are.")]
    Log(LogArgs),
    /// Compare two runs: recipe, data, program and machine, losses, and scores with a paired test
    #[command(after_help = "\
Examples:
  zoo diff reversal-transformer:fp32:1 reversal-transformer:mixed:1
  zoo diff reversal-transformer:fp32 @last --format json

Writes nothing. The 95 % interval is that of the test set, without the spread between seeds.")]
    Diff(DiffArgs),
    /// Write runs for TensorBoard or MLflow: curves, scores, hyperparameters
    #[command(after_help = "\
Examples:
  zoo track @last --tensorboard tb             # then: tensorboard --logdir tb
  zoo track reversal-transformer:fp32 reversal-transformer:mixed --tensorboard tb --mlflow mlruns
  zoo track --all --mlflow mlruns

Writing a run again adds only what is new. `zoo reproduce` has the same options, and then writes while
it trains. docs/trackers.md describes the files.")]
    Track(TrackArgs),
    /// Time the updates of a recipe's arms, turn by turn, on batches of the published shape
    #[command(after_help = self::bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Show the exponents of gradients, weights and updates, what FP16 loses, and a loss scale
    #[command(after_help = "\
Examples:
  zoo profile reversal-transformer --tier smoke
  zoo profile multi30k-transformer-tiny --arm fp32 --update 1,100,1000 --svg exponents.svg
  zoo profile ~/.local/share/zoo/runs/RUN --layer decoder --format json
  zoo profile @last --save && zoo report @last

Trains a copy in a scratch folder up to the last named update. Records nothing and leaves RUN as it
is, but for profile.json with --save. Profile an FP32 arm: in FP16, values that are lost are zeros
already. docs/mixed-precision.md describes the columns.")]
    Profile(ProfileArgs),
    /// Compute an update of a run again, and name the first tensor that another type changes
    #[command(after_help = self::replay::EXAMPLES)]
    Replay(ReplayArgs),
    /// Decode and score the weights of a run or checkpoint
    #[command(after_help = "\
Examples:
  zoo evaluate multi30k-transformer-tiny:fp32 --eval test_2017_flickr
  zoo evaluate ~/.local/share/zoo/runs/RUN --decode beam5 --format json
  zoo evaluate ~/.local/share/zoo/runs/RUN --decode beam-4-gram --set decode.beam-4-gram.language_model=4-gram.arpa.gz \\
    --sweep alpha=1.5:3:0.5,beta=-1:1:0.5

A sweep writes no files: it prints each pair's score, and the --set options of the best pair.")]
    Evaluate(EvaluateArgs),
    /// Write the weights that a run evaluates as safetensors
    #[command(after_help = "\
Examples:
  zoo export @last model.safetensors
  zoo reproduce my-recipe.toml --arms mixed --init-from model.safetensors")]
    Export(ExportArgs),
    /// Pack a run into a folder that works anywhere: weights, vocabulary, model card, record
    #[command(after_help = "\
Examples:
  zoo pack reversal-transformer:fp32 -o reversal
  zoo pack @last -o model.tar --license cc-by-4.0
  zoo pack --check reversal
  zoo infer reversal --input lines.txt

The folder is laid out as a repository of Hugging Face. docs/packages.md describes the files.")]
    Pack(PackArgs),
    /// Write a recipe for your own text: translation, a language model or a classifier
    #[command(after_help = "\
Examples:
  zoo new captions --base multi30k-transformer-tiny --train train.en,train.de --valid valid.en,valid.de
  zoo new mails --base imdb-cnn-keras --train train.txt --test test.txt
  zoo check ./captions.toml && zoo reproduce ./captions.toml --arms fp32")]
    New(NewArgs),
    /// Score hypotheses against references; needs no recipe
    #[command(after_help = "\
Examples:
  zoo score --hypotheses out.de --references ref.de
  zoo score --references ref.de --metric chrf --interval < out.de
  zoo score --hypotheses out.txt --references ref.txt --metric wer --case lower --worst 5
  zoo score --hypotheses out.jsonl --references labels.txt --metric f1 --classes 2
  zoo score --hypotheses out.de --references a.de --references b.de --tokenizer none --case lower --smoothing none")]
    Score(ScoreArgs),
    /// Judge results of any framework by a recipe's claims
    #[command(after_help = "\
Examples:
  zoo judge transformer-big --scores 27.1,27.4
  zoo judge multi30k-transformer-tiny --hypotheses out.de --arm fp32
  zoo judge transformer-big --hypotheses seed1.de --hypotheses seed2.de --references newstest2014.de
  zoo judge gnmt-v2 --points 19.9,21.6,22.3,23.1,24.2,24.4 --points 20.1,21.9
  zoo judge transformer-big --scores 27.1,27.4 --record
  zoo judge imdb-cnn-keras --tensorboard logs --tag epoch_val_accuracy --at last --times 100
  zoo judge imdb-cnn-keras --mlflow mlruns/123456789 --metric val_accuracy --times 100

Prints the verdicts. --record also writes them to the ledger in --home, marked as external.")]
    Judge(JudgeArgs),
    /// Compare a model with weights, outputs, gradients and one update made by any framework
    #[command(after_help = "\
Examples:
  zoo align transformer-base dump.safetensors
  zoo align transformer-base dump.safetensors --compute bf16

docs/align.md describes the file.")]
    Align(AlignArgs),
    /// Translate, transcribe, classify, score or continue an input with a trained run
    #[command(after_help = "\
Examples:
  echo 'α β γ' | zoo infer reversal-transformer:fp32
  zoo infer ~/.local/share/zoo/runs/RUN --input lines.en --decode beam5
  zoo infer ~/.local/share/zoo/runs/RUN --input lines.en --target fr
  zoo infer @last speech.wav
  zoo infer ~/.local/share/zoo/runs/RUN recordings/ --format json
  zoo infer ~/.local/share/zoo/runs/RUN speech.wav --decode beam --nbest 5
  zoo infer ~/.local/share/zoo/runs/RUN --prompt 'the bank said' --temperature 0.8 --length 50

With --format json, each recording is one line with the time of each word and the decoding time;
--nbest adds all hypotheses and the parts of their scores.")]
    Infer(InferArgs),
    /// Synthesize speech from a text, or from lines of text, with a trained run
    #[command(after_help = "\
Examples:
  zoo synthesize ~/.local/share/zoo/runs/RUN \"Printing, in the only sense.\" -o out.wav
  zoo synthesize ~/.local/share/zoo/runs/RUN \"Printing.\" -o out.wav --picture
  zoo synthesize ~/.local/share/zoo/runs/RUN --input lines.txt -o spoken/

Each line of --input becomes a numbered file in the folder. --picture draws the alignment: out.svg.")]
    Synthesize(SynthesizeArgs),
    /// Write the features of a recording, as a recipe's model reads them
    #[command(after_help = "\
Examples:
  zoo features wave2letter-plus speech.flac --out features.npy
  zoo features yesno-tdnn speech.wav --out features.npy --training

The file is NumPy's: FP32, [frames, features].")]
    Features(FeaturesArgs),
    /// Verify, recheck, merge, list or show recorded results
    #[command(
        subcommand,
        after_help = "\
Examples:
  zoo ledger verify --ledger results/data/ledger.jsonl
  zoo ledger recheck --ledger results/data/ledger.jsonl
  zoo ledger list --recipe reversal-transformer
  zoo ledger show 3"
    )]
    Ledger(LedgerCommand),
    /// Compare current results with the claims and with recorded results, for CI
    #[command(after_help = "\
Examples:
  zoo regress --baseline results/data/ledger.jsonl
  zoo regress --select multi30k --tier full --yes --junit regress.xml --github
  zoo regress --results other/ledger.jsonl --baseline results/data/ledger.jsonl --tier full

Runs of another program are not reused: the column `run` shows `new` or `reused, same program`.
Exit codes: 10 worse, 11 undecided, 12 nothing comparable. docs/regressions.md has the rules.")]
    Regress(RegressArgs),
    /// Split the gap between a claimed and a measured score: convention, search, averaging, rest
    #[command(after_help = "\
Examples:
  zoo explain ~/.local/share/zoo/runs/RUN --decode
  zoo explain --hypotheses out.de --references ref.de --claimed 29.3 --language de
  zoo explain --hypotheses out.de --recipe transformer-big --search greedy=greedy.de

docs/explain.md says how the parts are found.")]
    Explain(ExplainArgs),
    /// Pack a recorded run into one file that a reviewer can check
    #[command(after_help = "\
Examples:
  zoo bundle ~/.local/share/zoo/runs/RUN
  zoo bundle 2 --ledger results/data/ledger.jsonl --out toy.bundle.json
  zoo ledger recheck toy.bundle.json

docs/bundles.md describes the file. It contains only the digests of references.")]
    Bundle(BundleArgs),
    /// Write an HTML report on runs, or a table of a ledger's results
    #[command(after_help = "\
Examples:
  zoo report yesno-tdnn                        verdicts, curves, errors: yesno-tdnn.report.html
  zoo report ~/.local/share/zoo/runs/RUN ~/.local/share/zoo/runs/OTHER -o both.html
  zoo report reversal-transformer --tier smoke --arms fp32,mixed --seeds 1,2
  zoo report --ledger results/data/ledger.jsonl --format md
  zoo report --ledger results/data/ledger.jsonl --into RESULTS.md
  zoo report --ledger results/data/ledger.jsonl --into RESULTS.md --check

The page loads no resources, runs no scripts and quotes sentences of the data: see docs/report.md.")]
    Report(ReportArgs),
    /// Re-check a recipe's evidence level by level; stop at the first failure
    #[command(after_help = "\
Examples:
  zoo verify                                   every recipe, up to parity: seconds
  zoo verify reversal-transformer --to smoke
  zoo verify my-recipe.toml --to parity --fixtures tests/fixtures

Levels: schema, parameters, parity, traces, smoke, small-run, full-run. Without --to, each recipe is
checked up to its recorded evidence, at most to parity. The exit code is 9 if a level fails.")]
    Verify(VerifyArgs),
    /// Show the sizes of what the home stores, verify it, and remove what is not needed
    #[command(after_help = self::cache::EXAMPLES)]
    Cache(CacheArgs),
    /// Check the set-up of this machine; print how to fix each problem
    #[command(after_help = "\
Examples:
  zoo doctor
  zoo doctor --device cuda:0 --mirror /data/mirror

Notes are optional. Exit code 8: --device cannot be used; 4: a folder that you named cannot.")]
    Doctor,
    /// Write the JSON Schema of recipe files
    #[command(after_help = "\
Examples:
  zoo schema > recipes/schema/schema.json
  zoo schema --check recipes/schema/schema.json")]
    Schema(SchemaArgs),
    /// Write the completions of a shell, which know recipes, runs, arms, tiers and seeds
    #[command(after_help = "\
Examples:
  source <(zoo completions bash)           in ~/.bashrc
  source <(zoo completions zsh)            in ~/.zshrc, after compinit
  zoo completions fish | source            in ~/.config/fish/config.fish

The script calls `zoo` for each completion, so `zoo` must be in PATH. It belongs to this version of
zoo: let the shell read it at each start instead of keeping it in a file.")]
    Completions(CompletionsArgs),
    /// Print the man page of a command, or write all man pages into a folder
    #[command(after_help = "\
Examples:
  zoo man | man -l -
  zoo man ledger recheck | man -l -
  zoo man -o ~/.local/share/man/man1       then `man zoo`, `man zoo-reproduce`")]
    Man(ManArgs),
}

/// Arguments of `zoo list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// List only recipes of this task
    #[arg(long)]
    pub task: Option<String>,
    /// List only recipes with this tag; repeatable, a recipe needs all of them
    #[arg(long)]
    pub tag: Vec<String>,
    /// List only recipes with at least this evidence
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub evidence: Option<crate::evidence::rung::Rung>,
    /// List the claims of the recipes with their last verdicts
    #[arg(long)]
    pub claims: bool,
    /// New file for the table: .csv, .json or .parquet [default: stdout, as --format]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Arguments of `zoo show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of a recipe, or path of a recipe file
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Show the recipe as this arm resolves it
    #[arg(long, add = completing::arms())]
    pub arm: Option<String>,
    /// Print only the resolved recipe, as TOML
    #[arg(long)]
    pub toml: bool,
    /// Tier and overrides
    #[command(flatten)]
    pub overlay: OverlayArgs,
}

/// Tier and overrides.
#[derive(Debug, Args)]
pub struct OverlayArgs {
    /// A size other than the published one, e.g. smoke
    #[arg(long, add = completing::tiers())]
    pub tier: Option<String>,
    /// Change a value; repeatable. Claims are then NOT COMPARABLE, unless `recipe.free` lists the
    /// key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// Arguments of `zoo fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Name or path of a recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Do not fetch; read all existing files completely and verify them
    #[arg(long)]
    pub verify: bool,
}

/// Arguments of `zoo reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Name or path of a recipe
    #[arg(add = completing::recipes())]
    pub recipe: String,
    /// Tier and overrides
    #[command(flatten)]
    pub overlay: OverlayArgs,
    /// Arms to run [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", add = completing::arms())]
    pub arms: Vec<String>,
    /// Evaluation sets to decode [default: those of the claims]
    #[arg(long = "eval", value_delimiter = ',', value_name = "SET,…", add = completing::eval_sets())]
    pub evals: Vec<String>,
    /// First seed [default: the recipe's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of seeds to run. Several numbers plan several looks that share the error rate;
    /// the command stops at the first look that decides every claim
    #[arg(long, default_value = "1", value_delimiter = ',', value_name = "N,…")]
    pub seeds: Vec<u32>,
    /// Number of runs to train at once, each in its own process with an N-th of the threads
    #[arg(long, short, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Train and evaluate one run, without a verdict; used by --jobs
    #[arg(long, hide = true, value_name = "ARM:SEED")]
    pub job: Option<String>,
    /// Start from these weights: a run, a checkpoint, safetensors, or PyTorch's .pt
    #[arg(long, value_name = "RUN|FILE", add = completing::runs())]
    pub init_from: Option<PathBuf>,
    /// Stop a run whose interim scores are too far from a published trajectory;
    /// the same command without this option resumes it
    #[arg(long)]
    pub stop_early: bool,
    /// Print the plan and stop
    #[arg(long)]
    pub plan: bool,
    /// Add to the plan what a GPU would take, e.g. h100, a100 or rtx4090
    #[arg(long, value_name = "GPU", requires = "plan")]
    pub gpu: Option<String>,
    /// Trackers to write the runs to
    #[command(flatten)]
    pub track: TrackOptions,
}

/// Arguments of `zoo new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the recipe; it is written to NAME.toml
    pub name: String,
    /// Recipe that supplies all other settings
    #[arg(long, value_name = "RECIPE", add = completing::recipes())]
    pub base: String,
    /// Training text: the source file and the target file; one file for a language model or a
    /// classifier of texts
    #[arg(long, value_names = ["SOURCE", "TARGET"], value_delimiter = ',', num_args = 1..=2)]
    pub train: Vec<PathBuf>,
    /// Validation text, as --train [default: of a single file, a tenth of --train]
    #[arg(long, value_names = ["SOURCE", "TARGET"], value_delimiter = ',', num_args = 1..=2)]
    pub valid: Vec<PathBuf>,
    /// Text that is scored at the end [default: the text of --valid]
    #[arg(long, value_names = ["SOURCE", "TARGET"], value_delimiter = ',', num_args = 1..=2)]
    pub test: Vec<PathBuf>,
    /// Language code of the source [default: the ending of its file]
    #[arg(long, value_name = "CODE")]
    pub source: Option<String>,
    /// Language code of the target [default: the ending of its file]
    #[arg(long, value_name = "CODE")]
    pub target: Option<String>,
}

/// Arguments of `zoo schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write nothing; fail if this file is not the schema
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

/// Arguments of `zoo completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to write completions for
    pub shell: clap_complete::Shell,
}

/// Arguments of `zoo man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Words of a command, e.g. `ledger recheck` [default: the page of zoo itself]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub command: Vec<String>,
    /// Write the pages of zoo and of all commands into this folder
    #[arg(long, short, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}
