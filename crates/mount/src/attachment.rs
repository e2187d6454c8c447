//! Mounts and unmounts: by mount(2) as root, else by the set-user-id program `fusermount3`.
//!
//! In: a directory and a mount point. Out: the descriptor of `/dev/fuse` that serves the mount.
//!
//! The mount is never detached while it is in use: that would end the recording without a word.
//! No other mount at the mount point is unmounted.

use crate::Error;
use crate::mount_table::{FileSystemNumber, mounted_at};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CString;
use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The programs that mount for ordinary users: of libfuse 3, and of libfuse 2.
const FUSERMOUNT: [&str; 2] = ["fusermount3", "fusermount"];
/// The variable that names the socket to which `fusermount3` sends the descriptor.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Attachment {
    mountpoint: PathBuf,
    by_root: bool,
    device: OwnedFd,
    /// `None` if `/proc` does not tell it.
    number: Option<FileSystemNumber>,
}

/// Why a mount could not be ended.
#[derive(Debug)]
pub(crate) enum DetachFailure {
    /// A process has a file open below it, or its current directory.
    Busy,
    /// Another reason.
    Other(String),
}

/// Mounts a file system that calls itself `directory`.
pub(crate) fn attach(directory: &Path, mountpoint: &Path) -> Result<Attachment, Error> {
    let by_root = rustix::process::geteuid().is_root();
    let device = match by_root {
        true => attach_as_root(directory, mountpoint)?,
        false => attach_as_user(directory, mountpoint)?,
    };
    Ok(Attachment {
        mountpoint: mountpoint.to_owned(),
        by_root,
        device,
        number: mounted_at(mountpoint).and_then(|mut there| there.pop()),
    })
}

fn attach_as_root(directory: &Path, mountpoint: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/fuse", flags, Mode::empty());
    let device = device.map_err(|source| Error::Device {
        source: source.into(),
    })?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
        device.as_raw_fd()
    );
    let refused = |reason: String| Error::Refused {
        mountpoint: mountpoint.to_owned(),
        reason,
    };
    let options = CString::new(options).map_err(|error| refused(error.to_string()))?;
    rustix::mount::mount(
        directory,
        mountpoint,
        "fuse.backstory",
        MountFlags::empty(),
        options.as_c_str(),
    )
    .map_err(|error| match error {
        Errno::PERM => {
            refused("the kernel does not permit it; a container needs CAP_SYS_ADMIN".to_owned())
        }
        Errno::NODEV => refused("this kernel has no FUSE".to_owned()),
        error => refused(error.to_string()),
    })?;
    Ok(device)
}

fn attach_as_user(directory: &Path, mountpoint: &Path) -> Result<OwnedFd, Error> {
    let refused = |reason: String| Error::Refused {
        mountpoint: mountpoint.to_owned(),
        reason,
    };
    let (own, theirs) = UnixStream::pair().map_err(Error::system("make a pair of sockets"))?;
    rustix::io::fcntl_setfd(&theirs, FdFlags::empty())
        .map_err(Error::system("pass on a socket"))?;
    // A comma would end the option.
    let name: Vec<u8> = directory.as_os_str().as_bytes().to_vec();
    let name = String::from_utf8_lossy(&name).replace(',', "\\,");
    let child = fusermount(|program| {
        program
            .arg("-o")
            .arg(format!(
                "default_permissions,subtype=backstory,fsname={name}"
            ))
            .arg("--")
            .arg(mountpoint)
            .env(SOCKET_VARIABLE, theirs.as_raw_fd().to_string())
    });
    drop(theirs);
    let child = child.map_err(|error| match is_missing(&error) {
        true => refused(
            "only root mounts without fusermount3, which is not installed (Debian: apt install fuse3)"
                .to_owned(),
        ),
        false => refused(format!("cannot start fusermount3: {error}")),
    })?;
    let device = received(&own);
    let output = child
        .wait_with_output()
        .map_err(|error| refused(error.to_string()))?;
    match device {
        Some(device) => Ok(device),
        None => Err(refused(last_line(&output.stderr))),
    }
}

/// Starts the program that mounts and unmounts for ordinary users, with its messages in a pipe.
fn fusermount(arguments: impl Fn(&mut Command) -> &mut Command) -> std::io::Result<Child> {
    let start = |name: &str| {
        let mut program = Command::new(name);
        arguments(&mut program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    };
    let [present, older] = FUSERMOUNT;
    match start(present) {
        Err(error) if is_missing(&error) => start(older),
        started => started,
    }
}

/// Whether a program was not found. A directory of `PATH` may not be searched, too.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::PermissionDenied
    )
}

/// The descriptor that `fusermount3` sent. `None` if it ended without one.
fn received(socket: &UnixStream) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let mut pieces = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    let line = line.unwrap_or("fusermount3 failed without a message");
    let remedy = match line.contains("/dev/fuse") {
        true => "; ask the administrator for access to /dev/fuse, or mount as root",
        false => "",
    };
    format!("{}{remedy}", line.trim())
}

impl Attachment {
    /// A descriptor that serves the mount.
    pub(crate) fn device(&self) -> Result<OwnedFd, Error> {
        let device = self.device.try_clone();
        device.map_err(Error::system("copy a descriptor"))
    }

    /// True while the file system is mounted at any place of any mount namespace. A detached mount
    /// (`umount -l`) counts as long as a process uses it. The kernel ends the session with the last
    /// one, which the descriptor then reports as an error.
    pub(crate) fn is_mounted_anywhere(&self) -> bool {
        let mut asked = [PollFd::new(&self.device, PollFlags::empty())];
        let answered = poll(&mut asked, Some(&Timespec::default()));
        let has_ended = |device: &PollFd<'_>| device.revents().contains(PollFlags::ERR);
        answered.is_err() || !asked.iter().any(has_ended)
    }

    /// Unmounts, if the file system is still mounted at the mount point. The kernel ends the
    /// session with the last mount.
    pub(crate) fn detach(&self) -> Result<(), DetachFailure> {
        // The number belongs to this file system only while it is mounted.
        if !self.is_mounted_anywhere() {
            return Ok(());
        }
        if let (Some(own), Some(there)) = (&self.number, mounted_at(&self.mountpoint)) {
            if !there.contains(own) {
                return Ok(());
            }
            if there.last() != Some(own) {
                return Err(DetachFailure::Other("another mount hides it".to_owned()));
            }
        }
        match self.by_root {
            true => self.detach_as_root(),
            false => self.detach_as_user(),
        }
    }

    fn detach_as_root(&self) -> Result<(), DetachFailure> {
        match rustix::mount::unmount(&self.mountpoint, UnmountFlags::NOFOLLOW) {
            // INVAL: it has been unmounted already.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(Errno::BUSY) => Err(DetachFailure::Busy),
            Err(error) => Err(DetachFailure::Other(error.to_string())),
        }
    }

    fn detach_as_user(&self) -> Result<(), DetachFailure> {
        let output = fusermount(|program| program.args(["-u", "--"]).arg(&self.mountpoint))
            .and_then(Child::wait_with_output)
            .map_err(|error| DetachFailure::Other(error.to_string()))?;
        let said = last_line(&output.stderr);
        match output.status.success() {
            true => Ok(()),
            false if said.contains("busy") => Err(DetachFailure::Busy),
            false => Err(DetachFailure::Other(said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_device_names_a_remedy() {
        let said = last_line(b"x\nfusermount3: failed to open /dev/fuse: Permission denied\n\n");
        assert!(said.starts_with("fusermount3: failed to open"), "{said}");
        assert!(said.ends_with("or mount as root"), "{said}");
        assert_eq!(last_line(b"fusermount3: busy\n"), "fusermount3: busy");
    }
}
