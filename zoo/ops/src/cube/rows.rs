//! Sums and maxima over rows: several units share a row, and combine their results in a fixed
//! order.

use cubecl::client::Client;
use cubecl::features::Plane;
use cubecl::prelude::*;

use super::UNITS;

/// Distribution of rows over a cube, which is `units` wide (they share a row) and `rows` high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// Number of units that share a row: a power of two.
    pub units: usize,
    /// Number of rows of a cube.
    pub rows: usize,
    /// Whether the units of a row are a plane, which can combine numbers without memory.
    pub planes: bool,
}

/// Below every number that a row may contain.
pub const LEAST: f32 = -3.402_823_5e38;

impl Sharing {
    /// For short rows: one plane each where planes have a fixed size and can add, otherwise 32
    /// units.
    pub fn short(client: &Client) -> Self {
        let properties = client.properties();
        let (least, most) = (properties.hardware.plane_size_min, properties.hardware.plane_size_max);
        let planes =
            properties.features.plane.contains(Plane::Ops) && least == most && (8..=64).contains(&most);
        let units = if planes { most as usize } else { 32 };
        Self { units, rows: UNITS / units, planes }
    }

    /// For long rows: one cube each.
    pub fn long() -> Self {
        Self { units: UNITS, rows: 1, planes: false }
    }

    /// Dimensions of a cube.
    pub fn dim(self) -> CubeDim {
        CubeDim::new_2d(self.units as u32, self.rows as u32)
    }

    /// Amount of shared memory that a cube needs, in numbers.
    pub fn room(self) -> usize {
        if self.planes { 1 } else { self.units * self.rows }
    }
}

/// Sum over the units of a row; every unit of the cube must call it. `scratch` has
/// [`Sharing::room`] numbers.
#[cube]
pub fn sum(x: f32, scratch: &mut Shared<[f32]>, #[comptime] sharing: Sharing) -> f32 {
    if sharing.planes { plane_sum(x) } else { tree(x, scratch, sharing, false) }
}

/// Maximum over the units of a row; called like [`sum`].
#[cube]
pub fn largest(x: f32, scratch: &mut Shared<[f32]>, #[comptime] sharing: Sharing) -> f32 {
    if sharing.planes { plane_max(x) } else { tree(x, scratch, sharing, true) }
}

/// Adds or compares halves until one value is left.
#[cube]
fn tree(x: f32, scratch: &mut Shared<[f32]>, #[comptime] sharing: Sharing, #[comptime] largest: bool) -> f32 {
    let here = UNIT_POS as usize;
    // All units must have read the results of an earlier call.
    sync_cube();
    scratch[here] = x;
    sync_cube();
    #[unroll]
    for level in 0..comptime!(sharing.units.ilog2() as usize) {
        let half = comptime!(sharing.units >> (level + 1));
        if (UNIT_POS_X as usize) < half {
            let (a, b) = (scratch[here], scratch[here + half]);
            scratch[here] = if largest { max(a, b) } else { a + b };
        }
        sync_cube();
    }
    scratch[UNIT_POS_Y as usize * comptime!(sharing.units)]
}
