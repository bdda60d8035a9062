use super::*;
use crate::metrics::{
    AccuracyOptions, BleuOptions, Case, CepstralOptions, ChrfOptions, Compounds, ErrorRateOptions, ErrorUnit,
    ExactMatchOptions, F1Options, LikelihoodOptions, MelErrorOptions, ObjectiveOptions, OfTerm, Over,
    Quantity, SequenceOptions, Share, Smoothing, TerOptions, TermMean, Ties, TokenisedBleu,
    TokenisedBleuOptions, Tokenizer, TrainingOptions, Unit, Unknowns, Whitespace,
};
use proptest::prelude::*;

const CLAIM: &str = "nrefs:1|case:lc|eff:no|tok:none|smooth:none";

#[test]
fn a_claims_signature_is_read_and_printed() {
    let s = Signature::parse(CLAIM).unwrap();
    assert_eq!(s.references, Some(1));
    let options = BleuOptions {
        case: Case::Lower,
        effective_order: false,
        tokenizer: Tokenizer::None,
        smoothing: Smoothing::None,
    };
    assert_eq!(s.convention, Convention::Bleu(options));
    assert_eq!(s.to_string(), CLAIM);
    let named = s.on("test").unwrap();
    assert_eq!(named.to_string(), "nrefs:1|eval:test|case:lc|eff:no|tok:none|smooth:none");
}

#[test]
fn forms_of_sacrebleu_are_read() {
    for text in [
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        "nrefs:2|bs:1000|seed:12345|case:lc|eff:yes|tok:intl|smooth:floor[0.10]|version:2.6.0",
        "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0",
        "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0",
        "metric:wer|nrefs:1|eval:dev-clean|case:lc|space:collapse|align:jiwer",
        "metric:cer|nrefs:1|bs:1000|seed:12345|case:mixed|space:jiwer|align:jiwer",
        "metric:exact-match|nrefs:1|case:mixed",
        "metric:loss|eval:valid|of:nll|unit:token|unk:scored|end:yes|state:reset",
        "metric:loss|of:nll|unit:example",
        "metric:loss|of:objective|unit:frame",
        "metric:perplexity|unit:word|unk:left-out|end:no|state:carried",
        "metric:bits-per-character|unit:byte|unk:none|end:yes|state:carried",
        "metric:perplexity|eval:test|unit:word|unk:scored|end:yes|state:carried|divisor:all",
        "metric:accuracy|nrefs:1|eval:test|top:5|classes:1000|ties:first",
        "metric:error|nrefs:1|top:1|classes:2|ties:last",
        "metric:f1|nrefs:1|eval:test|average:macro|classes:2|ties:first",
        "metric:train-loss|of:objective|unit:example|over:epoch|mean:update",
        "metric:train-perplexity|unit:token|over:100|mean:unit",
        "metric:train-accuracy|top:1|unit:example|over:epoch|mean:unit",
        "metric:mcd|eval:test|cep:1-13|dct:ortho|dtw:yes|mel:80|mean:utterance",
        "metric:mel-error|mel:80|mean:frame",
        "nrefs:1|case:mixed|eff:no|tok:none|smooth:none|impl:fairseq",
    ] {
        assert_eq!(Signature::parse(text).unwrap().to_string(), text);
    }
    let old = "BLEU+case.mixed+lang.en-de+numrefs.1+smooth.exp+test.wmt14/full+tok.13a+version.1.2.12";
    let s = Signature::parse(old).unwrap();
    assert_eq!(
        s.to_string(),
        "nrefs:1|eval:wmt14/full+en-de|case:mixed|eff:no|tok:13a|smooth:exp|version:1.2.12"
    );
}

#[test]
fn what_is_not_stated_or_not_known_is_an_error() {
    for (text, part) in [
        ("", "is not `key:value`"),
        ("nrefs:1|case:mixed|eff:no|tok:13a", "`smooth:` is missing"),
        ("case:mixed|eff:no|tok:13a|smooth:exp", "`nrefs:` is missing"),
        ("nrefs:0|case:mixed|eff:no|tok:13a|smooth:exp", "nrefs:0"),
        ("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp", "nrefs:var"),
        ("nrefs:1|case:mixed|eff:no|tok:13b|smooth:exp", "did you mean `13a`?"),
        ("nrefs:1|case:mixed|eff:no|tok:ja-mecab-0.996-IPA|smooth:exp", "not built in"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp2", "unknown smoothing"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k", "has no value"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k[0.001]", "out of range"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp[1.00]", "only floor and add-k"),
        ("nrefs:1|case:mixed|eff:maybe|tok:13a|smooth:exp", "neither yes nor no"),
        ("metric:mcd|cep:0-12|dct:ortho|dtw:yes|mel:80|mean:utterance", "`cep:0-12`"),
        ("metric:mcd|cep:1-013|dct:ortho|dtw:yes|mel:80|mean:utterance", "`cep:1-013`"),
        ("metric:mcd|cep:1-80|dct:ortho|dtw:yes|mel:80|mean:utterance", "out of range"),
        ("metric:mcd|cep:1-13|dct:none|dtw:yes|mel:80|mean:utterance", "`dct:none` is not built in"),
        ("metric:mcd|cep:1-13|dct:ortho|mel:80|mean:utterance", "`dtw:` is missing"),
        ("metric:mel-error|mel:80|mean:utterance", "`mean:utterance` is not built in"),
        ("metric:mel-error|mel:5000|mean:frame", "out of range"),
        ("nrefs:1|case:Mixed|eff:no|tok:13a|smooth:exp", "case is"),
        ("nrefs:1|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp", "appears twice"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|x:1", "`x:1` is not part"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|impl:fairseq", "is eff:no, tok:none"),
        ("nrefs:1|eval:a|test:b|case:mixed|eff:no|tok:13a|smooth:exp", "both"),
        ("nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:yes", "Asian"),
        ("metric:loss|unit:token|unk:none|end:yes|state:reset", "`of:` is missing"),
        ("metric:loss|of:nll|unit:token", "`unk:` is missing"),
        ("metric:loss|of:nll|unit:example|unk:none", "`unk:none` is not part"),
        ("metric:loss|of:nll|unit:frame|unk:none|end:yes|state:reset", "out of range"),
        ("metric:perplexity|unit:sentence|unk:none|end:yes|state:reset", "out of range"),
        ("metric:perplexity|unit:subword|unk:none|end:yes|state:reset", "`unit:subword`"),
        ("metric:bits-per-character|unit:token|unk:none|end:yes|state:reset", "out of range"),
        ("metric:accuracy|top:1|classes:10|ties:first", "`nrefs:` is missing"),
        ("metric:accuracy|nrefs:1|top:10|classes:10|ties:first", "out of range"),
        ("metric:accuracy|nrefs:1|top:1|classes:10|ties:random", "`ties:random`"),
        ("metric:f1|nrefs:1|average:micro|classes:10|ties:first", "`average:micro`"),
        ("metric:f1|nrefs:1|average:macro|classes:1|ties:first", "not a whole number from 2"),
        ("metric:top5|nrefs:1|top:5|classes:10|ties:first", "unknown metric `top5`"),
        ("metric:train-loss|of:objective|unit:token|over:0|mean:unit", "`over:0`"),
        ("metric:wer|nrefs:1|case:lc|align:jiwer", "`space:` is missing"),
        ("metric:wer|nrefs:1|case:lc|space:collapsed|align:jiwer", "did you mean `collapse`?"),
        ("metric:wer|nrefs:1|case:lc|space:jiwer|align:sclite", "`align:sclite` is not built in"),
        ("metric:cer|case:lc|space:jiwer|align:jiwer", "`nrefs:` is missing"),
        ("metric:wer|nrefs:1|case:lc|space:jiwer|align:jiwer|tok:13a", "not part of a wer signature"),
        ("version:2.6.0", "does not name its metric"),
    ] {
        let e = Signature::parse(text).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("hint: "), "{text}: {e}");
    }
}

#[test]
fn unlike_signatures_are_not_compared() {
    let a = Signature::parse("nrefs:1|eval:t|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0").unwrap();
    let newer =
        Signature::parse("nrefs:1|eval:t|bs:1000|seed:1|case:mixed|eff:no|tok:13a|smooth:exp").unwrap();
    assert_ne!(a, newer);
    a.comparable(&newer).unwrap();
    for (other, difference) in [
        ("nrefs:2|eval:t|case:mixed|eff:no|tok:13a|smooth:exp", "nrefs:1 against nrefs:2"),
        ("nrefs:1|eval:u|case:mixed|eff:no|tok:13a|smooth:exp", "eval:t against eval:u"),
        ("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp", "eval:t against no eval"),
        ("nrefs:1|eval:t|case:lc|eff:no|tok:13a|smooth:exp", "case:mixed against case:lc"),
        ("nrefs:1|eval:t|case:mixed|eff:no|tok:intl|smooth:exp", "tok:13a against tok:intl"),
        ("nrefs:1|eval:t|case:mixed|eff:yes|nc:6|nw:0|space:no", "no nc against nc:6"),
    ] {
        let e = a.comparable(&Signature::parse(other).unwrap()).unwrap_err().to_string();
        assert!(e.contains(difference), "{other}: {e}");
    }
}

#[test]
fn the_smoothing_value_is_part_of_the_measure() {
    let a = Signature::parse("nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.10]").unwrap();
    let b = Signature::parse("nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.20]").unwrap();
    assert!(a.comparable(&b).is_err());
}

#[test]
fn json_is_the_text() {
    let s = Signature::parse(CLAIM).unwrap().on("newstest2014-full").unwrap();
    let json = serde_json::to_string(&s).unwrap();
    assert_eq!(json, format!("\"{s}\""));
    assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), s);
    assert!(serde_json::from_str::<Signature>("\"tok:13a\"").is_err());
}

fn any_convention() -> impl Strategy<Value = Convention> {
    let case = prop_oneof![Just(Case::Mixed), Just(Case::Lower)];
    let smoothing = prop_oneof![
        Just(Smoothing::None),
        Just(Smoothing::Exp),
        (1u32..10_000).prop_map(|v| Smoothing::Floor(f64::from(v) / 100.0)),
        (1u32..10_000).prop_map(|v| Smoothing::AddK(f64::from(v) / 100.0)),
    ];
    let unit = prop::sample::select(Unit::WORDS.map(|(_, unit)| unit).to_vec());
    let text_unit = prop_oneof![Just(Unit::Character), Just(Unit::Byte)];
    let quantity = prop_oneof![Just(Quantity::Loss), Just(Quantity::Perplexity), Just(Quantity::Bits)];
    let unknowns = prop_oneof![Just(Unknowns::None), Just(Unknowns::Scored), Just(Unknowns::LeftOut)];
    let sequence = (unknowns, any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(unknowns, ends, carried, given)| SequenceOptions { unknowns, ends, carried, given });
    let of_term = prop_oneof![
        Just(OfTerm::Objective),
        Just(OfTerm::Likelihood),
        Just(OfTerm::Perplexity),
        (1usize..9).prop_map(|top| OfTerm::Accuracy { top }),
    ];
    prop_oneof![
        (case.clone(), any::<bool>(), prop::sample::select(Tokenizer::ALL.to_vec()), smoothing).prop_map(
            |(case, effective_order, tokenizer, smoothing)| {
                Convention::Bleu(BleuOptions { case, effective_order, tokenizer, smoothing })
            }
        ),
        (case.clone(), any::<bool>(), any::<bool>()).prop_map(|(case, moses, split)| {
            Convention::TokenisedBleu(TokenisedBleuOptions {
                whose: if moses { TokenisedBleu::MultiBleu } else { TokenisedBleu::Fairseq },
                case,
                compounds: if split { Compounds::Split } else { Compounds::Whole },
            })
        }),
        (case.clone(), 1usize..20, 0usize..4, any::<bool>(), any::<bool>()).prop_map(
            |(case, char_order, word_order, whitespace, eps_smoothing)| {
                Convention::Chrf(ChrfOptions { case, char_order, word_order, whitespace, eps_smoothing })
            }
        ),
        (case.clone(), any::<bool>(), any::<bool>()).prop_map(|(case, normalized, no_punct)| {
            Convention::Ter(TerOptions { case, normalized, no_punct })
        }),
        (case.clone(), any::<bool>(), prop::sample::select(Whitespace::ALL.to_vec())).prop_map(
            |(case, words, whitespace)| {
                let unit = if words { ErrorUnit::Word } else { ErrorUnit::Character };
                Convention::ErrorRate(ErrorRateOptions { unit, case, whitespace })
            }
        ),
        case.prop_map(|case| Convention::ExactMatch(ExactMatchOptions { case })),
        (any::<bool>(), 1usize..9, 10usize..2000, any::<bool>()).prop_map(|(right, top, classes, first)| {
            let share = if right { Share::Right } else { Share::Wrong };
            let ties = if first { Ties::First } else { Ties::Last };
            Convention::Accuracy(AccuracyOptions { share, top, classes, ties })
        }),
        (2usize..2000, any::<bool>()).prop_map(|(classes, first)| {
            Convention::F1(F1Options { classes, ties: if first { Ties::First } else { Ties::Last } })
        }),
        (quantity, text_unit, sequence).prop_map(|(quantity, unit, sequence)| {
            Convention::Likelihood(LikelihoodOptions { quantity, unit, sequence: Some(sequence) })
        }),
        Just(Convention::Likelihood(LikelihoodOptions {
            quantity: Quantity::Loss,
            unit: Unit::Example,
            sequence: None
        })),
        unit.clone().prop_map(|unit| Convention::Objective(ObjectiveOptions { unit })),
        (of_term, unit, 0usize..1000, any::<bool>()).prop_map(|(of, unit, updates, alike)| {
            let over = if updates == 0 { Over::Epoch } else { Over::Updates(updates) };
            let mean = if alike { TermMean::Unit } else { TermMean::Update };
            Convention::Training(TrainingOptions { of, unit, over, mean })
        }),
        (2usize..200, any::<bool>()).prop_flat_map(|(mels, warped)| {
            (1..mels).prop_map(move |coefficients| {
                Convention::MelCepstral(CepstralOptions { coefficients, warped, mels })
            })
        }),
        (1usize..200).prop_map(|mels| Convention::MelError(MelErrorOptions { mels })),
    ]
}

proptest! {
    #[test]
    fn printed_and_read_again_is_the_same(
        convention in any_convention(),
        references in 1usize..5,
        test_set in prop::option::of("[a-z0-9_/+.-]{1,20}"),
        resampling in prop::option::of((2usize..5000, 0u64..1_000_000)),
    ) {
        let mut s = Signature::own(convention, convention.metric().source().needs_references().then_some(references));
        if let Some(name) = test_set {
            s = s.on(&name).unwrap();
        }
        s.resampling = resampling.map(|(samples, seed)| Resampling { samples, seed });
        prop_assert_eq!(Signature::parse(&s.to_string()).unwrap(), s);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(nrefs|case|tok|eff|smooth|bs|[a-z]{0,4}|:|\\||1|lc|no|13a|exp|.){0,24}") {
        let _ = Signature::parse(&text);
    }
}
