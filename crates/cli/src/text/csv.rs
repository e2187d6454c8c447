//! Comma-separated values (RFC 4180).

use std::io::{self, Write};

/// Writes a row. A cell is quoted if it has a comma, a quotation mark or a line break.
pub fn row(
    cells: impl IntoIterator<Item = impl AsRef<[u8]>>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    for (at, cell) in cells.into_iter().enumerate() {
        let cell = cell.as_ref();
        out.write_all(if at == 0 { b"" } else { b"," })?;
        if cell.iter().any(|byte| b",\"\r\n".contains(byte)) {
            let parts: Vec<&[u8]> = cell.split(|byte| *byte == b'"').collect();
            out.write_all(b"\"")?;
            out.write_all(&parts.join(&b"\"\""[..]))?;
            out.write_all(b"\"")?;
        } else {
            out.write_all(cell)?;
        }
    }
    out.write_all(b"\n")
}
