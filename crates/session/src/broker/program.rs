//! The program that the broker executes, with all that it would have inherited from the client.
//!
//! In: a client that waits. Out: a process in this process's group.

use crate::drain::privileges::privilege;
use backstory_abi::{ENV_ARENA, ENV_PRELOAD, ENV_PROGRAM, PRELOAD_NAME};
use backstory_sys::{self as sys, Likeness, Pid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often a child that has not executed the program yet is looked at.
const WATCH: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// Descriptors by their number in the program.
pub(super) type ProgramFiles = Vec<(RawFd, OwnedFd)>;

/// A program to be started.
pub(super) struct Program {
    path: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
    likeness: Likeness,
    umask: Mode,
    /// Signals that are blocked and ignored, as bits.
    blocked: u64,
    ignored: u64,
}

impl Program {
    /// Reads from `/proc` what the program of a client inherits. Enters the client's directory.
    ///
    /// # Errors
    /// Something cannot be read, or the program gives no privilege.
    pub(super) fn of_client(pid: u32, mask: u64) -> io::Result<Program> {
        let mut environment = strings(pid, "environ")?.into_iter();
        let named = environment.next().and_then(|first| program_path(&first));
        let path = named.ok_or(io::ErrorKind::InvalidData)?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let value = |name: &str, base| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| u64::from_str_radix(text.trim(), base).ok())
                .ok_or(io::ErrorKind::InvalidData)
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, format!("/proc/{pid}/cwd"), flags, Mode::empty())?;
        rustix::process::fchdir(&directory)?;
        if privilege(Path::new(OsStr::from_bytes(path.to_bytes()))).is_none() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Program {
            path,
            argv: strings(pid, "cmdline")?,
            environment: environment
                .filter_map(|entry| own_variable(&entry))
                .collect(),
            likeness: Likeness::of(pid)?,
            umask: Mode::from_raw_mode(value("Umask:", 8)? as u32),
            blocked: mask,
            ignored: value("SigIgn:", 16)?,
        })
    }

    /// Starts the program in a child of this process, which must block all signals. Returns once
    /// it runs.
    ///
    /// `signals` returns, as bits, the signals that the program should have got. It is called once
    /// the child is in the process group, which still blocks all signals. From then on, each signal
    /// to the group reaches the child. If one of these is in the set, too, the kernel keeps one.
    ///
    /// # Errors
    /// It could not be executed, or not as the client would have.
    pub(super) fn start(
        &self,
        files: ProgramFiles,
        signals: impl FnOnce() -> u64,
    ) -> io::Result<Pid> {
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (waits, go) = pipe_with(PipeFlags::CLOEXEC)?;
        match sys::fork()? {
            0 => {
                drop((ended, go));
                // The end of the pipe.
                let _ = rustix::io::read(&waits, &mut [0; 1]);
                drop(waits);
                let _ = self.become_it(files, end);
                sys::exit_now(127)
            }
            pid => {
                drop((end, files, waits));
                let signals = signals();
                for signal in (1..=64).filter(|signal| signals & 1 << (signal - 1) != 0) {
                    let _ = sys::kill(pid, signal);
                }
                drop(go);
                // A directory that this process kept busy could not be unmounted.
                let _ = rustix::process::chdir("/");
                let stopped = continue_until_executed(pid, &ended);
                let mut errno = [0; 4];
                match rustix::io::read(&ended, &mut errno) {
                    Ok(0) => {
                        if let Some(signal) = stopped {
                            let _ = sys::kill(pid, signal);
                        }
                        Ok(pid)
                    }
                    _ => {
                        sys::wait_for(pid);
                        Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
                    }
                }
            }
        }
    }

    /// Executes the program. Returns only if that fails, after writing the errno to `end`.
    fn become_it(&self, files: ProgramFiles, end: OwnedFd) -> io::Result<()> {
        // Above the numbers of all descriptors of the program.
        let above = files.iter().map(|(number, _)| number + 1).max();
        let above = above.unwrap_or(0).max(3);
        let end = rustix::io::fcntl_dupfd_cloexec(&end, above)?;
        let addresses = |list: &[CString]| {
            let list = list.iter().map(|one| one.as_ptr());
            list.chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        let (argv, envp) = (addresses(&self.argv), addresses(&self.environment));
        let prepared = place(files, above).and_then(|()| self.take_over());
        let error = match prepared {
            Ok(()) => sys::exec_with(&self.path, &argv, &envp),
            Err(error) => error,
        };
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        rustix::io::write(&end, &errno.to_ne_bytes())?;
        Ok(())
    }

    /// Gives the client's attributes to this process.
    fn take_over(&self) -> io::Result<()> {
        rustix::process::umask(self.umask);
        for signal in (1..=64).filter(|s| ![libc::SIGKILL, libc::SIGSTOP].contains(s)) {
            let ignored = self.ignored & 1 << (signal - 1) != 0;
            let handler = if ignored {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            sys::set_disposition(signal, handler);
        }
        self.likeness.apply()?;
        sys::set_blocked(self.blocked);
        Ok(())
    }
}

/// Waits until the child has executed the program, or has failed. A signal such as that of Ctrl-Z
/// may stop it before, when its parent does not watch it yet: it is continued. Returns this signal,
/// which the program should have got.
fn continue_until_executed(pid: Pid, ended: &OwnedFd) -> Option<i32> {
    let mut stopped = None;
    loop {
        let mut fds = [PollFd::new(ended, PollFlags::IN)];
        if poll(&mut fds, Some(&WATCH)).is_ok_and(|ready| ready > 0) {
            return stopped;
        }
        if let Ok(Some(change)) = sys::child_change(Some(pid), libc::WSTOPPED) {
            stopped = Some(change.status);
            let _ = sys::kill(pid, libc::SIGCONT);
        }
    }
}

/// Moves the descriptors to their numbers. All others are closed when the program is executed.
fn place(files: ProgramFiles, above: RawFd) -> io::Result<()> {
    let mut moved = Vec::with_capacity(files.len());
    for (number, file) in files {
        moved.push((number, rustix::io::fcntl_dupfd_cloexec(&file, above)?));
    }
    for (number, file) in &moved {
        sys::copy_descriptor(file.as_fd(), *number)?;
    }
    for standard in 0..3 {
        if moved.iter().all(|(number, _)| *number != standard) {
            sys::close(standard);
        }
    }
    Ok(())
}

/// The strings of a file of `/proc/PID`.
fn strings(pid: u32, file: &str) -> io::Result<Vec<CString>> {
    let bytes = std::fs::read(format!("/proc/{pid}/{file}"))?;
    let mut rest = &bytes[..];
    let mut all = Vec::new();
    while let Ok(next) = CStr::from_bytes_until_nul(rest) {
        rest = &rest[next.to_bytes_with_nul().len()..];
        all.push(next.to_owned());
    }
    Ok(all)
}

/// The path in the client's own variable.
fn program_path(variable: &CStr) -> Option<CString> {
    let path = variable.to_bytes().strip_prefix(ENV_PROGRAM.as_bytes())?;
    CString::new(path.strip_prefix(b"=")?).ok()
}

/// A variable as the user has it: without the recorder's entry. `None` if it is the recorder's.
fn own_variable(variable: &CStr) -> Option<CString> {
    let bytes = variable.to_bytes();
    let value = |name: &str| bytes.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    if value(ENV_ARENA).is_some() {
        return None;
    }
    let Some(preloaded) = value(ENV_PRELOAD) else {
        return Some(variable.to_owned());
    };
    let entry = preloaded.rsplit(|byte| *byte == b':').next().unwrap_or(&[]);
    let file = entry.rsplit(|byte| *byte == b'/').next();
    if file != Some(PRELOAD_NAME.as_bytes()) {
        return Some(variable.to_owned());
    }
    // A colon before the entry says that the user had set the variable, perhaps to nothing.
    let users = bytes.len() - entry.len();
    let users = bytes[..users].strip_suffix(b":")?;
    CString::new(users).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_users_variables_without_the_recorders() {
        let own = |text: &str| {
            let kept = own_variable(&CString::new(text).unwrap());
            kept.map(|one| one.into_string().unwrap())
        };
        let same = |text: &str| assert_eq!(own(text).as_deref(), Some(text));
        same("PATH=/bin");
        same("LD_PRELOAD=/usr/lib/mine.so");
        same("LD_PRELOAD=");
        same("BACKSTORY_ARENA_SIZE=1");
        assert_eq!(own("BACKSTORY_ARENA=/dev/shm/x"), None);
        let entry = format!("/store/lib/1/$LIB/{PRELOAD_NAME}");
        assert_eq!(own(&format!("LD_PRELOAD={entry}")), None);
        let both = format!("LD_PRELOAD=/mine.so:{entry}");
        assert_eq!(own(&both).as_deref(), Some("LD_PRELOAD=/mine.so"));
        let empty = format!("LD_PRELOAD=:{entry}");
        assert_eq!(own(&empty).as_deref(), Some("LD_PRELOAD="));
    }

    #[test]
    fn the_client_names_the_program_by_its_variable() {
        let named = |text: &str| program_path(&CString::new(text).unwrap());
        assert_eq!(
            named("BACKSTORY_PROGRAM=/bin/su").as_deref(),
            Some(c"/bin/su")
        );
        assert_eq!(named("PATH=/bin/su"), None);
    }
}
