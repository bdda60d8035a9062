//! Batches of texts and the frames of their speech.

/// Texts as symbols, and the target frames.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SynthesisBatch {
    /// Symbols of each utterance; at least one.
    pub symbols: Vec<Vec<u32>>,
    /// Frames `[utterances, longest, mels + magnitudes]`, zero after the end of each utterance.
    pub frames: Vec<f32>,
    /// Width of a frame: mels + magnitudes.
    pub width: usize,
    /// Number of frames of each utterance; at least one.
    pub lengths: Vec<usize>,
    /// For each utterance, the first frame with stop target 1.
    pub stops: Vec<usize>,
}

impl SynthesisBatch {
    /// Number of frames of the longest utterance.
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Number of symbols of the longest text.
    pub fn longest_text(&self) -> usize {
        self.symbols.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// A range of columns of all frames, including padding: `[utterances x longest, columns]`.
    pub fn columns(&self, columns: std::ops::Range<usize>) -> Vec<f32> {
        self.frames
            .chunks_exact(self.width.max(1))
            .flat_map(|frame| frame[columns.clone()].to_vec())
            .collect()
    }

    /// Decoder input for teacher forcing: the first `mels` columns, shifted by one frame. The first
    /// frame is zero.
    pub fn shifted(&self, mels: usize) -> Vec<f32> {
        let longest = self.longest();
        let mut read = vec![0f32; self.lengths.len() * longest * mels];
        let (to, from) = (
            read.chunks_exact_mut((longest * mels).max(1)),
            self.frames.chunks_exact((longest * self.width).max(1)),
        );
        for (to, from) in to.zip(from) {
            for (to, from) in to[mels..].chunks_exact_mut(mels).zip(from.chunks_exact(self.width)) {
                to.copy_from_slice(&from[..mels]);
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_comes_one_frame_late() {
        let batch = SynthesisBatch {
            symbols: vec![vec![1], vec![2, 3]],
            frames: vec![1.0, 9.0, 2.0, 9.0, 3.0, 9.0, 4.0, 9.0, 0.0, 0.0, 0.0, 0.0],
            width: 2,
            lengths: vec![3, 1],
            stops: vec![2, 0],
        };
        assert_eq!((batch.longest(), batch.longest_text()), (3, 2));
        assert_eq!(batch.shifted(1), [0.0, 1.0, 2.0, 0.0, 4.0, 0.0]);
        assert_eq!(batch.columns(1..2), [9.0, 9.0, 9.0, 9.0, 0.0, 0.0]);
    }
}
