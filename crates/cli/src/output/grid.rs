//! Rows of cells with columns aligned, and the colours of states.

use unicode_width::UnicodeWidthStr;

use crate::effect::NO_EFFECT;

/// Blanks between two columns.
const GAP: usize = 3;
const RESET: &str = "\x1b[0m";

/// Text without control characters for the terminal; may have several lines.
pub struct Cell {
    pub text: String,
    /// Whether its first word is a state, which has a colour.
    pub is_state: bool,
}

impl Cell {
    /// A cell without a colour.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), is_state: false }
    }
}

/// Rows that are laid out together. Column widths include all earlier rows.
#[derive(Default)]
pub struct Grid {
    rows: Vec<Vec<Cell>>,
    widths: Vec<usize>,
}

impl Grid {
    /// Adds a row; it may be longer or shorter than others.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = cells.into_iter().collect();
        self.widths.resize(self.widths.len().max(row.len()), 0);
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = cell.text.lines().map(UnicodeWidthStr::width).fold(*width, usize::max);
        }
        self.rows.push(row);
    }

    /// The rows that were added since the last call.
    pub fn lay_out(&mut self, coloured: bool) -> String {
        let rows = std::mem::take(&mut self.rows);
        let mut lines = Vec::new();
        for row in &rows {
            let height = row.iter().map(|cell| cell.text.lines().count()).max().unwrap_or_default();
            lines.extend((0..height).map(|number| self.line(row, number, coloured)));
        }
        lines.join("\n")
    }

    /// One line of a row.
    fn line(&self, row: &[Cell], number: usize, coloured: bool) -> String {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&self.widths) {
            let text = cell.text.lines().nth(number).unwrap_or_default();
            match colour(text).filter(|_| coloured && cell.is_state) {
                Some(colour) => line += &format!("{colour}{text}{RESET}"),
                None => line += text,
            }
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(text.width()) + GAP));
        }
        line.trim_end().to_owned()
    }
}

/// The colour of a state by its first word: green for working, red for failing, yellow for in
/// progress or without effect; none otherwise.
fn colour(state: &str) -> Option<&'static str> {
    const GREEN: &str = "\x1b[32m";
    const YELLOW: &str = "\x1b[33m";
    const RED: &str = "\x1b[31m";
    let word = state.split([' ', '(', ',']).next().unwrap_or_default().to_lowercase();
    if state.ends_with(NO_EFFECT) {
        return Some(YELLOW);
    }
    match word.as_str() {
        "" | "-" | "idle" | "inactive" => None,
        "active" | "running" | "ready" | "succeeded" | "completed" | "bound" => Some(GREEN),
        "unavailable" => Some(RED),
        word if ["error", "fail", "backoff", "err"].iter().any(|bad| word.contains(bad)) => {
            Some(RED)
        }
        _ => Some(YELLOW),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[[&str; 2]]) -> Grid {
        let mut grid = Grid::default();
        for [state, name] in rows {
            let state = Cell { text: (*state).to_owned(), is_state: true };
            grid.add_row([state, Cell::new(name)]);
        }
        grid
    }

    #[test]
    fn states_have_colours_that_do_not_move_the_columns() {
        let rows =
            [["active", "a"], ["unavailable (no answer)", "b"], ["waiting", "c"], ["-", "d"]];
        let plain = grid(&rows).lay_out(false);
        assert_eq!(
            plain,
            "active                    a\nunavailable (no answer)   b\n\
             waiting                   c\n-                         d"
        );
        let coloured = grid(&rows).lay_out(true);
        for painted in
            ["\x1b[32mactive\x1b[0m", "\x1b[31munavailable (no answer)\x1b[0m", "\x1b[33m"]
        {
            assert!(coloured.contains(painted), "{coloured:?}");
        }
        let mut bare = coloured;
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", RESET] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, plain);
    }

    #[test]
    fn states_without_effect_are_not_green() {
        let green = colour("active");
        for state in ["active, no effect yet", "active, partly no effect yet"] {
            assert_ne!(colour(state), green, "{state}");
            assert!(colour(state).is_some(), "{state}");
        }
        assert_eq!(colour("Ready, memory pressure"), green);
    }

    #[test]
    fn later_rows_align_with_earlier_ones() {
        let mut grid = grid(&[["STATE", "NAME"], ["unavailable", "a"]]);
        grid.lay_out(false);
        grid.add_row([Cell::new("active"), Cell::new("世界")]);
        assert_eq!(grid.lay_out(false), "active        世界");
        grid.add_row([Cell::new("two\nlines"), Cell::new("b")]);
        assert_eq!(grid.lay_out(false), "two           b\nlines");
    }
}
