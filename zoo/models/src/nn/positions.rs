//! Fixed sinusoidal position encodings in their published layouts.

use burn::tensor::{Device, Tensor, TensorData};
use zoo_recipes::Positions;

use crate::ops;

/// Encodings of the positions 0, 1, 2, … of a sequence.
#[derive(Debug, Clone)]
pub struct PositionTable {
    layout: Positions,
    width: usize,
}

impl PositionTable {
    /// Builds a table for vectors of `width` numbers.
    pub fn new(layout: Positions, width: usize) -> Self {
        Self { layout, width }
    }

    /// The encodings of tokens at these positions, counted from 0: FP32 `[positions, width]`.
    ///
    /// Each different position is computed once: a batch has thousands of tokens and at most some
    /// hundred positions, and a GPU would wait for the sines of all tokens.
    pub fn encode(&self, positions: impl Iterator<Item = usize> + Clone, device: &Device) -> Tensor<2> {
        const UNSEEN: u32 = u32::MAX;
        let mut row_of = vec![UNSEEN; positions.clone().max().map_or(0, |last| last + 1)];
        let mut codes = Vec::new();
        let mut count = 0;
        let rows: Vec<Option<u32>> = positions
            .map(|position| {
                let row = &mut row_of[position];
                if *row == UNSEEN {
                    *row = count;
                    count += 1;
                    self.append(&mut codes, position);
                }
                Some(*row)
            })
            .collect();
        let table = TensorData::new(codes, [count as usize, self.width]);
        ops::embedding(Tensor::from_data(table, device), &rows)
    }

    /// Appends the encoding of one position.
    fn append(&self, out: &mut Vec<f32>, position: usize) {
        let half = self.width / 2;
        match self.layout {
            Positions::None => out.extend(std::iter::repeat_n(0.0, 2 * half)),
            Positions::SinusoidPaper => {
                for i in 0..half {
                    let angle = position as f64 / 10_000f64.powf(2.0 * i as f64 / self.width as f64);
                    out.extend([angle.sin() as f32, angle.cos() as f32]);
                }
            }
            Positions::SinusoidTensor2tensor | Positions::SinusoidFairseq => {
                // fairseq numbers positions from the padding index + 1, which is 2.
                let first = if self.layout == Positions::SinusoidFairseq { 2 } else { 0 };
                let step = 10_000f64.ln() / (half.max(2) - 1) as f64;
                let angle = |i: usize| (position + first) as f64 * (-step * i as f64).exp();
                out.extend((0..half).map(|i| angle(i).sin() as f32));
                out.extend((0..half).map(|i| angle(i).cos() as f32));
            }
        }
        out.resize(out.len() + self.width % 2, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::host_values;

    #[test]
    fn tokens_share_the_encoding_of_their_position() {
        for layout in [Positions::SinusoidPaper, Positions::SinusoidTensor2tensor, Positions::SinusoidFairseq]
        {
            let (table, positions) = (PositionTable::new(layout, 7), [4, 0, 1, 4, 300, 0]);
            let mut due = Vec::new();
            positions.iter().for_each(|&position| table.append(&mut due, position));
            let codes = table.encode(positions.into_iter(), &Device::flex());
            assert_eq!(codes.dims(), [6, 7]);
            assert_eq!(host_values(codes), due, "{layout:?}");
        }
    }

    #[test]
    fn layouts_differ_as_published() {
        let code = |layout, position| {
            let mut out = Vec::new();
            PositionTable::new(layout, 8).append(&mut out, position);
            out
        };
        let t2t = code(Positions::SinusoidTensor2tensor, 3);
        assert!((t2t[0] - 3f32.sin()).abs() < 1e-6 && (t2t[4] - 3f32.cos()).abs() < 1e-6);
        assert!((t2t[3] - 3e-4).abs() < 1e-7, "the last time scale is 10000");
        assert_eq!(code(Positions::SinusoidFairseq, 1), t2t);
        let paper = code(Positions::SinusoidPaper, 3);
        assert!((paper[1] - 3f32.cos()).abs() < 1e-6 && (paper[2] - (3.0 / 10f64).sin() as f32).abs() < 1e-6);
    }
}
