//! Scores of all points.

use zoo_recipes::DIRECT;

use super::point::{Cause, Point, Text, case_of, convention};
use crate::metrics::{Case, Entry, ScoreError, Scorer, split_compounds};

/// A file of hypotheses and how it was produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name of the search.
    pub search: String,
    /// Name of the weights.
    pub weights: String,
    /// Hypotheses, one per segment.
    pub hypotheses: Vec<String>,
}

/// Moses' tokenizer for the target language.
pub type Tokenise<'a> = dyn Fn(&[String]) -> Vec<String> + 'a;

/// Scores of all points.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The metric of the scores.
    pub metric: &'static Entry,
    /// The causes that scores of the metric and the settings can depend on.
    pub applicable: Vec<Cause>,
    /// (search, weights) of each setting.
    pub settings: Vec<(String, String)>,
    /// The point that was measured.
    pub measured: Point,
    /// All points with their scores; those of the measured setting come first.
    pub scores: Vec<(Point, f64)>,
}

/// (tokenised, split), and all hypotheses and references after this treatment.
type Treated = ((bool, bool), Vec<Vec<String>>);

impl Grid {
    /// Scores every available point. Without `tokenise`, points with tokenised text are left out.
    ///
    /// # Errors
    /// Hypotheses and references do not match, or cannot be scored.
    pub fn score(
        scorer: &Scorer,
        settings: &[Setting],
        references: &[Vec<String>],
        tokenise: Option<&Tokenise<'_>>,
    ) -> Result<Self, ScoreError> {
        let own = scorer.convention();
        let measured = Point { text: Text::of(own), case: case_of(own), setting: 0 };
        // A task without searches decodes in one way.
        let is_searched = settings.iter().any(|setting| setting.search != DIRECT);
        let applies = |cause: &Cause| cause.applies_to(own) && (*cause != Cause::Search || is_searched);
        let applicable: Vec<Cause> = Cause::ALL.into_iter().filter(applies).collect();
        let cases: &[Case] = match applicable.contains(&Cause::Case) {
            true => &[Case::Mixed, Case::Lower],
            false => &[Case::Mixed],
        };
        let texts = Text::all(own);
        let texts = texts.into_iter().filter(|text| !text.tokenised || tokenise.is_some());
        let mut scores = Vec::new();
        // Both cases and all tokenizers start from the same treated text, so each text is treated
        // once.
        let mut treated: Vec<Treated> = Vec::new();
        for text in texts {
            let how = (text.tokenised, text.split);
            let at = match treated.iter().position(|(known, _)| *known == how) {
                Some(at) => at,
                None => {
                    let treat = |lines: &[String]| -> Vec<String> {
                        let lines = match tokenise {
                            Some(tokenise) if text.tokenised => tokenise(lines),
                            _ => lines.to_vec(),
                        };
                        if text.split {
                            lines.iter().map(|line| split_compounds(line)).collect()
                        } else {
                            lines
                        }
                    };
                    let sides = settings.iter().map(|setting| &setting.hypotheses).chain(references);
                    treated.push((how, sides.map(|lines| treat(lines)).collect()));
                    treated.len() - 1
                }
            };
            let (hypotheses, references) = treated[at].1.split_at(settings.len());
            for &case in cases {
                let scorer = Scorer::new(convention(own, text, case))?;
                for (setting, hypotheses) in hypotheses.iter().enumerate() {
                    let value = scorer.statistics(hypotheses, references)?.value();
                    scores.push((Point { text, case, setting }, value));
                }
            }
        }
        scores.sort_by_key(|(point, _)| point.setting);
        let settings = settings.iter().map(|one| (one.search.clone(), one.weights.clone())).collect();
        Ok(Self { metric: own.entry(), applicable, settings, measured, scores })
    }

    /// The score of a point.
    #[must_use]
    pub fn at(&self, point: &Point) -> Option<f64> {
        self.scores.iter().find(|(known, _)| known == point).map(|(_, score)| *score)
    }

    /// The causes in which two points differ.
    #[must_use]
    pub fn causes(&self, one: &Point, other: &Point) -> Vec<Cause> {
        Cause::ALL.into_iter().filter(|cause| self.level(*cause, one) != self.level(*cause, other)).collect()
    }

    /// The value of a cause at a point, in words.
    #[must_use]
    pub fn level(&self, cause: Cause, point: &Point) -> String {
        let (search, weights) = &self.settings[point.setting];
        match cause {
            Cause::Tokenisation => point.text.tokens().to_owned(),
            Cause::CompoundSplitting => if point.text.split { "split" } else { "not split" }.to_owned(),
            Cause::Case => if point.case == Case::Lower { "lower-cased" } else { "cased" }.to_owned(),
            Cause::Search => search.clone(),
            Cause::Weights => weights.clone(),
        }
    }

    /// The point with `causes` from `other` and everything else from `one`. `None` if no such
    /// output was decoded or it cannot be scored.
    #[must_use]
    pub fn between(&self, one: &Point, other: &Point, causes: &[Cause]) -> Option<Point> {
        let pick = |cause: Cause| if causes.contains(&cause) { other } else { one };
        let tokens = pick(Cause::Tokenisation).text;
        let text = Text { split: pick(Cause::CompoundSplitting).text.split, ..tokens };
        let search = &self.settings[pick(Cause::Search).setting].0;
        let weights = &self.settings[pick(Cause::Weights).setting].1;
        let setting = self.settings.iter().position(|known| (&known.0, &known.1) == (search, weights))?;
        let point = Point { text, case: pick(Cause::Case).case, setting };
        text.is_possible().then_some(point)
    }

    /// A point in words, e.g. `tokenised (Moses), split, cased, beam5, last`.
    #[must_use]
    pub fn name(&self, point: &Point) -> String {
        let parts =
            self.applicable.iter().filter(|cause| **cause != Cause::CompoundSplitting || point.text.split);
        parts
            .map(|cause| self.level(*cause, point))
            .filter(|level| !level.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }
}
