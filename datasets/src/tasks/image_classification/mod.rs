//! Image classification: pictures and their classes in memory, and batches of them.
//!
//! Pictures are kept as bytes of the size that the model reads. They become numbers batch by batch.

mod batches;
mod error;
mod kept;
mod own;
mod prepared;
mod source;
mod split;
mod stripes;
#[cfg(test)]
mod tests;

pub use batches::{PictureBatch, TrainingPictures};
pub use error::PictureDataError;
pub use kept::kept_classes;
pub use own::{own_pictures, own_stamps};
pub use prepared::{MOST_BYTES, PreparedPictures, prepare_pictures};
pub use source::read_picture;
pub use split::PictureSplit;
