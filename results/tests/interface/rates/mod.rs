//! Shares of the studies that ended in each outcome, and their table in `docs/verdicts.md`.
#![allow(dead_code)]

use zoo_results::statistics::LookPlan;
use zoo_results::verdict::Outcome;

/// Number of studies behind a share.
pub const STUDIES: u32 = 6_000;

/// How studies ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    studies: f64,
    reproduced: f64,
    not_reproduced: f64,
    seeds: f64,
}

impl Rates {
    /// Counts one study.
    pub fn count(&mut self, outcome: Outcome, seeds: u32) {
        self.weigh(outcome, 1.0);
        self.seeds += f64::from(seeds);
    }

    /// Counts a study with this weight. If the weights are probabilities, the shares are exact.
    pub fn weigh(&mut self, outcome: Outcome, weight: f64) {
        self.studies += weight;
        match outcome {
            Outcome::Reproduced => self.reproduced += weight,
            Outcome::NotReproduced => self.not_reproduced += weight,
            _ => {}
        }
    }

    pub fn reproduced(&self) -> f64 {
        self.reproduced / self.studies
    }

    pub fn not_reproduced(&self) -> f64 {
        self.not_reproduced / self.studies
    }

    /// Mean number of seeds of a study.
    pub fn seeds(&self) -> f64 {
        self.seeds / self.studies
    }
}

/// Three standard errors of a share of 5 %.
pub fn margin_of_noise() -> f64 {
    3.0 * (0.05 * 0.95 / f64::from(STUDIES)).sqrt()
}

/// A plan of these looks.
pub fn looks(seeds: &[u32]) -> LookPlan {
    LookPlan::try_from(seeds.to_vec()).unwrap()
}

/// Asserts that the documentation has the row of a study at the margin: for each true standard
/// deviation, the rates of REPRODUCED and NOT REPRODUCED.
pub fn documented(what: &str, plan: &[u32], rates: &[Rates]) {
    let plan: Vec<String> = plan.iter().map(u32::to_string).collect();
    let pair =
        |rate: &Rates| format!("{:.1} / {:.1} %", 100.0 * rate.reproduced(), 100.0 * rate.not_reproduced());
    let pairs: Vec<String> = rates.iter().map(pair).collect();
    let row = format!("| {what} | {} | {} |", plan.join(", "), pairs.join(" | "));
    println!("{row}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verdicts.md")).unwrap();
    let writing = std::env::var_os("ZOO_PRINT_RATES").is_some();
    assert!(writing || page.contains(&row), "put this into docs/verdicts.md: {row}");
}
