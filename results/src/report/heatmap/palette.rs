//! Colours of levels: viridis (S. van der Walt and N. Smith, public domain), interpolated from nine
//! of its points. Equal steps look equally large, also in greyscale and to most people with colour
//! blindness.

/// Number of levels of an image.
pub(super) const LEVELS: usize = 255;
/// Index of a cell without a value.
pub(super) const MISSING: u8 = 255;

/// Red, green and blue at equal distances from minimum to maximum.
const POINTS: [[f64; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 45.0, 123.0],
    [59.0, 82.0, 139.0],
    [44.0, 114.0, 142.0],
    [33.0, 145.0, 140.0],
    [40.0, 174.0, 128.0],
    [94.0, 201.0, 98.0],
    [173.0, 220.0, 48.0],
    [253.0, 231.0, 37.0],
];
/// White, which no level uses.
const MISSING_COLOUR: [u8; 3] = [255; 3];

/// The colours of all levels, followed by that of [`MISSING`].
pub(super) fn palette() -> Vec<u8> {
    let colour = |level: usize| {
        let place = level as f64 / (LEVELS - 1) as f64 * (POINTS.len() - 1) as f64;
        let before = (place as usize).min(POINTS.len() - 2);
        let share = place - before as f64;
        [0, 1, 2].map(|c| (POINTS[before][c] * (1.0 - share) + POINTS[before + 1][c] * share).round() as u8)
    };
    (0..LEVELS).map(colour).chain([MISSING_COLOUR]).flatten().collect()
}

/// The level of a value between two ends; values beyond an end get the level of that end.
pub(super) fn level(value: f64, (low, high): (f64, f64)) -> u8 {
    if !value.is_finite() {
        return MISSING;
    }
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    (share.clamp(0.0, 1.0) * (LEVELS - 1) as f64).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_grow_lighter_with_the_level() {
        let palette = palette();
        assert_eq!(palette.len(), 3 * 256);
        let lightness = |colour: &[u8]| {
            let [red, green, blue] = [0, 1, 2].map(|c| (f64::from(colour[c]) / 255.0).powf(2.2));
            let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            116.0 * luminance.max(0.008_856).cbrt() - 16.0
        };
        let all: Vec<f64> = palette.chunks_exact(3).map(lightness).collect();
        for (level, pair) in all[..LEVELS].windows(2).enumerate() {
            // About 0.3 per level.
            assert!((-0.05..0.8).contains(&(pair[1] - pair[0])), "level {level}: {pair:?}");
        }
        assert!(all[LEVELS - 1] - all[0] > 70.0 && all[255] > all[254]);
    }

    #[test]
    fn every_number_has_a_level() {
        for (value, ends, expected) in [
            (0.0, (0.0, 1.0), 0),
            (1.0, (0.0, 1.0), 254),
            (0.5, (0.0, 1.0), 127),
            (9.0, (0.0, 1.0), 254),
            (-9.0, (0.0, 1.0), 0),
            (3.0, (3.0, 3.0), 0),
            (f64::NAN, (0.0, 1.0), MISSING),
            (f64::INFINITY, (0.0, 1.0), MISSING),
        ] {
            assert_eq!(level(value, ends), expected, "{value}");
        }
    }
}
