//! Finishes the log of a run whose launcher, keeper and supervisor are all dead.

use crate::deep_sink::DeepPlan;
use crate::drain::{ChunkSelection, Drainer};
use crate::part_lock::{PartLock, locked, still_recording};
use crate::redact::Secrets;
use crate::{Error, clock};
use backstory_arena::{Arena, ChunkSupply, remove_sockets};
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Log, Reason, Writer};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Finishes the log `part` of a run that no process records any more, and finalizes it as `log`.
/// The contents of its arena, if one is given, are appended and the arena is removed. An arena
/// whose name is not that of this run is ignored. A foreign log may name any file, which must be
/// neither read nor removed. If another process is finishing the log, this call waits for it.
///
/// # Errors
///
/// A process still records into the log, or the log cannot be read, written or renamed.
pub fn recover(arena: Option<&Path>, part: &Path, log: &Path) -> Result<(), Error> {
    let lock = match PartLock::take(part) {
        Ok(PartLock::Taken(file)) => Ok(Some(file)),
        Ok(PartLock::Recording) => Err(still_recording(part)),
        Ok(PartLock::Finishing) => locked(part, FlockOperation::LockExclusive),
        Err(error) => Err(error),
    };
    match lock {
        Err(_) if is_finalized(part, log) => Ok(()),
        lock => finish(lock?, arena, part, log),
    }
}

fn is_finalized(part: &Path, log: &Path) -> bool {
    !part.exists() && log.exists()
}

/// Does the work of [`recover`], with the lock of the log.
pub(crate) fn finish(
    _lock: Option<File>,
    arena: Option<&Path>,
    part: &Path,
    log: &Path,
) -> Result<(), Error> {
    // Another process had the lock while this one opened the file.
    if is_finalized(part, log) {
        return Ok(());
    }
    let (end, same_boot, secrets, own, now, deep) = {
        let read = Log::open(part).map_err(Error::log("read", part))?;
        let here = backstory_sys::clock::boot_id();
        let secrets = Secrets::known_from(&read.header().environment);
        (
            read.end().cloned(),
            read.header().boot_id == here,
            secrets,
            Arena::name(&read.header().id),
            clock::now_in(read.header(), &here),
            DeepPlan::of(read.header(), log),
        )
    };
    let arena = arena.filter(|arena| own.as_deref() == Some(*arena));
    // A reboot invalidates shared memory and the time-stamp counter.
    let left = arena.filter(|arena| same_boot && arena.exists());
    if let Some(end) = end {
        finish_deep_log(left, part, deep, end)?;
    } else {
        let mut writer = Writer::reopen(part).map_err(Error::log("open", part))?;
        let mut end = RunEnd {
            command_ended: now,
            ended: now,
            incomplete_because: vec![Reason::Killed {}.to_string()],
            ..RunEnd::default()
        };
        match left.map(Arena::open) {
            Some(Ok(arena)) => {
                let stock = ChunkSupply::new(arena);
                stock.arena.close();
                let mut drainer =
                    Drainer::new(Arc::clone(&stock), writer, secrets).with_deep_log(deep);
                drainer.pass(ChunkSelection::Last);
                drainer.end_deep_log_early(&Reason::Killed {});
                drainer.finish(|drainer| RunEnd {
                    lost: drainer.lost(),
                    warnings: drainer.deep_warnings(),
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
        remove_sockets(arena);
    }
    Ok(())
}

/// Finishes the deep log of a run whose log has its end: the process that finished it was killed.
fn finish_deep_log(
    arena: Option<&Path>,
    part: &Path,
    deep: Option<DeepPlan>,
    end: RunEnd,
) -> Result<(), Error> {
    // Without its arena the deep log is cut off, which its readers say.
    let (Some(Ok(arena)), Some(_)) = (arena.map(Arena::open), &deep) else {
        return Ok(());
    };
    let writer = Writer::reopen(part).map_err(Error::log("open", part))?;
    let stock = ChunkSupply::new(arena);
    stock.arena.close();
    let mut drainer = Drainer::new(stock, writer, Secrets::default()).with_deep_log(deep);
    drainer.end_deep_log();
    drainer.add_deep_warnings(end);
    Ok(())
}
