//! The first frame of a log: facts known before the command starts, read as cheaply as possible.

use crate::redact::Secrets;
use crate::{Options, clock, job_rank};
use backstory_eventlog::run::{Machine, Modes, RunHeader};
use backstory_files::Ident;
use backstory_vocabulary::DurabilityMode;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A descriptor that the command inherits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inherited {
    pub fd: RawFd,
    /// The target of its link in `/proc/self/fd`.
    pub target: Vec<u8>,
    /// Its access mode: `O_ACCMODE` of its flags, or -1 if unknown.
    pub access: i32,
    /// The regular file behind it.
    pub file: Option<Ident>,
}

/// Builds the header of a run.
pub(crate) fn header(
    options: &Options,
    environment: &[Vec<u8>],
    descriptors: &[Inherited],
    arena: Option<&Path>,
) -> RunHeader {
    let (started, since_boot) = clock::both();
    let secrets = Secrets::new(&options.redact);
    let command: Vec<Vec<u8>> = options
        .command
        .iter()
        .map(|w| w.as_bytes().to_vec())
        .collect();
    RunHeader {
        id: options.id.clone(),
        name: options.name.clone(),
        repeats: options.repeats.clone(),
        source: None,
        database: options.database.clone(),
        imported: None,
        line: None,
        ssh_connection: options.ssh_connection.clone(),
        job_rank: job_rank::own(environment),
        command: secrets.command(&command),
        environment: secrets.environment(environment),
        cwd: std::env::current_dir().map_or(Vec::new(), |d| d.into_os_string().into_vec()),
        descriptors: descriptors
            .iter()
            .map(|d| (d.fd, d.target.clone()))
            .collect(),
        descriptor_flags: descriptors.iter().map(|d| d.access).collect(),
        descriptor_files: descriptors.iter().map(|d| d.file).collect(),
        launcher_pid: std::process::id(),
        boot_id: backstory_sys::clock::boot_id(),
        machine: machine(),
        uid: rustix::process::geteuid().as_raw(),
        modes: modes(options),
        started,
        since_boot,
        arena: arena.map(|p| p.to_string_lossy().into_owned()),
        version: options.version.clone(),
    }
}

fn modes(options: &Options) -> Modes {
    Modes {
        guard: Some(options.guard),
        lookups: Some(options.lookups),
        io_uring: Some(options.io_uring),
        suppress: Some(options.suppress),
        contents: Some(options.contents),
        self_contained: options.self_contained,
        durability: (options.durability != DurabilityMode::After).then_some(options.durability),
        deep: options.deep,
        rows: options.rows,
        byte_engine: options.simulator.is_some(),
        fixed_addresses: options.fixed_addresses,
    }
}

fn machine() -> Machine {
    let uname = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    Machine {
        kernel: format!(
            "{} {} {}",
            text(uname.sysname()),
            text(uname.release()),
            text(uname.machine())
        ),
        distribution: distribution(),
        host: text(uname.nodename()),
        cpu: cpu(),
    }
}

fn distribution() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("").trim_matches('"').to_owned()
}

/// The model of the first processor. Only the beginning of the file is read. The kernel makes the
/// text while it is read, which takes long on machines with many processors.
fn cpu() -> String {
    use std::io::Read;
    let mut start = Vec::with_capacity(1024);
    if let Ok(file) = fs::File::open("/proc/cpuinfo") {
        // After a failure the model stays empty, which means unknown.
        let _ = file.take(1024).read_to_end(&mut start);
    }
    let start = String::from_utf8_lossy(&start);
    let model = start.lines().find_map(|line| {
        line.strip_prefix("model name")
            .or(line.strip_prefix("CPU part"))
    });
    model
        .and_then(|m| m.split_once(':'))
        .map_or(String::new(), |(_, m)| m.trim().to_owned())
}

/// The descriptors that an `execve` would pass on now.
pub(crate) fn inherited() -> Vec<Inherited> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return found;
    };
    for entry in entries.flatten() {
        let Some(fd) = number(&entry.file_name()) else {
            continue;
        };
        if handed_on(fd) {
            let target =
                fs::read_link(entry.path()).map_or(Vec::new(), |t| t.into_os_string().into_vec());
            found.push(Inherited {
                fd,
                file: file(&entry.path(), &target),
                target,
                access: access(fd),
            });
        }
    }
    found.sort_unstable();
    found
}

/// The regular files that these names lead to now.
pub(crate) fn files_now(names: &[Vec<u8>]) -> Vec<Option<Ident>> {
    names
        .iter()
        .map(|name| file(Path::new(OsStr::from_bytes(name)), name))
        .collect()
}

/// The file that `at` leads to, if `target`, its name in `/proc`, can be a file.
pub(crate) fn file(at: &Path, target: &[u8]) -> Option<Ident> {
    use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
    if !target.starts_with(b"/") {
        return None;
    }
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = Ident::from(&statx(CWD, at, AtFlags::NO_AUTOMOUNT, wanted).ok()?);
    (FileType::from_raw_mode(found.mode) == FileType::RegularFile).then_some(found)
}

fn number(name: &OsStr) -> Option<RawFd> {
    name.to_str()?.parse().ok()
}

#[allow(unsafe_code)]
fn handed_on(fd: RawFd) -> bool {
    // SAFETY: no pointers. A descriptor that is not open gives an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

#[allow(unsafe_code)]
fn access(fd: RawFd) -> i32 {
    // SAFETY: no pointers. A descriptor that is not open gives an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        -1
    } else {
        flags & libc::O_ACCMODE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn an_inherited_descriptor_says_how_it_is_open() {
        let null = fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .unwrap();
        rustix::io::fcntl_setfd(&null, rustix::io::FdFlags::empty()).unwrap();
        let inherited = inherited();
        let found = inherited.iter().find(|d| d.fd == null.as_raw_fd()).unwrap();
        assert_eq!(
            (found.target.as_slice(), found.access),
            (&b"/dev/null"[..], libc::O_WRONLY)
        );
    }
}
