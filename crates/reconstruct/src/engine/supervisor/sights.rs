//! The bytes that enter and leave, for the search of a text. Nothing is done without one.

use super::Supervisor;
use crate::engine::caller::{NotifiedCall, room};
use crate::resource::ResourceId;
use crate::sighting::{Direction, MOST, Movement, Sighting, excerpt};
use libc::{SYS_pread64, SYS_preadv, SYS_preadv2, SYS_pwrite64, SYS_pwritev, SYS_pwritev2};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

/// Most bytes of one call on a file of the root that are looked at.
const MOST_BYTES: usize = 1 << 24;

impl Supervisor {
    /// Bytes of a virtual resource move.
    pub(super) fn sees(
        &mut self,
        fd: i32,
        index: usize,
        id: ResourceId,
        direction: Direction,
        bytes: &[u8],
    ) {
        if self.sought.is_none() {
            return;
        }
        let matcher = &mut self.matchers[index];
        let now = matcher.time();
        let streams = matcher.streams(id);
        let (position, counter) = match direction {
            Direction::Received => {
                let after = streams.input.position();
                (
                    after.checked_sub(bytes.len() as u64),
                    streams.input.last_time(),
                )
            }
            Direction::Sent => {
                let output = &streams.output;
                (Some(output.position()), output.next_time().unwrap_or(now))
            }
        };
        self.look(&Movement {
            process: index,
            resource: Some(id),
            fd,
            object: self.resources[id].label(),
            direction,
            position,
            counter,
            bytes,
        });
    }

    /// A call that the kernel makes on a file of the root. Its bytes are those in the program's
    /// memory, or those in the file.
    pub(super) fn sees_native(&mut self, call: &NotifiedCall, index: usize, direction: Direction) {
        if self.sought.is_none() {
            return;
        }
        let link = std::fs::read_link(format!("/proc/{}/fd/{}", call.tid, call.int(0)));
        // An object without a path is no file.
        let path = link.ok().filter(|path| path.is_absolute());
        let found = path.and_then(|path| {
            let (at, bytes) = self.native_bytes(call, direction).ok()?;
            Some((path, at, bytes))
        });
        let Some((path, at, bytes)) = found else {
            return;
        };
        self.look(&Movement {
            process: index,
            resource: None,
            fd: call.int(0),
            object: String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned(),
            direction,
            position: Some(at),
            counter: self.matchers[index].time(),
            bytes: &bytes,
        });
    }

    /// The bytes that a call on a file moves, and their position in the file.
    fn native_bytes(
        &self,
        call: &NotifiedCall,
        direction: Direction,
    ) -> io::Result<(u64, Vec<u8>)> {
        let file: File = self.copy_of(call, call.int(0))?.into();
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = match call.number {
            SYS_pread64 | SYS_pwrite64 | SYS_preadv | SYS_pwritev | SYS_preadv2 | SYS_pwritev2 => {
                call.args[3]
            }
            _ if rustix::fs::fcntl_getfl(&file)?.contains(OFlags::APPEND) => file.metadata()?.len(),
            _ => rustix::fs::tell(&file)?,
        };
        let (buffers, _) = self.buffers(call)?;
        let mut bytes = match direction {
            Direction::Sent => call.gather(&buffers)?,
            Direction::Received => {
                let mut bytes = vec![0; room(&buffers).min(MOST_BYTES)];
                let count = file.read_at(&mut bytes, at)?;
                bytes.truncate(count);
                bytes
            }
        };
        bytes.truncate(MOST_BYTES);
        Ok((at, bytes))
    }

    fn look(&mut self, moved: &Movement<'_>) {
        let Some(search) = &mut self.sought else {
            return;
        };
        for at in search.look(moved) {
            if self.result.sightings.len() == MOST {
                self.result.more_sightings += 1;
                continue;
            }
            let recorded = &self.matchers[moved.process].rest;
            let sighting = Sighting {
                process: moved.process,
                pid: recorded.pid,
                program: String::from_utf8_lossy(&recorded.start.program).into_owned(),
                request: self.request_at(moved),
                direction: moved.direction,
                fd: moved.fd,
                object: moved.object.clone(),
                position: moved.position.and_then(|from| from.checked_add_signed(at)),
                counter: moved.counter,
                bytes: excerpt(moved.bytes, at),
            };
            self.result.sightings.push(sighting);
        }
    }

    /// The number of the request that a call belongs to, from 1: the one on its connection, else
    /// the one that its process worked on.
    fn request_at(&self, moved: &Movement<'_>) -> Option<usize> {
        let within = |own: bool| {
            let mut units = self.units.iter();
            units.position(|unit| {
                unit.is_some_and(|unit| {
                    (!own || Some(unit.connection) == moved.resource)
                        && (own || unit.process == moved.process)
                        && unit.began <= moved.counter
                        && moved.counter <= unit.lasts
                })
            })
        };
        within(true).or_else(|| within(false)).map(|at| at + 1)
    }
}
