//! Saved profiles of the runs: what FP16 would lose, and the loss scale that suits it.

use super::markup::Markup;
use super::media::drawing;
use super::model::{Page, ProfilePart};
use super::tables::{facts, table};
use crate::profile::{Fp16Shares, Profile, Quantity};
use crate::report::exponents::{figure, percent};

/// Id of the section, which a page without profiles does not have.
pub(super) const ID: &str = "profiles";

/// The profile of each run that has one.
pub(super) fn profiles(markup: &mut Markup, page: &Page) {
    for part in &page.profiles {
        let name = page.runs.get(part.run).map_or_else(String::new, |run| run.name());
        one(markup, &name, part);
    }
}

fn one(markup: &mut Markup, run: &str, part: &ProfilePart) {
    let ProfilePart { compute, from, profile, .. } = part;
    let suggested = profile.suggested();
    let updates = updates(profile);
    markup.line();
    markup.element("article", &[], |article| {
        article.leaf("h3", &[], &format!("{run}: {updates}"));
        article.leaf("p", &[], &capital(&suggested.to_string()));
        facts(article, [("computed in", compute.as_str()), ("profiled by", from)]);
        let svg = figure(&format!("{run}: {updates}"), profile, suggested.log2);
        let about = format!("Histograms by exponent, {run}, {updates}. The table has the shares.");
        drawing(article, svg, &about, "Exponents of gradients, weights and updates, with the limits of FP16");
        shares(article, run, profile, suggested.log2);
    });
}

fn updates(profile: &Profile) -> String {
    let all: Vec<String> = profile.updates.iter().map(|one| one.update.to_string()).collect();
    match all.as_slice() {
        [one] => format!("update {one}"),
        several => format!("updates {}", several.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Shares of FP16's ranges over all updates and layers.
fn shares(markup: &mut Markup, run: &str, profile: &Profile, scale: i32) {
    let mut titles: Vec<String> =
        ["quantity", "values", "zero", "< 2^-24", "subnormal", ">= 2^16"].map(str::to_owned).to_vec();
    if scale > 0 {
        titles.push(format!("x2^{scale}: < 2^-24"));
    }
    titles.extend(["2048 and more", "unmoved"].map(str::to_owned));
    let none = || "-".to_owned();
    let row = |quantity: Quantity| {
        let histogram = profile.all(quantity);
        let all = histogram.values();
        let share = |count: u64, applies: bool| if applies { percent(count, all) } else { none() };
        let (plain, scaled) = (Fp16Shares::of(&histogram, 0), Fp16Shares::of(&histogram, scale));
        let is_ratio = quantity == Quantity::Ratios;
        let counts = [histogram.zeros(), plain.lost, plain.subnormal, plain.above];
        let mut row = vec![quantity.name().to_owned(), all.to_string()];
        row.extend(counts.map(|count| share(count, !is_ratio)));
        if scale > 0 {
            row.push(share(scaled.lost, quantity.is_scaled()));
        }
        row.push(share(histogram.at_least(Quantity::LARGE_RATIO), is_ratio));
        row.push(share(histogram.not_finite(), is_ratio));
        row
    };
    let rows: Vec<Vec<String>> = Quantity::ALL.map(row).to_vec();
    table(markup, &format!("Share of all values: {run}"), &titles, &rows);
}
