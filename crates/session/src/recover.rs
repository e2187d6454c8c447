//! Finishes the log of a run whose launcher, keeper and supervisor are all dead.

use crate::drain::{ChunkSelection, Drainer};
use crate::redact::Secrets;
use crate::{Error, clock};
use backstory_arena::Arena;
use backstory_arena::ChunkSupply;
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Log, Reason, Writer};
use backstory_files::regular;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Marks a log as being recorded, as long as the descriptor or a forked copy of it lives.
pub(crate) fn claim(part: &Path) -> Result<File, Error> {
    let file = regular::open(part).map_err(Error::file("open", part))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::StillRecording {
            path: part.to_owned(),
        }),
        // The file system has no locks. Recording goes on without the mark.
        Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            Ok(file)
        }
        Err(error) => Err(Error::file("lock", part)(error.into())),
    }
}

/// True if a process records into this log.
pub fn is_recording(part: &Path) -> bool {
    matches!(claim(part), Err(Error::StillRecording { .. }))
}

/// Finishes the log `part` of a run that no process records any more, and finalizes it as `log`.
/// The contents of its arena, if one is given, are appended and the arena is removed. An arena
/// whose name is not that of this run is ignored. A foreign log may name any file, which must be
/// neither read nor removed.
pub fn recover(arena: Option<&Path>, part: &Path, log: &Path) -> Result<(), Error> {
    let _claim = claim(part)?;
    let (ended, same_boot, secrets, own, now) = {
        let read = Log::open(part).map_err(Error::log("read", part))?;
        let here = backstory_sys::clock::boot_id();
        let secrets = Secrets::known_from(&read.header().environment);
        (
            read.end().is_some(),
            read.header().boot_id == here,
            secrets,
            Arena::name(&read.header().id),
            clock::now_in(read.header(), &here),
        )
    };
    let arena = arena.filter(|arena| own.as_deref() == Some(*arena));
    if !ended {
        let mut writer = Writer::reopen(part).map_err(Error::log("open", part))?;
        let mut end = RunEnd {
            command_ended: now,
            ended: now,
            incomplete_because: vec![Reason::Killed {}.to_string()],
            ..RunEnd::default()
        };
        // A reboot invalidates shared memory and the time-stamp counter.
        match arena.filter(|a| same_boot && a.exists()).map(Arena::open) {
            Some(Ok(arena)) => {
                let stock = ChunkSupply::new(arena);
                stock.arena.close();
                let mut drainer = Drainer::new(Arc::clone(&stock), writer, secrets);
                drainer.pass(ChunkSelection::All);
                drainer.finish(|drainer| RunEnd {
                    lost: drainer.lost(),
                    ..end.clone()
                });
                drainer.sync();
                if let Some(failure) = drainer.failure() {
                    return Err(Error::file("finish", part)(io::Error::other(
                        failure.to_owned(),
                    )));
                }
            }
            Some(Err(backstory_arena::Error::Damaged { .. })) => {
                end.incomplete_because
                    .push(Reason::ArenaDamaged {}.to_string());
                writer.end(&end).map_err(Error::log("write", part))?;
            }
            Some(Err(error)) => return Err(error.into()),
            None => writer.end(&end).map_err(Error::log("write", part))?,
        }
    }
    std::fs::rename(part, log).map_err(Error::file("finalize", part))?;
    if let Some(arena) = arena {
        // It may be gone already.
        let _ = std::fs::remove_file(arena);
    }
    Ok(())
}
