//! Lists the descriptors that a process has open, as `/proc` shows them.
//!
//! Invariant: a list is complete, or says that it is not.
//!
//! Reading the directory costs most: the kernel makes an inode for every name in it. So the numbers
//! that other processes had are tried first. The kernel's count of open descriptors says whether
//! these are all.

use backstory_abi::HOLD_UNKNOWN;
use backstory_sys as sys;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

/// Descriptors that are looked up. The list of a process with more of them is not complete.
const MOST: usize = 1024;
/// Numbers that are tried. Each that is not open costs 2 µs; reading the directory costs 17 µs.
const TRIED: usize = 8;
/// Bytes of `fdinfo` that are read: the first lines, which all kinds of files have.
const FIRST_LINES: usize = 256;

/// A descriptor that carries data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenDescriptor {
    pub(crate) number: i32,
    /// `O_*` flags of the descriptor, or `HOLD_UNKNOWN`.
    pub(crate) flags: u32,
    /// The target of its link in `/proc`.
    pub(crate) target: Vec<u8>,
}

/// Lists descriptors, and remembers what makes the next list cheaper.
#[derive(Debug)]
pub(crate) struct DescriptorLister {
    proc: OwnedFd,
    /// The mount that all pipes are in, if this kernel shows the mount of a descriptor.
    pipes: Option<u64>,
    /// Numbers that processes had lately.
    tried: Mutex<Vec<i32>>,
}

/// What `fdinfo` says of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DescriptorInfo {
    flags: u32,
    /// Mount and inode, if the kernel shows both.
    place: Option<(u64, u64)>,
}

/// The open descriptors by number, each with its `fdinfo`.
type Open = Vec<(i32, Option<DescriptorInfo>)>;

fn name(parts: std::fmt::Arguments<'_>) -> CString {
    CString::new(std::fmt::format(parts)).unwrap_or_default()
}

impl DescriptorLister {
    /// A lister that has listed no process yet.
    ///
    /// # Errors
    /// `/proc` cannot be opened, or no pipe can be made.
    pub(crate) fn new() -> io::Result<DescriptorLister> {
        let proc = sys::openat2(
            libc::AT_FDCWD,
            c"/proc",
            libc::O_PATH | libc::O_DIRECTORY,
            0,
        )?;
        let (read, _write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let info = info(proc.as_raw_fd(), std::process::id(), read.as_raw_fd());
        let pipes = info.and_then(|info| info.place).map(|(mount, _)| mount);
        Ok(DescriptorLister {
            proc,
            pipes,
            tried: Mutex::new(vec![0, 1, 2]),
        })
    }

    /// The descriptors of a thread's process that carry data, by number, and whether these are all.
    /// A descriptor whose flags `kept` rejects is left out.
    pub(crate) fn list(
        &self,
        tid: u32,
        kept: impl Fn(u32) -> bool,
    ) -> io::Result<(Vec<OpenDescriptor>, bool)> {
        let (open, whole) = match self.try_numbers(tid) {
            Some(open) => (open, true),
            None => self.read_directory(tid)?,
        };
        let held = |(number, info): (i32, Option<DescriptorInfo>)| {
            let flags = info.map_or(HOLD_UNKNOWN, |info| info.flags);
            let target = kept(flags)
                .then(|| self.target(tid, number, info))
                .flatten()?;
            // Events, timers and pidfds move no data of files.
            let carries = !target.starts_with(b"anon_inode:");
            carries.then_some(OpenDescriptor {
                number,
                flags,
                target,
            })
        };
        Ok((open.into_iter().filter_map(held).collect(), whole))
    }

    /// All open descriptors, if their numbers are among those that other processes had.
    fn try_numbers(&self, tid: u32) -> Option<Open> {
        // Since Linux 6.2 the size of the directory is the number of its entries.
        let directory = name(format_args!("{tid}/fd"));
        let count = sys::statx(self.proc.as_raw_fd(), &directory, 0)
            .ok()?
            .stx_size as usize;
        let tried = self
            .tried
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if count == 0 || count > tried.len() {
            return None;
        }
        let (mut open, mut missed) = (Vec::with_capacity(count), Vec::new());
        for number in tried {
            let Some(info) = info(self.proc.as_raw_fd(), tid, number) else {
                missed.push(number);
                continue;
            };
            open.push((number, Some(info)));
            if open.len() == count {
                self.try_later(&missed);
                open.sort_unstable_by_key(|(number, _)| *number);
                return Some(open);
            }
        }
        None
    }

    /// Puts these numbers last for the next process: each number that is not open costs a call.
    fn try_later(&self, missed: &[i32]) {
        if !missed.is_empty() {
            let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
            tried.sort_by_key(|number| missed.contains(number)); // stable
        }
    }

    /// The open descriptors, up to [`MOST`].
    fn read_directory(&self, tid: u32) -> io::Result<(Open, bool)> {
        let mut numbers: Vec<i32> = std::fs::read_dir(format!("/proc/{tid}/fd"))?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let whole = numbers.len() <= MOST;
        numbers.truncate(MOST);
        self.remember(&numbers);
        let asked = |number| (number, info(self.proc.as_raw_fd(), tid, number));
        Ok((numbers.into_iter().map(asked).collect(), whole))
    }

    /// Remembers the numbers: the next process is likely to have the same, or those of the process
    /// before.
    fn remember(&self, numbers: &[i32]) {
        if numbers.len() > TRIED {
            return;
        }
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<i32> = numbers
            .iter()
            .copied()
            .filter(|n| !tried.contains(n))
            .collect();
        if tried.len() + new.len() > TRIED {
            tried.clear();
            tried.extend_from_slice(numbers);
        } else {
            tried.extend(new);
        }
    }

    /// The target of a descriptor's link in `/proc`.
    fn target(&self, tid: u32, number: i32, info: Option<DescriptorInfo>) -> Option<Vec<u8>> {
        // The name of a pipe is made of its inode number. Reading the link costs more: an inode in
        // `/proc`, which lives as long as the process.
        if let Some((mount, inode)) = info.and_then(|info| info.place)
            && Some(mount) == self.pipes
        {
            return Some(format!("pipe:[{inode}]").into_bytes());
        }
        let mut buffer = [0; libc::PATH_MAX as usize];
        let link = name(format_args!("{tid}/fd/{number}"));
        let target = sys::readlink(self.proc.as_raw_fd(), &link, &mut buffer).ok()?;
        Some(target.to_vec())
    }
}

/// The `O_*` flags of a descriptor.
pub(crate) fn flags(tid: u32, number: i32) -> Option<u32> {
    let proc = sys::openat2(
        libc::AT_FDCWD,
        c"/proc",
        libc::O_PATH | libc::O_DIRECTORY,
        0,
    )
    .ok()?;
    info(proc.as_raw_fd(), tid, number).map(|info| info.flags)
}

fn info(proc: RawFd, tid: u32, number: i32) -> Option<DescriptorInfo> {
    let file = name(format_args!("{tid}/fdinfo/{number}"));
    let file = sys::openat2(proc, &file, libc::O_RDONLY, 0).ok()?;
    let mut text = [0; FIRST_LINES];
    let length = rustix::io::read(&file, &mut text).ok()?;
    parse(text.get(..length)?)
}

fn parse(text: &[u8]) -> Option<DescriptorInfo> {
    const WORTH: u32 = (libc::O_ACCMODE | libc::O_PATH | libc::O_CLOEXEC) as u32;
    let (mut flags, mut mount, mut inode) = (None, None, None);
    // A line that is cut is skipped.
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.strip_suffix('\n'));
        let Some((what, value)) = line.and_then(|line| line.split_once(':')) else {
            break;
        };
        match (what, value.trim()) {
            ("flags", value) => flags = u32::from_str_radix(value, 8).ok(),
            ("mnt_id", value) => mount = value.parse().ok(),
            ("ino", value) => inode = value.parse().ok(),
            _ => {}
        }
    }
    Some(DescriptorInfo {
        flags: flags? & WORTH,
        place: mount.zip(inode),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStringExt;

    const ALL: fn(u32) -> bool = |_| true;

    #[test]
    fn a_list_shows_each_open_descriptor_and_its_flags() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let file = std::fs::File::open("/etc/passwd").unwrap();
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        let (list, whole) = DescriptorLister::new()
            .unwrap()
            .list(std::process::id(), ALL)
            .unwrap();
        assert!(whole);
        let of = |fd: i32| list.iter().find(|held| held.number == fd);
        let (from, to) = (
            of(read.as_raw_fd()).unwrap(),
            of(write.as_raw_fd()).unwrap(),
        );
        let link = std::fs::read_link(format!("/proc/self/fd/{}", read.as_raw_fd())).unwrap();
        assert!(from.target == link.into_os_string().into_vec() && from.target == to.target);
        assert_eq!(
            (from.flags, to.flags),
            (libc::O_RDONLY as u32, libc::O_WRONLY as u32)
        );
        let file = of(file.as_raw_fd()).unwrap();
        assert_eq!(
            (&file.target[..], file.flags),
            (&b"/etc/passwd"[..], libc::O_CLOEXEC as u32)
        );
        assert!(of(event.as_raw_fd()).is_none());
        assert!(list.windows(2).all(|pair| pair[0].number < pair[1].number));
    }

    /// A process that opens what its script says, and waits.
    fn holder(script: &str) -> std::process::Child {
        use std::io::Read;
        use std::process::{Command, Stdio};
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("{script}; echo; read line")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .unwrap();
        child
    }

    #[test]
    fn a_list_equals_the_directory_whatever_other_processes_had_open() {
        let lister = DescriptorLister::new().unwrap();
        let scripts = [
            "true",
            "exec 7</dev/null",
            "exec 7</dev/null 8>/dev/null",
            "exec 9</dev/null",
            "exec 2>&-",
            "exec 5</etc/passwd",
        ];
        for script in scripts.iter().chain(&scripts) {
            let mut child = holder(script);
            let directory = format!("/proc/{}/fd", child.id());
            let mut expected: Vec<(i32, Vec<u8>)> = std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap())
                .map(|entry| {
                    let number = entry.file_name().to_str().unwrap().parse().unwrap();
                    (
                        number,
                        std::fs::read_link(entry.path())
                            .unwrap()
                            .into_os_string()
                            .into_vec(),
                    )
                })
                .filter(|(_, target)| !target.starts_with(b"anon_inode:"))
                .collect();
            expected.sort_unstable();
            let (list, whole) = lister.list(child.id(), ALL).unwrap();
            let found: Vec<(i32, Vec<u8>)> = list
                .into_iter()
                .map(|held| (held.number, held.target))
                .collect();
            assert_eq!((found, whole), (expected, true), "{script}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn an_fdinfo_file_is_understood_even_where_it_is_cut() {
        let text = b"pos:\t0\nflags:\t02100001\nmnt_id:\t16\nino:\t1780461\nlock:\t1: POSIX";
        let whole = DescriptorInfo {
            flags: (libc::O_WRONLY | libc::O_CLOEXEC) as u32,
            place: Some((16, 1_780_461)),
        };
        assert_eq!(parse(text), Some(whole));
        assert_eq!(
            parse(&text[..46]),
            Some(DescriptorInfo {
                place: None,
                ..whole
            })
        );
        assert_eq!(parse(b"pos:\t0\nfla"), None);
    }
}
