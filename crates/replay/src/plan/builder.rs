//! Collects the entries of a plan: for each path before the run, the place of its content.
//!
//! A content comes from the store, from a package or unchanged file on this machine, or is missing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use backstory_contents::Contents;
use backstory_eventlog::event::Bytes;
use backstory_files::regular;
use backstory_graph::model::EntityKind;
use backstory_store::Store;
use backstory_store::facts::Looked;
use backstory_workflow::paths::to_path;

use super::initial_state::{InitialPath, InitialState, is_plain};
use super::{Deviations, EntrySource, PlanEntry};
use crate::{Error, Result};

/// The kernel's limit of links in one path.
pub(super) const MOST_LINKS: usize = 40;

/// Collects the entries of a plan.
pub struct PlanBuilder<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) contents: Option<Contents>,
    pub(super) deviations: &'s Deviations,
    cwd: Vec<u8>,
    pub(super) entries: BTreeMap<Vec<u8>, PlanEntry>,
    pub(super) also: Vec<PlanEntry>,
    pub(super) lacking: Vec<(Bytes, String)>,
    pub(super) notes: Vec<String>,
    pub(super) orders: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Names of hard links in listed directories, with their inodes.
    pub(super) shared: Vec<(u64, Vec<u8>)>,
}

impl<'s> PlanBuilder<'s> {
    /// A plan without entries. `cwd`: the base of relative paths in `deviations`.
    pub fn new(
        store: &'s dyn Store,
        contents: &Path,
        deviations: &'s Deviations,
        cwd: &[u8],
    ) -> Result<PlanBuilder<'s>> {
        let contents = match Contents::open(contents) {
            Ok(contents) => Some(contents),
            Err(backstory_contents::Error::None(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(PlanBuilder {
            store,
            contents,
            deviations,
            cwd: cwd.to_vec(),
            entries: BTreeMap::new(),
            also: Vec::new(),
            lacking: Vec::new(),
            notes: Vec::new(),
            orders: Vec::new(),
            shared: Vec::new(),
        })
    }

    /// Adds directories and links, and the directories above them.
    pub fn places(&mut self, first: &InitialState) {
        for place in first.places.iter().filter(|place| is_plain(&place.path)) {
            let what = match &place.target {
                Some(target) => EntrySource::Link(target.to_vec()),
                None => EntrySource::Directory,
            };
            let mtime = if place.target.is_some() {
                place.mtime
            } else {
                0
            };
            self.put(&place.path, what, place.mode & 0o7777, mtime);
        }
        let cwd = self.cwd.clone();
        self.directories_to(&cwd);
        for directory in &first.stood {
            let real = self.real(directory);
            self.directories_to(&real);
        }
    }

    /// The path with the planned links resolved.
    pub fn real(&self, path: &[u8]) -> Vec<u8> {
        let mut rest: Vec<Vec<u8>> = parts(path);
        let mut at: Vec<u8> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match &*part {
                b"" | b"." => continue,
                b".." => {
                    let up = at.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                    at.truncate(up);
                    continue;
                }
                _ => {}
            }
            let next = [&at[..], b"/", &part].concat();
            match self.entries.get(&next).map(|entry| &entry.what) {
                Some(EntrySource::Link(target)) if links < MOST_LINKS => {
                    links += 1;
                    if target.starts_with(b"/") {
                        at.clear();
                    }
                    rest.extend(parts(target));
                }
                _ => at = next,
            }
        }
        at
    }

    /// Adds a directory and all directories above it.
    pub(super) fn directories_to(&mut self, path: &[u8]) {
        let ends: Vec<usize> = (1..=path.len())
            .filter(|&at| at == path.len() || path[at] == b'/')
            .collect();
        for end in ends {
            let part = &path[..end];
            if !self.entries.contains_key(part) && part != b"/" && !part.is_empty() {
                let now = fs::symlink_metadata(to_path(part));
                let mode = now.map_or(0o755, |now| now.mode() & 0o7777);
                self.put(part, EntrySource::Directory, mode, 0);
            }
        }
    }

    pub(super) fn put(&mut self, path: &[u8], what: EntrySource, mode: u32, mtime: i64) {
        let path = match what {
            // The directory of a link is resolved, the link itself is not.
            EntrySource::Link(_) => {
                let name = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                [&self.real(&path[..name])[..], &path[name..]].concat()
            }
            _ => self.real(path),
        };
        // The root directory always exists.
        if path.is_empty() {
            return;
        }
        self.entries.insert(
            path.clone(),
            PlanEntry {
                path,
                what,
                mode,
                mtime,
            },
        );
    }

    /// Adds the paths that existed before the run.
    pub fn files(&mut self, first: &InitialState) -> Result<()> {
        let mut replaced: BTreeMap<Vec<u8>, &Path> = BTreeMap::new();
        for (old, new) in &self.deviations.inputs {
            let cwd = to_path(&self.cwd);
            replaced.insert(cwd.join(old).as_os_str().as_bytes().to_vec(), new);
        }
        for before in &first.paths {
            if !is_plain(&before.path) {
                continue;
            }
            let names = || std::iter::once(&before.path).chain(&before.aliases);
            if let Some((old, new)) = names().find_map(|name| {
                replaced
                    .get_key_value(&**name)
                    .map(|(o, n)| (o.clone(), *n))
            }) {
                replaced.remove(&old);
                self.replace(before, new)?;
            } else {
                self.one(before, first)?;
            }
            for alias in &before.aliases {
                let what = EntrySource::HardLink(self.real(&before.path));
                self.also.push(PlanEntry {
                    path: self.real(alias),
                    what,
                    mode: 0,
                    mtime: 0,
                });
            }
        }
        // The kernel's own directories are mounted anew.
        let lists_files =
            |before: &&InitialPath| before.listed && is_plain(&[&before.path, &b"/"[..]].concat());
        for before in first.paths.iter().filter(lists_files) {
            self.listed(before, first);
        }
        self.join_names();
        match replaced.into_keys().next() {
            Some(path) => Err(Error::NotAnInput(path.into())),
            None => Ok(()),
        }
    }

    fn replace(&mut self, before: &InitialPath, new: &Path) -> Result<()> {
        let fail = |source| Error::Input {
            path: new.to_owned(),
            source,
        };
        let path = std::path::absolute(new).map_err(fail)?;
        let meta = fs::metadata(&path).map_err(fail)?;
        if !meta.is_file() {
            return Err(fail(std::io::Error::other("it is no regular file")));
        }
        regular::open(&path).map_err(fail)?;
        let what = EntrySource::Copied(without_links(path.as_os_str().as_bytes()));
        self.put(&before.path, what, meta.permissions().mode() & 0o7777, 0);
        Ok(())
    }

    fn one(&mut self, before: &InitialPath, first: &InitialState) -> Result<()> {
        match before.kind {
            EntityKind::Directory => self.directory(before),
            EntityKind::Symlink => self.link(before),
            EntityKind::File if before.content => return self.content(before),
            EntityKind::File => match first.looked.get(&self.real(&before.path)) {
                Some(looked) if !self.deviations.allow_host => self.as_it_was(before, looked),
                _ => self.blank(before),
            },
            _ => {}
        }
        Ok(())
    }

    fn directory(&mut self, before: &InitialPath) {
        let now = fs::metadata(to_path(&before.path))
            .ok()
            .filter(|now| now.is_dir());
        let known = self
            .entries
            .get(&self.real(&before.path))
            .map(|entry| entry.mode);
        let mode = known
            .or(before.ident.map(|i| i.mode))
            .or(now.map(|now| now.mode()));
        if known.is_none() {
            self.put(
                &before.path,
                EntrySource::Directory,
                mode.unwrap_or(0o755) & 0o7777,
                0,
            );
        }
        self.date(before);
    }

    /// Gives an entry its recorded time.
    fn date(&mut self, before: &InitialPath) {
        let path = match before.kind {
            EntityKind::Symlink => before.path.to_vec(),
            _ => self.real(&before.path),
        };
        if let (Some(entry), Some(ident)) = (self.entries.get_mut(&path), &before.ident) {
            entry.mtime = ident.mtime;
        }
    }

    fn link(&mut self, before: &InitialPath) {
        if self.entries.contains_key(&*before.path) {
            return self.date(before);
        }
        // The present link may be one that the run put in place of the old one.
        let target = fs::read_link(to_path(&before.path))
            .ok()
            .filter(|_| !before.changed);
        match target {
            Some(target) => self.put(
                &before.path,
                EntrySource::Link(target.as_os_str().as_bytes().to_vec()),
                0o777,
                before.ident.map_or(0, |ident| ident.mtime),
            ),
            None => self.notes.push(format!(
                "{} was a symbolic link; where it led is not known any more, so it is left out",
                shown(&before.path)
            )),
        }
    }

    /// Adds a file that was only looked at, as it was at the run's end. Caches compare sizes and
    /// times to find out whether they are outdated.
    fn as_it_was(&mut self, before: &InitialPath, looked: &Looked) {
        if !self.entries.contains_key(&self.real(&before.path)) {
            let what = EntrySource::Zeros(looked.size);
            self.put(&before.path, what, looked.mode & 0o7777, looked.mtime);
        }
    }

    /// Adds a file that was only looked at and of which the record has no details: with its present
    /// size and times.
    pub(super) fn blank(&mut self, before: &InitialPath) {
        if self.entries.contains_key(&self.real(&before.path)) {
            return;
        }
        let now = fs::symlink_metadata(to_path(&before.path)).ok();
        let mode = before.ident.map(|ident| ident.mode);
        match now {
            Some(now) if now.is_dir() => {
                self.put(&before.path, EntrySource::Directory, now.mode() & 0o7777, 0)
            }
            Some(now) if now.is_symlink() => {
                self.link(before);
                // The process that looked at the link may have seen its target.
                let real = self.real(&before.path);
                let target = InitialPath {
                    path: without_links(&real).into(),
                    ..before.clone()
                };
                if *target.path != *before.path
                    && fs::symlink_metadata(to_path(&target.path)).is_ok()
                {
                    self.on_the_way(&real);
                    self.blank(&target);
                }
            }
            Some(now) if now.is_file() => {
                let mtime = now.mtime() * 1_000_000_000 + now.mtime_nsec();
                let what = match self.deviations.allow_host
                    && regular::open(to_path(&before.path)).is_ok()
                {
                    true => EntrySource::Copied(without_links(&before.path)),
                    false => EntrySource::Zeros(now.len()),
                };
                self.put(&before.path, what, now.mode() & 0o7777, mtime);
            }
            _ => {
                let size = before.ident.map_or(0, |ident| ident.size.max(0) as u64);
                let mtime = before.ident.map_or(0, |ident| ident.mtime);
                self.put(
                    &before.path,
                    EntrySource::Zeros(size),
                    mode.unwrap_or(0o644) & 0o7777,
                    mtime,
                );
            }
        }
    }

    /// Takes the listed directories with the order of their entries.
    pub fn orders(&mut self) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        std::mem::take(&mut self.orders)
    }

    /// The entries, the missing contents, and notes for the user.
    pub fn finish(self) -> (Vec<PlanEntry>, Vec<(Bytes, String)>, Vec<String>) {
        let (mut entries, files): (Vec<PlanEntry>, Vec<PlanEntry>) = self
            .entries
            .into_values()
            .partition(|entry| matches!(entry.what, EntrySource::Directory | EntrySource::Link(_)));
        entries.extend(files);
        entries.extend(self.also);
        (entries, self.lacking, self.notes)
    }
}

/// The components of a path, the last one first.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&byte| byte == b'/')
        .rev()
        .map(<[u8]>::to_vec)
        .collect()
}

/// The path on this machine with its links resolved. From inside the replay, absolute links lead
/// elsewhere.
pub(super) fn without_links(path: &[u8]) -> Vec<u8> {
    let real = fs::canonicalize(to_path(path));
    real.map_or_else(
        |_| path.to_vec(),
        |real| real.as_os_str().as_bytes().to_vec(),
    )
}

pub(super) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
