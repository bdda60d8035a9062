//! Pictures: reads PNG, JPEG and IDX files and folders; resizes, crops and flips; converts pictures
//! to numbers. Independent of any task.

mod augment;
mod crop;
mod decode;
mod encode;
mod error;
mod folder;
mod idx;
mod numbers;
mod picture;
mod resize;
mod shape;

pub use augment::{Turn, Variation, VariedCrop};
pub use crop::{CenterCrop, RandomCrop, RandomResizedCrop};
pub use decode::{LARGEST_FILE, decode, decode_bytes};
pub use encode::encode_png;
pub use error::{PictureError, ShapeError};
pub use folder::{FolderError, ListedPicture, PictureFolder};
pub use idx::{IdxPictures, LARGEST_IDX, read_idx_labels, read_idx_pictures};
pub use numbers::{Normalization, PixelScale, Pixels};
pub use picture::Picture;
pub use resize::{Filter, resize, resize_shorter_side};
pub use shape::{LARGEST_PIXELS, Window};
