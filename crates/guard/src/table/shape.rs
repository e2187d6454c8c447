//! What calls do, and where their arguments lie: the vocabulary of the table's last column.

/// Position of an argument, 0 to 5.
pub type Arg = u8;

/// In the place of an argument: the call has none.
pub const NONE: Arg = 0xff;
/// In the place of a directory argument: paths start at the current directory.
pub const CWD: Arg = 0xfe;

/// What a call changes of a file beside its contents.
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

/// What a look-up asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// Attributes.
    Stat,
    /// Permission.
    Access,
    /// Target of a symbolic link.
    Readlink,
}

/// Which end of a socket is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketEnd {
    /// The other.
    Connect,
    /// The own.
    Bind,
}

/// What a call does and where its arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CallShape {
    Open {
        dir: Arg,
        path: Arg,
        flags: Arg,
        mode: Arg,
    },
    /// `flags`, `mode` and `resolve` lie in memory.
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
    /// A null or (with `AT_EMPTY_PATH`) empty path means `dir`. `link`: the last symbolic link is not followed.
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
    /// Socket, address, length are arguments 0, 1, 2.
    Address {
        op: SocketEnd,
    },
    /// i386: the call is argument 0, its arguments lie in memory.
    SocketCall,
    /// Entries, `struct io_uring_params`: how a ring will lie in memory.
    RingSetup,
    /// Ring, number of entries, -, flags: what the entries say is about to be done.
    RingEnter,
    /// Ring, what, address, number: descriptors go into a ring, or a ring into its thread's own table.
    RingRegister,
    /// `ptrace`: the request, argument 0, says what is changed.
    Trace,
    /// A filter whose notifications the program itself would answer: refused by the kernel.
    Listener,
    /// An interface that can't be decoded.
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

/// On descriptor argument 0.
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
