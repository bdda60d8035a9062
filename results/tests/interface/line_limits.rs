//! Limits on the cost of one line, for every metric that has one.

use zoo_results::metrics::{
    BleuOptions, Case, ChrfOptions, Convention, ErrorRateOptions, ErrorUnit, Scorer, TerOptions, Whitespace,
};

fn refused(convention: Convention, hypothesis: &str, reference: &str) -> String {
    let lines = |text: &str| vec!["a".to_owned(), text.to_owned()];
    let scorer = Scorer::new(convention).unwrap();
    scorer.statistics(&lines(hypothesis), &[lines(reference)]).unwrap_err().to_string()
}

#[test]
fn the_line_that_costs_too_much_is_named_and_not_scored() {
    // Ten million bytes without a line feed.
    let long = "word ".repeat(2_000_000);
    let (case, whitespace) = (Case::Mixed, Whitespace::default());
    let rates = |unit| Convention::ErrorRate(ErrorRateOptions { unit, case, whitespace });
    let other = "x ".repeat(5_000_000);
    for (convention, words) in [
        (Convention::Bleu(BleuOptions::default()), "10000000 characters, and the limit of bleu is 500000"),
        (Convention::Chrf(ChrfOptions::default()), "10000000 characters, and the limit of chrf is 100000"),
        (Convention::Ter(TerOptions::default()), "2000000 words, and the limit of ter is 20000"),
    ] {
        let said = refused(convention, &long, "a");
        assert!(said.starts_with(&format!("line 2 of the hypotheses: {words}")), "{said}");
        let said = refused(convention, "a", &long);
        assert!(said.starts_with(&format!("line 2 of reference stream 1: {words}")), "{said}");
    }
    let said = refused(rates(ErrorUnit::Word), &long, &other);
    assert!(said.contains("2000000 words to be aligned with 5000000 of the reference"), "{said}");
    let said = refused(rates(ErrorUnit::Character), &long, &other);
    assert!(said.contains("9999999 characters to be aligned with 9999999"), "{said}");
}
