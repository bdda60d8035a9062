//! `zoo bench`: prints speeds of updates and searches, and the largest batches.

use serde::Serialize;
use zoo_recipes::Document;
use zoo_results::exit::Exit;
use zoo_results::report::grouped;
use zoo_results::statistics::SpeedUp;

use crate::cli::BenchArgs;
use crate::context::Context;
use crate::error::Result;
use crate::memory::Bytes;
use crate::output::{self, Cell, Format, Table};
use crate::stages::{
    ArmKernels, Bench, BenchOptions, Bound, DataMargin, Decoding, DecodingOptions, Kernels, MaxBatch,
    MaxBatchOptions, Request, Spread, bench, chosen_arms, decoding, kernels, max_batch, probe,
};

/// Fraction of an update below which its remaining time is noise and is not shown in human output.
const NOISE: f64 = 0.05;
/// Recommended speed of the data thread, as a multiple of the fastest updates' speed.
const ENOUGH: f64 = 2.0;

pub fn run(context: &Context, args: &BenchArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let request = Request {
        arms: chosen_arms(&document, &args.arms)?,
        overrides: args.overlay.overrides.clone(),
        ..Request::of(&document, args.overlay.tier.as_deref(), 1)?
    };
    if let (true, Some(shape)) = (args.probe, args.shape) {
        output::write_json_line(&probe(context, &request, shape)?)?;
        return Ok(Exit::Ok);
    }
    if let Some(search) = &args.decode {
        let options = DecodingOptions {
            search: search.clone(),
            shape: args.shape,
            batches: args.steps,
            computes: args.compute.iter().map(|compute| compute.spec()).collect(),
        };
        let found = decoding(context, &request, &options)?;
        written(context, "decoding", &found, written_text)?;
    } else if args.max_batch {
        let options = MaxBatchOptions {
            recipe: &args.recipe,
            shape: args.shape,
            memory: args.memory,
            seconds: f64::from(args.max_seconds),
        };
        let found = max_batch(context, &request, options)?;
        written(context, "max_batch", &found, largest)?;
    } else if args.kernels {
        let found = kernels(context, &request, args.shape)?;
        written(context, "kernels", &found, of_update)?;
    } else {
        let options = BenchOptions { steps: args.steps, shape: args.shape };
        let measured = bench(context, &request, options)?;
        written(context, "updates", &measured, text)?;
    }
    Ok(Exit::Ok)
}

/// A measurement of JSON, with the word for what was measured.
#[derive(Serialize)]
struct Measured<'m, T> {
    measured: &'static str,
    #[serde(flatten)]
    found: &'m T,
}

fn written<T: Serialize>(
    context: &Context,
    measured: &'static str,
    found: &T,
    text: impl Fn(&T, Format) -> String,
) -> Result<()> {
    match context.format {
        Format::Json => output::write_document("bench", &Measured { measured, found }),
        format => output::write(&text(found, format)),
    }
}

fn text(measured: &Bench, format: Format) -> String {
    let (speeds, parts) = (speeds(measured), parts(measured));
    match format {
        Format::Csv => joined(speeds, parts).render(format),
        Format::Human => {
            let memory = measured.peak_memory.map_or_else(String::new, |bytes| {
                format!("; at most {} of memory, all arms together", Bytes(bytes))
            });
            let margin = measured.data_margin.as_ref().map_or_else(String::new, margin);
            let machine = format!("{} on {}{memory}", measured.recipe, measured.hardware);
            format!("{}\n{}{margin}{machine}\n", speeds.render(format), parts.render(format))
        }
        _ => format!("{}\n{}", speeds.render(format), parts.render(format)),
    }
}

/// Summary of the lead of the data thread over the updates.
fn margin(margin: &DataMargin) -> String {
    let DataMargin { arm, made_per_second, used_per_second, times } = margin;
    let short = if *times < ENOUGH { format!(": less than {ENOUGH}x") } else { String::new() };
    format!(
        "data thread: batches for {made_per_second:.1} updates/s, {times:.1}x the {used_per_second:.2} updates/s of {arm}, the \
         fastest arm{short}\n"
    )
}

fn number(value: f64, digits: usize) -> Cell {
    Cell { text: format!("{value:.digits$}"), value: value.into() }
}

/// A cell with a unit in human output; `-` if there is no value.
fn with_unit(value: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
    value.map_or_else(|| Cell::number(None), |value| Cell { text: text(value), value: value.into() })
}

/// Headings of the amount of an update and of a second, in the unit of the task.
fn headings(unit: &str) -> (String, String) {
    (format!("#{unit} an update"), format!("#{unit}/s"))
}

/// Table of the arms' speeds.
fn speeds(measured: &Bench) -> Table {
    let (of_update, of_second) = headings(measured.unit);
    let mut table = output::columns([
        "arm",
        "products",
        "batches",
        "#parameters",
        &of_update,
        "#seconds an update",
        &of_second,
        "#least",
        "#most",
        "#GFLOP/s",
        "#speed-up",
        "#90 % from",
        "#to",
    ]);
    let whole = |value: f64| Cell { text: grouped(value.round() as u64), value: value.into() };
    for arm in &measured.arms {
        let Spread { median, low, high } = arm.tokens_per_second;
        let speed_up = measured.speed_ups.iter().find(|one| one.arm == arm.arm).and_then(|one| one.speed_up);
        let ratio = |part: fn(&SpeedUp) -> f64| with_unit(speed_up.as_ref().map(part), |x| format!("{x:.2}"));
        table.push(vec![
            Cell::words(arm.arm.clone()),
            Cell::words(arm.compute.clone()),
            Cell::words(measured.data.clone()),
            Cell::count(arm.parameters),
            whole(arm.tokens_per_update),
            number(arm.seconds_per_update.median, 3),
            whole(median),
            whole(low),
            whole(high),
            number(arm.flops.median / 1e9, 1),
            ratio(|found| found.ratio),
            ratio(|found| found.low),
            ratio(|found| found.high),
        ]);
    }
    table
}

/// Table of the parts of an update, and of the fractions of the device's peak speeds.
fn parts(measured: &Bench) -> Table {
    let mut table = output::columns([
        "arm",
        "#forward ms",
        "#backward ms",
        "#update ms",
        "#rest ms",
        "#data ms",
        "#data thread ahead",
        "#ceiling GFLOP/s",
        "#reached",
        "#ceiling GB/s",
        "#update reaches",
    ]);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    for arm in &measured.arms {
        let (split, roofline) = (&arm.split, &arm.roofline);
        let is_noise = split.rest.abs() <= NOISE * arm.seconds_per_update.median;
        table.push(vec![
            Cell::words(arm.arm.clone()),
            number(1e3 * split.forward, 1),
            number(1e3 * split.backward, 1),
            number(1e3 * split.update, 1),
            with_unit(
                Some(1e3 * split.rest),
                |rest| if is_noise { "-".into() } else { format!("{rest:.1}") },
            ),
            with_unit(split.data.map(|seconds| 1e3 * seconds), |data| format!("{data:.2}")),
            with_unit(split.data_ahead, |times| format!("{times:.0}x")),
            number(roofline.product_flops / 1e9, 1),
            with_unit(Some(roofline.product_share), percent),
            number(roofline.copy_bytes / 1e9, 1),
            with_unit(roofline.update_share, percent),
        ]);
    }
    table
}

/// Joins two tables with the same rows. The first column of both is the arm.
fn joined(mut table: Table, other: Table) -> Table {
    table.columns.extend(other.columns.into_iter().skip(1));
    let rows = table.rows.iter_mut().zip(other.rows);
    rows.for_each(|(row, other)| row.extend(other.into_iter().skip(1)));
    table
}

fn written_text(found: &Decoding, format: Format) -> String {
    let mut table = output::columns([
        "arm",
        "products",
        "search",
        "sentences",
        "#parameters",
        "#sentences/s",
        "#least",
        "#most",
        "#seconds a batch",
    ]);
    for arm in &found.arms {
        let Spread { median, low, high } = arm.sentences_per_second;
        table.push(vec![
            Cell::words(arm.arm.clone()),
            Cell::words(arm.compute.clone()),
            Cell::words(found.search.clone()),
            Cell::words(found.shape.clone()),
            Cell::count(arm.parameters),
            number(median, 2),
            number(low, 2),
            number(high, 2),
            number(Spread::of(arm.laps.iter().copied()).median, 3),
        ]);
    }
    let rows = table.render(format);
    match format {
        Format::Human => format!("{rows}{} on {}\n", found.recipe, found.hardware),
        _ => rows,
    }
}

fn largest(found: &MaxBatch, format: Format) -> String {
    let (of_update, of_second) = headings(found.unit);
    let mut table = output::columns([
        "arm",
        "products",
        "#examples",
        "#length",
        "#too many",
        "bound by",
        &of_update,
        "#seconds an update",
        &of_second,
        "#memory",
    ]);
    for arm in &found.arms {
        let largest = arm.largest.as_ref();
        let count = |value: Option<u64>| value.map_or_else(|| Cell::number(None), Cell::count);
        let bound = match &arm.bound {
            Bound::Memory => "memory",
            Bound::Time => "time",
            Bound::Shape => "largest shape",
            Bound::Failure(error) => error,
        };
        table.push(vec![
            Cell::words(arm.arm.clone()),
            Cell::words(arm.compute.clone()),
            count(arm.sentences.map(u64::from)),
            Cell::count(arm.sentence.into()),
            count(arm.too_many.map(u64::from)),
            Cell::words(bound),
            count(largest.map(|probed| probed.tokens)),
            with_unit(largest.map(|probed| probed.seconds), |seconds| format!("{seconds:.3}")),
            with_unit(largest.map(|probed| probed.tokens as f64 / probed.seconds), |speed| {
                grouped(speed.round() as u64)
            }),
            with_unit(largest.and_then(|probed| probed.memory).map(|bytes| bytes as f64), |bytes| {
                Bytes(bytes as u64).to_string()
            }),
        ]);
    }
    let rows = table.render(format);
    if format != Format::Human {
        return rows;
    }
    let memory = found.memory_limit.map_or_else(|| "its memory".to_owned(), |most| Bytes(most).to_string());
    format!(
        "{rows}{} on {}, within {memory} and {} s a batch\n",
        found.recipe, found.hardware, found.seconds_limit
    )
}

/// The kernels of one update of every arm.
fn of_update(found: &Kernels, format: Format) -> String {
    let mut table = output::columns(["arm", "products", "kernel", "#launches", "#ms", "#share"]);
    for arm in &found.arms {
        let all = arm.device_seconds();
        for kernel in &arm.kernels {
            table.push(vec![
                Cell::words(arm.arm.clone()),
                Cell::words(arm.compute.clone()),
                Cell::words(kernel.kernel.clone()),
                Cell::count(kernel.launches as u64),
                with_unit(kernel.seconds.map(|seconds| 1e3 * seconds), |ms| format!("{ms:.3}")),
                with_unit(kernel.seconds.zip(all).map(|(one, all)| one / all), |share| {
                    format!("{:.1} %", 100.0 * share)
                }),
            ]);
        }
    }
    let rows = table.render(format);
    if format != Format::Human {
        return rows;
    }
    let sums: String = found.arms.iter().map(|arm| sum(arm, found)).collect();
    format!("{rows}{sums}{} on {}\n", found.recipe, found.hardware)
}

/// Sums of an arm's kernels, and the duration of the update.
fn sum(arm: &ArmKernels, found: &Kernels) -> String {
    let device = match arm.device_seconds() {
        Some(seconds) => format!("{:.1} ms", 1e3 * seconds),
        None => "a time that the device did not measure".into(),
    };
    format!(
        "{}: {} launches in {device}; an update of {} {} takes {:.1} ms when its kernels are not timed\n",
        arm.arm,
        grouped(arm.launches() as u64),
        grouped(arm.tokens),
        found.unit,
        1e3 * arm.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_thread_that_is_hardly_faster_is_told() {
        let of = |times: f64| {
            margin(&DataMargin {
                arm: "mixed".into(),
                made_per_second: 4.0 * times,
                used_per_second: 4.0,
                times,
            })
        };
        assert_eq!(
            of(3.0),
            "data thread: batches for 12.0 updates/s, 3.0x the 4.00 updates/s of mixed, the fastest arm\n"
        );
        assert!(of(1.5).ends_with("fastest arm: less than 2x\n"), "{}", of(1.5));
    }
}
