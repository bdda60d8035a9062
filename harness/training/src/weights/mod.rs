//! Import and export of weights.
//!
//! Supported inputs are our checkpoints, safetensors whose names are parameter paths, and PyTorch's
//! `.pt` and `.pth` files (no code in them is executed). fairseq's Transformer names are
//! translated. Half types are converted to FP32; integer arrays are left out.

mod fairseq;
pub mod transfer;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use burn::tensor::{bf16, f16};
use pytorch_reader::{DType, PytorchError, PytorchReader};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;
use zoo_models::parameters::ParameterValues;
use zoo_recipes::atomic::write_whole;
use zoo_recipes::untrusted;

use crate::checkpoint::{Checkpoint, CheckpointError};

/// Reason why weights could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file could not be read or written.
    #[error(
        "{path}: {source}\nhint: {}",
        untrusted::hint_or(source, "is the file there, and may it be read or written?")
    )]
    Io {
        /// Path of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file has none of the supported formats, or is damaged.
    #[error(
        "{path} has no weights that can be read: {what}\nhint: give safetensors or a state dict saved by torch.save"
    )]
    Unreadable {
        path: PathBuf,
        /// Description of the problem.
        what: String,
    },
    /// The file is a damaged checkpoint of ours.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Arrays by name, before names are translated to our paths.
type Named = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Reads the weights of a file of any supported format, under our parameter paths.
pub fn read(path: &Path) -> Result<Vec<ParameterValues>, WeightsError> {
    let io = |source| WeightsError::Io { path: path.into(), source };
    let mut start = Vec::new();
    untrusted::open(path).and_then(|file| file.take(9).read_to_end(&mut start)).map_err(io)?;
    // safetensors: 8 bytes of length, then a JSON object.
    let named = if start.get(8) == Some(&b'{') {
        let bytes = untrusted::read(path).map_err(io)?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|e| WeightsError::Unreadable { path: path.into(), what: e.to_string() })?;
        if metadata.metadata().as_ref().is_some_and(|metadata| metadata.contains_key("zoo")) {
            return Ok(Checkpoint::read(path)?.into_evaluated());
        }
        from_safetensors(&bytes).map_err(|what| WeightsError::Unreadable { path: path.into(), what })?
    } else {
        from_pytorch(path).map_err(|what| WeightsError::Unreadable { path: path.into(), what })?
    };
    if named.is_empty() {
        let what = "there is no array of floating point numbers in it".into();
        return Err(WeightsError::Unreadable { path: path.into(), what });
    }
    Ok(ours(named))
}

/// Writes weights as FP32 safetensors, one array for each parameter path. `about` becomes the
/// file's metadata.
pub fn write(
    path: &Path,
    weights: &[ParameterValues],
    about: HashMap<String, String>,
) -> Result<(), WeightsError> {
    let bytes = encode(weights, about);
    let bytes = bytes.map_err(|what| WeightsError::Unreadable { path: path.into(), what })?;
    write_whole(path, &bytes).map_err(|source| WeightsError::Io { path: path.into(), source })
}

/// The bytes of the file that [`write`] writes.
///
/// # Errors
/// An array does not have the values of its shape; the error is a description.
pub fn encode(weights: &[ParameterValues], about: HashMap<String, String>) -> Result<Vec<u8>, String> {
    let arrays: Vec<(&ParameterValues, Vec<u8>)> =
        weights.iter().map(|p| (p, p.values.iter().flat_map(|x| x.to_le_bytes()).collect())).collect();
    let unreadable = |e: safetensors::SafeTensorError| e.to_string();
    let mut views = Vec::with_capacity(arrays.len());
    for (p, bytes) in &arrays {
        views.push((
            p.path.as_str(),
            TensorView::new(Dtype::F32, p.shape.clone(), bytes).map_err(unreadable)?,
        ));
    }
    let bytes = safetensors::serialize(views, Some(about)).map_err(unreadable)?;
    in_order(bytes)
}

/// Sorts the keys of the file's metadata. safetensors writes them in the order of a `HashMap`,
/// which changes from run to run, so equal weights would get a different digest each time.
fn in_order(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let (start, header) = bytes.split_first_chunk_mut::<8>().ok_or("the file has no header")?;
    let length = usize::try_from(u64::from_le_bytes(*start)).map_err(|e| e.to_string())?;
    let header = header.get_mut(..length).ok_or("the header is longer than the file")?;
    let mut parsed: serde_json::Map<String, Value> =
        serde_json::from_slice(header).map_err(|e| e.to_string())?;
    if let Some(Value::Object(about)) = parsed.get_mut("__metadata__") {
        about.sort_keys();
    }
    let text = serde_json::to_string(&parsed).map_err(|e| e.to_string())?;
    // The same keys and values need the same space in any order. Spaces pad the header to a
    // multiple of eight bytes.
    if text.len() > header.len() {
        return Err("the sorted header is longer than the header".into());
    }
    header.fill(b' ');
    header[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

/// Drops arrays without a parameter in the model, if they are copies of an array that has one:
/// other frameworks save tied matrices under each of their names.
pub fn without_tied_copies(
    weights: Vec<ParameterValues>,
    known: &[(String, Vec<usize>)],
) -> Vec<ParameterValues> {
    let is_known = |path: &str| known.iter().any(|(known, _)| known == path);
    let (kept, extra): (Vec<_>, Vec<_>) = weights.into_iter().partition(|p| is_known(&p.path));
    let other: Vec<_> = extra
        .into_iter()
        .filter(|p| !kept.iter().any(|k| k.shape == p.shape && k.values == p.values))
        .collect();
    kept.into_iter().chain(other).collect()
}

/// Converts names to paths: removes a wrapper's prefix and translates fairseq's names.
fn ours(named: Named) -> Vec<ParameterValues> {
    let mut named = named;
    for prefix in ["module.", "model.", "weights/"] {
        if named.keys().all(|name| name.starts_with(prefix)) {
            named =
                named.into_iter().map(|(name, array)| (name[prefix.len()..].to_string(), array)).collect();
        }
    }
    if fairseq::is_fairseq(named.keys()) {
        named = fairseq::translate(named);
    }
    named.into_iter().map(|(path, (shape, values))| ParameterValues { path, shape, values }).collect()
}

fn from_safetensors(bytes: &[u8]) -> Result<Named, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let mut named = Named::new();
    for (name, view) in file.iter() {
        let values = match view.dtype() {
            Dtype::F32 => wide(view.data(), f32::from_le_bytes),
            Dtype::F64 => wide(view.data(), |b| f64::from_le_bytes(b) as f32),
            Dtype::F16 => wide(view.data(), |b| f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => wide(view.data(), |b| bf16::from_le_bytes(b).to_f32()),
            _ => continue,
        };
        named.insert(name.to_string(), (view.shape().to_vec(), values));
    }
    Ok(named)
}

/// Reads a state dict at the top, or under one of the keys that training programs use.
fn from_pytorch(path: &Path) -> Result<Named, String> {
    let mut reader = None;
    for key in [Some("model"), Some("state_dict"), Some("model_state_dict"), None] {
        let opened = match key {
            Some(key) => PytorchReader::with_top_level_key(path, key),
            None => PytorchReader::new(path),
        };
        match opened {
            Ok(found) if !found.is_empty() => {
                reader = Some(found);
                break;
            }
            Ok(_) | Err(PytorchError::KeyNotFound(_)) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    let mut named = Named::new();
    for (name, tensor) in reader.ok_or("there is no tensor in it")?.into_tensors() {
        let bytes = match tensor.dtype() {
            DType::F32 | DType::F64 | DType::F16 | DType::BF16 => tensor.read().map_err(|e| e.to_string())?,
            _ => continue,
        };
        let values = match tensor.dtype() {
            DType::F32 => wide(&bytes, f32::from_ne_bytes),
            DType::F64 => wide(&bytes, |b| f64::from_ne_bytes(b) as f32),
            DType::F16 => wide(&bytes, |b| f16::from_ne_bytes(b).to_f32()),
            _ => wide(&bytes, |b| bf16::from_ne_bytes(b).to_f32()),
        };
        named.insert(name, (tensor.shape().to_vec(), values));
    }
    Ok(named)
}

fn wide<const N: usize>(bytes: &[u8], to_f32: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| to_f32(chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(path: &str, values: &[f32]) -> ParameterValues {
        ParameterValues { path: path.into(), shape: vec![values.len()], values: values.to_vec() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        let weights = vec![parameter("a.weight", &[1.0, -2.5]), parameter("b", &[f32::MIN_POSITIVE])];
        write(&path, &weights, HashMap::from([("recipe".into(), "x".into())])).unwrap();
        assert_eq!(read(&path).unwrap(), weights);
    }

    #[test]
    fn the_same_weights_are_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let weights = vec![parameter("b", &[1.0]), parameter("a.weight", &[1.0, -2.5])];
        let bytes = |time: usize| {
            let path = folder.path().join(format!("{time}.safetensors"));
            let about = ["recipe", "arm", "seed", "key", "format", "α \"quoted\""];
            let about = about.map(|key| (key.to_owned(), format!("{key}\n\u{7}"))).into();
            write(&path, &weights, about).unwrap();
            assert_eq!(read(&path).unwrap().len(), 2);
            std::fs::read(path).unwrap()
        };
        let first = bytes(0);
        // Six keys in the order of a hash map: 720 orders.
        (1..8).for_each(|time| assert!(bytes(time) == first, "time {time}"));
    }

    /// The fixtures were written by tests/reference/state_dicts.py.
    #[test]
    fn what_torch_saved_is_read_under_our_paths() {
        let fixture =
            |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
        let expected = read(&fixture("state_dict.safetensors")).unwrap();
        let (half, whole): (Vec<_>, Vec<_>) = expected.into_iter().partition(|p| p.path.starts_with("half."));
        let half = half.into_iter().map(|p| ParameterValues { path: p.path[5..].to_string(), ..p });
        for (name, expected) in [("state_dict.pt", whole), ("state_dict_half.pt", half.collect())] {
            let found = read(&fixture(name)).unwrap();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_weights_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.pt");
        for bytes in [
            &b""[..],
            b"hello",
            b"PK\x03\x04 nothing",
            b"\x80\x02}q\x00.",
            &[7, 0, 0, 0, 0, 0, 0, 0, b'{', b'"'],
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("w.pt") && error.contains("hint: "), "{error}");
        }
        assert!(matches!(read(&folder.path().join("none")), Err(WeightsError::Io { .. })));
    }

    #[test]
    fn copies_of_tied_matrices_are_dropped_and_others_are_not() {
        let known = vec![("embedding.weight".to_string(), vec![2])];
        let [tied, copy, other] =
            [("embedding.weight", 1.0), ("output.weight", 1.0), ("target_embedding.weight", 3.0)]
                .map(|(path, x)| parameter(path, &[x, 2.0]));
        let kept = without_tied_copies(vec![tied.clone(), copy, other.clone()], &known);
        assert_eq!(kept, [tied, other]);
    }
}
