//! A self-contained HTML page about the runs of a recipe: verdicts, curves, evaluations, data.
//!
//! [`Page`] is the content, and [`render`] writes the text. The page loads nothing and runs no
//! scripts. Drawings are SVG in the page, and colours follow the reader's choice of light or dark.
//! Everything shown by colour is also shown by a sign or a word. Missing data is named.

mod chart;
mod curves;
mod data;
mod evaluation;
mod head;
pub(super) mod markup;
mod media;
mod model;
mod profiles;
pub(super) mod scale;
mod scores_chart;
mod sentences;
pub(super) mod series;
mod tables;
mod training_log;
mod utterances;

pub use media::{Medium, Sample, SampleFile, SampleLine};
pub use model::{EvaluationPart, JudgedPart, Page, ProfilePart, RecipePart, RunPart, VerdictsPart};
pub use series::{Point, Series};
pub use training_log::{SplitCounts, TrainingLog};

use markup::Markup;

/// Value of the generator tag near the beginning of every page, by which pages are recognised.
const GENERATOR: &str = "zoo report";
/// Number of bytes within which the tag must occur.
const HEAD: usize = 512;

const STYLE: &str = include_str!("style.css");

/// The page as text.
#[must_use]
pub fn render(page: &Page) -> String {
    let mut markup = Markup::default();
    markup.own("<!doctype html>\n");
    let title = head::title(page);
    markup.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], |head| {
            head.void("meta", &[("charset", "utf-8")]);
            head.void("meta", &[("name", "generator"), ("content", GENERATOR)]);
            head.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
            head.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            head.leaf("title", &[], &format!("{title}: report"));
            head.element("style", &[], |style| style.own(STYLE));
        });
        html.line();
        html.element("body", &[], |body| contents(body, page));
    });
    markup.line();
    markup.finish()
}

/// Whether this text is a page written by [`render`].
#[must_use]
pub fn is_page(text: &[u8]) -> bool {
    let mark = format!("<meta name=\"generator\" content=\"{GENERATOR}\">");
    text[..text.len().min(HEAD)].windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn contents(body: &mut Markup, page: &Page) {
    type Section = (&'static str, &'static str, fn(&mut Markup, &Page));
    let sections: [Section; 7] = [
        ("verdicts", "Verdicts", head::verdicts),
        ("runs", "Runs", |markup, page| {
            head::runs(markup, &page.runs);
            markup.leaf("h3", &[], "Environment");
            head::environment(markup, &page.runs);
        }),
        ("curves", "Curves", curves::curves),
        (profiles::ID, "Profiles", profiles::profiles),
        ("evaluation", "Evaluation", evaluation::evaluations),
        ("data", "Data", data::data),
        ("recipe", "Recipe", recipe),
    ];
    // A profile is saved only on demand, so none is missing.
    let sections = || sections.iter().filter(|(id, ..)| *id != profiles::ID || !page.profiles.is_empty());
    body.leaf("a", &[("class", "skip"), ("href", "#verdicts")], "To the verdicts");
    head::header(body, page);
    body.element("nav", &[("aria-label", "Sections")], |nav| {
        nav.element("ul", &[], |ul| {
            for (id, title, _) in sections() {
                ul.element("li", &[], |li| li.leaf("a", &[("href", &format!("#{id}"))], title));
            }
        });
    });
    body.element("main", &[], |main| {
        for why in &page.missing {
            tables::missing(main, why);
        }
        for (id, title, write) in sections() {
            main.line();
            main.element("section", &[("id", id), ("aria-labelledby", &format!("{id}-head"))], |section| {
                section.leaf("h2", &[("id", &format!("{id}-head"))], title);
                write(section, page);
            });
        }
    });
    body.line();
    body.element("footer", &[], |footer| {
        footer.leaf("p", &[], &format!("Written by zoo report, {}, {}.", page.program, page.made));
    });
}

/// The resolved recipes, in a collapsible section.
fn recipe(markup: &mut Markup, page: &Page) {
    if page.recipe.toml.is_empty() {
        tables::missing(markup, "The resolved recipe is not available.");
    }
    for (arm, toml) in &page.recipe.toml {
        markup.element("details", &[], |details| {
            details.leaf("summary", &[], &format!("As resolved: {arm}"));
            details.element("pre", &[("tabindex", "0")], |pre| pre.leaf("code", &[], toml));
        });
    }
}
