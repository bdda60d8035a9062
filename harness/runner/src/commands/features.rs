//! `zoo features`: writes the features of a recording.

use serde_json::json;
use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;

use crate::cli::FeaturesArgs;
use crate::context::Context;
use crate::error::Result;
use crate::files::write_whole;
use crate::output::{self, Format, is_stdout};
use crate::tasks;

pub fn run(context: &Context, args: &FeaturesArgs) -> Result<Exit> {
    let selection =
        Selection { tier: args.tier.clone(), overrides: args.set.clone(), ..Selection::default() };
    let recipe = Document::load(&args.recipe)?.resolve(&selection)?.recipe;
    let found = tasks::of(&recipe).features(&args.file, args.training)?;
    let frames = found.frames();
    let bytes = npy(&found.values, [frames, found.width]);
    if is_stdout(&args.out) {
        output::write_bytes(&bytes)?;
    } else {
        write_whole(&args.out, &bytes)?;
        if context.format == Format::Json {
            output::write_document(
                "features",
                &json!({ "file": args.out, "frames": frames, "width": found.width, "bytes": bytes.len() }),
            )?;
        }
    }
    context.progress.note(&format!("{}: {frames} frames of {} features", args.out.display(), found.width));
    Ok(Exit::Ok)
}

/// A row-major FP32 matrix as a NumPy file of format 1.0.
fn npy(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // The total length of magic, version, length field, header and newline is a multiple of 64
    // bytes.
    let used = 10 + header.len() + 1;
    header.push_str(&" ".repeat(used.next_multiple_of(64) - used));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_written_as_numpy_reads_it() {
        let bytes = npy(&[1.0, -2.0, 0.5, 0.0, 3.0, 4.0], [2, 3]);
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert!(header.is_multiple_of(64) && bytes[header - 1] == b'\n');
        assert!(std::str::from_utf8(&bytes[10..header]).unwrap().contains("'shape': (2, 3)"));
        assert_eq!(bytes[header..][4..8], (-2.0f32).to_le_bytes());
        assert_eq!(bytes.len(), header + 24);
    }
}
