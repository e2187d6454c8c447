//! Decodes a notified call: from its arguments to what it does, by the description in the table.
//!
//! In: the call's shape (`table`) and its [`Arguments`]. Out: a [`DecodedCall`]. Nothing but the
//! caller's memory and its links in `/proc` is read.

use crate::arguments::Arguments;
use crate::decoded_call::{DecodedCall, StringList};
use crate::memory::Unreadable;
use crate::table::tracer;
use crate::table::{Abi, Arg, CWD, CallShape, LookupKind, MetadataKind, NONE, SocketEnd};
use std::os::fd::AsFd;

/// Most bytes of arguments, and of environment, that are read at an `exec`.
const EXEC_LIMIT: usize = 1 << 20;
/// Bytes of the longest socket address.
const ADDRESS: usize = 128;

/// Decodes a call.
///
/// # Errors
/// The caller's memory cannot be read.
pub fn decode(
    shape: CallShape,
    abi: Abi,
    a: &mut Arguments<'_>,
) -> Result<DecodedCall, Unreadable> {
    Ok(match shape {
        CallShape::Open {
            dir,
            path,
            flags,
            mode,
        } => {
            let name = a.path(dir, path, false)?;
            DecodedCall::Open {
                name,
                flags: a.int(flags),
                mode: a.number(mode) as u32,
            }
        }
        CallShape::Creat { path, mode } => {
            let name = a.path(CWD, path, false)?;
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            DecodedCall::Open {
                name,
                flags,
                mode: a.number(mode) as u32,
            }
        }
        CallShape::OpenHow { dir, path, how } => open_how(a, dir, path, how)?,
        CallShape::Exec {
            dir,
            path,
            argv,
            envp,
            flags,
        } => exec(a, abi, [dir, path, argv, envp, flags])?,
        CallShape::Truncate { path } => DecodedCall::Truncate {
            name: a.path(CWD, path, false)?,
        },
        CallShape::Meta {
            what,
            dir,
            path,
            flags,
            link,
        } => {
            let itself = path == NONE
                || a.int(flags) & libc::AT_EMPTY_PATH != 0
                || what == MetadataKind::Times && a.number(path) == 0;
            let link = link || a.int(flags) & libc::AT_SYMLINK_NOFOLLOW != 0;
            DecodedCall::Meta {
                what,
                name: a.path(dir, path, itself)?,
                link,
            }
        }
        CallShape::Look {
            op,
            dir,
            path,
            mode,
            flags,
            link,
        } => {
            let flags = a.int(flags);
            let itself =
                flags & libc::AT_EMPTY_PATH != 0 || op == LookupKind::Readlink && dir != CWD;
            let link = link || flags & libc::AT_SYMLINK_NOFOLLOW != 0;
            DecodedCall::Look {
                op,
                name: a.path(dir, path, itself)?,
                mode: a.int(mode),
                flags,
                link,
            }
        }
        CallShape::Listener => listener(a, abi)?,
        other => return change(other, a),
    })
}

/// Decodes calls that change names.
fn change(shape: CallShape, a: &mut Arguments<'_>) -> Result<DecodedCall, Unreadable> {
    Ok(match shape {
        CallShape::Rename {
            from_dir,
            from,
            to_dir,
            to,
            flags,
        } => DecodedCall::Rename {
            from: a.path(from_dir, from, false)?,
            to: a.path(to_dir, to, false)?,
            flags: a.number(flags) as u32,
        },
        CallShape::Link {
            from_dir,
            from,
            to_dir,
            to,
            flags,
        } => DecodedCall::Link {
            from: a.path(from_dir, from, a.int(flags) & libc::AT_EMPTY_PATH != 0)?,
            to: a.path(to_dir, to, false)?,
            flags: a.number(flags) as u32,
        },
        CallShape::Symlink { target, dir, path } => {
            let mut text = Vec::new();
            a.string(target, &mut text)?;
            DecodedCall::Symlink {
                target: text,
                name: a.path(dir, path, false)?,
            }
        }
        CallShape::Unlink { dir, path, flags } => DecodedCall::Unlink {
            name: a.path(dir, path, false)?,
            directory: a.int(flags) & libc::AT_REMOVEDIR != 0,
        },
        CallShape::Rmdir { path } => DecodedCall::Unlink {
            name: a.path(CWD, path, false)?,
            directory: true,
        },
        CallShape::Mkdir { dir, path, mode } => DecodedCall::Mkdir {
            name: a.path(dir, path, false)?,
            mode: a.number(mode) as u32,
        },
        CallShape::Mknod { dir, path, mode } => DecodedCall::Mknod {
            name: a.path(dir, path, false)?,
            mode: a.number(mode) as u32,
        },
        other => return view(other, a),
    })
}

/// Decodes calls that change what names mean, and calls that name no file.
fn view(shape: CallShape, a: &mut Arguments<'_>) -> Result<DecodedCall, Unreadable> {
    Ok(match shape {
        CallShape::Chdir { path } => DecodedCall::Chdir {
            name: a.path(CWD, path, false)?,
        },
        CallShape::Fchdir { fd } => DecodedCall::Chdir {
            name: a.path(fd, NONE, true)?,
        },
        CallShape::Chroot { path } => DecodedCall::Chroot {
            name: a.path(CWD, path, false)?,
        },
        CallShape::Pivot { new, old } => DecodedCall::Pivot {
            new: a.path(CWD, new, false)?,
            old: a.path(CWD, old, false)?,
        },
        CallShape::Mount {
            source,
            target,
            flags,
        } => {
            let mut text = Vec::new();
            if a.number(source) != 0 {
                a.string(source, &mut text)?;
            }
            DecodedCall::Mount {
                source: text,
                target: a.path(CWD, target, false)?,
                flags: a.number(flags) as u32,
                unmounted: false,
            }
        }
        CallShape::Umount { target } => DecodedCall::Mount {
            source: Vec::new(),
            target: a.path(CWD, target, false)?,
            flags: 0,
            unmounted: true,
        },
        CallShape::MoveMount {
            from_dir,
            from,
            to_dir,
            to,
        } => {
            let source = a.path(from_dir, from, true)?.path;
            DecodedCall::Mount {
                source,
                target: a.path(to_dir, to, true)?,
                flags: 0,
                unmounted: false,
            }
        }
        CallShape::Unshare { flags } => DecodedCall::Namespace {
            flags: a.number(flags) as u32,
        },
        // Without a kind it may be any namespace, a pid namespace among them.
        CallShape::Setns { kind, .. } => match a.number(kind) as u32 {
            0 => DecodedCall::Namespace {
                flags: (libc::CLONE_NEWNS | libc::CLONE_NEWPID) as u32,
            },
            flags => DecodedCall::Namespace { flags },
        },
        CallShape::Address { op } => address(a, op, [a.number(0), a.number(1), a.number(2)])?,
        CallShape::SocketCall => {
            let mut block = [0; 12];
            a.memory.exact(a.number(1), &mut block)?;
            let word = |i: usize| {
                block[4 * i..]
                    .iter()
                    .take(4)
                    .rev()
                    .fold(0, |n, b| n << 8 | u64::from(*b))
            };
            let op = if a.number(0) == 2 {
                SocketEnd::Bind
            } else {
                SocketEnd::Connect
            };
            address(a, op, [word(0), word(1), word(2)])?
        }
        CallShape::Opaque(name) => DecodedCall::Opaque(name),
        CallShape::Trace => DecodedCall::Opaque(tracer::changed_by(a.number(0) as u32)),
        _ => DecodedCall::Opaque("an unknown call"),
    })
}

/// `seccomp` with `SECCOMP_FILTER_FLAG_NEW_LISTENER`, which the kernel would allow without the
/// guard's own listener.
///
/// The kernel refuses some calls before it looks for another listener: other operations, and
/// invalid filters. A filter is invalid if it is not in memory, has no instructions or does not end
/// with a verdict. Those calls fail as they would without the guard.
fn listener(a: &mut Arguments<'_>, abi: Abi) -> Result<DecodedCall, Unreadable> {
    const MOST_INSTRUCTIONS: u64 = 4096;
    const INSTRUCTION: u64 = 8;
    const RETURN: u8 = 6;
    // `struct sock_fprog`: a 16-bit count, then the address of the instructions.
    let (size, pointer) = match abi {
        Abi::X64 => (16, 8..16),
        Abi::X32 | Abi::I386 => (8, 4..8),
    };
    let mut program = [0; 16];
    a.memory.exact(a.number(2), &mut program[..size])?;
    let count = u64::from(u16::from_le_bytes([program[0], program[1]]));
    let at = program[pointer]
        .iter()
        .rev()
        .fold(0, |n, byte| n << 8 | u64::from(*byte));
    if a.number(0) as u32 != libc::SECCOMP_SET_MODE_FILTER
        || !(1..=MOST_INSTRUCTIONS).contains(&count)
    {
        return Err(Unreadable::Fault);
    }
    let mut last = [0; INSTRUCTION as usize];
    a.memory.exact(at, &mut last)?;
    a.memory
        .exact(at.wrapping_add((count - 1) * INSTRUCTION), &mut last)?;
    match last[0] & 7 == RETURN {
        true => Ok(DecodedCall::Opaque("a seccomp listener")),
        false => Err(Unreadable::Fault),
    }
}

/// Decodes `openat2`: flags, mode and resolve are three 64-bit words in memory.
fn open_how(
    a: &mut Arguments<'_>,
    dir: Arg,
    path: Arg,
    how: Arg,
) -> Result<DecodedCall, Unreadable> {
    let mut words = [0; 24];
    a.memory.exact(a.number(how), &mut words)?;
    let word = |i: usize| {
        words[8 * i..]
            .iter()
            .take(8)
            .rev()
            .fold(0u64, |n, b| n << 8 | u64::from(*b))
    };
    let name = match word(2) & libc::RESOLVE_IN_ROOT {
        0 => a.path(dir, path, false)?,
        _ => a.path_in_root(dir, path)?,
    };
    Ok(DecodedCall::Open {
        name,
        flags: word(0) as i32,
        mode: word(1) as u32,
    })
}

fn exec(
    a: &mut Arguments<'_>,
    abi: Abi,
    [dir, path, argv, envp, flags]: [Arg; 5],
) -> Result<DecodedCall, Unreadable> {
    let flags = a.number(flags) as u32;
    let name = a.path(dir, path, flags & libc::AT_EMPTY_PATH as u32 != 0)?;
    let args = list(a, abi, argv)?;
    // Where the environment cannot be read the call fails or does not use it. The program's name is
    // what matters.
    let env = list(a, abi, envp).ok();
    Ok(DecodedCall::Exec {
        name,
        args,
        env,
        flags,
    })
}

fn list(a: &mut Arguments<'_>, abi: Abi, at: Arg) -> Result<StringList, Unreadable> {
    let mut bytes = Vec::with_capacity(4096);
    let (count, whole) = a
        .memory
        .strings(a.number(at), abi.pointer(), EXEC_LIMIT, &mut bytes)?;
    Ok(StringList {
        bytes,
        count,
        whole,
    })
}

fn address(
    a: &mut Arguments<'_>,
    op: SocketEnd,
    [socket, at, length]: [u64; 3],
) -> Result<DecodedCall, Unreadable> {
    let mut address = vec![0; (length as u32 as usize).min(ADDRESS)];
    a.memory.exact(at, &mut address)?;
    let path = unix_path(&address).filter(|_| op == SocketEnd::Connect);
    let name = path.map(|path| a.name(libc::AT_FDCWD, path));
    let (socket, connects) = (socket as i32, op == SocketEnd::Connect);
    let kind = (connects && is_internet(&address)).then(|| socket_type(a.caller.pid, socket));
    Ok(DecodedCall::Address {
        op,
        socket,
        kind: kind.flatten().unwrap_or_default(),
        address,
        name,
    })
}

fn is_internet(address: &[u8]) -> bool {
    let family = address
        .first_chunk()
        .map(|family| u16::from_le_bytes(*family));
    [libc::AF_INET, libc::AF_INET6]
        .iter()
        .any(|of| family == Some(*of as u16))
}

/// The type of a socket of another process, which `socket(2)` was called with.
fn socket_type(pid: u32, socket: i32) -> Option<i32> {
    let process = backstory_sys::pidfd_open(pid, false).ok()?;
    let socket = backstory_sys::pidfd_getfd(process.as_fd(), socket).ok()?;
    let kind = rustix::net::sockopt::socket_type(socket).ok()?;
    Some(kind.as_raw() as i32)
}

/// The path in a socket address, if it has one.
fn unix_path(address: &[u8]) -> Option<&[u8]> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    let path = rest.split(|b| *b == 0).next().unwrap_or_default();
    (u16::from_le_bytes(*family) == libc::AF_UNIX as u16 && !path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::EXEC_LIMIT;
    use crate::memory::PATH_MAX;
    use crate::notification_buffers::PARKED;

    /// The bounds that `docs/security.md` promises for hostile calls.
    #[test]
    fn the_security_page_names_the_bounds_of_hostile_calls() {
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/security.md"
        ))
        .unwrap();
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (path, list) = (PATH_MAX >> 10, EXEC_LIMIT >> 20);
        for claim in [
            format!("at most {PARKED} at a time"),
            format!("at most {path} KB for a path and {list} MB for an argument list"),
        ] {
            assert!(words.contains(&claim), "{claim}");
        }
    }
}
