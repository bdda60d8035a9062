//! Formats numbers for sentences.

/// A number with decimals that suit its size: 26.40, 0.131, 0.0042, 1204.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() => return value.to_string(),
        0.0 => 2,
        s if s >= 1000.0 => 0,
        s if s >= 1.0 => 2,
        s if s >= 0.1 => 3,
        s if s >= 0.001 => 4,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.decimals$}");
    // A value that rounds to zero is printed without a sign.
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

/// `1 seed`, `3 seeds`.
pub(super) fn seeds(n: u32) -> String {
    if n == 1 { "1 seed".to_owned() } else { format!("{n} seeds") }
}

/// "0.30 worse than", "0.12 better than", "equal to".
pub(super) fn standing(shortfall: f64) -> String {
    let text = number(shortfall.abs());
    if shortfall == 0.0 {
        "equal to".to_owned()
    } else if shortfall > 0.0 {
        format!("{text} worse than")
    } else {
        format!("{text} better than")
    }
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    if share > 0.999 {
        "over 99.9 %".to_owned()
    } else if share < 0.001 {
        "under 0.1 %".to_owned()
    } else {
        format!("{:.1} %", 100.0 * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_sensible_digits() {
        for (value, text) in [
            (26.4, "26.40"),
            (0.131, "0.131"),
            (-0.004_2, "-0.0042"),
            (1204.3, "1204"),
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (1e-9, "1.00e-9"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(0.95), "95.0 %");
        assert_eq!(standing(-0.5), "0.500 better than");
    }
}
