//! The shapes of calls, that is, what they do and where their arguments are: the vocabulary of the
//! table's last column.

/// The position of an argument, 0 to 5.
pub type Arg = u8;

/// Stands for an argument that the call does not have.
pub const NONE: Arg = 0xff;
/// Stands for a directory argument: paths start at the current directory.
pub const CWD: Arg = 0xfe;

/// The metadata of a file that a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataKind {
    /// Permission bits.
    Mode,
    /// Owner or group.
    Owner,
    /// Time stamps.
    Times,
    /// Extended attributes.
    Attr,
}

/// The kind of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// Attributes.
    Stat,
    /// Permission.
    Access,
    /// Target of a symbolic link.
    Readlink,
}

/// Which end of a socket the address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketEnd {
    /// The peer.
    Connect,
    /// The socket itself.
    Bind,
}

/// The shape of a call: what it does, and where its arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CallShape {
    Open {
        dir: Arg,
        path: Arg,
        flags: Arg,
        mode: Arg,
    },
    /// `flags`, `mode` and `resolve` are in memory.
    OpenHow {
        dir: Arg,
        path: Arg,
        how: Arg,
    },
    Creat {
        path: Arg,
        mode: Arg,
    },
    Exec {
        dir: Arg,
        path: Arg,
        argv: Arg,
        envp: Arg,
        flags: Arg,
    },
    Rename {
        from_dir: Arg,
        from: Arg,
        to_dir: Arg,
        to: Arg,
        flags: Arg,
    },
    Link {
        from_dir: Arg,
        from: Arg,
        to_dir: Arg,
        to: Arg,
        flags: Arg,
    },
    Symlink {
        target: Arg,
        dir: Arg,
        path: Arg,
    },
    Unlink {
        dir: Arg,
        path: Arg,
        flags: Arg,
    },
    Rmdir {
        path: Arg,
    },
    Mkdir {
        dir: Arg,
        path: Arg,
        mode: Arg,
    },
    Mknod {
        dir: Arg,
        path: Arg,
        mode: Arg,
    },
    Truncate {
        path: Arg,
    },
    /// A null path, or with `AT_EMPTY_PATH` an empty one, means `dir`. With `link`, the last
    /// symbolic link is not followed.
    Meta {
        what: MetadataKind,
        dir: Arg,
        path: Arg,
        flags: Arg,
        link: bool,
    },
    Look {
        op: LookupKind,
        dir: Arg,
        path: Arg,
        mode: Arg,
        flags: Arg,
        link: bool,
    },
    Chdir {
        path: Arg,
    },
    Fchdir {
        fd: Arg,
    },
    Chroot {
        path: Arg,
    },
    Pivot {
        new: Arg,
        old: Arg,
    },
    Mount {
        source: Arg,
        target: Arg,
        flags: Arg,
    },
    Umount {
        target: Arg,
    },
    MoveMount {
        from_dir: Arg,
        from: Arg,
        to_dir: Arg,
        to: Arg,
    },
    /// `unshare`, `clone`.
    Unshare {
        flags: Arg,
    },
    Setns {
        fd: Arg,
        kind: Arg,
    },
    /// Socket, address and length are the arguments 0, 1 and 2.
    Address {
        op: SocketEnd,
    },
    /// i386: argument 0 is the call, and its arguments are in memory.
    SocketCall,
    /// Entries and `struct io_uring_params`: the form of a ring's memory.
    RingSetup,
    /// Ring, number of entries, unused, flags: submits the entries of a ring.
    RingEnter,
    /// Ring, operation, address, count: adds descriptors to a ring, or a ring to its thread's own
    /// table.
    RingRegister,
    /// `ptrace`: argument 0 is the request, which decides what changes.
    Trace,
    /// A filter whose notifications the program itself would receive: the kernel refuses it.
    Listener,
    /// An interface that is not decoded.
    Opaque(&'static str),
}

pub(super) const fn meta(what: MetadataKind, dir: Arg, path: Arg) -> CallShape {
    CallShape::Meta {
        what,
        dir,
        path,
        flags: NONE,
        link: false,
    }
}

pub(super) const fn meta_at(what: MetadataKind, dir: Arg, path: Arg, flags: Arg) -> CallShape {
    CallShape::Meta {
        what,
        dir,
        path,
        flags,
        link: false,
    }
}

pub(super) const fn meta_link(what: MetadataKind, path: Arg) -> CallShape {
    CallShape::Meta {
        what,
        dir: CWD,
        path,
        flags: NONE,
        link: true,
    }
}

/// For descriptor argument 0.
pub(super) const fn meta_fd(what: MetadataKind) -> CallShape {
    CallShape::Meta {
        what,
        dir: 0,
        path: NONE,
        flags: NONE,
        link: false,
    }
}

pub(super) const fn look(op: LookupKind, dir: Arg, path: Arg) -> CallShape {
    CallShape::Look {
        op,
        dir,
        path,
        mode: NONE,
        flags: NONE,
        link: false,
    }
}

pub(super) const fn look_at(op: LookupKind, dir: Arg, path: Arg, flags: Arg) -> CallShape {
    CallShape::Look {
        op,
        dir,
        path,
        mode: NONE,
        flags,
        link: false,
    }
}

pub(super) const fn look_link(op: LookupKind, path: Arg) -> CallShape {
    CallShape::Look {
        op,
        dir: CWD,
        path,
        mode: NONE,
        flags: NONE,
        link: true,
    }
}
