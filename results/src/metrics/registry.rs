//! The registry: the options of every metric, and every name that a claim may use. A new metric
//! needs a file in its family's folder, a line in [`Convention`] and a line in [`METRICS`].

use super::audio::{self, CepstralOptions, MelErrorOptions};
use super::classification::{self, AccuracyOptions};
use super::edit::{self, ErrorRateOptions};
use super::entry::Entry;
use super::error::ScoreError;
use super::likelihood::{self, LikelihoodOptions, ObjectiveOptions};
use super::metric::Metric;
use super::speed;
use super::text::{self, BleuOptions, ChrfOptions, ExactMatchOptions, TerOptions, TokenisedBleuOptions};
use super::training::{self, TrainingOptions};

/// Defines the enum of all options and the conversion to the metric they belong to.
macro_rules! conventions {
    ($($(#[$words:meta])* $name:ident($options:ty),)*) => {
        /// A metric and every option that changes its value.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum Convention {
            $($(#[$words])* $name($options),)*
        }

        impl Convention {
            /// The metric that the options belong to.
            pub fn metric(&self) -> &dyn Metric {
                match self {
                    $(Self::$name(options) => options,)*
                }
            }
        }

        $(impl From<$options> for Convention {
            fn from(options: $options) -> Self {
                Self::$name(options)
            }
        })*
    };
}

conventions! {
    /// BLEU as sacreBLEU computes it.
    Bleu(BleuOptions),
    /// BLEU as multi-bleu or fairseq computes it.
    TokenisedBleu(TokenisedBleuOptions),
    /// chrF as sacreBLEU computes it.
    Chrf(ChrfOptions),
    /// TER as sacreBLEU computes it.
    Ter(TerOptions),
    /// Word or character error rate, as jiwer computes it.
    ErrorRate(ErrorRateOptions),
    /// Share of hypotheses that equal a reference after runs of white space are collapsed.
    ExactMatch(ExactMatchOptions),
    /// Mel-cepstral distortion of log-mel spectrograms.
    MelCepstral(CepstralOptions),
    /// Mean squared error of log-mel spectrograms.
    MelError(MelErrorOptions),
    /// Share of a classifier's answers that are right, or wrong.
    Accuracy(AccuracyOptions),
    /// Loss, perplexity or bits per character of a likelihood.
    Likelihood(LikelihoodOptions),
    /// Mean of a recipe's objective on an evaluation set.
    Objective(ObjectiveOptions),
    /// Mean of a term over the last updates of training.
    Training(TrainingOptions),
}

/// All metrics, in the order in which they are listed.
pub static METRICS: &[&Entry] = &[
    &text::bleu::BLEU,
    &text::chrf::CHRF,
    &text::ter::TER,
    &edit::WER,
    &edit::CER,
    &text::exact_match::EXACT_MATCH,
    &audio::MEL_ERROR,
    &audio::MCD,
    &speed::UPDATES_PER_SECOND,
    &speed::TOKENS_PER_SECOND,
    &speed::TARGET_TOKENS_PER_SECOND,
    &speed::SENTENCES_PER_SECOND,
    &speed::UTTERANCES_PER_SECOND,
    &speed::MEL_FRAMES_PER_SECOND,
    &speed::TIME_TO_TRAIN,
    &likelihood::LOSS,
    &training::TRAIN_LOSS,
    &likelihood::VALID_LOSS,
    &likelihood::PERPLEXITY,
    &likelihood::PPL,
    &training::TRAIN_PERPLEXITY,
    &likelihood::VALID_PERPLEXITY,
    &likelihood::BITS_PER_CHARACTER,
    &speed::BATCH,
    &speed::UTTERANCES_A_GPU,
    &speed::MEMORY,
    &classification::ACCURACY,
    &classification::TOP1,
    &classification::TOP5,
    &classification::ERROR,
    &training::TRAIN_ACCURACY,
    &text::chrf::CHRF2,
    &audio::MOS,
    &speed::SCALING_EFFICIENCY,
    &speed::LATENCY_MS,
];

impl Convention {
    /// Name, unit and direction of the metric.
    pub fn entry(&self) -> &'static Entry {
        self.metric().entry()
    }

    /// Checks the options and rejects invalid ones.
    ///
    /// # Errors
    /// The option, its value and its range.
    pub fn check(&self) -> Result<(), ScoreError> {
        self.metric().check()
    }
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::Arithmetic;
    use super::super::entry::Path;
    use super::super::metric::{Reading, Source};
    use super::super::rows::{Drawn, Rows};
    use super::super::signature::Signature;
    use super::*;

    /// Options of every kind, as signatures that state them.
    const SIGNATURES: [&str; 17] = [
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
            let trained = matches!(entry.path, Path::Trained(_));
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

    /// Average precision: the mean over the right detections, in order of decreasing score, of the
    /// share of right detections so far.
    #[derive(Debug)]
    struct AveragePrecision;

    impl Metric for AveragePrecision {
        fn entry(&self) -> &'static Entry {
            &text::bleu::BLEU
        }

        fn parts(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }

        fn source(&self) -> Source {
            Source::Record
        }

        fn read(&self, records: &[String], _: &[Vec<String>]) -> Result<Reading, ScoreError> {
            let numbers = |line: &String| line.split(' ').filter_map(|word| word.parse().ok()).collect();
            Ok(Rows::ragged(records.iter().map(numbers)).into())
        }

        fn value(&self, drawn: Drawn<'_>) -> f64 {
            let mut found: Vec<(f64, f64)> =
                drawn.rows().flat_map(|row| row.chunks_exact(2).map(|pair| (pair[0], pair[1]))).collect();
            found.sort_by(|one, other| other.0.total_cmp(&one.0));
            let (mut right, mut sum) = (0.0, 0.0);
            for (place, (_, hit)) in (1..).zip(&found) {
                right += hit;
                sum += hit * right / f64::from(place);
            }
            if right > 0.0 { 100.0 * sum / right } else { 0.0 }
        }
    }

    #[test]
    fn a_metric_that_is_no_sum_is_computed_of_the_rows_that_were_drawn() {
        // Three images with three, zero and one detections; each detection is a score and a hit.
        let records = ["0.9 1 0.5 0 0.3 1", "", "0.7 0"].map(str::to_owned);
        let rows = AveragePrecision.read(&records, &[]).unwrap().rows;
        let mut sums = Vec::new();
        // In order of score: right, wrong, wrong, right.
        assert_eq!(AveragePrecision.value(Drawn::all(&rows, &mut sums)), 100.0 * (1.0 + 0.5) / 2.0);
        let of = Drawn::of(&rows, &[0, 0], Arithmetic::Double, &mut sums);
        // Right twice, wrong twice, right twice.
        assert_eq!(AveragePrecision.value(of), 100.0 * (1.0 + 1.0 + 3.0 / 5.0 + 4.0 / 6.0) / 4.0);
        assert_eq!(AveragePrecision.value(Drawn::of(&rows, &[1, 2], Arithmetic::Double, &mut sums)), 0.0);
    }
}
