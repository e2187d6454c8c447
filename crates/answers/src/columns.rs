//! Builds the columns of an [`AnswerTable`] from plain values.
//!
//! In: rows, column by column. Out: a table whose buffers have Arrow's layout, so that the data
//! libraries of Python read them without a copy. Invariant: all columns have as many rows as the
//! first. Absent on purpose: Arrow's own crates, which the program would be compiled with.
//!
//! Arrow's texts are UTF-8, and paths need not be. A byte outside UTF-8 is written `\xNN`. The
//! table keeps the bytes of such a value beside the column, so that Python gets a string with lone
//! surrogates, as `os.fsdecode` makes it. A column of paths has a companion `NAME_bytes`, which is
//! null unless the text was escaped.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use backstory_eventlog::event::Time;
use serde::{Deserialize, Serialize};

/// The bytes of the values of one column that are not UTF-8, by row. A list has several.
pub type ExactValues = BTreeMap<usize, Vec<Vec<u8>>>;

/// Columns of equal length.
#[derive(Debug)]
pub struct AnswerTable {
    /// The columns.
    pub columns: Vec<Column>,
    /// The bytes of the texts that are not UTF-8, by column.
    pub exact: BTreeMap<String, ExactValues>,
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// True if a row may have no value.
    pub nullable: bool,
    /// Its values.
    pub array: ColumnArray,
}

/// The values of a column, or of the lists in a column.
#[derive(Debug)]
pub struct ColumnArray {
    /// The type of a value.
    pub kind: ArrayKind,
    /// How many values there are.
    pub rows: usize,
    /// A bit for each row that has a value. `None`: all have.
    pub nulls: Option<Vec<u8>>,
    /// The buffers of the kind: numbers, or offsets and bytes.
    pub buffers: Vec<Vec<u8>>,
    /// The words behind labels, or the items of lists.
    pub children: Vec<ColumnArray>,
}

/// The types that columns have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum ArrayKind {
    /// Signed numbers.
    Int32,
    /// Signed numbers.
    Int64,
    /// Unsigned numbers.
    UInt32,
    /// Unsigned numbers.
    UInt64,
    /// Nanoseconds since 1970, UTC.
    Time,
    /// Bits.
    Bool,
    /// Texts that 2 GB hold.
    Word,
    /// Texts.
    Text,
    /// Byte strings.
    Bytes,
    /// Numbers of words.
    Label,
    /// Lists of texts.
    Texts,
    /// Lists of numbers.
    Indexes,
}

/// A number that a column can have.
pub trait ColumnNumber: Copy + Default {
    /// The type of the column.
    const KIND: ArrayKind;
    /// Appends the bytes of the number, in the machine's order.
    fn append(self, to: &mut Vec<u8>);
}

macro_rules! column_numbers {
    ($($number:ident $kind:ident)*) => {
        $(impl ColumnNumber for $number {
            const KIND: ArrayKind = ArrayKind::$kind;
            fn append(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

column_numbers!(i32 Int32 i64 Int64 u32 UInt32 u64 UInt64);

/// Bits, the first one in the lowest bit of the first byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    length: usize,
    all: bool,
}

impl Bits {
    fn new() -> Bits {
        Bits {
            all: true,
            ..Bits::default()
        }
    }

    fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let (true, Some(last)) = (bit, self.bytes.last_mut()) {
            *last |= 1 << (self.length % 8);
        }
        self.all &= bit;
        self.length += 1;
    }

    /// The bits, unless all are set.
    fn nulls(self) -> Option<Vec<u8>> {
        (!self.all).then_some(self.bytes)
    }
}

/// Byte strings, one after the other, and where they end.
struct Strings {
    kind: ArrayKind,
    offsets: Vec<u8>,
    bytes: Vec<u8>,
    there: Bits,
}

impl Strings {
    fn new(kind: ArrayKind) -> Strings {
        let mut strings = Strings {
            kind,
            offsets: Vec::new(),
            bytes: Vec::new(),
            there: Bits::new(),
        };
        strings.end();
        strings
    }

    fn end(&mut self) {
        match self.kind {
            // There are few different words.
            ArrayKind::Word => (self.bytes.len() as i32).append(&mut self.offsets),
            _ => (self.bytes.len() as i64).append(&mut self.offsets),
        }
    }

    fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.there.push(value.is_some());
        self.end();
    }

    fn array(self) -> ColumnArray {
        ColumnArray {
            kind: self.kind,
            rows: self.there.length,
            nulls: self.there.nulls(),
            buffers: vec![self.offsets, self.bytes],
            children: Vec::new(),
        }
    }
}

/// A column of numbers. Rows without one have a zero.
fn numbers<N: ColumnNumber>(
    kind: ArrayKind,
    values: impl Iterator<Item = Option<N>>,
) -> ColumnArray {
    let (mut bytes, mut there) = (Vec::new(), Bits::new());
    for value in values {
        value.unwrap_or_default().append(&mut bytes);
        there.push(value.is_some());
    }
    ColumnArray {
        kind,
        rows: there.length,
        nulls: there.nulls(),
        buffers: vec![bytes],
        children: Vec::new(),
    }
}

/// Columns that become a table.
#[derive(Default)]
pub struct Columns {
    columns: Vec<Column>,
    exact: BTreeMap<String, ExactValues>,
}

impl Columns {
    fn add(&mut self, name: &str, array: ColumnArray, nullable: bool) {
        self.columns.push(Column {
            name: name.to_owned(),
            nullable,
            array,
        });
    }

    /// Adds texts that need not be UTF-8.
    pub fn text<T: AsRef<[u8]>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        let mut strings = Strings::new(ArrayKind::Text);
        let mut exact = ExactValues::new();
        for (row, value) in values.enumerate() {
            match value.as_ref().map(|value| readable(value.as_ref())) {
                None => strings.push(None),
                Some(Readable::Same(text)) => strings.push(Some(text.as_bytes())),
                Some(Readable::Escaped(text)) => {
                    strings.push(Some(text.as_bytes()));
                    let bytes = value.as_ref().map(|value| value.as_ref().to_vec());
                    exact.insert(row, bytes.into_iter().collect());
                }
            }
        }
        self.add(name, strings.array(), true);
        if !exact.is_empty() {
            self.exact.insert(name.to_owned(), exact);
        }
    }

    /// Adds paths, and the column of their bytes where the text is escaped.
    pub fn paths<T: AsRef<[u8]>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        self.text(name, values);
        let rows = self.columns.last().map_or(0, |column| column.array.rows);
        let mut strings = Strings::new(ArrayKind::Bytes);
        let exact = self.exact.get(name);
        for row in 0..rows {
            let bytes = exact.and_then(|exact| exact.get(&row)?.first());
            strings.push(bytes.map(Vec::as_slice));
        }
        self.add(&format!("{name}_bytes"), strings.array(), true);
    }

    /// Adds one cell of bytes.
    pub fn cell(&mut self, name: &str, bytes: &[u8]) {
        let mut strings = Strings::new(ArrayKind::Bytes);
        strings.push(Some(bytes));
        self.add(name, strings.array(), false);
    }

    /// Adds words of which there are few: a dictionary column. Equal words in a row are looked up
    /// once.
    pub fn labels<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        let mut words = Strings::new(ArrayKind::Word);
        let mut numbered: HashMap<String, i32> = HashMap::new();
        let mut last: Option<(String, i32)> = None;
        let labels = values.map(|value| {
            let word = value.as_ref()?.as_ref();
            if let Some((same, number)) = &last
                && same == word
            {
                return Some(*number);
            }
            let number = match numbered.get(word) {
                Some(number) => *number,
                None => {
                    let number = numbered.len() as i32;
                    words.push(Some(word.as_bytes()));
                    numbered.insert(word.to_owned(), number);
                    number
                }
            };
            last = Some((word.to_owned(), number));
            Some(number)
        });
        let mut array = numbers(ArrayKind::Label, labels);
        array.children = vec![words.array()];
        self.add(name, array, true);
    }

    /// Adds numbers that all rows have.
    pub fn numbers<N: ColumnNumber>(&mut self, name: &str, values: impl Iterator<Item = N>) {
        self.add(name, numbers(N::KIND, values.map(Some)), false);
    }

    /// Adds numbers that some rows lack.
    pub fn optional<N: ColumnNumber>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<N>>,
    ) {
        self.add(name, numbers(N::KIND, values), true);
    }

    /// Adds moments, in nanoseconds since 1970, UTC.
    pub fn times(&mut self, name: &str, values: impl Iterator<Item = Option<Time>>) {
        self.add(name, numbers(ArrayKind::Time, values), true);
    }

    /// Adds truth values. `None`: open.
    pub fn bools(&mut self, name: &str, values: impl Iterator<Item = Option<bool>>) {
        let (mut bits, mut there) = (Bits::new(), Bits::new());
        for value in values {
            bits.push(value.unwrap_or_default());
            there.push(value.is_some());
        }
        let array = ColumnArray {
            kind: ArrayKind::Bool,
            rows: there.length,
            nulls: there.nulls(),
            buffers: vec![bits.bytes],
            children: Vec::new(),
        };
        self.add(name, array, true);
    }

    /// Adds lists of texts that need not be UTF-8.
    pub fn lists<T: AsRef<[u8]>>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = impl IntoIterator<Item = T>>,
    ) {
        let mut items = Strings::new(ArrayKind::Text);
        let mut ends = vec![0];
        let mut exact = ExactValues::new();
        for (row, list) in values.enumerate() {
            let list: Vec<T> = list.into_iter().collect();
            let mut escaped = false;
            for item in &list {
                match readable(item.as_ref()) {
                    Readable::Same(text) => items.push(Some(text.as_bytes())),
                    Readable::Escaped(text) => {
                        escaped = true;
                        items.push(Some(text.as_bytes()));
                    }
                }
            }
            ends.push(items.there.length as i32);
            if escaped {
                exact.insert(
                    row,
                    list.iter().map(|item| item.as_ref().to_vec()).collect(),
                );
            }
        }
        self.add(name, listed(ArrayKind::Texts, &ends, items.array()), false);
        if !exact.is_empty() {
            self.exact.insert(name.to_owned(), exact);
        }
    }

    /// Adds lists of indexes.
    pub fn indexes(&mut self, name: &str, values: impl Iterator<Item = Vec<u32>>) {
        let (mut all, mut ends) = (Vec::new(), vec![0]);
        for list in values {
            all.extend(list);
            ends.push(all.len() as i32);
        }
        let items = numbers(ArrayKind::UInt32, all.into_iter().map(Some));
        self.add(name, listed(ArrayKind::Indexes, &ends, items), false);
    }

    /// The table.
    pub fn table(self) -> AnswerTable {
        AnswerTable {
            columns: self.columns,
            exact: self.exact,
        }
    }
}

/// A column of lists, from the ends of the lists in their items. The first end is 0.
fn listed(kind: ArrayKind, ends: &[i32], items: ColumnArray) -> ColumnArray {
    let mut offsets = Vec::new();
    ends.iter().for_each(|end| end.append(&mut offsets));
    ColumnArray {
        kind,
        rows: ends.len() - 1,
        nulls: None,
        buffers: vec![offsets],
        children: vec![items],
    }
}

/// A text for people and for Arrow.
enum Readable<'t> {
    Same(&'t str),
    Escaped(String),
}

/// Writes bytes outside UTF-8 as `\xNN`.
fn readable(bytes: &[u8]) -> Readable<'_> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Readable::Same(text);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Readable::Escaped(text)
}
