//! The three products of a direct convolution in FP32, for at least one position.

use std::arch::x86_64::*;

use rayon::prelude::*;

use super::panels::{Panel, Panels};
use super::positions::{POSITIONS, Positions};
use super::{Layout, Plan, avx512, columns_only, folded, joined, runs};
use crate::convolution::geometry::Shapes;
use crate::convolution::patches::{Gathered, Image, Side};
use crate::convolution::products::{self, Fp32};
use crate::fp32::avx512::{COLUMNS, ROWS};
use crate::fp32::{Matrix, Source as _, Tile};
use crate::host::{Source, room};

/// Output `[positions, out]`.
pub fn forward(shapes: &Shapes, x: &Source, weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let shapes = &joined(shapes);
    let weight = products::taps_first::<f32, Fp32>(shapes, weight);
    let x = products::image::<f32, Fp32>(x, shapes.input, &[columns_only(shapes.reads())]);
    let [out, channels, ..] = shapes.weight;
    let (of_group, depth) = (out / shapes.geometry.groups, shapes.taps() * channels);
    let plan = Plan::new(&shapes.reads(), &x, channels, layout(shapes.output), ROWS);
    let mut found = room(shapes.positions() * out);
    let starts: Vec<usize> = (0..of_group).map(|o| o * depth).collect();
    for group in 0..shapes.geometry.groups {
        let weight = Gathered::new(&weight[group * of_group * depth..], &starts, &[0], depth);
        let weight = panels(&Side::Rows(weight));
        let bias = bias.map_or(&[][..], |bias| &bias[group * of_group..][..of_group]);
        convolve(
            &plan,
            &x.values()[group * channels..],
            &weight,
            &mut found[group * of_group..],
            of_group,
            bias,
        );
    }
    found
}

/// Gradients of x (`[0]` if not wanted), in its layout, and of the weight.
pub fn gradients(
    shapes: &Shapes,
    x: &Source,
    gradient: &Source,
    weight: &[f32],
    input: bool,
) -> (Vec<f32>, Vec<f32>) {
    let shapes = &joined(shapes);
    let dx = match input {
        true if folded::suits(shapes) => folded::input_gradient(shapes, gradient, weight),
        true => input_gradient(shapes, gradient, weight),
        false => Vec::new(),
    };
    let x = products::image::<f32, Fp32>(x, shapes.input, &[columns_only(shapes.reads())]);
    let gradient = products::image::<f32, Fp32>(gradient, shapes.output, &[]);
    let [out, channels, ..] = shapes.weight;
    let of_group = out / shapes.geometry.groups;
    let mut found = room(out * shapes.taps() * channels);
    for (group, to) in found.chunks_mut((of_group * shapes.taps() * channels).max(1)).enumerate() {
        weight_gradient(shapes, &x, group * channels, &gradient.values()[group * of_group..], to);
    }
    (dx, products::taps_last(shapes, found))
}

/// Gradient of the input, `[input positions, channels]`: a convolution of the gradient for every
/// position modulo the stride.
fn input_gradient(shapes: &Shapes, gradient: &Source, weight: &[f32]) -> Vec<f32> {
    let [out, channels, _, wide] = shapes.weight;
    let (groups, taps) = (shapes.geometry.groups, shapes.taps());
    let of_group = out / groups;
    let mut found = room(shapes.input.iter().product());
    let weight = products::taps_first::<f32, Fp32>(shapes, weight);
    let phases: Vec<_> = shapes.phases().collect();
    let back: Vec<_> = phases.iter().map(|phase| columns_only(shapes.reads_back(*phase))).collect();
    let gradient = products::image::<f32, Fp32>(gradient, shapes.output, &back);
    let all = layout(shapes.input);
    let [by_row, by_column] = shapes.geometry.axes.map(|axis| axis.stride);
    for phase in phases {
        let reads = shapes.reads_back(phase);
        let layout = Layout {
            first: phase[0] * all.row + phase[1] * all.step,
            step: by_column * all.step,
            row: by_row * all.row,
            image: all.image,
        };
        let plan = Plan::new(&reads, &gradient, of_group, layout, ROWS);
        let kernel =
            reads[0].taps.iter().flat_map(|(i, _)| reads[1].taps.iter().map(move |(j, _)| i * wide + j));
        let starts: Vec<usize> =
            kernel.flat_map(|tap| (0..of_group).map(move |o| (o * taps + tap) * channels)).collect();
        for group in 0..groups {
            let weight =
                Gathered::new(&weight[group * of_group * taps * channels..], &starts, &[0], channels);
            let weight = panels(&Side::Columns(weight));
            let gradient = &gradient.values()[group * of_group..];
            convolve(&plan, gradient, &weight, &mut found[group * channels..], channels, &[]);
        }
    }
    found
}

/// Contiguous outputs.
fn layout([_, height, width, channels]: [usize; 4]) -> Layout {
    Layout { first: 0, step: channels, row: width * channels, image: height * width * channels }
}

/// Weights `[depth, width]` of each panel.
fn panels(weight: &Side<f32>) -> Vec<f32> {
    let (panels, depth) = (Panels::of(weight.lanes()), weight.depth());
    let mut to = room(panels.lanes() * depth);
    to.par_chunks_mut((COLUMNS * depth).max(1)).zip(0..panels.count()).for_each(|(to, i)| {
        let panel = panels.panel(i);
        weight.pack(to, panel.width, panel.first, 0..depth);
    });
    to
}

/// The output, which all tasks write in disjoint places.
struct Shared(*mut f32);
// SAFETY: tiles are disjoint.
unsafe impl Sync for Shared {}
impl Shared {
    fn at(&self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }
}

/// Computes the output channels `0..lanes` of all positions, in the plan's layout.
fn convolve(plan: &Plan, x: &[f32], weight: &[f32], out: &mut [f32], lanes: usize, bias: &[f32]) {
    let shared = Shared(out.as_mut_ptr());
    let step = plan.columns.step * plan.image[3];
    // Prefetches the values that the next band reads first, in small parts: the CPU's prefetcher
    // does not cover this number of rows.
    let panels = Panels::of(lanes);
    let calls = panels.count() * plan.blocks.len();
    let share = (ROWS * step).div_ceil(LINE * calls.max(1)) * LINE;
    let deepest = plan.pieces.last().map_or(0, |piece| piece.offset);
    plan.bands().into_par_iter().for_each(|band| {
        let places: Vec<_> = band.clone().map(|i| (plan.place(i), plan.place(i + band.len()))).collect();
        for call in 0..calls {
            let (panel, block) = (call / plan.blocks.len(), call % plan.blocks.len());
            let panel = panels.panel(panel);
            let weight = &weight[panel.first * plan.depth..];
            for (place, next) in &places {
                let ahead = x.as_ptr().wrapping_offset(next.from + deepest).wrapping_add(call * share);
                for line in (0..share).step_by(LINE) {
                    // SAFETY: prefetching is harmless.
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead.wrapping_add(line).cast()) };
                }
                let Some((pieces, begins)) = plan.part(place, block) else { continue };
                let tile = Tile {
                    to: shared.at(place.to + panel.first),
                    stride: plan.layout.step,
                    rows: place.outputs,
                    columns: panel.channels,
                    add: !begins,
                    bias: match begins && !bias.is_empty() {
                        true => &bias[panel.first..][..panel.channels],
                        false => &[],
                    },
                };
                let x = x.as_ptr().wrapping_offset(place.from);
                // SAFETY: `suits` checked the CPU; tiles are disjoint, and `Plan::new` ensures that
                // all pieces exist.
                unsafe { avx512::outputs(&tile, x, step, pieces, weight.as_ptr(), panel.width) };
            }
        }
    });
}

/// Number of values in a cache line.
const LINE: usize = 16;
/// Number of sums that stay in the second-level cache.
const SUMS: usize = 1 << 16;
/// Number of tasks that gives every thread its share.
const TASKS: usize = 16;

/// Part of a run of the kernel's values.
struct Part {
    /// Row of taps.
    row: usize,
    /// Offset from a position to the first value of the first tile.
    offset: isize,
    /// Index among all values of the kernel, and the number of values.
    first: usize,
    len: usize,
}

/// Gradient of the weight, `[out, taps x channels]`, for channels from `channel` on and the
/// gradients of one group.
fn weight_gradient(shapes: &Shapes, x: &Image<f32>, channel: usize, gradient: &[f32], to: &mut [f32]) {
    let [out, channels, ..] = shapes.weight;
    let (out, stride) = (out / shapes.geometry.groups, shapes.output[3]);
    let depth = shapes.taps() * channels;
    let panels = Panels::of(out);
    let lanes = panels.lanes();
    let work = Positions::new(shapes, x);
    let step = work.step();
    let groups = parts(&work, channels, SUMS / lanes.max(1));
    // The geometry determines how positions are cut, because the cuts define the order of the sums.
    let cuts = TASKS.div_ceil(groups.len().max(1)).min(work.chunks()).max(1);
    let tasks: Vec<_> = groups.iter().flat_map(|group| (0..cuts).map(move |cut| (group, cut))).collect();
    let sums: Vec<Vec<f32>> = tasks
        .into_par_iter()
        .map_init(
            || (room(POSITIONS * lanes), Vec::new()),
            |(packed, segments), (group, cut)| {
                let values: usize = group.iter().map(|part| part.len).sum();
                let mut sums = vec![0f32; values * lanes];
                for chunk in cut * work.chunks() / cuts..(cut + 1) * work.chunks() / cuts {
                    let chunk = work.chunk(chunk);
                    let first = chunk[0].position * stride;
                    let len = chunk.iter().map(|row| row.len).sum();
                    let gradient = Matrix::columns(&gradient[first..], len, out, stride);
                    for panel in panels.all() {
                        let width = panel.width;
                        let packed = &mut packed[POSITIONS * panel.first..][..len * width];
                        gradient.pack(packed, width, panel.first, 0..len);
                        let mut sums = &mut sums[values * panel.first..][..values * width];
                        for part in group {
                            work.seen(&chunk, part.row, segments);
                            for tile in 0..part.len.div_ceil(ROWS) {
                                let [first, end] =
                                    [tile, tile + 1].map(|tile| tile * part.len / part.len.div_ceil(ROWS));
                                let (to, rest) = sums.split_at_mut((end - first) * width);
                                sums = rest;
                                let x = x.values().as_ptr().wrapping_add(channel + first);
                                let x = x.wrapping_offset(part.offset);
                                // SAFETY: `suits` checked the CPU; `Positions` ensures that all
                                // values that are read exist.
                                unsafe {
                                    avx512::weights(
                                        to,
                                        end - first,
                                        x,
                                        step,
                                        (packed.as_ptr(), width),
                                        segments,
                                    );
                                }
                            }
                        }
                    }
                }
                sums
            },
        )
        .collect();
    to.par_chunks_mut((COLUMNS * depth).max(1)).zip(0..panels.count()).for_each(|(to, i)| {
        let Panel { first, width, .. } = panels.panel(i);
        let mut turned = Vec::new();
        for (group, cuts) in groups.iter().zip(sums.chunks(cuts)) {
            let values: usize = group.iter().map(|part| part.len).sum();
            let of_panel = |cut: &Vec<f32>| cut[first * values..][..values * width].to_vec();
            let mut sum = of_panel(&cuts[0]);
            for cut in &cuts[1..] {
                crate::simd::add(&mut sum, &cut[first * values..][..values * width]);
            }
            turned.resize(values * width, 0.0);
            Matrix::rows(&sum, values, width, width).pack(&mut turned, values, 0, 0..width);
            for (to, from) in to.chunks_exact_mut(depth).zip(turned.chunks_exact(values)) {
                to[group[0].first..][..values].copy_from_slice(from);
            }
        }
    });
}

/// Groups of the kernel's values with at most `most` values each, whose sums stay in the
/// second-level cache.
fn parts(work: &Positions, channels: usize, most: usize) -> Vec<Vec<Part>> {
    let mut groups: Vec<Vec<Part>> = Vec::new();
    let most = (most / ROWS).max(1) * ROWS;
    let (mut next, mut room) = (0, 0);
    for row in 0..work.rows.taps.len() {
        for (offset, run) in runs(&work.columns, channels, work.channels()) {
            for first in (0..run).step_by(most) {
                let len = most.min(run - first);
                if len > room {
                    groups.push(Vec::new());
                    room = most;
                }
                room -= len;
                let part = Part { row, offset: offset + first as isize, first: next, len };
                groups.last_mut().expect("pushed").push(part);
                next += len;
            }
        }
    }
    groups
}
