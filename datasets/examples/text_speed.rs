//! Speed of tokenisation and sub-word encoding on one core; `tests/reference/bench_text.py`
//! compares it with the Hugging Face tokenizers library.
//!
//!     cargo run --release -p zoo-datasets --example text_speed -- TEXT FOLDER [MERGES]
//!
//! Learns the merges from TEXT, writes `codes` and the tokenised text into FOLDER, and prints a
//! line of JSON for each step, with the fastest of several passes on one thread.

use std::fs;
use std::path::Path;
use std::time::Instant;

use zoo_datasets::text::bpe::{Encoder, learn};
use zoo_datasets::text::moses::{Language, Tokenizer};

const PASSES: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(text), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: text_speed TEXT FOLDER [MERGES]".into());
    };
    let merges = arguments.next().map_or(Ok(10_000), |merges| merges.parse())?;
    let text = fs::read_to_string(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let tokenizer = Tokenizer::new(Language::English, false);
    let tokenised = timed("tokenise", &lines, || lines.iter().map(|line| tokenizer.line(line)).collect());
    let codes = learn(&tokenised, merges);
    let encoder = Encoder::new(&codes);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let encoded = pool.install(|| timed("encode", &lines, || encoder.lines(&tokenised)));
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    codes.save(&folder.join("codes"))?;
    fs::write(folder.join("tokenised"), tokenised.join("\n"))?;
    fs::write(folder.join("encoded"), encoded.join("\n"))?;
    Ok(())
}

fn timed(step: &str, lines: &[&str], work: impl Fn() -> Vec<String>) -> Vec<String> {
    let mut least = f64::INFINITY;
    let mut made = Vec::new();
    for _ in 0..PASSES {
        let start = Instant::now();
        made = work();
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{{\"step\": \"{step}\", \"lines_per_second\": {:.0}}}", lines.len() as f64 / least);
    made
}
