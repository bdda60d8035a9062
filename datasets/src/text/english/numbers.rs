//! Numbers and money in words, as Keith Ito's `numbers.py` writes them with the `inflect` package.

use std::sync::LazyLock;

use regex::{Captures, Regex};

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
/// Names of the groups of three digits, from the last group on.
const THOUSANDS: [&str; 12] = [
    "",
    " thousand",
    " million",
    " billion",
    " trillion",
    " quadrillion",
    " quintillion",
    " sextillion",
    " septillion",
    " octillion",
    " nonillion",
    " decillion",
];

/// One of the regular expressions below.
type Pattern = LazyLock<Regex>;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

static WITH_COMMAS: Pattern = LazyLock::new(|| pattern(r"[0-9][0-9,]+[0-9]"));
static POUNDS: Pattern = LazyLock::new(|| pattern(r"£([0-9,]*[0-9]+)"));
static DOLLARS: Pattern = LazyLock::new(|| pattern(r"\$([0-9.,]*[0-9]+)"));
static DECIMAL: Pattern = LazyLock::new(|| pattern(r"([0-9]+)\.([0-9]+)"));
static ORDINAL: Pattern = LazyLock::new(|| pattern(r"([0-9]+)(?:st|nd|rd|th)"));
static NUMBER: Pattern = LazyLock::new(|| pattern(r"[0-9]+"));

/// Replaces numbers, years, ordinals, pounds and dollars by words. The text is in lower case.
pub(super) fn expanded(text: &str) -> String {
    let text = WITH_COMMAS.replace_all(text, |found: &Captures<'_>| found[0].replace(',', ""));
    let text = POUNDS.replace_all(&text, "$1 pounds");
    let text = DOLLARS.replace_all(&text, |found: &Captures<'_>| dollars(&found[1]));
    let text = DECIMAL.replace_all(&text, "$1 point $2");
    let text = ORDINAL.replace_all(&text, |found: &Captures<'_>| {
        whole(&found[1]).map_or_else(|| found[0].to_owned(), |number| ordinal(&cardinal(number, " and ")))
    });
    let words = |found: &Captures<'_>| whole(&found[0]).map_or_else(|| found[0].to_owned(), read);
    NUMBER.replace_all(&text, words).into_owned()
}

/// The value of a string of digits, if the number has a name.
fn whole(digits: &str) -> Option<u128> {
    let digits = digits.trim_start_matches('0');
    match digits.len() {
        0 => Some(0),
        1..=36 => digits.parse().ok(),
        _ => None,
    }
}

/// An amount in digits with the names of its units. All digits after the point count as cents.
fn dollars(amount: &str) -> String {
    let mut parts = amount.split('.');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let number = |digits: &str| whole(&digits.replace(',', ""));
    let (Some(dollars), Some(cents), None) = (number(first), number(second.unwrap_or_default()), third)
    else {
        return format!("{amount} dollars");
    };
    let named = |count: u128, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match (dollars, cents) {
        (0, 0) => "zero dollars".into(),
        (dollars, 0) => named(dollars, "dollar"),
        (0, cents) => named(cents, "cent"),
        (dollars, cents) => format!("{}, {}", named(dollars, "dollar"), named(cents, "cent")),
    }
}

/// A number in words. Numbers between 1000 and 3000 are read as years.
fn read(number: u128) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    match number {
        1001..=2999 => match (hundreds, rest) {
            (20, 0) => "two thousand".into(),
            (20, 1..=9) => format!("two thousand {}", below_hundred(rest)),
            (_, 0) => format!("{} hundred", below_hundred(hundreds)),
            (_, 1..=9) => format!("{} oh {}", below_hundred(hundreds), below_hundred(rest)),
            _ => format!("{} {}", below_hundred(hundreds), below_hundred(rest)),
        },
        _ => cardinal(number, " "),
    }
}

fn below_hundred(number: u128) -> String {
    match number {
        0..20 => ONES[number as usize].into(),
        _ if number.is_multiple_of(10) => TENS[number as usize / 10].into(),
        _ => format!("{}-{}", TENS[number as usize / 10], ONES[number as usize % 10]),
    }
}

/// A number below 10^36 in words. `and` goes before a part below one hundred that follows a larger
/// part.
fn cardinal(number: u128, and: &str) -> String {
    let mut groups = Vec::new();
    let mut rest = number;
    for scale in THOUSANDS {
        let group = rest % 1000;
        rest /= 1000;
        if group > 0 {
            let (hundreds, below) = (group / 100, group % 100);
            let words = match (hundreds, below) {
                (0, below) => below_hundred(below),
                (hundreds, 0) => format!("{} hundred", below_hundred(hundreds)),
                (hundreds, below) => {
                    format!("{} hundred{and}{}", below_hundred(hundreds), below_hundred(below))
                }
            };
            groups.push(format!("{words}{scale}"));
        }
    }
    groups.reverse();
    match groups.pop() {
        None => ONES[0].into(),
        Some(last) if groups.is_empty() => last,
        Some(last) if (1..100).contains(&(number % 1000)) => format!("{}{and}{last}", groups.join(", ")),
        Some(last) => format!("{}, {last}", groups.join(", ")),
    }
}

/// Converts a number in words to its ordinal by changing the last word.
fn ordinal(words: &str) -> String {
    const CHANGED: [(&str, &str); 7] = [
        ("one", "first"),
        ("two", "second"),
        ("three", "third"),
        ("five", "fifth"),
        ("eight", "eighth"),
        ("nine", "ninth"),
        ("twelve", "twelfth"),
    ];
    let start = words.rfind([' ', '-']).map_or(0, |at| at + 1);
    let (before, last) = words.split_at(start);
    match (CHANGED.iter().find(|(word, _)| *word == last), last.strip_suffix('y')) {
        (Some((_, ordinal)), _) => format!("{before}{ordinal}"),
        (None, Some(stem)) => format!("{before}{stem}ieth"),
        (None, None) => format!("{words}th"),
    }
}
