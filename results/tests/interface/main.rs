//! Tests of the crate's public functions: metrics, verdicts, ledgers and pages.
//!
//! They are one program, because every program takes seconds to link.

mod account;
mod bleu;
mod bundle;
mod circles;
mod classification_goldens;
mod classified_verdicts;
mod documentation;
mod draws;
mod error_rates;
mod error_rates_of_bounds;
mod explanations;
mod forging;
mod judgeable;
mod ledger;
mod line_limits;
mod mel_cepstral_goldens;
mod metric_layers;
mod metric_properties;
mod page;
mod project_ledger;
mod published_seeds;
mod rates;
mod regressions;
mod sacrebleu_goldens;
mod second_rules;
mod tokenised_bleu_goldens;
mod toy;
mod trained_terms;
mod verdicts;
mod verdicts_of_pairs;
mod wer_goldens;
mod wmt17_parity;
