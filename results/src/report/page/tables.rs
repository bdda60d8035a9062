//! Tables and lists of facts.

use super::markup::Markup;

/// Maximum characters of a value in a column of facts.
const NARROW: usize = 48;

/// A table that scrolls independently if it is wider than the page. The first cell of a row is its
/// header.
pub(super) fn table(markup: &mut Markup, caption: &str, titles: &[String], rows: &[Vec<String>]) {
    markup.line();
    let scroll = [("class", "scroll"), ("role", "region"), ("aria-label", caption), ("tabindex", "0")];
    markup.element("div", &scroll, |div| {
        div.element("table", &[], |table| {
            table.leaf("caption", &[], caption);
            table.element("thead", &[], |head| {
                head.element("tr", &[], |row| {
                    for (at, title) in titles.iter().enumerate() {
                        let mut cells = rows.iter().filter_map(|row| row.get(at));
                        match at > 0 && !rows.is_empty() && cells.all(|cell| is_number(cell)) {
                            true => row.leaf("th", &[("scope", "col"), ("class", "number")], title),
                            false => row.leaf("th", &[("scope", "col")], title),
                        }
                    }
                });
            });
            table.element("tbody", &[], |body| {
                for cells in rows {
                    body.element("tr", &[], |row| {
                        for (at, cell) in cells.iter().enumerate() {
                            match at {
                                0 => row.leaf("th", &[("scope", "row")], cell),
                                _ if is_number(cell) => row.leaf("td", &[("class", "number")], cell),
                                _ => row.leaf("td", &[], cell),
                            }
                        }
                    });
                }
            });
        });
    });
}

/// Titles of a table.
pub(super) fn titles<const N: usize>(titles: [&str; N]) -> Vec<String> {
    titles.map(str::to_owned).to_vec()
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && cell.chars().all(|c| c.is_ascii_digit() || ",.-%e ".contains(c))
}

/// Names with their values.
pub(super) fn facts<'f>(markup: &mut Markup, facts: impl IntoIterator<Item = (&'f str, &'f str)>) {
    markup.element("dl", &[("class", "facts")], |dl| {
        for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
            let wide: &[(&str, &str)] =
                if value.chars().count() > NARROW { &[("class", "wide")] } else { &[] };
            dl.element("div", wide, |div| {
                div.leaf("dt", &[], name);
                div.leaf("dd", &[], value);
            });
        }
    });
}

/// A line that states that something is missing.
pub(super) fn missing(markup: &mut Markup, why: &str) {
    markup.leaf("p", &[("class", "missing")], why);
}
