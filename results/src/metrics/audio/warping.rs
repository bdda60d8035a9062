//! Dynamic time warping (Sakoe and Chiba, 1978), without step weights and without a band.

/// The cheapest path through two sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Path {
    /// Sum of the distances of its pairs.
    pub cost: f64,
    /// Number of its pairs.
    pub pairs: u32,
}

impl Path {
    fn before(self, other: Self) -> bool {
        self.cost < other.cost || (self.cost == other.cost && self.pairs < other.pairs)
    }
}

/// The path from the first pair to the last with steps (1, 0), (0, 1) and (1, 1) and the least sum
/// of distances, where each pair counts once; of equally cheap paths, the shortest. An element has
/// `width` numbers; distances are Euclidean. Time is proportional to the number of all pairs,
/// memory to the second sequence. Both sequences must have at least one element.
pub(super) fn cheapest(first: &[f64], second: &[f64], width: usize) -> Path {
    let mut row: Vec<Path> = Vec::with_capacity(second.len() / width);
    for (i, a) in first.chunks_exact(width).enumerate() {
        // The previous row's value one column to the left, which this row has overwritten.
        let mut diagonal: Option<Path> = None;
        for (j, b) in second.chunks_exact(width).enumerate() {
            let distance = distance(a, b);
            let above = if i > 0 { row.get(j).copied() } else { None };
            let left = if j > 0 { row.get(j - 1).copied() } else { None };
            let from = [diagonal, above, left].into_iter().flatten();
            let best = from.reduce(|best, next| if next.before(best) { next } else { best });
            let best = best.unwrap_or(Path { cost: 0.0, pairs: 0 });
            let here = Path { cost: best.cost + distance, pairs: best.pairs.saturating_add(1) };
            match row.get_mut(j) {
                Some(place) => *place = here,
                None => row.push(here),
            }
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(Path { cost: 0.0, pairs: 0 })
}

/// Pairs the elements at equal positions.
pub(super) fn straight(first: &[f64], second: &[f64], width: usize) -> Path {
    let pairs = first.chunks_exact(width).zip(second.chunks_exact(width));
    let start = Path { cost: 0.0, pairs: 0 };
    pairs.fold(start, |sum, (a, b)| Path { cost: sum.cost + distance(a, b), pairs: sum.pairs + 1 })
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y));
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_where_they_are_cheapest() {
        let of = |a: &[f64], b: &[f64]| cheapest(a, b, 1);
        let path = |cost, pairs| Path { cost, pairs };
        assert_eq!(of(&[1.0], &[3.0]), path(2.0, 1));
        assert_eq!(of(&[1.0], &[1.0, 2.0, 3.0]), path(3.0, 3));
        assert_eq!(of(&[1.0, 2.0, 3.0], &[1.0]), path(3.0, 3));
        // A sustained sound.
        assert_eq!(of(&[0.0, 5.0, 1.0], &[0.0, 5.0, 5.0, 5.0, 1.0]), path(0.0, 5));
        // Worked out by hand: 0-0, 2-3, 2-2, 9-9.
        assert_eq!(of(&[0.0, 2.0, 9.0], &[0.0, 3.0, 2.0, 9.0]), path(1.0, 4));
        // All paths cost nothing, so the diagonal is chosen as the shortest.
        assert_eq!(of(&[1.0; 4], &[1.0; 4]), path(0.0, 4));
        assert_eq!(of(&[1.0; 4], &[1.0; 6]), path(0.0, 6));
        assert_eq!(cheapest(&[0.0, 0.0, 3.0, 4.0], &[0.0, 0.0, 0.0, 0.0], 2), path(5.0, 2));
        assert_eq!(straight(&[0.0, 2.0], &[1.0, 5.0], 1), path(4.0, 2));
    }
}
