//! Formats counts and durations for people.

/// `210808832` as `210,808,832`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3 s`, `4 min 10 s`, `2 h 05 min`, `3 d 4 h`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        3600..172_800 => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 210_808_832].map(grouped),
            ["0", "999", "1,000", "210,808,832"].map(str::to_owned)
        );
    }

    #[test]
    fn times_are_rounded_to_what_matters() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.6, "1 min 00 s"),
            (250.0, "4 min 10 s"),
            (7500.0, "2 h 05 min"),
            (273_600.0, "3 d 4 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
