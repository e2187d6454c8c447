//! The bytes of a part of a file: a range, a line, or a part by the structure of the file's type.
//!
//! In: a content and a [`Selection`]. Out: a [`SelectedPart`]. Also the opposite: the line and
//! column of a byte. The structure is read by the inspection worker (crate `inspect`, `parts`), and
//! not in this process.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_bytes::RangeSet;
use backstory_comparison::{is_text, is_utf16};
use backstory_inspection::FormatReader;
use backstory_inspection::file_parts::{NoPart, PartName};

use crate::args::bytes::Selection;
use crate::commands::near;
use crate::error::Failure;

/// The bytes that are meant.
#[derive(Debug, Default)]
pub struct SelectedPart {
    /// They lie one after the other.
    pub ranges: Vec<Range<u64>>,
    /// The part by its name, of a part by structure.
    pub name: Option<String>,
    /// A description of the ranges, if they have more than the part.
    pub within: Option<String>,
}

impl SelectedPart {
    /// A range that has no other name.
    pub fn of(range: Range<u64>) -> SelectedPart {
        SelectedPart {
            ranges: vec![range],
            ..SelectedPart::default()
        }
    }
}

/// The part of the file `path` that is meant. Its ends are not after the content's.
pub fn find(content: &[u8], path: &Path, wanted: &Selection) -> Result<SelectedPart, Failure> {
    let (found, absent) = match wanted {
        Selection::Bytes(first, last) => {
            let end = (last.saturating_add(1)).min(content.len() as u64);
            let absent = format!("the file has {} bytes, and no byte {first}", content.len());
            ((*first < end).then_some(*first..end), absent)
        }
        Selection::Line(_) if !is_text(content) => return Err(no_parts(content, path, "lines")),
        Selection::Line(number) => {
            let absent = format!("the file has no line {number}");
            (line(content, *number), absent)
        }
        Selection::Part(name) => return by_structure(content, path, name),
    };
    let found = found.map(SelectedPart::of);
    found.ok_or_else(|| Failure::not_found(absent))
}

/// The part by the structure of the file's type.
fn by_structure(content: &[u8], path: &Path, name: &PartName) -> Result<SelectedPart, Failure> {
    let file = path.as_os_str().as_bytes();
    let reader = FormatReader::new();
    let Some(format) = reader.format_of(file, content) else {
        return Err(no_parts(content, path, name.kinds()));
    };
    let answer = reader.part(format, file, content, name);
    let answer = answer
        .map_err(|trouble| Failure::not_found(format!("{trouble}; `--bytes` needs no format")))?;
    let place = answer.map_err(|why| match why {
        NoPart::OtherKind => no_parts(content, path, name.kinds()),
        NoPart::Misnamed(why) => Failure::misuse(format!("{}: {why}", near(file))),
        NoPart::Absent(why) | NoPart::Unreadable(why) => {
            Failure::not_found(format!("{}: {why}", near(file)))
        }
    })?;
    let mut set = RangeSet::default();
    for range in &place.ranges {
        set.insert(range.start as u64..range.end as u64);
    }
    let mut ranges: Vec<Range<u64>> = set.iter().collect();
    // A set has no empty range, but an empty cell is one.
    if ranges.is_empty() {
        let first = place.ranges.first().map(|range| range.start as u64);
        ranges.extend(first.map(|start| start..start));
    }
    let (PartName::Cell(given) | PartName::Member(given)) = name;
    Ok(SelectedPart {
        ranges,
        name: Some(place.name.unwrap_or_else(|| given.clone())),
        within: place.within,
    })
}

/// The file's type has no such parts.
fn no_parts(content: &[u8], path: &Path, kinds: &str) -> Failure {
    let file = path.as_os_str().as_bytes();
    let reader = FormatReader::new();
    let format = match reader.format_of(file, content) {
        _ if is_utf16(content) => "text in UTF-16".to_owned(),
        Some(format) => format!("of the format {}", format.name),
        None => "not text, and of no known format".to_owned(),
    };
    let last = content.len().saturating_sub(1);
    Failure::misuse(format!(
        "{} is {format}: its {kinds} are not found, so ask with --bytes, as in --bytes 0-{last}",
        near(file)
    ))
}

fn line(content: &[u8], number: u64) -> Option<Range<u64>> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let mut start = 0;
    for (at, line) in content.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if at == index {
            let end = start + line.len() - usize::from(line.ends_with(b"\n"));
            return Some(start as u64..end as u64);
        }
        start += line.len();
    }
    None
}

/// The line and column of a byte, both from 1.
pub fn position(content: &[u8], byte: u64) -> (usize, usize) {
    let before = &content[..(byte as usize).min(content.len())];
    let lines = before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n');
    (lines + 1, before.len() - start.map_or(0, |at| at + 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn a_line_is_found_without_its_end() {
        const TABLE: &[u8] = b"a,\"b \"\"c\"\", d\",e\r\n1,,3\n";
        let line = |number| find(TABLE, Path::new("a.csv"), &Selection::Line(number));
        assert_eq!(line(2).unwrap().ranges[0], 18..22);
        assert_eq!(line(3).unwrap_err().status, Status::NotFound);
        assert_eq!(position(TABLE, 19), (2, 2));
    }

    #[test]
    fn a_line_of_a_file_that_is_not_text_is_refused_with_its_format() {
        for (name, content, format) in [
            ("a.zip", &b"PK\x03\x04\0\n"[..], "format zip"),
            ("a.txt", b"\xff\xfea\0\n\0", "text in UTF-16"),
            ("a.bin", b"\0\n", "no known format"),
        ] {
            let refused = find(content, Path::new(name), &Selection::Line(1)).unwrap_err();
            assert_eq!(refused.status, Status::Misuse);
            assert!(refused.line.contains(format), "{}", refused.line);
            assert!(refused.line.contains("--bytes"), "{}", refused.line);
        }
    }
}
