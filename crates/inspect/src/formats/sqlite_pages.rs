//! The pages of a database of SQLite: where the rows of a table are, and the values in them.
//!
//! ```text
//! table    := a tree of pages; its leaves have the rows, in the order of their rowids
//! row      := length of the payload, rowid, payload; what has no room is on overflow pages
//! payload  := length of the head, type of each value; then the values
//! ```
//!
//! Invariant: a damaged database has fewer rows. No page is read twice.
//!
//! Source: <https://www.sqlite.org/fileformat2.html>, sections 1.6 and 2.1.

use std::collections::HashSet;
use std::ops::Range;

use crate::{Read, UnreadableContent};

/// Bytes before the first page's own head.
const FILE_HEAD: usize = 100;

/// Kinds of pages.
const INNER_INDEX: u8 = 2;
const INNER_TABLE: u8 = 5;
const LEAF_INDEX: u8 = 10;
const LEAF_TABLE: u8 = 13;

/// The pages of a database.
pub struct DatabasePages<'c> {
    content: &'c [u8],
    size: usize,
    /// Bytes of a page that SQLite uses.
    usable: usize,
}

/// The bytes of a row.
pub struct RowPlace {
    /// All of them.
    pub all: Vec<Range<usize>>,
    rowid: Range<usize>,
    payload: Vec<Range<usize>>,
}

/// The bytes of a value.
pub enum ValuePlace {
    /// The value has these bytes.
    Bytes(Vec<Range<usize>>),
    /// The value has none: NULL, 0, 1 and empty texts are in the head of the row.
    InHead(Vec<Range<usize>>),
    /// The row was written before the table had the column.
    Absent,
}

/// A page of a tree.
struct TreePage<'c> {
    bytes: &'c [u8],
    /// Of the page in the file.
    start: usize,
    kind: u8,
    /// Of the rows, or of the ways to the pages below, in the page.
    cells: Vec<usize>,
    /// The last page below.
    last: Option<u32>,
}

fn damaged() -> UnreadableContent {
    UnreadableContent("a page of the table is damaged".to_owned())
}

fn big(bytes: &[u8], at: usize, size: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.get(..size)?;
    let number = bytes
        .iter()
        .fold(0, |all, &byte| all << 8 | u32::from(byte));
    Some(number)
}

/// A number of up to nine bytes, and its length.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for (place, &byte) in bytes.get(at..)?.iter().take(9).enumerate() {
        if place == 8 {
            return Some((number << 8 | u64::from(byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, place + 1));
        }
    }
    None
}

impl<'c> DatabasePages<'c> {
    /// The pages of a content that is a database.
    pub fn of(content: &'c [u8]) -> Read<DatabasePages<'c>> {
        let size = match big(content, 16, 2) {
            Some(1) => 65536,
            size => size.unwrap_or(0) as usize,
        };
        let reserved = usize::from(content.get(20).copied().unwrap_or(0));
        match size.checked_sub(reserved) {
            // The least that the format allows.
            Some(usable) if usable >= 480 => Ok(DatabasePages {
                content,
                size,
                usable,
            }),
            _ => Err(UnreadableContent(
                "its page size is not possible".to_owned(),
            )),
        }
    }

    fn page(&self, number: u32) -> Option<(usize, &'c [u8])> {
        let start = (number as usize).checked_sub(1)?.checked_mul(self.size)?;
        let page = self.content.get(start..)?.get(..self.size)?;
        Some((start, &page[..self.usable]))
    }

    fn tree_page(&self, number: u32) -> Option<TreePage<'c>> {
        let (start, bytes) = self.page(number)?;
        let head = if number == 1 { FILE_HEAD } else { 0 };
        let kind = *bytes.get(head)?;
        let is_inner = matches!(kind, INNER_INDEX | INNER_TABLE);
        let pointers = head + if is_inner { 12 } else { 8 };
        let count = big(bytes, head + 3, 2)? as usize;
        let cells = (0..count).map(|at| Some(big(bytes, pointers + 2 * at, 2)? as usize));
        Some(TreePage {
            bytes,
            start,
            kind,
            cells: cells.collect::<Option<_>>()?,
            last: if is_inner {
                big(bytes, head + 8, 4)
            } else {
                None
            },
        })
    }

    /// The row of the tree of a table.
    ///
    /// # Errors
    /// A page on the way is damaged.
    pub fn row(&self, root: u32, rowid: i64) -> Read<Option<RowPlace>> {
        let mut seen = HashSet::new();
        let mut number = root;
        loop {
            let page = self.tree_page(number).filter(|_| seen.insert(number));
            let page = page.ok_or_else(damaged)?;
            match page.kind {
                LEAF_TABLE => return self.row_of_leaf(&page, rowid),
                INNER_TABLE => number = below(&page, rowid).ok_or_else(damaged)?,
                _ => return Err(damaged()),
            }
        }
    }

    fn row_of_leaf(&self, page: &TreePage<'_>, rowid: i64) -> Read<Option<RowPlace>> {
        for &at in &page.cells {
            let (length, first) = varint(page.bytes, at).ok_or_else(damaged)?;
            let (own, second) = varint(page.bytes, at + first).ok_or_else(damaged)?;
            if own.cast_signed() != rowid {
                continue;
            }
            let begin = at + first + second;
            let payload = self.payload(page, begin, length).ok_or_else(damaged)?;
            let (start, head) = (page.start + at, page.start + begin);
            let mut all = payload.clone();
            match all.first_mut() {
                Some(local) => local.start = start,
                None => all.push(start..head),
            }
            return Ok(Some(RowPlace {
                all,
                rowid: start + first..head,
                payload,
            }));
        }
        Ok(None)
    }

    /// The bytes of a payload that begins at this place of a page.
    fn payload(&self, page: &TreePage<'_>, at: usize, length: u64) -> Option<Vec<Range<usize>>> {
        let mut left = usize::try_from(length).ok()?;
        if left > self.content.len() {
            return None;
        }
        let most = match page.kind {
            LEAF_TABLE => self.usable - 35,
            _ => (self.usable - 12) * 64 / 255 - 23,
        };
        let local = match left > most {
            true => {
                let least = (self.usable - 12) * 32 / 255 - 23;
                let fitting = least + (left - least) % (self.usable - 4);
                if fitting <= most { fitting } else { least }
            }
            false => left,
        };
        page.bytes.get(at..at + local)?;
        let mut ranges = Vec::new();
        if local > 0 {
            ranges.push(page.start + at..page.start + at + local);
        }
        left -= local;
        let mut next = if left > 0 {
            big(page.bytes, at + local, 4)?
        } else {
            0
        };
        while left > 0 {
            let (start, bytes) = self.page(next)?;
            let here = left.min(self.usable - 4);
            ranges.push(start + 4..start + 4 + here);
            left -= here;
            next = big(bytes, 0, 4)?;
        }
        Some(ranges)
    }

    /// The pages that continue the rows of a page of a tree. None of them is among those that were
    /// `seen`.
    fn overflow(&self, page: &TreePage<'_>, seen: &mut HashSet<u32>) -> Option<Vec<Range<usize>>> {
        // The number of the page below stands first.
        let before = match page.kind {
            INNER_TABLE => return Some(Vec::new()),
            INNER_INDEX => 4,
            _ => 0,
        };
        let mut pages = Vec::new();
        for &at in &page.cells {
            let (length, first) = varint(page.bytes, at + before)?;
            let rowid = match page.kind {
                LEAF_TABLE => varint(page.bytes, at + first)?.1,
                _ => 0,
            };
            let payload = self.payload(page, at + before + first + rowid, length)?;
            for part in payload.iter().skip(1) {
                // Each one begins with the number of the next.
                let start = part.start - 4;
                if !seen.insert(u32::try_from(start / self.size + 1).ok()?) {
                    return None;
                }
                pages.push(start..start + self.size);
            }
        }
        Some(pages)
    }

    /// The pages of a tree of a table.
    ///
    /// # Errors
    /// A page is damaged.
    pub fn tree(&self, root: u32) -> Read<Vec<Range<usize>>> {
        let mut seen = HashSet::from([root]);
        let mut pending = vec![root];
        let mut pages = Vec::new();
        while let Some(number) = pending.pop() {
            let page = self.tree_page(number).ok_or_else(damaged)?;
            pages.push(page.start..page.start + self.size);
            pages.extend(self.overflow(&page, &mut seen).ok_or_else(damaged)?);
            match page.kind {
                INNER_TABLE | INNER_INDEX => {
                    let cells = page.cells.iter().map(|&at| big(page.bytes, at, 4));
                    for next in cells.chain([page.last]) {
                        let next = next.ok_or_else(damaged)?;
                        if seen.insert(next) {
                            pending.push(next);
                        }
                    }
                }
                LEAF_TABLE | LEAF_INDEX => {}
                _ => return Err(damaged()),
            }
        }
        pages.sort_unstable_by_key(|page| page.start);
        Ok(pages)
    }

    /// The value of a row at this place among those that the row has.
    ///
    /// # Errors
    /// The row is damaged.
    pub fn value(&self, row: &RowPlace, place: usize) -> Read<ValuePlace> {
        let bytes = row
            .payload
            .iter()
            .flat_map(|part| &self.content[part.clone()]);
        let first: Vec<u8> = bytes.clone().take(9).copied().collect();
        let (length, mut at) = varint(&first, 0).ok_or_else(damaged)?;
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let head: Vec<u8> = bytes.take(length).copied().collect();
        let mut body = length;
        for number in 0.. {
            if at >= length {
                break;
            }
            let (kind, width) = varint(&head, at).ok_or_else(damaged)?;
            let size = size_of(kind).ok_or_else(damaged)?;
            if number == place {
                let part = |from, size| part_of(&row.payload, from, size).ok_or_else(damaged);
                return Ok(match size {
                    0 => ValuePlace::InHead(part(at, width)?),
                    _ => ValuePlace::Bytes(part(body, size)?),
                });
            }
            at += width;
            body = body.checked_add(size).ok_or_else(damaged)?;
        }
        Ok(ValuePlace::Absent)
    }
}

impl DatabasePages<'_> {
    /// True if these bytes of the head of a row are the type of NULL.
    pub fn is_null(&self, head: &[Range<usize>]) -> bool {
        let mut bytes = head.iter().flat_map(|part| &self.content[part.clone()]);
        bytes.all(|&byte| byte == 0)
    }
}

impl RowPlace {
    /// The bytes of the rowid.
    pub fn rowid(&self) -> Range<usize> {
        self.rowid.clone()
    }
}

/// The page below an inner one that has a rowid.
fn below(page: &TreePage<'_>, rowid: i64) -> Option<u32> {
    for &at in &page.cells {
        let (highest, _) = varint(page.bytes, at + 4)?;
        if rowid <= highest.cast_signed() {
            return big(page.bytes, at, 4);
        }
    }
    page.last
}

/// The bytes of a value of this type.
fn size_of(kind: u64) -> Option<usize> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind as usize,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        long => usize::try_from((long - 12) / 2).ok()?,
    })
}

/// A part of bytes that lie in several places.
fn part_of(places: &[Range<usize>], mut from: usize, mut size: usize) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    for place in places {
        if size == 0 {
            break;
        }
        if from >= place.len() {
            from -= place.len();
            continue;
        }
        let here = size.min(place.len() - from);
        found.push(place.start + from..place.start + from + here);
        (from, size) = (0, size - here);
    }
    (size == 0).then_some(found)
}
