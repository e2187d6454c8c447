//! A value in a Parquet file: the page or column chunk that it lies in.
//!
//! Pages are encoded and mostly compressed, so there is no finer true answer. The pages of a column
//! are known if the file has an offset index; otherwise the chunk is the answer. Values in a
//! dictionary lie in the dictionary's page, too.

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};
use bytes::Bytes;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::schema::types::SchemaDescriptor;

use super::{Column, TableCell, absent, unreadable};

/// The place of a value.
///
/// # Errors
/// The content is damaged, or has no such column or row.
pub fn place(content: &[u8], name: &PartName) -> PartAnswer {
    let wanted = TableCell::read(name)?;
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .parse_and_finish(&Bytes::copy_from_slice(content))
        .map_err(unreadable)?;
    let schema = metadata.file_metadata().schema_descr();
    let leaves = leaves(schema, &wanted.column);
    let Some(&first) = leaves.first() else {
        return Err(absent(match &wanted.column {
            Column::Name(name) => format!("it has no column `{name}`"),
            Column::Number(_) => {
                format!("it has {} columns", schema.root_schema().get_fields().len())
            }
        }));
    };
    let (group, row) = group_of(&metadata, wanted.value_row()?)?;
    let pages = metadata.page_index_for_row_group(group);
    let mut place = PartPlace::default();
    let mut has_pages = true;
    for leaf in leaves {
        let chunk = metadata.row_group(group).columns().get(leaf);
        let chunk = chunk.ok_or_else(|| unreadable("a row group lacks a column"))?;
        let locations = pages.page_locations(leaf).map(Vec::as_slice);
        match page_of(locations.unwrap_or_default(), row) {
            Some(page) => place.ranges.extend(page_ranges(chunk, locations, page)?),
            None => {
                has_pages = false;
                place.ranges.push(chunk_range(chunk)?);
            }
        }
    }
    if place.ranges.iter().any(|range| range.end > content.len()) {
        return Err(unreadable(
            "a page or column chunk ends behind the file's end",
        ));
    }
    let column = match &wanted.column {
        Column::Name(name) => name.clone(),
        Column::Number(_) => schema.get_column_root(first).name().to_owned(),
    };
    let what = match has_pages {
        true => "a page",
        false => "the chunk",
    };
    place.within = Some(format!("{what} of column `{column}` in row group {group}"));
    Ok(place)
}

/// The columns of values of a column. A nested one has several.
fn leaves(schema: &SchemaDescriptor, column: &Column) -> Vec<usize> {
    let is_of = |leaf: usize| match column {
        Column::Number(number) => schema.get_column_root_idx(leaf) == *number,
        Column::Name(name) => {
            let path = schema.column(leaf).path().string();
            let rest = path.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    };
    (0..schema.num_columns())
        .filter(|leaf| is_of(*leaf))
        .collect()
}

/// The row group of a row, and the row's number within it.
fn group_of(metadata: &ParquetMetaData, row: usize) -> Result<(usize, i64), NoPart> {
    let mut left = i64::try_from(row).unwrap_or(i64::MAX);
    for (number, group) in metadata.row_groups().iter().enumerate() {
        if left < group.num_rows() {
            return Ok((number, left));
        }
        left = left.saturating_sub(group.num_rows().max(0));
    }
    let rows = metadata.file_metadata().num_rows();
    Err(absent(format!("it has {rows} rows of values")))
}

/// The last page that begins at the row or before it.
fn page_of(pages: &[PageLocation], row: i64) -> Option<&PageLocation> {
    pages.iter().rfind(|page| page.first_row_index <= row)
}

/// The page, and the chunk's bytes before its first page of values: those of its dictionary.
fn page_ranges(
    chunk: &ColumnChunkMetaData,
    pages: Option<&[PageLocation]>,
    page: &PageLocation,
) -> Result<Vec<Range<usize>>, NoPart> {
    let start = chunk_range(chunk)?.start;
    let first = pages.and_then(<[PageLocation]>::first).unwrap_or(page);
    let dictionary = start..offset(first.offset)?;
    let own = offset(page.offset)?;
    let end = own.checked_add(offset(page.compressed_page_size.into())?);
    let end = end.ok_or_else(|| unreadable("a page has an impossible length"))?;
    let all = [dictionary, own..end].into_iter();
    Ok(all.filter(|range| !range.is_empty()).collect())
}

fn chunk_range(chunk: &ColumnChunkMetaData) -> Result<Range<usize>, NoPart> {
    let first = chunk.data_page_offset();
    // Some writers give a dictionary that is not there the offset 0.
    let dictionary = chunk.dictionary_page_offset().filter(|at| *at > 0);
    let start = offset(dictionary.map_or(first, |at| at.min(first)))?;
    let end = start.checked_add(offset(chunk.compressed_size())?);
    let end = end.ok_or_else(|| unreadable("a column chunk has an impossible length"))?;
    Ok(start..end)
}

fn offset(number: i64) -> Result<usize, NoPart> {
    usize::try_from(number).map_err(|_| unreadable("an offset is negative"))
}
