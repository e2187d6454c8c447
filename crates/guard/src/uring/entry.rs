//! Decodes an entry of an io_uring in terms of the system call that does the same.
//!
//! In: the 64 bytes of a submission entry. Out: a call's number and arguments, which are then
//! decoded like any other call; or what the entry does to a descriptor. Nothing but the entry is
//! read. Numbers are those of the kernel's `io_uring.h`. An operation that is not known here marks
//! the run.

use crate::record_writer::{RecordFields, RecordResult};
use backstory_abi::{META_ATTR, op};
use backstory_eventlog::reason::undecoded;

/// Bytes of an entry in every form of ring.
pub const ENTRY: usize = 64;

const FIXED_FILE: u8 = 1;
const DRAIN: u8 = 1 << 1;
const LINK: u8 = 1 << 2;
const HARDLINK: u8 = 1 << 3;

/// `SPLICE_F_FD_IN_FIXED`
const SPLICE_FIXED: u32 = 1 << 31;
/// The first operation that is not known.
const KNOWN: u8 = 65;

/// A submission entry.
#[derive(Debug, Clone, Copy)]
pub struct RingEntry([u8; ENTRY]);

/// The effect of an entry.
#[derive(Debug, Clone, Copy)]
pub enum EntryEffect {
    /// The same as this system call of x86-64.
    Call {
        /// Its number.
        nr: i64,
        /// Its arguments.
        args: [u64; 6],
    },
    /// An operation on descriptors of the process.
    Descriptor(RecordFields),
    /// Adds descriptors to the ring's table of files: `count` numbers at `at`.
    Files {
        /// Address of the numbers.
        at: u64,
        /// The number of descriptors.
        count: u32,
    },
    /// Sends or receives a message through a descriptor.
    Message {
        /// Address of the `struct msghdr`.
        at: u64,
        /// The operation on the descriptor.
        fields: RecordFields,
    },
    /// Nothing that matters, or nothing beyond how the file was opened.
    Nothing,
    /// An operation that cannot be decoded, by name.
    Opaque(&'static str),
}

/// Whether an entry waits until the log is durable, in a run that wants this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryHold {
    /// It makes no content durable.
    No,
    /// It does.
    Durable,
    /// It changes a content. It does so durably if its file was opened so. `None`: a file of the
    /// ring's own table.
    Writes(Option<i32>),
}

impl RingEntry {
    /// An entry from its bytes.
    pub fn new(bytes: [u8; ENTRY]) -> RingEntry {
        RingEntry(bytes)
    }

    fn word<const N: usize>(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + N).unwrap_or_default();
        bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    fn operation(&self) -> u8 {
        self.word::<1>(0) as u8
    }

    fn flags(&self) -> u8 {
        self.word::<1>(1) as u8
    }

    /// The descriptor as a sign-extended argument, so that `AT_FDCWD` stays what it is.
    fn fd(&self) -> u64 {
        i64::from(self.word::<4>(4) as i32) as u64
    }

    fn offset(&self) -> u64 {
        self.word::<8>(8)
    }

    fn address(&self) -> u64 {
        self.word::<8>(16)
    }

    fn length(&self) -> u64 {
        self.word::<4>(24)
    }

    fn operation_flags(&self) -> u64 {
        self.word::<4>(28)
    }

    fn file_index(&self) -> u32 {
        self.word::<4>(44) as u32
    }

    /// True if the next entry begins only once this one has ended.
    pub fn links(&self) -> bool {
        self.flags() & (LINK | HARDLINK) != 0
    }

    /// True if the entry finds the file system as it is now: it waits for no other entry, and acts
    /// with its submitter's rights.
    pub fn immediate(&self) -> bool {
        let (buffer, personality) = (self.word::<2>(40), self.word::<2>(42));
        self.flags() & (DRAIN | FIXED_FILE) == 0 && personality == 0 && buffer == 0
    }

    /// Whether the entry waits until the log is durable. `flushes.rs` has the calls that do.
    pub fn hold(&self) -> EntryHold {
        let fixed = self.flags() & FIXED_FILE != 0;
        let writes = EntryHold::Writes((!fixed).then(|| self.fd() as i32));
        let durable_if = |holds, otherwise| if holds { EntryHold::Durable } else { otherwise };
        match self.operation() {
            // fsync, sync_file_range, renameat
            3 | 8 | 35 => EntryHold::Durable,
            // writev, write_fixed, write, writev_fixed: RWF_DSYNC, RWF_SYNC
            2 | 5 | 23 | 61 => durable_if(self.operation_flags() & 6 != 0, writes),
            // fallocate of ranges, splice, ftruncate
            17 => durable_if(self.length() & 0x7a != 0, writes),
            30 | 55 => writes,
            // fadvise, madvise
            24 => durable_if(
                self.operation_flags() == libc::POSIX_FADV_DONTNEED as u64,
                EntryHold::No,
            ),
            25 => durable_if(
                self.operation_flags() == libc::MADV_PAGEOUT as u64,
                EntryHold::No,
            ),
            _ => EntryHold::No,
        }
    }

    /// The effect of the entry.
    pub fn effect(&self) -> EntryEffect {
        let fixed = self.flags() & FIXED_FILE != 0;
        match self.operation() {
            10 => self.message(op::READ, fixed),
            9 | 48 => self.message(op::WRITE, fixed),
            // readv, read_fixed, read, recv, read_multishot, recv_zc, readv_fixed
            1 | 4 | 22 | 27 | 49 | 58 | 60 if !fixed => self.through(op::READ),
            // writev, write_fixed, fallocate, write, send, send_zc, writev_fixed
            2 | 5 | 17 | 23 | 26 | 47 | 61 if !fixed => self.through(op::WRITE),
            55 if !fixed => self.through(op::TRUNCATE),
            41 if !fixed => EntryEffect::Descriptor(RecordFields {
                arg: META_ATTR,
                ..self.on_descriptor(op::META)
            }),
            19 if self.file_index() == 0 => self.through(op::CLOSE),
            30 | 33 => self.splice(fixed),
            20 => EntryEffect::Files {
                at: self.address(),
                count: self.length() as u32,
            },
            // IORING_MSG_SEND_FD: what the process of the other ring does with the file is not
            // reported.
            40 if self.address() == 1 => EntryEffect::Opaque(undecoded::RING_SENDS),
            // The driver of the file decides what this does.
            46 | 64 => EntryEffect::Opaque(undecoded::RING_COMMAND),
            n if n >= KNOWN => EntryEffect::Opaque(undecoded::RING_OPERATION),
            _ => self.call().unwrap_or(EntryEffect::Nothing),
        }
    }

    fn on_descriptor(&self, op: u16) -> RecordFields {
        RecordFields {
            fd: self.fd() as i32,
            ..RecordFields::of(op)
        }
    }

    fn through(&self, op: u16) -> EntryEffect {
        EntryEffect::Descriptor(RecordFields {
            result: RecordResult::Predicted(0),
            ..self.on_descriptor(op)
        })
    }

    fn message(&self, op: u16, fixed: bool) -> EntryEffect {
        let fields = RecordFields {
            result: RecordResult::Predicted(0),
            // A socket in the ring's own table has no descriptor number.
            fd: if fixed { -1 } else { self.fd() as i32 },
            ..RecordFields::of(op)
        };
        EntryEffect::Message {
            at: self.address(),
            fields,
        }
    }

    /// `splice` and `tee`. For an end in the ring's table of files, the way it was opened says
    /// enough.
    fn splice(&self, fixed: bool) -> EntryEffect {
        let (from, to) = (self.file_index() as i32, self.fd() as i32);
        let from_fixed = self.operation_flags() as u32 & SPLICE_FIXED != 0;
        let fields = |op, fd, arg| {
            EntryEffect::Descriptor(RecordFields {
                fd,
                arg,
                result: RecordResult::Predicted(0),
                ..RecordFields::of(op)
            })
        };
        match (from_fixed, fixed) {
            (false, false) => fields(op::COPY, from, to),
            (false, true) => fields(op::READ, from, 0),
            (true, false) => fields(op::WRITE, to, 0),
            (true, true) => EntryEffect::Nothing,
        }
    }

    /// The system call that does the same, for operations that name a file.
    fn call(&self) -> Option<EntryEffect> {
        let (fd, address, length) = (self.fd(), self.address(), self.length());
        let (second, flags) = (self.offset(), self.operation_flags());
        let third = self.word::<8>(48);
        let (nr, args) = match self.operation() {
            16 => (libc::SYS_connect, [fd, address, second, 0, 0, 0]),
            18 => (libc::SYS_openat, [fd, address, flags, length, 0, 0]),
            21 => (libc::SYS_statx, [fd, address, flags, length, second, 0]),
            28 => (libc::SYS_openat2, [fd, address, second, length, 0, 0]),
            35 => (libc::SYS_renameat2, [fd, address, length, second, flags, 0]),
            36 => (libc::SYS_unlinkat, [fd, address, flags, 0, 0, 0]),
            37 => (libc::SYS_mkdirat, [fd, address, length, 0, 0, 0]),
            38 => (libc::SYS_symlinkat, [address, fd, second, 0, 0, 0]),
            39 => (libc::SYS_linkat, [fd, address, length, second, flags, 0]),
            42 => (
                libc::SYS_setxattr,
                [third, address, second, length, flags, 0],
            ),
            44 => (libc::SYS_getxattr, [third, address, second, length, 0, 0]),
            56 => (libc::SYS_bind, [fd, address, second, 0, 0, 0]),
            _ => return None,
        };
        Some(EntryEffect::Call { nr, args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(operation: u8, flags: u8, fd: i32) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        (bytes[0], bytes[1]) = (operation, flags);
        bytes[4..8].copy_from_slice(&fd.to_le_bytes());
        bytes
    }

    #[test]
    fn a_rename_has_its_second_directory_and_name_where_the_kernel_takes_them() {
        let mut bytes = entry(35, 0, libc::AT_FDCWD);
        bytes[8..16].copy_from_slice(&0x2222u64.to_le_bytes());
        bytes[16..24].copy_from_slice(&0x1111u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&7u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&2u32.to_le_bytes());
        let EntryEffect::Call { nr, args } = RingEntry::new(bytes).effect() else {
            panic!("not a call");
        };
        assert_eq!(nr, libc::SYS_renameat2);
        assert_eq!(args[0] as i32, libc::AT_FDCWD);
        assert_eq!(args[1..5], [0x1111, 7, 0x2222, 2]);
    }

    #[test]
    fn operations_on_the_rings_own_files_touch_no_descriptor() {
        let plain = RingEntry::new(entry(22, 0, 3)).effect();
        assert!(matches!(plain, EntryEffect::Descriptor(f) if (f.op, f.fd) == (op::READ, 3)));
        let fixed = RingEntry::new(entry(22, FIXED_FILE, 3)).effect();
        assert!(matches!(fixed, EntryEffect::Nothing));
        let mut close = entry(19, 0, 0);
        close[44] = 1;
        assert!(matches!(
            RingEntry::new(close).effect(),
            EntryEffect::Nothing
        ));
    }

    #[test]
    fn a_message_entry_is_decoded_and_a_file_sent_to_another_ring_marks_the_run() {
        for operation in [9, 10, 48] {
            let effect = RingEntry::new(entry(operation, 0, 3)).effect();
            assert!(matches!(effect, EntryEffect::Message { .. }), "{operation}");
        }
        let mut bytes = entry(40, 0, 3);
        assert!(matches!(
            RingEntry::new(bytes).effect(),
            EntryEffect::Nothing
        ));
        bytes[16] = 1;
        assert!(matches!(
            RingEntry::new(bytes).effect(),
            EntryEffect::Opaque(_)
        ));
    }

    #[test]
    fn an_entry_that_makes_contents_durable_waits_for_the_log() {
        let hold = |operation, flags| RingEntry::new(entry(operation, flags, 3)).hold();
        for operation in [3, 8, 35] {
            assert_eq!(hold(operation, 0), EntryHold::Durable, "{operation}");
        }
        assert_eq!(hold(23, 0), EntryHold::Writes(Some(3)));
        assert_eq!(hold(23, FIXED_FILE), EntryHold::Writes(None));
        assert_eq!(hold(22, 0), EntryHold::No);
        let mut write = entry(23, 0, 3);
        write[28] = 2;
        assert_eq!(RingEntry::new(write).hold(), EntryHold::Durable);
    }

    #[test]
    fn an_unknown_operation_is_never_decoded_as_nothing() {
        for operation in KNOWN..=u8::MAX {
            let effect = RingEntry::new(entry(operation, 0, 0)).effect();
            assert!(matches!(effect, EntryEffect::Opaque(_)), "{operation}");
        }
    }
}
