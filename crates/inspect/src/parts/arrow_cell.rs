//! A value in an Arrow file (Feather) or stream: its own bytes, or the buffers of its column in one
//! record batch.
//!
//! A value of a fixed width that is not compressed has a range of its own. Otherwise the column's
//! buffers are the answer, with those of its dictionaries.

use std::ops::Range;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Message, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{DataType, Schema, UnionMode};
use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};

use super::{Column, TableCell, absent, unreadable};

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"ARROW1";

/// Before the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The place of a value.
///
/// # Errors
/// The content is damaged, or has no such column or row.
pub fn place(content: &[u8], name: &PartName) -> PartAnswer {
    let wanted = TableCell::read(name)?;
    let found = Messages::read(content)?;
    let fields = found.schema.fields();
    let number = match &wanted.column {
        Column::Number(number) => Some(*number).filter(|number| *number < fields.len()),
        Column::Name(name) => fields.iter().position(|field| field.name() == name),
    };
    let Some(number) = number else {
        return Err(absent(match &wanted.column {
            Column::Name(name) => format!("it has no column `{name}`"),
            Column::Number(_) => format!("it has {} columns", fields.len()),
        }));
    };
    let mut row = wanted.value_row()?;
    let mut rows = 0;
    for (at, batch) in found.batches.iter().enumerate() {
        let message = batch.message(content)?;
        let header = message.header_as_record_batch();
        let header = header.ok_or_else(|| unreadable("a record batch is of another kind"))?;
        let length = size(header.length())?;
        if row >= length {
            row -= length;
            rows += length;
            continue;
        }
        let column = ColumnBuffers::of(&found.schema, number, batch, &message)?;
        let field = &fields[number];
        if let Some(place) = column.value(field.data_type(), row) {
            return Ok(place);
        }
        let mut ranges = column.ranges;
        let mut within = format!("column `{}` in record batch {at}", field.name());
        if has_dictionary(field.data_type()) {
            ranges.extend(found.dictionaries.iter().map(|one| one.body.clone()));
            within.push_str(" with all dictionaries");
        }
        return Ok(PartPlace {
            ranges,
            within: Some(within),
            ..PartPlace::default()
        });
    }
    Err(absent(format!("it has {rows} rows of values")))
}

/// A message: its metadata and its body within the content.
struct MessagePlace {
    metadata: Range<usize>,
    body: Range<usize>,
}

impl MessagePlace {
    /// The message whose length stands at an offset. `None` at the end of a stream.
    fn at(content: &[u8], offset: usize) -> Result<Option<MessagePlace>, NoPart> {
        let word = |at: usize| {
            let bytes = content.get(at..)?.first_chunk::<4>();
            bytes.copied()
        };
        let cut = || unreadable("it ends within a message");
        let Some(mut length) = word(offset) else {
            return Ok(None);
        };
        let mut start = offset + 4;
        if length == CONTINUATION {
            length = word(start).ok_or_else(cut)?;
            start += 4;
        }
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 {
            return Ok(None);
        }
        let metadata = start..start.checked_add(length).ok_or_else(cut)?;
        let mut place = MessagePlace {
            body: metadata.end..metadata.end,
            metadata,
        };
        let body = size(place.message(content)?.bodyLength())?;
        let end = place.body.start.checked_add(body);
        place.body.end = end.filter(|end| *end <= content.len()).ok_or_else(cut)?;
        Ok(Some(place))
    }

    fn message<'c>(&self, content: &'c [u8]) -> Result<Message<'c>, NoPart> {
        let bytes = content.get(self.metadata.clone());
        let bytes = bytes.ok_or_else(|| unreadable("it ends within a message"))?;
        root_as_message(bytes).map_err(unreadable)
    }
}

/// The messages of a file or stream.
struct Messages {
    schema: Schema,
    dictionaries: Vec<MessagePlace>,
    batches: Vec<MessagePlace>,
}

impl Messages {
    fn read(content: &[u8]) -> Result<Messages, NoPart> {
        match content.starts_with(MAGIC) {
            true => Messages::of_file(content),
            false => Messages::of_stream(content),
        }
    }

    /// The footer of a file has the order of its record batches.
    fn of_file(content: &[u8]) -> Result<Messages, NoPart> {
        let footer = || {
            let before = content.strip_suffix(MAGIC)?;
            let (rest, length) = before.split_last_chunk::<4>()?;
            let start = rest
                .len()
                .checked_sub(u32::from_le_bytes(*length) as usize)?;
            Some(&rest[start..])
        };
        let footer = footer().ok_or_else(|| unreadable("it does not end with a footer"))?;
        let footer = root_as_footer(footer).map_err(unreadable)?;
        let schema = footer
            .schema()
            .ok_or_else(|| unreadable("it has no schema"))?;
        let places = |offsets: Vec<i64>| {
            let places = offsets.into_iter().map(|offset| {
                let place = MessagePlace::at(content, size(offset)?)?;
                place.ok_or_else(|| unreadable("a record batch is not there"))
            });
            places.collect::<Result<Vec<_>, NoPart>>()
        };
        let dictionaries = footer.dictionaries().into_iter().flatten();
        let batches = footer.recordBatches().into_iter().flatten();
        Ok(Messages {
            schema: try_fb_to_schema(schema).map_err(unreadable)?,
            dictionaries: places(dictionaries.map(|block| block.offset()).collect())?,
            batches: places(batches.map(|block| block.offset()).collect())?,
        })
    }

    fn of_stream(content: &[u8]) -> Result<Messages, NoPart> {
        let (mut schema, mut dictionaries, mut batches) = (None, Vec::new(), Vec::new());
        let mut offset = 0;
        while let Some(place) = MessagePlace::at(content, offset)? {
            offset = place.body.end;
            let message = place.message(content)?;
            if let Some(header) = message.header_as_schema() {
                schema = Some(try_fb_to_schema(header).map_err(unreadable)?);
            } else if message.header_as_dictionary_batch().is_some() {
                dictionaries.push(place);
            } else if message.header_as_record_batch().is_some() {
                batches.push(place);
            }
        }
        Ok(Messages {
            schema: schema.ok_or_else(|| unreadable("it has no schema"))?,
            dictionaries,
            batches,
        })
    }
}

/// The buffers of a column in a record batch.
struct ColumnBuffers {
    /// Their bytes, in order.
    ranges: Vec<Range<usize>>,
    is_compressed: bool,
}

impl ColumnBuffers {
    fn of(
        schema: &Schema,
        number: usize,
        batch: &MessagePlace,
        message: &Message<'_>,
    ) -> Result<ColumnBuffers, NoPart> {
        let header = message.header_as_record_batch();
        let header = header.ok_or_else(|| unreadable("a record batch is of another kind"))?;
        let variadic = header.variadicBufferCounts().into_iter().flatten();
        let mut counter = BufferCounter {
            variadic: variadic.collect::<Vec<i64>>().into_iter(),
            has_union_validity: message.version() < MetadataVersion::V5,
        };
        let mut first = 0;
        for field in schema.fields().iter().take(number) {
            first += counter.count(field.data_type())?;
        }
        let count = counter.count(schema.field(number).data_type())?;
        let buffers = header.buffers().into_iter().flatten();
        let own = buffers.skip(first).take(count);
        let ranges = own.map(|buffer| {
            let start = size(buffer.offset())?.checked_add(batch.body.start);
            let start = start.ok_or_else(outside)?;
            let end = start.checked_add(size(buffer.length())?);
            let end = end.filter(|end| *end <= batch.body.end);
            Ok(start..end.ok_or_else(outside)?)
        });
        let ranges = ranges.collect::<Result<Vec<_>, NoPart>>()?;
        match ranges.len() == count {
            true => Ok(ColumnBuffers {
                ranges,
                is_compressed: header.compression().is_some(),
            }),
            false => Err(unreadable("a record batch has too few buffers")),
        }
    }

    /// The bytes of one value, if the values of the type follow each other at a fixed width. A
    /// column with missing values has a bitmap of them.
    fn value(&self, kind: &DataType, row: usize) -> Option<PartPlace> {
        let width = match kind {
            DataType::FixedSizeBinary(width) => usize::try_from(*width).ok()?,
            other => other.primitive_width()?,
        };
        let [missing, values] = &self.ranges[..] else {
            return None;
        };
        let start = values.start.checked_add(row.checked_mul(width)?)?;
        let end = start.checked_add(width)?;
        if self.is_compressed || end > values.end {
            return None;
        }
        let mut place = PartPlace::exact(start..end);
        if !missing.is_empty() {
            let byte = missing.start + row / 8;
            // A damaged bitmap is too short.
            if byte >= missing.end {
                return None;
            }
            place.ranges.push(byte..byte + 1);
            let within = "the value, and a byte that tells of 8 values whether they are missing";
            place.within = Some(within.to_owned());
        }
        Some(place)
    }
}

fn outside() -> NoPart {
    unreadable("a buffer lies outside of its record batch")
}

fn size(number: i64) -> Result<usize, NoPart> {
    usize::try_from(number).map_err(|_| unreadable("a length or offset is negative"))
}

/// Counts the buffers of columns, in their order.
struct BufferCounter {
    /// How many buffers of data the columns of views have.
    variadic: std::vec::IntoIter<i64>,
    /// Unions had a bitmap of missing values before version 5 of the format.
    has_union_validity: bool,
}

impl BufferCounter {
    fn count(&mut self, kind: &DataType) -> Result<usize, NoPart> {
        Ok(match kind {
            DataType::Null => 0,
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => 3,
            DataType::Utf8View | DataType::BinaryView => {
                let more = self.variadic.next();
                let more = more.ok_or_else(|| unreadable("a column of views has no buffers"))?;
                let more = u32::try_from(more);
                2 + more.map_err(|_| unreadable("a column of views has too many buffers"))? as usize
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                2 + self.count(item.data_type())?
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                3 + self.count(item.data_type())?
            }
            DataType::FixedSizeList(item, _) => 1 + self.count(item.data_type())?,
            DataType::Struct(fields) => {
                let mut all = 1;
                for field in fields {
                    all += self.count(field.data_type())?;
                }
                all
            }
            DataType::RunEndEncoded(ends, values) => {
                self.count(ends.data_type())? + self.count(values.data_type())?
            }
            DataType::Union(fields, mode) => {
                let offsets = usize::from(matches!(mode, UnionMode::Dense));
                let mut all = 1 + offsets + usize::from(self.has_union_validity);
                for (_, field) in fields.iter() {
                    all += self.count(field.data_type())?;
                }
                all
            }
            // Numbers, dates and times, and the keys of a dictionary.
            _ => 2,
        })
    }
}

/// True if some values of the type are keys of a dictionary.
fn has_dictionary(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(..) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_dictionary(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        DataType::Union(fields, _) => {
            let mut fields = fields.iter();
            fields.any(|(_, field)| has_dictionary(field.data_type()))
        }
        DataType::RunEndEncoded(_, values) => has_dictionary(values.data_type()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_behind_the_end_of_its_buffers_has_no_place() {
        let column = ColumnBuffers {
            ranges: vec![8..10, 16..816],
            is_compressed: false,
        };
        let ranges = |row| {
            column
                .value(&DataType::Int32, row)
                .map(|place| place.ranges)
        };
        assert_eq!(ranges(15), Some(vec![76..80, 9..10]));
        // The bitmap has 16 values, and the buffer 200.
        assert_eq!(ranges(16), None);
        assert_eq!(ranges(200), None);
    }
}
