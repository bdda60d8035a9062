//! `zoo score`: scores hypotheses against references.

use std::path::Path;

use zoo_results::exit::Exit;
use zoo_results::metrics::{
    AccuracyOptions, BleuOptions, Case, ChrfOptions, Compounds, Convention, ErrorRateOptions, ErrorReport,
    ErrorUnit, ExactMatchOptions, F1Options, LengthClass, Resampling, ScoreError, ScoreOptions, Scorer,
    Share, Smoothing, TerOptions, Ties, TokenisedBleu, TokenisedBleuOptions, Tokenizer, Utterance,
    Whitespace, score,
};

use crate::cli::{CaseChoice, ScoreArgs, TextMetric};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::lines;
use crate::output::{self, Format};

pub fn run(context: &Context, args: &ScoreArgs) -> Result<Exit> {
    let mut scorer = match &args.signature {
        Some(signature) => Scorer::from_signature(signature)?,
        None => Scorer::new(convention(args)?)?,
    };
    if let Some(eval) = &args.eval {
        scorer = scorer.on(eval)?;
    }
    let resampling =
        args.interval.then_some(Resampling { samples: args.samples, seed: args.resampling_seed });
    let hypotheses = args.hypotheses.as_deref().unwrap_or(Path::new("-"));
    let from_stdin = std::iter::once(hypotheses).chain(args.references.iter().map(|path| path.as_path()));
    if from_stdin.filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("stdin can be read once only").hint("give files for the other texts"));
    }
    let references =
        args.references.iter().map(|path| lines::read(path)).collect::<Result<Vec<Vec<String>>>>()?;
    let hypotheses = lines::read(hypotheses)?;
    let convention = *scorer.convention();
    let options = ScoreOptions { scorer, resampling };
    let mut value = score(&hypotheses, &references, &options).map_err(|error| in_file(args, error))?;
    let (worst, classes) = report(args, &convention, &hypotheses, &references)?;
    if let Some(detail) = value.detail.as_object_mut() {
        if args.worst > 0 {
            detail.insert("worst".into(), serde_json::json!(worst));
        }
        if !args.lengths.is_empty() {
            detail.insert("by_length".into(), serde_json::json!(classes));
        }
    }

    match context.format {
        Format::Json => output::write_document("score", &value)?,
        Format::Human => {
            let mut text = format!("{} {:.2}\n", value.metric, value.value);
            if let Some(interval) = &value.interval {
                text.push_str(&format!(
                    "95 % interval {:.2} to {:.2} ({interval})\n",
                    interval.lower, interval.upper
                ));
            }
            if let Some(line) = value.detail["line"].as_str() {
                text.push_str(&format!("{line}\n"));
            }
            text.push_str(&format!("signature {}\n", value.signature));
            for LengthClass { from, to, utterances, counts } in &classes {
                let to = to.map_or_else(|| "more".to_owned(), |to| to.to_string());
                text.push_str(&format!("length {from} to {to}: {utterances} utterances, {counts}\n"));
            }
            for Utterance { line, counts, alignment } in &worst {
                text.push_str(&format!("line {line}: {counts}\n{alignment}\n"));
            }
            output::write(&text)?;
        }
        Format::Csv | Format::Md => {
            let mut table = output::columns(["metric", "value", "low", "high", "signature"]);
            let end = |pick: fn(&zoo_results::metrics::Interval) -> f64| {
                value.interval.as_ref().map_or_else(String::new, |interval| pick(interval).to_string())
            };
            table.push(output::words([
                value.metric.to_string(),
                value.value.to_string(),
                end(|interval| interval.lower),
                end(|interval| interval.upper),
                value.signature.to_string(),
            ]));
            output::write(&table.render(context.format))?;
        }
    }
    Ok(Exit::Ok)
}

/// Converts a score error to a failure. An error of one line gets the name of its file.
fn in_file(args: &ScoreArgs, error: ScoreError) -> Failure {
    let (stream, line, problem) = match &error {
        ScoreError::LineTooLong { stream, line, problem } => (stream, line, problem),
        ScoreError::Record { line, problem, .. } => (&None, line, problem),
        _ => return error.into(),
    };
    let stdin = Path::new("stdin");
    let file = match stream {
        None => args.hypotheses.as_deref().unwrap_or(stdin),
        Some(number) => args.references.get(number - 1).map_or(stdin, |path| path.as_path()),
    };
    let file = if file == Path::new("-") { stdin } else { file };
    let failure = Failure::from(error.clone());
    let hint = failure.parts().1.unwrap_or_default().to_owned();
    Failure::new(failure.exit, format!("cannot score {}:{line}: {problem}", file.display())).hint(hint)
}

/// The requested error report: the utterances with the most errors, and the rate by reference
/// length.
fn report(
    args: &ScoreArgs,
    convention: &Convention,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<(Vec<Utterance>, Vec<LengthClass>)> {
    if args.worst == 0 && args.lengths.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (Convention::ErrorRate(options), [references]) = (convention, references) else {
        return Err(Failure::usage(format!("{} has no --worst and no --lengths", convention.entry()))
            .hint("error rates have: --metric wer or cer"));
    };
    if !args.lengths.is_sorted_by(|one, next| one < next) {
        return Err(Failure::usage("the lengths do not rise").hint("e.g. --lengths 5,10,20,40"));
    }
    let report = ErrorReport::new(hypotheses, references, *options)?;
    let classes = if args.lengths.is_empty() { Vec::new() } else { report.by_length(&args.lengths) };
    Ok((report.worst(args.worst), classes))
}

/// The scoring convention of the options. Fails if an option does not apply to the metric.
fn convention(args: &ScoreArgs) -> Result<Convention> {
    let case = |usual: Case| match args.case {
        None => usual,
        Some(CaseChoice::Mixed) => Case::Mixed,
        Some(CaseChoice::Lower) => Case::Lower,
    };
    let is_bleu = args.metric == TextMetric::Bleu;
    let is_tokenised = matches!(args.metric, TextMetric::MultiBleu | TextMetric::FairseqBleu);
    let is_error_rate = matches!(args.metric, TextMetric::Wer | TextMetric::Cer);
    let is_of_classes = matches!(args.metric, TextMetric::Accuracy | TextMetric::F1);
    let compounds = if args.split_compounds { Compounds::Split } else { Compounds::Whole };
    let tokenised =
        |whose| Convention::TokenisedBleu(TokenisedBleuOptions { whose, case: case(Case::Mixed), compounds });
    for (option, given, has) in [
        ("--tokenizer", args.tokenizer.is_some(), is_bleu),
        ("--smoothing", args.smoothing.is_some(), is_bleu),
        ("--smoothing-value", args.smoothing_value.is_some(), is_bleu),
        ("--split-compounds", args.split_compounds, is_tokenised),
        ("--whitespace", args.whitespace.is_some(), is_error_rate),
        ("--word-order", args.word_order != 0, args.metric == TextMetric::Chrf),
        ("--classes", args.classes.is_some(), is_of_classes),
        ("--case", args.case.is_some(), !is_of_classes),
    ] {
        if given && !has {
            let name =
                clap::ValueEnum::to_possible_value(&args.metric).map(|value| value.get_name().to_owned());
            return Err(Failure::usage(format!("{} has no {option}", name.unwrap_or_default()))
                .hint("leave it out; `zoo score --help` says which metric has which option"));
        }
    }
    Ok(match args.metric {
        TextMetric::Bleu => Convention::Bleu(BleuOptions {
            case: case(Case::Mixed),
            effective_order: false,
            tokenizer: args.tokenizer.as_deref().map_or(Ok(Tokenizer::default()), Tokenizer::parse)?,
            smoothing: match (args.smoothing.as_deref(), args.smoothing_value) {
                (Some(name), value) => Smoothing::new(name, value)?,
                (None, Some(_)) => {
                    return Err(Failure::usage("--smoothing-value without --smoothing")
                        .hint("--smoothing floor or --smoothing add-k"));
                }
                (None, None) => Smoothing::default(),
            },
        }),
        TextMetric::MultiBleu => tokenised(TokenisedBleu::MultiBleu),
        TextMetric::FairseqBleu => tokenised(TokenisedBleu::Fairseq),
        TextMetric::Chrf => Convention::Chrf(ChrfOptions {
            case: case(Case::Mixed),
            word_order: args.word_order,
            ..ChrfOptions::default()
        }),
        TextMetric::Ter => Convention::Ter(TerOptions { case: case(Case::Lower), ..TerOptions::default() }),
        TextMetric::Wer | TextMetric::Cer => Convention::ErrorRate(ErrorRateOptions {
            unit: if args.metric == TextMetric::Wer { ErrorUnit::Word } else { ErrorUnit::Character },
            case: case(Case::Mixed),
            whitespace: args.whitespace.as_deref().map_or(Ok(Whitespace::default()), Whitespace::parse)?,
        }),
        TextMetric::ExactMatch => Convention::ExactMatch(ExactMatchOptions { case: case(Case::Mixed) }),
        TextMetric::Accuracy => Convention::Accuracy(AccuracyOptions {
            share: Share::Right,
            top: 1,
            classes: args.classes.unwrap_or(0),
            ties: Ties::First,
        }),
        TextMetric::F1 => Convention::F1(F1Options { classes: args.classes.unwrap_or(0), ties: Ties::First }),
    })
}
