//! Regression checks: false alarms have the stated rate, known losses are detected, and results
//! that are not comparable are not compared.

use crate::draws;

use draws::Draws;
use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::ledger::{HypothesesFile, Judgement, Record, RunEnd, ScoreRecord};
use zoo_results::regress::{Check, Limits, Place, Row, annotations, compare, junit, ratios, summary};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Interval, Outcome, Precision, Rules, RunScore, SpeedEvidence};

const SIGNATURE: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

fn claim(sigma: Option<f64>) -> ClaimSpec {
    serde_json::from_value(json!({"kind": "value", "metric": "bleu", "signature": SIGNATURE, "eval": "test",
        "decode": "beam4", "arm": "any", "value": 27.0, "direction": "higher", "assumed_sigma": sigma, "margin": 0.5,
        "source": "synthetic"}))
    .unwrap()
}

/// A record of these scores in one arm, with consecutive seeds starting at `first`.
fn record(arm: &str, scores: &[f64], first: u64, sigma: Option<f64>) -> Record {
    let seeds: Vec<u64> = (first..first + scores.len() as u64).collect();
    let runs = seeds.iter().zip(scores).map(|(seed, score)| RunScore::scored(*seed, *score)).collect();
    let evidence = Evidence {
        rules: Rules::First,
        arm: Some(arm.into()),
        eval: Some("test".into()),
        decode: Some("beam4".into()),
        signature: Some(SIGNATURE.into()),
        runs,
        plan: LookPlan::fixed(scores.len() as u32),
        precision: (arm == "mixed").then_some(Precision::Fp16),
        ..Evidence::default()
    };
    let score = |(seed, value): (&u64, &f64)| ScoreRecord {
        eval: "test".into(),
        decode: "beam4".into(),
        arm: arm.into(),
        seed: *seed,
        moment: None,
        metric: "bleu".into(),
        signature: format!("{SIGNATURE}|version:2.6.0"),
        value: *value,
        interval: None,
        hypotheses: Some(HypothesesFile { path: "x".into(), sha256: format!("{value}") }),
    };
    Record {
        recipe: "synthetic".into(),
        recipe_hash: "ab".repeat(32),
        device: Some("cpu".into()),
        hardware: Some("a processor".into()),
        end: RunEnd::Finished,
        scores: seeds.iter().zip(scores).map(score).collect(),
        seeds,
        judgements: vec![Judgement::of(claim(sigma), evidence)],
        ..Record::default()
    }
}

fn of(rows: &[Row], check: Check) -> Vec<&Row> {
    rows.iter().filter(|row| row.check == check).collect()
}

/// Share of calls that raise an alarm in any quality comparison, for systems that did not change.
fn alarms(arms: usize, n: usize, m: usize, sigma: Option<f64>, rate: f64, seed: u64) -> f64 {
    const CALLS: u32 = 20_000;
    let mut draws = Draws::new(seed);
    let names = ["a", "b", "c", "d"];
    let limits = Limits { alarm_rate: rate, ..Limits::default() };
    let mut alarmed = 0;
    for _ in 0..CALLS {
        let mut drawn =
            |count: usize| -> Vec<f64> { (0..count).map(|_| 27.0 + 0.3 * draws.normal()).collect() };
        // The seeds differ from the recorded ones, so nothing is paired.
        let ours: Vec<Record> = (0..arms).map(|i| record(names[i], &drawn(n), 100, sigma)).collect();
        let recorded: Vec<Record> = (0..arms).map(|i| record(names[i], &drawn(m), 1, sigma)).collect();
        let rows = compare(&ours.iter().collect::<Vec<_>>(), &recorded.iter().collect::<Vec<_>>(), &limits);
        let quality = of(&rows, Check::Quality);
        assert_eq!(quality.len(), arms);
        alarmed += u32::from(quality.iter().any(|row| row.outcome == Outcome::NotReproduced));
    }
    f64::from(alarmed) / f64::from(CALLS)
}

#[test]
fn without_a_change_alarms_come_at_the_stated_rate() {
    let mut rows = String::new();
    for (what, arms, n, m, sigma, rate, seed) in [
        ("sigma stated", 1, 1, 1, Some(0.3), 0.05, 1),
        ("sigma stated", 1, 1, 3, Some(0.3), 0.05, 2),
        ("sigma stated", 4, 1, 1, Some(0.3), 0.05, 3),
        ("sigma stated", 1, 1, 3, Some(0.3), 0.01, 4),
        ("sigma of the samples", 1, 3, 3, None, 0.05, 5),
        ("sigma of the samples", 2, 1, 5, None, 0.05, 6),
    ] {
        let found = alarms(arms, n, m, sigma, rate, seed);
        // Three standard errors of a share of 5 % in 20,000.
        assert!((found - rate).abs() < 0.005, "{what}, {n} against {m}: {found}");
        let (stated, found) = (100.0 * rate, 100.0 * found);
        rows.push_str(&format!("| {what} | {arms} | {n} against {m} | {stated:.0} % | {found:.1} % |\n"));
    }
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/regressions.md")).unwrap();
    assert!(page.contains(&rows), "put this into docs/regressions.md:\n{rows}");
}

#[test]
fn a_planted_loss_of_two_points_turns_red() {
    let recorded = record("mixed", &[27.1, 27.3, 26.9], 1, Some(0.3));
    let ours = record("mixed", &[25.1], 1, Some(0.3));
    let rows = compare(&[&ours], &[&recorded], &Limits::default());
    let row = of(&rows, Check::Quality)[0];
    assert_eq!((row.outcome, row.standing.as_str()), (Outcome::NotReproduced, "WORSE"), "{row:?}");
    assert!((row.expected.unwrap() - 27.1).abs() < 1e-9 && row.measured == Some(25.1), "{row:?}");
    // The comparison with the published value fails too, once several seeds show their own spread.
    // A sigma that was not measured settles nothing on its own.
    assert_eq!(of(&rows, Check::Target)[0].outcome, Outcome::Inconclusive);
    let three =
        compare(&[&record("mixed", &[25.1, 25.0, 25.2], 1, Some(0.3))], &[&recorded], &Limits::default());
    assert_eq!(of(&three, Check::Target)[0].outcome, Outcome::NotReproduced);
    // A tenth is noise, and a gain of two points is not an alarm.
    for (score, standing) in [(27.0, "within noise"), (29.1, "better")] {
        let rows = compare(&[&record("mixed", &[score], 9, Some(0.3))], &[&recorded], &Limits::default());
        let row = of(&rows, Check::Quality)[0];
        assert_eq!((row.outcome, row.standing.as_str()), (Outcome::Reproduced, standing));
    }
    // If lower is better, the sign is reversed.
    let rate = |score: f64| {
        let mut record = record("mixed", &[score], 1, Some(0.3));
        record.scores[0].metric = "ter".into();
        record.judgements[0].claim.direction = Some(zoo_recipes::Direction::Lower);
        record
    };
    let rows = compare(&[&rate(52.0)], &[&rate(50.0)], &Limits::default());
    assert_eq!(of(&rows, Check::Quality)[0].standing, "WORSE");
}

#[test]
fn the_same_hypotheses_never_alarm_and_do_not_use_the_rate_up() {
    let recorded = record("fp32", &[27.1, 27.3], 1, Some(0.3));
    let mut ours = record("fp32", &[27.1], 1, Some(0.3));
    ours.time = "later".into();
    let rows = compare(&[&ours], &[&recorded], &Limits::default());
    assert_eq!(of(&rows, Check::Quality)[0].standing, "unchanged");
    // A single changed arm among unchanged ones gets the whole rate.
    let both = |score: f64| {
        let (one, two) = (record("a", &[score], 1, Some(0.3)), record("b", &[26.0], 1, Some(0.3)));
        Record { scores: [one.scores.clone(), two.scores].concat(), ..one }
    };
    let threshold = |rows: &[Row], arm: &str| {
        let quality = of(rows, Check::Quality);
        let row = quality.iter().find(|row| row.subject.ends_with(arm)).unwrap();
        row.explanation.clone()
    };
    let rows = compare(&[&both(27.2)], &[&both(27.1)], &Limits::default());
    // Threshold: 1.645 sqrt(2) 0.3.
    assert!(threshold(&rows, "a").contains("more than 0.698"), "{}", threshold(&rows, "a"));
    // A record is not compared with itself.
    let rows = compare(&[&recorded], &[&recorded], &Limits::default());
    let row = of(&rows, Check::Quality)[0];
    assert_eq!(row.standing, "no baseline");
    assert!(row.explanation.contains("this run itself"), "{}", row.explanation);
}

#[test]
fn unlike_records_are_no_baseline_and_say_why() {
    let ours = record("fp32", &[27.1], 7, Some(0.3));
    let why = |change: &dyn Fn(&mut Record), limits: &Limits| {
        let mut recorded = record("fp32", &[27.2], 1, Some(0.3));
        change(&mut recorded);
        let rows = compare(&[&ours], &[&recorded], limits);
        let row = of(&rows, Check::Quality)[0].clone();
        assert_eq!(row.outcome, Outcome::NotComparable, "{row:?}");
        row.explanation
    };
    let strict = Limits::default();
    assert!(why(&|r| r.recipe = "other".into(), &strict).contains("there is no earlier record"));
    assert!(why(&|r| r.tier = Some("smoke".into()), &strict).contains("there is no earlier record"));
    assert!(why(&|r| r.end = RunEnd::Failed, &strict).contains("there is no earlier record"));
    assert!(
        why(&|r| r.overrides = [("a".into(), "b".into())].into(), &strict)
            .contains("there is no earlier record")
    );
    assert!(why(&|r| r.recipe_hash = "cd".repeat(32), &strict).contains("only other versions"));
    assert!(why(&|r| r.hardware = Some("another".into()), &strict).contains("no record on a processor"));
    assert!(why(&|r| r.scores[0].eval = "dev".into(), &strict).contains("this score was not recorded"));
    let tokens = |r: &mut Record| r.scores[0].signature = SIGNATURE.replace("13a", "intl");
    assert!(why(&tokens, &strict).contains("this score was not recorded"));
    let mut elsewhere = record("fp32", &[27.2], 1, Some(0.3));
    elsewhere.hardware = Some("another".into());
    let rows = compare(&[&ours], &[&elsewhere], &Limits { any_device: true, ..strict });
    assert_eq!(of(&rows, Check::Quality)[0].standing, "within noise");
    // Without any spread nothing can be concluded.
    let rows = compare(&[&record("a", &[20.0], 2, None)], &[&record("a", &[27.0], 1, None)], &strict);
    assert_eq!(of(&rows, Check::Quality)[0].outcome, Outcome::Inconclusive);
}

/// A record of both arms, with seconds per update.
fn timed(seconds: &[(f64, f64)], emulated: bool) -> Record {
    let mut record = record("mixed", &[27.0], 1, Some(0.3));
    record.seeds = (1..=seconds.len() as u64).collect();
    for (seed, (fp32, mixed)) in (1..).zip(seconds) {
        for (arm, seconds, updates) in [("fp32", fp32, 800), ("mixed", mixed, 400)] {
            record.durations.insert(format!("train {arm} seed {seed}"), seconds * f64::from(updates));
            record.notes.push(format!("{arm} seed {seed}: {updates} updates, 5 epochs, 0 skipped"));
        }
    }
    let mixed = if emulated { "emulated bf16" } else { "bf16" };
    record.precision =
        [("fp32".to_owned(), "fp32".to_owned()), ("mixed".to_owned(), mixed.to_owned())].into();
    record
}

#[test]
fn speed_is_a_ratio_within_one_run() {
    let found = ratios(&timed(&[(2.0, 1.0), (4.0, 2.0)], false));
    assert_eq!((found.len(), found[0].logs.len()), (1, 2));
    assert!((found[0].value() - 2.0).abs() < 1e-9);
    let standing = |ours: &[(f64, f64)], recorded: &[(f64, f64)], emulated| {
        let rows = compare(&[&timed(ours, emulated)], &[&timed(recorded, emulated)], &Limits::default());
        let row = of(&rows, Check::Speed)[0].clone();
        (row.outcome, row.standing, row.explanation)
    };
    // A machine of half the speed is not a regression; an arm that lost a third of its advantage
    // is.
    let steady = &[(2.0, 1.0), (2.02, 1.0), (1.98, 1.0)];
    assert_eq!(standing(&[(4.0, 2.01), (4.0, 2.0), (4.0, 1.98)], steady, false).1, "as before");
    let slower = standing(&[(2.0, 1.5), (2.0, 1.49), (2.0, 1.51)], steady, false);
    assert_eq!((slower.0, slower.1.as_str()), (Outcome::NotReproduced, "SLOWER"), "{}", slower.2);
    assert!(slower.2.contains("-33 %"), "{}", slower.2);
    // Timings with a large spread raise no alarm for the same mean.
    let noisy = standing(&[(2.0, 1.5), (2.0, 0.5), (2.0, 3.0)], &[(2.0, 1.0), (2.0, 0.4), (2.0, 2.5)], false);
    assert_eq!(noisy.1, "as before", "{}", noisy.2);
    // A single timing has no measurable spread, so it cannot raise an alarm. A fall by twice the
    // tolerance is undecided.
    assert_eq!(standing(&[(2.0, 1.15)], &[(2.0, 1.0)], false).1, "as before");
    assert_eq!(standing(&[(2.0, 1.30)], &[(2.0, 1.0)], false).0, Outcome::Inconclusive);
    // Runs of a few seconds are too short to time.
    assert!(ratios(&timed(&[(0.1, 0.1), (0.1, 0.1)], false)).is_empty());
    assert_eq!(standing(&[(2.0, 9.0)], &[(2.0, 1.0)], true).0, Outcome::NotComparable);
    // Timings in alternating blocks, if there are any, replace training times.
    let blocks = |ratio: f64| {
        let mut record = timed(&[(1.0, 1.0)], false);
        let evidence = &mut record.judgements[0].evidence;
        evidence.baseline = Some("fp32".into());
        evidence.speed = Some(SpeedEvidence {
            ratio,
            interval: Interval { low: ratio * 0.98, high: ratio * 1.02, level: 0.9 },
            protocol: zoo_recipes::RatioProtocol::EqualBatch,
            batch: 64,
            baseline_batch: 64,
        });
        record
    };
    let rows = compare(&[&blocks(1.2)], &[&blocks(1.5)], &Limits::default());
    assert_eq!(of(&rows, Check::Speed)[0].standing, "SLOWER");
    let rows = compare(&[&blocks(1.45)], &[&blocks(1.5)], &Limits::default());
    assert_eq!(of(&rows, Check::Speed)[0].standing, "as before");
}

#[test]
fn files_for_machines() {
    let recorded = record("mixed", &[27.1, 27.3, 26.9], 1, Some(0.3));
    let mut rows = compare(&[&record("mixed", &[25.1], 8, Some(0.3))], &[&recorded], &Limits::default());
    rows.extend(compare(&[&record("fp32", &[25.1], 8, Some(0.3))], &[&recorded], &Limits::default()));
    for row in &mut rows {
        row.place = Some(Place { file: "recipes/catalog/translation/a,b.toml".into(), line: 12 });
    }
    let said = annotations(&rows);
    let first = said.lines().find(|line| line.contains("quality")).unwrap();
    assert!(
        first.starts_with("::error file=recipes/catalog/translation/a%2Cb.toml,line=12,title=synthetic%3A quality bleu test beam4 mixed is WORSE::2.0"),
        "{first}"
    );
    assert_eq!(said.lines().count(), 3, "{said}");
    let xml = junit(&rows);
    assert!(
        xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"zoo regress\">\n")
    );
    assert!(xml.contains("skipped=\"1\"") && xml.contains("type=\"WORSE\"/></testcase>"), "{xml}");
    assert!(xml.contains(" file=\"recipes/catalog/translation/a,b.toml\" line=\"12\">"), "{xml}");
    let open = xml.matches("<testcase").count();
    assert_eq!(open, xml.matches("</testcase>").count() + xml.matches("line=\"12\"/>").count());
    assert!(summary(&rows).contains("| synthetic | quality |  | bleu test beam4 mixed |"));
}

#[test]
fn targets_of_unlike_statements_are_in_suites_of_their_own() {
    let mut ours = record("mixed", &[27.1], 1, Some(0.3));
    let mut check = ours.judgements[0].clone();
    check.claim.own = Some("a check".to_owned());
    check.claim.kind = zoo_recipes::ClaimKind::Relation;
    ours.judgements.push(check);
    let rows = compare(&[&ours], &[], &Limits::default());
    let targets = of(&rows, Check::Target);
    assert_eq!(
        targets.iter().map(|row| row.statement.unwrap().name()).collect::<Vec<_>>(),
        ["published", "own"]
    );
    // A claim that no code can judge is reported as such.
    assert_eq!(targets[1].standing, "NOT JUDGEABLE");
    let xml = junit(&rows);
    for suite in ["synthetic, published claims", "synthetic, own checks", "synthetic"] {
        let of_suite = format!("<testsuite name=\"{suite}\" tests=\"1\"");
        assert!(xml.contains(&of_suite), "{of_suite}\n{xml}");
    }
    assert!(xml.contains("NOT JUDGEABLE: no code compares two recipes yet"), "{xml}");
}
