//! The names in a block of versions: each as the bytes that it does not share with the name before.

use super::WHAT;
use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

/// Collects names.
#[derive(Default)]
pub struct NameWriter {
    starts: Vec<u8>,
    ends: Vec<u8>,
    middles: Vec<u8>,
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl NameWriter {
    /// Adds a name.
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

/// Reads names.
pub struct NameReader<'b> {
    starts: RecordReader<'b>,
    ends: RecordReader<'b>,
    middles: RecordReader<'b>,
    /// The bytes of the middles. The columns of the identities stand before them.
    pub bytes: RecordReader<'b>,
    /// The name that was read last, and the one before it.
    last: Vec<u8>,
    before: Vec<u8>,
}

impl<'b> NameReader<'b> {
    /// Takes off the columns of `count` names. The caller sets `bytes`.
    pub fn take(reader: &mut RecordReader<'b>, count: usize) -> Result<NameReader<'b>> {
        Ok(NameReader {
            starts: reader.column(count)?,
            ends: reader.column(count)?,
            middles: reader.column(count)?,
            bytes: RecordReader::new(&[], WHAT),
            last: Vec::new(),
            before: Vec::new(),
        })
    }

    /// The next name.
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
