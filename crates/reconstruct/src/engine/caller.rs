//! A call that waits for its response, and the memory of its caller.

use backstory_sys as sys;
use libc::{c_long, iovec, seccomp_notif};
use std::io;

/// Most bytes that one call moves.
const MOST_BYTES: usize = 1 << 30;
/// Most buffers of one call (`UIO_MAXIOV`).
const MOST_BUFFERS: u64 = 1024;
const PATH_MAX: usize = 4096;

/// A notified call.
#[derive(Debug, Clone, Copy)]
pub struct NotifiedCall {
    /// The kernel's id of the notification.
    pub id: u64,
    /// The calling thread.
    pub tid: u32,
    /// The number of the system call.
    pub number: c_long,
    /// Its arguments.
    pub args: [u64; 6],
    /// The address behind its instruction.
    pub behind: u64,
}

/// A buffer in the caller's memory: address and length.
pub type Buffer = (u64, usize);

impl From<seccomp_notif> for NotifiedCall {
    fn from(notification: seccomp_notif) -> NotifiedCall {
        NotifiedCall {
            id: notification.id,
            tid: notification.pid,
            number: c_long::from(notification.data.nr),
            args: notification.data.args,
            behind: notification.data.instruction_pointer,
        }
    }
}

fn fault() -> io::Error {
    io::Error::from_raw_os_error(libc::EFAULT)
}

impl NotifiedCall {
    /// An argument that is a descriptor or another `int`.
    pub fn int(&self, index: usize) -> i32 {
        self.args.get(index).copied().unwrap_or(0) as i32
    }

    /// An argument that is a length.
    pub fn length(&self, index: usize) -> usize {
        let length = self.args.get(index).copied().unwrap_or(0);
        usize::try_from(length)
            .unwrap_or(MOST_BYTES)
            .min(MOST_BYTES)
    }

    /// Reads memory.
    pub fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            let from = at.wrapping_add(done as u64);
            let rest = length - done;
            match sys::read_memory(self.tid, &mut bytes[done..], &[(from, rest), (0, 0)])? {
                0 => return Err(fault()),
                n => done += n,
            }
        }
        Ok(bytes)
    }

    /// Writes memory.
    pub fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        match sys::write_memory(self.tid, at, bytes)? {
            n if n == bytes.len() => Ok(()),
            _ => Err(fault()),
        }
    }

    /// The word at an address.
    pub fn word(&self, at: u64) -> io::Result<u64> {
        let bytes = self.bytes(at, 8)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// The `struct timespec` at an address, in ns.
    pub fn duration(&self, at: u64) -> io::Result<i64> {
        let (seconds, ns) = (self.word(at)? as i64, self.word(at + 8)? as i64);
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    }

    /// The `int` at an address.
    pub fn int_at(&self, at: u64) -> io::Result<i32> {
        let bytes = self.bytes(at, 4)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |int| i32::from_le_bytes(*int)))
    }

    /// A path without its NUL.
    pub fn string(&self, at: u64) -> io::Result<Vec<u8>> {
        self.string_within(at, PATH_MAX)
    }

    /// A string of at most so many bytes, without its NUL.
    pub fn string_within(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        const PAGE: u64 = 4096;
        let mut string = Vec::new();
        while string.len() < most {
            let from = at.wrapping_add(string.len() as u64);
            // Memory may end with the page.
            let piece = self.bytes(from, (PAGE - from % PAGE).min(256) as usize)?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                string.extend_from_slice(&piece[..end]);
                return Ok(string);
            }
            string.extend_from_slice(&piece);
        }
        Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    /// An array of buffers.
    pub fn buffers(&self, at: u64, count: u64) -> io::Result<Vec<Buffer>> {
        let count = count.min(MOST_BUFFERS) as usize;
        let bytes = self.bytes(at, count * size_of::<iovec>())?;
        let (pairs, _) = bytes.as_chunks::<16>();
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
        let one = |pair: &[u8; 16]| {
            (
                word(&pair[..8]),
                (word(&pair[8..]) as usize).min(MOST_BYTES),
            )
        };
        Ok(pairs.iter().map(one).collect())
    }

    /// The bytes in these buffers, in order.
    pub fn gather(&self, buffers: &[Buffer]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        for (at, length) in buffers {
            all.extend(self.bytes(*at, *length)?);
        }
        Ok(all)
    }

    /// Distributes bytes over buffers.
    pub fn scatter(&self, buffers: &[Buffer], mut bytes: &[u8]) -> io::Result<()> {
        for (at, length) in buffers {
            let (now, rest) = bytes.split_at(bytes.len().min(*length));
            self.put(*at, now)?;
            bytes = rest;
        }
        Ok(())
    }
}

/// A value that the kernel told the program of a thread at its start (`getauxval`).
pub fn auxiliary_value(tid: u32, kind: u64) -> Option<u64> {
    let bytes = std::fs::read(format!("/proc/{tid}/auxv")).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let mut pairs = words.chunks_exact(2).map(|pair| {
        let word = |at: usize| u64::from_le_bytes(pair[at]);
        (word(0), word(1))
    });
    pairs
        .find(|(found, _)| *found == kind)
        .map(|(_, value)| value)
}

/// Number of bytes that buffers hold.
pub fn room(buffers: &[Buffer]) -> usize {
    let sum = buffers.iter().map(|(_, length)| length);
    sum.fold(0, |sum: usize, length| sum.saturating_add(*length))
        .min(MOST_BYTES)
}
