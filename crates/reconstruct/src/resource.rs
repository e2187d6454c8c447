//! The things that the processes of a run had open.

use libc::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK};
use serde::{Deserialize, Serialize};

/// Number of a resource within its run.
pub type ResourceId = usize;

/// How a resource came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A process had it open at its start, and no recorded call made it.
    Inherited,
    /// By its path.
    Opened,
    /// `socket(domain, type)`.
    Socket,
    /// A connection of this listener.
    Accepted(ResourceId),
    /// An end of a pipe, or of a pair of sockets.
    Paired,
    /// Another process passed it in a message.
    Passed,
}

/// Something that a process had open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// How it came to be.
    pub origin: Origin,
    /// The path that the program passed, or the link in `/proc/self/fd`.
    pub name: Vec<u8>,
    /// The absolute path behind the descriptor, if the record has it.
    pub link: Vec<u8>,
    /// The type bits of its mode; 0 if they are not known.
    pub kind: u32,
    /// Device and inode, if known.
    pub ident: Option<(u64, u64)>,
    /// For a socket: domain and type.
    pub socket: Option<(i32, i32)>,
    /// The log has bytes that were read from it.
    pub has_bytes: bool,
    /// The log refers to the stored file for the bytes that were read from it.
    pub is_reference: bool,
    /// The log has writes to it.
    pub is_written: bool,
    /// The kernel moved bytes into or out of it (`splice`, `tee`, `vmsplice`).
    pub is_spliced: bool,
    /// The address of the other side, in words.
    pub peer: Option<String>,
}

impl Resource {
    /// A resource of which only the origin is known.
    pub fn new(origin: Origin, name: &[u8], kind: u32) -> Resource {
        Resource {
            origin,
            name: name.to_vec(),
            link: Vec::new(),
            kind: kind & S_IFMT,
            ident: None,
            socket: None,
            has_bytes: false,
            is_reference: false,
            is_written: false,
            is_spliced: false,
            peer: None,
        }
    }

    /// True if the kernel's own objects answer for it. These are regular files and directories of
    /// the root, and pipes that only the kernel reads and writes.
    pub fn is_native(&self) -> bool {
        if self.is_kernel_object() {
            return true;
        }
        match self.kind {
            S_IFREG => match self.origin {
                // The file that a shell opened for the program: its output is compared, and not
                // written.
                Origin::Inherited | Origin::Passed => !self.is_written && !self.has_bytes,
                _ => !is_kernels(&self.name),
            },
            S_IFDIR => !is_kernels(&self.name),
            // No process had the bytes of this pipe, so the record has none.
            S_IFIFO if self.is_spliced && self.is_own_pipe() => !self.is_written && !self.has_bytes,
            S_IFIFO | S_IFSOCK | S_IFCHR | S_IFBLK => false,
            // It was opened, and neither read nor written.
            _ => self.origin == Origin::Opened && !self.has_bytes && !is_kernels(&self.name),
        }
    }

    /// True for a pipe that a recorded process made.
    pub fn is_own_pipe(&self) -> bool {
        self.kind == S_IFIFO && self.origin == Origin::Paired
    }

    /// True if the record has a number of it, and nothing more.
    pub fn is_vague(&self) -> bool {
        self.origin == Origin::Inherited && self.kind == 0 && self.ident.is_none()
    }

    /// True for a file that was opened by its path, and is no pipe and no device.
    pub fn is_opened_file(&self) -> bool {
        self.origin == Origin::Opened && matches!(self.kind, 0 | S_IFREG | S_IFDIR)
    }

    /// True for a connection that was accepted or made.
    pub fn is_connection(&self) -> bool {
        matches!(self.origin, Origin::Accepted(_)) || self.peer.is_some()
    }

    /// True for an object without a name in a file system (`eventfd`, `epoll_create`,
    /// `memfd_create` and so on). The kernel makes it again, and its calls continue.
    pub fn is_kernel_object(&self) -> bool {
        self.name.starts_with(b"anon_inode:") || self.name.starts_with(b"/memfd:")
    }

    /// True if messages have boundaries.
    pub fn keeps_messages(&self) -> bool {
        self.socket
            .is_some_and(|(_, kind)| !matches!(kind & 0xf, libc::SOCK_STREAM))
    }

    /// The resource in words, for reports.
    pub fn label(&self) -> String {
        let name = String::from_utf8_lossy(&self.name).into_owned();
        match (&self.peer, self.origin == Origin::Inherited) {
            (Some(peer), _) => format!("the socket to {peer}"),
            (None, true) if name.is_empty() => "an inherited descriptor".to_owned(),
            _ if name.is_empty() => "a socket".to_owned(),
            _ => name,
        }
    }
}

/// True for a path whose content the kernel makes up, or a device.
pub fn is_kernels(path: &[u8]) -> bool {
    if is_shared_memory(path) {
        return false;
    }
    ["/proc", "/sys", "/dev"].iter().any(|top| {
        path.strip_prefix(top.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// True for a file in which a program finds its own memory, which lies elsewhere than in the
/// recording.
pub fn is_address_list(path: &[u8]) -> bool {
    let own = path.strip_prefix(b"/proc/self/".as_slice());
    matches!(
        own,
        Some(b"maps" | b"smaps" | b"auxv" | b"stat" | b"pagemap")
    )
}

/// True for a file of shared memory. The root has a directory of its own for these.
pub fn is_shared_memory(path: &[u8]) -> bool {
    path.starts_with(b"/dev/shm/")
}

/// The descriptor that a path names, in the process with this id: `/dev/fd/63`, `/dev/stdin`,
/// `/proc/self/fd/3`.
pub fn descriptor_path(path: &[u8], pid: u32) -> Option<i32> {
    match path {
        b"/dev/stdin" => Some(0),
        b"/dev/stdout" => Some(1),
        b"/dev/stderr" => Some(2),
        _ => number(below_descriptors(path, pid)?),
    }
}

fn number(digits: &[u8]) -> Option<i32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A directory of a process that has a name in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedDirectory {
    /// Behind this descriptor.
    Open(i32),
    /// The current one.
    Current,
    /// The root.
    Root,
}

impl NamedDirectory {
    /// Its name below that of its process.
    pub fn name(self) -> String {
        match self {
            NamedDirectory::Open(fd) => format!("fd/{fd}"),
            NamedDirectory::Current => "cwd".to_owned(),
            NamedDirectory::Root => "root".to_owned(),
        }
    }
}

/// The directory of the process with this id that a path leads through, and the rest of the path:
/// `/proc/self/fd/3/x`, `/dev/fd/3/x`, `/proc/self/cwd/x`.
pub fn through_directory(path: &[u8], pid: u32) -> Option<(NamedDirectory, &[u8])> {
    if let Some(fds) = below_descriptors(path, pid) {
        let end = fds.iter().position(|byte| *byte == b'/')?;
        let fd = number(&fds[..end])?;
        return Some((NamedDirectory::Open(fd), &fds[end + 1..]));
    }
    let below = within_process(path, pid)?;
    match below.strip_prefix(b"cwd/") {
        Some(rest) => Some((NamedDirectory::Current, rest)),
        None => Some((NamedDirectory::Root, below.strip_prefix(b"root/")?)),
    }
}

/// The path of a file below a directory. Without a name, that is the root.
pub fn path_below(directory: &[u8], rest: &[u8]) -> Vec<u8> {
    let is_name = |byte: &u8| *byte != b'/';
    let end = directory.iter().rposition(is_name).map_or(0, |at| at + 1);
    let from = rest.iter().position(is_name).unwrap_or(rest.len());
    let (directory, rest) = (&directory[..end], &rest[from..]);
    match rest.is_empty() && !directory.is_empty() {
        true => directory.to_vec(),
        false => [directory, b"/", rest].concat(),
    }
}

/// A path in the directory of the descriptors of this process, from there on.
fn below_descriptors(path: &[u8], pid: u32) -> Option<&[u8]> {
    let own = || within_process(path, pid)?.strip_prefix(b"fd/");
    path.strip_prefix(b"/dev/fd/").or_else(own)
}

/// A path in the directory of this process in `/proc`, from there on.
fn within_process(path: &[u8], pid: u32) -> Option<&[u8]> {
    let own = pid.to_string();
    let rest = path.strip_prefix(b"/proc/")?;
    let mut names = ["self", "thread-self", &own].into_iter();
    names.find_map(|name| rest.strip_prefix(name.as_bytes())?.strip_prefix(b"/"))
}

/// A socket address in words.
pub fn address_words(address: &[u8]) -> Option<String> {
    let family = u16::from_le_bytes(*address.first_chunk()?);
    let port = address
        .get(2..4)
        .map(|port| u16::from_be_bytes([port[0], port[1]]));
    match i32::from(family) {
        libc::AF_INET => {
            let ip: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            Some(format!("{}:{}", std::net::Ipv4Addr::from(ip), port?))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            Some(format!("[{}]:{}", std::net::Ipv6Addr::from(ip), port?))
        }
        libc::AF_UNIX => {
            let path = address.get(2..)?;
            let path = path
                .split(|byte| *byte == 0)
                .find(|part| !part.is_empty())?;
            Some(String::from_utf8_lossy(path).into_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{NamedDirectory, descriptor_path, path_below, through_directory};

    #[test]
    fn a_path_below_a_directory_has_one_slash_between_them() {
        for (directory, rest, path) in [
            ("/a/b", "c/d", "/a/b/c/d"),
            ("/a/b//", "/c", "/a/b/c"),
            ("/a", "", "/a"),
            (".", "c", "./c"),
            ("/", "c", "/c"),
            ("", "c", "/c"),
            ("", "/", "/"),
        ] {
            let found = path_below(directory.as_bytes(), rest.as_bytes());
            assert_eq!(found, path.as_bytes(), "{directory:?} {rest:?}");
        }
    }

    #[test]
    fn a_path_that_names_a_descriptor_is_told_from_one_through_it() {
        let found: [(&[u8], i32); 5] = [
            (b"/dev/stdout", 1),
            (b"/dev/fd/63", 63),
            (b"/proc/self/fd/7", 7),
            (b"/proc/thread-self/fd/7", 7),
            (b"/proc/12/fd/7", 7),
        ];
        for (path, fd) in found {
            assert_eq!(descriptor_path(path, 12), Some(fd));
            assert_eq!(through_directory(path, 12), None);
        }
        for path in [
            &b"/proc/self/fd/7/x"[..],
            b"/dev/fd/",
            b"/proc/1/fd/7",
            b"/dev/std",
        ] {
            assert_eq!(descriptor_path(path, 12), None, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn a_path_through_a_directory_of_the_process_is_told_from_files_of_the_kernel() {
        let open = NamedDirectory::Open(7);
        let found: [(&[u8], NamedDirectory, &[u8]); 7] = [
            (b"/proc/self/fd/7/x", open, b"x"),
            (b"/proc/thread-self/fd/7/d/new", open, b"d/new"),
            (b"/proc/12/fd/7/x", open, b"x"),
            (b"/dev/fd/7/x", open, b"x"),
            (b"/proc/self/fd/7/", open, b""),
            (b"/proc/self/cwd/x", NamedDirectory::Current, b"x"),
            (b"/proc/12/root/etc/x", NamedDirectory::Root, b"etc/x"),
        ];
        for (path, directory, rest) in found {
            assert_eq!(through_directory(path, 12), Some((directory, rest)));
        }
        for path in [
            &b"/proc/self/fd/7"[..],
            b"/dev/fd/7",
            b"/proc/self/fd/x/7",
            b"/proc/self/cwd",
            b"/proc/self/status",
            b"/proc/123/fd/7/x",
            b"/proc/1/cwd/x",
            b"/sys/fd/7/x",
            b"fd/7/x",
        ] {
            assert_eq!(through_directory(path, 12), None, "{}", path.escape_ascii());
        }
    }
}
