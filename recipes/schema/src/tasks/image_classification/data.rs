//! The `[data]` block of an image classification recipe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::ShareSpec;

/// Pictures, their pixels as numbers, and how they form batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureDataSpec {
    /// Name of a corpus of pictures; absent for the user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Read only the first pictures of each split; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// Where the pictures come from.
    pub reader: PictureReaderSpec,
    /// Size of the model's input. Pictures of another size are resized to it.
    pub picture: PictureSizeSpec,
    /// Number of classes.
    pub classes: u32,
    /// Pixels as numbers.
    pub pixels: PixelSpec,
    /// Random changes of training pictures; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<PictureAugmentationSpec>,
    /// How training pictures form batches.
    pub batching: PictureBatchingSpec,
    /// Named evaluation sets.
    pub eval: BTreeMap<String, PictureSetSpec>,
}

/// Where pictures come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PictureReaderSpec {
    /// IDX files, the format of MNIST: those of the corpus, or those that are named here.
    Idx {
        /// For each split, its files. Empty for a corpus.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, IdxFilesSpec>,
    },
    /// Folders of PNG and JPEG files: one subfolder for each class, in the order of their names.
    ImageFolder {
        /// For each split, its folder; relative to the recipe file.
        folders: BTreeMap<String, String>,
    },
    /// A toy of our own: stripes under noise, whose direction is the class. Splits `train` and
    /// `test`.
    Stripes {
        /// Training pictures.
        train: u32,
        /// Test pictures.
        test: u32,
        /// Seed of the generator.
        seed: u64,
    },
}

/// One split of the user's own IDX files; paths are relative to the recipe file. `.gz` is read as
/// well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdxFilesSpec {
    /// Path of the pictures.
    pub images: String,
    /// Path of their labels.
    pub labels: String,
}

/// Size of a model's input, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureSizeSpec {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: u32,
}

/// Pixels as numbers: (pixel / `divisor` - mean) / deviation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PixelSpec {
    /// Divisor of the bytes: 255 in PyTorch and Keras, 256 in Caffe's LeNet.
    pub divisor: PixelDivisor,
    /// Subtracted from each channel; absent: 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// Divisor of each channel; absent: 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviation: Vec<f64>,
}

/// See [`PixelSpec::divisor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PixelDivisor {
    /// 255: pixels are in [0, 1].
    #[serde(rename = "by-255")]
    By255,
    /// 256: pixels are in [0, 1).
    #[serde(rename = "by-256")]
    By256,
    /// 1: pixels are in [0, 255].
    None,
}

/// Random changes of a training picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureAugmentationSpec {
    /// Pad each side with so many black pixels, then cut out a picture of the input's size at a
    /// random place.
    #[serde(default)]
    pub padding: u32,
    /// Probability of a horizontal flip.
    #[serde(default)]
    pub flip: f64,
}

/// How training pictures form batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureBatchingSpec {
    /// Pictures in a batch.
    pub pictures: u32,
    /// Order of the pictures in an epoch.
    pub order: PictureOrder,
    /// What happens to the pictures of an epoch that do not fill a batch.
    pub remainder: PictureRemainder,
}

/// See [`PictureBatchingSpec::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PictureOrder {
    /// A new random order in every epoch.
    Shuffled,
    /// The order of the files.
    File,
}

/// See [`PictureBatchingSpec::remainder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PictureRemainder {
    /// They form a smaller batch (PyTorch and Keras).
    Short,
    /// They are left out.
    Drop,
    /// The batch is filled with pictures of the next epoch (Caffe). With this, an epoch has as many
    /// batches as full batches begin in it.
    Continue,
}

/// A named evaluation set of pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Pictures that the set must have; another number is an error.
    pub lines: u32,
}
