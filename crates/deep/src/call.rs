//! One call of a program, with all that entered or left by it.

use backstory_abi::{DeepRecord, DeepSection, deep};

/// Bytes that belong to an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// A constant of [`backstory_abi::deep`]: `ENTERED`, `LEFT`, `PATH` and so on.
    pub kind: u16,
    /// The number of the argument that points to the bytes, from 0.
    pub arg: u16,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A call, or a fact about a stream. `docs/formats/deep.md` has the meaning of the fields by call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    /// The thread, as the process sees it.
    pub tid: u32,
    /// The number of the system call on x86-64, or of a fact in [`backstory_abi::deep`].
    pub number: u16,
    /// True if a signal handler made the call.
    pub in_handler: bool,
    /// True if bytes of it are missing.
    pub is_cut: bool,
    /// Time-stamp counter before the call.
    pub time: u64,
    /// Counts that the call took, a multiple of 64.
    pub took: u64,
    /// The descriptor, or -1.
    pub fd: i32,
    /// The kernel's result: below 0 an error.
    pub result: i64,
    /// Meaning by call.
    pub a: u64,
    /// Meaning by call.
    pub b: u64,
    /// The bytes that entered and left. There is one section for each kind and argument.
    pub sections: Vec<Section>,
}

/// The content that a call moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// The bytes themselves.
    Bytes(&'a [u8]),
    /// Their length and XXH64.
    Digest {
        /// Number of bytes.
        length: u64,
        /// Their digest ([`crate::digest::xxh64`]).
        xxh64: u64,
    },
    /// A range of a file whose content the run stores.
    File {
        /// The number of the `DESCRIPTOR` fact that names the file, in the same process.
        descriptor: u64,
        /// Position in the file.
        position: u64,
        /// Number of bytes.
        length: u64,
        /// Their digest.
        xxh64: u64,
    },
}

impl Content<'_> {
    /// Number of bytes.
    pub fn length(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Digest { length, .. } | Content::File { length, .. } => *length,
        }
    }

    /// True if `bytes` are this content.
    pub fn is(&self, bytes: &[u8]) -> bool {
        match self {
            Content::Bytes(own) => *own == bytes,
            Content::Digest { length, xxh64 } | Content::File { length, xxh64, .. } => {
                *length == bytes.len() as u64 && *xxh64 == crate::digest::xxh64(bytes)
            }
        }
    }
}

impl Call {
    /// The bytes of this kind at this argument.
    pub fn section(&self, kind: u16, arg: u16) -> Option<&[u8]> {
        let mut found = self.sections.iter();
        let found = found.find(|s| s.kind == kind && s.arg == arg)?;
        Some(&found.bytes)
    }

    /// The bytes that the kernel wrote at this argument.
    pub fn entered_at(&self, arg: u16) -> Option<&[u8]> {
        self.section(deep::ENTERED, arg)
    }

    /// The path that the call was given.
    pub fn path(&self) -> Option<&[u8]> {
        let found = self.sections.iter().find(|s| s.kind == deep::PATH)?;
        Some(&found.bytes)
    }

    /// The socket address that the call was given or returned.
    pub fn address(&self) -> Option<&[u8]> {
        let found = self.sections.iter().find(|s| s.kind == deep::ADDRESS)?;
        Some(&found.bytes)
    }

    /// The content that entered by a read-like call (argument 1, or 0 of `getrandom`).
    pub fn content_in(&self) -> Option<Content<'_>> {
        if let Some(reference) = self.section(deep::FILE, 1) {
            let number = |i: usize| word(reference, i);
            return Some(Content::File {
                descriptor: number(0)?,
                position: number(1)?,
                length: number(2)?,
                xxh64: number(3)?,
            });
        }
        let bytes = self.entered_at(1).or_else(|| self.entered_at(0))?;
        Some(Content::Bytes(bytes))
    }

    /// The content that left by a write-like call.
    pub fn content_out(&self) -> Option<Content<'_>> {
        if let Some(digest) = self.section(deep::LEFT_DIGEST, 1) {
            return Some(Content::Digest {
                length: word(digest, 0)?,
                xxh64: word(digest, 1)?,
            });
        }
        self.section(deep::LEFT, 1).map(Content::Bytes)
    }

    /// True if this is no call of the program, but a fact about its stream.
    pub fn is_fact(&self) -> bool {
        self.number >= deep::BEGIN
    }

    /// The call of a whole record. `sections` are the bytes after its fixed part. `None` if they
    /// cannot be read.
    pub(crate) fn of(record: &DeepRecord, tid: u32, sections: &[u8]) -> Option<Call> {
        let mut call = Call {
            tid,
            number: record.call,
            in_handler: record.flags & deep::HANDLER != 0,
            is_cut: record.flags & deep::CUT != 0,
            time: record.time,
            took: u64::from(record.took) << 6,
            fd: record.fd,
            result: record.result,
            a: record.a,
            b: record.b,
            sections: Vec::new(),
        };
        let mut rest = sections;
        while let Some(head) = DeepSection::read(rest).filter(|head| head.kind != 0) {
            let end = DeepSection::SIZE.checked_add(head.length as usize)?;
            call.add(head.kind, head.arg, rest.get(DeepSection::SIZE..end)?);
            rest = rest.get(end.next_multiple_of(8)..).unwrap_or_default();
        }
        Some(call)
    }

    fn add(&mut self, kind: u16, arg: u16, bytes: &[u8]) {
        let mut known = self.sections.iter_mut();
        match known.find(|s| s.kind == kind && s.arg == arg) {
            Some(section) => section.bytes.extend_from_slice(bytes),
            None => self.sections.push(Section {
                kind,
                arg,
                bytes: bytes.to_vec(),
            }),
        }
    }

    /// Bytes of all sections.
    pub(crate) fn length(&self) -> usize {
        self.sections
            .iter()
            .map(|section| section.bytes.len())
            .sum()
    }

    /// Adds the rest of a call that did not fit into one record.
    pub(crate) fn extend(&mut self, rest: Call) {
        for section in rest.sections {
            self.add(section.kind, section.arg, &section.bytes);
        }
    }
}

fn word(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * 8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
