//! Utterances side by side.

use burn::tensor::{Int, Tensor, TensorData};

use crate::ops::Rows;

/// Frames of utterances of unlike length, padded to the longest.
#[derive(Debug, Clone)]
pub struct Frames {
    /// [utterances, longest, channels]
    pub x: Tensor<3>,
    /// Frames of each.
    pub lengths: Vec<usize>,
}

impl Frames {
    /// What stands behind an utterance's end is to be 0.
    ///
    /// # Panics
    /// If there are not as many lengths as utterances, or one is longer than the tensor.
    pub fn new(x: Tensor<3>, lengths: Vec<usize>) -> Self {
        let [utterances, longest, _] = x.dims();
        assert!(lengths.len() == utterances && lengths.iter().all(|&length| length <= longest), "lengths");
        Self { x, lengths }
    }

    /// Frames of the longest, padding of the batch included.
    pub fn longest(&self) -> usize {
        self.x.dims()[1]
    }

    /// First row and rows of each utterance in [`Self::rows`].
    pub fn places(&self) -> Vec<(usize, usize)> {
        let longest = self.longest();
        self.lengths.iter().enumerate().map(|(i, &length)| (i * longest, length)).collect()
    }

    /// All frames below each other: [utterances * longest, channels].
    pub fn rows(&self) -> Tensor<2> {
        let [utterances, longest, channels] = self.x.dims();
        self.x.clone().reshape([utterances * longest, channels])
    }

    /// Which of [`Self::rows`] are no padding.
    pub fn valid(&self) -> Rows {
        Rows::of_lengths(&self.lengths, self.longest())
    }

    /// Every frame by itself.
    pub fn map_rows(self, of: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Self {
        let ([utterances, longest, _], rows) = (self.x.dims(), self.rows());
        let rows = of(rows);
        let channels = rows.dims()[1];
        Self { x: rows.reshape([utterances, longest, channels]), lengths: self.lengths }
    }

    /// With as many frames of padding as make them a multiple of this.
    pub fn padded_to(self, multiple: usize) -> Self {
        let [utterances, longest, channels] = self.x.dims();
        let more = longest.next_multiple_of(multiple) - longest;
        if more == 0 {
            return self;
        }
        let zeros = Tensor::<3>::zeros([utterances, more, channels], &self.x.device()).cast(self.x.dtype());
        Self { x: Tensor::cat(vec![self.x, zeros], 1), lengths: self.lengths }
    }

    /// The frames that are no padding, one utterance behind the other: [frames, channels].
    pub fn packed(&self) -> Tensor<2> {
        let rows = self.places().into_iter().flat_map(|(first, length)| first..first + length);
        self.rows().select(0, indices(rows, &self.x))
    }

    /// The way back of [`Self::packed`], with zeros as padding.
    pub fn unpacked(&self, packed: Tensor<2>) -> Self {
        let ([rows, channels], [utterances, longest, _]) = (packed.dims(), self.x.dims());
        let zeros = Tensor::<2>::zeros([1, channels], &packed.device()).cast(packed.dtype());
        let mut first = 0;
        let mut from = Vec::with_capacity(utterances * longest);
        for &length in &self.lengths {
            from.extend((0..longest).map(|t| if t < length { first + t } else { rows }));
            first += length;
        }
        let all = Tensor::cat(vec![packed, zeros], 0);
        let x = all.clone().select(0, indices(from.into_iter(), &self.x));
        Self { x: x.reshape([utterances, longest, channels]), lengths: self.lengths.clone() }
    }
}

fn indices(rows: impl Iterator<Item = usize>, like: &Tensor<3>) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.map(|row| row as i32).collect();
    let count = rows.len();
    Tensor::from_data(TensorData::new(rows, [count]), &like.device())
}
