//! The CPU kernel: one head of one sequence, forward and backward.

use super::super::simd::{exp, fma, max, sum_by, vectorized};
use super::{Plan, Segment};

/// Keys and values of one head of one sequence, laid out for vector loops: rows padded to whole vectors of sixteen.
pub struct Scratch {
    size: usize,
    padded: usize,
    keys: usize,
    /// [size, keys]
    k_columns: Vec<f32>,
    /// [size, keys]
    v_columns: Vec<f32>,
    /// [keys, padded]
    k_rows: Vec<f32>,
    /// [keys, padded]
    v_rows: Vec<f32>,
    /// [keys, padded], gradients
    dk: Vec<f32>,
    dv: Vec<f32>,
    weights: Vec<f32>,
    dropped: Vec<f32>,
    slope: Vec<f32>,
    query: Vec<f32>,
    upstream: Vec<f32>,
}

impl Scratch {
    /// For heads of this size.
    pub fn new(segment: &Segment, size: usize) -> Self {
        let (padded, keys) = (size.next_multiple_of(16), segment.keys);
        let rows = vec![0f32; keys * padded];
        let columns = vec![0f32; keys * size];
        Self {
            size,
            padded,
            keys,
            k_columns: columns.clone(),
            v_columns: columns,
            k_rows: rows.clone(),
            v_rows: rows.clone(),
            dk: rows.clone(),
            dv: rows,
            weights: vec![0.0; keys],
            dropped: vec![0.0; keys],
            slope: vec![0.0; keys],
            query: vec![0.0; padded],
            upstream: vec![0.0; padded],
        }
    }

    /// Lays out the keys and values of one head.
    pub fn load_keys(&mut self, k: &[f32], v: &[f32], segment: &Segment, width: usize, head: usize) {
        for t in 0..self.keys {
            let from = (segment.key + t) * width + head * self.size;
            let (k, v) = (&k[from..][..self.size], &v[from..][..self.size]);
            self.k_rows[t * self.padded..][..self.size].copy_from_slice(k);
            self.v_rows[t * self.padded..][..self.size].copy_from_slice(v);
            for d in 0..self.size {
                self.k_columns[d * self.keys + t] = k[d];
                self.v_columns[d * self.keys + t] = v[d];
            }
        }
    }
}

/// out[t] = sum over d of x[d] * columns[d][t], for the first `n` t; four d at a time.
#[inline(always)]
fn project<const FMA: bool>(out: &mut [f32], x: &[f32], columns: &[f32], stride: usize, n: usize) {
    let out = &mut out[..n];
    out.fill(0.0);
    let mut d = 0;
    while d + 4 <= x.len() {
        let (a, b, c, e) = (x[d], x[d + 1], x[d + 2], x[d + 3]);
        let (ca, cb) = (&columns[d * stride..][..n], &columns[(d + 1) * stride..][..n]);
        let (cc, ce) = (&columns[(d + 2) * stride..][..n], &columns[(d + 3) * stride..][..n]);
        for t in 0..n {
            out[t] = fma::<FMA>(
                e,
                ce[t],
                fma::<FMA>(c, cc[t], fma::<FMA>(b, cb[t], fma::<FMA>(a, ca[t], out[t]))),
            );
        }
        d += 4;
    }
    while d < x.len() {
        let column = &columns[d * stride..][..n];
        for t in 0..n {
            out[t] = fma::<FMA>(x[d], column[t], out[t]);
        }
        d += 1;
    }
}

/// out = sum over t of weights[t] * rows[t], rows padded to a multiple of sixteen.
#[inline(always)]
fn mix<const FMA: bool>(out: &mut [f32], weights: &[f32], rows: &[f32], padded: usize) {
    for (block, out) in out.chunks_exact_mut(16).enumerate() {
        let mut lanes = [0f32; 16];
        for (t, &w) in weights.iter().enumerate() {
            let row = &rows[t * padded + block * 16..][..16];
            for i in 0..16 {
                lanes[i] = fma::<FMA>(w, row[i], lanes[i]);
            }
        }
        out.copy_from_slice(&lanes);
    }
}

/// rows[t] += weights[t] * x.
#[inline(always)]
fn spread<const FMA: bool>(rows: &mut [f32], weights: &[f32], x: &[f32], padded: usize) {
    for (t, &w) in weights.iter().enumerate() {
        let row = &mut rows[t * padded..][..padded];
        for (sum, &x) in row.iter_mut().zip(x) {
            *sum = fma::<FMA>(w, x, *sum);
        }
    }
}

/// scores -> probabilities in place.
#[inline(always)]
fn softmax<const FMA: bool>(scores: &mut [f32]) {
    let largest = max(scores);
    for x in scores.iter_mut() {
        *x = exp::<FMA>(*x - largest);
    }
    let inverse = 1.0 / sum_by(scores, |x| x);
    for x in scores.iter_mut() {
        *x *= inverse;
    }
}

/// Number of the first weight of a query row, for the dropout mask.
#[inline(always)]
fn first_element(plan: &Plan, row: usize, head: usize) -> u32 {
    ((row * plan.heads + head) * plan.segments.longest_key) as u32
}

vectorized! {
    /// One head of one sequence: `out` has the segment's query rows.
    pub fn forward_head(out: &mut [f32], q: &[f32], s: &mut Scratch, segment: &Segment, plan: &Plan, width: usize, head: usize) {
        let scale = 1.0 / (s.size as f32).sqrt();
        for i in 0..segment.queries {
            let row = segment.query + i;
            let n = plan.segments.visible(segment, i);
            for (to, from) in s.query.iter_mut().zip(&q[row * width + head * s.size..][..s.size]) {
                *to = from * scale;
            }
            project::<FMA>(&mut s.weights, &s.query[..s.size], &s.k_columns, s.keys, n);
            let weights = &mut s.weights[..n];
            softmax::<FMA>(weights);
            if let Some(mask) = plan.mask {
                let first = first_element(plan, row, head);
                for (t, w) in weights.iter_mut().enumerate() {
                    *w *= mask.factor(first.wrapping_add(t as u32));
                }
            }
            mix::<FMA>(&mut s.upstream, weights, &s.v_rows, s.padded);
            out[i * width + head * s.size..][..s.size].copy_from_slice(&s.upstream[..s.size]);
        }
    }

    /// Its gradients: `dq` has the segment's query rows, `dk` and `dv` its key rows.
    pub fn backward_head(
        dq: &mut [f32], dk: &mut [f32], dv: &mut [f32], q: &[f32], gradient: &[f32],
        s: &mut Scratch, segment: &Segment, plan: &Plan, width: usize, head: usize,
    ) {
        let scale = 1.0 / (s.size as f32).sqrt();
        s.dk.fill(0.0);
        s.dv.fill(0.0);
        for i in 0..segment.queries {
            let row = segment.query + i;
            let at = row * width + head * s.size;
            let n = plan.segments.visible(segment, i);
            for (to, from) in s.query.iter_mut().zip(&q[at..][..s.size]) {
                *to = from * scale;
            }
            s.upstream[..s.size].copy_from_slice(&gradient[at..][..s.size]);
            project::<FMA>(&mut s.weights, &s.query[..s.size], &s.k_columns, s.keys, n);
            softmax::<FMA>(&mut s.weights[..n]);
            project::<FMA>(&mut s.slope, &s.upstream[..s.size], &s.v_columns, s.keys, n);
            let (weights, dropped, slope) = (&s.weights[..n], &mut s.dropped[..n], &mut s.slope[..n]);
            match plan.mask {
                Some(mask) => {
                    let first = first_element(plan, row, head);
                    for t in 0..n {
                        let factor = mask.factor(first.wrapping_add(t as u32));
                        dropped[t] = weights[t] * factor;
                        slope[t] *= factor;
                    }
                }
                None => dropped.copy_from_slice(weights),
            }
            spread::<FMA>(&mut s.dv, dropped, &s.upstream, s.padded);
            // dropped is free again: the products whose sum every slope is shifted by.
            for t in 0..n {
                dropped[t] = weights[t] * slope[t];
            }
            let shift = sum_by(dropped, |x| x);
            for t in 0..n {
                slope[t] = weights[t] * (slope[t] - shift);
            }
            spread::<FMA>(&mut s.dk, slope, &s.query, s.padded);
            mix::<FMA>(&mut s.upstream, slope, &s.k_rows, s.padded);
            for (to, from) in dq[i * width + head * s.size..][..s.size].iter_mut().zip(&s.upstream) {
                *to = from * scale;
            }
        }
        for t in 0..s.keys {
            let at = t * width + head * s.size;
            dk[at..][..s.size].copy_from_slice(&s.dk[t * s.padded..][..s.size]);
            dv[at..][..s.size].copy_from_slice(&s.dv[t * s.padded..][..s.size]);
        }
    }
}
