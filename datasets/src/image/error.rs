//! Why a file or a list of bytes gave no picture.

use std::path::PathBuf;

use zoo_recipes::untrusted::hint_or;

/// A file that gives no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file could not be read.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file has a format, or a colour space, that is not read.
    #[error("{}: {what}\nhint: convert it to PNG or JPEG, 8 bits a channel, grey or RGB", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The file's format.
        what: String,
    },
    /// The bytes contradict each other.
    #[error("{}: corrupt: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file ends before its data does.
    #[error("{}: truncated: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Truncated {
        /// The file.
        file: PathBuf,
        /// What is missing.
        what: String,
    },
    /// The file, or what its header announces, exceeds a limit. No memory was taken for it.
    #[error("{}: {what}, the limit is {limit}\nhint: resize the picture, or split the file", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The size that the header states.
        what: String,
        /// The limit, in the same unit.
        limit: u64,
    },
}

/// Sizes that no picture, crop or resize can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// A side or the channels are 0, or there are more than 4 channels or too many pixels.
    #[error(
        "{height} x {width} pixels with {channels} channels is not a valid size: sides are at least 1, channels 1 to 4, pixels at most {limit}"
    )]
    Size {
        /// Height, in pixels.
        height: usize,
        /// Width, in pixels.
        width: usize,
        /// Channels.
        channels: usize,
        /// The most pixels that a picture may have.
        limit: usize,
    },
    /// The bytes do not fill the picture.
    #[error("{actual} bytes for a picture of {expected} bytes")]
    Bytes {
        /// Height x width x channels.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A crop is larger than the padded picture.
    #[error("a crop of {crop:?} (height, width) is larger than the padded picture of {padded:?}")]
    Crop {
        /// Height and width of the crop.
        crop: (usize, usize),
        /// Height and width of the picture with its padding.
        padded: (usize, usize),
    },
    /// A range is empty, negative or not finite.
    #[error("{name} from {low} to {high} is not a range of positive numbers")]
    Range {
        /// The range's name.
        name: &'static str,
        /// Its low end.
        low: f64,
        /// Its high end.
        high: f64,
    },
    /// A list has another length than there are channels.
    #[error("{name} has {actual} numbers, the picture has {channels} channels")]
    Channels {
        /// The list's name.
        name: &'static str,
        /// Its length.
        actual: usize,
        /// The picture's channels.
        channels: usize,
    },
    /// A number is not allowed where it stands.
    #[error("{name} is {value}, {expected}")]
    Number {
        /// The number's name.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Which values are allowed.
        expected: &'static str,
    },
}
