//! Tells a tool where a descriptor leads, and where the last call on it moved bytes.
//!
//! In: a call that no kernel has, from a tool in the program's own process (`bytes/c/places.h`).
//! Out: the recorded resource of a stand-in, or the file of the root. A tool that asked by `fstat`
//! would take the answers that belong to the program.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::filter::PLACE;
use crate::engine::proc_texts::field;
use crate::process::RecordedProcess;
use crate::resource::{Resource, ResourceId};
use crate::sighting::Direction;
use backstory_abi::simulator_calls::{SimulatedCall, active_calls};
use libc::{EBADF, S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK};
use libc::{
    SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_exit_group, SYS_fork, SYS_socketpair,
    SYS_vfork,
};
use rustix::fs::stat;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;

/// The device of recorded resources that have no device and inode of their own: "deep".
const RECORDED: u64 = 0x6465_6570;
/// Added to the number of a socket whose sender is not in the run.
const RECEIVED: u64 = 1 << 32;
/// The generation of a socket that is one direction of a connection.
const CHANNEL: u64 = 1;
/// The length of the path in an answer, with its NUL.
const PATH: usize = 4096;

/// The question of a tool that starts the program: `Asked` in `bytes/c/places.h`.
const STARTED: u64 = 3;
/// Kinds of entities, as in the engine's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Pipe,
    Socket,
    Device,
}

/// An answer: `Place` in `bytes/c/places.h`.
#[derive(Debug)]
struct Place {
    kind: Kind,
    /// Device, inode, generation.
    ident: (u64, u64, u64),
    offset: u64,
    /// Size, modification time (s, ns).
    status: (u64, u64, u64),
    is_native: bool,
    path: Vec<u8>,
}

/// Where each thread's last call moved bytes.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// There is a tool that may ask.
    asked: bool,
    /// The other ends of pairs of sockets.
    peers: HashMap<ResourceId, ResourceId>,
    moved: HashMap<(u32, Direction), (ResourceId, u64)>,
}

impl Places {
    /// Nothing has moved yet.
    pub fn of(processes: &[RecordedProcess], asked: bool) -> Places {
        let pairs = |process: &RecordedProcess| {
            let pairs = process.pairs.get(&(SYS_socketpair as u16));
            let pairs = pairs.into_iter().flatten();
            pairs.map(|(pair, _)| *pair).collect::<Vec<_>>()
        };
        let all = processes.iter().filter(|_| asked).flat_map(pairs);
        Places {
            asked,
            peers: all
                .flat_map(|(one, two)| [(one, two), (two, one)])
                .collect(),
            moved: HashMap::new(),
        }
    }

    /// A new call of a thread.
    pub fn begin(&mut self, call: &NotifiedCall) {
        if self.asked && call.number != PLACE {
            for direction in [Direction::Received, Direction::Sent] {
                self.moved.remove(&(call.tid, direction));
            }
        }
    }

    /// The thread's call moves bytes at this position. Of several messages, the first one counts.
    pub fn moved(&mut self, call: &NotifiedCall, how: Direction, id: ResourceId, position: u64) {
        if self.asked {
            let key = (call.tid, how);
            self.moved.entry(key).or_insert((id, position));
        }
    }
}

fn kind_of(mode: u32) -> Option<Kind> {
    match mode & S_IFMT {
        S_IFREG => Some(Kind::File),
        S_IFIFO => Some(Kind::Pipe),
        S_IFSOCK => Some(Kind::Socket),
        S_IFCHR | S_IFBLK => Some(Kind::Device),
        _ => None,
    }
}

impl Place {
    fn bytes(&self) -> Vec<u8> {
        let (device, inode, generation) = self.ident;
        let (size, seconds, ns) = self.status;
        let native = u64::from(self.is_native);
        let kind = self.kind as u64;
        let words = [
            kind,
            device,
            inode,
            generation,
            self.offset,
            size,
            seconds,
            ns,
            native,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.path.iter().take(PATH - 1));
        bytes.push(0);
        bytes
    }
}

impl Supervisor {
    /// A call of a tool that will load this program. True if it says that the program starts.
    pub(super) fn starts(&mut self, call: &NotifiedCall, index: usize) -> bool {
        let says = self.follows_bytes && call.number == PLACE && call.args[1] == STARTED;
        if says {
            self.loaded(call, index, call.args[2]);
        }
        says
    }

    /// True for a call that the program makes, and false for one of the tool that it runs under.
    /// Processes are made and ended by either.
    pub(super) fn is_programs(&self, call: &NotifiedCall) -> bool {
        let Some(list) = self.calls_under_way(call) else {
            return true;
        };
        if matches!(
            call.number,
            PLACE
                | SYS_fork
                | SYS_vfork
                | SYS_clone
                | SYS_clone3
                | SYS_execve
                | SYS_execveat
                | SYS_exit_group
        ) {
            return true;
        }
        is_listed(call, list).unwrap_or(false)
    }

    /// The answer about a descriptor. `EBADF`: it carries no bytes.
    pub(super) fn place(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        let how = match call.args[1] {
            1 => Direction::Sent,
            _ => Direction::Received,
        };
        let found = match self.ends(call) {
            Some(ends) if how == Direction::Sent => self.recorded_place(call, ends.write, how),
            Some(ends) => self.recorded_place(call, ends.read, how),
            None => native_place(call)?,
        };
        let Some(place) = found else {
            return Ok(Response::Errno(EBADF));
        };
        call.put(call.args[2], &place.bytes())?;
        Ok(Response::Value(0))
    }

    fn recorded_place(&self, call: &NotifiedCall, id: ResourceId, how: Direction) -> Option<Place> {
        let resource = &self.resources[id];
        // The kind is not known if the record has no use of it.
        let kind = kind_of(resource.kind)?;
        let moved = self.places.moved.get(&(call.tid, how));
        let offset = moved.filter(|(moved, _)| *moved == id);
        Some(Place {
            kind,
            ident: self.identity(id, resource, kind, how),
            offset: offset.map_or(0, |(_, position)| *position),
            status: (0, 0, 0),
            is_native: false,
            path: match &resource.peer {
                Some(peer) => peer.clone().into_bytes(),
                None if !resource.link.is_empty() => resource.link.clone(),
                None => resource.name.clone(),
            },
        })
    }

    /// The bytes that one end of a connection sends are one entity for both ends.
    fn identity(
        &self,
        id: ResourceId,
        resource: &Resource,
        kind: Kind,
        how: Direction,
    ) -> (u64, u64, u64) {
        let number = |id: ResourceId| id as u64 + 1;
        match (kind, resource.ident, how) {
            (Kind::File | Kind::Device, Some((device, inode)), _) => (device, inode, 0),
            (Kind::Socket, _, Direction::Sent) => (RECORDED, number(id), CHANNEL),
            (Kind::Socket, _, Direction::Received) => match self.places.peers.get(&id) {
                Some(peer) => (RECORDED, number(*peer), CHANNEL),
                None => (RECORDED, RECEIVED | number(id), CHANNEL),
            },
            _ => (RECORDED, number(id), 0),
        }
    }
}

/// True if a tool's list of calls has this one. Valgrind may replace its arguments from the third
/// on.
fn is_listed(call: &NotifiedCall, list: u64) -> io::Result<bool> {
    let calls = active_calls(|at, to: &mut [u8]| {
        let bytes = call.bytes(list + at as u64, to.len())?;
        to.copy_from_slice(&bytes);
        io::Result::Ok(())
    })?;
    let is_same =
        |one: &SimulatedCall| one.number == call.number as u64 && one.args[..2] == call.args[..2];
    Ok(calls.iter().any(is_same))
}

/// The place of an object that the kernel answers for.
fn native_place(call: &NotifiedCall) -> io::Result<Option<Place>> {
    let fd = call.int(0);
    let link = format!("/proc/{}/fd/{fd}", call.tid);
    let Ok(found) = stat(&link) else {
        return Ok(None);
    };
    let Some(kind) = kind_of(found.st_mode) else {
        return Ok(None);
    };
    let path = fs::read_link(&link)?.into_os_string().into_vec();
    let info = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", call.tid))?;
    let position = field(&info, "pos").and_then(|position| position.parse().ok());
    Ok(Some(Place {
        kind,
        ident: (found.st_dev, found.st_ino, 0),
        offset: position.unwrap_or(0),
        status: (
            found.st_size.max(0) as u64,
            found.st_mtime.max(0) as u64,
            found.st_mtime_nsec,
        ),
        is_native: true,
        path: match path.starts_with(b"/") {
            true => path,
            false => Vec::new(),
        },
    }))
}
