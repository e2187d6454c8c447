//! What a notified call asks for, read out of its thread by the description in the table.

use super::decode::{Arguments, Named};
use super::memory::Unreadable;
use super::table::{Abi, Arg, CWD, Changed, LookUp, NONE, Peer, Shape};
use super::tracer;

/// Most bytes of arguments, and of environment, that are read at an `exec`.
const EXEC_LIMIT: usize = 1 << 20;
/// Longest socket address.
const ADDRESS: usize = 128;

/// A call, understood.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Ask {
    Open {
        name: Named,
        flags: i32,
        mode: u32,
    },
    Exec {
        name: Named,
        args: List,
        env: Option<List>,
        flags: u32,
    },
    Rename {
        from: Named,
        to: Named,
        flags: u32,
    },
    Link {
        from: Named,
        to: Named,
        flags: u32,
    },
    Symlink {
        target: Vec<u8>,
        name: Named,
    },
    Unlink {
        name: Named,
        directory: bool,
    },
    Mkdir {
        name: Named,
        mode: u32,
    },
    Mknod {
        name: Named,
        mode: u32,
    },
    Truncate {
        name: Named,
    },
    Meta {
        what: Changed,
        name: Named,
        link: bool,
    },
    Look {
        op: LookUp,
        name: Named,
        mode: i32,
        flags: i32,
        link: bool,
    },
    Chdir {
        name: Named,
    },
    Chroot {
        name: Named,
    },
    Pivot {
        new: Named,
        old: Named,
    },
    Mount {
        source: Vec<u8>,
        target: Named,
        flags: u32,
        unmounted: bool,
    },
    Namespace {
        flags: u32,
    },
    Address {
        op: Peer,
        socket: i32,
        address: Vec<u8>,
        /// Where the address is in the file system, of a `connect` to a path.
        name: Option<Named>,
    },
    Opaque(&'static str),
}

/// NUL-terminated strings, one after the other.
#[derive(Debug, Default)]
pub struct List {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// How many.
    pub count: usize,
    /// All of them.
    pub whole: bool,
}

impl Ask {
    /// Reads a call's arguments.
    pub fn read(shape: Shape, abi: Abi, a: &mut Arguments<'_>) -> Result<Ask, Unreadable> {
        Ok(match shape {
            Shape::Open {
                dir,
                path,
                flags,
                mode,
            } => {
                let name = a.path(dir, path, false)?;
                Ask::Open {
                    name,
                    flags: a.int(flags),
                    mode: a.number(mode) as u32,
                }
            }
            Shape::Creat { path, mode } => {
                let name = a.path(CWD, path, false)?;
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                Ask::Open {
                    name,
                    flags,
                    mode: a.number(mode) as u32,
                }
            }
            Shape::OpenHow { dir, path, how } => open_how(a, dir, path, how)?,
            Shape::Exec {
                dir,
                path,
                argv,
                envp,
                flags,
            } => exec(a, abi, [dir, path, argv, envp, flags])?,
            Shape::Truncate { path } => Ask::Truncate {
                name: a.path(CWD, path, false)?,
            },
            Shape::Meta {
                what,
                dir,
                path,
                flags,
                link,
            } => {
                let itself = path == NONE
                    || a.int(flags) & libc::AT_EMPTY_PATH != 0
                    || what == Changed::Times && a.number(path) == 0;
                let link = link || a.int(flags) & libc::AT_SYMLINK_NOFOLLOW != 0;
                Ask::Meta {
                    what,
                    name: a.path(dir, path, itself)?,
                    link,
                }
            }
            Shape::Look {
                op,
                dir,
                path,
                mode,
                flags,
                link,
            } => {
                let flags = a.int(flags);
                let itself =
                    flags & libc::AT_EMPTY_PATH != 0 || op == LookUp::Readlink && dir != CWD;
                let link = link || flags & libc::AT_SYMLINK_NOFOLLOW != 0;
                Ask::Look {
                    op,
                    name: a.path(dir, path, itself)?,
                    mode: a.int(mode),
                    flags,
                    link,
                }
            }
            Shape::Listener => listener(a, abi)?,
            other => return change(other, a),
        })
    }

    /// True if this may wait for someone in the kernel, so that a signal restarts it and it is notified again.
    pub fn may_wait(&self) -> bool {
        matches!(
            self,
            Ask::Address {
                op: Peer::Connect,
                ..
            }
        )
    }
}

/// Calls that change names.
fn change(shape: Shape, a: &mut Arguments<'_>) -> Result<Ask, Unreadable> {
    Ok(match shape {
        Shape::Rename {
            from_dir,
            from,
            to_dir,
            to,
            flags,
        } => Ask::Rename {
            from: a.path(from_dir, from, false)?,
            to: a.path(to_dir, to, false)?,
            flags: a.number(flags) as u32,
        },
        Shape::Link {
            from_dir,
            from,
            to_dir,
            to,
            flags,
        } => Ask::Link {
            from: a.path(from_dir, from, a.int(flags) & libc::AT_EMPTY_PATH != 0)?,
            to: a.path(to_dir, to, false)?,
            flags: a.number(flags) as u32,
        },
        Shape::Symlink { target, dir, path } => {
            let mut text = Vec::new();
            a.string(target, &mut text)?;
            Ask::Symlink {
                target: text,
                name: a.path(dir, path, false)?,
            }
        }
        Shape::Unlink { dir, path, flags } => Ask::Unlink {
            name: a.path(dir, path, false)?,
            directory: a.int(flags) & libc::AT_REMOVEDIR != 0,
        },
        Shape::Rmdir { path } => Ask::Unlink {
            name: a.path(CWD, path, false)?,
            directory: true,
        },
        Shape::Mkdir { dir, path, mode } => Ask::Mkdir {
            name: a.path(dir, path, false)?,
            mode: a.number(mode) as u32,
        },
        Shape::Mknod { dir, path, mode } => Ask::Mknod {
            name: a.path(dir, path, false)?,
            mode: a.number(mode) as u32,
        },
        other => return view(other, a),
    })
}

/// Calls that change what names mean, and those that name no file.
fn view(shape: Shape, a: &mut Arguments<'_>) -> Result<Ask, Unreadable> {
    Ok(match shape {
        Shape::Chdir { path } => Ask::Chdir {
            name: a.path(CWD, path, false)?,
        },
        Shape::Fchdir { fd } => Ask::Chdir {
            name: a.path(fd, NONE, true)?,
        },
        Shape::Chroot { path } => Ask::Chroot {
            name: a.path(CWD, path, false)?,
        },
        Shape::Pivot { new, old } => Ask::Pivot {
            new: a.path(CWD, new, false)?,
            old: a.path(CWD, old, false)?,
        },
        Shape::Mount {
            source,
            target,
            flags,
        } => {
            let mut text = Vec::new();
            if a.number(source) != 0 {
                a.string(source, &mut text)?;
            }
            Ask::Mount {
                source: text,
                target: a.path(CWD, target, false)?,
                flags: a.number(flags) as u32,
                unmounted: false,
            }
        }
        Shape::Umount { target } => Ask::Mount {
            source: Vec::new(),
            target: a.path(CWD, target, false)?,
            flags: 0,
            unmounted: true,
        },
        Shape::MoveMount {
            from_dir,
            from,
            to_dir,
            to,
        } => {
            let source = a.path(from_dir, from, true)?.path;
            Ask::Mount {
                source,
                target: a.path(to_dir, to, true)?,
                flags: 0,
                unmounted: false,
            }
        }
        Shape::Unshare { flags } => Ask::Namespace {
            flags: a.number(flags) as u32,
        },
        // Without a kind it may be any, a pid namespace among them.
        Shape::Setns { kind, .. } => match a.number(kind) as u32 {
            0 => Ask::Namespace {
                flags: (libc::CLONE_NEWNS | libc::CLONE_NEWPID) as u32,
            },
            flags => Ask::Namespace { flags },
        },
        Shape::Address { op } => address(a, op, [a.number(0), a.number(1), a.number(2)])?,
        Shape::SocketCall => {
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
                Peer::Bind
            } else {
                Peer::Connect
            };
            address(a, op, [word(0), word(1), word(2)])?
        }
        Shape::Opaque(name) => Ask::Opaque(name),
        Shape::Trace => Ask::Opaque(tracer::changed_by(a.number(0) as u32)),
        _ => Ask::Opaque("an unknown call"),
    })
}

/// `seccomp` with `SECCOMP_FILTER_FLAG_NEW_LISTENER`. Without the guard's own listener the kernel would install the filter. It
/// refuses other operations, and filters that are not in memory, have no instructions or do not end with a verdict, before it
/// looks for another listener: those fail as they would alone.
fn listener(a: &mut Arguments<'_>, abi: Abi) -> Result<Ask, Unreadable> {
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
        true => Ok(Ask::Opaque("a seccomp listener")),
        false => Err(Unreadable::Fault),
    }
}

/// `openat2`: flags, mode and resolve are three 64-bit words in memory.
fn open_how(a: &mut Arguments<'_>, dir: Arg, path: Arg, how: Arg) -> Result<Ask, Unreadable> {
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
    Ok(Ask::Open {
        name,
        flags: word(0) as i32,
        mode: word(1) as u32,
    })
}

fn exec(
    a: &mut Arguments<'_>,
    abi: Abi,
    [dir, path, argv, envp, flags]: [Arg; 5],
) -> Result<Ask, Unreadable> {
    let flags = a.number(flags) as u32;
    let name = a.path(dir, path, flags & libc::AT_EMPTY_PATH as u32 != 0)?;
    let args = list(a, abi, argv)?;
    // What can't be read here makes the call fail, or is of no use to it; the program's name is what matters.
    let env = list(a, abi, envp).ok();
    Ok(Ask::Exec {
        name,
        args,
        env,
        flags,
    })
}

fn list(a: &mut Arguments<'_>, abi: Abi, at: Arg) -> Result<List, Unreadable> {
    let mut bytes = Vec::with_capacity(4096);
    let (count, whole) = a
        .memory
        .strings(a.number(at), abi.pointer(), EXEC_LIMIT, &mut bytes)?;
    Ok(List {
        bytes,
        count,
        whole,
    })
}

fn address(
    a: &mut Arguments<'_>,
    op: Peer,
    [socket, at, length]: [u64; 3],
) -> Result<Ask, Unreadable> {
    let mut address = vec![0; (length as u32 as usize).min(ADDRESS)];
    a.memory.exact(at, &mut address)?;
    let path = unix_path(&address).filter(|_| op == Peer::Connect);
    let name = path.map(|path| a.name(libc::AT_FDCWD, path));
    Ok(Ask::Address {
        op,
        socket: socket as i32,
        address,
        name,
    })
}

/// The path in a socket address, if it has one.
fn unix_path(address: &[u8]) -> Option<&[u8]> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    let path = rest.split(|b| *b == 0).next().unwrap_or_default();
    (u16::from_le_bytes(*family) == libc::AF_UNIX as u16 && !path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::super::memory::PATH_MAX;
    use super::super::shared::PARKED;
    use super::EXEC_LIMIT;

    /// What `docs/security.md` promises of hostile calls.
    #[test]
    fn the_page_on_security_names_these_bounds() {
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/security.md"
        ))
        .unwrap();
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (path, list) = (PATH_MAX >> 10, EXEC_LIMIT >> 20);
        for claim in [
            format!("never more than {PARKED} at a time"),
            format!("at most {path} KB for a path and {list} MB for an argument list"),
        ] {
            assert!(words.contains(&claim), "{claim}");
        }
    }
}
