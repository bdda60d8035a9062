//! Batches of pictures.

use burn::tensor::{Device, Tensor, TensorData};

/// Pixels and labels of a batch of pictures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PictureBatch {
    /// Pixels `[pictures, height, width, channels]`, as the model reads them.
    pub pixels: Vec<f32>,
    /// Height, width and channels of a picture.
    pub size: [usize; 3],
    /// Class of each picture.
    pub labels: Vec<u32>,
}

impl PictureBatch {
    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no pictures.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels as a tensor `[pictures, height, width, channels]` on a device.
    ///
    /// # Panics
    /// If the number of pixels does not belong to the number of labels and the size.
    pub fn pixels(&self, device: &Device) -> Tensor<4> {
        let [height, width, channels] = self.size;
        let shape = [self.len(), height, width, channels];
        Tensor::from_data(TensorData::new(self.pixels.clone(), shape), device)
    }
}
