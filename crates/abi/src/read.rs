//! Reads and writes the structures as little-endian bytes. The readers stay within bounds for any
//! bytes.

use crate::{CallerIds, Chunk, DeepRecord, DeepSection, Record};

/// Reads fields one after the other from a slice. The caller has checked that it is long enough.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.0 = tail;
                *head
            }
            None => [0; N],
        }
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.take())
    }

    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.take())
    }

    fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }
}

impl DeepRecord {
    /// Size of a record without its sections, in bytes.
    pub const SIZE: usize = size_of::<DeepRecord>();

    /// Reads a record from its first bytes; `None` if there are too few.
    pub fn read(bytes: &[u8]) -> Option<DeepRecord> {
        let mut f = Fields(bytes.get(..Self::SIZE)?);
        Some(DeepRecord {
            state: f.byte(),
            flags: f.byte(),
            call: f.u16(),
            size: f.u32(),
            time: f.u64(),
            took: f.u32(),
            fd: f.i32(),
            result: f.i64(),
            a: f.u64(),
            b: f.u64(),
        })
    }
}

impl DeepSection {
    /// Size of a section's head in bytes.
    pub const SIZE: usize = size_of::<DeepSection>();

    /// Reads a section's head from its first bytes; `None` if there are too few.
    pub fn read(bytes: &[u8]) -> Option<DeepSection> {
        let mut f = Fields(bytes.get(..Self::SIZE)?);
        Some(DeepSection {
            kind: f.u16(),
            arg: f.u16(),
            length: f.u32(),
        })
    }
}

/// Writes fields one after the other into an array of exactly their length.
struct Put<'a>(&'a mut [u8], usize);

impl Put<'_> {
    fn put<const N: usize>(&mut self, value: [u8; N]) -> &mut Self {
        if let Some(place) = self.0.get_mut(self.1..self.1 + N) {
            place.copy_from_slice(&value);
        }
        self.1 += N;
        self
    }
}

impl Chunk {
    /// Size of a chunk's header in bytes.
    pub const SIZE: usize = size_of::<Chunk>();

    /// Reads a header from the first bytes of a chunk; `None` if there are too few. The magic is
    /// not checked.
    pub fn read(bytes: &[u8]) -> Option<Chunk> {
        let mut f = Fields(bytes.get(..Self::SIZE)?);
        Some(Chunk {
            magic: f.u32(),
            index: f.u32(),
            pid: f.u32(),
            tid: f.u32(),
            epoch: f.u64(),
            taken: f.u64(),
            ppid: f.u32(),
            seq: f.u32(),
            next: f.u64(),
            host_pid: f.u32(),
            flags: f.u32(),
            pad: f.u64(),
        })
    }

    /// Returns the header as bytes.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        Put(&mut bytes, 0)
            .put(self.magic.to_le_bytes())
            .put(self.index.to_le_bytes())
            .put(self.pid.to_le_bytes())
            .put(self.tid.to_le_bytes())
            .put(self.epoch.to_le_bytes())
            .put(self.taken.to_le_bytes())
            .put(self.ppid.to_le_bytes())
            .put(self.seq.to_le_bytes())
            .put(self.next.to_le_bytes())
            .put(self.host_pid.to_le_bytes())
            .put(self.flags.to_le_bytes())
            .put(self.pad.to_le_bytes());
        bytes
    }
}

impl Record {
    /// Size of a record's fixed part in bytes.
    pub const SIZE: usize = size_of::<Record>();

    /// Reads the fixed part; `None` if there are too few bytes. No field is checked.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let mut f = Fields(bytes.get(..Self::SIZE)?);
        Some(Record {
            state: f.u16(),
            op: f.u16(),
            size: f.u16(),
            flags: f.u16(),
            time: f.u64(),
            fd: f.i32(),
            arg: f.i32(),
            result: f.i32(),
            aux: f.u32(),
        })
    }

    /// Returns the fixed part as bytes.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        Put(&mut bytes, 0)
            .put(self.state.to_le_bytes())
            .put(self.op.to_le_bytes())
            .put(self.size.to_le_bytes())
            .put(self.flags.to_le_bytes())
            .put(self.time.to_le_bytes())
            .put(self.fd.to_le_bytes())
            .put(self.arg.to_le_bytes())
            .put(self.result.to_le_bytes())
            .put(self.aux.to_le_bytes());
        bytes
    }
}

impl CallerIds {
    /// The ids of a process's first thread, outside of any system call.
    pub fn of_process(pid: u32) -> CallerIds {
        CallerIds {
            pid,
            tid: pid,
            ..CallerIds::default()
        }
    }

    /// Size of the structure in bytes.
    pub const SIZE: usize = size_of::<CallerIds>();

    /// Reads the structure; `None` if there are too few bytes.
    pub fn read(bytes: &[u8]) -> Option<CallerIds> {
        let mut f = Fields(bytes.get(..Self::SIZE)?);
        Some(CallerIds {
            pid: f.u32(),
            tid: f.u32(),
            nr: f.u32(),
            arch: f.u32(),
        })
    }

    /// Returns the structure as bytes.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        Put(&mut bytes, 0)
            .put(self.pid.to_le_bytes())
            .put(self.tid.to_le_bytes())
            .put(self.nr.to_le_bytes())
            .put(self.arch.to_le_bytes());
        bytes
    }
}
