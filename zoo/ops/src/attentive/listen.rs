//! One attention step of one sequence over its source, and its gradients.

use crate::attention::softmax;
use crate::fp32::{self, Matrix, Packed, Start};
use crate::host;
use crate::simd::{LANES, fma, sum_by, tanh, vectorized};

/// A source with the attention's parameters.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Shape `[rows, units]`.
    pub keys: &'a [f32],
    /// Shape `[rows, width]`.
    pub values: &'a [f32],
    /// Shape `[units, channels x taps]`, packed for either side of a product.
    pub filter: &'a Filter,
    /// Shape `[units]`.
    pub vector: &'a [f32],
}

/// The location filter.
pub struct Filter {
    pub channels: usize,
    pub taps: usize,
    /// Packed for patches times filter.
    forward: Packed,
    /// Packed for slopes times filter.
    backward: Packed,
}

impl Filter {
    /// Packs `values` `[units, channels x taps]`.
    pub fn new(values: &[f32], units: usize, channels: usize) -> Self {
        let all = values.len() / units.max(1);
        Self {
            channels,
            taps: all / channels.max(1),
            forward: Packed::columns(&Matrix::rows(values, units, all, all)),
            backward: Packed::columns(&Matrix::columns(values, units, all, all)),
        }
    }

    fn patch(&self) -> usize {
        self.channels * self.taps
    }

    /// Number of rows that the filter covers before the scored row.
    fn before(&self) -> usize {
        (self.taps - 1) / 2
    }
}

/// Attention weights of the last step and the sum over all steps: the channels of the filter.
#[derive(Clone, Copy)]
pub struct Past<'a> {
    pub last: &'a [f32],
    pub sum: &'a [f32],
}

impl<'a> Look<'a> {
    fn units(&self) -> usize {
        self.vector.len()
    }

    fn channels(&self, past: Past<'a>) -> impl Iterator<Item = &'a [f32]> {
        [past.last, past.sum].into_iter().skip(2 - self.filter.channels)
    }

    /// Input of the filter for each row: `[rows, channels x taps]`.
    fn patches(&self, past: Past<'_>) -> Vec<f32> {
        let Filter { taps, .. } = *self.filter;
        let (rows, before, width) = (past.sum.len(), self.filter.before(), self.filter.patch());
        let mut patches = vec![0f32; rows * width];
        for (channel, weights) in self.channels(past).enumerate() {
            for (row, patch) in patches.chunks_exact_mut(width).enumerate() {
                let patch = &mut patch[channel * taps..][..taps];
                // Tap k reads row + k - before.
                let first = before.saturating_sub(row);
                let end = taps.min(rows + before - row);
                patch[first..end].copy_from_slice(&weights[row + first - before..row + end - before]);
            }
        }
        patches
    }

    fn location(&self, patches: &[f32], rows: usize) -> Vec<f32> {
        let width = self.filter.patch();
        let patches = Packed::rows(&Matrix::rows(patches, rows, width, width));
        let mut location = host::room(rows * self.units());
        fp32::product_strip(&mut location, &patches, &self.filter.forward, 0..self.units(), Start::Zero);
        location
    }

    /// `query` `[units]`, with the bias -> attention weights `[rows]` and context `[width]`.
    pub fn forward(&self, query: &[f32], past: Past<'_>, weights: &mut [f32], found: &mut [f32]) {
        let location = self.location(&self.patches(past), weights.len());
        scores(weights, query, self.keys, &location, self.vector);
        probabilities(weights);
        weighted(found, weights, self.values);
    }

    /// Backward pass. `slopes` `[rows]` are the gradients of the weights, without the part through
    /// the context, whose gradient is `of_found` `[width]`. Gradients are added to `to`.
    pub fn backward(
        &self,
        query: &[f32],
        past: Past<'_>,
        weights: &[f32],
        slopes: &mut [f32],
        of_found: &[f32],
        to: Slopes<'_>,
    ) {
        let (rows, units, width) = (weights.len(), self.units(), self.filter.patch());
        through_values(slopes, to.values, weights, self.values, of_found);
        of_scores(slopes, weights);
        let patches = self.patches(past);
        let location = self.location(&patches, rows);
        let mut inner = host::room(rows * units);
        of_network(
            slopes,
            query,
            self.keys,
            &location,
            self.vector,
            &mut inner,
            to.keys,
            to.query,
            to.vector,
        );
        // Gradient of the filter: inner transposed times patches.
        let of_patches = Packed::columns(&Matrix::columns(&patches, rows, width, width));
        let columns = Packed::rows(&Matrix::columns(&inner, rows, units, units));
        let mut of_filter = host::room(units * width);
        fp32::product_strip(&mut of_filter, &columns, &of_patches, 0..width, Start::Zero);
        crate::simd::add(to.filter, &of_filter);
        // Gradient of the patches, and from it the gradients of the weights in the patches.
        let inner = Packed::rows(&Matrix::rows(&inner, rows, units, units));
        let mut of_patches = host::room(rows * width);
        fp32::product_strip(&mut of_patches, &inner, &self.filter.backward, 0..width, Start::Zero);
        let (taps, before) = (self.filter.taps, self.filter.before());
        to.last.fill(0.0);
        for (row, patch) in of_patches.chunks_exact(width).enumerate() {
            let first = before.saturating_sub(row);
            let end = taps.min(rows + before - row);
            let seen = row + first - before..row + end - before;
            let (sum, last) = match self.filter.channels {
                1 => (&patch[first..end], None),
                _ => (&patch[taps + first..taps + end], Some(&patch[first..end])),
            };
            crate::simd::add(&mut to.sum[seen.clone()], sum);
            if let Some(last) = last {
                crate::simd::add(&mut to.last[seen], last);
            }
        }
    }
}

/// Destination of the gradients.
pub struct Slopes<'a> {
    /// `[rows, units]`, added to.
    pub keys: &'a mut [f32],
    /// `[rows, width]`, added to.
    pub values: &'a mut [f32],
    /// `[units]`, written.
    pub query: &'a mut [f32],
    /// `[units]`, added to.
    pub vector: &'a mut [f32],
    /// `[units, channels x taps]`, added to.
    pub filter: &'a mut [f32],
    /// `[rows]` of the last step's weights, written.
    pub last: &'a mut [f32],
    /// `[rows]` of the sum of weights, added to.
    pub sum: &'a mut [f32],
}

vectorized! {
    /// v · tanh(query + key + location) of every row.
    fn scores(scores: &mut [f32], query: &[f32], keys: &[f32], location: &[f32], vector: &[f32]) {
        let units = vector.len();
        let query = &query[..units];
        let whole = units - units % LANES;
        let rows = keys.chunks_exact(units).zip(location.chunks_exact(units));
        for ((key, location), score) in rows.zip(scores) {
            let mut lanes = [0f32; LANES];
            for first in (0..whole).step_by(LANES) {
                for (lane, sum) in lanes.iter_mut().enumerate() {
                    let u = first + lane;
                    *sum = fma::<FMA>(vector[u], tanh::<FMA>(query[u] + key[u] + location[u]), *sum);
                }
            }
            for u in whole..units {
                lanes[u - whole] =
                    fma::<FMA>(vector[u], tanh::<FMA>(query[u] + key[u] + location[u]), lanes[u - whole]);
            }
            *score = lanes.iter().sum();
        }
    }

    fn probabilities(weights: &mut [f32]) {
        softmax::<FMA>(weights);
    }

    fn weighted(found: &mut [f32], weights: &[f32], values: &[f32]) {
        let width = found.len();
        found.fill(0.0);
        for (value, &weight) in values.chunks_exact(width).zip(weights) {
            for (sum, value) in found.iter_mut().zip(value) {
                *sum = fma::<FMA>(weight, *value, *sum);
            }
        }
    }

    /// Adds the part through the context to the gradients of the weights, and adds the gradients of
    /// the values.
    fn through_values(slopes: &mut [f32], of_values: &mut [f32], weights: &[f32], values: &[f32], of_found: &[f32]) {
        let width = of_found.len();
        let rows = values.chunks_exact(width).zip(of_values.chunks_exact_mut(width));
        for (((value, of_value), &weight), slope) in rows.zip(weights).zip(slopes) {
            let mut lanes = [0f32; LANES];
            let whole = width - width % LANES;
            for first in (0..whole).step_by(LANES) {
                for (lane, sum) in lanes.iter_mut().enumerate() {
                    let i = first + lane;
                    *sum = fma::<FMA>(value[i], of_found[i], *sum);
                    of_value[i] = fma::<FMA>(weight, of_found[i], of_value[i]);
                }
            }
            for i in whole..width {
                lanes[i - whole] = fma::<FMA>(value[i], of_found[i], lanes[i - whole]);
                of_value[i] = fma::<FMA>(weight, of_found[i], of_value[i]);
            }
            *slope += lanes.iter().sum::<f32>();
        }
    }

    /// Turns gradients of weights into gradients of scores.
    fn of_scores(slopes: &mut [f32], weights: &[f32]) {
        let _ = FMA;
        let products: Vec<f32> = weights.iter().zip(slopes.iter()).map(|(w, s)| w * s).collect();
        let shift = sum_by(&products, |x| x);
        for (slope, weight) in slopes.iter_mut().zip(weights) {
            *slope = weight * (*slope - shift);
        }
    }

    /// Writes the gradients of the hidden layer's sums `[rows, units]` and of the query, and adds
    /// those of keys and vector.
    fn of_network(
        slopes: &[f32],
        query: &[f32],
        keys: &[f32],
        location: &[f32],
        vector: &[f32],
        inner: &mut [f32],
        of_keys: &mut [f32],
        of_query: &mut [f32],
        of_vector: &mut [f32],
    ) {
        let units = vector.len();
        let (query, of_query, of_vector) = (&query[..units], &mut of_query[..units], &mut of_vector[..units]);
        of_query.fill(0.0);
        let rows = keys.chunks_exact(units).zip(location.chunks_exact(units));
        let to = inner.chunks_exact_mut(units).zip(of_keys.chunks_exact_mut(units));
        for (((key, location), (inner, of_key)), &slope) in rows.zip(to).zip(slopes) {
            for u in 0..units {
                let hidden = tanh::<FMA>(query[u] + key[u] + location[u]);
                let sum = slope * vector[u] * fma::<FMA>(-hidden, hidden, 1.0);
                inner[u] = sum;
                of_key[u] += sum;
                of_query[u] += sum;
                of_vector[u] = fma::<FMA>(slope, hidden, of_vector[u]);
            }
        }
    }
}
