//! Explanations of gaps with a known cause.

use proptest::prelude::*;
use zoo_results::explain::{Cause, Explanation, Question, Setting, explain};
use zoo_results::metrics::{
    BleuOptions, Case, ChrfOptions, Convention, ScoreError, Scorer, Smoothing, Tokenizer,
};

/// Words of a German-like test set: punctuation, hyphenated compounds, capitals.
fn references() -> Vec<String> {
    let nouns = ["Ex-Freund", "Haus", "SPD-Politiker", "Auto", "Berlin", "E-Mail-Adresse", "Wetter"];
    let verbs = ["sieht", "kauft", "hört", "meidet", "lobt"];
    let pick = |list: &[&'static str], i: usize| list[i % list.len()];
    (0..120)
        .map(|i| {
            let (a, b, c) = (pick(&nouns, i), pick(&verbs, i / 3), pick(&nouns, i / 5 + 2));
            match i % 4 {
                0 => format!("Der {a} {b} den {c}, und das ist gut."),
                1 => format!("„{a}“, sagte er, „{b} nie den {c} im Jahr {}.“", 1990 + i % 30),
                2 => format!("Am {}. Mai {b} die {c} einen {a}; dann war Ruhe", 1 + i % 28),
                // International tokenisation splits z.B. and leaves the season unchanged; compound
                // splitting does the reverse.
                _ => format!("Wer {b} z.B. den {a}? In der Saison 2012-{} niemand den {c}.", 13 + i % 6),
            }
        })
        .collect()
}

/// A system's output: words dropped and exchanged, half of the compounds right, capitals lost.
fn hypotheses(every: usize) -> Vec<String> {
    let spoil = |(i, line): (usize, String)| match i % every {
        0 => line.replace("SPD-Politiker", "CDU-Politiker").replace("den ", "die "),
        1 => line.replace("Ex-Freund", "Ex-Mann").to_lowercase(),
        2 => line.replace("E-Mail-Adresse", "E-Mail").replace(" und", " aber").replace("-15", "-16"),
        3 => line.replace(['„', '“'], "\""),
        _ => line,
    };
    references().into_iter().enumerate().map(spoil).collect()
}

/// Stands in for Moses' tokenizer: separates punctuation from words.
fn tokenise(lines: &[String]) -> Vec<String> {
    let one = |line: &String| {
        let apart = |c: char| if ",;?„“\"".contains(c) { format!(" {c} ") } else { c.to_string() };
        let stop = line.strip_suffix('.').map_or_else(|| line.clone(), |line| format!("{line} ."));
        stop.chars().map(apart).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(one).collect()
}

fn split(lines: &[String]) -> Vec<String> {
    let hyphen = regex::Regex::new(r"(\S)-(\S)").unwrap();
    lines.iter().map(|line| hyphen.replace_all(line, "$1 ##AT##-##AT## $2").into_owned()).collect()
}

fn bleu(tokenizer: Tokenizer, case: Case) -> Scorer {
    let options = BleuOptions { tokenizer, case, smoothing: Smoothing::Exp, effective_order: false };
    Scorer::new(Convention::Bleu(options)).unwrap()
}

fn score(scorer: &Scorer, hypotheses: &[String], references: &[String]) -> f64 {
    scorer.statistics(hypotheses, &[references.to_vec()]).unwrap().value()
}

fn setting(search: &str, weights: &str, hypotheses: Vec<String>) -> Setting {
    Setting { search: search.into(), weights: weights.into(), hypotheses }
}

/// Explains a claim printed with two decimals, and checks the sum of the parts.
fn explained(claimed: f64, scorer: &Scorer, settings: &[Setting]) -> Explanation {
    let claimed = (100.0 * claimed).round() / 100.0;
    let references = [references()];
    let question = Question { claimed, scorer, settings, references: &references, sigma: None };
    let found = explain(&question, Some(&tokenise)).unwrap();
    let sum: f64 = found.parts.iter().map(|part| part.contribution).sum();
    assert!((claimed + sum + found.unexplained - found.measured).abs() < 1e-9, "{found:?}");
    assert!(found.parts.windows(2).all(|w| w[0].contribution.abs() >= w[1].contribution.abs()));
    found
}

fn first(found: &Explanation) -> (Vec<Cause>, &str, &str) {
    let part = found.parts.first().unwrap_or_else(|| panic!("nothing was explained: {found:?}"));
    (part.causes.clone(), part.published.as_str(), part.ours.as_str())
}

#[test]
fn compound_splitting_comes_first_where_it_was_planted() {
    let (h, r) = (hypotheses(6), references());
    let none = bleu(Tokenizer::None, Case::Mixed);
    let published = score(&none, &split(&tokenise(&h)), &split(&tokenise(&r)));
    let found = explained(published, &bleu(Tokenizer::V13a, Case::Mixed), &[setting("beam4", "mean", h)]);
    assert_eq!(first(&found), (vec![Cause::CompoundSplitting], "split", "not split"), "{found:#?}");
    assert!(found.parts[0].contribution < -0.5 && found.unexplained.abs() < 0.01, "{found:#?}");
    assert_eq!(found.parts[1].causes, [Cause::Tokenisation]);
}

#[test]
fn each_convention_comes_first_where_it_was_planted() {
    let (h, r) = (hypotheses(6), references());
    let ours = bleu(Tokenizer::V13a, Case::Mixed);
    let settings = [setting("beam4", "mean", h.clone())];
    let lower = score(&bleu(Tokenizer::V13a, Case::Lower), &h, &r);
    assert_eq!(first(&explained(lower, &ours, &settings)), (vec![Cause::Case], "lower-cased", "cased"));
    let intl = score(&bleu(Tokenizer::Intl, Case::Mixed), &h, &r);
    assert_eq!(first(&explained(intl, &ours, &settings)), (vec![Cause::Tokenisation], "intl", "13a"));
    let none = score(&bleu(Tokenizer::None, Case::Mixed), &h, &r);
    assert_eq!(first(&explained(none, &ours, &settings)), (vec![Cause::Tokenisation], "none", "13a"));
    // The reverse case: the measured score is lower-cased, the claimed one is not.
    let theirs = score(&ours, &h, &r);
    let found = explained(theirs, &bleu(Tokenizer::V13a, Case::Lower), &settings);
    assert_eq!(first(&found), (vec![Cause::Case], "cased", "lower-cased"));
}

#[test]
fn averaging_and_search_come_first_where_they_were_planted() {
    let ours = bleu(Tokenizer::V13a, Case::Mixed);
    // Later settings are better: the published score is that of averaged checkpoints decoded with a
    // beam.
    let settings = [
        setting("greedy", "last", hypotheses(5)),
        setting("beam4", "last", hypotheses(7)),
        setting("greedy", "mean of 10 epochs", hypotheses(14)),
        setting("beam4", "mean of 10 epochs", hypotheses(20)),
    ];
    let at = |i: usize| score(&ours, &settings[i].hypotheses, &references());
    let found = explained(at(1), &ours, &settings);
    assert_eq!(first(&found), (vec![Cause::Search], "beam4", "greedy"), "{found:#?}");
    let found = explained(at(2), &ours, &settings);
    assert_eq!(first(&found), (vec![Cause::Weights], "mean of 10 epochs", "last"), "{found:#?}");
    let found = explained(at(3), &ours, &settings);
    let causes: Vec<_> = found.parts.iter().map(|part| part.causes.clone()).collect();
    assert_eq!(causes, [vec![Cause::Weights], vec![Cause::Search]], "{found:#?}");
    // The Shapley value of two causes, computed by hand.
    let weights = -((at(2) - at(0)) + (at(3) - at(1))) / 2.0;
    assert!((found.parts[0].contribution - weights).abs() < 1e-9);
    // Without the two files in between, the two causes cannot be separated.
    let two = [settings[0].clone(), settings[3].clone()];
    let found = explained(at(3), &ours, &two);
    assert_eq!(found.parts[0].causes, [Cause::Search, Cause::Weights]);
    assert_eq!((found.parts[0].published.as_str(), found.parts.len()), ("beam4, mean of 10 epochs", 1));
}

#[test]
fn two_planted_causes_are_both_found() {
    let (h, r) = (hypotheses(6), references());
    let none = bleu(Tokenizer::None, Case::Lower);
    let published = score(&none, &split(&tokenise(&h)), &split(&tokenise(&r)));
    let found = explained(published, &bleu(Tokenizer::V13a, Case::Mixed), &[setting("", "", h)]);
    let causes: Vec<Cause> = found.parts.iter().flat_map(|part| part.causes.clone()).collect();
    assert!(causes.contains(&Cause::Case) && causes.contains(&Cause::CompoundSplitting), "{found:#?}");
    assert!(found.unexplained.abs() < 0.01);
}

#[test]
fn what_no_convention_explains_is_left_unexplained() {
    let h = hypotheses(6);
    let ours = bleu(Tokenizer::V13a, Case::Mixed);
    let measured = score(&ours, &h, &references());
    let settings = [setting("beam4", "mean", h)];
    // All conventions lie within a few points of each other, and none reaches a gap of ten points.
    let found = explained(measured - 30.0, &ours, &settings);
    assert!(found.unexplained > 15.0, "{found:#?}");
    let found = explained(measured, &ours, &settings);
    assert!(found.parts.is_empty() && found.unexplained.abs() < 0.01, "{found:#?}");
    let found = explained(measured + 0.04, &ours, &settings);
    assert!(found.parts.is_empty(), "a gap below the rounding is no gap: {found:#?}");
}

#[test]
fn noise_and_rivals_are_named() {
    let (h, references) = (hypotheses(6), [references()]);
    let ours = bleu(Tokenizer::V13a, Case::Mixed);
    let measured = score(&ours, &h, &references[0]);
    let settings = [setting("beam4", "mean", h)];
    let with = |sigma| {
        let question = Question {
            claimed: measured + 1.0,
            scorer: &ours,
            settings: &settings,
            references: &references,
            sigma,
        };
        explain(&question, None).unwrap()
    };
    assert_eq!(with(Some(0.3)).within_noise, None);
    assert!((with(Some(0.4)).within_noise.unwrap() - 1.1087).abs() < 1e-3);
    // Without a tokenizer there are no points with tokenised text.
    assert!(with(None).grid.scores.iter().all(|(point, _)| !point.text.tokenised));
    assert_eq!(with(None).grid.scores.len(), 8);
    // In text without hyphens, splitting makes no difference, and the simpler explanation is given.
    let plain = |lines: &[String]| -> Vec<String> { lines.iter().map(|l| l.replace('-', "")).collect() };
    let (h, references) = (plain(&settings[0].hypotheses), [plain(&references[0])]);
    let none = score(&bleu(Tokenizer::None, Case::Mixed), &h, &references[0]);
    let settings = [setting("beam4", "mean", h)];
    let question =
        Question { claimed: none, scorer: &ours, settings: &settings, references: &references, sigma: None };
    let found = explain(&question, None).unwrap();
    assert_eq!(found.parts.len(), 1, "{found:#?}");
    assert_eq!(found.parts[0].causes, [Cause::Tokenisation]);
}

#[test]
fn other_metrics_have_case_and_settings() {
    let (h, r) = (hypotheses(6), references());
    let chrf = |case| Scorer::new(Convention::Chrf(ChrfOptions { case, ..ChrfOptions::default() })).unwrap();
    let published = score(&chrf(Case::Lower), &h, &r);
    let found = explained(published, &chrf(Case::Mixed), &[setting("beam4", "mean", h.clone())]);
    assert_eq!(first(&found), (vec![Cause::Case], "lower-cased", "cased"));
    assert_eq!(found.grid.applicable, [Cause::Case, Cause::Search, Cause::Weights]);
    let short = [setting("beam4", "mean", h[1..].to_vec())];
    let scorer = chrf(Case::Mixed);
    let references = [r];
    let question =
        Question { claimed: 1.0, scorer: &scorer, settings: &short, references: &references, sigma: None };
    assert!(matches!(explain(&question, None), Err(ScoreError::LengthMismatch { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// For any claimed value, the sum of the parts is correct, and changes that do not help are
    /// never added to the explanation.
    #[test]
    fn the_table_always_adds_up(claimed in 0.0f64..100.0, every in 4usize..9, lower in any::<bool>()) {
        let case = if lower { Case::Lower } else { Case::Mixed };
        let settings = [
            setting("greedy", "last", hypotheses(every)),
            setting("beam4", "last", hypotheses(every + 1)),
            setting("beam4", "mean", hypotheses(every + 3)),
        ];
        let found = explained(claimed, &bleu(Tokenizer::Intl, case), &settings);
        let gap = (found.measured - found.claimed).abs();
        prop_assert!(found.unexplained.abs() <= gap + 1e-9);
        prop_assert!(found.parts.len() <= 5);
    }
}

#[test]
fn a_cause_that_does_not_apply_to_the_metric_or_the_task_is_left_out() {
    let scorer = Scorer::from_signature("metric:accuracy|nrefs:1|top:1|classes:3|ties:first").unwrap();
    let answers = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let references = [answers("0 1 2 0")];
    let of = |searches: [&str; 2]| {
        let settings = [
            setting(searches[0], "mean", answers("0 1 2 2")),
            setting(searches[1], "last", answers("0 1 0 2")),
        ];
        let question = Question {
            claimed: 75.0,
            scorer: &scorer,
            settings: &settings,
            references: &references,
            sigma: None,
        };
        explain(&question, None).unwrap()
    };
    // Answers of a classifier have neither tokens nor case nor searches: one point for each
    // weights.
    let found = of(["direct", "direct"]);
    assert_eq!(found.grid.applicable, [Cause::Weights]);
    assert_eq!(found.grid.scores.iter().map(|(_, score)| *score).collect::<Vec<_>>(), [75.0, 50.0]);
    assert_eq!((found.measured_as.as_str(), found.rivals.len()), ("mean", 0));
    assert_eq!(of(["greedy", "beam"]).grid.applicable, [Cause::Search, Cause::Weights]);
    let words =
        explained(10.0, &bleu(Tokenizer::V13a, Case::Mixed), &[setting("beam4", "mean", hypotheses(6))]);
    assert_eq!(words.grid.applicable, Cause::ALL);
}
