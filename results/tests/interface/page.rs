//! The page about runs, as text: complete, self-contained, and with a note on missing data.

use std::collections::BTreeSet;

use zoo_recipes::{ClaimSpec, Document, Selection};
use zoo_results::metrics::{Resampling, ScoreOptions, Scorer, score};
use zoo_results::profile::{ByLayer, ExponentHistogram, Profile, ProfiledUpdate};
use zoo_results::report::page::{
    EvaluationPart, JudgedPart, Medium, Page, ProfilePart, RecipePart, RunPart, Sample, TrainingLog,
    VerdictsPart, is_page, render,
};
use zoo_results::verdict::{Evidence, RunScore, judge};

const NASTY: &str = "<script src=https://example.com/x.js>&\"'\u{0}";

fn log(lines: u64) -> TrainingLog {
    let mut text = String::from(
        "{\"event\":\"session\",\"batch\":0,\"padding\":0.1,\"unit\":\"frames\",\"parameters\":9,\
         \"splits\":{\"train\":{\"read\":12,\"kept\":10,\"left_out\":{\"silent\":2},\"amounts\":{\"words\":80}}}}\n",
    );
    for update in 1..=lines {
        let (skipped, loss) = (u64::from(update % 50_000 == 7), 5.0 / (1.0 + update as f64) + 0.5);
        text.push_str(&format!(
            "{{\"event\":\"train\",\"update\":{update},\"epoch\":0,\"batch\":{update},\"tokens\":64,\"skipped\":{skipped},\"loss\":{loss},\
             \"lr\":0.001,\"scale\":128.0,\"grad_norm\":{},\"seconds\":0.01}}\n",
            1.0 + (update % 9) as f64
        ));
    }
    text.push_str(&format!(
        "{{\"event\":\"epoch\",\"update\":{lines},\"epoch\":1,\"batch\":{lines},\"valid_loss\":0.7,\"terms\":{{\"nll\":{{\"mean\":1.0}}}}}}\n\
         {{\"event\":\"left-out\",\"batch\":1,\"examples\":{{\"a.wav\":\"too few frames\"}}}}\n"
    ));
    TrainingLog::read(text.as_bytes()).unwrap()
}

fn claims(recipe: &str) -> Vec<ClaimSpec> {
    Document::load(recipe).unwrap().resolve(&Selection::default()).unwrap().recipe.claim.clone()
}

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

fn evaluation(run: usize, signature: &str, hypotheses: &[&str], references: &[&str]) -> EvaluationPart {
    let (hypotheses, references) = (lines(hypotheses), lines(references));
    let options = ScoreOptions {
        scorer: Scorer::from_signature(signature).unwrap(),
        resampling: Some(Resampling::default()),
    };
    let value = score(&hypotheses, std::slice::from_ref(&references), &options).unwrap();
    EvaluationPart {
        run,
        eval: "test".into(),
        decode: "lexicon".into(),
        scores: vec![value],
        seconds: 1.0,
        hypotheses,
        references,
        ..EvaluationPart::default()
    }
}

fn speech() -> Page {
    let claims = claims("yesno-tdnn");
    let signature = claims[0].signature.clone().unwrap();
    let run = |arm: &str| RunPart {
        arm: arm.into(),
        seed: 1,
        state: "ended".into(),
        numbers: vec![("updates".into(), "40".into())],
        environment: vec![("device".into(), NASTY.into())],
        log: Some(log(40)),
    };
    let evidence =
        Evidence { runs: vec![RunScore::scored(1, 2.0)], arm: Some("fp32".into()), ..Evidence::default() };
    let mut first = evaluation(0, &signature, &["YES NO", "NO", "YES"], &["YES YES NO", "NO YES", "YES"]);
    let wav = b"RIFF\0\0\0\0WAVEfmt ".to_vec();
    first.samples = vec![Sample {
        title: NASTY.into(),
        text: "said".into(),
        scores: serde_json::json!({ NASTY: NASTY, "focus": 0.5 }).as_object().cloned().unwrap(),
        media: vec![Medium::new("a.wav", wav).unwrap()],
    }];
    Page {
        recipe: RecipePart {
            name: "yesno-tdnn".into(),
            summary: NASTY.into(),
            toml: vec![("fp32".into(), NASTY.into())],
            claims: claims.clone(),
            ..RecipePart::default()
        },
        verdicts: VerdictsPart {
            from: "As recorded".into(),
            judged: vec![JudgedPart {
                number: 1,
                arm: "fp32".into(),
                statement: NASTY.into(),
                verdict: judge(&claims[0], &evidence),
            }],
        },
        runs: vec![run("fp32"), run("mixed")],
        evaluations: vec![
            first,
            evaluation(1, &signature, &["YES YES NO", "NO YES", "YES"], &["YES YES NO", "NO YES", "YES"]),
        ],
        missing: vec![NASTY.into()],
        ..Page::default()
    }
}

/// Checks that every element is closed in order, that ids are unique and all references to them
/// resolve, and that nothing is loaded.
#[track_caller]
fn assert_sound(text: &str) {
    const VOID: [&str; 2] = ["meta", "img"];
    assert!(is_page(text.as_bytes()) && text.starts_with("<!doctype html>\n<html lang=\"en\">"));
    let (mut open, mut ids, mut labels) = (Vec::new(), BTreeSet::new(), Vec::new());
    for part in text.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        let attribute =
            |key: &str| tag.split_once(&format!(" {key}=\"")).and_then(|(_, rest)| rest.split('"').next());
        if let Some(id) = attribute("id") {
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
        }
        labels.extend(
            attribute("aria-labelledby").into_iter().flat_map(|ids| ids.split(' ')).map(str::to_owned),
        );
        labels.extend(
            attribute("href").map(|link| link.strip_prefix('#').expect("a link within the page").to_owned()),
        );
        assert!(!["script", "link", "iframe", "object"].contains(&name), "<{tag}>");
        assert!(attribute("src").is_none_or(|source| source.starts_with("data:")), "<{tag}>");
        if name == "svg" {
            assert!(tag.contains("aria-hidden") || tag.contains("role=\"img\""), "<{tag}>");
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(labels.iter().all(|label| ids.contains(label)), "{labels:?}");
    assert!(!text.contains("url(") && !text.contains("@import") && !text.contains('\0'));
    assert!(!text.contains(">NaN") && !text.contains("inf "), "a number that is none");
}

#[test]
fn a_page_of_speech_has_its_errors_with_signs() {
    let text = render(&speech());
    assert_sound(&text);
    for part in [
        "Training loss",
        "Validation perplexity",
        "frames a second",
        "published bound 0.42",
        // Six words, one of which is deleted in each of two utterances.
        "<td class=\"number\">33.33</td>",
        "Character error rate, which no claim is on",
        "0 to 2",
        "3 to 5",
        "Line 1: 33.33 [ 1 / 3, 0 ins, 1 del, 0 sub ]",
        "<span class=\"step del\"><bdi>YES</bdi><bdi>∗</bdi><b title=\"deleted\">D</b></span>",
        "Every utterance is right.",
        "left out: silent",
        "too few frames",
        "<audio controls=",
        "&lt;script src=https://example.com/x.js&gt;",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_page_of_translation_has_sentences_with_their_sources() {
    let claims = claims("reversal-transformer");
    let signature = claims[0].signature.clone().unwrap();
    let mut part = evaluation(0, &signature, &["d c b a", "x", ""], &["d c b a", "c b a", "b a"]);
    part.decode = "beam5".into();
    part.sources = Some(lines(&["a b c d", "a b c", NASTY]));
    let run = RunPart { arm: "fp32".into(), seed: 3, log: Some(log(3)), ..RunPart::default() };
    let page = Page {
        recipe: RecipePart { claims, ..RecipePart::default() },
        runs: vec![run],
        evaluations: vec![part.clone(), EvaluationPart { update: Some(2), ..part }],
        ..Page::default()
    };
    let text = render(&page);
    assert_sound(&text);
    for part in [
        "published bound 90.00",
        "bleu by length of the reference",
        "fp32, seed 3: 3 sentences, the worst",
        "drawn at random",
        "<dd dir=\"auto\">a b c d</dd>",
        "<dd class=\"missing\">empty</dd>",
        "bleu of checkpoints",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let worst = text.find("the worst").unwrap();
    assert!(text[worst..].find("Line 2:").unwrap() < text[worst..].find("Line 1:").unwrap());
}

#[test]
fn what_is_not_there_is_named() {
    let text = render(&Page::default());
    assert_sound(&text);
    for why in [
        "No claim was judged.",
        "No outputs were decoded yet.",
        "The log does not say how many examples",
        "No validation was logged.",
        "The resolved recipe is not available.",
    ] {
        assert!(text.contains(why), "{why}");
    }
    let text =
        render(&Page { runs: vec![RunPart { arm: "fp32".into(), ..RunPart::default() }], ..Page::default() });
    assert!(text.contains("fp32, seed 0: no log of its training."));
    assert!(!is_page(b"<html><p>mine</p>"));
}

#[test]
fn trajectories_are_drawn_where_their_metric_is() {
    let run = RunPart { arm: "mixed".into(), seed: 1, log: Some(log(30)), ..RunPart::default() };
    let recipe = RecipePart { claims: claims("fairseq-transformer-big"), ..RecipePart::default() };
    let text = render(&Page { recipe, runs: vec![run], ..Page::default() });
    assert_sound(&text);
    assert!(text.contains("published: valid-perplexity, mixed (facebookresearch/fairseq issue 1976, maintainer): 4.19 at 24,000"), "{text}");
}

#[test]
fn a_log_of_a_million_lines_is_a_small_page() {
    let run = |seed| RunPart { arm: "fp32".into(), seed, log: Some(log(1_000_000)), ..RunPart::default() };
    let text = render(&Page { runs: vec![run(1)], ..Page::default() });
    assert_sound(&text);
    assert!(text.len() < 120_000, "{} bytes", text.len());
    assert!(text.contains("overflow: 20 updates skipped by fp32, seed 1"));
}

/// 1 of 4 gradients lies at 2^-30, which FP16 keeps with the scale 2^6.
#[test]
fn a_saved_profile_has_a_drawing_the_suggested_scale_and_its_reason() {
    let mut gradients = ByLayer::default();
    gradients.add("a", &ExponentHistogram::of(&[0.0, 2f32.powi(-30), 2f32.powi(-20), 1.0]));
    let update = ProfiledUpdate { update: 21, activation_gradients: gradients, ..ProfiledUpdate::default() };
    let part = ProfilePart {
        run: 1,
        compute: "fp32".into(),
        from: NASTY.into(),
        profile: Profile { updates: vec![update] },
    };
    let page = Page { profiles: vec![part], ..speech() };
    let text = render(&page);
    assert_sound(&text);
    for part in [
        "<a href=\"#profiles\">Profiles</a>",
        "<h3>mixed, seed 1: update 21</h3>",
        "<p>Suggested static loss scale: 64, because it is the smallest",
        "<img alt=\"Histograms by exponent, mixed, seed 1, update 21. The table has the shares.\" src=\"data:image/svg+xml;base64,",
        "<th scope=\"row\">activation gradients</th><td class=\"number\">4</td><td class=\"number\">25.00 %</td>",
        ">x2^6: &lt; 2^-24</th>",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let without = render(&speech());
    assert!(!without.contains("Profiles"), "there is no empty section");
}
