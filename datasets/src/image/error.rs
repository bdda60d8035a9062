//! Errors of decoding and of sizes.

use std::path::PathBuf;

use zoo_recipes::untrusted::hint_or;

/// Why a file gives no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file could not be read.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file's format or colour space is not supported.
    #[error("{}: {what}\nhint: convert it to PNG or JPEG, 8 bits a channel, grey or RGB", file.display())]
    Unsupported {
        /// Path of the file.
        file: PathBuf,
        /// Format of the file.
        what: String,
    },
    /// The bytes are inconsistent.
    #[error("{}: corrupt: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Corrupt {
        /// Path of the file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file ends before its data does.
    #[error("{}: truncated: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Truncated {
        /// Path of the file.
        file: PathBuf,
        /// What is missing.
        what: String,
    },
    /// The file, or the size in its header, exceeds a limit. No memory was allocated for it.
    #[error("{}: {what}, the limit is {limit}\nhint: resize the picture, or split the file", file.display())]
    TooLarge {
        /// Path of the file.
        file: PathBuf,
        /// Size in the header.
        what: String,
        /// The limit, in the same unit.
        limit: u64,
    },
}

/// Sizes or numbers that are not valid for a picture, crop or resize.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// A side or the channels are 0, or there are more than 4 channels or too many pixels.
    #[error(
        "{height} x {width} pixels with {channels} channels is not a valid size: sides are at least 1, channels 1 to 4, pixels at most {limit}"
    )]
    Size {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
        /// Number of channels.
        channels: usize,
        /// Maximum number of pixels of a picture.
        limit: usize,
    },
    /// The number of bytes is not that of the picture.
    #[error("{actual} bytes for a picture of {expected} bytes")]
    Bytes {
        /// Expected number: height x width x channels.
        expected: usize,
        /// Actual number.
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
        /// Name of the range.
        name: &'static str,
        /// Its low end.
        low: f64,
        /// Its high end.
        high: f64,
    },
    /// The length of a list differs from the number of channels.
    #[error("{name} has {actual} numbers, the picture has {channels} channels")]
    Channels {
        /// Name of the list.
        name: &'static str,
        /// Length of the list.
        actual: usize,
        /// Number of channels of the picture.
        channels: usize,
    },
    /// A number is not in its allowed range.
    #[error("{name} is {value}, {expected}")]
    Number {
        /// Name of the number.
        name: &'static str,
        /// Value of the number.
        value: f64,
        /// Allowed values.
        expected: &'static str,
    },
}
