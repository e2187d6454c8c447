//! Writes the guard's records in the format of `backstory_abi.h`. Each names the thread that made
//! the call.

use backstory_abi::{
    CallerIds, DONE, F_CALLER, F_IDENT, F_MORE, F_PREDICTED, F_RESOLVED, RESERVED, Record, op,
};
use backstory_arena::RecordSink;
use backstory_files::Ident;

/// Most bytes of strings in one record. A longer list continues in the next record.
const PIECE: usize = 16 * 1024;

/// The result of a call, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordResult {
    /// Only the attempt was seen.
    Unknown,
    /// The file system foretells it: at least 0, or `-errno`.
    Predicted(i32),
    /// The result is certain.
    Known(i32),
}

/// The fields of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordFields {
    /// Operation.
    pub op: u16,
    /// Its meaning depends on the operation.
    pub fd: i32,
    /// Its meaning depends on the operation.
    pub arg: i32,
    /// Its meaning depends on the operation.
    pub aux: u32,
    /// Outcome.
    pub result: RecordResult,
    /// The file concerned.
    pub ident: Option<Ident>,
    /// All paths are absolute.
    pub resolved: bool,
    /// More `F_*`.
    pub flags: u16,
}

impl RecordFields {
    /// The fields of an operation of which nothing else is known.
    pub fn of(op: u16) -> RecordFields {
        RecordFields {
            op,
            fd: libc::AT_FDCWD,
            arg: 0,
            aux: 0,
            result: RecordResult::Unknown,
            ident: None,
            resolved: false,
            flags: 0,
        }
    }

    /// True if the call is known or predicted to have failed.
    pub fn result_failed(&self) -> bool {
        matches!(self.result, RecordResult::Predicted(value) | RecordResult::Known(value) if value < 0)
    }
}

/// Builds records in its own buffer and passes them to a sink.
pub struct RecordWriter<S> {
    sink: S,
    buffer: Vec<u8>,
}

impl<S: RecordSink> RecordWriter<S> {
    /// A writer to `sink`.
    pub fn new(sink: S) -> RecordWriter<S> {
        RecordWriter {
            sink,
            buffer: Vec::with_capacity(8192),
        }
    }

    /// Writes one record with NUL-terminated strings.
    pub fn put(&mut self, time: u64, ids: CallerIds, fields: &RecordFields, strings: &[&[u8]]) {
        self.start(time, ids, fields);
        for string in strings {
            self.buffer.extend_from_slice(string);
            self.buffer.push(0);
        }
        self.finish();
    }

    /// Writes one record with raw bytes (a socket address); `aux` holds their number.
    pub fn put_bytes(&mut self, time: u64, ids: CallerIds, fields: &RecordFields, bytes: &[u8]) {
        self.start(
            time,
            ids,
            &RecordFields {
                aux: bytes.len() as u32,
                ..*fields
            },
        );
        self.buffer.extend_from_slice(bytes);
        self.finish();
    }

    /// Writes a list of NUL-terminated strings, given one after the other, in as many records as
    /// needed.
    pub fn put_list(&mut self, time: u64, ids: CallerIds, fields: &RecordFields, list: &[u8]) {
        let mut rest = list;
        loop {
            let (piece, more, after) = split(rest);
            let flags = if more {
                fields.flags | F_MORE
            } else {
                fields.flags
            };
            self.start(time, ids, &RecordFields { flags, ..*fields });
            self.buffer.extend_from_slice(piece);
            if more {
                self.buffer.push(0);
            }
            self.finish();
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn start(&mut self, time: u64, ids: CallerIds, fields: &RecordFields) {
        let (state, result, predicted) = match fields.result {
            RecordResult::Unknown => (RESERVED, 0, 0),
            RecordResult::Predicted(value) => (DONE, value, F_PREDICTED),
            RecordResult::Known(value) => (DONE, value, 0),
        };
        let ident = if fields.ident.is_some() { F_IDENT } else { 0 };
        let resolved = if fields.resolved { F_RESOLVED } else { 0 };
        let record = Record {
            state,
            op: fields.op,
            size: 0,
            flags: fields.flags | F_CALLER | predicted | ident | resolved,
            time,
            fd: fields.fd,
            arg: fields.arg,
            result,
            aux: fields.aux,
        };
        self.buffer.clear();
        self.buffer.extend_from_slice(&record.to_bytes());
        self.buffer.extend_from_slice(&ids.to_bytes());
        if let Some(ident) = &fields.ident {
            self.buffer.extend_from_slice(&ident.to_bytes());
        }
    }

    fn finish(&mut self) {
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
        let size = self.buffer.len() as u16;
        if let Some(place) = self.buffer.get_mut(4..6) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        self.sink.append(&self.buffer);
    }
}

/// The part of a list that fits one record, whether its last string continues in the next record,
/// and the rest.
fn split(list: &[u8]) -> (&[u8], bool, &[u8]) {
    if list.len() <= PIECE {
        return (list, false, &[]);
    }
    let (head, tail) = list.split_at(PIECE);
    // An empty string at the end of a record would be read as padding, so only the last record may
    // end with one.
    match (1..PIECE)
        .rev()
        .find(|end| head[*end] == 0 && head[*end - 1] != 0)
    {
        Some(end) => {
            let (head, tail) = list.split_at(end + 1);
            (head, false, tail)
        }
        None => (head, true, tail),
    }
}

/// The fields of a `BORN` record: a process was met for the first time.
pub fn born(pid: u32, parent: u32) -> RecordFields {
    RecordFields {
        fd: pid as i32,
        arg: parent as i32,
        result: RecordResult::Known(0),
        ..RecordFields::of(op::BORN)
    }
}

/// The fields of a `GONE` record: a process has ended.
pub fn gone(pid: u32, status: Option<i32>) -> RecordFields {
    RecordFields {
        fd: pid as i32,
        arg: status.unwrap_or(0),
        aux: u32::from(status.is_some()),
        result: RecordResult::Known(0),
        ..RecordFields::of(op::GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Collected<'a>(&'a mut Vec<Vec<u8>>);

    impl RecordSink for Collected<'_> {
        fn append(&mut self, record: &[u8]) {
            self.0.push(record.to_vec());
        }
    }

    #[test]
    fn a_long_list_loses_nothing_between_its_records() {
        let mut list = Vec::new();
        for i in 0..3000 {
            list.extend_from_slice(format!("argument number {i}\0").as_bytes());
        }
        list.extend_from_slice(&[b'x'; 40_000]);
        list.push(0);
        let mut records = Vec::new();
        RecordWriter::new(Collected(&mut records)).put_list(
            1,
            CallerIds::default(),
            &RecordFields::of(op::ARGS),
            &list,
        );
        let mut joined = Vec::new();
        for record in &records {
            let head = Record::read(record).unwrap();
            assert_eq!(usize::from(head.size), record.len());
            let body = &record[Record::SIZE + CallerIds::SIZE..];
            let end = body.iter().rposition(|b| *b != 0).unwrap() + 1;
            joined.extend_from_slice(&body[..end]);
            if head.flags & F_MORE == 0 {
                joined.push(0);
            }
        }
        assert_eq!(joined, list);
    }
}
