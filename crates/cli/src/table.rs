//! Rows as a table for people.

use crate::failure::Failure;
use std::io::{self, IsTerminal as _, Read, Write};

/// Max width of a cell; longer ones are cut with an ellipsis.
const CELL_MAX: usize = 42;

/// A table that is printed once it is complete.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    has_more: bool,
    cell_max: usize,
}

impl Table {
    /// A table with these column names.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Table {
        let head = head.into_iter().map(Into::into).collect();
        Table { head, rows: Vec::new(), has_more: false, cell_max: CELL_MAX }
    }

    /// Makes a table of few rows, whose cells are truncated only on a terminal.
    pub fn whole_unless_shown(self) -> Table {
        let cell_max = if io::stdout().is_terminal() { CELL_MAX } else { usize::MAX };
        Table { cell_max, ..self }
    }

    /// Reads comma-separated values with a header line, as the server and the writers make them, up to `max` rows.
    pub fn from_csv(bytes: impl Read, max: usize) -> Result<Table, Failure> {
        let broken = |e: csv::Error| Failure::Refused(format!("the answer broke off: {e}"));
        let mut reader = csv::Reader::from_reader(bytes);
        let mut table = Table::new(reader.headers().map_err(broken)?);
        let mut records = reader.records();
        // Bounded: all rows are in memory until the widths of the columns are known.
        for record in records.by_ref().take(max) {
            table.rows.push(record.map_err(broken)?.iter().map(str::to_owned).collect());
        }
        table.has_more = records.next().transpose().map_err(broken)?.is_some();
        Ok(table)
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// True if the values that it was read from have further rows.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Prints the columns aligned, numbers to the right; omits columns without values.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let cell = |row: &[String], i: usize| shorten(row.get(i).map_or("", String::as_str), self.cell_max);
        let columns: Vec<usize> = (0..self.head.len())
            .filter(|&i| self.rows.is_empty() || self.rows.iter().any(|r| r.get(i).is_some_and(|c| !c.is_empty())))
            .collect();
        let widths: Vec<(usize, bool)> = columns
            .iter()
            .map(|&i| {
                let cells = || self.rows.iter().map(|r| cell(r, i));
                let widest = cells().map(|c| c.chars().count()).max().unwrap_or(0);
                // A column of numbers is aligned to the right, so that digits line up.
                let numbers = cells().all(|c| c.is_empty() || c.parse::<f64>().is_ok()) && !self.rows.is_empty();
                (widest.max(self.head[i].chars().count().min(CELL_MAX)), numbers)
            })
            .collect();
        let mut line = |text: &dyn Fn(usize) -> String| -> io::Result<()> {
            let mut whole = String::new();
            for (&i, &(width, right)) in columns.iter().zip(&widths) {
                let text = text(i);
                let gap = " ".repeat(width.saturating_sub(text.chars().count()));
                let padded = if right { format!("{gap}{text}") } else { format!("{text}{gap}") };
                whole.push_str(&padded);
                whole.push_str("  ");
            }
            writeln!(out, "{}", whole.trim_end())
        };
        line(&|i| shorten(&self.head[i], self.cell_max))?;
        for row in &self.rows {
            line(&|i| cell(row, i))?;
        }
        Ok(())
    }
}

/// Returns one line of at most `max` characters, without control characters.
fn shorten(text: &str, max: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(max) {
        None => clean,
        // By characters: a cut within a character would not be UTF-8.
        Some(_) => clean.chars().take(max - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let csv = "name,empty,n\nshort,,7\n\"a, b\",,1234.5\n";
        let table = Table::from_csv(csv.as_bytes(), 2).unwrap();
        assert_eq!((table.rows(), table.has_more()), (2, false));
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name        n\nshort       7\na, b   1234.5\n");
    }

    #[test]
    fn rows_beyond_the_most_are_known_to_be_there() {
        let table = Table::from_csv("n\n1\n2\n3\n".as_bytes(), 2).unwrap();
        assert_eq!((table.rows(), table.has_more()), (2, true));
        assert!(Table::from_csv("n\n1\n2\n3,4\n".as_bytes(), 2).is_err());
    }

    #[test]
    fn long_and_odd_cells_stay_on_their_line() {
        let mut table = Table::new(["x"]);
        table.push(vec!["ä\n".repeat(100)]);
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(text.lines().nth(1).unwrap().chars().count(), CELL_MAX);
    }
}
