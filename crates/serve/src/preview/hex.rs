//! A content by its bytes.

use std::io::Read;

use backstory_inspection::question::Portion;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use crate::problem::{Answer, Problem};
use crate::version_bytes::VersionBytes;

/// Bytes of a row.
const ROW: usize = 16;

/// Rows of 16 bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct HexView {
    /// The number of the first row.
    pub first: usize,
    /// Rows of the whole content.
    pub total: u64,
    /// The rows.
    pub rows: Vec<HexRow>,
}

/// Sixteen bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct HexRow {
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes as hexadecimal digits, two for each.
    pub hex: String,
    /// The bytes as ASCII, with a dot for each other one.
    pub text: String,
}

impl HexView {
    /// Some rows.
    pub fn read(mut content: VersionBytes, part: Portion) -> Answer<HexView> {
        let total = content.size.div_ceil(ROW as u64);
        let first = (part.first as u64).min(total);
        content.skip(first * ROW as u64)?;
        let mut bytes = Vec::new();
        let most = (part.limit * ROW) as u64;
        let read = content.by_ref().take(most).read_to_end(&mut bytes);
        read.map_err(|error| Problem::failed(error.to_string()))?;
        let rows = (first..)
            .zip(bytes.chunks(ROW))
            .map(|(number, row)| HexRow {
                offset: number * ROW as u64,
                hex: row.iter().map(|byte| format!("{byte:02x}")).collect(),
                text: row
                    .iter()
                    .map(|&byte| match byte.is_ascii_graphic() || byte == b' ' {
                        true => byte as char,
                        false => '.',
                    })
                    .collect(),
            });
        Ok(HexView {
            first: first as usize,
            total,
            rows: rows.collect(),
        })
    }
}
