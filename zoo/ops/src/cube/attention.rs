//! Attention on GPUs: rows are spread to `[sequences, heads, length, size]`, Burn computes the
//! products, and a kernel over rows of scores does all steps between two products. Only q, k and v
//! are kept for the backward pass.
//!
//! Lengths are rounded up to a few sizes, so that products have few shapes: each shape is tuned,
//! compiled and vectorised separately.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::attention::{AttentionOp, Plan, padded};
use super::dropout::{Drawn, drawn, factors};
use super::product::product;
use super::rows::{LEAST, Sharing, largest, sum};
use super::{Numbers, UNITS, cubes, element, numbers, output, room, values};

/// `[rows, heads * size]` -> `[sequences, heads, length, size]`, times `scale`, with zeros after
/// the end of a sequence. `back` reverses the direction. `places` holds the first row and the
/// number of rows of each sequence. Each unit handles one value of the four-dimensional tensor.
#[cube(launch_unchecked)]
fn moved_kernel<F: Float>(
    from: &[F],
    places: &[u32],
    to: &mut [F],
    sequences: usize,
    heads: usize,
    length: usize,
    size: usize,
    scale: f32,
    #[comptime] back: bool,
    #[define(F)] _type: ElemType,
) {
    let place = place(heads, length, size);
    if place.sequence >= sequences {
        terminate!();
    }
    if place.step < places[2 * place.sequence + 1] as usize {
        let row = places[2 * place.sequence] as usize + place.step;
        let packed = row * heads * size + place.column;
        let (source, target) = if back { (ABSOLUTE_POS, packed) } else { (packed, ABSOLUTE_POS) };
        to[target] = F::cast_from(f32::cast_from(from[source]) * scale);
    } else if !back {
        to[ABSOLUTE_POS] = F::new(0.0);
    }
}

/// Position in the packed rows of a unit's value of `[sequences, heads, length, size]`.
#[derive(CubeType)]
struct Place {
    sequence: usize,
    /// Row within the sequence.
    step: usize,
    /// Column of the packed rows.
    column: usize,
}

#[cube]
fn place(heads: usize, length: usize, size: usize) -> Place {
    let head = ABSOLUTE_POS / (length * size);
    let step = ABSOLUTE_POS / size % length;
    Place { sequence: head / heads, step, column: head % heads * size + ABSOLUTE_POS % size }
}

/// A row of scores.
#[derive(CubeType, Clone, Copy)]
struct Row {
    /// Index of its first score.
    first: usize,
    /// Number of keys that it attends to; 0 where the sequence has no such row.
    visible: usize,
    /// Element number of its first weight, for the dropout mask.
    element: u32,
    /// Whether the row exists.
    live: bool,
}

/// Sizes of the scores `[sequences, heads, queries, keys]`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Sizes {
    rows: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    /// Number of keys of the longest sequence, by which elements of the mask are numbered.
    longest: u32,
}

/// The row of this unit. `segments` holds the first query row, the number of query rows and the
/// number of keys of each sequence.
#[cube]
fn row(segments: &[u32], sizes: &Sizes, #[comptime] causal: bool, #[comptime] sharing: Sharing) -> Row {
    let number = CUBE_POS * comptime!(sharing.rows) + UNIT_POS_Y as usize;
    let live = number < sizes.rows;
    let number = min(number, sizes.rows - 1);
    let step = (number % sizes.queries) as u32;
    let head = number / sizes.queries;
    let segment = head / sizes.heads * 3;
    let (query, queries, keys) = (segments[segment], segments[segment + 1], segments[segment + 2]);
    let mut visible = u32::new(0);
    if step < queries {
        visible = if causal { keys + 1 + step - queries } else { keys };
    }
    let packed = (query + step) * sizes.heads as u32 + (head % sizes.heads) as u32;
    Row { first: number * sizes.keys, visible: visible as usize, element: packed * sizes.longest, live }
}

/// The largest visible score of a row, and the inverse of the sum of exp(score - largest).
#[cube]
fn softmax<F: Float>(
    scores: &[F],
    row: &Row,
    scratch: &mut Shared<[f32]>,
    #[comptime] sharing: Sharing,
) -> (f32, f32) {
    let mut top = f32::new(LEAST);
    let mut i = UNIT_POS_X as usize;
    while i < row.visible {
        top = max(top, f32::cast_from(scores[row.first + i]));
        i += comptime!(sharing.units);
    }
    let top = largest(top, scratch, sharing);
    let mut mass = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < row.visible {
        mass += (f32::cast_from(scores[row.first + i]) - top).exp();
        i += comptime!(sharing.units);
    }
    (top, 1.0 / sum(mass, scratch, sharing))
}

/// Turns scores into dropped weights, in place; 0 for masked keys.
#[cube(launch_unchecked)]
fn weights_kernel<F: Float>(
    scores: &mut [F],
    segments: &[u32],
    sizes: Sizes,
    mask: Drawn,
    #[comptime] causal: bool,
    #[comptime] sharing: Sharing,
    #[define(F)] _type: ElemType,
) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    let row = row(segments, &sizes, causal, sharing);
    let (top, inverse) = softmax::<F>(&*scores, &row, &mut scratch, sharing);
    if row.live {
        let mut i = UNIT_POS_X as usize;
        while i < sizes.keys {
            let mut weight = f32::new(0.0);
            if i < row.visible {
                let factor = factors::<Const<1>>(&mask, row.element + i as u32).extract(0usize);
                weight = (f32::cast_from(scores[row.first + i]) - top).exp() * inverse * factor;
            }
            scores[row.first + i] = F::cast_from(weight);
            i += comptime!(sharing.units);
        }
    }
}

/// Turns scores into dropped weights, and gradients of the dropped weights into gradients of the
/// scores, in place.
#[cube(launch_unchecked)]
fn weights_backward_kernel<F: Float>(
    scores: &mut [F],
    slopes: &mut [F],
    segments: &[u32],
    sizes: Sizes,
    mask: Drawn,
    #[comptime] causal: bool,
    #[comptime] sharing: Sharing,
    #[define(F)] _type: ElemType,
) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    let row = row(segments, &sizes, causal, sharing);
    let (top, inverse) = softmax::<F>(&*scores, &row, &mut scratch, sharing);
    let mut shift = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < row.visible {
        let factor = factors::<Const<1>>(&mask, row.element + i as u32).extract(0usize);
        let weight = (f32::cast_from(scores[row.first + i]) - top).exp() * inverse;
        shift += weight * f32::cast_from(slopes[row.first + i]) * factor;
        i += comptime!(sharing.units);
    }
    let shift = sum(shift, &mut scratch, sharing);
    if row.live {
        let mut i = UNIT_POS_X as usize;
        while i < sizes.keys {
            let mut weight = f32::new(0.0);
            let mut slope = f32::new(0.0);
            if i < row.visible {
                let factor = factors::<Const<1>>(&mask, row.element + i as u32).extract(0usize);
                let softmax = (f32::cast_from(scores[row.first + i]) - top).exp() * inverse;
                weight = softmax * factor;
                slope = softmax * (f32::cast_from(slopes[row.first + i]) * factor - shift);
            }
            scores[row.first + i] = F::cast_from(weight);
            slopes[row.first + i] = F::cast_from(slope);
            i += comptime!(sharing.units);
        }
    }
}

/// The sequences in the rows of a packed tensor, and the length to which they are spread.
struct Side {
    /// First row and number of rows of each sequence, sent to the device once.
    places: Numbers,
    sequences: usize,
    length: usize,
    heads: usize,
}

impl Side {
    /// The side of the queries and that of the keys.
    fn both(plan: &Plan, like: &CubeTensor) -> [Self; 2] {
        let list = &plan.segments.list;
        let side = |places: Vec<[usize; 2]>| {
            let flat: Vec<u32> = places.as_flattened().iter().map(|&x| x as u32).collect();
            Self {
                places: Numbers::new(like, &flat),
                sequences: places.len(),
                length: padded(places.iter().map(|place| place[1]).max().unwrap_or(0)),
                heads: plan.heads,
            }
        };
        [
            side(list.iter().map(|s| [s.query, s.queries]).collect()),
            side(list.iter().map(|s| [s.key, s.keys]).collect()),
        ]
    }

    /// `[rows, width]` -> `[sequences, heads, length, size]`, times `scale`.
    fn spread(&self, x: &CubeTensor, scale: f32) -> CubeTensor {
        let [_, width] = x.shape().dims();
        let out = room(x, [self.sequences, self.heads, self.length, width / self.heads], x.dtype);
        self.moved(x, &out, width, scale, false);
        out
    }

    /// `[sequences, heads, length, size]` -> `[rows, width]`, times `scale`.
    fn gather(&self, x: &CubeTensor, rows: usize, scale: f32) -> CubeTensor {
        let [_, heads, _, size] = x.shape().dims();
        let out = room(x, [rows, heads * size], x.dtype);
        self.moved(x, &out, heads * size, scale, true);
        out
    }

    fn moved(&self, from: &CubeTensor, to: &CubeTensor, width: usize, scale: f32, back: bool) {
        let units = self.sequences * self.length * width;
        // SAFETY: a unit beyond the sequences ends before it reads; places are inside the rows.
        unsafe {
            moved_kernel::launch_unchecked(
                &from.client,
                cubes(units.div_ceil(UNITS), from),
                CubeDim::new_1d(UNITS as u32),
                values(from),
                self.places.argument(),
                output(to),
                self.sequences,
                self.heads,
                self.length,
                width / self.heads,
                scale,
                back,
                element(from),
            );
        }
    }
}

/// Turns scores `[sequences, heads, queries, keys]` into dropped weights and, if given, their
/// slopes into those of the scores.
fn weights(scores: &CubeTensor, slopes: Option<&CubeTensor>, plan: &Plan) {
    let [n, heads, queries, keys] = scores.shape().dims();
    let segments: Vec<[u32; 3]> =
        plan.segments.list.iter().map(|s| [s.query, s.queries, s.keys].map(|x| x as u32)).collect();
    let segments = numbers(scores, segments.as_flattened());
    let rows = n * heads * queries;
    let sizes = SizesLaunch::new(rows, heads, queries, keys, plan.segments.longest_key as u32);
    let sharing = Sharing::short(&scores.client);
    let (count, dim) = (cubes(rows.div_ceil(sharing.rows), scores), sharing.dim());
    let causal = plan.segments.causal;
    // SAFETY: units without a row read the last one and write nothing; a row attends to at most as
    // many keys as it has scores.
    unsafe {
        match slopes {
            None => weights_kernel::launch_unchecked(
                &scores.client,
                count,
                dim,
                output(scores),
                segments,
                sizes,
                drawn(plan.mask),
                causal,
                sharing,
                element(scores),
            ),
            Some(slopes) => weights_backward_kernel::launch_unchecked(
                &scores.client,
                count,
                dim,
                output(scores),
                output(slopes),
                segments,
                sizes,
                drawn(plan.mask),
                causal,
                sharing,
                element(scores),
            ),
        }
    }
}

fn transposed(x: &CubeTensor) -> CubeTensor {
    CubeBackend::float_swap_dims(x.clone(), 2, 3)
}

impl AttentionOp for CubeBackend {
    fn attended(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        let [rows, width] = q.shape().dims();
        let [queries, keys] = Side::both(&plan, &q);
        let scale = 1.0 / ((width / plan.heads) as f32).sqrt();
        let (q, k, v) = (queries.spread(&q, scale), keys.spread(&k, 1.0), keys.spread(&v, 1.0));
        let scores = product(&q, &transposed(&k));
        weights(&scores, None, &plan);
        queries.gather(&product(&scores, &v), rows, 1.0)
    }

    fn attended_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let ([query_rows, width], [key_rows, _]) = (q.shape().dims(), k.shape().dims());
        let [queries, keys] = Side::both(&plan, &q);
        let scale = 1.0 / ((width / plan.heads) as f32).sqrt();
        let (q, gradient) = (queries.spread(&q, scale), queries.spread(&gradient, 1.0));
        let (k, v) = (keys.spread(&k, 1.0), keys.spread(&v, 1.0));
        let scores = product(&q, &transposed(&k));
        let slopes = product(&gradient, &transposed(&v));
        weights(&scores, Some(&slopes), &plan);
        (
            queries.gather(&product(&slopes, &k), query_rows, scale),
            keys.gather(&product(&transposed(&slopes), &q), key_rows, 1.0),
            keys.gather(&product(&transposed(&scores), &gradient), key_rows, 1.0),
        )
    }
}
