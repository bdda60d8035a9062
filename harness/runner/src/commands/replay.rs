//! `zoo replay`: prints how an update that was computed again differs.

use serde_json::Value;
use zoo_results::exit::Exit;
use zoo_results::replay::TensorDifference;

use crate::cli::ReplayArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell, Format, Table};
use crate::runs::folder_of;
use crate::stages::{Compared, Logged, ReplayReport, ReplayRequest, replay};

pub fn run(context: &Context, args: &ReplayArgs) -> Result<Exit> {
    let request = ReplayRequest {
        run: folder_of(context, &args.run)?,
        update: args.update,
        compute: args.compute.map(|compute| compute.compute()),
        limit: args.limit,
    };
    let report = replay(context, &request)?;
    match context.format {
        Format::Json => output::write_document("replay", &report)?,
        Format::Csv => output::write(&table(&report).render(Format::Csv))?,
        format => output::write(&text(&report, format))?,
    }
    match difference(&report) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}

/// The failure that names the differences; `None` if nothing differs.
fn difference(report: &ReplayReport) -> Option<Failure> {
    let update = report.update;
    if let Some(logged) = report.logged.as_ref().filter(|logged| !logged.same) {
        let names: Vec<&str> =
            logged.numbers.iter().filter(|number| !number.same).map(|number| number.name).collect();
        let failure =
            Failure::new(Exit::Mismatch, format!("update {update} is not the same: {}", names.join(", ")));
        let changed = report.changed.as_deref().unwrap_or_default();
        return Some(match changed {
            [one] if one.what == "threads" => {
                failure.hint(format!("pass --threads {}, as recorded", one.recorded))
            }
            [_, ..] => failure.hint("only the same program on the same machine repeats an update bit for bit"),
            [] => failure.hint(
                "program and machine are the recorded ones as far as the log states them; `zoo doctor` checks this machine",
            ),
        });
    }
    let compared = report.compared.as_ref().filter(|compared| !compared.within)?;
    let what = match (compared.differences.first_forward(), compared.differences.first_backward()) {
        (Some(first), _) | (None, Some(first)) => format!("{} exceeds its limit first", called(first)),
        (None, None) => {
            format!("{} tensors were computed in one type only", compared.differences.unpaired)
        }
    };
    let message = format!("update {update} in {} and {}: {what}", report.compute, compared.compute);
    Some(
        Failure::new(Exit::Mismatch, message)
            .hint("--limit X sets another limit; docs/mixed-precision.md lists likely causes"),
    )
}

/// A tensor in words.
fn called(tensor: &TensorDifference) -> String {
    let call = if tensor.call > 1 { format!(", call {}", tensor.call) } else { String::new() };
    format!("the {} of {}{call}", tensor.what.name(), tensor.layer)
}

/// A number in as many digits as its bits need.
fn number(value: Option<f64>) -> Cell {
    match value {
        Some(value) => Cell::of(value.to_string(), value),
        None => Cell::of("not finite", Value::Null),
    }
}

fn text(report: &ReplayReport, format: Format) -> String {
    let tier = report.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
    let begun = match report.begun {
        0 => "the start of the recipe".to_owned(),
        begun => format!("the state of update {begun}"),
    };
    let mut out = format!(
        "{}{tier}, {}, seed {}: update {} from {begun}\n\n",
        report.recipe, report.arm, report.seed, report.update
    );
    match (&report.compared, &report.logged) {
        (Some(compared), _) => out.push_str(&of_types(report, compared, format)),
        (None, Some(logged)) => out.push_str(&of_line(report, logged, format)),
        (None, None) => {
            let computed = &report.computed;
            out.push_str(&format!(
                "The log has no line on this update, so nothing is compared: loss {}, gradient norm {}, loss scale {}, \
                 {} skipped attempts.\n",
                computed.loss, computed.grad_norm, computed.scale, computed.skipped
            ));
        }
    }
    out
}

/// Comparison with a line of the log.
fn of_line(report: &ReplayReport, logged: &Logged, format: Format) -> String {
    let mut out = numbers(logged).render(format);
    let covers = match logged.first == logged.last {
        true => format!("The line of the log covers update {} alone.", logged.last),
        false => format!("The line of the log covers updates {} to {}.", logged.first, logged.last),
    };
    out.push_str(&format!("\n{covers}"));
    if logged.first < logged.last && logged.numbers.iter().any(|number| number.name == "grad_norm") {
        out.push_str(&format!(
            " Gradient norm, loss scale and learning rate are those of update {}, the other numbers those of all.",
            logged.last
        ));
    }
    if logged.first <= report.begun && logged.first < logged.last {
        out.push_str(&format!(" The state has the sums up to update {}.", report.begun));
    }
    out.push('\n');
    let changed = report.changed.as_ref().map(|changed| {
        let all: Vec<String> = changed.iter().map(ToString::to_string).collect();
        all.join("; ")
    });
    out.push_str(&match (logged.same, changed.as_deref()) {
        (true, Some("")) => "the same, bit for bit, by the same program on the same machine\n".to_owned(),
        (true, Some(changed)) => format!("the same, bit for bit, although these differ: {changed}\n"),
        (true, None) => "the same, bit for bit; the log does not state program and machine\n".to_owned(),
        (false, Some("")) => "not the same, by the same program on the same machine\n".to_owned(),
        (false, Some(changed)) => format!("not the same; these differ: {changed}\n"),
        (false, None) => "not the same; the log does not state program and machine\n".to_owned(),
    });
    out
}

fn numbers(logged: &Logged) -> Table {
    let mut table = output::columns(["number", "#recorded", "#replayed", "same"]);
    for one in &logged.numbers {
        let name = one.name.replace('_', " ");
        table.push(vec![
            Cell::words(name),
            number(one.recorded),
            number(one.replayed),
            Cell::flag(one.same, ["yes", "NO"]),
        ]);
    }
    table
}

/// Comparison of two types.
fn of_types(report: &ReplayReport, compared: &Compared, format: Format) -> String {
    let mut out = tensors(report, compared).render(format);
    let loss = |name: &str, loss: f64, skipped: bool| {
        let skipped = if skipped { ", skipped" } else { "" };
        format!("{name} {loss}{skipped}")
    };
    let (own, other) = (&report.computed, &compared.computed);
    out.push_str(&format!(
        "\nloss: {}; {}; loss scale {}\n",
        loss(&report.compute, own.loss, own.updates == 0),
        loss(&compared.compute, other.loss, other.updates == 0),
        own.scale
    ));
    out.push_str(&format!(
        "limits of the error relative to the norm in {}: {:.3e} forward, {:.3e} backward\n",
        compared.reference, compared.limits.forward, compared.limits.backward
    ));
    for (pass, first) in [
        ("forward", compared.differences.first_forward()),
        ("backward", compared.differences.first_backward()),
    ] {
        out.push_str(&match first {
            Some(first) => {
                let error = first
                    .relative_error
                    .map_or_else(|| "not finite".to_owned(), |error| format!("{error:.3e}"));
                format!("{pass}: {} exceeds its limit first: {error}\n", called(first))
            }
            None => format!("{pass}: no tensor exceeds its limit\n"),
        });
    }
    if compared.differences.unpaired > 0 {
        out.push_str(&format!("{} tensors were computed in one type only\n", compared.differences.unpaired));
    }
    out
}

fn tensors(report: &ReplayReport, compared: &Compared) -> Table {
    let not_finite = [&report.compute, &compared.compute].map(|name| format!("#not finite in {name}"));
    let titles = [
        "tensor",
        "layer",
        "#call",
        "#values",
        "#relative error",
        "#largest error",
        &not_finite[0],
        &not_finite[1],
        "exceeds",
    ];
    let mut table = output::columns(titles);
    let error = |value: Option<f64>| match value {
        Some(value) => Cell::of(format!("{value:.3e}"), value),
        None => Cell::of("not finite", Value::Null),
    };
    for row in &compared.differences.rows {
        table.push(vec![
            Cell::words(row.what.name()),
            Cell::words(row.layer.clone()),
            Cell::count(row.call as u64),
            Cell::count(row.values as u64),
            error(row.relative_error),
            error(row.largest_error),
            Cell::count(row.not_finite[0] as u64),
            Cell::count(row.not_finite[1] as u64),
            Cell::flag(row.exceeds, ["YES", "no"]),
        ]);
    }
    table
}

/// The only table of the report, for programs.
fn table(report: &ReplayReport) -> Table {
    match (&report.compared, &report.logged) {
        (Some(compared), _) => tensors(report, compared),
        (None, Some(logged)) => numbers(logged),
        (None, None) => {
            numbers(&Logged { first: report.update, last: report.update, same: true, numbers: Vec::new() })
        }
    }
}
