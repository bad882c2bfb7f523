//! Tables and large numbers as text.

use std::io::{self, Write};

/// The width up to which cells are padded: `format!` refuses more than 65,535, and nobody reads such a line.
const MAX_PADDED_WIDTH: usize = 200;

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of text whose columns line up.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns: a heading and where the cells stand.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let headings = columns
            .iter()
            .map(|(heading, _)| (*heading).to_owned())
            .collect();
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![headings],
        }
    }

    /// Adds a row: one cell for each column. Control characters, which could come from a dataset and do anything to a
    /// terminal, become spaces.
    pub(crate) fn push<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.aligns.len(), "one cell for each column");
        self.rows
            .push(cells.map(|cell| cell.replace(char::is_control, " ")).into());
    }

    /// Writes the rows, indented, two spaces between columns.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |column: usize| {
            let widths = self.rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0).min(MAX_PADDED_WIDTH)
        };
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.aligns) {
                line += "  ";
                line += &match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A whole number with a comma between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and its noun: `1 episode`, `2 episodes`, `3 batches`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with("ch") || noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[
            ("key", Align::Left),
            ("n", Align::Right),
            ("x", Align::Left),
        ]);
        table.push(["état".to_owned(), "7".to_owned(), "long".to_owned()]);
        table.push(["a".to_owned(), "12".to_owned(), String::new()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        let expected = "  key    n  x\n  état   7  long\n  a     12\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_cell_longer_than_any_padding_is_written_whole() {
        let mut table = Table::new(&[("task", Align::Left), ("n", Align::Right)]);
        let long = "x".repeat(100_000);
        table.push([long.clone(), "1".to_owned()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert!(String::from_utf8(text).unwrap().contains(&long));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut table = Table::new(&[("task", Align::Left)]);
        table.push(["a\nb\x1b[2J".to_owned()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "  task\n  a b [2J\n");
    }

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(count(1, "frame"), "1 frame");
        assert_eq!(count(1000, "frame"), "1,000 frames");
        assert_eq!(count(2, "batch"), "2 batches");
    }
}
