//! Selects the charts that a page shows from its runs' logs.

use zoo_recipes::{ClaimKind, ClaimSpec, Clock, Moment};

use super::chart::{Band, Chart, Line, Marks, Rule, Style};
use super::markup::Markup;
use super::model::{Page, RunPart};
use super::series::Series;
use super::tables::missing;
use super::training_log::TrainingLog;
use crate::report::words::grouped;
use crate::verdict::number;

/// A loss that falls by at least this factor is drawn on a logarithmic scale.
const STEEP: f64 = 30.0;

/// A kind of chart, for a series that all logs have.
struct Kind {
    id: &'static str,
    title: &'static str,
    unit: String,
    of: fn(&TrainingLog) -> &Series,
    /// Whether to draw the points, for curves with few important points.
    dotted: bool,
    /// Factor from which the scale is logarithmic.
    log_from: Option<f64>,
    /// Metrics of the trajectory claims shown in this chart.
    trajectory: &'static [&'static str],
}

fn kinds(unit: &str) -> [Kind; 8] {
    let kind = |id, title, unit: &str, of| Kind {
        id,
        title,
        unit: unit.to_owned(),
        of,
        dotted: false,
        log_from: None,
        trajectory: &[],
    };
    let what = "per unit of the loss";
    [
        Kind {
            log_from: Some(STEEP),
            trajectory: &["loss", "train-loss"],
            ..kind("loss", "Training loss", what, |log| &log.loss)
        },
        Kind {
            dotted: true,
            log_from: Some(STEEP),
            trajectory: &["valid-loss"],
            ..kind("valid", "Validation loss", what, |log| &log.valid_loss)
        },
        Kind {
            log_from: Some(STEEP),
            trajectory: &["train-perplexity"],
            ..kind("train-perplexity", "Training perplexity", "exp of the cross-entropy", |log| {
                &log.train_perplexity
            })
        },
        Kind {
            dotted: true,
            log_from: Some(STEEP),
            trajectory: &["valid-perplexity", "perplexity"],
            ..kind("perplexity", "Validation perplexity", "exp of the cross-entropy", |log| {
                &log.valid_perplexity
            })
        },
        kind("lr", "Learning rate", "by update", |log| &log.lr),
        Kind { log_from: Some(4.0), ..kind("scale", "Loss scale", "factor", |log| &log.scale) },
        Kind {
            log_from: Some(STEEP),
            ..kind("norm", "Gradient norm", "before clipping", |log| &log.grad_norm)
        },
        kind("speed", "Speed", &format!("{unit} a second"), |log| &log.speed),
    ]
}

/// The style of each run.
pub(super) fn styles(runs: &[RunPart]) -> Vec<Style> {
    let mut arms: Vec<(&str, usize)> = Vec::new();
    let mut found = Vec::new();
    for RunPart { arm, .. } in runs {
        let at = arms.iter().position(|(known, _)| known == arm).unwrap_or_else(|| {
            arms.push((arm, 0));
            arms.len() - 1
        });
        found.push(Style { arm: at, seed: arms[at].1 });
        arms[at].1 += 1;
    }
    found
}

/// Writes all curves for which there is data.
pub(super) fn curves(markup: &mut Markup, page: &Page) {
    let styles = styles(&page.runs);
    let mut runs: Vec<(&RunPart, &TrainingLog, Style)> = Vec::new();
    for (run, style) in page.runs.iter().zip(styles) {
        match &run.log {
            Some(log) => runs.push((run, log, style)),
            None => missing(markup, &format!("{}: no log of its training.", run.name())),
        }
    }
    let unit = runs.iter().find_map(|(_, log, _)| log.unit.as_deref()).unwrap_or("tokens");
    markup.element("div", &[("class", "charts")], |div| {
        for kind in kinds(unit) {
            chart(&kind, page, &runs).write_unless_empty(div);
        }
        for chart in scores(page) {
            chart.write_unless_empty(div);
        }
    });
    if runs.iter().all(|(_, log, _)| log.valid_loss.is_empty()) {
        missing(markup, "No validation was logged.");
    }
    for (run, log, _) in &runs {
        if log.loss.not_finite() > 0 {
            missing(
                markup,
                &format!(
                    "{}: {} logged losses are not finite; they are gaps.",
                    run.name(),
                    grouped(log.loss.not_finite())
                ),
            );
        }
        if log.unreadable > 0 {
            missing(
                markup,
                &format!("{}: {} lines of its log cannot be read.", run.name(), grouped(log.unreadable)),
            );
        }
    }
}

fn chart<'a>(kind: &Kind, page: &Page, runs: &[(&'a RunPart, &'a TrainingLog, Style)]) -> Chart<'a> {
    let mut chart = Chart {
        id: kind.id.to_owned(),
        title: kind.title.to_owned(),
        unit: kind.unit.clone(),
        log_from: kind.log_from,
        bands: bands(&page.recipe.claims, kind.trajectory, runs.first().map(|(_, log, _)| *log)),
        ..Chart::default()
    };
    for &(run, log, style) in runs {
        let series = (kind.of)(log);
        if !series.is_empty() {
            chart.lines.push(Line { name: run.name(), style, series, dotted: kind.dotted });
        }
        if kind.id == "scale" && log.skipped > 0 {
            let name = format!("overflow: {} updates skipped by {}", grouped(log.skipped), run.name());
            chart.marks.push(Marks { name, style, series: &log.overflows });
        }
    }
    chart
}

impl Chart<'_> {
    fn write_unless_empty(&self, markup: &mut Markup) {
        if !self.is_empty() {
            self.write(markup);
        }
    }
}

/// The trajectory claims on one of these metrics. Epochs are converted to updates with `log`.
fn bands(claims: &[ClaimSpec], metrics: &[&str], log: Option<&TrainingLog>) -> Vec<Band> {
    let mut found = Vec::new();
    for claim in claims.iter().filter(|claim| claim.kind == ClaimKind::Trajectory) {
        let metric = claim.metric.as_str();
        if !metrics.contains(&metric) {
            continue;
        }
        let place = |moment: Moment| match moment.clock {
            Clock::Updates => Some(moment.at as f64),
            Clock::Epochs => log?.epochs.at(moment.at as f64),
        };
        let points: Vec<_> = (claim.moments().zip(&claim.points))
            .filter_map(|(moment, point)| Some((place(moment)?, point.value, point.sigma)))
            .collect();
        let arm = claim.arm.as_deref().unwrap_or("any arm");
        if !points.is_empty() {
            found.push(Band { name: format!("published: {metric}, {arm} ({})", claim.source), points });
        }
    }
    found
}

/// A chart for each score of evaluated checkpoints, over their updates.
struct Scores {
    id: String,
    title: String,
    unit: String,
    lines: Vec<(String, Style, Series)>,
    rules: Vec<Rule>,
    bands: Vec<Band>,
}

impl Scores {
    fn write_unless_empty(&self, markup: &mut Markup) {
        let lines = self.lines.iter().map(|(name, style, series)| Line {
            name: name.clone(),
            style: *style,
            series,
            dotted: true,
        });
        let chart = Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            unit: self.unit.clone(),
            lines: lines.collect(),
            rules: self.rules.clone(),
            bands: self.bands.clone(),
            ..Chart::default()
        };
        chart.write_unless_empty(markup);
    }
}

fn scores(page: &Page) -> Vec<Scores> {
    let styles = styles(&page.runs);
    let mut kinds: Vec<(&str, &str, String)> = Vec::new();
    for part in page.evaluations.iter().filter(|part| part.update.is_some()) {
        for score in &part.scores {
            let kind = (part.eval.as_str(), part.decode.as_str(), score.metric.name.to_owned());
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let chart = |(at, (eval, decode, metric)): (usize, (&str, &str, String))| {
        let mut lines = Vec::new();
        for (index, run) in page.runs.iter().enumerate() {
            let mut points: Vec<(u64, f64)> = Vec::new();
            for part in page
                .evaluations
                .iter()
                .filter(|part| (part.run, part.eval.as_str(), part.decode.as_str()) == (index, eval, decode))
            {
                if let (Some(update), Some(score)) =
                    (part.update, part.scores.iter().find(|score| score.metric.name == metric))
                {
                    points.push((update, score.value));
                }
            }
            points.sort_by_key(|(update, _)| *update);
            let mut series = Series::default();
            points.into_iter().for_each(|(update, value)| series.push(update as f64, value));
            lines.push((run.name(), styles[index], series));
        }
        let claims = page.recipe.claims.iter().filter(|claim| {
            matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound)
                && claim.metric == metric
                && claim.eval.as_deref() == Some(eval)
        });
        let rule = |claim: &ClaimSpec| {
            claim
                .value
                .map(|value| Rule { name: format!("published {} ({})", number(value), claim.source), value })
        };
        Scores {
            id: format!("score-{at}"),
            title: format!("{metric} of checkpoints"),
            unit: format!("{eval}, {decode}"),
            lines,
            rules: claims.filter_map(rule).collect(),
            bands: bands(&page.recipe.claims, &[&metric], page.runs.iter().find_map(|run| run.log.as_ref())),
        }
    };
    kinds.into_iter().enumerate().map(chart).collect()
}
