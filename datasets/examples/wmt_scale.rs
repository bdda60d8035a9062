//! Prepares and batches a generated corpus of the size of WMT English-German, and prints pairs per
//! second and the peak memory of each step.
//!
//!     cargo run --release -p zoo-datasets --example wmt_scale -- \
//!         [PAIRS [sentence-piece | subword-nmt]]
//!
//! Words are generated, with frequencies that fall as in real text, so 4.5 million pairs have some
//! millions of different words. It needs 8 GB in the temporary folder. The peak is that of the
//! process (`VmHWM`), reset for each step; Linux only.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use zoo_datasets::batches::{BatchPlan, Collator, PairSource};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::prepare::{Place, PrepareError, PrepareOptions, PrepareStep, prepare_from_files};
use zoo_datasets::random::{Purpose, RandomStream};
use zoo_recipes::tasks::translation::TextDataSpec;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PAIRS: u32 = 4_500_000;
const SYLLABLES: [&str; 40] = [
    "ver", "un", "ge", "be", "ent", "haus", "land", "ung", "keit", "lich", "isch", "tion", "er", "en", "in",
    "an", "ein", "der", "sch", "ö", "ü", "ä", "ß", "con", "ment", "ing", "ed", "re", "pro", "per", "al",
    "ic", "ous", "st", "tr", "ck", "qu", "th", "wh", "sh",
];

/// Word `rank` of a language. Frequent words are short, rare ones longer, and all are different.
fn word(language: u32, rank: u32, into: &mut String) {
    if rank % 97 == 13 {
        into.push_str(&format!("{}", rank / 97));
        return;
    }
    let mut rest = rank * 2 + language;
    loop {
        into.push_str(SYLLABLES[(rest % 40) as usize]);
        rest /= 40;
        if rest == 0 {
            break;
        }
    }
}

/// Up to this rank, frequencies follow Zipf's law; beyond it they fall faster.
const HEAD: f64 = 8000.0;

/// Draws a rank. Its probability falls as 1 / rank up to [`HEAD`], then as 1 / rank^1.5. 117
/// million words then have about 2.5 million different ones, as in English text.
fn rank(stream: &mut RandomStream) -> u32 {
    let uniform = f64::from(stream.next_u32()) / 4_294_967_296.0;
    let head = HEAD.ln() / (HEAD.ln() + 2.0);
    let rank = match uniform < head {
        true => HEAD.powf(uniform / head),
        false => HEAD / (1.0 - (uniform - head) / (1.0 - head)).powi(2),
    };
    rank.min(1e9) as u32 - 1
}

fn generate(folder: &Path, name: &str, pairs: u32, seed: u64) -> Result<()> {
    let mut files = [
        BufWriter::new(File::create(folder.join(format!("{name}.en")))?),
        BufWriter::new(File::create(folder.join(format!("{name}.de")))?),
    ];
    let mut line = String::new();
    for pair in 0..pairs {
        let mut stream = RandomStream::new(seed, Purpose::Examples, u64::from(pair));
        // 3 to 49 words, 26 on average; one pair in a hundred has too many.
        let words = 3 + stream.below(24) + stream.below(24) + if stream.below(100) == 0 { 60 } else { 0 };
        for (language, file) in (0..).zip(&mut files) {
            line.clear();
            for at in 0..words {
                if at > 0 {
                    line.push(' ');
                }
                word(language, rank(&mut stream), &mut line);
                if stream.below(12) == 0 {
                    line.push(',');
                }
            }
            line.push_str(".\n");
            file.write_all(line.as_bytes())?;
        }
    }
    files.iter_mut().try_for_each(Write::flush)?;
    Ok(())
}

/// Peak memory since the last reset, in MB.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib * 1024.0 / 1e6)
}

struct Steps {
    open: RefCell<Option<(String, Instant)>>,
    pairs: f64,
}

impl Steps {
    /// Ends the previous step and begins this one.
    fn begin(&self, name: &str) {
        let before = self.open.borrow_mut().take();
        if let Some((name, start)) = before {
            let seconds = start.elapsed().as_secs_f64();
            let peak = peak().map_or("?".to_string(), |mb| format!("{mb:.0}"));
            println!("{name:<28} {seconds:>8.1} s {:>12.0} pairs/s {peak:>8} MB", self.pairs / seconds);
        }
        // Resets VmHWM. If that is not allowed, the peak is that of all steps so far.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        *self.open.borrow_mut() = (!name.is_empty()).then(|| (name.to_string(), Instant::now()));
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pairs: u32 = arguments.next().map_or(Ok(PAIRS), |n| n.parse())?;
    let kind = arguments.next().unwrap_or_else(|| "sentence-piece".into());
    let (corpus, tokenizer) = match kind.as_str() {
        "sentence-piece" => (
            "wmt-en-de-openseq2seq",
            r#"{"kind": "sentence-piece", "pieces": 32768, "joint": true, "specials": "openseq2seq"}"#,
        ),
        "subword-nmt" => (
            "wmt16-en-de-nvidia",
            r#"{"kind": "subword-nmt", "merges": 32000, "joined_dictionary": true, "specials": "gnmt",
                "pad_vocabulary_to": 8, "normalize": ["moses-tokenize"]}"#,
        ),
        other => return Err(format!("{other}: sentence-piece or subword-nmt").into()),
    };
    let folder = tempfile::tempdir()?;
    let steps = Steps { open: RefCell::new(None), pairs: f64::from(pairs) };
    println!("{pairs} pairs, {kind}, {} threads", rayon::current_num_threads());
    steps.begin("generate");
    generate(folder.path(), "train", pairs, 1)?;
    generate(folder.path(), "valid", 1000, 2)?;
    let data: TextDataSpec = serde_json::from_str(&format!(
        r#"{{
            "reader": {{"kind": "parallel-text", "source": "en", "target": "de", "files": {{
                "train": {{"source": "train.en", "target": "train.de"}},
                "valid": {{"source": "valid.en", "target": "valid.de"}}}}}},
            "tokenizer": {tokenizer},
            "filter": {{"max_source_tokens": 56, "max_target_tokens": 56, "too_long": "truncate"}},
            "batching": {{"kind": "tokens", "max_tokens": 4096, "sentences_multiple_of": 8}},
            "eval": {{"valid": {{"split": "valid", "lines": 1000}}}}
        }}"#
    ))?;
    // Cleaned and shuffled as in the published preparation, whose digests are those of the real
    // text.
    let mut definition = CorpusDefinition::find(corpus)?;
    if let Some(preparation) = &mut definition.preparation {
        preparation.md5.clear();
        preparation.shuffle = Some(1);
    }
    let progress = |step: PrepareStep<'_>| match step {
        PrepareStep::Text("train") => steps.begin("read, normalise, clean, count"),
        PrepareStep::Shuffle => steps.begin("shuffle"),
        PrepareStep::Learn => steps.begin("learn"),
        PrepareStep::Encode("train") => steps.begin("encode, number, write"),
        PrepareStep::Load => steps.begin("verify, load"),
        _ => {}
    };
    let place = Place { base: folder.path(), definition: Some(&definition), progress: &progress };
    let prepared =
        prepare_from_files(&folder.path().join("prepared"), &data, PrepareOptions::default(), place, || {
            Ok::<_, PrepareError>(None)
        })?;
    steps.begin("plan and collate an epoch");
    let train = prepared.train()?[0];
    let plan = BatchPlan::new(&train.lengths(), &data.batching, 1)?;
    let pad = prepared.pipeline.target.specials().pad;
    let collator = Collator { source_pad: pad, target_pad: pad, pad_length_to: 1 };
    let mut batches = 0_u64;
    for ids in plan.epoch(0) {
        std::hint::black_box(collator.batch(train.as_ref(), &ids));
        batches += 1;
    }
    steps.begin("");
    let distinct = prepared.pipeline.target.len();
    println!("{:?}", train.statistics);
    println!("{distinct} rows, {batches} batches of at most 4096 tokens");
    Ok(())
}
