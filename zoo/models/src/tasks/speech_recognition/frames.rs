//! Padded batches of utterances.

use burn::tensor::{Int, Tensor, TensorData};

use crate::ops::Rows;

/// Frames of utterances of different lengths, padded to the longest.
#[derive(Debug, Clone)]
pub struct Frames {
    /// Shape `[utterances, longest, channels]`.
    pub x: Tensor<3>,
    /// Number of frames of each utterance.
    pub lengths: Vec<usize>,
}

impl Frames {
    /// Takes frames that are 0 after the end of each utterance.
    ///
    /// # Panics
    /// If the number of lengths differs from the number of utterances, or a length exceeds the
    /// tensor.
    pub fn new(x: Tensor<3>, lengths: Vec<usize>) -> Self {
        let [utterances, longest, _] = x.dims();
        assert!(lengths.len() == utterances && lengths.iter().all(|&length| length <= longest), "lengths");
        Self { x, lengths }
    }

    /// Number of frames of the longest utterance, including the padding of the batch.
    pub fn longest(&self) -> usize {
        self.x.dims()[1]
    }

    /// For each utterance, its first row in [`Self::rows`] and its number of rows.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let longest = self.longest();
        self.lengths.iter().enumerate().map(|(i, &length)| (i * longest, length)).collect()
    }

    /// All frames as rows: `[utterances * longest, channels]`.
    pub fn rows(&self) -> Tensor<2> {
        let [utterances, longest, channels] = self.x.dims();
        self.x.clone().reshape([utterances * longest, channels])
    }

    /// The rows of [`Self::rows`] that are not padding.
    pub fn valid(&self) -> Rows {
        Rows::of_lengths(&self.lengths, self.longest())
    }

    /// Applies a function to all frames as rows.
    pub fn map_rows(self, of: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Self {
        let ([utterances, longest, _], rows) = (self.x.dims(), self.rows());
        let rows = of(rows);
        let channels = rows.dims()[1];
        Self { x: rows.reshape([utterances, longest, channels]), lengths: self.lengths }
    }

    /// Adds frames of padding up to a multiple of `multiple`.
    pub fn padded_to(self, multiple: usize) -> Self {
        let [utterances, longest, channels] = self.x.dims();
        let more = longest.next_multiple_of(multiple) - longest;
        if more == 0 {
            return self;
        }
        let zeros = Tensor::<3>::zeros([utterances, more, channels], &self.x.device()).cast(self.x.dtype());
        Self { x: Tensor::cat(vec![self.x, zeros], 1), lengths: self.lengths }
    }

    /// The frames that are not padding, concatenated: `[frames, channels]`.
    pub fn packed(&self) -> Tensor<2> {
        let rows = self.places().into_iter().flat_map(|(first, length)| first..first + length);
        self.rows().select(0, indices(rows, &self.x))
    }

    /// The inverse of [`Self::packed`], with zeros as padding.
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
