//! Sums over the columns of a matrix: blocks of rows first, then the blocks, both in an order that the shape fixes.
//!
//! A cube is a strip of columns wide and some lanes high; lanes share the rows, and are added one after the other.

use burn::backend::TensorMetadata;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{UNITS, element, output, room, values};

/// Columns of a cube.
pub const STRIP: usize = 32;

/// Units that share a column.
pub const LANES: usize = UNITS / STRIP;

/// Rows of a block: a multiple of the lanes.
const ROWS: usize = 256;

/// How a matrix is cut.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// Of its rows.
    pub count: usize,
    columns: usize,
}

impl Blocks {
    /// A matrix of so many rows and columns, neither 0.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { count: rows.div_ceil(ROWS), columns }
    }

    /// A cube for each strip of each block.
    pub fn each(self) -> CubeCount {
        CubeCount::Static(self.columns.div_ceil(STRIP) as u32, self.count as u32, 1)
    }

    /// A cube for each strip.
    pub fn all(self) -> CubeCount {
        CubeCount::Static(self.columns.div_ceil(STRIP) as u32, 1, 1)
    }

    /// The cube of both.
    pub fn dim() -> CubeDim {
        CubeDim::new_2d(STRIP as u32, LANES as u32)
    }
}

/// The column of a unit; beyond the last where there is none.
#[cube]
pub fn column() -> usize {
    CUBE_POS_X as usize * STRIP + UNIT_POS_X as usize
}

/// The first row of a unit, which has every [`LANES`]th from there, and the end of its block.
#[cube]
pub fn lane_rows(rows: usize) -> (usize, usize) {
    let block = CUBE_POS_Y as usize;
    (block * ROWS + UNIT_POS_Y as usize, min((block + 1) * ROWS, rows))
}

/// What the lanes of a column have, added; every unit of the cube calls it. `scratch` has [`UNITS`] numbers.
#[cube]
pub fn lanes_sum(x: f32, scratch: &mut Shared<[f32]>) -> f32 {
    // Nobody still reads what an earlier call left.
    sync_cube();
    scratch[UNIT_POS as usize] = x;
    sync_cube();
    let mut total = f32::new(0.0);
    #[unroll]
    for lane in 0..LANES {
        total += scratch[lane * STRIP + UNIT_POS_X as usize];
    }
    total
}

/// The sums of a block of rows [blocks, columns].
#[cube(launch_unchecked)]
fn block_sums_kernel<F: Float>(
    x: &[F],
    parts: &mut [f32],
    rows: usize,
    columns: usize,
    #[define(F)] _type: ElemType,
) {
    let mut scratch = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let (first, end) = lane_rows(rows);
    let mut total = f32::new(0.0);
    if column < columns {
        let mut row = first;
        while row < end {
            total += f32::cast_from(x[row * columns + column]);
            row += LANES;
        }
    }
    let total = lanes_sum(total, &mut scratch);
    if UNIT_POS_Y == 0 && column < columns {
        parts[CUBE_POS_Y as usize * columns + column] = total;
    }
}

/// The sums over `first`, `first + stride`, … below `end` of one column of what blocks left; every unit of the cube calls it.
#[cube]
pub fn blocks_sum(
    parts: &[f32],
    first: usize,
    stride: usize,
    blocks: usize,
    live: bool,
    scratch: &mut Shared<[f32]>,
) -> f32 {
    let mut total = f32::new(0.0);
    if live {
        let mut block = UNIT_POS_Y as usize;
        while block < blocks {
            total += parts[first + block * stride];
            block += LANES;
        }
    }
    lanes_sum(total, scratch)
}

#[cube(launch_unchecked)]
fn total_sums_kernel(parts: &[f32], out: &mut [f32], blocks: usize, columns: usize) {
    let mut scratch = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let total = blocks_sum(parts, column, columns, blocks, column < columns, &mut scratch);
    if UNIT_POS_Y == 0 && column < columns {
        out[column] = total;
    }
}

/// x [rows, columns] of any float type -> FP32 [columns].
pub fn column_sums(x: &CubeTensor) -> CubeTensor {
    let [rows, columns] = x.shape().dims();
    let blocks = Blocks::new(rows, columns);
    let parts = room(x, [blocks.count, columns], DType::F32);
    let out = room(x, [columns], DType::F32);
    // SAFETY: units without a row or a column read nothing, and one unit of a column writes.
    unsafe {
        block_sums_kernel::launch_unchecked(
            &x.client,
            blocks.each(),
            Blocks::dim(),
            values(x),
            output(&parts),
            rows,
            columns,
            element(x),
        );
        total_sums_kernel::launch_unchecked(
            &x.client,
            blocks.all(),
            Blocks::dim(),
            values(&parts),
            output(&out),
            blocks.count,
            columns,
        );
    }
    out
}
