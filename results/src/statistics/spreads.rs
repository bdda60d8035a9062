//! The table of measured standard deviations between training runs, `spreads.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

/// Text of the table.
const TABLE: &str = include_str!("spreads.toml");

/// A measured standard deviation of the scores of single runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredSpread {
    /// Name by which claims refer to it.
    pub name: String,
    /// The system whose runs were measured.
    pub system: String,
    /// The system's task.
    pub task: String,
    /// Metric of the scores; `sd` is in its unit.
    pub metric: String,
    /// Data that was scored.
    pub data: String,
    /// Standard deviation, with divisor n - 1.
    pub sd: f64,
    /// Number of runs behind it; 0 if not known.
    pub runs: u32,
    /// Degrees of freedom if groups were pooled; otherwise the number of runs less one.
    freedom: Option<u32>,
    /// Recipes of exactly this system.
    pub recipes: Vec<String>,
    /// Source of the numbers.
    pub source: String,
    /// Relevant conditions.
    #[serde(default)]
    pub note: String,
}

/// The file's single list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    spread: Vec<MeasuredSpread>,
}

impl MeasuredSpread {
    /// Degrees of freedom; `None` if the number of runs is not known.
    #[must_use]
    pub fn freedom(&self) -> Option<u32> {
        self.freedom.or(self.runs.checked_sub(1)).filter(|freedom| *freedom > 0)
    }

    /// Whether it was measured on the system of this recipe.
    #[must_use]
    pub fn is_of(&self, recipe: &str) -> bool {
        self.recipes.iter().any(|own| own == recipe)
    }
}

/// All rows, in the order of the file.
///
/// # Panics
/// Never in a program whose tests passed, because they parse the built-in table.
#[must_use]
pub fn spreads() -> &'static [MeasuredSpread] {
    static ROWS: OnceLock<Vec<MeasuredSpread>> = OnceLock::new();
    ROWS.get_or_init(|| {
        toml::from_str::<Table>(TABLE).map(|table| table.spread).expect("spreads.toml parses")
    })
}

/// The row with this name.
#[must_use]
pub fn spread(name: &str) -> Option<&'static MeasuredSpread> {
    spreads().iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_source_and_a_usable_number() {
        let mut names: Vec<&str> = spreads().iter().map(|row| row.name.as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "two rows of one name");
        for row in spreads() {
            assert!(row.sd > 0.0 && row.sd.is_finite(), "{row:?}");
            assert!(row.freedom().is_some() && row.runs > row.freedom().unwrap(), "{row:?}");
            assert!(
                [&row.system, &row.task, &row.metric, &row.data, &row.source]
                    .iter()
                    .all(|text| !text.is_empty())
            );
            for recipe in &row.recipes {
                assert!(zoo_recipes::find(recipe).is_ok(), "{}: there is no recipe {recipe}", row.name);
            }
        }
    }

    #[test]
    fn pooled_groups_have_fewer_degrees_of_freedom() {
        assert_eq!(spread("gnmt-v2").unwrap().freedom(), Some(31));
        assert_eq!(spread("multi30k-validation").unwrap().freedom(), Some(12));
        assert!(spread("gnmt-v2").unwrap().is_of("gnmt-v2") && !spread("gnmt-v2").unwrap().is_of("gnmt"));
    }

    #[test]
    fn rows_from_our_ledger_agree_with_it() {
        // FP32 scores of seeds 1 to 5 of reversal-transformer and 1 to 6 of fsdd-digits, from the
        // ledger.
        let of = |scores: &[f64]| crate::statistics::standard_deviation(scores);
        let reversal = of(&[97.7747, 98.4162, 98.7837, 98.4531, 96.8668]);
        assert!((reversal - spread("reversal-transformer").unwrap().sd).abs() < 5e-3, "{reversal}");
        let digits = of(&[2.1399, 1.9753, 1.4815, 2.2222, 2.8807, 2.4691]);
        assert!((digits - spread("fsdd-digits").unwrap().sd).abs() < 5e-3, "{digits}");
    }
}
