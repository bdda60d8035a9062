use super::super::contract::Source;
use super::super::scoring::Signature;
use super::*;

/// Options of every kind, as signatures that state them.
const SIGNATURES: [&str; 18] = [
    "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
    "nrefs:1|case:mixed|eff:no|tok:none|smooth:none|impl:fairseq",
    "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no",
    "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no",
    "metric:wer|nrefs:1|case:lc|space:collapse|align:jiwer",
    "metric:cer|nrefs:1|case:lc|space:collapse|align:jiwer",
    "metric:exact-match|nrefs:1|case:lc",
    "metric:mcd|cep:1-13|dct:ortho|dtw:yes|mel:80|mean:utterance",
    "metric:mel-error|mel:80|mean:frame",
    "metric:accuracy|nrefs:1|top:5|classes:10|ties:first",
    "metric:error|nrefs:1|top:1|classes:10|ties:first",
    "metric:f1|nrefs:1|average:macro|classes:10|ties:first",
    "metric:loss|of:nll|unit:example",
    "metric:perplexity|unit:token|unk:none|end:yes|state:reset",
    "metric:bits-per-character|unit:byte|unk:none|end:yes|state:carried",
    "metric:train-loss|of:objective|unit:token|over:epoch|mean:unit",
    "metric:train-perplexity|unit:token|over:epoch|mean:unit",
    "metric:train-accuracy|top:1|unit:example|over:epoch|mean:unit",
];

#[test]
fn each_name_is_listed_once_and_found_whatever_its_capitals() {
    for (at, metric) in METRICS.iter().enumerate() {
        assert!(METRICS[..at].iter().all(|other| other.name != metric.name), "{metric}");
        assert_eq!(Entry::find(&metric.name.to_uppercase()), Some(*metric));
    }
    assert_eq!(Entry::find("bleu-4"), None);
    assert!(Entry::with_signature("blue").unwrap_err().to_string().contains("did you mean `bleu`?"));
}

#[test]
fn options_are_of_a_listed_metric_and_every_metric_with_a_path_has_options() {
    let of: Vec<Convention> =
        SIGNATURES.iter().map(|text| Signature::parse(text).unwrap().convention).collect();
    for convention in &of {
        let entry = convention.entry();
        assert!(std::ptr::eq(Entry::find(entry.name).unwrap(), entry), "{entry}");
        let trained = matches!(entry.path, Path::Trained);
        assert_eq!(convention.metric().source() == Source::Training, trained, "{entry}");
    }
    for metric in METRICS {
        let judged = !matches!(metric.path, Path::Timed { .. } | Path::Unjudged(_) | Path::ScoredAs(..));
        assert_eq!(
            of.iter().any(|convention| metric.takes(convention)),
            judged
                || metric.name == "top5"
                || matches!(metric.name, "valid-loss" | "valid-perplexity" | "ppl"),
            "{metric}"
        );
    }
}

#[test]
fn another_name_takes_only_the_options_that_it_stands_for() {
    let of = |text: &str| Signature::parse(text).unwrap().convention;
    let (one, five) = (
        of("metric:accuracy|nrefs:1|top:1|classes:10|ties:first"),
        of("metric:accuracy|nrefs:1|top:5|classes:10|ties:first"),
    );
    let takes = |name: &str, convention| Entry::find(name).unwrap().takes(convention);
    assert!(takes("top1", &one) && !takes("top1", &five) && takes("top5", &five));
    assert!(takes("accuracy", &five) && !takes("error", &five) && !takes("bleu", &one));
}
