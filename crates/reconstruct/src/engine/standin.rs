//! Stand-ins: real descriptors whose inode names a virtual resource.
//!
//! The kernel keeps the number of an inode as long as a process has it open, over `dup`, `fork` and
//! `execve`. So no table of descriptors is needed.

use super::proc_texts::open_flags;
use crate::resource::{Resource, ResourceId};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, fstat, memfd_create, stat};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The resources behind an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// For calls that read.
    pub read: ResourceId,
    /// For calls that write.
    pub write: ResourceId,
}

/// All stand-ins.
#[derive(Debug, Default)]
pub struct StandIns {
    ends: HashMap<(u64, u64), Ends>,
}

impl StandIns {
    /// The resources behind a descriptor of a thread. `None`: it is no stand-in.
    pub fn of(&self, tid: u32, fd: i32) -> Option<Ends> {
        if fd < 0 {
            return None;
        }
        let found = stat(format!("/proc/{tid}/fd/{fd}")).ok()?;
        self.ends.get(&(found.st_dev, found.st_ino)).copied()
    }

    /// A descriptor of a thread is no stand-in any more.
    pub fn forget(&mut self, tid: u32, fd: i32) {
        if let Ok(found) = stat(format!("/proc/{tid}/fd/{fd}")) {
            self.ends.remove(&(found.st_dev, found.st_ino));
        }
    }

    /// The stand-ins of one resource are those of another one.
    pub fn rename(&mut self, from: ResourceId, to: ResourceId) {
        let ends = self.ends.values_mut();
        for id in ends.flat_map(|ends| [&mut ends.read, &mut ends.write]) {
            if *id == from {
                *id = to;
            }
        }
    }

    fn name(&mut self, fd: &OwnedFd, ends: Ends) -> io::Result<()> {
        let found = fstat(fd)?;
        self.ends.insert((found.st_dev, found.st_ino), ends);
        Ok(())
    }

    /// Makes a stand-in for one resource.
    pub fn make(&mut self, id: ResourceId, resource: &Resource) -> io::Result<OwnedFd> {
        let fd = match resource.kind {
            libc::S_IFSOCK => socket_like(resource)?,
            libc::S_IFIFO => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                if resource.is_written { write } else { read }
            }
            libc::S_IFDIR => empty_directory()?,
            _ => memfd_create("backstory", MemfdFlags::CLOEXEC)?,
        };
        self.name(
            &fd,
            Ends {
                read: id,
                write: id,
            },
        )?;
        Ok(fd)
    }

    /// Makes the two ends of a pipe.
    pub fn pipe(&mut self, ends: Ends) -> io::Result<(OwnedFd, OwnedFd)> {
        let pair = pipe_with(PipeFlags::CLOEXEC)?;
        // Both ends have one inode.
        self.name(&pair.0, ends)?;
        Ok(pair)
    }

    /// Makes a pair of sockets.
    pub fn sockets(
        &mut self,
        one: ResourceId,
        two: ResourceId,
        kind: i32,
    ) -> io::Result<(OwnedFd, OwnedFd)> {
        let kind = SocketType::from_raw(kind as u32 & 0xf);
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        for (fd, id) in [(&pair.0, one), (&pair.1, two)] {
            self.name(
                fd,
                Ends {
                    read: id,
                    write: id,
                },
            )?;
        }
        Ok(pair)
    }
}

/// A socket of the recorded kind, so that the kernel answers for its options. It is connected to
/// nothing, and the namespace has no network.
fn socket_like(resource: &Resource) -> io::Result<OwnedFd> {
    let (domain, kind) = resource
        .socket
        .unwrap_or((libc::AF_UNIX, libc::SOCK_STREAM));
    let family = AddressFamily::from_raw(domain as u16);
    let flags = SocketFlags::CLOEXEC;
    let kind = SocketType::from_raw(kind as u32 & 0xf);
    let made = socket_with(family, kind, flags, None::<Protocol>);
    let plain = |_| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    Ok(made.or_else(plain)?)
}

/// A directory without a name and without entries: its listing is recorded.
fn empty_directory() -> io::Result<OwnedFd> {
    let path = std::env::temp_dir().join(format!(".backstory-{}", std::process::id()));
    std::fs::create_dir(&path)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, rustix::fs::Mode::empty());
    std::fs::remove_dir(&path)?;
    Ok(opened?)
}

/// Sets or clears `O_NONBLOCK`.
pub fn set_waits(fd: &OwnedFd, waits: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(fd.as_fd())?;
    flags.set(OFlags::NONBLOCK, !waits);
    Ok(fcntl_setfl(fd.as_fd(), flags)?)
}

/// True if a descriptor of a thread is blocking.
pub fn waits(tid: u32, fd: i32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    open_flags(&info).unwrap_or(0) & libc::O_NONBLOCK as u32 == 0
}
