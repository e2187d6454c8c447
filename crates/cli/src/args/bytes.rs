//! Arguments about single bytes of a file: of `of`.

use clap::Args;

use super::amounts::range;

/// Which bytes of the file `of` is asked about
#[derive(Debug, Args)]
pub struct ByteArgs {
    /// The input bytes that the bytes A to B came from, counted from 0 (also A alone). The run must
    /// have been recorded with --bytes, or refined: see `backstory refine`
    #[arg(long, value_name = "A-B", group = "part", value_parser = offsets,
          conflicts_with_all = ["dot", "tree", "commands", "why", "inputs", "packages", "table"])]
    pub bytes: Option<(u64, u64)>,

    /// The same for a line, counted from 1
    #[arg(long, value_name = "N", group = "part",
          conflicts_with_all = ["dot", "tree", "commands", "why", "inputs", "packages", "table"])]
    pub line: Option<u64>,

    /// The same for a cell of a table in CSV or TSV: column and row, as in B3
    #[arg(long, value_name = "CELL", group = "part", value_parser = cell,
          conflicts_with_all = ["dot", "tree", "commands", "why", "inputs", "packages", "table"])]
    pub cell: Option<(usize, usize)>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The bytes from the first to the last, counted from 0.
    Bytes(u64, u64),
    /// A line, counted from 1.
    Line(u64),
    /// Column and row, counted from 0.
    Cell(usize, usize),
}

impl ByteArgs {
    /// The part that is asked about, if one is.
    pub fn selection(&self) -> Option<Selection> {
        let bytes = self
            .bytes
            .map(|(first, last)| Selection::Bytes(first, last));
        let line = self.line.map(Selection::Line);
        let cell = self.cell.map(|(column, row)| Selection::Cell(column, row));
        bytes.or(line).or(cell)
    }
}

fn offsets(text: &str) -> Result<(u64, u64), String> {
    range(text).ok_or_else(|| "give two offsets, as in 100-120".to_owned())
}

fn cell(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "give a column and a row, as in B3".to_owned();
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let mut column = 0usize;
    if letters == 0 || letters > 4 {
        return Err(wrong());
    }
    for letter in text[..letters].bytes() {
        column = column * 26 + usize::from(letter.to_ascii_uppercase() - b'A' + 1);
    }
    match text[letters..].parse::<usize>() {
        Ok(row @ 1..) => Ok((column - 1, row - 1)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_name_that_spreadsheets_give_it() {
        assert_eq!(cell("A1"), Ok((0, 0)));
        assert_eq!(cell("b3"), Ok((1, 2)));
        assert_eq!(cell("AA10"), Ok((26, 9)));
        for bad in ["", "A", "3", "A0", "A-1", "ABCDE1", "Ä1"] {
            assert!(cell(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_range_has_its_last_byte() {
        assert_eq!(offsets("100-120"), Ok((100, 120)));
        assert_eq!(offsets("7"), Ok((7, 7)));
        for bad in ["", "-", "5-4", "a-b", "1-"] {
            assert!(offsets(bad).is_err(), "{bad:?}");
        }
    }
}
