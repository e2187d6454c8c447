//! Calls that ask the kernel for something: they get the recorded result.

use super::allocator::is_allocators;
use super::named::NamedFile;
use super::native::{STAT, STATX, StatusLayout, absolute_path, status_bytes};
use super::native::{is_missing, is_only_recorded};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::{CallObject, OF_DESCRIPTOR, RecordedResult, ResultKey};
use crate::recorded::{detail, family};
use crate::resource::{ResourceId, is_kernels};
use libc::*;
use rustix::fs::Stat;
use std::io;
use std::os::unix::ffi::OsStringExt;

/// The request for a terminal's settings (`ioctl_tty(2)`). Its type in `libc` depends on the C
/// library.
const TCGETS: u64 = 0x5401;
/// The requests that set them: now, after output, and after output without further input.
const TCSETS: std::ops::RangeInclusive<u64> = 0x5402..=0x5404;
/// The requests about a descriptor itself: whether it does not block (`FIONBIO`), stays open in
/// another program (`FIONCLEX`), or is closed there (`FIOCLEX`).
const ABOUT_DESCRIPTOR: [u64; 3] = [0x5421, 0x5450, 0x5451];
/// The request for the addresses of all network interfaces (netdevice(7)).
const SIOCGIFCONF: u64 = 0x8912;
/// Bytes of a `struct ifreq`.
const INTERFACE: usize = 40;
/// Device number of a pseudoterminal.
const TERMINAL: u64 = 136 << 8;
/// Bytes of the kernel's `struct termios`.
const TERMIOS: usize = 36;

impl Supervisor {
    pub(super) fn ask(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        match call.number {
            SYS_getrandom => self.random(call, index),
            SYS_stat | SYS_lstat | SYS_access | SYS_readlink => {
                let path = call.string(call.args[0])?;
                self.about_path(call, index, path)
            }
            // The root is another file system than that of the recorded file.
            SYS_statfs => {
                let path = call.string(call.args[0])?;
                let result = self.recorded(call, index, CallObject::Path(path));
                self.reply(call, result)
            }
            SYS_newfstatat | SYS_statx | SYS_faccessat | SYS_faccessat2 | SYS_readlinkat => {
                let path = match call.args[1] {
                    0 => Vec::new(),
                    at => call.string(at)?,
                };
                match path.is_empty() {
                    true => self.about_descriptor(call, index),
                    false => self.about_path(call, index, path),
                }
            }
            // The stand-in must be as the recorded descriptor was.
            SYS_ioctl if ABOUT_DESCRIPTOR.contains(&call.args[1]) => Ok(Response::Continue),
            // The name of a socket is a file of the root, about which the program may ask.
            SYS_bind if self.binds_a_file(call)? => Ok(Response::Continue),
            SYS_fstat | SYS_getdents64 | SYS_ioctl | SYS_lseek | SYS_bind | SYS_listen
            | SYS_shutdown | SYS_getsockname | SYS_getpeername | SYS_setsockopt
            | SYS_getsockopt => self.about_descriptor(call, index),
            SYS_getpid | SYS_getppid | SYS_uname | SYS_sysinfo | SYS_getrusage | SYS_times
            | SYS_clock_gettime => {
                let result = self.recorded(call, index, CallObject::Process);
                self.reply(call, result)
            }
            _ => Ok(Response::Continue),
        }
    }

    fn random(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        if is_allocators(call) {
            return Ok(Response::Continue);
        }
        match self.matchers[index].random(call.length(1), call.args[2]) {
            Some(bytes) => {
                call.put(call.args[0], &bytes)?;
                Ok(Response::Value(bytes.len() as i64))
            }
            None => Ok(Response::Continue),
        }
    }

    /// True for a socket of `AF_UNIX` that gets a path, where the recorded one did, too.
    fn binds_a_file(&mut self, call: &NotifiedCall) -> io::Result<bool> {
        const PATH_AT: usize = 2;
        let address = call.bytes(call.args[1], call.length(2).min(128))?;
        let family = address.first_chunk().map(|two| u16::from_ne_bytes(*two));
        let has_path = address.get(PATH_AT).is_some_and(|first| *first != 0);
        Ok(family.map(i32::from) == Some(AF_UNIX) && has_path)
    }

    /// Files of the root answer for themselves, so that all that is known of one file agrees. The
    /// text of a link has nothing to agree with.
    fn about_path(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        path: Vec<u8>,
    ) -> io::Result<Response> {
        let is_link = matches!(call.number, SYS_readlink | SYS_readlinkat);
        if !is_access(call.number) && !is_link {
            let results = &self.matchers[index].rest.results;
            let through = self.file_through(call, index, &path, |path| {
                results.contains_key(&key(call, CallObject::Path(path.to_vec())))
            });
            let direct = || (!is_kernels(&path)).then(|| NamedFile::new(call, &path));
            if let Some(file) = through.or_else(direct) {
                return self.status_of_file(call, index, file);
            }
        } else if !is_kernels(&path) && !is_link {
            return self.access(call, index, path);
        }
        let result = self.recorded(call, index, CallObject::Path(path));
        self.reply(call, result)
    }

    fn about_descriptor(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Some(ends) = self.ends(call) else {
            return match call.number {
                SYS_getdents64 => self.list(call, index),
                _ => self.status_of_descriptor(call, index),
            };
        };
        let mut result = None;
        for id in [ends.read, ends.write] {
            result = result.or_else(|| self.recorded(call, index, CallObject::Resource(id)));
        }
        match (result, call.number) {
            (Some(result), _) => self.reply(call, Some(result)),
            (None, SYS_bind | SYS_listen | SYS_shutdown | SYS_setsockopt) => Ok(Response::Value(0)),
            (None, SYS_fstat) => self.status(call, ends.read, call.args[1]),
            (None, SYS_newfstatat) => self.status(call, ends.read, call.args[2]),
            (None, SYS_ioctl) => self.control(call, ends.read),
            (None, SYS_lseek) if self.resources[ends.read].kind != S_IFREG => {
                Ok(Response::Errno(ESPIPE))
            }
            _ => Ok(Response::Continue),
        }
    }

    /// A file of the root: its numbers are those that were recorded, if it is still like that. A
    /// program may print them, as in the `ETag` of a web server.
    fn status_of_file(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        file: NamedFile,
    ) -> io::Result<Response> {
        let (layout, follows) = match call.number {
            SYS_stat => (&STAT, true),
            SYS_lstat => (&STAT, false),
            SYS_newfstatat => (&STAT, call.int(3) & AT_SYMLINK_NOFOLLOW == 0),
            SYS_statx => (&STATX, call.int(2) & AT_SYMLINK_NOFOLLOW == 0),
            _ => return Ok(Response::Continue),
        };
        let key = key(call, CallObject::Path(file.recorded));
        let native = match self.native_status(call, file.directory, &file.path, follows) {
            Ok(native) => native,
            Err(error) => return self.status_of_none(call, index, &key, &error),
        };
        if !has_one_file(&key)
            && let Some(path) = absolute_path(call, (file.directory, &file.path), follows)
        {
            self.expect_ident(call, index, path, (layout, &native));
        }
        self.reply_if_alike(call, index, &key, (layout, native))
    }

    /// A file that the root does not have. Its look-up fails, with this error of the kernel or with
    /// the recorded one.
    fn status_of_none(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        key: &ResultKey,
        error: &io::Error,
    ) -> io::Result<Response> {
        let results = self.matchers[index].rest.results.get(key);
        let mut results = results.into_iter().flat_map(|results| results.iter());
        let is_recorded = results.any(|(result, _)| result.value != 0);
        if !is_recorded && self.looks_too_early(call, index) {
            return Ok(Response::Park);
        }
        let recorded = self.recorded_status(index, key, false);
        let failed =
            recorded.filter(|result| is_only_recorded(-result.value as i32, || is_missing(error)));
        self.reply(call, failed)
    }

    /// Whether a process may use a file. Here it may use all files, so the record answers, if it
    /// agrees with the root about whether the file is there.
    fn access(&mut self, call: &NotifiedCall, index: usize, path: Vec<u8>) -> io::Result<Response> {
        let directory = match call.number {
            SYS_access => AT_FDCWD,
            _ => call.int(0),
        };
        let native = self.native_status(call, directory, &path, true);
        let exists = native.is_ok();
        let result = self.recorded(call, index, CallObject::Path(path));
        if result.is_none() && !exists && self.looks_too_early(call, index) {
            return Ok(Response::Park);
        }
        let absent = [-i64::from(ENOENT), -i64::from(ENOTDIR)];
        let same = result.filter(|result| {
            exists != absent.contains(&result.value)
                || is_only_recorded(-result.value as i32, || {
                    native.as_ref().is_err_and(is_missing)
                })
        });
        self.reply(call, same)
    }

    /// The recorded result, if it describes a file of the same mode and size as is there now.
    ///
    /// Otherwise the result is that of the file, but for its identity. A program may ask again and
    /// compare: SQLite looks whether its database was moved. So a file keeps the identity that the
    /// first recorded result about its absolute path has.
    fn reply_if_alike(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        key: &ResultKey,
        (layout, native): (&StatusLayout, Stat),
    ) -> io::Result<Response> {
        let is_sure = has_one_file(key);
        let result = self.recorded_status(index, key, true);
        if result.as_ref().is_some_and(|result| result.value < 0) {
            return self.reply(call, result);
        }
        let bytes = result.as_ref().and_then(|result| result.entered.first());
        let (mode, size) = (native.st_mode, native.st_size);
        let bytes = bytes.filter(|bytes| match is_sure {
            true => layout.is_kind(bytes, mode),
            false => layout.describes(bytes, mode, size),
        });
        let own = (native.st_dev, native.st_ino);
        if let Some(bytes) = bytes.filter(|_| is_sure)
            && let Some(ident) = layout.ident(bytes)
        {
            self.idents.entry(own).or_insert(ident);
        }
        let ident = match self.idents.get(&own) {
            Some(ident) => *ident,
            None if bytes.is_some() => own,
            None => return Ok(Response::Continue),
        };
        let mut shown = match bytes {
            Some(bytes) if layout.describes(bytes, mode, size) => bytes.clone(),
            _ if layout.is_extended() => return Ok(Response::Continue),
            _ => status_bytes(&native),
        };
        layout.put_ident(&mut shown, ident);
        let shown = RecordedResult {
            value: 0,
            entered: vec![shown],
        };
        self.reply(call, Some(shown))
    }

    /// The same for a descriptor. A file of which the record has no status by a descriptor gets the
    /// identity of the next one by its path.
    fn status_of_descriptor(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let asks = matches!(call.number, SYS_fstat | SYS_newfstatat | SYS_statx);
        let link = std::fs::read_link(format!("/proc/{}/fd/{}", call.tid, call.int(0)));
        let Some(path) = link.ok().filter(|_| asks) else {
            return Ok(Response::Continue);
        };
        let path = path.into_os_string().into_vec();
        let layout = if call.number == SYS_statx {
            &STATX
        } else {
            &STAT
        };
        let Ok(native) = self.native_status(call, call.int(0), b"", true) else {
            return Ok(Response::Continue);
        };
        let key = ResultKey {
            detail: OF_DESCRIPTOR,
            ..key(call, CallObject::Path(path.clone()))
        };
        if !self.matchers[index].rest.results.contains_key(&key) {
            self.expect_ident(call, index, path, (layout, &native));
        }
        self.reply_if_alike(call, index, &key, (layout, native))
    }

    /// Gives a file without an identity that of the next recorded status under its absolute path:
    /// by its descriptor, or by the path. So a relative name, the descriptor and the path agree.
    fn expect_ident(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        path: Vec<u8>,
        (layout, native): (&StatusLayout, &Stat),
    ) {
        let own = (native.st_dev, native.st_ino);
        let by_path = key(call, CallObject::Path(path));
        if self.idents.contains_key(&own) || !has_one_file(&by_path) {
            return;
        }
        let by_descriptor = ResultKey {
            detail: OF_DESCRIPTOR,
            ..by_path.clone()
        };
        let kind = (layout, native.st_mode);
        let next = self.next_ident(index, &by_descriptor, kind);
        if let Some(ident) = next.or_else(|| self.next_ident(index, &by_path, kind)) {
            self.idents.insert(own, ident);
        }
    }

    /// The identity in the next recorded status of this kind of file. No result is taken.
    fn next_ident(
        &self,
        index: usize,
        key: &ResultKey,
        (layout, mode): (&StatusLayout, u32),
    ) -> Option<(u64, u64)> {
        let mut results = self.matchers[index].rest.results.get(key)?.iter();
        let (next, _) = results.find(|(result, _)| result.value == 0)?;
        let bytes = next.entered.first()?;
        layout.ident(bytes).filter(|_| layout.is_kind(bytes, mode))
    }

    pub(super) fn recorded(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        object: CallObject,
    ) -> Option<RecordedResult> {
        self.matchers[index].result(&key(call, object))
    }

    /// The next recorded status of a file that is there, or not there. Results of the other kind
    /// before it are of a time that the new execution has left. A process that could not search a
    /// directory (`EACCES`) learned neither.
    fn recorded_status(
        &mut self,
        index: usize,
        key: &ResultKey,
        is_there: bool,
    ) -> Option<RecordedResult> {
        let agrees = |result: &RecordedResult| {
            result.value == -i64::from(EACCES) || (result.value == 0) == is_there
        };
        let matcher = &mut self.matchers[index];
        matcher.leave_out(key, |result| !agrees(result));
        matcher.result(key).filter(agrees)
    }

    /// Writes what the kernel wrote, and returns what it returned.
    fn reply(&self, call: &NotifiedCall, result: Option<RecordedResult>) -> io::Result<Response> {
        let Some(result) = result else {
            return Ok(Response::Continue);
        };
        if result.value < 0 {
            return Ok(Response::Errno(-result.value as i32));
        }
        if let (SYS_ioctl, SIOCGIFCONF, [_, list]) =
            (call.number, call.args[1], &result.entered[..])
        {
            put_interfaces(call, list)?;
            return Ok(Response::Value(result.value));
        }
        // An option may have no bytes, as that of IP in a usual connection.
        let none = Vec::new();
        let empty = (call.number == SYS_getsockopt).then_some(&none);
        if let Some(bytes) = result.entered.first().or(empty) {
            match call.number {
                SYS_getsockname | SYS_getpeername => {
                    self.put_address(call, call.args[1], call.args[2], bytes)?;
                }
                SYS_getsockopt => self.put_address(call, call.args[3], call.args[4], bytes)?,
                number => {
                    let room = match number {
                        SYS_readlink => call.length(2),
                        SYS_readlinkat => call.length(3),
                        SYS_getdents64 => call.length(2),
                        _ => bytes.len(),
                    };
                    if bytes.len() > room {
                        return Ok(Response::Errno(EINVAL));
                    }
                    call.put(call.args[filled(number)], bytes)?;
                }
            }
        }
        Ok(Response::Value(result.value))
    }

    /// A status for a stand-in: its kind is that of the resource.
    fn status(&self, call: &NotifiedCall, id: ResourceId, at: u64) -> io::Result<Response> {
        let resource = &self.resources[id];
        let found = rustix::fs::stat(format!("/proc/{}/fd/{}", call.tid, call.int(0)))?;
        let (device, inode) = resource.ident.unwrap_or((found.st_dev, found.st_ino));
        let kind = if resource.kind == 0 {
            S_IFIFO
        } else {
            resource.kind
        };
        let number = if kind == S_IFCHR { TERMINAL } else { 0 };
        let mut bytes = [0u8; 144];
        bytes[0..8].copy_from_slice(&device.to_le_bytes());
        bytes[8..16].copy_from_slice(&inode.to_le_bytes());
        bytes[16..24].copy_from_slice(&1u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&(kind | 0o600).to_le_bytes());
        bytes[28..32].copy_from_slice(&found.st_uid.to_le_bytes());
        bytes[32..36].copy_from_slice(&found.st_gid.to_le_bytes());
        bytes[40..48].copy_from_slice(&number.to_le_bytes());
        bytes[56..64].copy_from_slice(&4096u64.to_le_bytes());
        call.put(at, &bytes)?;
        Ok(Response::Value(0))
    }

    /// An `ioctl` that was not recorded.
    fn control(&self, call: &NotifiedCall, id: ResourceId) -> io::Result<Response> {
        let resource = &self.resources[id];
        let terminal = ["/dev/pts/", "/dev/tty", "/dev/console"];
        let is_terminal = resource.kind == S_IFCHR
            && terminal
                .iter()
                .any(|name| resource.name.starts_with(name.as_bytes()));
        match (call.args[1], is_terminal) {
            (TCGETS, true) => {
                call.put(call.args[2], &[0; TERMIOS])?;
                Ok(Response::Value(0))
            }
            (TCGETS, false) => Ok(Response::Errno(ENOTTY)),
            // libc makes the request inside itself, so the record lacks it.
            (request, true) if TCSETS.contains(&request) => Ok(Response::Value(0)),
            _ => Ok(Response::Continue),
        }
    }
}

/// Writes the addresses of network interfaces into a `struct ifconf`: as many as the list there has
/// room for. Without a list, the program asks for the length.
fn put_interfaces(call: &NotifiedCall, list: &[u8]) -> io::Result<()> {
    let all = call.args[2];
    let length = match call.word(all + 8)? {
        0 => list.len(),
        at => {
            let room = call.int_at(all)?.max(0) as usize;
            let fits = list.len().min(room) / INTERFACE * INTERFACE;
            call.put(at, &list[..fits])?;
            fits
        }
    };
    call.put(all, &(length as u32).to_le_bytes())
}

/// True for results about one file. A relative path may be that of another file: in another
/// directory. So may one through a descriptor of the process.
fn has_one_file(key: &ResultKey) -> bool {
    matches!(&key.object, CallObject::Path(path) if path.starts_with(b"/") && !is_kernels(path))
}

/// The key of the recorded results of a call.
pub(super) fn key(call: &NotifiedCall, object: CallObject) -> ResultKey {
    let number = call.number as u16;
    let (a, b) = match call.number {
        SYS_clock_gettime | SYS_getrusage | SYS_getpgid | SYS_getsid => (call.args[0], 0),
        SYS_setpgid => (call.args[0], call.args[1]),
        SYS_newfstatat => (call.args[3], 0),
        SYS_faccessat | SYS_faccessat2 => (call.args[2], 0),
        _ => (call.args[1], call.args[2]),
    };
    ResultKey {
        call: family(number),
        object,
        detail: detail(number, a, b),
    }
}

fn is_access(number: c_long) -> bool {
    matches!(number, SYS_access | SYS_faccessat | SYS_faccessat2)
}

/// The number of the argument that the kernel fills.
fn filled(number: c_long) -> usize {
    match number {
        SYS_uname | SYS_sysinfo | SYS_times => 0,
        SYS_newfstatat | SYS_readlinkat | SYS_ioctl => 2,
        SYS_statx => 4,
        _ => 1,
    }
}
