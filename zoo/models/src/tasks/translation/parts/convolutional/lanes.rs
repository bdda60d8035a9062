//! Layout of packed sequences for a convolution.

use burn::tensor::Tensor;

use crate::ops;

/// Maximum number of lanes: enough for every core, and few enough that their different ends waste
/// little.
const MOST: usize = 16;

/// Sequences in a few lanes of equal length. A lane holds its sequences one after the other,
/// separated by zeros: as many as a kernel covers, so that no sequence reads its neighbour. The
/// layout depends on the lengths alone.
#[derive(Debug, Clone)]
pub struct Lanes {
    lanes: usize,
    steps: usize,
    /// The packed row at each place; `None` is a zero.
    rows: Vec<Option<u32>>,
    /// The place of each packed row.
    places: Vec<Option<u32>>,
}

impl Lanes {
    /// Lays out sequences for kernels of up to `kernel` taps, whatever tap is the centre.
    pub fn new(lengths: &[u32], kernel: usize) -> Self {
        let gap = kernel.saturating_sub(1);
        let mut order: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i] > 0).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        let mut ends = vec![0usize; order.len().min(MOST)];
        // The longest sequence first, each in the lane that is shortest so far.
        let mut placed = vec![(0, 0); lengths.len()];
        for i in order {
            let lane = (0..ends.len()).min_by_key(|&lane| ends[lane]).expect("a lane for a sequence");
            let first = if ends[lane] == 0 { 0 } else { ends[lane] + gap };
            placed[i] = (lane, first);
            ends[lane] = first + lengths[i] as usize;
        }
        let steps = ends.iter().copied().max().unwrap_or(0);
        let mut rows = vec![None; ends.len() * steps];
        let mut places = Vec::new();
        for (&length, (lane, first)) in lengths.iter().zip(placed) {
            for step in 0..length as usize {
                let place = lane * steps + first + step;
                rows[place] = Some(places.len() as u32);
                places.push(Some(place as u32));
            }
        }
        Self { lanes: ends.len(), steps, rows, places }
    }

    /// Applies a layer in the lanes' layout: x `[rows, in]` FP32 -> `[lanes, steps, in]` ->
    /// `[lanes x steps, out]` -> `[rows, out]` FP32.
    pub fn through(&self, x: Tensor<2>, layer: impl FnOnce(Tensor<3>) -> Tensor<2>) -> Tensor<2> {
        let channels = x.dims()[1];
        let spread = ops::embedding(x, &self.rows).reshape([self.lanes, self.steps, channels]);
        ops::embedding(layer(spread), &self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_kept_apart_and_found_again() {
        let lengths: Vec<u32> = (0..40).map(|i| i * 7 % 11).collect();
        let lanes = Lanes::new(&lengths, 3);
        assert_eq!(lanes.lanes, MOST);
        let mut row = 0;
        for &length in &lengths {
            let places: Vec<usize> =
                (row..row + length).map(|row| lanes.places[row as usize].unwrap() as usize).collect();
            assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 1), "one behind the other");
            if let (Some(&first), Some(&last)) = (places.first(), places.last()) {
                assert_eq!(first / lanes.steps, last / lanes.steps, "in one lane");
                let lane = first / lanes.steps * lanes.steps..(first / lanes.steps + 1) * lanes.steps;
                for beside in [first.wrapping_sub(2), first.wrapping_sub(1), last + 1, last + 2] {
                    assert!(!lane.contains(&beside) || lanes.rows[beside].is_none(), "zeros beside it");
                }
            }
            row += length;
        }
        assert_eq!(lanes.rows.iter().flatten().count(), row as usize);
        assert!(lanes.rows.len() < 2 * row as usize, "little is wasted");
    }

    #[test]
    fn nothing_has_no_lanes() {
        let lanes = Lanes::new(&[0, 0], 3);
        assert_eq!((lanes.lanes, lanes.steps, lanes.places.len()), (0, 0, 0));
    }
}
