//! From a decoded call to the fields of its record: all but the outcome.

use crate::decoded_call::DecodedCall;
use crate::record_writer::{RecordFields, RecordResult};
use crate::table::{LookupKind, MetadataKind, SocketEnd};
use backstory_abi::{META_ATTR, META_MODE, META_OWNER, META_TIMES, op};

/// The fields of a call's record, without the outcome.
#[allow(clippy::too_many_lines)] // one arm for each call
pub(crate) fn record_fields(decoded: &DecodedCall) -> RecordFields {
    let plain = match decoded {
        DecodedCall::Open { flags, mode, .. } => RecordFields {
            arg: *flags,
            aux: *mode,
            ..RecordFields::of(op::OPEN)
        },
        DecodedCall::Exec { args, flags, .. } => RecordFields {
            arg: args.count as i32,
            aux: *flags,
            ..RecordFields::of(op::EXEC)
        },
        DecodedCall::Rename { flags, .. } => RecordFields {
            arg: libc::AT_FDCWD,
            aux: *flags,
            ..RecordFields::of(op::RENAME)
        },
        DecodedCall::Link { flags, .. } => RecordFields {
            arg: libc::AT_FDCWD,
            aux: *flags,
            ..RecordFields::of(op::LINK)
        },
        DecodedCall::Symlink { .. } => RecordFields::of(op::SYMLINK),
        DecodedCall::Unlink { directory, .. } => RecordFields {
            arg: if *directory { libc::AT_REMOVEDIR } else { 0 },
            ..RecordFields::of(op::UNLINK)
        },
        DecodedCall::Mkdir { mode, .. } => RecordFields {
            aux: *mode,
            ..RecordFields::of(op::MKDIR)
        },
        DecodedCall::Mknod { mode, .. } => RecordFields {
            aux: *mode,
            ..RecordFields::of(op::MKNOD)
        },
        DecodedCall::Truncate { .. } => RecordFields::of(op::TRUNCATE),
        DecodedCall::Meta { what, link, .. } => RecordFields {
            arg: meta(*what),
            aux: if *link {
                libc::AT_SYMLINK_NOFOLLOW as u32
            } else {
                0
            },
            ..RecordFields::of(op::META)
        },
        DecodedCall::Look {
            op: LookupKind::Access,
            mode,
            flags,
            ..
        } => RecordFields {
            arg: *mode,
            aux: *flags as u32,
            ..RecordFields::of(op::ACCESS)
        },
        DecodedCall::Look {
            op: LookupKind::Readlink,
            ..
        } => RecordFields::of(op::READLINK),
        DecodedCall::Look { link, flags, .. } => {
            let nofollow = if *link { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
            RecordFields {
                arg: *flags | nofollow,
                ..RecordFields::of(op::STAT)
            }
        }
        DecodedCall::Chdir { .. } => RecordFields::of(op::CHDIR),
        DecodedCall::Chroot { .. } => RecordFields::of(op::CHROOT),
        DecodedCall::Pivot { .. } => RecordFields::of(op::PIVOT),
        DecodedCall::Mount {
            unmounted, flags, ..
        } => RecordFields {
            arg: i32::from(*unmounted),
            aux: *flags,
            ..RecordFields::of(op::MOUNT)
        },
        DecodedCall::Namespace { flags } => RecordFields {
            aux: *flags,
            ..RecordFields::of(op::NAMESPACE)
        },
        DecodedCall::Address {
            op: peer,
            socket,
            kind,
            ..
        } => {
            let number = if *peer == SocketEnd::Bind {
                op::BIND
            } else {
                op::CONNECT
            };
            RecordFields {
                fd: *socket,
                arg: *kind,
                ..RecordFields::of(number)
            }
        }
        DecodedCall::Opaque(_) => RecordFields {
            result: RecordResult::Known(0),
            ..RecordFields::of(op::OPAQUE)
        },
    };
    let mut names = decoded.names().into_iter().flatten().peekable();
    let named = names.peek().is_some();
    let unresolved = names.find(|name| name.path.first() != Some(&b'/'));
    let fd = unresolved.map_or(plain.fd, |name| name.dir);
    RecordFields {
        resolved: named && unresolved.is_none(),
        fd,
        ..plain
    }
}

fn meta(what: MetadataKind) -> i32 {
    match what {
        MetadataKind::Mode => META_MODE,
        MetadataKind::Owner => META_OWNER,
        MetadataKind::Times => META_TIMES,
        MetadataKind::Attr => META_ATTR,
    }
}
