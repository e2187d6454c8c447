//! Builds the columns of an [`AnswerTable`] from plain values.
//!
//! In: rows, column by column. Out: a table. Invariant: all columns have as many rows as the
//! first.
//!
//! Arrow's texts are UTF-8, and paths need not be. A byte outside UTF-8 is written `\xNN`. The
//! table keeps the bytes of such a value beside the column, so that Python gets a string with lone
//! surrogates, as `os.fsdecode` makes it. A column of paths has a companion `NAME_bytes`, which is
//! null unless the text was escaped.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{
    LargeBinaryBuilder, LargeStringBuilder, ListBuilder, PrimitiveBuilder, StringDictionaryBuilder,
    UInt32Builder,
};
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use backstory_eventlog::event::Time;

/// The bytes of the values of one column that are not UTF-8, by row. A list has several.
pub type ExactValues = BTreeMap<usize, Vec<Vec<u8>>>;

/// Columns of equal length.
#[derive(Debug)]
pub struct AnswerTable {
    /// The columns.
    pub batch: RecordBatch,
    /// The bytes of the texts that are not UTF-8, by column.
    pub exact: BTreeMap<String, ExactValues>,
}

impl AnswerTable {
    /// A table of these columns, with the bytes of the texts that are not UTF-8.
    pub fn new(batch: RecordBatch, exact: BTreeMap<String, ExactValues>) -> AnswerTable {
        AnswerTable { batch, exact }
    }
}

/// Columns that become a table.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    exact: BTreeMap<String, ExactValues>,
}

impl Columns {
    fn add(&mut self, name: &str, array: ArrayRef, nullable: bool) {
        let field = Field::new(name, array.data_type().clone(), nullable);
        self.fields.push(field);
        self.arrays.push(array);
    }

    /// Adds texts that need not be UTF-8.
    pub fn text<T: AsRef<[u8]>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        let mut builder = LargeStringBuilder::new();
        let mut exact = ExactValues::new();
        for (row, value) in values.enumerate() {
            match value.as_ref().map(|value| readable(value.as_ref())) {
                None => builder.append_null(),
                Some(Readable::Same(text)) => builder.append_value(text),
                Some(Readable::Escaped(text)) => {
                    builder.append_value(text);
                    let bytes = value.as_ref().map(|value| value.as_ref().to_vec());
                    exact.insert(row, bytes.into_iter().collect());
                }
            }
        }
        self.add(name, Arc::new(builder.finish()), true);
        if !exact.is_empty() {
            self.exact.insert(name.to_owned(), exact);
        }
    }

    /// Adds paths, and the column of their bytes where the text is escaped.
    pub fn paths<T: AsRef<[u8]>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        self.text(name, values);
        let rows = self.arrays.last().map_or(0, |array| array.len());
        let mut builder = LargeBinaryBuilder::new();
        match self.exact.get(name) {
            None => builder.append_nulls(rows),
            Some(exact) => {
                for row in 0..rows {
                    builder.append_option(exact.get(&row).and_then(|values| values.first()));
                }
            }
        }
        self.add(&format!("{name}_bytes"), Arc::new(builder.finish()), true);
    }

    /// Adds words of which there are few: a dictionary column. Equal words in a row are looked up
    /// once.
    pub fn labels<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        let mut values = values.peekable();
        while let Some(value) = values.next() {
            let word = value.as_ref().map(AsRef::as_ref);
            let is_same = |next: &Option<T>| next.as_ref().map(AsRef::as_ref) == word;
            let mut rows = 1;
            while values.next_if(is_same).is_some() {
                rows += 1;
            }
            builder.append_options(word, rows);
        }
        self.add(name, Arc::new(builder.finish()), true);
    }

    /// Adds numbers that all rows have.
    pub fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = T::Native>,
    ) {
        let array = PrimitiveArray::<T>::from_iter_values(values);
        self.add(name, Arc::new(array), false);
    }

    /// Adds numbers that some rows lack.
    pub fn optional<T: ArrowPrimitiveType>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<T::Native>>,
    ) {
        let mut builder = PrimitiveBuilder::<T>::new();
        values.for_each(|value| builder.append_option(value));
        self.add(name, Arc::new(builder.finish()), true);
    }

    /// Adds moments, in nanoseconds since 1970, UTC.
    pub fn times(&mut self, name: &str, values: impl Iterator<Item = Option<Time>>) {
        let mut builder = PrimitiveBuilder::<TimestampNanosecondType>::new();
        values.for_each(|value| builder.append_option(value));
        let array = builder.finish().with_timezone("UTC");
        self.add(name, Arc::new(array), true);
    }

    /// Adds truth values. `None`: open.
    pub fn bools(&mut self, name: &str, values: impl Iterator<Item = Option<bool>>) {
        let array: BooleanArray = values.collect();
        self.add(name, Arc::new(array), true);
    }

    /// Adds lists of texts that need not be UTF-8.
    pub fn lists<T: AsRef<[u8]>>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = impl IntoIterator<Item = T>>,
    ) {
        let mut builder = ListBuilder::new(LargeStringBuilder::new());
        let mut exact = ExactValues::new();
        for (row, list) in values.enumerate() {
            let list: Vec<T> = list.into_iter().collect();
            let mut escaped = false;
            for item in &list {
                match readable(item.as_ref()) {
                    Readable::Same(text) => builder.values().append_value(text),
                    Readable::Escaped(text) => {
                        escaped = true;
                        builder.values().append_value(text);
                    }
                }
            }
            builder.append(true);
            if escaped {
                exact.insert(
                    row,
                    list.iter().map(|item| item.as_ref().to_vec()).collect(),
                );
            }
        }
        self.add(name, Arc::new(builder.finish()), false);
        if !exact.is_empty() {
            self.exact.insert(name.to_owned(), exact);
        }
    }

    /// Adds lists of indexes.
    pub fn indexes(&mut self, name: &str, values: impl Iterator<Item = Vec<u32>>) {
        let mut builder = ListBuilder::new(UInt32Builder::new());
        for list in values {
            builder.values().append_slice(&list);
            builder.append(true);
        }
        self.add(name, Arc::new(builder.finish()), false);
    }

    /// The table.
    pub fn table(self) -> Result<AnswerTable, ArrowError> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema, self.arrays)?;
        Ok(AnswerTable::new(batch, self.exact))
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
