//! CPU kernel of attention: one head of one sequence, forward and backward, as matrix products over
//! blocks of query rows.

use std::ops::Range;

use super::super::fp32::{Matrix, Packed, Source, Start, product_strip};
use super::super::host::room;
use super::super::islands;
use super::super::rounding::Half;
use super::super::simd::{exp, max, sum_by, vectorized};
use super::{Plan, Segment};

/// Number of query rows whose scores are held at once.
const ROWS: usize = 256;

/// One head of one sequence, and its position in the rows of a tensor.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    pub segment: &'a Segment,
    pub plan: &'a Plan,
    /// Width of a row.
    pub width: usize,
    pub head: usize,
    /// Type to which operands and results of the products are rounded: the type of q, k and v.
    pub half: Option<Half>,
}

impl<'a> Head<'a> {
    fn size(&self) -> usize {
        self.width / self.plan.heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.size() as f32).sqrt()
    }

    fn at(&self, row: usize) -> usize {
        row * self.width + self.head * self.size()
    }

    /// This head's columns of `count` rows, as the rows of A or, in a transposed product, of B.
    fn rows<'v>(&self, values: &'v [f32], first: usize, count: usize) -> Matrix<'v> {
        Matrix::rows(&values[self.at(first)..], count, self.size(), self.width)
    }

    /// This head's columns of `count` rows, as the columns of B.
    fn columns<'v>(&self, values: &'v [f32], first: usize, count: usize) -> Matrix<'v> {
        Matrix::columns(&values[self.at(first)..], count, self.size(), self.width)
    }

    fn keys<'v>(&self, values: &'v [f32]) -> Matrix<'v> {
        self.rows(values, self.segment.key, self.segment.keys)
    }

    /// Writes rows of the head's size to a tensor, from row `first` on.
    fn write(&self, to: &mut [f32], first: usize, rows: &[f32], scale: f32) {
        for (i, row) in rows.chunks_exact(self.size()).enumerate() {
            let to = &mut to[self.at(first + i)..][..self.size()];
            to.iter_mut().zip(row).for_each(|(to, x)| *to = x * scale);
        }
    }

    /// The scaled queries of a block.
    fn queries(&self, q: &[f32], block: &Range<usize>) -> Vec<f32> {
        let (size, scale) = (self.size(), self.scale());
        let mut scaled = Vec::with_capacity(block.len() * size);
        for i in block.clone() {
            let row = &q[self.at(self.segment.query + i)..][..size];
            scaled.extend(row.iter().map(|x| x * scale));
        }
        self.rounded(scaled)
    }

    /// Rounds values to the products' type.
    fn rounded(&self, mut values: Vec<f32>) -> Vec<f32> {
        if let Some(half) = self.half {
            half.round(&mut values);
        }
        values
    }

    /// The product a b, in the products' type.
    fn product(&self, a: &Matrix, b: &Packed) -> Vec<f32> {
        self.rounded(multiplied(a, b))
    }

    /// Turns scores of the query rows from `first` on into probabilities; masked keys get 0.
    fn softmax(&self, scores: &mut [f32], first: usize) {
        let Some(half) = self.plan.softmax else { return probabilities(scores, *self, first) };
        for (i, row) in scores.chunks_exact_mut(self.segment.keys).enumerate() {
            let (visible, hidden) = row.split_at_mut(self.visible(first + i));
            islands::softmax(half, visible);
            hidden.fill(0.0);
        }
    }

    /// Turns gradients of the dropped weights into gradients of the scores, and probabilities into
    /// dropped weights.
    fn slopes(&self, slopes: &mut [f32], weights: &mut [f32], first: usize) {
        let Some(half) = self.plan.softmax else { return slopes_of_scores(slopes, weights, *self, first) };
        let keys = self.segment.keys;
        dropped(slopes, *self, first);
        half.round(slopes);
        for (i, (slopes, weights)) in
            slopes.chunks_exact_mut(keys).zip(weights.chunks_exact(keys)).enumerate()
        {
            let n = self.visible(first + i);
            let (visible, hidden) = slopes.split_at_mut(n);
            islands::slopes_of_scores(half, visible, &weights[..n]);
            hidden.fill(0.0);
        }
        dropped(weights, *self, first);
    }

    /// Number of keys that a query row attends to.
    fn visible(&self, row: usize) -> usize {
        self.plan.segments.visible(self.segment, row)
    }

    /// Blocks of the segment's query rows.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let queries = self.segment.queries;
        (0..queries).step_by(ROWS).map(move |first| first..queries.min(first + ROWS))
    }

    /// Writes the attention output. `out` holds the segment's query rows.
    pub fn forward(&self, out: &mut [f32], q: &[f32], k: &[f32], v: &[f32]) {
        let (size, keys) = (self.size(), self.segment.keys);
        if keys == 0 || self.segment.queries == 0 {
            return out.fill(0.0);
        }
        let k = Packed::columns(&self.keys(k));
        let v = Packed::columns(&self.columns(v, self.segment.key, keys));
        for block in self.blocks() {
            let queries = self.queries(q, &block);
            let mut weights = self.product(&Matrix::rows(&queries, block.len(), size, size), &k);
            self.softmax(&mut weights, block.start);
            dropped(&mut weights, *self, block.start);
            let weights = self.rounded(weights);
            let mixed = multiplied(&Matrix::rows(&weights, block.len(), keys, keys), &v);
            self.write(out, block.start, &mixed, 1.0);
        }
    }

    /// Writes the gradients. `dq` holds the segment's query rows, `dk` and `dv` its key rows.
    pub fn backward(&self, [dq, dk, dv]: [&mut [f32]; 3], [q, k, v, gradient]: [&[f32]; 4]) {
        let (size, keys) = (self.size(), self.segment.keys);
        if keys == 0 || self.segment.queries == 0 {
            return [dq, dk, dv].into_iter().for_each(|gradient| gradient.fill(0.0));
        }
        let key_columns = Packed::columns(&self.keys(k));
        let value_columns = Packed::columns(&self.keys(v));
        let key_rows = Packed::columns(&self.columns(k, self.segment.key, keys));
        let mut sums = [vec![0f32; keys * size], vec![0f32; keys * size]];
        for block in self.blocks() {
            let (rows, first) = (block.len(), self.segment.query + block.start);
            let queries = self.queries(q, &block);
            let mut weights = self.product(&Matrix::rows(&queries, rows, size, size), &key_columns);
            self.softmax(&mut weights, block.start);
            let mut slopes = self.product(&self.rows(gradient, first, rows), &value_columns);
            self.slopes(&mut slopes, &mut weights, block.start);
            let (weights, slopes) = (self.rounded(weights), self.rounded(slopes));

            let upstream = Packed::columns(&self.columns(gradient, first, rows));
            let of_values = multiplied(&Matrix::columns(&weights, rows, keys, keys), &upstream);
            let queries = Packed::columns(&Matrix::columns(&queries, rows, size, size));
            let of_keys = multiplied(&Matrix::columns(&slopes, rows, keys, keys), &queries);
            for (sums, part) in sums.iter_mut().zip([of_keys, of_values]) {
                sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            let of_queries = self.product(&Matrix::rows(&slopes, rows, keys, keys), &key_rows);
            self.write(dq, block.start, &of_queries, self.scale());
        }
        self.write(dk, 0, &sums[0], 1.0);
        self.write(dv, 0, &sums[1], 1.0);
    }
}

/// The product a b.
pub fn multiplied(a: &Matrix, b: &Packed) -> Vec<f32> {
    let mut out = room(a.lanes() * b.lanes());
    product_strip(&mut out, &Packed::rows(a), b, 0..b.lanes(), Start::Zero);
    out
}

/// Turns scores into probabilities, in place.
#[inline(always)]
pub fn softmax<const FMA: bool>(scores: &mut [f32]) {
    let largest = max(scores);
    for x in scores.iter_mut() {
        *x = exp::<FMA>(*x - largest);
    }
    let inverse = 1.0 / sum_by(scores, |x| x);
    for x in scores.iter_mut() {
        *x *= inverse;
    }
}

/// Element number of the first weight of a query row, for the dropout mask.
#[inline(always)]
fn first_element(plan: &Plan, row: usize, head: usize) -> u32 {
    ((row * plan.heads + head) * plan.segments.longest_key) as u32
}

vectorized! {
    /// Turns scores of the query rows from `first` on into probabilities; masked keys get 0.
    fn probabilities(scores: &mut [f32], head: Head<'_>, first: usize) {
        for (i, row) in scores.chunks_exact_mut(head.segment.keys).enumerate() {
            let (visible, hidden) = row.split_at_mut(head.plan.segments.visible(head.segment, first + i));
            softmax::<FMA>(visible);
            hidden.fill(0.0);
        }
    }

    /// Multiplies weights by their dropout mask.
    fn dropped(weights: &mut [f32], head: Head<'_>, first: usize) {
        let _ = FMA;
        let Some(mask) = head.plan.mask else { return };
        for (i, row) in weights.chunks_exact_mut(head.segment.keys).enumerate() {
            let element = first_element(head.plan, head.segment.query + first + i, head.head);
            for (t, w) in row.iter_mut().enumerate() {
                *w *= mask.factor(element.wrapping_add(t as u32));
            }
        }
    }

    /// Turns gradients of the dropped weights into gradients of the scores, and probabilities into
    /// dropped weights.
    fn slopes_of_scores(slopes: &mut [f32], weights: &mut [f32], head: Head<'_>, first: usize) {
        let _ = FMA;
        let keys = head.segment.keys;
        let mut products = vec![0f32; keys];
        for (i, (slopes, weights)) in slopes.chunks_exact_mut(keys).zip(weights.chunks_exact_mut(keys)).enumerate() {
            let n = head.plan.segments.visible(head.segment, first + i);
            let (visible, hidden) = slopes.split_at_mut(n);
            hidden.fill(0.0);
            let (weights, products) = (&mut weights[..n], &mut products[..n]);
            let element = first_element(head.plan, head.segment.query + first + i, head.head);
            if let Some(mask) = head.plan.mask {
                for (t, slope) in visible.iter_mut().enumerate() {
                    *slope *= mask.factor(element.wrapping_add(t as u32));
                }
            }
            for t in 0..n {
                products[t] = weights[t] * visible[t];
            }
            let shift = sum_by(products, |x| x);
            for t in 0..n {
                visible[t] = weights[t] * (visible[t] - shift);
            }
            if let Some(mask) = head.plan.mask {
                for (t, w) in weights.iter_mut().enumerate() {
                    *w *= mask.factor(element.wrapping_add(t as u32));
                }
            }
        }
    }
}
