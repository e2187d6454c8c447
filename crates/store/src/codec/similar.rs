//! Similar byte strings, one after the other. Each is stored as the bytes in its middle that it
//! does not share with the one before. Names of files and lists of arguments are such strings.

use super::{RecordReader, RecordWriter};
use crate::Result;

/// Collects byte strings.
#[derive(Default)]
pub struct SimilarWriter {
    starts: Vec<u8>,
    ends: Vec<u8>,
    middles: Vec<u8>,
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl SimilarWriter {
    /// Adds a byte string.
    pub fn push(&mut self, name: &[u8]) {
        let same = |(a, b): &(&u8, &u8)| a == b;
        let start = name.iter().zip(&self.last).take_while(same).count();
        let (rest, last) = (&name[start..], &self.last[start..]);
        let end = rest.iter().rev().zip(last.iter().rev());
        let end = end.take_while(same).count();
        let middle = &rest[..rest.len() - end];
        self.starts.number(start as u64);
        self.ends.number(end as u64);
        self.middles.number(middle.len() as u64);
        self.bytes.extend_from_slice(middle);
        self.last.clear();
        self.last.extend_from_slice(name);
    }

    /// Appends the columns of numbers.
    pub fn put_columns(&self, out: &mut Vec<u8>) {
        for column in [&self.starts, &self.ends, &self.middles] {
            out.extend_from_slice(column);
        }
    }

    /// Appends the bytes.
    pub fn put_bytes(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }
}

/// Reads byte strings.
pub struct SimilarReader<'b> {
    starts: RecordReader<'b>,
    ends: RecordReader<'b>,
    middles: RecordReader<'b>,
    /// The bytes of the middles. Other columns may stand before them.
    pub bytes: RecordReader<'b>,
    /// The one that was read last, and the one before it.
    last: Vec<u8>,
    before: Vec<u8>,
}

impl<'b> SimilarReader<'b> {
    /// Takes off the columns of `count` byte strings. The caller sets `bytes`.
    pub fn take(reader: &mut RecordReader<'b>, count: usize) -> Result<SimilarReader<'b>> {
        Ok(SimilarReader {
            starts: reader.column(count)?,
            ends: reader.column(count)?,
            middles: reader.column(count)?,
            bytes: RecordReader::new(&[], reader.what()),
            last: Vec::new(),
            before: Vec::new(),
        })
    }

    /// The next byte string.
    pub fn next(&mut self) -> Result<&[u8]> {
        std::mem::swap(&mut self.last, &mut self.before);
        let (start, end) = (self.starts.size()?, self.ends.size()?);
        let before = &self.before;
        let end = before.len().checked_sub(end).filter(|end| start <= *end);
        let end = end.ok_or_else(|| self.ends.damaged())?;
        let middle = self.bytes.exactly(self.middles.size()?)?;
        self.last.clear();
        self.last.extend_from_slice(&before[..start]);
        self.last.extend_from_slice(middle);
        self.last.extend_from_slice(&before[end..]);
        Ok(&self.last)
    }
}
