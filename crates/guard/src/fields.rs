//! What a call asks for, as a record's fields: everything but the outcome.

use super::ask::Ask;
use super::decode::Named;
use super::record_writer::{Fields, Result as Outcome};
use super::table::{Changed, LookUp, Peer};
use backstory_abi::{META_ATTR, META_MODE, META_OWNER, META_TIMES, op};

impl Ask {
    /// The paths it names.
    pub fn names(&self) -> [Option<&Named>; 2] {
        match self {
            Ask::Open { name, .. }
            | Ask::Exec { name, .. }
            | Ask::Symlink { name, .. }
            | Ask::Unlink { name, .. }
            | Ask::Mkdir { name, .. }
            | Ask::Mknod { name, .. }
            | Ask::Truncate { name }
            | Ask::Meta { name, .. }
            | Ask::Look { name, .. }
            | Ask::Chdir { name }
            | Ask::Chroot { name } => [Some(name), None],
            Ask::Rename { from, to, .. } | Ask::Link { from, to, .. } => [Some(from), Some(to)],
            Ask::Pivot { new, old } => [Some(new), Some(old)],
            Ask::Mount { target, .. } => [Some(target), None],
            Ask::Namespace { .. } | Ask::Address { .. } | Ask::Opaque(_) => [None, None],
        }
    }

    #[allow(clippy::too_many_lines)] // one arm for each call
    pub(super) fn fields(&self) -> Fields {
        let plain = match self {
            Ask::Open { flags, mode, .. } => Fields {
                arg: *flags,
                aux: *mode,
                ..Fields::of(op::OPEN)
            },
            Ask::Exec { args, flags, .. } => Fields {
                arg: args.count as i32,
                aux: *flags,
                ..Fields::of(op::EXEC)
            },
            Ask::Rename { flags, .. } => Fields {
                arg: libc::AT_FDCWD,
                aux: *flags,
                ..Fields::of(op::RENAME)
            },
            Ask::Link { flags, .. } => Fields {
                arg: libc::AT_FDCWD,
                aux: *flags,
                ..Fields::of(op::LINK)
            },
            Ask::Symlink { .. } => Fields::of(op::SYMLINK),
            Ask::Unlink { directory, .. } => Fields {
                arg: if *directory { libc::AT_REMOVEDIR } else { 0 },
                ..Fields::of(op::UNLINK)
            },
            Ask::Mkdir { mode, .. } => Fields {
                aux: *mode,
                ..Fields::of(op::MKDIR)
            },
            Ask::Mknod { mode, .. } => Fields {
                aux: *mode,
                ..Fields::of(op::MKNOD)
            },
            Ask::Truncate { .. } => Fields::of(op::TRUNCATE),
            Ask::Meta { what, link, .. } => Fields {
                arg: meta(*what),
                aux: if *link {
                    libc::AT_SYMLINK_NOFOLLOW as u32
                } else {
                    0
                },
                ..Fields::of(op::META)
            },
            Ask::Look {
                op: LookUp::Access,
                mode,
                flags,
                ..
            } => Fields {
                arg: *mode,
                aux: *flags as u32,
                ..Fields::of(op::ACCESS)
            },
            Ask::Look {
                op: LookUp::Readlink,
                ..
            } => Fields::of(op::READLINK),
            Ask::Look { link, flags, .. } => {
                let nofollow = if *link { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
                Fields {
                    arg: *flags | nofollow,
                    ..Fields::of(op::STAT)
                }
            }
            Ask::Chdir { .. } => Fields::of(op::CHDIR),
            Ask::Chroot { .. } => Fields::of(op::CHROOT),
            Ask::Pivot { .. } => Fields::of(op::PIVOT),
            Ask::Mount {
                unmounted, flags, ..
            } => Fields {
                arg: i32::from(*unmounted),
                aux: *flags,
                ..Fields::of(op::MOUNT)
            },
            Ask::Namespace { flags } => Fields {
                aux: *flags,
                ..Fields::of(op::NAMESPACE)
            },
            Ask::Address {
                op: peer, socket, ..
            } => {
                let number = if *peer == Peer::Bind {
                    op::BIND
                } else {
                    op::CONNECT
                };
                Fields {
                    fd: *socket,
                    ..Fields::of(number)
                }
            }
            Ask::Opaque(_) => Fields {
                result: Outcome::Known(0),
                ..Fields::of(op::OPAQUE)
            },
        };
        let mut names = self.names().into_iter().flatten().peekable();
        let named = names.peek().is_some();
        let unresolved = names.find(|name| name.path.first() != Some(&b'/'));
        let fd = unresolved.map_or(plain.fd, |name| name.dir);
        Fields {
            resolved: named && unresolved.is_none(),
            fd,
            ..plain
        }
    }
}

fn meta(what: Changed) -> i32 {
    match what {
        Changed::Mode => META_MODE,
        Changed::Owner => META_OWNER,
        Changed::Times => META_TIMES,
        Changed::Attr => META_ATTR,
    }
}
