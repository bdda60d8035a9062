//! `zoo infer`.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::lines;
use crate::output::{self, Format};
use crate::stages::{Hypothesis, InferRequest, Inference, Transcription};

/// The name of stdin.
const STDIN: &str = "-";

pub fn run(context: &Context, args: &InferArgs) -> Result<Exit> {
    let (run, decode, overrides) = (args.run.clone(), args.decode.clone(), args.overrides.clone());
    let request = InferRequest { run, decode, overrides };
    let inference = Inference::open(context, &request)?;
    if inference.speaks() {
        let hint = format!("zoo synthesize {} \"some words\" -o out.wav", args.run.display());
        return Err(Failure::usage("the run is a speech synthesis run: its output is audio").hint(hint));
    }
    match inference.is_of_speech() {
        true => listen(context, args, &inference)?,
        false => translate(args, &inference)?,
    }
    Ok(Exit::Ok)
}

fn translate(args: &InferArgs, inference: &Inference) -> Result<()> {
    if args.nbest.is_some() {
        return Err(Failure::usage("--nbest needs a speech recognition run"));
    }
    let input = match (&args.input, args.files.as_slice()) {
        (Some(file), _) => Some(file.as_path()),
        (None, []) => None,
        (None, [file]) => Some(file.as_path()),
        (None, _) => return Err(Failure::usage("a translation run takes one text file")),
    };
    let input = input.filter(|path| *path != Path::new(STDIN));
    let lines: Box<dyn BufRead> = match input {
        Some(path) => {
            let file = untrusted::open(path).map_err(|error| Failure::io("open", path, &error))?;
            Box::new(BufReader::new(file))
        }
        None => Box::new(std::io::stdin().lock()),
    };
    let mut out = std::io::stdout().lock();
    let write = |line: &str| match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // The reader went away: nothing is left to be done, and nothing went wrong.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other,
    };
    let name = input.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    inference.translate(args.target.as_deref(), &name, lines::arriving(lines), write)
}

fn listen(context: &Context, args: &InferArgs, inference: &Inference) -> Result<()> {
    if args.input.is_some() || args.target.is_some() {
        return Err(Failure::usage("a speech recognition run takes recordings, not --input or --target")
            .hint("zoo infer RUN file.wav"));
    }
    let files = recordings(&args.files)?;
    let nbest = args.nbest.map(|count| count as usize);
    if let Some(other) = inference.search_of_many().filter(|_| nbest.is_some_and(|count| count > 1)) {
        let hint = if other.is_empty() { String::new() } else { format!("; --decode {other} has more") };
        context.progress.note(&format!("the search returns one hypothesis per recording{hint}"));
    }
    let read = |file: &Path| {
        let read = if file == Path::new(STDIN) { lines::stdin() } else { untrusted::read(file) };
        read.map_err(|error| Failure::io("read", file, &error))
    };
    let alone = files.len() == 1;
    let (mut spoken, mut taken) = (0.0, 0.0);
    let found = |one: Transcription| {
        (spoken, taken) = (spoken + one.seconds, taken + one.latency);
        match context.format {
            Format::Json => {
                let line = serde_json::to_string(&one)
                    .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
                output::write(&format!("{line}\n"))
            }
            _ => {
                let file = if alone { String::new() } else { format!("{}\t", one.file) };
                let scored = |best: &Hypothesis| format!("{file}{:.4}\t{}\n", best.score, best.text);
                output::write(&match nbest {
                    Some(_) => one.hypotheses.iter().map(scored).collect(),
                    None => format!("{file}{}\n", one.text),
                })
            }
        }
    };
    inference.listener()?.listen(files.iter().map(PathBuf::as_path), nbest, read, found)?;
    context.progress.note(&format!("{spoken:.1} s of speech in {taken:.3} s"));
    Ok(())
}

/// The recordings that were named: folders become the WAV and FLAC files that lie in them, sorted.
fn recordings(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::io("read", path, &error))?;
        let mut found = Vec::new();
        for entry in entries {
            let file = entry.map_err(|error| Failure::io("read", path, &error))?.path();
            let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
            if ending.is_some_and(|ending| ending == "wav" || ending == "flac") {
                found.push(file);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(Exit::Data, format!("no WAV or FLAC file lies in {}", path.display())));
        }
        found.sort();
        files.extend(found);
    }
    match files.is_empty() {
        true => Err(Failure::usage("no recording is named").hint("zoo infer RUN file.wav")),
        false => Ok(files),
    }
}
