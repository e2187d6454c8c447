//! A file of Parquet: one row group, if it has rows, whose columns have pages of plain values.
//!
//! In: columns. Out: a file as
//! [Parquet's specification](https://parquet.apache.org/docs/file-format/) has it. The library
//! `parquet` reads and writes every form of it, and takes as long to compile as our largest crates.
//! Tests read the files with DuckDB.
//!
//! Each column is optional. A page has the bits of its rows that have a value, then the values. It
//! is compressed by zstd.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use super::column::{Column, Columns};
use super::thrift::{self, Item, Structure, varint};

const MAGIC: &[u8] = b"PAR1";
/// Rows of a page. A page has at most 2 GB.
const PAGE_ROWS: usize = 1 << 14;
const COMPRESSION_LEVEL: i32 = 1;

/// Numbers of the specification.
const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
const OPTIONAL: i32 = 1;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const ZSTD: i32 = 6;
const DATA_PAGE: i32 = 0;
/// The names of types in files that older readers know.
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;

/// Where the pages of a column are.
struct ColumnChunk {
    start: usize,
    /// With the heads of pages.
    size: usize,
    uncompressed: usize,
}

/// Writes a table.
pub fn write(path: &Path, columns: &Columns) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(MAGIC)?;
    let mut position = MAGIC.len();
    let rows = columns.first().map_or(0, |(_, column)| column.rows());
    let mut chunks = Vec::new();
    for (_, column) in columns {
        let mut chunk = ColumnChunk {
            start: position,
            size: 0,
            uncompressed: 0,
        };
        for first in (0..rows).step_by(PAGE_ROWS) {
            let range = first..rows.min(first + PAGE_ROWS);
            let plain = page(column, range.clone());
            let packed = zstd::bulk::compress(&plain, COMPRESSION_LEVEL)?;
            let head = page_head(range.len(), plain.len(), packed.len());
            out.write_all(&head)?;
            out.write_all(&packed)?;
            chunk.size += head.len() + packed.len();
            chunk.uncompressed += head.len() + plain.len();
        }
        position += chunk.size;
        chunks.push(chunk);
    }
    let footer = footer(columns, rows, &chunks);
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)?;
    out.flush()
}

fn page_head(rows: usize, plain: usize, packed: usize) -> Vec<u8> {
    let data = Structure::default()
        .number(1, rows as i32)
        .number(2, PLAIN)
        .number(3, RLE)
        .number(4, RLE);
    Structure::default()
        .number(1, DATA_PAGE)
        .number(2, plain as i32)
        .number(3, packed as i32)
        .structure(5, data)
        .end()
}

fn footer(columns: &Columns, rows: usize, chunks: &[ColumnChunk]) -> Vec<u8> {
    let root = Structure::default()
        .text(4, "table")
        .number(5, columns.len() as i32);
    let mut schema = vec![root.end()];
    schema.extend(columns.iter().map(|(name, column)| declared(name, column)));
    let described = columns.iter().zip(chunks);
    let described: Vec<Vec<u8>> = described
        .map(|((name, column), chunk)| {
            let about = Structure::default()
                .number(1, kind(column))
                .list(2, Item::Number, &[PLAIN, RLE].map(thrift::number))
                .list(3, Item::Text, &[thrift::text(name)])
                .number(4, ZSTD)
                .long(5, rows)
                .long(6, chunk.uncompressed)
                .long(7, chunk.size)
                .long(9, chunk.start);
            let chunk = Structure::default().long(2, chunk.start);
            chunk.structure(3, about).end()
        })
        .collect();
    let size = chunks.iter().map(|chunk| chunk.uncompressed).sum();
    let group = Structure::default()
        .list(1, Item::Structure, &described)
        .long(2, size)
        .long(3, rows);
    let groups: Vec<Vec<u8>> = (rows > 0).then(|| group.end()).into_iter().collect();
    Structure::default()
        .number(1, 1)
        .list(2, Item::Structure, &schema)
        .long(3, rows)
        .list(4, Item::Structure, &groups)
        .text(6, concat!("backstory version ", env!("CARGO_PKG_VERSION")))
        .end()
}

fn kind(column: &Column) -> i32 {
    match column {
        Column::Text(_) | Column::Bytes(_) => BYTE_ARRAY,
        Column::Number(_) | Column::Moment(_) => INT64,
        Column::Truth(_) => BOOLEAN,
    }
}

/// The declaration of a column.
fn declared(name: &str, column: &Column) -> Vec<u8> {
    let element = Structure::default()
        .number(1, kind(column))
        .number(3, OPTIONAL)
        .text(4, name);
    let element = match column {
        Column::Text(_) => {
            let string = Structure::default().structure(1, Structure::default());
            element.number(6, UTF8).structure(10, string)
        }
        Column::Moment(_) => {
            let micros = Structure::default().structure(2, Structure::default());
            let stamp = Structure::default().truth(1, true).structure(2, micros);
            let stamp = Structure::default().structure(8, stamp);
            element.number(6, TIMESTAMP_MICROS).structure(10, stamp)
        }
        Column::Bytes(_) | Column::Number(_) | Column::Truth(_) => element,
    };
    element.end()
}

/// The bytes of a page.
fn page(column: &Column, rows: Range<usize>) -> Vec<u8> {
    match column {
        Column::Text(values) => plain(&values[rows], |text, out| {
            append_bytes(text.as_bytes(), out);
        }),
        Column::Bytes(values) => plain(&values[rows], |bytes, out| append_bytes(bytes, out)),
        Column::Number(values) => plain(&values[rows], |number, out| {
            out.extend_from_slice(&number.to_le_bytes());
        }),
        Column::Moment(values) => plain(&values[rows], |nanoseconds, out| {
            out.extend_from_slice(&nanoseconds.div_euclid(1000).to_le_bytes());
        }),
        Column::Truth(values) => {
            let mut page = there(&values[rows.clone()]);
            page.extend(bits(values[rows].iter().flatten().copied()));
            page
        }
    }
}

/// Which rows have a value, and the values.
fn plain<V>(values: &[Option<V>], append: impl Fn(&V, &mut Vec<u8>)) -> Vec<u8> {
    let mut page = there(values);
    for value in values.iter().flatten() {
        append(value, &mut page);
    }
    page
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A bit for each row: set if it has a value. The bits are one run of groups of eight.
fn there<V>(values: &[Option<V>]) -> Vec<u8> {
    let mut run = Vec::new();
    varint(&mut run, (values.len().div_ceil(8) as u64) << 1 | 1);
    run.extend(bits(values.iter().map(Option::is_some)));
    let mut level = (run.len() as u32).to_le_bytes().to_vec();
    level.extend(run);
    level
}

/// Bits, the first one in the lowest bit of the first byte.
fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, bit) in values.enumerate() {
        if at % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(bit) << (at % 8);
        }
    }
    bytes
}
