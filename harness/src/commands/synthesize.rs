//! `zoo synthesize`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use zoo_datasets::audio::encode::{Level, write_wav};
use zoo_results::exit::Exit;
use zoo_results::metrics::{AlignmentScore, Attention};
use zoo_results::report::heatmap::Heatmap;

use crate::cli::SynthesizeArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::records::write_whole;
use crate::stages::{InferRequest, Inference, Said};

/// The loudest sample.
const PEAK: f32 = 0.9;

pub fn run(context: &Context, args: &SynthesizeArgs) -> Result<Exit> {
    let (run, decode, overrides) = (args.run.clone(), args.decode.clone(), args.overrides.clone());
    let inference = Inference::open(context, &InferRequest { run, decode, overrides })?;
    if !inference.speaks() {
        return Err(Failure::usage("the run does not speak").hint("zoo infer has what it does"));
    }
    let (texts, names) = wanted(args)?;
    let speaker = inference.speaker()?;
    let speaker = match args.max_frames {
        Some(frames) => speaker.at_most(frames),
        None => speaker,
    };
    let mut symbols = Vec::new();
    for (number, text) in (1..).zip(&texts) {
        let read = speaker.read(text);
        symbols.push(read.map_err(|failure| match texts.len() {
            1 => failure,
            _ => failure.about(&format!("line {number}")),
        })?);
    }
    for name in &names {
        if name.exists() && !args.force {
            return Err(Failure::usage(format!("{} is there already", name.display()))
                .hint("--force writes over it, or name another"));
        }
    }
    if let Some(folder) = names.first().and_then(|name| name.parent()).filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
    }
    let (rate, seconds_a_frame) = (speaker.voice().rate(), speaker.voice().seconds_a_frame());
    let start = std::time::Instant::now();
    let mut spoken = 0.0;
    speaker.say(inference.context(), &symbols, |number, said| {
        let name = &names[number];
        write_wav(name, &said.samples, rate, Level::Peak(PEAK))
            .map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
        if args.picture {
            picture(&name.with_extension("svg"), &texts[number], &said, seconds_a_frame)?;
        }
        let seconds = said.samples.len() as f64 / f64::from(rate);
        spoken += seconds;
        tell(context, name, &texts[number], &said, seconds)
    })?;
    let taken = start.elapsed().as_secs_f64();
    context.progress.note(&format!("{spoken:.1} s of speech in {taken:.1} s"));
    Ok(Exit::Ok)
}

/// Texts, and the files that they become.
fn wanted(args: &SynthesizeArgs) -> Result<(Vec<String>, Vec<PathBuf>)> {
    if let Some(text) = &args.text {
        return Ok((vec![text.clone()], vec![args.out.clone()]));
    }
    let lines: std::io::Result<Vec<String>> =
        match args.input.as_deref().filter(|file| *file != Path::new("-")) {
            Some(file) => {
                let open = File::open(file).map_err(|error| Failure::io("open", file, &error))?;
                BufReader::new(open).lines().collect()
            }
            None => std::io::stdin().lock().lines().collect(),
        };
    let lines = lines.map_err(|error| {
        Failure::new(Exit::Data, format!("cannot read the lines: {error}")).hint("lines are UTF-8")
    })?;
    let width = lines.len().to_string().len().max(3);
    let (mut texts, mut names) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(lines) {
        // An empty line is nothing to say, and keeps its number.
        if !line.trim().is_empty() {
            names.push(args.out.join(format!("{number:0width$}.wav")));
            texts.push(line);
        }
    }
    match texts.is_empty() {
        true => {
            Err(Failure::usage("there is nothing to say")
                .hint("zoo synthesize RUN \"some words\" -o out.wav"))
        }
        false => Ok((texts, names)),
    }
}

/// Where in the text each frame is.
fn picture(file: &Path, text: &str, said: &Said, seconds_a_frame: f64) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Data, error.to_string());
    let (spoken, symbols) = (&said.spoken, said.symbols.len());
    let attention = Attention::new(&spoken.alignment, symbols, spoken.frames, symbols);
    let attention = attention.map_err(|error| failed(&error))?;
    let map = Heatmap::alignment(text, attention, seconds_a_frame, &said.symbols);
    let svg = map.and_then(|map| map.svg()).map_err(|error| failed(&error))?;
    write_whole(file, svg.as_bytes())
}

fn tell(context: &Context, file: &Path, text: &str, said: &Said, seconds: f64) -> Result<()> {
    let (spoken, symbols) = (&said.spoken, said.symbols.len());
    if !spoken.stopped {
        context.progress.note(&format!("warning: {} did not end by itself", file.display()));
    }
    let attention = Attention::new(&spoken.alignment, symbols, spoken.frames, symbols).ok();
    let alignment = attention.map(AlignmentScore::new);
    let line = match context.format {
        Format::Json => json!({
            "file": file, "text": text, "seconds": seconds, "frames": spoken.frames, "symbols": symbols,
            "stopped": spoken.stopped, "alignment": alignment,
        })
        .to_string(),
        _ => format!("{}\t{seconds:.2} s", file.display()),
    };
    output::write(&format!("{line}\n"))?;
    std::io::stdout().flush().map_err(|error| Failure::new(Exit::Internal, error.to_string()))
}
