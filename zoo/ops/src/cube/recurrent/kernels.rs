//! One step of an LSTM or a GRU for one unit of a sequence, and its gradients.

use cubecl::prelude::*;

/// Place of a missing row.
pub const NONE: u32 = u32::MAX;

/// Compile-time settings of a step's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// LSTM if true, GRU otherwise.
    pub lstm: bool,
    /// Whether the recurrent part has a bias.
    pub biased: bool,
    /// Whether there are products to read: of the recurrent part or, in the backward pass, of the
    /// gradients of the next step.
    pub multiplied: bool,
    /// Whether this is the first step, which starts from the initial states.
    pub first: bool,
    /// Whether initial states are given; otherwise they are zero.
    pub given: bool,
    /// Whether outputs have a gradient.
    pub asked: bool,
    /// Whether the gradients of the recurrent part differ from those of the input's part, in value
    /// or in type.
    pub apart: bool,
    /// Whether outputs, cells and carried values are rounded to the products' type, as in fp16.
    pub keeps: bool,
}

impl Cell {
    fn gates(self) -> usize {
        if self.lstm { 4 } else { 3 }
    }
}

/// Sizes and positions of a step.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Step {
    pub hidden: usize,
    /// Number of all sequences.
    pub count: usize,
    /// Number of sequences that have this step.
    pub active: usize,
    /// Number of sequences that have the next step.
    pub later: usize,
    /// Start of this step's rows among the places.
    pub rows: usize,
    /// Start of the previous step's rows among the places.
    pub before: usize,
}

#[cube]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// x, rounded as it is stored between steps.
#[cube]
fn keep<H: Float>(x: f32, #[comptime] cell: Cell) -> f32 {
    if cell.keeps { f32::cast_from(H::cast_from(x)) } else { x }
}

/// Position that one unit of the device processes.
#[derive(CubeType, Clone, Copy)]
struct Place {
    /// Its sequence, by falling length.
    sequence: usize,
    /// The sequence's row at this step.
    row: usize,
    /// Its unit of the layer.
    unit: usize,
}

/// Index of a unit's gate in a row of gates.
#[cube]
fn at(row: usize, gate: usize, unit: usize, step: &Step, #[comptime] cell: Cell) -> usize {
    (row * comptime!(cell.gates()) + gate) * step.hidden + unit
}

/// The recurrent part of one gate of a unit.
#[cube]
fn recurrent_part<H: Float>(
    sums: &[H],
    bias: &[f32],
    place: &Place,
    gate: usize,
    step: &Step,
    #[comptime] cell: Cell,
) -> f32 {
    let mut sum = f32::new(0.0);
    if cell.multiplied {
        sum += f32::cast_from(sums[at(place.sequence, gate, place.unit, step, cell)]);
    }
    if cell.biased {
        sum += bias[gate * step.hidden + place.unit];
    }
    sum
}

/// The input's part of one gate of a unit.
#[cube]
fn input_part<X: Float>(gates: &[X], place: &Place, gate: usize, step: &Step, #[comptime] cell: Cell) -> f32 {
    f32::cast_from(gates[at(place.row, gate, place.unit, step, cell)])
}

/// The sum of both parts.
#[cube]
fn whole<X: Float, H: Float>(
    gates: &[X],
    sums: &[H],
    bias: &[f32],
    place: &Place,
    gate: usize,
    step: &Step,
    #[comptime] cell: Cell,
) -> f32 {
    input_part::<X>(gates, place, gate, step, cell) + recurrent_part::<H>(sums, bias, place, gate, step, cell)
}

/// The value that a unit carries into the step: the cell of an LSTM, the output of a GRU. `states`
/// holds those of all rows.
#[cube]
fn carried(
    states: &[f32],
    initial: &[f32],
    places: &[u32],
    place: &Place,
    step: &Step,
    #[comptime] cell: Cell,
) -> f32 {
    let mut before = f32::new(0.0);
    if cell.first {
        if cell.given {
            let state = if cell.lstm { step.count } else { 0usize.runtime() };
            before = initial[(state + places[place.sequence] as usize) * step.hidden + place.unit];
        }
    } else {
        before = states[places[step.before + place.sequence] as usize * step.hidden + place.unit];
    }
    before
}

/// One step of all sequences that have it. `places` holds the order of the sequences, then the rows
/// of every step. Writes:
///
/// - the gates after their activations;
/// - the cells of an LSTM, or the recurrent part of a GRU's n;
/// - the outputs;
/// - the outputs of the sequences that continue, for the next product.
#[cube(launch_unchecked)]
pub fn forward_kernel<X: Float, H: Float>(
    gates: &[X],
    sums: &[H],
    bias: &[f32],
    initial: &[f32],
    places: &[u32],
    acted: &mut [f32],
    kept: &mut [f32],
    out: &mut [f32],
    next: &mut [H],
    step: Step,
    #[comptime] cell: Cell,
    #[define(X, H)] _types: [ElemType; 2],
) {
    let sequence = ABSOLUTE_POS / step.hidden;
    if sequence >= step.active {
        terminate!();
    }
    let row = places[step.rows + sequence] as usize;
    let place = Place { sequence, row, unit: ABSOLUTE_POS % step.hidden };
    let here = row * step.hidden + place.unit;
    let h = if cell.lstm {
        let before = carried(&*kept, initial, places, &place, &step, cell);
        let i = sigmoid(whole::<X, H>(gates, sums, bias, &place, 0usize, &step, cell));
        let f = sigmoid(whole::<X, H>(gates, sums, bias, &place, 1usize, &step, cell));
        let g = whole::<X, H>(gates, sums, bias, &place, 2usize, &step, cell).tanh();
        let o = sigmoid(whole::<X, H>(gates, sums, bias, &place, 3usize, &step, cell));
        let c = f * before + i * g;
        acted[at(row, 0usize, place.unit, &step, cell)] = i;
        acted[at(row, 1usize, place.unit, &step, cell)] = f;
        acted[at(row, 2usize, place.unit, &step, cell)] = g;
        acted[at(row, 3usize, place.unit, &step, cell)] = o;
        kept[here] = keep::<H>(c, cell);
        o * c.tanh()
    } else {
        let before = carried(&*out, initial, places, &place, &step, cell);
        let r = sigmoid(whole::<X, H>(gates, sums, bias, &place, 0usize, &step, cell));
        let z = sigmoid(whole::<X, H>(gates, sums, bias, &place, 1usize, &step, cell));
        let part = recurrent_part::<H>(sums, bias, &place, 2usize, &step, cell);
        let n = (input_part::<X>(gates, &place, 2usize, &step, cell) + r * part).tanh();
        acted[at(row, 0usize, place.unit, &step, cell)] = r;
        acted[at(row, 1usize, place.unit, &step, cell)] = z;
        acted[at(row, 2usize, place.unit, &step, cell)] = n;
        kept[here] = keep::<H>(part, cell);
        n + z * (before - n)
    };
    let h = keep::<H>(h, cell);
    out[here] = h;
    if sequence < step.later {
        next[ABSOLUTE_POS] = H::cast_from(h);
    }
}

/// Copies rows of three matrices at `count` places, numbered consecutively over the matrices; zeros
/// for [`NONE`]. The matrices are `hidden` wide, and the first two have `rows` rows each.
#[cube(launch_unchecked)]
pub fn picked_kernel<H: Float>(
    first: &[f32],
    second: &[f32],
    third: &[f32],
    places: &[u32],
    out: &mut [H],
    count: usize,
    rows: usize,
    hidden: usize,
    #[define(H)] _type: ElemType,
) {
    let (place, unit) = (ABSOLUTE_POS / hidden, ABSOLUTE_POS % hidden);
    if place >= count {
        terminate!();
    }
    let place = places[place];
    let mut x = f32::new(0.0);
    if place != NONE {
        let place = place as usize;
        if place < rows {
            x = first[place * hidden + unit];
        } else if place < 2 * rows {
            x = second[(place - rows) * hidden + unit];
        } else {
            x = third[(place - 2 * rows) * hidden + unit];
        }
    }
    out[ABSOLUTE_POS] = H::cast_from(x);
}

/// Writes a gate's gradients: of the input's part, and of the recurrent part.
#[cube]
fn written<X: Float, H: Float>(
    input: f32,
    recurrent: f32,
    dx: &mut [X],
    of_rows: &mut [H],
    of_step: &mut [H],
    place: &Place,
    gate: usize,
    step: &Step,
    #[comptime] cell: Cell,
) {
    let to = at(place.row, gate, place.unit, step, cell);
    dx[to] = X::cast_from(input);
    if cell.apart {
        of_rows[to] = H::cast_from(recurrent);
    }
    of_step[at(place.sequence, gate, place.unit, step, cell)] = H::cast_from(recurrent);
}

/// One step backward. `slopes` are the gradients that the next step passes to the outputs, `carry`
/// those that it passes besides the product. Writes the gradients of the input's part to `dx`, and
/// those of the recurrent part twice: for the weight and for the next product.
#[cube(launch_unchecked)]
pub fn backward_kernel<X: Float, H: Float, O: Float>(
    acted: &[f32],
    kept: &[f32],
    states: &[f32],
    slopes: &[H],
    of_out: &[O],
    of_last: &[f32],
    initial: &[f32],
    places: &[u32],
    carry: &mut [f32],
    dx: &mut [X],
    recurrent: &mut [H],
    of_step: &mut [H],
    step: Step,
    #[comptime] cell: Cell,
    #[define(X, H, O)] _types: [ElemType; 3],
) {
    let sequence = ABSOLUTE_POS / step.hidden;
    if sequence >= step.active {
        terminate!();
    }
    let row = places[step.rows + sequence] as usize;
    let place = Place { sequence, row, unit: ABSOLUTE_POS % step.hidden };
    let here = row * step.hidden + place.unit;
    let given = places[sequence] as usize;
    let before = carried(states, initial, places, &place, &step, cell);
    // A sequence that ends here gets the gradients of its last states.
    let mut gradient = f32::new(0.0);
    let mut past = f32::new(0.0);
    if sequence >= step.later {
        gradient = of_last[given * step.hidden + place.unit];
        if cell.lstm {
            past = of_last[(step.count + given) * step.hidden + place.unit];
        }
    } else {
        if cell.multiplied {
            gradient = f32::cast_from(slopes[ABSOLUTE_POS]);
        }
        past = carry[ABSOLUTE_POS];
    }
    if cell.asked {
        gradient += f32::cast_from(of_out[here]);
    }
    if cell.lstm {
        let i = acted[at(row, 0usize, place.unit, &step, cell)];
        let f = acted[at(row, 1usize, place.unit, &step, cell)];
        let g = acted[at(row, 2usize, place.unit, &step, cell)];
        let o = acted[at(row, 3usize, place.unit, &step, cell)];
        let squashed = kept[here].tanh();
        let of_cell = past + gradient * o * (1.0 - squashed * squashed);
        carry[ABSOLUTE_POS] = keep::<H>(of_cell * f, cell);
        let di = of_cell * g * i * (1.0 - i);
        let df = of_cell * before * f * (1.0 - f);
        let dg = of_cell * i * (1.0 - g * g);
        let of_output = gradient * squashed * o * (1.0 - o);
        written::<X, H>(di, di, dx, recurrent, of_step, &place, 0usize, &step, cell);
        written::<X, H>(df, df, dx, recurrent, of_step, &place, 1usize, &step, cell);
        written::<X, H>(dg, dg, dx, recurrent, of_step, &place, 2usize, &step, cell);
        written::<X, H>(of_output, of_output, dx, recurrent, of_step, &place, 3usize, &step, cell);
    } else {
        let r = acted[at(row, 0usize, place.unit, &step, cell)];
        let z = acted[at(row, 1usize, place.unit, &step, cell)];
        let n = acted[at(row, 2usize, place.unit, &step, cell)];
        let of_h = gradient + past;
        carry[ABSOLUTE_POS] = keep::<H>(of_h * z, cell);
        let dn = of_h * (1.0 - z) * (1.0 - n * n);
        let dr = dn * kept[here] * r * (1.0 - r);
        let dz = of_h * (before - n) * z * (1.0 - z);
        written::<X, H>(dr, dr, dx, recurrent, of_step, &place, 0usize, &step, cell);
        written::<X, H>(dz, dz, dx, recurrent, of_step, &place, 1usize, &step, cell);
        written::<X, H>(dn, dn * r, dx, recurrent, of_step, &place, 2usize, &step, cell);
    }
}

/// Gradients of the initial states, `[states x sequences, hidden]`. `places` holds the index of
/// each given sequence in the order of processing, or [`NONE`] for an empty one.
#[cube(launch_unchecked)]
pub fn initial_kernel<H: Float>(
    slopes: &[H],
    carry: &[f32],
    of_last: &[f32],
    places: &[u32],
    out: &mut [f32],
    states: usize,
    sequences: usize,
    hidden: usize,
    #[comptime] lstm: bool,
    #[define(H)] _type: ElemType,
) {
    let (state, unit) = (ABSOLUTE_POS / hidden, ABSOLUTE_POS % hidden);
    if state >= states * sequences {
        terminate!();
    }
    let place = places[state % sequences];
    let mut x = of_last[ABSOLUTE_POS];
    if place != NONE {
        let from = place as usize * hidden + unit;
        if lstm {
            if state < sequences {
                x = f32::cast_from(slopes[from]);
            } else {
                x = carry[from];
            }
        } else {
            x = f32::cast_from(slopes[from]) + carry[from];
        }
    }
    out[ABSOLUTE_POS] = x;
}
