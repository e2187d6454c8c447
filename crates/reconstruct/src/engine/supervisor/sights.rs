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

/// The bytes that a call on a file of the root moves.
struct NativeBytes {
    /// Their position in the file.
    at: u64,
    /// Writes go to the end of the file.
    appends: bool,
    bytes: Vec<u8>,
}

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
            let moved = self.native_bytes(call, direction).ok()?;
            Some((path, moved))
        });
        let Some((path, NativeBytes { at, appends, bytes })) = found else {
            return;
        };
        let path = path.as_os_str().as_bytes();
        let counter = match direction {
            Direction::Sent => {
                self.time_of_write(index, path, (!appends).then_some(at), bytes.len() as u64)
            }
            Direction::Received => None,
        };
        self.look(&Movement {
            process: index,
            resource: None,
            fd: call.int(0),
            object: String::from_utf8_lossy(path).into_owned(),
            direction,
            position: Some(at),
            counter: counter.unwrap_or_else(|| self.matchers[index].time()),
            bytes: &bytes,
        });
    }

    /// When the recorded write returned that a write to a file of the root is. `at`: its position,
    /// unless it appends. `None`: it was not recorded.
    fn time_of_write(
        &mut self,
        index: usize,
        path: &[u8],
        at: Option<u64>,
        length: u64,
    ) -> Option<u64> {
        let (streams, resources) = (&self.matchers[index].rest.streams, &self.resources);
        let files = streams.iter().filter_map(|(id, streams)| {
            let resource = &resources[*id];
            let is_file = resource.is_native() && resource.is_written;
            is_file.then_some((&resource.link[..], &streams.output))
        });
        let recorded =
            files.flat_map(|(path, output)| output.writes().map(move |write| (path, write)));
        let writes = &mut self.sought.as_mut()?.file_writes;
        writes.arrange(index, recorded);
        writes.take(index, path, at, length)
    }

    /// The bytes that a call on a file moves, and their position in the file.
    fn native_bytes(&self, call: &NotifiedCall, direction: Direction) -> io::Result<NativeBytes> {
        let file: File = self.copy_of(call, call.int(0))?.into();
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let appends = rustix::fs::fcntl_getfl(&file)?.contains(OFlags::APPEND);
        let at = match call.number {
            SYS_pread64 | SYS_pwrite64 | SYS_preadv | SYS_pwritev | SYS_preadv2 | SYS_pwritev2 => {
                call.args[3]
            }
            _ if appends => file.metadata()?.len(),
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
        Ok(NativeBytes { at, appends, bytes })
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
