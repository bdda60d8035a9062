//! The systems of WMT17 English to German, compared with the scores of sacreBLEU 2.6.0 and Moses.
//! Requires the folder given by `ZOO_PARITY` (`bleu_wmt17_en_de/`: `ref.de.xz`, `systems/*.txt.xz`,
//! `expected.tsv`).

use crate::bleu;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use zoo_results::metrics::{
    Resampling, ScoreOptions, Scorer, SegmentStatistics, paired_bootstrap, paired_gain, score,
};

const BLEU: &str = "nrefs:1|eval:newstest2017|case:mixed|eff:no|tok:13a|smooth:exp";
const INTL: &str = "nrefs:1|eval:newstest2017|case:mixed|eff:no|tok:intl|smooth:exp";
const CHRF: &str = "nrefs:1|eval:newstest2017|case:mixed|eff:yes|nc:6|nw:0|space:no";
/// Smoothing as in chrF++.py.
const CHRFPP: &str = "nrefs:1|eval:newstest2017|case:mixed|eff:no|nc:6|nw:2|space:no";
const TER: &str = "nrefs:1|eval:newstest2017|case:lc|tok:tercom|norm:no|punct:yes|asian:no";

fn folder() -> Option<PathBuf> {
    let found = std::env::var_os("ZOO_PARITY").map(|root| PathBuf::from(root).join("bleu_wmt17_en_de"));
    if found.is_none() {
        eprintln!("skipped: ZOO_PARITY is not set");
    }
    found
}

fn lines(path: &Path) -> Vec<String> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    lzma_rs::xz_decompress(&mut std::io::BufReader::new(file), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_string).collect()
}

struct Row {
    columns: BTreeMap<String, String>,
    hypotheses: Vec<String>,
}

fn load(folder: &Path) -> (Vec<Vec<String>>, Vec<Row>) {
    let references = vec![lines(&folder.join("ref.de.xz"))];
    let table = std::fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let mut rows = table.lines().map(|line| line.split('\t').map(str::to_string));
    let header: Vec<String> = rows.next().unwrap().collect();
    let rows: Vec<Row> = rows
        .map(|cells| {
            let columns: BTreeMap<String, String> = header.iter().cloned().zip(cells).collect();
            let hypotheses = lines(&folder.join("systems").join(format!("{}.txt.xz", columns["system"])));
            Row { columns, hypotheses }
        })
        .collect();
    assert!(rows.len() >= 8);
    (references, rows)
}

/// Whether the value equals the cell to the last printed digit; an empty cell was not measured.
fn expect(row: &Row, column: &str, value: f64) -> bool {
    let cell = &row.columns[column];
    if cell.is_empty() {
        return false;
    }
    let digits = cell.split_once('.').map_or(0, |(_, d)| d.len());
    assert_eq!(&format!("{value:.digits$}"), cell, "{column} of {}", row.columns["system"]);
    true
}

#[test]
fn every_system_to_the_last_printed_digit() {
    let Some(folder) = folder() else { return };
    let (references, rows) = load(&folder);
    let mut compared = 0;
    for row in &rows {
        let value = |signature: &str| {
            let options =
                ScoreOptions { scorer: Scorer::from_signature(signature).unwrap(), resampling: None };
            score(&row.hypotheses, &references, &options).unwrap().value
        };
        let bleu = value(BLEU);
        let (chrf, ter) = (value(CHRF), value(TER));
        for (column, found) in [
            ("sacrebleu260_bleu13a", bleu),
            ("sacrebleu260_chrf", chrf),
            ("sacrebleu260_ter", ter),
            ("bleu_mteval14_intl", value(INTL)),
            ("chrf_nw0", value(&CHRFPP.replace("nw:2", "nw:0"))),
            ("chrfpp_nw2", value(CHRFPP)),
        ] {
            compared += usize::from(expect(row, column, found));
        }
        // mteval-v13a omits trailing zeros.
        let mteval: f64 = row.columns["bleu_mteval13a"].parse().unwrap();
        assert_eq!(format!("{bleu:.2}").parse::<f64>().unwrap(), mteval);

        let scorer = Scorer::from_signature(BLEU).unwrap();
        let detail = bleu::detail(&scorer, &row.hypotheses, &references).unwrap();
        let printed = format!("BLEU = {:.4} {}", detail.score, detail.verbose());
        assert_eq!(printed, row.columns["sacrebleu260_verbose"]);
    }
    assert!(compared >= 3 * rows.len(), "{compared}");
    eprintln!("{} systems, {compared} numbers equal", rows.len());
}

/// sacreBLEU 2.6.0, NumPy 2.4: p-value against the first system, mean and half-width of the
/// interval, from `PairedTest(systems, {"BLEU": BLEU()}, [reference], test_type="bs",
/// n_samples=1000)`.
const PAIRED: [(&str, f64, f64, f64); 8] = [
    ("newstest2017.LIUM-NMT.4900.en-de", 1.0, 26.599396007541003, 0.6482889830520566),
    ("newstest2017.C-3MA.4959.en-de", 0.000999000999000999, 22.66883172053885, 0.5980700705851518),
    ("newstest2017.FBK.4870.en-de", 0.0979020979020979, 26.321809022164633, 0.6550781007752402),
    ("newstest2017.KIT.4950.en-de", 0.011988011988011988, 26.076321998569867, 0.6667205894986648),
    ("newstest2017.online-A.0.en-de", 0.000999000999000999, 20.785723219155578, 0.6091675195736688),
    ("newstest2017.PROMT-Rule-based.4735.en-de", 0.000999000999000999, 16.60552103543142, 0.5256098630672152),
    ("newstest2017.SYSTRAN.4847.en-de", 0.21178821178821178, 26.705446783508563, 0.6643502880957186),
    ("newstest2017.uedin-nmt.4722.en-de", 0.000999000999000999, 28.308342343788475, 0.6819717191359622),
];

/// The p-values and intervals are equal, and the bounds of the gain agree with them on
/// significance.
#[test]
fn paired_tests_are_sacrebleus() {
    let Some(folder) = folder() else { return };
    let (references, rows) = load(&folder);
    let scorer = Scorer::from_signature(BLEU).unwrap();
    let statistics: Vec<SegmentStatistics> =
        rows.iter().map(|row| scorer.statistics(&row.hypotheses, &references).unwrap()).collect();
    assert_eq!(rows.len(), PAIRED.len());
    let (first, start) = (&statistics[0], Instant::now());
    for ((row, system), (name, p, mean, half_width)) in rows.iter().zip(&statistics).zip(PAIRED) {
        assert_eq!(row.columns["system"], name);
        let test = paired_bootstrap(first, system, Resampling::default()).unwrap();
        let interval = test.system_interval;
        let error = (interval.mean - mean).abs().max((interval.half_width - half_width).abs());
        assert!(error < 1e-9, "{name}: {interval}");
        if name == PAIRED[0].0 {
            continue;
        }
        assert!((test.p_value - p).abs() < 1e-12, "{name}: {}", test.p_value);
        let gain = paired_gain(&[(first, system)], Resampling::default()).unwrap();
        let (lower, upper) = (gain.lower_bound(0.975).unwrap(), gain.upper_bound(0.975).unwrap());
        eprintln!("{name}: gain {:+.2} [{lower:+.2}, {upper:+.2}], p {p:.4}", gain.observed);
        assert_eq!(lower > 0.0 || upper < 0.0, p < 0.05, "{name}");
        assert!((gain.observed - (test.system - test.baseline)).abs() < 1e-12);
    }
    eprintln!("{} paired tests and gains in {:.2?}", rows.len() - 1, start.elapsed());
}
