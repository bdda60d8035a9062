//! Counting of values by exponent.

use pulp::Arch;
use rayon::prelude::*;

use super::histogram::{BIAS, ExponentHistogram, FIELDS, MANTISSA, NOT_FINITE};

/// Bits of a value without its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Number of values that are read at a time. A row of a table of embeddings is hardly longer, so
/// most parts of such a table have a gradient or have none, unless the table is sampled.
const PART: usize = 1 << 8;
/// Number of values of a part that are compared at a time.
const FEW: usize = 1 << 5;
/// Number of values that one thread counts at a time.
const BLOCK: usize = 1 << 15;
/// Number of values that this thread counts before others have started to.
const ALONE: usize = 1 << 17;
/// Number of tables that take turns. Equal exponents often follow each other, and a counter cannot
/// be read before the last write to it is done.
const TABLES: usize = 4;
/// Exponents of the weights that have cells of the joint table: from this one on.
const LOWEST_WEIGHT: i32 = -28;
/// Number of these exponents, as a power of two.
const WEIGHT_BITS: u32 = 5;
/// The lowest exponent of a difference of such a weight that is not 0. If the new weight has half
/// the magnitude or more, both are multiples of the last place of one half of the old weight, which
/// is 2^-24 times the power of two of the weight, and so is their difference. If it has less, the
/// difference is larger.
const LOWEST_CHANGE: i32 = LOWEST_WEIGHT - MANTISSA as i32 - 1;
/// Number of exponents of differences that have cells, with that of 0, as a power of two.
const CHANGE_BITS: u32 = 6;
/// Number of cells of a weight's exponent. The last bit of a cell's number is set where the ratio of
/// the mantissas is below 1.
const CHANGES: usize = 1 << (CHANGE_BITS + 1);
/// Number of cells of the joint table.
const CELLS: usize = CHANGES << WEIGHT_BITS;

impl ExponentHistogram {
    /// Counts values.
    #[must_use]
    pub fn of(values: &[f32]) -> Self {
        sum(values, |tables, part| tables.count(part))
    }

    /// Counts values times a factor.
    #[must_use]
    pub fn of_scaled(values: &[f32], factor: f32) -> Self {
        if factor == 1.0 {
            return Self::of(values);
        }
        sum(values, |tables, part| {
            let mut scaled = [0f32; PART];
            let scaled = &mut scaled[..part.len()];
            scaled.iter_mut().zip(part).for_each(|(to, x)| *to = x * factor);
            tables.count(scaled);
        })
    }
}

/// Counts what one update did to weights, in one pass: the values before, the differences, and the
/// ratios |before| / |difference|. The ratio of an unchanged value is not finite. Runs on this thread:
/// it is given fewer than 65,536 values, or about a 512th of a larger array.
pub fn of_update(before: &[f32], after: &[f32]) -> [ExponentHistogram; 3] {
    let mut counts = UpdateCounts::default();
    before.chunks(PART).zip(after.chunks(PART)).for_each(|(before, after)| counts.count(before, after));
    counts.histograms()
}

/// The sum of the counts of all parts. Many values are counted on several threads.
fn sum(values: &[f32], count: impl Fn(&mut Tables, &[f32]) + Sync) -> ExponentHistogram {
    let count = |mut tables: Tables, block: &[f32]| {
        block.chunks(PART).for_each(|part| count(&mut tables, part));
        tables
    };
    let counted = match values.len() {
        0..=ALONE => vec![count(Tables::default(), values)],
        _ => values.par_chunks(BLOCK).fold(Tables::default, count).collect(),
    };
    let mut sum = ExponentHistogram::default();
    counted.iter().for_each(|tables| tables.add_to(&mut sum));
    sum
}

/// The largest magnitude of the values; NaN if one is NaN.
pub fn largest(values: &[f32]) -> f32 {
    // Signed numbers, which processors without SSE4 compare, too.
    let largest = |block: &[f32]| block.iter().fold(0, |most, x| most.max((x.to_bits() & MAGNITUDE) as i32));
    let most = values.par_chunks(BLOCK).map(largest).max();
    f32::from_bits(most.unwrap_or_default() as u32)
}

/// Numbers of values by exponent field.
#[derive(Default)]
struct Tables {
    /// The numbers are the sums over the tables. Field 0 counts the zeros, too. `None` until a value
    /// is counted.
    fields: Option<Box<[[u64; FIELDS]; TABLES]>>,
    zeros: u64,
}

impl Tables {
    fn count(&mut self, part: &[f32]) {
        let fields = self.fields.get_or_insert_with(|| Box::new([[0; FIELDS]; TABLES]));
        if all_zeros(part) {
            fields[0][0] += part.len() as u64;
            self.zeros += part.len() as u64;
            return;
        }
        // Number of values with the exponent field 0: the zeros and the subnormal values of FP32.
        let field_zero = |fields: &[[u64; FIELDS]; TABLES]| fields.iter().map(|table| table[0]).sum::<u64>();
        let of_zeros = field_zero(fields);
        count_fields(fields, part);
        // Most parts have no zero, and their values need not be read again.
        if field_zero(fields) > of_zeros {
            self.zeros += u64::from(zeros(part));
        }
    }

    fn add_to(&self, sum: &mut ExponentHistogram) {
        for table in self.fields.iter().flat_map(|fields| fields.iter()) {
            sum.fields.iter_mut().zip(table).for_each(|(sum, count)| *sum += count);
        }
        sum.fields[0] -= self.zeros;
        sum.zeros += self.zeros;
    }
}

/// Numbers of weights, differences and ratios.
///
/// The exponent of a ratio is the difference of the other two, or 1 less if the weight has the
/// smaller mantissa: rounding takes no quotient across a power of two. So one counter stands for
/// weights that have all three in common.
#[derive(Default)]
struct UpdateCounts {
    /// Those whose exponents have no cell.
    tables: [Tables; 3],
    /// Numbers by exponent of the weight, exponent of the difference, and order of the mantissas: the
    /// sums over two tables that take turns. A sample has far fewer than 2^32 values, and so have the
    /// values behind its groups. Empty until a cell is found.
    cells: Vec<[u32; 2]>,
    /// Number of weights of unchanged parts; the first table counts the weights.
    unchanged: u64,
}

impl UpdateCounts {
    fn count(&mut self, before: &[f32], after: &[f32]) {
        let mut cells = [0; PART];
        let cells = &mut cells[..before.len()];
        if is_unchanged(before, after) {
            self.tables[0].count(before);
            self.unchanged += before.len() as u64;
        } else if before.len() >= FEW && find_cells(before, after, cells) {
            self.cells.resize(CELLS, [0; 2]);
            let counts = &mut self.cells[..CELLS];
            for (i, cell) in cells.iter().enumerate() {
                counts[*cell as usize % CELLS][i % 2] += 1;
            }
        } else {
            let (mut changes, mut ratios) = ([0f32; PART], [0f32; PART]);
            let (changes, ratios) = (&mut changes[..before.len()], &mut ratios[..before.len()]);
            let pairs = before.iter().zip(after);
            changes.iter_mut().zip(pairs).for_each(|(change, (before, after))| *change = after - before);
            let pairs = before.iter().zip(changes.iter());
            ratios.iter_mut().zip(pairs).for_each(|(ratio, (before, change))| *ratio = before / change);
            let parts = [before, changes, ratios];
            self.tables.iter_mut().zip(parts).for_each(|(tables, part)| tables.count(part));
        }
    }

    fn histograms(&self) -> [ExponentHistogram; 3] {
        let mut sums: [ExponentHistogram; 3] = Default::default();
        self.tables.iter().zip(sums.iter_mut()).for_each(|(tables, sum)| tables.add_to(sum));
        let [weights, changes, ratios] = &mut sums;
        changes.zeros += self.unchanged;
        ratios.fields[NOT_FINITE] += self.unchanged;
        let of_one_weight = self.cells.chunks_exact(CHANGES);
        for (weight, cells) in (LOWEST_WEIGHT..).zip(of_one_weight).filter(|(_, cells)| !are_empty(cells)) {
            let counts = cells.iter().map(|[one, other]| u64::from(*one) + u64::from(*other));
            for (cell, count) in counts.enumerate().filter(|(_, count)| *count > 0) {
                weights.fields[field_of(weight)] += count;
                if cell < 2 {
                    changes.zeros += count;
                    ratios.fields[NOT_FINITE] += count;
                } else {
                    let change = LOWEST_CHANGE - 1 + (cell / 2) as i32;
                    changes.fields[field_of(change)] += count;
                    ratios.fields[field_of(weight - change - (cell % 2) as i32)] += count;
                }
            }
        }
        sums
    }
}

/// Whether no weight has one of these cells.
fn are_empty(cells: &[[u32; 2]]) -> bool {
    cells.iter().fold(0, |any, [one, other]| any | one | other) == 0
}

/// The exponent field of an exponent.
fn field_of(exponent: i32) -> usize {
    (exponent + BIAS) as usize
}

/// Whether all values are 0. Most parts have another value among the first few.
fn all_zeros(part: &[f32]) -> bool {
    part.chunks(FEW).all(|few| few.iter().fold(0, |bits, x| bits | x.to_bits()) & MAGNITUDE == 0)
}

/// Whether all differences are 0; those of infinities and NaN are not.
fn is_unchanged(before: &[f32], after: &[f32]) -> bool {
    before.chunks(FEW).zip(after.chunks(FEW)).all(|(before, after)| {
        let pairs = before.iter().zip(after);
        pairs.fold(0, |bits, (before, after)| bits | (after - before).to_bits()) & MAGNITUDE == 0
    })
}

/// Adds the numbers of values by exponent field to the sum of the tables.
// Inlined, this loop and the next take twice as long.
#[inline(never)]
fn count_fields(tables: &mut [[u64; FIELDS]; TABLES], values: &[f32]) {
    let field = |x: &f32| ((x.to_bits() & MAGNITUDE) >> MANTISSA) as usize;
    let (groups, rest) = values.as_chunks::<TABLES>();
    for group in groups {
        tables.iter_mut().zip(group).for_each(|(table, x)| table[field(x)] += 1);
    }
    rest.iter().for_each(|x| tables[0][field(x)] += 1);
}

/// Number of zeros.
#[inline(never)]
fn zeros(values: &[f32]) -> u32 {
    values.iter().map(|x| u32::from(*x == 0.0)).sum()
}

/// Finds the cell of each weight. Returns whether all have one; if not, the cells mean nothing.
fn find_cells(before: &[f32], after: &[f32], cells: &mut [u32]) -> bool {
    Arch::new().dispatch(
        #[inline(always)]
        || cells_of(before, after, cells),
    )
}

/// The loop of [`find_cells`], which is compiled for several instruction sets.
#[inline(always)]
fn cells_of(before: &[f32], after: &[f32], cells: &mut [u32]) -> bool {
    const FRACTION: u32 = (1 << MANTISSA) - 1;
    /// A smaller field is that of a difference of 0.
    const NO_CHANGE: i32 = LOWEST_CHANGE - 1 + BIAS;
    let mut outside = 0;
    for (cell, (before, after)) in cells.iter_mut().zip(before.iter().zip(after)) {
        let (weight, change) = (before.to_bits() & MAGNITUDE, (after - before).to_bits() & MAGNITUDE);
        let is_below_one = u32::from(weight & FRACTION < change & FRACTION);
        let weight = ((weight >> MANTISSA) as i32 - (LOWEST_WEIGHT + BIAS)) as u32;
        let change = ((change >> MANTISSA) as i32 - NO_CHANGE).max(0) as u32;
        outside |= weight >> WEIGHT_BITS | change >> CHANGE_BITS;
        *cell = weight << (CHANGE_BITS + 1) | change << 1 | is_below_one;
    }
    outside == 0
}

/// The three histograms of [`of_update`] by their definitions: what the tests of both ways to count
/// compare with.
#[cfg(test)]
pub(super) fn defined(before: &[f32], after: &[f32]) -> [ExponentHistogram; 3] {
    let changes: Vec<f32> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let ratios: Vec<f32> = before.iter().zip(&changes).map(|(weight, change)| weight / change).collect();
    [before, &changes, &ratios].map(ExponentHistogram::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: f32 = 1e-45;

    /// More values than a thread counts at a time, and an odd rest.
    #[test]
    fn many_values_are_each_counted_once_by_every_number_of_threads() {
        let values: Vec<f32> = (0..ALONE + BLOCK + 7).map(|i| [0.0, 1.0, 4.0, -0.25, 1.5][i % 5]).collect();
        let of = |x: f32| values.iter().filter(|y| **y == x).count() as u64;
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| ExponentHistogram::of(&values));
            assert_eq!((found.values(), found.zeros()), (values.len() as u64, of(0.0)));
            let due = [(-2, of(-0.25)), (0, of(1.0) + of(1.5)), (2, of(4.0))];
            assert_eq!(found.exponents().collect::<Vec<_>>(), due);
        }
    }

    #[test]
    fn a_factor_moves_the_exponents() {
        let values = [1.0, 3.0, 0.0, -1e-3];
        let by = |factor: f32| ExponentHistogram::of_scaled(&values, factor);
        assert_eq!(by(1.0), ExponentHistogram::of(&values));
        assert_eq!(by(0.125), ExponentHistogram::of(&[0.125, 0.375, 0.0, -1.25e-4]));
        for length in [PART + 1, ALONE + PART + 5] {
            let values: Vec<f32> = (0..length).map(|i| (i % 1009) as f32).collect();
            let scaled: Vec<f32> = values.iter().map(|x| x * 0.125).collect();
            assert_eq!(ExponentHistogram::of_scaled(&values, 0.125), ExponentHistogram::of(&scaled));
        }
    }

    #[test]
    fn zeros_of_both_signs_are_zeros_in_parts_with_and_without_other_values() {
        let zeros = [[0.0; PART], [-0.0; PART]].concat();
        let found = ExponentHistogram::of(&zeros);
        assert_eq!((found.zeros(), found.values()), (2 * PART as u64, 2 * PART as u64));
        let mixed = ExponentHistogram::of(&[&zeros[..], &[-0.0, 2.0, TINY]].concat());
        assert_eq!((mixed.zeros(), mixed.nonzero()), (2 * PART as u64 + 1, 2));
    }

    /// Parts of four kinds in turn: subnormal values, zeros among others, and values that have cells of
    /// several exponents, which change and do not. The last part is short and has cells.
    #[test]
    fn a_long_update_has_the_same_histograms_as_its_values() {
        let length = 34 * PART + FEW + 5;
        let value = |i: usize| match i / PART % 4 {
            0 => TINY,
            1 => (i % 7) as f32,
            // Each of these exponents is at odd places only, and at even places only.
            _ if i % 51 == 1 => 2f32.powi(LOWEST_WEIGHT + (i % 2) as i32),
            _ => (1 + i % 7) as f32,
        };
        let before: Vec<f32> = (0..length).map(value).collect();
        let is_still = |i: usize| i / PART % 4 == 3;
        let step = |i: usize| if is_still(i) { 0.0 } else { [0.0, 0.5, -3.0][i % 3] };
        let after: Vec<f32> = before.iter().zip(0..).map(|(x, i)| x + step(i)).collect();
        let kinds = before
            .chunks(PART)
            .zip(after.chunks(PART))
            .map(|(before, after)| (find_cells(before, after, &mut [0; PART]), is_unchanged(before, after)));
        let due = [(false, false), (false, false), (true, false), (true, true)].into_iter().cycle();
        assert!(kinds.eq(due.take(35)));
        let due = defined(&before, &after);
        assert_eq!(of_update(&before, &after), due);
        let zeros = |values: &[f32]| values.iter().filter(|x| **x == 0.0).count() as u64;
        assert_eq!(due[0].zeros(), zeros(&before));
    }

    /// Every exponent of a weight beside every step in its last places and every other exponent: parts
    /// with cells for all weights, parts with cells for none, and unchanged parts. The mantissas are
    /// the smallest, the largest, and some between.
    #[test]
    fn each_pair_of_exponents_has_the_ratio_of_its_division() {
        let fractions = [0, 1, 0x12_3456, 0x40_0000, 0x7f_fffe, 0x7f_ffff];
        let value = |field: u32, fraction: usize| f32::from_bits(field << MANTISSA | fractions[fraction]);
        let mut with_cells = 0;
        for field in 0..=255 {
            for fraction in 0..fractions.len() {
                let weight = value(field, fraction);
                let before = vec![weight; PART];
                let steps = (0..40).map(|step| f32::from_bits(weight.to_bits() + step));
                let others =
                    (0..=255).map(|other| value(other, (fraction + other as usize) % fractions.len()));
                let sums = (0..=255).map(|other| weight - value(other, (fraction * 5 + 1) % fractions.len()));
                for after in [steps.collect(), others.collect(), sums.collect::<Vec<f32>>()] {
                    for after in after.chunks(FEW) {
                        let before = &before[..after.len()];
                        let is_long = after.len() >= FEW;
                        with_cells += usize::from(is_long && find_cells(before, after, &mut [0; PART]));
                        let found = of_update(before, after);
                        assert_eq!(found, defined(before, after), "{weight:e} to {after:?}");
                    }
                }
            }
        }
        // Of 256 fields, 32 have cells; of the steps all have, of the other two at least half.
        assert!(with_cells > 32 * fractions.len() * 8, "{with_cells}");
    }

    #[test]
    fn unchanged_parts_have_no_finite_ratio_and_their_nan_no_difference() {
        for odd in [0.5, f32::NAN, f32::INFINITY, 0.0] {
            let weights = [[0.25; PART], [odd; PART]].concat();
            let found = of_update(&weights, &weights);
            assert_eq!(found, defined(&weights, &weights), "{odd}");
            assert_eq!(found[2].not_finite(), 2 * PART as u64);
        }
    }

    #[test]
    fn a_weight_beside_the_cells_is_counted_without_them() {
        let edge = |exponent: i32| 2f32.powi(exponent);
        let highest = LOWEST_WEIGHT + (1 << WEIGHT_BITS);
        let has_cell = |before: f32, after: f32| find_cells(&[before], &[after], &mut [0]);
        assert!(has_cell(edge(LOWEST_WEIGHT), 1.0) && !has_cell(edge(LOWEST_WEIGHT - 1), 1.0));
        assert!(has_cell(-edge(highest - 1), 1.0) && !has_cell(-edge(highest), 1.0));
        assert!(has_cell(1.0, edge(10)) && !has_cell(1.0, edge(12)));
        for odd in [0.0, TINY, f32::NAN, f32::INFINITY] {
            assert!(!has_cell(odd, 1.0), "{odd}");
        }
        assert!(!has_cell(1.0, f32::NAN) && !has_cell(1.0, f32::NEG_INFINITY));
        // The smallest difference that there can be, and none.
        let lowest = edge(LOWEST_WEIGHT);
        let mut cells = [0; 2];
        assert!(find_cells(&[lowest; 2], &[f32::from_bits(lowest.to_bits() - 1), lowest], &mut cells));
        assert_eq!(cells.map(|cell| cell >> 1), [1, 0]);
    }
}
