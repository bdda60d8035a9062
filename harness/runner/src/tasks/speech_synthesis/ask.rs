//! `zoo synthesize`: text to audio files.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use zoo_datasets::audio::encode::{Level, write_wav};
use zoo_recipes::tasks::speech_synthesis::SynthesisSearchSpec;
use zoo_recipes::untrusted;
use zoo_results::exit::Exit;
use zoo_results::metrics::{AlignmentScore, Attention};
use zoo_results::report::heatmap::Heatmap;

use super::Recipe;
use super::speak::{Said, Speaker};
use crate::cli::SynthesizeArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Format};
use crate::task::inference::Inference;

/// Peak amplitude of the written audio; 1 is full scale.
const PEAK: f32 = 0.9;

/// Synthesizes one text or lines of text, and writes audio files.
///
/// # Errors
/// The text cannot be read, the search is teacher-forced, or a file cannot be written.
pub fn synthesize(inference: &Inference, recipe: &Recipe, args: &SynthesizeArgs) -> Result<()> {
    let context = &inference.ctx;
    let wanted = wanted(args)?;
    let speaker = speaker(inference, recipe)?;
    let speaker = match args.max_frames {
        Some(frames) => speaker.at_most(frames),
        None => speaker,
    };
    let mut symbols = Vec::new();
    for Wanted { text, line, .. } in &wanted {
        let read = speaker.read(text);
        symbols.push(read.map_err(|failure| match line {
            Some(line) => failure.about(&format!("line {line}")),
            None => failure,
        })?);
    }
    nothing_is_lost(&wanted, args)?;
    let folder = wanted.first().and_then(|one| one.sound.parent());
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
    }
    let (rate, seconds_a_frame) = (speaker.voice().rate(), speaker.voice().seconds_a_frame());
    let start = std::time::Instant::now();
    let mut spoken = 0.0;
    speaker.say(context, &symbols, |number, said| {
        let one = &wanted[number];
        write_wav(&one.sound, &said.samples, rate, Level::Peak(PEAK))
            .map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
        if args.picture {
            picture(&one.picture(), &one.text, &said, seconds_a_frame)?;
        }
        let seconds = said.samples.len() as f64 / f64::from(rate);
        spoken += seconds;
        tell(context, &one.sound, &one.text, &said, seconds)
    })?;
    let taken = start.elapsed().as_secs_f64();
    context.progress.note(&format!("{spoken:.1} s of speech in {taken:.1} s"));
    Ok(())
}

/// Synthesizer with the model of a run.
///
/// # Errors
/// The search is teacher-forced, which needs the true frames of a text; or the weights cannot be
/// read.
pub fn speaker(inference: &Inference, recipe: &Recipe) -> Result<Speaker> {
    let SynthesisSearchSpec::FreeRunning(search) = &recipe.decode[&inference.search] else {
        return Err(Failure::usage("the search is teacher-forced, and a new text has no true frames")
            .hint("--decode NAME, of a search of kind free-running"));
    };
    Speaker::new(&inference.ctx, &inference.run, recipe, search)
}

/// A text with its output file.
struct Wanted {
    text: String,
    /// Line number in the input; `None` for a text on the command line.
    line: Option<usize>,
    sound: PathBuf,
}

impl Wanted {
    fn picture(&self) -> PathBuf {
        self.sound.with_extension("svg")
    }
}

/// The text on the command line, or the non-empty lines of the input.
fn wanted(args: &SynthesizeArgs) -> Result<Vec<Wanted>> {
    if let Some(text) = &args.text {
        return Ok(vec![Wanted { text: text.clone(), line: None, sound: args.out.clone() }]);
    }
    let lines: std::io::Result<Vec<String>> =
        match args.input.as_deref().filter(|file| *file != Path::new("-")) {
            Some(file) => {
                let open = untrusted::open(file).map_err(|error| Failure::io("open", file, &error))?;
                BufReader::new(open).lines().collect()
            }
            None => std::io::stdin().lock().lines().collect(),
        };
    let lines = lines.map_err(|error| {
        Failure::new(Exit::Data, format!("cannot read the lines: {error}")).hint("lines are UTF-8")
    })?;
    let width = lines.len().to_string().len().max(3);
    // Empty lines are skipped but count in the numbering.
    let said = (1..).zip(lines).filter(|(_, text)| !text.trim().is_empty());
    let wanted: Vec<Wanted> = said
        .map(|(line, text)| Wanted {
            text,
            line: Some(line),
            sound: args.out.join(format!("{line:0width$}.wav")),
        })
        .collect();
    if wanted.is_empty() {
        return Err(
            Failure::usage("the input has no text").hint("zoo synthesize RUN \"some words\" -o out.wav")
        );
    }
    Ok(wanted)
}

/// Checks that no file is overwritten without `--force`, and that audio and picture have different
/// names.
fn nothing_is_lost(wanted: &[Wanted], args: &SynthesizeArgs) -> Result<()> {
    for one in wanted {
        let picture = args.picture.then(|| one.picture());
        if picture.as_ref() == Some(&one.sound) {
            return Err(Failure::usage(format!("{} would be sound and picture", one.sound.display()))
                .hint("choose another name for the audio, e.g. out.wav"));
        }
        for file in std::iter::once(&one.sound).chain(&picture) {
            if file.exists() && !args.force {
                return Err(Failure::usage(format!("{} is there already", file.display()))
                    .hint("pass --force to overwrite it, or choose another path"));
            }
        }
    }
    Ok(())
}

/// Writes a picture of the alignment: attention of each frame over the symbols.
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
        context.progress.note(&format!("warning: {} reached the frame limit without a stop", file.display()));
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
