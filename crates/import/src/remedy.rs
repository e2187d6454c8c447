//! Says which kind of file was refused, and how to import it.
//!
//! In: the format that refused the file, and the file. Out: the rest of a sentence, such as `it
//! looks like a log of auditd: backstory import auditd FILE`.
//!
//! Only the beginning of the file is looked at. A file that nothing is known about has no remedy.

use crate::beginning::has_line;
use crate::{Error, FORMATS, ImportFormat};
use std::io::Read;
use std::path::Path;

/// The bytes of a file that are looked at.
const BEGINNING: u64 = 1 << 16;

/// First bytes of compressed files: the tool that compressed them, and the command that prints
/// their content.
const COMPRESSED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Returns advice about a file that `format` refused with this error.
pub fn remedy(format: &dyn ImportFormat, error: &Error) -> Option<String> {
    let path = match error {
        Error::Directory { path } => return files_within(format, path),
        Error::OtherFormat { path, .. }
        | Error::Malformed { path, .. }
        | Error::NoPack { path, .. } => path,
        _ => return None,
    };
    let mut beginning = Vec::new();
    let file = crate::inputs::open(path).ok()?;
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    let encoding = match error {
        Error::NoPack { .. } => None,
        _ => of_encoding(format, path, &beginning),
    };
    encoding.or_else(|| of_content(format, path, &beginning))
}

/// The files of a directory that a tool made.
fn files_within(format: &dyn ImportFormat, path: &Path) -> Option<String> {
    let is_there = |name: &&&str| path.join(name.trim_end_matches("/*")).exists();
    let name = format.files_within().iter().find(is_there)?;
    let path = path.join(name);
    Some(format!(
        "backstory import {} {}",
        format.name(),
        path.display()
    ))
}

/// A file that no format can be, because of its bytes.
fn of_encoding(format: &dyn ImportFormat, path: &Path, beginning: &[u8]) -> Option<String> {
    let (name, path) = (format.name(), path.display());
    if beginning.is_empty() {
        return Some("the file is empty: has the tool written its log?".to_owned());
    }
    if format.is_like(beginning) {
        return None;
    }
    if let Some((_, tool, print)) = COMPRESSED
        .iter()
        .find(|(magic, ..)| beginning.starts_with(magic))
        && !format.is_compressed()
        && !FORMATS.iter().any(|other| other.is_like(beginning))
    {
        return Some(format!(
            "{tool} compressed the file: {print} {path} > LOG && backstory import {name} LOG"
        ));
    }
    if let Some(encoding) = wide_encoding(beginning) {
        return Some(format!(
            "the file is {encoding}: iconv -f {encoding} -t UTF-8 {path} > LOG && \
             backstory import {name} LOG"
        ));
    }
    beginning.starts_with(b"\xef\xbb\xbf").then(|| {
        format!(
            "the file begins with a byte order mark: tail -c +4 {path} > LOG && \
             backstory import {name} LOG"
        )
    })
}

/// UTF-16 or UTF-32, with a byte order mark or without.
fn wide_encoding(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some("UTF-16LE"),
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some("UTF-16BE"),
        _ => None,
    }
}

/// A file of another format.
fn of_content(format: &dyn ImportFormat, path: &Path, beginning: &[u8]) -> Option<String> {
    let path = path.display();
    if format.is_like(beginning) {
        return None;
    }
    if let Some(other) = FORMATS.iter().find(|other| other.is_like(beginning)) {
        let name = other.name();
        return Some(format!(
            "it looks like {}: backstory import {name} {path}",
            other.about()
        ));
    }
    let has = |line: &[u8], text: &[u8]| memchr::memmem::find(line, text).is_some();
    if beginning.starts_with(b"bsstores") {
        return Some(format!(
            "`backstory store export` wrote it: backstory store import {path}"
        ));
    }
    if has_line(beginning, |line| {
        line.starts_with(b"type=") && has(line, b"msg=audit(")
    }) {
        return Some("`ausearch -i` wrote it: use ausearch --raw".to_owned());
    }
    None
}
