//! A content by its lines.

use std::io::{BufRead, BufReader, Read};

use backstory_inspection::question::Portion;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::{MOST, formats, not_shown, whole};
use crate::media_type::MediaType;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::version_bytes::VersionBytes;

/// The most bytes of a line that are shown.
const LONGEST: usize = 10_000;

/// Lines of a text.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TextView {
    /// The number of the first line, from 0.
    pub first: usize,
    /// Lines of the whole text. If `cut`, only those of its first 64 MiB.
    pub total: usize,
    /// The lines without their newlines.
    pub lines: Vec<PathText>,
    /// A line is longer than 10,000 bytes, or the text than 64 MiB, and the rest is left out.
    pub cut: bool,
}

impl TextView {
    /// Some lines. A worker decodes a text in UTF-16.
    pub fn read(content: VersionBytes, media: MediaType, part: Portion) -> Answer<TextView> {
        if media != MediaType::Utf16 {
            return TextView::of_bytes(content, part);
        }
        let name = content.path.clone();
        let found = formats().lines(&name, &whole(content)?, part);
        let found = found.map_err(not_shown)?;
        Ok(TextView {
            first: part.first,
            total: found.total,
            lines: found.lines.iter().map(|line| line.0[..].into()).collect(),
            cut: found.cut,
        })
    }

    fn of_bytes(content: VersionBytes, part: Portion) -> Answer<TextView> {
        let Portion { first, limit } = part;
        let mut view = TextView {
            first,
            total: 0,
            lines: Vec::new(),
            cut: content.size > MOST,
        };
        let mut reader = BufReader::with_capacity(1 << 18, content.take(MOST));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            if read.map_err(|error| Problem::failed(error.to_string()))? == 0 {
                return Ok(view);
            }
            let wanted = view.total >= first && view.lines.len() < limit;
            view.total += 1;
            if wanted {
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                view.cut |= text.len() > LONGEST;
                view.lines.push(text[..text.len().min(LONGEST)].into());
            }
        }
    }
}
