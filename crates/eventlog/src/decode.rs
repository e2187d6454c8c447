//! Decodes a record into its operation. Knows the fields of every operation, and nothing of threads
//! or time.

mod functions;

use crate::event::{MetadataPart, Op, Outcome, PreserveMethod, ResourceAccess, Spawn, ThreadStep};
use crate::record::RawRecord;
use crate::value_pointers::parted;
use backstory_abi::{self as abi, DONE, F_PREDICTED, Record, op};
use functions::{function_steps, printed};

const AT_REMOVEDIR: i32 = 0x200;
const AT_SYMLINK_NOFOLLOW: u32 = 0x100;

/// The outcome of the call.
pub fn outcome(raw: &RawRecord<'_>) -> Outcome {
    match raw.head.state {
        DONE if raw.head.flags & F_PREDICTED != 0 => Outcome::Predicted(raw.head.result),
        DONE => Outcome::Done(raw.head.result),
        _ => Outcome::Unknown,
    }
}

/// The kind of child of a `VFORK` record.
pub fn spawn(arg: i32) -> Spawn {
    match arg {
        abi::SPAWN_POSIX => Spawn::Posix,
        abi::SPAWN_SYSTEM => Spawn::System,
        abi::SPAWN_POPEN => Spawn::Popen,
        abi::SPAWN_CLONE => Spawn::Clone,
        _ => Spawn::Vfork,
    }
}

/// True if this is the last record of a child on its parent's memory: the child executes another
/// program, or has ended.
pub fn is_last_of_child(record: &Record) -> bool {
    record.op == op::EXIT || (record.op == op::EXEC && record.state != DONE)
}

/// The operation of a record that represents one alone. `ARGS`, `ENV`, `VFORK`, `VFORKED` and
/// `EXEC` do not.
pub fn operation(raw: &RawRecord<'_>) -> Option<Op> {
    let h = &raw.head;
    let (fd, arg, aux) = (h.fd, h.arg, h.aux);
    Some(match h.op {
        op::START => Op::Start {
            ppid: arg as u32,
            forked: aux == 1,
        },
        op::CLOSE => Op::Close { fd },
        op::CLOSE_RANGE => Op::CloseRange {
            first: fd,
            last: aux,
            flags: arg,
        },
        op::READ => Op::Read { fd },
        op::WRITE => Op::Write { fd },
        op::MAP => Op::Map {
            fd,
            prot: arg,
            flags: aux,
        },
        op::DUP => Op::Dup {
            fd,
            cloexec: arg != 0,
            replaced: aux == 1,
        },
        op::CLOEXEC => Op::Cloexec { fd, on: arg != 0 },
        op::COPY => Op::Copy { from: fd, to: arg },
        op::LIST => Op::List { fd },
        op::NAMESPACE => Op::Namespace { flags: aux },
        op::FORK => Op::Fork {
            flags: aux,
            spawn: None,
        },
        op::WAIT => Op::Wait {
            status: arg,
            looked: aux == 1,
        },
        op::EXIT => Op::Exit {
            status: arg,
            processor_time: processor_time(fd as u32, aux),
        },
        op::THREAD => thread(raw)?,
        op::KILL => Op::Kill {
            pid: fd,
            signal: arg,
        },
        op::LOST => Op::Lost {
            count: aux,
            why: arg,
        },
        op::GONE => Op::Gone {
            status: (aux == 1).then_some(arg),
        },
        op::PIPE
        | op::SOCKET
        | op::SOCKETPAIR
        | op::CONNECT
        | op::BIND
        | op::ACCEPT
        | op::LISTEN
        | op::PASS
        | op::EVENTFD
        | op::TRAFFIC
        | op::DATAGRAM
        | op::ENDS => channel(raw)?,
        op::RESOLVE => resolve(raw)?,
        _ => named(raw)?,
    })
}

/// The processor time of an exit in ns, from its two halves in microseconds. Logs of older
/// recorders have 0 there.
fn processor_time(high: u32, low: u32) -> Option<i64> {
    let microseconds = i64::from(high & 0x7fff_ffff) << 32 | i64::from(low);
    (microseconds > 0).then(|| microseconds.saturating_mul(1000))
}

fn thread(raw: &RawRecord<'_>) -> Option<Op> {
    let what = match raw.head.aux {
        abi::THREAD_CREATE => ThreadStep::Create,
        abi::THREAD_START => ThreadStep::Start,
        abi::THREAD_JOIN => ThreadStep::Join,
        _ => return None,
    };
    Some(Op::Thread {
        handle: halves(raw),
        what,
    })
}

/// The number whose low half is in `fd` and whose high half is in `arg`.
pub fn halves(raw: &RawRecord<'_>) -> u64 {
    u64::from(raw.head.fd as u32) | u64::from(raw.head.arg as u32) << 32
}

/// A name, and an address in hexadecimal digits.
fn resolve(raw: &RawRecord<'_>) -> Option<Op> {
    let [name, digits] = raw.strings();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let address = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>();
    let sizes = [4, 16];
    let address = address.filter(|address| sizes.contains(&address.len()));
    Some(Op::Resolve {
        name: name.into(),
        address: address.unwrap_or_default().into(),
    })
}

/// The bytes of an address in an ENDS record: the size of `struct sockaddr_in6`.
const ADDRESS: usize = 28;

fn channel(raw: &RawRecord<'_>) -> Option<Op> {
    let h = &raw.head;
    let (fd, arg, aux) = (h.fd, h.arg, h.aux);
    let address = || raw.body.get(..aux as usize).unwrap_or(raw.body).into();
    Some(match h.op {
        op::PIPE => Op::Pipe {
            read: fd,
            write: arg,
            flags: aux,
        },
        op::SOCKET => Op::Socket {
            domain: fd,
            kind: arg,
        },
        op::SOCKETPAIR => Op::SocketPair {
            a: fd,
            b: arg,
            kind: aux,
        },
        op::CONNECT => Op::Connect {
            fd,
            kind: arg,
            address: address(),
        },
        op::BIND => Op::Bind {
            fd,
            address: address(),
        },
        op::ACCEPT => Op::Accept {
            fd,
            address: address(),
        },
        op::LISTEN => Op::Listen { fd },
        op::PASS => Op::Pass {
            socket: fd,
            fd: arg,
            received: aux == 1,
        },
        op::EVENTFD => Op::Eventfd { kind: arg },
        op::TRAFFIC => {
            let number = |at: usize| raw.body.get(at..)?.first_chunk().copied();
            Op::Traffic {
                fd,
                sent: number(0).map_or(0, u64::from_le_bytes),
                received: number(8).map_or(0, u64::from_le_bytes),
            }
        }
        op::DATAGRAM => Op::Datagram {
            fd,
            received: arg == 1,
            address: address(),
        },
        op::ENDS => {
            let network = raw.body.first_chunk().copied();
            let end = |at: usize| raw.body.get(at..at + ADDRESS).unwrap_or_default().into();
            Op::Ends {
                fd,
                accepted: arg == 1,
                network: network.map_or(0, u64::from_le_bytes),
                own: end(8),
                other: end(8 + ADDRESS),
            }
        }
        _ => return None,
    })
}

/// Operations with one or two strings.
fn named(raw: &RawRecord<'_>) -> Option<Op> {
    let h = &raw.head;
    let (dir, arg, aux) = (h.fd, h.arg, h.aux);
    let path = || raw.strings()[0].into();
    let two = || raw.strings().map(Into::into);
    Some(match h.op {
        op::OPEN => Op::Open {
            dir,
            path: path(),
            flags: arg,
            mode: aux,
        },
        op::TRUNCATE => Op::Truncate {
            fd: dir,
            path: path(),
        },
        op::STAT => Op::Stat {
            dir,
            path: path(),
            flags: arg,
        },
        op::ACCESS => Op::Access {
            dir,
            path: path(),
            mode: arg,
        },
        op::READLINK => Op::Readlink { dir, path: path() },
        op::RENAME => {
            let [from, to] = two();
            Op::Rename {
                from_dir: dir,
                from,
                to_dir: arg,
                to,
                flags: aux,
            }
        }
        op::LINK => {
            let [from, to] = two();
            Op::Link {
                from_dir: dir,
                from,
                to_dir: arg,
                to,
                flags: aux,
            }
        }
        op::SYMLINK => {
            let [target, path] = two();
            Op::Symlink { target, dir, path }
        }
        op::LINK_TEXT => {
            let [path, text] = two();
            Op::LinkText { dir, path, text }
        }
        op::UNLINK => Op::Unlink {
            dir,
            path: path(),
            directory: arg & AT_REMOVEDIR != 0,
        },
        op::MKDIR => Op::Mkdir { dir, path: path() },
        op::MKNOD => Op::Mknod {
            dir,
            path: path(),
            mode: aux,
        },
        op::META => Op::Meta {
            dir,
            path: path(),
            what: meta(arg),
            link: aux & AT_SYMLINK_NOFOLLOW != 0,
        },
        op::CHDIR => {
            let [path, now] = two();
            Op::Chdir { fd: dir, path, now }
        }
        op::CHROOT => Op::Chroot { path: path() },
        op::MOUNT => {
            let [source, target] = two();
            Op::Mount {
                source,
                target,
                unmounted: arg == 1,
                flags: aux,
            }
        }
        op::PIVOT => {
            let [new_root, put_old] = two();
            Op::Pivot { new_root, put_old }
        }
        op::MEMFD => Op::Memfd { name: path() },
        op::LOAD => Op::Load { path: path() },
        op::OPAQUE => Op::Opaque { name: path() },
        _ => return reported(raw),
    })
}

/// The supervisor's statements about files and processes.
fn reported(raw: &RawRecord<'_>) -> Option<Op> {
    let h = &raw.head;
    let path = || raw.strings()[0].into();
    Some(match h.op {
        op::IDENT => Op::Ident { path: path() },
        op::BORN => {
            let [exe, cwd] = raw.strings().map(Into::into);
            Op::Born {
                parent: h.arg as u32,
                exe,
                cwd,
            }
        }
        op::HOLD => Op::HeldDescriptor {
            fd: h.arg,
            flags: (h.aux & abi::HOLD_UNKNOWN == 0).then_some(h.aux as i32),
            target: path(),
        },
        op::KEPT => Op::Preserved {
            path: path(),
            number: h.arg,
            how: kept(h.aux),
        },
        _ => return stated(raw),
    })
}

/// A source's statements about its own activities and entities.
fn stated(raw: &RawRecord<'_>) -> Option<Op> {
    let h = &raw.head;
    let two = || raw.strings().map(Into::into);
    Some(match h.op {
        op::WORK => {
            let [what, text] = two();
            Op::Work {
                inside: u32::try_from(h.arg).ok().filter(|pid| *pid != 0),
                what,
                text,
            }
        }
        op::RESOURCE => Op::Resource {
            number: h.fd,
            access: resource_access(h.aux)?,
            name: raw.strings()[0].into(),
        },
        op::FACT => {
            let [kind, payload] = two();
            Op::Extended { kind, payload }
        }
        op::DESCRIBED => Op::Described(crate::statement::statement(raw)?),
        op::FUNCTION => {
            let [name, location] = two();
            let number = h.fd as u32;
            // The recorder, which writes the functions of interpreters, knows no types.
            let kind = (number & abi::FUNCTION_INTERPRETED == 0).then(|| raw.list().nth(2));
            Op::Function {
                number,
                name,
                location,
                kind: kind.flatten().unwrap_or_default().into(),
            }
        }
        op::VALUES => {
            let (values, pointers) = parted(raw.list());
            Op::Values {
                number: h.fd as u32,
                returned: h.arg != 0,
                values: values.into_iter().map(printed).collect(),
                pointers,
            }
        }
        op::CALLS => Op::Calls(function_steps(
            raw.body.get(..h.aux as usize).unwrap_or(raw.body),
        )),
        _ => return None,
    })
}

fn resource_access(aux: u32) -> Option<ResourceAccess> {
    match aux {
        abi::RESOURCE_READ => Some(ResourceAccess::Read),
        abi::RESOURCE_WRITE => Some(ResourceAccess::Write),
        abi::RESOURCE_CHANGE => Some(ResourceAccess::Change),
        abi::RESOURCE_DELETE => Some(ResourceAccess::Delete),
        _ => None,
    }
}

fn kept(aux: u32) -> Option<PreserveMethod> {
    match aux {
        abi::KEPT_LINK => Some(PreserveMethod::Link),
        abi::KEPT_CLONE => Some(PreserveMethod::Clone),
        abi::KEPT_COPY => Some(PreserveMethod::Copy),
        abi::KEPT_OWN_LINK => Some(PreserveMethod::OwnLink),
        _ => None,
    }
}

fn meta(arg: i32) -> MetadataPart {
    match arg {
        abi::META_MODE => MetadataPart::Mode,
        abi::META_OWNER => MetadataPart::Owner,
        abi::META_TIMES => MetadataPart::Times,
        _ => MetadataPart::Attributes,
    }
}
