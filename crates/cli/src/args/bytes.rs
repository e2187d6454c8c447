//! Arguments about single bytes of a file: of `of`.

use backstory_inspection::file_parts::PartName;
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

    /// The same for a cell: B3 of a table (CSV, TSV, Parquet, Arrow), Sheet2!B3 of a workbook
    /// (xlsx, ods), 3 or 3.outputs of a notebook
    #[arg(long, value_name = "CELL", group = "part",
          conflicts_with_all = ["dot", "tree", "commands", "why", "inputs", "packages", "table"])]
    pub cell: Option<String>,

    /// The same for a member: rows[3].price of JSON, JSON lines or TOML, price[3] of a table, or a
    /// member of an archive. Items and rows count from 0. SQLite: trees[42].name, by the key of the
    /// row. HDF5: /runs/speed[3]
    #[arg(long, value_name = "PATH", group = "part",
          conflicts_with_all = ["dot", "tree", "commands", "why", "inputs", "packages", "table"])]
    pub member: Option<String>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The bytes from the first to the last, counted from 0.
    Bytes(u64, u64),
    /// A line, counted from 1.
    Line(u64),
    /// A part by the structure of the file's type.
    Part(PartName),
}

impl ByteArgs {
    /// The part that is asked about, if one is.
    pub fn selection(&self) -> Option<Selection> {
        let bytes = self
            .bytes
            .map(|(first, last)| Selection::Bytes(first, last));
        let line = self.line.map(Selection::Line);
        let cell = self.cell.clone().map(PartName::Cell);
        let member = self.member.clone().map(PartName::Member);
        let part = cell.or(member).map(Selection::Part);
        bytes.or(line).or(part)
    }
}

fn offsets(text: &str) -> Result<(u64, u64), String> {
    range(text).ok_or_else(|| "give two offsets, as in 100-120".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_last_byte() {
        assert_eq!(offsets("100-120"), Ok((100, 120)));
        assert_eq!(offsets("7"), Ok((7, 7)));
        for bad in ["", "-", "5-4", "a-b", "1-"] {
            assert!(offsets(bad).is_err(), "{bad:?}");
        }
    }
}
