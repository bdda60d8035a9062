//! Fixed sinusoidal position encodings in their published layouts.

use zoo_recipes::Positions;

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

    /// Appends the encoding of the token at `position`, counted from 0.
    pub fn append(&self, out: &mut Vec<f32>, position: usize) {
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
