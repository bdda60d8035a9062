//! Storage of an evaluation's pictures and audio next to its outputs.

use std::path::Path;

use zoo_datasets::audio::encode::{Level, write_wav};
use zoo_results::exit::Exit;
use zoo_results::report::page::{SampleFile, SampleLine};

use super::data::{Kept, KeptSample};
use crate::error::{Failure, Result};
use crate::files::{write_json, write_whole};

/// Writes the files of samples and their list into an evaluation's folder.
///
/// # Errors
/// A file cannot be written.
pub fn keep(samples: &[KeptSample], folder: &Path, stem: &str) -> Result<()> {
    if samples.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("make", folder, &e))?;
    let mut list = Vec::new();
    for (number, sample) in (1..).zip(samples) {
        let mut files = Vec::new();
        for (end, caption, kept) in &sample.files {
            let name = format!("{stem}.{number}.{end}");
            let path = folder.join(&name);
            match kept {
                Kept::Bytes(bytes) => write_whole(&path, bytes)?,
                Kept::Sound(samples, rate) => {
                    write_wav(&path, samples, *rate, Level::Peak(0.9))
                        .map_err(|e| Failure::new(Exit::Data, e.to_string()))?;
                }
            }
            files.push(SampleFile::new(&name, caption));
        }
        let KeptSample { title, text, scores, .. } = sample.clone();
        list.push(SampleLine { title, text, scores, files });
    }
    write_json(&folder.join(format!("{stem}.samples.json")), &list)
}
