//! Reads JSON of any size: values are passed on as they come.

use crate::{Error, ImportJob, LogFile};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::{BufReader, Read};

/// An object of JSON.
pub(crate) type Object = serde_json::Map<String, Value>;

/// Reports the bytes that are read.
struct MeteredReader<'a, R> {
    inner: R,
    done: &'a dyn Fn(u64),
}

impl<R: Read> Read for MeteredReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.done)(read as u64);
        Ok(read)
    }
}

/// A file of the import, buffered.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) fn reader<'a>(job: &'a ImportJob<'_>, file: &LogFile) -> Result<impl Read + 'a, Error> {
    Ok(BufReader::with_capacity(
        1 << 16,
        MeteredReader {
            inner: crate::inputs::open(&file.path)?,
            done: job.done,
        },
    ))
}

/// Reads the one JSON value of a file with `seed`.
///
/// # Errors
///
/// The file cannot be read, or is not the JSON that `seed` expects.
pub(crate) fn document<'de, S: DeserializeSeed<'de>>(
    job: &ImportJob<'_>,
    file: &LogFile,
    format: &'static str,
    seed: S,
) -> Result<S::Value, Error> {
    let mut source = serde_json::Deserializer::from_reader(reader(job, file)?);
    let value = seed.deserialize(&mut source);
    value
        .and_then(|value| source.end().map(|()| value))
        .map_err(|error| failure(file, format, &error))
}

/// The failure of a file.
fn failure(file: &LogFile, format: &'static str, error: &serde_json::Error) -> Error {
    if let Some(kind) = error.io_error_kind() {
        return Error::read(&file.path)(kind.into());
    }
    let text = error.to_string();
    let why = text.rsplit_once(" at line ").map_or(&*text, |(why, _)| why);
    Error::Malformed {
        path: file.path.clone(),
        format,
        line: error.line() as u64,
        column: error.column(),
        why: why.to_owned(),
    }
}

/// Reads values one after the other, or those of one array, and passes each on as it comes.
///
/// # Errors
///
/// The file cannot be read, is no JSON, or `each` refuses a value.
pub(crate) fn sequence(
    job: &ImportJob<'_>,
    file: &LogFile,
    format: &'static str,
    mut each: impl FnMut(Value) -> Result<(), String>,
) -> Result<(), Error> {
    let mut first = [0; 64];
    let read = crate::inputs::open(&file.path)?
        .read(&mut first)
        .map_err(Error::read(&file.path))?;
    let is_array = first[..read]
        .iter()
        .find(|byte| !byte.is_ascii_whitespace())
        == Some(&b'[');
    if is_array {
        return document(job, file, format, Elements(each));
    }
    let source = serde_json::Deserializer::from_reader(reader(job, file)?);
    let mut source = source.into_iter::<OneValue>();
    loop {
        let before = source.byte_offset();
        let Some(value) = source.next() else {
            return Ok(());
        };
        let value = value.map_err(|error| failure(file, format, &error))?;
        if let Err(why) = each(value.0) {
            let (line, column) = position_after(file, before)?;
            return Err(Error::Malformed {
                path: file.path.clone(),
                format,
                line,
                column,
                why,
            });
        }
    }
}

/// The line and column of the first byte that is no space, after a number of bytes. A value may
/// have several lines.
fn position_after(file: &LogFile, before: usize) -> Result<(u64, usize), Error> {
    let source = BufReader::with_capacity(1 << 16, crate::inputs::open(&file.path)?);
    let (mut line, mut column) = (1, 1);
    for (at, byte) in source.bytes().enumerate() {
        let byte = byte.map_err(Error::read(&file.path))?;
        if at >= before && !byte.is_ascii_whitespace() {
            break;
        }
        (line, column) = match byte {
            b'\n' => (line + 1, 1),
            _ => (line, column + 1),
        };
    }
    Ok((line, column))
}

/// A value of a sequence.
#[derive(serde::Deserialize)]
struct OneValue(Value);

/// Reads an array, and passes each element to a function as it comes.
pub(crate) struct Elements<F>(pub(crate) F);

impl<'de, F: FnMut(Value) -> Result<(), String>> DeserializeSeed<'de> for Elements<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Value) -> Result<(), String>> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut all: A) -> Result<(), A::Error> {
        while let Some(element) = all.next_element::<Value>()? {
            (self.0)(element).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}
