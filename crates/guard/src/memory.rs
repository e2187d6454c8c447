//! Reads the memory of a thread whose call waits for its response.
//!
//! A string that ends just before an unmapped page is read like any other. Nothing that was read
//! may be used before `sys::still_waits` has said that the thread still waits.

use backstory_sys as sys;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Bytes of the longest path that the kernel takes, its NUL included.
pub const PATH_MAX: usize = 4096;
/// Most bytes of one read.
const BLOCK: usize = 4096;

/// Bytes of one window: what is read at once where strings lie near each other.
const WINDOW_SIZE: usize = 8 * 1024;
/// Windows that are remembered: the lists and strings of an `exec` may be in the heap, the stack
/// and the program.
const WINDOWS: usize = 4;

/// Why memory could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The address is not mapped: the kernel will fail the call with `EFAULT`.
    Fault,
    /// The process may not be read.
    Forbidden,
    /// The thread has ended.
    Gone,
}

/// The memory of one thread's process.
pub struct ProcessMemory {
    tid: u32,
    file: Option<File>,
    windows: [ReadWindow; WINDOWS],
    /// The window that is replaced next.
    oldest: usize,
}

/// A piece of memory that was read.
#[derive(Default)]
struct ReadWindow {
    at: u64,
    bytes: Vec<u8>,
}

impl ReadWindow {
    /// The bytes of the window from address `at` on.
    fn from(&self, at: u64) -> Option<&[u8]> {
        let start = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(start..)
    }
}

impl ProcessMemory {
    /// The memory of thread `tid`.
    pub fn of(tid: u32) -> ProcessMemory {
        ProcessMemory {
            tid,
            file: None,
            windows: Default::default(),
            oldest: 0,
        }
    }

    /// Reads at least one byte at `at`, and as many as possible up to the buffer's length. A read
    /// ends at the end of a page.
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> Result<usize, Unreadable> {
        let first = buffer.len().min((PAGE - at % PAGE) as usize);
        let pieces = [
            (at, first),
            (at.wrapping_add(first as u64), buffer.len() - first),
        ];
        match sys::read_memory(self.tid, buffer, &pieces) {
            Ok(0) => Err(Unreadable::Fault),
            Ok(n) => Ok(n),
            Err(e) => match e.raw_os_error() {
                Some(libc::EFAULT) => Err(Unreadable::Fault),
                Some(libc::ESRCH) => Err(Unreadable::Gone),
                _ => self.read_file(at, buffer.get_mut(..first).unwrap_or_default()),
            },
        }
    }

    /// Reads through `/proc/TID/mem`, for where process_vm_readv(2) is forbidden or missing.
    fn read_file(&mut self, at: u64, buffer: &mut [u8]) -> Result<usize, Unreadable> {
        if self.file.is_none() {
            self.file =
                Some(File::open(format!("/proc/{}/mem", self.tid)).map_err(|e| refused(&e))?);
        }
        let file = self.file.as_ref().ok_or(Unreadable::Forbidden)?;
        match file.read_at(buffer, at) {
            Ok(0) => Err(Unreadable::Gone),
            Ok(n) => Ok(n),
            Err(e) if e.raw_os_error() == Some(libc::EIO) => Err(Unreadable::Fault),
            Err(e) => Err(refused(&e)),
        }
    }

    /// Fills the buffer from address `at` on.
    pub fn exact(&mut self, at: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = buffer.get_mut(done..).unwrap_or_default();
            done += self.read(at.wrapping_add(done as u64), rest)?;
        }
        Ok(())
    }

    /// Appends the string at `at`, without its NUL. False: the string is longer than `limit`, and
    /// its first `limit` bytes were appended.
    pub fn string(&mut self, at: u64, limit: usize, out: &mut Vec<u8>) -> Result<bool, Unreadable> {
        let (mut at, start, mut block) = (at, out.len(), [0u8; BLOCK]);
        // Most strings are short. A long one costs a second call.
        let mut ask = 256.min((PAGE - at % PAGE) as usize);
        loop {
            let n = self.read(at, &mut block[..ask])?;
            let piece = &block[..n];
            let end = piece.iter().position(|b| *b == 0);
            out.extend_from_slice(&piece[..end.unwrap_or(n)]);
            if out.len() - start > limit {
                out.truncate(start + limit);
                return Ok(false);
            }
            if end.is_some() {
                return Ok(true);
            }
            at = at.wrapping_add(n as u64);
            ask = BLOCK;
        }
    }

    /// As [`ProcessMemory::string`], for strings that lie near each other: the memory around one is
    /// read with it.
    fn near_string(
        &mut self,
        at: u64,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, Unreadable> {
        let found = self.near(at, |rest| {
            CStr::from_bytes_until_nul(rest).ok().map(CStr::to_bytes)
        });
        match found {
            Some(string) if string.len() <= limit => out.extend_from_slice(string),
            _ => return self.string(at, limit, out),
        }
        Ok(true)
    }

    /// As [`ProcessMemory::exact`], for memory that lies near strings.
    fn near_exact(&mut self, at: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        match self.near(at, |rest| rest.get(..buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return self.exact(at, buffer),
        }
        Ok(())
    }

    /// What `take` finds at `at` in a window, or in a new window that is read there.
    fn near<'a, T>(&'a mut self, at: u64, take: impl Fn(&'a [u8]) -> Option<T>) -> Option<T> {
        let known = |windows: &[ReadWindow]| {
            windows
                .iter()
                .position(|window| window.from(at).is_some_and(|rest| !rest.is_empty()))
        };
        let which = match known(&self.windows) {
            Some(which) => which,
            None => {
                let which = self.oldest;
                self.oldest = (which + 1) % WINDOWS;
                let mut window = std::mem::take(&mut self.windows[which]);
                window.at = at & !(PAGE - 1);
                window.bytes.resize(WINDOW_SIZE, 0);
                // A page is mapped or not as a whole, so what precedes the string in its page can
                // be read if the string can.
                let read = self.read(window.at, &mut window.bytes);
                window.bytes.truncate(read.unwrap_or(0));
                self.windows[which] = window;
                which
            }
        };
        self.windows[which].from(at).and_then(take)
    }

    /// A pointer of the width of `bytes`.
    fn pointer(bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// Reads a null-terminated array of strings (`argv`) as NUL-terminated strings, one after the
    /// other, at most `limit` bytes in all. Returns how many there are, and whether these are all.
    pub fn strings(
        &mut self,
        at: u64,
        width: usize,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(usize, bool), Unreadable> {
        let (mut at, mut count, start, mut block) = (at, 0, out.len(), [0u8; 512]);
        if at == 0 {
            return Ok((0, true));
        }
        loop {
            // The array may end at the end of a page. Bytes beyond its null pointer are ignored.
            let ask = 512.min((PAGE - at % PAGE) as usize).max(width);
            self.near_exact(at, &mut block[..ask / width * width])?;
            for pointer in block[..ask / width * width]
                .chunks_exact(width)
                .map(Self::pointer)
            {
                if pointer == 0 {
                    return Ok((count, true));
                }
                let room = limit.saturating_sub(out.len() - start);
                let whole = self.near_string(pointer, room, out)?;
                out.push(0);
                count += 1;
                if !whole || out.len() - start >= limit {
                    return Ok((count, false));
                }
            }
            at = at.wrapping_add((ask / width * width) as u64);
        }
    }
}

fn refused(e: &io::Error) -> Unreadable {
    match e.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => Unreadable::Gone,
        _ => Unreadable::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> ProcessMemory {
        ProcessMemory::of(sys::gettid())
    }

    /// Two pages, of which the second is not mapped.
    fn edge() -> (rustix::mm::MapFlags, *mut u8) {
        use rustix::mm::{MapFlags, ProtFlags};
        let flags = MapFlags::PRIVATE;
        #[allow(unsafe_code)]
        // SAFETY: a new mapping, and the unmapping of its own second half.
        let at = unsafe {
            let at = rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                8192,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
            .unwrap();
            rustix::mm::munmap(at.byte_add(4096), 4096).unwrap();
            at.cast::<u8>()
        };
        (flags, at)
    }

    #[test]
    fn a_string_at_the_end_of_its_page_is_read() {
        let (_, at) = edge();
        #[allow(unsafe_code)]
        // SAFETY: the first page is mapped and ours.
        unsafe {
            at.add(4092).copy_from(c"end".as_ptr().cast(), 4);
        }
        let mut out = Vec::new();
        assert_eq!(
            here().string(at as u64 + 4092, PATH_MAX, &mut out),
            Ok(true)
        );
        assert_eq!(out, b"end");
        assert_eq!(
            here().string(at as u64 + 4096, PATH_MAX, &mut out),
            Err(Unreadable::Fault)
        );
    }

    #[test]
    fn a_long_string_is_read_over_pages_and_cut_at_the_limit() {
        let text = vec![b'x'; 10_000];
        let mut out = Vec::new();
        assert_eq!(
            here().string(text.as_ptr() as u64, 6_000, &mut out),
            Ok(false)
        );
        assert_eq!(out.len(), 6_000);
        let mut text = vec![b'y'; 9_000];
        text.push(0);
        out.clear();
        assert_eq!(
            here().string(text.as_ptr() as u64, 9_000, &mut out),
            Ok(true)
        );
        assert_eq!(out, text[..9_000]);
    }

    #[test]
    fn an_argument_list_is_read_with_either_pointer_width() {
        let (a, b) = (b"one\0", b"\0");
        let wide = [a.as_ptr() as u64, b.as_ptr() as u64, 0, 0xdead];
        let mut out = Vec::new();
        assert_eq!(
            here().strings(wide.as_ptr() as u64, 8, 1000, &mut out),
            Ok((2, true))
        );
        assert_eq!(out, b"one\0\0");
        assert_eq!(here().strings(0, 8, 1000, &mut out), Ok((0, true)));
    }

    #[test]
    fn an_argument_list_with_strings_far_apart_is_read_whole() {
        const STRINGS: usize = 4 * WINDOWS;
        let text: Vec<u8> = (0..STRINGS * 5 * WINDOW_SIZE)
            .map(|at| b'a' + (at / 100 % 26) as u8)
            .collect();
        // Each string starts some bytes later in its page than the one before. The list has them in
        // this order and in the reverse one.
        let starts = (0..STRINGS).map(|i| i * 5 * WINDOW_SIZE + i * 700);
        let starts: Vec<usize> = starts.clone().chain(starts.rev()).collect();
        let mut memory = text.clone();
        starts.iter().for_each(|start| memory[start + 5_000] = 0);
        let mut list: Vec<u64> = starts
            .iter()
            .map(|start| memory[*start..].as_ptr() as u64)
            .collect();
        list.push(0);
        let mut out = Vec::new();
        assert_eq!(
            here().strings(list.as_ptr() as u64, 8, usize::MAX, &mut out),
            Ok((starts.len(), true))
        );
        let expected = starts
            .iter()
            .flat_map(|start| text[*start..start + 5_000].iter().copied().chain([0]));
        assert!(out == expected.collect::<Vec<u8>>());
    }

    #[test]
    fn memory_is_read_through_proc_where_the_call_fails() {
        let text = b"through the file\0";
        let mut buffer = [0; 16];
        assert_eq!(here().read_file(text.as_ptr() as u64, &mut buffer), Ok(16));
        assert_eq!(&buffer, b"through the file");
    }
}
