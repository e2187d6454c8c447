//! Stores the contents of a run's files after the run was indexed. This is the last step for a run,
//! and runs in the background.
//!
//! For each version that the run read, executed or left behind:
//!
//! 1. If the file at its path still is that version, its content is stored from there.
//! 2. Else the content is stored from the file that was preserved during the recording
//!    (`runs/ID.kept/N`).
//! 3. Else a fact says why the content is not stored.
//!
//! The limits of `config.toml` and a default budget bound what is stored ([`allowance`]). If the
//! budget is used up, the least valuable contents of the store make room, once for each run.
//!
//! A file that a package owns and verifies is named, not stored. A file that a package owns but
//! cannot verify is named and stored. A large content that another content-addressed store has is
//! left there ([`holders`]). Facts refer to identities, so that a file with a known identity is
//! not read again.
//!
//! Invariants: a fact is added after its content is durable. The run's preserved files are removed
//! once all facts are durable, and the run is done once its directory snapshot is added after that.
//! The process can therefore be killed at any moment, and the next one continues. A run that is
//! done has no preserved files, unless they could not be removed. That is reported. One process per
//! store does this at a time.

mod allowance;
mod former;
mod holders;
mod opened_files;
mod snapshot;
mod source;
mod uses;
mod wanted;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_contents::{self as contents, Contents};
use backstory_eventlog::{self as eventlog, Log};
use backstory_files::{Digest, Ident, VersionId};
use backstory_packages::{ContentStores, Packages};
use backstory_store::facts::{Availability, DirectorySnapshot, Fact, Journal, JournalRecord};
use backstory_store::{self as store, Home, RunRecord, Store, same_version};
use backstory_workflow::paths::is_history;
use rustc_hash::FxHashSet;

use crate::commands::store::contents_budget;
use crate::error::complain;
use crate::index::{self, Busy, take_lock};
use crate::shell_policy::{ContentLimits, ShellPolicy};
use crate::text::progress::{Progress, Unit};
use allowance::{Allowance, Denial};
use former::FormerVersions;
use opened_files::OpenedFiles;
use snapshot::UsedPaths;
use source::{Changed, Source};
use wanted::{Preserved, Wanted};

/// Facts that are added at once, with one sync of the contents and one of the journal. After a sync
/// the contents are opened again, which takes longer the more contents the store has.
const BATCH: usize = 4096;

/// Bytes of contents after which facts are added, however few they are.
const BATCH_BYTES: u64 = 256 << 20;

/// Why contents could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The contents failed.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] eventlog::Error),
    /// The lock could not be taken.
    #[error(transparent)]
    Lock(#[from] index::Error),
    /// The budget is used up, and contents may make room.
    #[error("the store's contents have reached their limit")]
    Full,
    /// The preserved files could not be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The runs whose contents were not looked at yet. A run that others recorded into a shared
/// database has its log, and its contents, in their directory.
pub fn waiting(home: &Home, store: &dyn Store) -> store::Result<Vec<RunRecord>> {
    let mut runs = store.runs_without_contents()?;
    runs.retain(|run| home.log_path(&run.header.id).exists());
    Ok(runs)
}

/// Stores the contents of all pending runs.
pub fn bring_up_to_date(home: &Home, store: &mut dyn Store, busy: Busy) -> Result<(), Error> {
    store::catch_up(home, store)?;
    if waiting(home, store)?.is_empty() {
        return Ok(());
    }
    let what = "waiting for another backstory process to store contents";
    let Some(_lock) = take_lock(home.keep_lock_path(), busy, what)? else {
        return Ok(());
    };
    store::catch_up(home, store)?;
    let mut packages = Packages::indexed(Path::new("/"), &home.packages_path());
    let limits = ShellPolicy::load().contents;
    // The oldest first: a later run may have changed the files of an earlier one.
    for run in waiting(home, store)? {
        match store_run(home, store, &run, &mut packages, &limits, OnFull::MakeRoom) {
            Err(Error::Full) => {
                // A damaged chain of seals refuses removals. The run is stored as far as it fits.
                if let Err(failure) = contents_budget::make_room(home, store, &limits) {
                    complain(&format!("cannot make room for contents: {}", failure.line));
                }
                store_run(home, store, &run, &mut packages, &limits, OnFull::Refuse)?;
            }
            stored => stored?,
        }
    }
    Ok(())
}

/// The choice once the budget of the store is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFull {
    /// The run is left for now ([`Error::Full`]).
    MakeRoom,
    /// The content is not stored.
    Refuse,
}

/// Stores the contents of one run.
fn store_run(
    home: &Home,
    store: &mut dyn Store,
    run: &RunRecord,
    packages: &mut Packages,
    limits: &ContentLimits,
    on_full: OnFull,
) -> Result<(), Error> {
    let id = &run.header.id;
    let log = Log::open(home.log_path(id))?;
    let preserved = wanted::preserved(&log);
    let wanted = wanted::of(store, run, &preserved)?;
    let what = format!("storing the contents of run {id}");
    let progress = Progress::of(&what, wanted.versions.len() as u64, Unit::Things);
    let mut by_state: HashMap<VersionId, Vec<Preserved>> = HashMap::new();
    for kept in preserved {
        by_state
            .entry(kept.ident.version_id())
            .or_default()
            .push(kept);
    }
    let contents = Contents::create(&home.contents_dir())?;
    let used = contents.disk()?;
    let mut writer = ContentsWriter {
        allowance: Allowance::of(limits, home.dir(), used),
        on_full,
        has_places: contents.has_places(),
        contents,
        journal: Journal::open(&home.facts_path())?,
        packages,
        stores: ContentStores::default(),
        self_contained: run.header.modes.self_contained,
        ended: run.end.ended.max(run.end.command_ended),
        contents_dir: home.contents_dir(),
        kept_dir: home.kept_dir(id),
        preserved: by_state,
        gathered: Vec::new(),
        put: 0,
        opened: OpenedFiles::default(),
        buffer: Vec::new(),
        seen: FxHashSet::default(),
        former: FormerVersions::default(),
    };
    for version in wanted.versions {
        if let Err(error) = writer.version(store, &version) {
            // The next attempt finds facts about all that was stored.
            writer.flush()?;
            store::catch_up(home, store)?;
            return Err(error);
        }
        progress.done.add(1);
    }
    writer.flush()?;
    let places = snapshot::around(&UsedPaths {
        all: &wanted.paths,
        listed: &wanted.listed,
        looked: &wanted.looked,
        opened: writer.opened.paths(),
    });
    let removed = remove_preserved(home.kept_dir(id));
    // If the removal failed, the run is done all the same. Another attempt would fail, too.
    let run = id.clone();
    writer
        .journal
        .append(&[JournalRecord::Run(DirectorySnapshot {
            run,
            entries: places,
        })])?;
    store::catch_up(home, store)?;
    removed?;
    progress.end();
    Ok(())
}

/// Removes the preserved files of a run. All facts about them are durable.
fn remove_preserved(path: PathBuf) -> Result<(), Error> {
    match fs::remove_dir_all(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Remove { path, source })
        }
        _ => Ok(()),
    }
}

/// Contents of at least this size are stored only if the disk has room.
const LARGE: u64 = 256 << 10;
const NO_ROOM: &str = "its content takes more than half of the free space on the store's disk";

struct ContentsWriter<'a> {
    allowance: Allowance,
    on_full: OnFull,
    contents: Contents,
    journal: Journal,
    packages: &'a mut Packages,
    stores: ContentStores,
    /// An earlier run left contents in other stores.
    has_places: bool,
    self_contained: bool,
    /// The time at which the run had ended.
    ended: i64,
    contents_dir: PathBuf,
    kept_dir: PathBuf,
    /// Several files can have the same state: a file that was linked, and a later one with the same
    /// inode number.
    preserved: HashMap<VersionId, Vec<Preserved>>,
    /// Facts that are not in the journal yet.
    gathered: Vec<JournalRecord>,
    /// Bytes of contents that were stored since the last flush.
    put: u64,
    opened: OpenedFiles,
    /// The content of a small file.
    buffer: Vec<u8>,
    /// Versions of this run that were examined.
    seen: FxHashSet<VersionId>,
    former: FormerVersions,
}

impl ContentsWriter<'_> {
    /// Stores one version, and adds a fact about it.
    fn version(&mut self, store: &dyn Store, wanted: &Wanted) -> Result<(), Error> {
        let ident = wanted.ident;
        if !self.seen.insert(ident.version_id()) {
            return Ok(());
        }
        let known = store.fact(&ident)?;
        if let Some(fact) = known
            && (self.is_enough(&fact)? || self.move_here(&fact)?)
        {
            return Ok(());
        }
        let (digest, held) = self.find(store, wanted)?;
        self.gathered.push(JournalRecord::Fact(Fact {
            ident,
            digest,
            availability: held,
        }));
        if self.gathered.len() >= BATCH || self.put >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn is_enough(&self, fact: &Fact) -> Result<bool, Error> {
        Ok(match fact.availability {
            Availability::Stored | Availability::StoredPackage(_) => !self.is_to_move_here(fact)?,
            Availability::Package(_) => !self.self_contained,
            Availability::Missing(_) => false,
        })
    }

    fn find(
        &mut self,
        store: &dyn Store,
        wanted: &Wanted,
    ) -> Result<(Option<Digest>, Availability), Error> {
        let mut names = wanted.paths.iter();
        if names.any(|path| is_history(path.as_os_str().as_bytes())) {
            let why = "the history of a shell is not stored".to_owned();
            return Ok((None, Availability::Missing(why)));
        }
        let mut why = String::new();
        for path in &wanted.paths {
            match self.opened.open(path, &wanted.ident, self.ended) {
                Ok(source) => match self.put(store, wanted, source, Some(path)) {
                    Err(Changed::Meanwhile) => {
                        why = "it was changed while it was being stored".to_owned()
                    }
                    Err(Changed::Unreadable(error)) => why = format!("it cannot be read: {error}"),
                    Err(Changed::NoRoom) => why = NO_ROOM.to_owned(),
                    Err(Changed::Failed(error)) => return Err(error.into()),
                    Err(Changed::Denied(denial)) => return self.denied(denial),
                    Ok(found) => return Ok(found),
                },
                Err(reason) if why.is_empty() => why = reason,
                Err(_) => {}
            }
        }
        let alike = self
            .preserved
            .get(&wanted.ident.version_id())
            .cloned()
            .unwrap_or_default();
        let of_it = alike
            .into_iter()
            .filter(|kept| same_version(&kept.ident, &wanted.ident));
        for kept in of_it {
            let Ok(number) = kept.number else {
                why = format!(
                    "it was changed, and could not be preserved before that: {}",
                    kept.why()
                );
                continue;
            };
            match source::open_preserved(&self.kept_dir.join(number.to_string()), &kept) {
                Ok(source) => match self.put(store, wanted, source, None) {
                    Err(Changed::Failed(error)) => return Err(error.into()),
                    Err(Changed::NoRoom) => why = NO_ROOM.to_owned(),
                    Err(Changed::Denied(denial)) => return self.denied(denial),
                    Err(_) => why = "its preserved copy was changed".to_owned(),
                    Ok(found) => return Ok(found),
                },
                Err(reason) => why = reason,
            }
        }
        Ok((None, Availability::Missing(why)))
    }

    /// The fact about a content that a limit forbids.
    fn denied(&self, denial: Denial) -> Result<(Option<Digest>, Availability), Error> {
        match denial {
            Denial::Full(_) if self.on_full == OnFull::MakeRoom => Err(Error::Full),
            Denial::Full(why) | Denial::OverLimit(why) => Ok((None, Availability::Missing(why))),
        }
    }

    /// Stores the content of `source`, or names the package that owns it.
    fn put(
        &mut self,
        store: &dyn Store,
        wanted: &Wanted,
        mut source: Source,
        path: Option<&Path>,
    ) -> Result<(Option<Digest>, Availability), Changed> {
        let real = path.and_then(|path| self.opened.real_path(path, &source));
        let package = match &real {
            Some(path) => self.package(&mut source, path)?,
            None => None,
        };
        let held = match package {
            Some((package, Some(digest))) if !self.self_contained => {
                return Ok((Some(digest), Availability::Package(package)));
            }
            Some((package, _)) => Availability::StoredPackage(package),
            None => {
                let left = real.map(|path| self.left_elsewhere(&mut source, &path));
                if let Some(digest) = left.transpose()?.flatten() {
                    return Ok((Some(digest), Availability::Stored));
                }
                Availability::Stored
            }
        };
        let named = wanted.paths.first().map(PathBuf::as_path);
        let contents = &self.contents;
        self.allowance.check(named, source.size(), || {
            let measured = contents.sync().and_then(|()| contents.disk());
            measured.map_err(Changed::Failed)
        })?;
        self.has_room(source.size())?;
        let mut former = || self.former.digest(store, wanted);
        let small = source.read_small(&mut self.buffer)?;
        let put = match small {
            Some(content) => self.contents.put_bytes_after(content, &mut former),
            None => self.contents.put_after(&mut source, &mut former),
        };
        let (digest, size) = put.map_err(|error| match error {
            contents::Error::Source(error) => Changed::Unreadable(error),
            error => Changed::Failed(error),
        })?;
        self.put += size;
        self.allowance.add(named, size);
        if small.is_none() {
            // A content that was stored in vain has no reference, and `gc` removes it.
            source.check()?;
        }
        Ok((Some(digest), held))
    }

    /// Checks that a large content takes at most half of the free space.
    fn has_room(&self, size: u64) -> Result<(), Changed> {
        if size < LARGE {
            return Ok(());
        }
        let room = rustix::fs::statvfs(&self.contents_dir)
            .map_err(|error| Changed::Unreadable(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        match free / 2 < size {
            true => Err(Changed::NoRoom),
            false => Ok(()),
        }
    }

    /// Makes contents durable, then adds the facts about them.
    fn flush(&mut self) -> Result<(), Error> {
        self.contents.sync()?;
        self.put = 0;
        if !self.gathered.is_empty() {
            self.journal.append(&self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }
}

/// Why two identities differ, in words.
fn differs(now: &Ident, then: &Ident) -> &'static str {
    match () {
        () if (now.dev, now.ino) != (then.dev, then.ino) => "another file is at its path now",
        () if (now.size, now.mtime) != (then.size, then.mtime) => "it was changed after the run",
        () if now.birth != then.birth => "another file has its inode now",
        () => "its status was changed after the run, and perhaps its content",
    }
}
