//! IDX files, the format of MNIST: a magic number, the lengths of the dimensions, and bytes.
//!
//! Source: "The IDX file format" of the MNIST database. Only unsigned bytes (type 0x08) are
//! supported. A file may be gzipped.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::error::PictureError;
use super::picture::Picture;
use super::shape::LARGEST_PIXELS;
use crate::text::open_text;

/// Maximum number of bytes of data that an IDX file may announce. The largest known file, that of
/// EMNIST, has 550 MB.
pub const LARGEST_IDX: u64 = 1 << 30;

/// Grey pictures of one size, in file order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxPictures {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

impl IdxPictures {
    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.pixels.len() / (self.height * self.width)
    }

    /// Whether there are no pictures.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// Height and width of every picture.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// The pixels of all pictures, [pictures, height, width].
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The picture at `index`, counted from 0; `None` if `index` is beyond the last.
    pub fn picture(&self, index: usize) -> Option<Picture> {
        let pixels = self.pixels.chunks_exact(self.height * self.width).nth(index)?;
        Some(Picture::of_checked(self.height, self.width, 1, pixels.to_vec()))
    }
}

/// Reads an IDX file of three dimensions: pictures, rows, columns.
///
/// # Errors
/// [`PictureError`], with the file and what is wrong with it.
pub fn read_idx_pictures(file: &Path) -> Result<IdxPictures, PictureError> {
    let ([_, height, width], pixels) = read(file)?;
    Ok(IdxPictures { height, width, pixels })
}

/// Reads an IDX file of one dimension: the class of each picture.
///
/// # Errors
/// [`PictureError`], with the file and what is wrong with it.
pub fn read_idx_labels(file: &Path) -> Result<Vec<u8>, PictureError> {
    let ([_], labels) = read(file)?;
    Ok(labels)
}

/// Reads the lengths of `DIMENSIONS` dimensions, and the bytes.
fn read<const DIMENSIONS: usize>(file: &Path) -> Result<([usize; DIMENSIONS], Vec<u8>), PictureError> {
    let io_error = |source| PictureError::Io { file: file.into(), source };
    let corrupt = |what| PictureError::Corrupt { file: file.into(), what };
    // A broken gzip stream means that the file is damaged, not that the disk has an error.
    let read_error = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            PictureError::Truncated { file: file.into(), what: "it ends within a gzip stream".into() }
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => corrupt(error.to_string()),
        _ => io_error(error),
    };
    let mut reader = open_text(file).map_err(io_error)?;
    let mut header = Vec::new();
    let header_bytes = 4 + 4 * DIMENSIONS;
    reader.by_ref().take(header_bytes as u64).read_to_end(&mut header).map_err(read_error)?;
    if header.len() < 4 {
        let what = format!("{} bytes, an IDX header has at least 4", header.len());
        return Err(PictureError::Truncated { file: file.into(), what });
    }
    let expected = [0, 0, 0x08, DIMENSIONS as u8];
    if header[..4] != expected {
        let magic = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        return Err(corrupt(format!(
            "the magic number is {magic:#010x}, that of unsigned bytes in {DIMENSIONS} dimension(s) is {:#010x}",
            u32::from_be_bytes(expected)
        )));
    }
    if header.len() < header_bytes {
        let what = format!("{} bytes of a header of {header_bytes}", header.len());
        return Err(PictureError::Truncated { file: file.into(), what });
    }
    let mut lengths = [0; DIMENSIONS];
    for (length, bytes) in lengths.iter_mut().zip(header[4..].chunks_exact(4)) {
        *length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    }
    if lengths.contains(&0) {
        return Err(corrupt(format!("a dimension of {lengths:?} is 0")));
    }
    let product = |lengths: &[usize]| lengths.iter().try_fold(1_u64, |all, one| all.checked_mul(*one as u64));
    let too_large = |what, limit| Err(PictureError::TooLarge { file: file.into(), what, limit });
    let bytes = match product(&lengths) {
        Some(bytes) if bytes <= LARGEST_IDX => bytes,
        _ => return too_large(format!("its header announces {lengths:?} bytes"), LARGEST_IDX),
    };
    if product(&lengths[1..]).is_none_or(|pixels| pixels > LARGEST_PIXELS as u64) {
        let what = format!("pictures of {:?} pixels", &lengths[1..]);
        return too_large(what, LARGEST_PIXELS as u64);
    }
    // Memory grows with the bytes in the file, never with the size in its header. Reading one more
    // byte detects a file that is too long.
    let mut data = Vec::new();
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() == header_bytes as u64 + bytes) {
        data.reserve_exact(bytes as usize + 1);
    }
    reader.take(bytes + 1).read_to_end(&mut data).map_err(read_error)?;
    match (data.len() as u64).cmp(&bytes) {
        std::cmp::Ordering::Equal => Ok((lengths, data)),
        std::cmp::Ordering::Greater => {
            Err(corrupt(format!("bytes follow the {bytes} that its header announces")))
        }
        std::cmp::Ordering::Less => {
            let what = format!("{} of {bytes} bytes", data.len());
            Err(PictureError::Truncated { file: file.into(), what })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn idx(lengths: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, lengths.len() as u8];
        bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(data);
        bytes
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn pictures(bytes: &[u8]) -> Result<IdxPictures, PictureError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        read_idx_pictures(file.path())
    }

    fn message(bytes: &[u8]) -> String {
        pictures(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_lying_header_is_refused_before_memory_is_taken() {
        // The header announces 4 GiB or more of pixels in a file of 17 bytes, gzipped or not.
        for lengths in [[u32::MAX, 28, 28], [u32::MAX; 3], [1 << 16, 1 << 16, 1]] {
            for bytes in [idx(&lengths, &[0]), gzipped(&idx(&lengths, &[0]))] {
                let error = message(&bytes);
                assert!(error.contains("the limit is 1073741824"), "{error}");
            }
        }
        let error = message(&idx(&[1, 1 << 14, 1 << 14], &[0]));
        assert!(error.contains("pictures of [16384, 16384] pixels, the limit is 89478485"), "{error}");
        // The announced size is within the limit, but the data is missing: memory is allocated only
        // for the data in the file.
        let error = message(&idx(&[1 << 20, 32, 32], &[0; 5]));
        assert!(error.contains("truncated: 5 of 1073741824 bytes"), "{error}");
    }

    #[test]
    fn other_files_are_named_with_what_is_wrong() {
        let file = tempfile::NamedTempFile::with_suffix("-images").unwrap();
        fs::write(file.path(), idx(&[1], &[3])).unwrap();
        let error = read_idx_pictures(file.path()).unwrap_err().to_string();
        assert!(error.contains("-images: corrupt: the magic number is 0x00000801"), "{error}");
        assert!(error.contains("hint:"), "{error}");
        assert_eq!(read_idx_labels(file.path()).unwrap(), [3]);
        assert!(message(&[]).contains("truncated: 0 bytes"));
        assert!(message(&[0, 0, 8, 3, 0]).contains("truncated: 5 bytes of a header of 16"));
        assert!(message(&[0, 0, 0x0d, 3, 0, 0, 0, 1]).contains("magic number is 0x00000d03"));
        assert!(message(&idx(&[0, 28, 28], &[])).contains("is 0"));
        assert!(message(&idx(&[1, 2, 2], &[1, 2, 3, 4, 5])).contains("bytes follow the 4"));
        assert!(read_idx_labels(Path::new("no-such-file")).unwrap_err().to_string().contains("no-such-file"));
        #[cfg(unix)]
        assert!(read_idx_labels(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
    }

    #[test]
    fn a_cut_gzip_stream_is_truncated() {
        let whole = gzipped(&idx(&[2, 30, 30], &(0..1800).map(|n| (n * n % 251) as u8).collect::<Vec<_>>()));
        assert!(pictures(&whole).is_ok());
        let error = message(&whole[..whole.len() / 2]);
        assert!(error.contains("truncated"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_written_is_read(
            count in 1_usize..5, height in 1_usize..7, width in 1_usize..7, seed: u8, packed: bool,
        ) {
            let data: Vec<u8> = (0..count * height * width).map(|n| (n as u8).wrapping_mul(31) ^ seed).collect();
            let plain = idx(&[count as u32, height as u32, width as u32], &data);
            let read = pictures(&if packed { gzipped(&plain) } else { plain.clone() }).unwrap();
            prop_assert_eq!((read.len(), read.size(), read.pixels()), (count, (height, width), &data[..]));
            let last = read.picture(count - 1).unwrap();
            prop_assert_eq!(last.bytes(), &data[(count - 1) * height * width..]);
            prop_assert!(read.picture(count).is_none());
            // Every truncated file is refused, and every longer one.
            for length in 0..plain.len() {
                prop_assert!(pictures(&plain[..length]).is_err(), "{} of {}", length, plain.len());
            }
            prop_assert!(pictures(&[plain, vec![0]].concat()).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), magic: bool) {
            let bytes = if magic { [vec![0, 0, 8, 3], bytes].concat() } else { bytes };
            let _ = pictures(&bytes);
        }
    }
}
