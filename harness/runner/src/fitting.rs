//! Tables in the width of a terminal.

use std::io::{self, IsTerminal};

use zoo_recipes::untrusted::one_line;
use zoo_results::report::{Cell, Table};

/// Gap between two columns.
const GAP: usize = 2;
/// Fewest characters to which the last column is cut.
const LEAST: usize = 16;

/// Number of columns of the terminal on stdout; `None` if it is not a terminal.
pub fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The table without the columns on the right that do not fit into this width. The last column of
/// the table is cut if a part of it fits.
pub fn fitted(mut table: Table, width: usize) -> Table {
    let last = table.columns.len().saturating_sub(1);
    let mut used = 0;
    let mut kept = 0;
    for at in 0..table.columns.len() {
        let texts = table.rows.iter().map(|row| row[at].text.chars().count());
        let needed = texts.chain([table.columns[at].title.chars().count()]).max().unwrap_or(0);
        let gap = if at == 0 { 0 } else { GAP };
        let room = width.saturating_sub(used + gap);
        if needed > room && !(at == last && room >= LEAST) && at > 0 {
            break;
        }
        if needed > room {
            table.rows.iter_mut().for_each(|row| cut(&mut row[at], room));
        }
        used += gap + needed.min(room);
        kept = at + 1;
    }
    table.columns.truncate(kept);
    table.rows.iter_mut().for_each(|row| row.truncate(kept));
    table
}

fn cut(cell: &mut Cell, room: usize) {
    if cell.text.chars().count() > room {
        let text: String = one_line(&cell.text).chars().take(room.saturating_sub(1)).collect();
        cell.text = format!("{}…", text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use zoo_results::report::Format;

    use super::*;
    use crate::output::columns;

    #[test]
    fn columns_on_the_right_are_left_out_and_the_last_is_cut() {
        let mut table = columns(["name", "task", "summary"]);
        table.push(["toy", "translation", "reverses strings of ten symbols"].map(Cell::words).to_vec());
        let shown = |width| fitted(table.clone(), width).render(Format::Human);
        assert_eq!(shown(80), table.render(Format::Human));
        assert_eq!(shown(40), "name  task         summary\ntoy   translation  reverses strings of…\n");
        assert_eq!(shown(30), "name  task\ntoy   translation\n");
        assert_eq!(shown(10), "name\ntoy\n");
        assert!(
            [80, 40, 30, 10]
                .iter()
                .all(|width| shown(*width).lines().all(|line| line.chars().count() <= *width))
        );
    }
}
