//! Sums over the columns of a matrix: blocks of rows first, then the blocks, both in an order that
//! the shape determines.
//!
//! A cube is one strip of columns wide and several lanes high. Lanes share the rows, and are added
//! in order.

use burn::backend::TensorMetadata;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{UNITS, element, output, room, values};

/// Number of columns of a cube.
pub const STRIP: usize = 32;

/// Number of units that share a column.
pub const LANES: usize = UNITS / STRIP;

/// Number of rows of a block: a multiple of the lanes.
const ROWS: usize = 256;

/// Partition of a matrix.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// Number of blocks of rows.
    pub count: usize,
    columns: usize,
}

impl Blocks {
    /// Partitions a matrix with `rows` rows and `columns` columns, neither 0.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { count: rows.div_ceil(ROWS), columns }
    }

    /// One cube for each strip of each block.
    pub fn each(self) -> CubeCount {
        CubeCount::Static(self.columns.div_ceil(STRIP) as u32, self.count as u32, 1)
    }

    /// One cube for each strip.
    pub fn all(self) -> CubeCount {
        CubeCount::Static(self.columns.div_ceil(STRIP) as u32, 1, 1)
    }

    /// Dimensions of a cube.
    pub fn dim() -> CubeDim {
        CubeDim::new_2d(STRIP as u32, LANES as u32)
    }
}

/// Column of a unit; it may be beyond the last column.
#[cube]
pub fn column() -> usize {
    CUBE_POS_X as usize * STRIP + UNIT_POS_X as usize
}

/// First row of a unit, which processes every [`LANES`]th row from there, and the end of its block.
#[cube]
pub fn lane_rows(rows: usize) -> (usize, usize) {
    let block = CUBE_POS_Y as usize;
    (block * ROWS + UNIT_POS_Y as usize, min((block + 1) * ROWS, rows))
}

/// Sum over the lanes of a column; every unit of the cube must call it. `scratch` has [`UNITS`]
/// numbers.
#[cube]
pub fn lanes_sum(x: f32, scratch: &mut Shared<[f32]>) -> f32 {
    // All units must have read the results of an earlier call.
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

/// Sums of each block of rows, `[blocks, columns]`.
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

/// Sum of one column of the blocks' results at `first`, `first + stride`, … below `end`; every unit
/// of the cube must call it.
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

/// x `[rows, columns]` of any float type -> FP32 `[columns]`.
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
