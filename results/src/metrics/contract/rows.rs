//! Rows of numbers, one per record, and the rows that a resample draws.

use super::arithmetic::Arithmetic;

/// A row of numbers for each record of a test set.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    numbers: Vec<f64>,
    shape: Shape,
}

/// Boundaries of the rows.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// All rows have this width.
    Even(usize),
    /// End offsets of the rows, rising.
    Ragged(Vec<usize>),
}

impl Rows {
    /// Rows of one width, for metrics that are functions of sums.
    pub fn even(width: usize, numbers: Vec<f64>) -> Self {
        debug_assert!(width > 0 && numbers.len().is_multiple_of(width));
        Self { numbers, shape: Shape::Even(width) }
    }

    /// Rows of varying length, e.g. a score and a hit for every detection in an image.
    pub fn ragged(rows: impl IntoIterator<Item = Vec<f64>>) -> Self {
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for row in rows {
            numbers.extend(row);
            ends.push(numbers.len());
        }
        Self { numbers, shape: Shape::Ragged(ends) }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.shape {
            Shape::Even(width) => self.numbers.len() / width,
            Shape::Ragged(ends) => ends.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position, from 0.
    fn row(&self, at: usize) -> &[f64] {
        match &self.shape {
            Shape::Even(width) => &self.numbers[at * width..(at + 1) * width],
            Shape::Ragged(ends) => {
                let start = at.checked_sub(1).map_or(0, |before| ends[before]);
                &self.numbers[start..ends[at]]
            }
        }
    }

    /// Number of columns. For ragged rows, that of the shortest row.
    fn width(&self) -> usize {
        match &self.shape {
            Shape::Even(width) => *width,
            Shape::Ragged(_) => (0..self.len()).map(|at| self.row(at).len()).min().unwrap_or(0),
        }
    }
}

/// The rows of a test set, or of a resample of it.
#[derive(Debug)]
pub struct Drawn<'a> {
    rows: &'a Rows,
    indices: Option<&'a [u32]>,
    arithmetic: Arithmetic,
    /// Buffer for sums, reused between resamples.
    sums: &'a mut Vec<f64>,
}

impl<'a> Drawn<'a> {
    /// Every row once, in order, summed in double precision.
    pub(crate) fn all(rows: &'a Rows, sums: &'a mut Vec<f64>) -> Self {
        Self { rows, indices: None, arithmetic: Arithmetic::Double, sums }
    }

    /// The rows at these positions, with repetition.
    pub(crate) fn of(
        rows: &'a Rows,
        indices: &'a [u32],
        arithmetic: Arithmetic,
        sums: &'a mut Vec<f64>,
    ) -> Self {
        Self { rows, indices: Some(indices), arithmetic, sums }
    }

    /// Sum of each column, in the order in which the rows were drawn, and the precision of sums and
    /// score. In single precision, rows are added one after another in f32, as NumPy sums along the
    /// first axis.
    pub fn sums(self) -> (&'a [f64], Arithmetic) {
        let Self { rows, indices, arithmetic, sums } = self;
        let width = rows.width();
        sums.clear();
        sums.resize(width, 0.0);
        match (indices, &rows.shape) {
            (Some(indices), Shape::Even(width)) => {
                for &index in indices {
                    let at = index as usize * width;
                    for (sum, x) in sums.iter_mut().zip(&rows.numbers[at..at + width]) {
                        *sum = arithmetic.round(*sum + arithmetic.round(*x));
                    }
                }
            }
            (None, Shape::Even(width)) => add_columns(&rows.numbers, *width, sums),
            (_, Shape::Ragged(_)) => {
                for at in places(rows, indices) {
                    for (sum, x) in sums.iter_mut().zip(rows.row(at)) {
                        *sum = arithmetic.round(*sum + arithmetic.round(*x));
                    }
                }
            }
        }
        (sums, arithmetic)
    }

    /// The rows in the order in which they were drawn.
    pub fn rows(&self) -> impl Iterator<Item = &'a [f64]> {
        let rows = self.rows;
        places(rows, self.indices).map(move |at| rows.row(at))
    }
}

/// Positions of the drawn rows.
fn places<'a>(rows: &Rows, indices: Option<&'a [u32]>) -> impl Iterator<Item = usize> + use<'a> {
    let all = if indices.is_none() { 0..rows.len() } else { 0..0 };
    indices.unwrap_or_default().iter().map(|index| *index as usize).chain(all)
}

fn add_columns(numbers: &[f64], width: usize, sums: &mut [f64]) {
    for row in numbers.chunks_exact(width) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

/// Sum of each column, rows in order.
pub(crate) fn column_sums(numbers: &[f64], width: usize) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    add_columns(numbers, width, &mut sums);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_rows_are_drawn_whole() {
        let rows = Rows::ragged([vec![1.0], vec![], vec![2.0, 3.0]]);
        assert_eq!((rows.len(), rows.row(1).len()), (3, 0));
        let mut sums = Vec::new();
        let drawn: Vec<Vec<f64>> =
            Drawn::of(&rows, &[2, 0, 2], Arithmetic::Double, &mut sums).rows().map(<[f64]>::to_vec).collect();
        assert_eq!(drawn, [vec![2.0, 3.0], vec![1.0], vec![2.0, 3.0]]);
        assert_eq!(Drawn::all(&rows, &mut sums).rows().count(), 3);
    }

    #[test]
    fn sums_are_those_of_the_rows_that_were_drawn() {
        let rows = Rows::even(2, vec![1.0, 10.0, 2.0, 20.0]);
        let mut sums = Vec::new();
        assert_eq!(Drawn::all(&rows, &mut sums).sums().0, [3.0, 30.0]);
        assert_eq!(Drawn::of(&rows, &[1, 1, 0], Arithmetic::Double, &mut sums).sums().0, [5.0, 50.0]);
        let ragged = Rows::ragged([vec![1.0, 10.0], vec![2.0, 20.0]]);
        assert_eq!(Drawn::of(&ragged, &[1, 1, 0], Arithmetic::Double, &mut sums).sums().0, [5.0, 50.0]);
    }
}
