//! A notified call with its arguments read.

use crate::arguments::NamedPath;
use crate::table::{LookupKind, MetadataKind, SocketEnd};

/// A call with its arguments read.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum DecodedCall {
    Open {
        name: NamedPath,
        flags: i32,
        mode: u32,
    },
    Exec {
        name: NamedPath,
        args: StringList,
        env: Option<StringList>,
        flags: u32,
    },
    Rename {
        from: NamedPath,
        to: NamedPath,
        flags: u32,
    },
    Link {
        from: NamedPath,
        to: NamedPath,
        flags: u32,
    },
    Symlink {
        target: Vec<u8>,
        name: NamedPath,
    },
    Unlink {
        name: NamedPath,
        directory: bool,
    },
    Mkdir {
        name: NamedPath,
        mode: u32,
    },
    Mknod {
        name: NamedPath,
        mode: u32,
    },
    Truncate {
        name: NamedPath,
    },
    Meta {
        what: MetadataKind,
        name: NamedPath,
        link: bool,
    },
    Look {
        op: LookupKind,
        name: NamedPath,
        mode: i32,
        flags: i32,
        link: bool,
    },
    Chdir {
        name: NamedPath,
    },
    Chroot {
        name: NamedPath,
    },
    Pivot {
        new: NamedPath,
        old: NamedPath,
    },
    Mount {
        source: Vec<u8>,
        target: NamedPath,
        flags: u32,
        unmounted: bool,
    },
    Namespace {
        flags: u32,
    },
    Address {
        op: SocketEnd,
        socket: i32,
        /// The type of the socket that connects to an internet address; 0 if unknown.
        kind: i32,
        address: Vec<u8>,
        /// The path of the address, for a `connect` to a path.
        name: Option<NamedPath>,
    },
    Opaque(&'static str),
}

/// NUL-terminated strings, one after the other.
#[derive(Debug, Default)]
pub struct StringList {
    /// The strings.
    pub bytes: Vec<u8>,
    /// The number of strings.
    pub count: usize,
    /// No string was cut off or left out.
    pub whole: bool,
}

impl DecodedCall {
    /// True if the call may wait for another process in the kernel. A signal then restarts the
    /// call, and it is notified again.
    pub fn may_wait(&self) -> bool {
        matches!(
            self,
            DecodedCall::Address {
                op: SocketEnd::Connect,
                ..
            }
        )
    }

    /// True if a path was given as an empty string, so that the call fails.
    pub fn has_empty_path(&self) -> bool {
        self.names().into_iter().flatten().any(|name| name.empty)
    }

    /// The paths that the call names.
    pub fn names(&self) -> [Option<&NamedPath>; 2] {
        match self {
            DecodedCall::Open { name, .. }
            | DecodedCall::Exec { name, .. }
            | DecodedCall::Symlink { name, .. }
            | DecodedCall::Unlink { name, .. }
            | DecodedCall::Mkdir { name, .. }
            | DecodedCall::Mknod { name, .. }
            | DecodedCall::Truncate { name }
            | DecodedCall::Meta { name, .. }
            | DecodedCall::Look { name, .. }
            | DecodedCall::Chdir { name }
            | DecodedCall::Chroot { name } => [Some(name), None],
            DecodedCall::Rename { from, to, .. } | DecodedCall::Link { from, to, .. } => {
                [Some(from), Some(to)]
            }
            DecodedCall::Pivot { new, old } => [Some(new), Some(old)],
            DecodedCall::Mount { target, .. } => [Some(target), None],
            DecodedCall::Namespace { .. }
            | DecodedCall::Address { .. }
            | DecodedCall::Opaque(_) => [None, None],
        }
    }
}
