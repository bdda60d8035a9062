//! The pictures of one split.

use sha2::{Digest, Sha256};

use super::error::PictureDataError;
use crate::image::{Picture, Pixels};

/// The pictures of one split, in the order of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureSplit {
    /// Name of the split.
    pub name: String,
    /// Bytes `[pictures, height, width, channels]`.
    pub bytes: Vec<u8>,
    /// Class of each picture.
    pub labels: Vec<u32>,
    /// Name of each picture's file; empty for pictures that have none.
    pub names: Vec<String>,
    pub(super) size: [usize; 3],
}

impl PictureSplit {
    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether the split has no pictures.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Height, width and channels of a picture.
    pub fn size(&self) -> [usize; 3] {
        self.size
    }

    /// Bytes of a picture.
    pub fn bytes_of(&self, index: usize) -> &[u8] {
        let length = self.size.iter().product::<usize>();
        &self.bytes[index * length..][..length]
    }

    /// A picture.
    pub fn picture(&self, index: usize) -> Picture {
        let [height, width, channels] = self.size;
        Picture::of_checked(height, width, channels, self.bytes_of(index).to_vec())
    }

    /// SHA-256 over the size, the pictures and their classes.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        self.size.iter().for_each(|side| hash.update((*side as u64).to_le_bytes()));
        hash.update(&self.bytes);
        self.labels.iter().for_each(|label| hash.update(label.to_le_bytes()));
        hex::encode(hash.finalize())
    }
}

/// Finds out whether the numbers fit the channels, on no pixel.
pub(super) fn check_channels(pixels: &Pixels, channels: usize) -> Result<(), PictureDataError> {
    Ok(pixels.append_bytes(&[], channels, &mut Vec::new())?)
}
