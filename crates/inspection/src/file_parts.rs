//! Parts of a file by the names that its users give them, and the bytes that they lie in: question
//! and answer.
//!
//! The question has two parts: the [`PartName`] as JSON, then the content. The answer is a
//! [`PartAnswer`].
//!
//! Invariant: the ranges of an answer lie within the content. An answer whose ranges are larger
//! than the part says what they are ([`PartPlace::within`]).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::worker::printable;

/// A part of a file, in the words of the file's users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartName {
    /// A cell: `B3` of a table, `Sheet2!B3` of a workbook, `3` or `3.outputs` of a notebook.
    Cell(String),
    /// A member: `rows[3].price` of JSON or TOML, `price[3]` of a table, a name in an archive.
    Member(String),
}

impl PartName {
    /// The kind of the part in the plural.
    pub fn kinds(&self) -> &'static str {
        match self {
            PartName::Cell(_) => "cells",
            PartName::Member(_) => "members",
        }
    }
}

/// Where a part of a file is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartPlace {
    /// The bytes.
    pub ranges: Vec<Range<usize>>,
    /// The part by its full name, where the question left out some of it: `Sheet1!B3`.
    pub name: Option<String>,
    /// A description of the ranges, if they have more than the part. `None`: they are the part.
    pub within: Option<String>,
    /// BLAKE3 of the content of a member of an archive. It joins the member with recorded files.
    pub content: Option<[u8; 32]>,
}

impl PartPlace {
    /// A part that these bytes are, and no others.
    pub fn exact(range: Range<usize>) -> PartPlace {
        PartPlace {
            ranges: vec![range],
            ..PartPlace::default()
        }
    }

    /// The place if its ranges lie within a content of this length.
    pub(crate) fn checked(self, length: usize) -> Option<PartPlace> {
        let is_within = |range: &Range<usize>| range.start <= range.end && range.end <= length;
        let is_sound = !self.ranges.is_empty() && self.ranges.iter().all(is_within);
        is_sound.then(|| PartPlace {
            ranges: self.ranges,
            name: self.name.as_deref().map(printable),
            within: self.within.as_deref().map(printable),
            content: self.content,
        })
    }
}

/// Why a part has no place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoPart {
    /// The format has no parts of this kind.
    OtherKind,
    /// The name is not one that the format has: a sentence that says which names it has.
    Misnamed(String),
    /// The file has no such part: a sentence about the file.
    Absent(String),
    /// The content is damaged, or is not of the format.
    Unreadable(String),
}

/// The place of a part.
pub type PartAnswer = Result<PartPlace, NoPart>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outside_of_the_content_is_refused() {
        let is_sound = |ranges: &[Range<usize>]| {
            let place = PartPlace {
                ranges: ranges.to_vec(),
                ..PartPlace::default()
            };
            place.checked(9).is_some()
        };
        assert!(is_sound(&[0..9, 4..4]));
        let (long, backwards) = (0..10, Range { start: 5, end: 4 });
        for wrong in [vec![], vec![long], vec![0..1, 9..12], vec![backwards]] {
            assert!(!is_sound(&wrong), "{wrong:?}");
        }
    }
}
