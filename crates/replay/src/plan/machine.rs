//! Facts that the record lacks and this machine may have.
//!
//! These are interpreters that the kernel opens, the library by which threads end, and names in
//! listed directories.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;

use backstory_files::Digest;
use backstory_files::executable;
use backstory_files::regular;
use backstory_workflow::paths::{is_tool, to_path};

use super::builder::{MOST_LINKS, PlanBuilder, without_links};
use super::initial_state::{InitialPath, InitialState};
use super::{EntrySource, PlanEntry};

/// The number of unused entries of a listed directory that are planned. With more, a listing hardly
/// matters.
const LISTED: usize = 10_000;

/// The file name of glibc.
const C_LIBRARY: &[u8] = b"libc.so.6";

/// The library that glibc loads when a thread ends by `pthread_exit(3)` or `pthread_cancel(3)`. A
/// process without it is aborted.
const UNWINDER: &[u8] = b"libgcc_s.so.1";

impl PlanBuilder<'_> {
    /// Adds this machine's interpreters of executed programs, where the record lacks them.
    pub fn interpreters(&mut self, first: &InitialState) {
        let executed = first.paths.iter().filter(|before| before.executed);
        let mut waiting: Vec<Vec<u8>> = executed.map(|before| self.real(&before.path)).collect();
        let mut seen = BTreeSet::new();
        while let Some(path) = waiting.pop() {
            let Some(named) = self.interpreter_of(&path) else {
                continue;
            };
            if !seen.insert(named.clone()) {
                continue;
            }
            self.take_host_file(&named);
            waiting.push(self.real(&named));
        }
    }

    /// Adds this machine's [`UNWINDER`] beside each C library, if the record lacks it. A recorded
    /// process may have ended just before a thread would have loaded it.
    pub fn unwinders(&mut self, first: &InitialState) {
        let libraries = self.entries.keys().filter_map(|path| {
            let directory = path.strip_suffix(C_LIBRARY)?;
            directory.ends_with(b"/").then(|| directory.to_vec())
        });
        let beside: Vec<Vec<u8>> = libraries.map(|at| [&at[..], UNWINDER].concat()).collect();
        for path in beside {
            let was_used = |used: &BTreeSet<_>| used.contains(&path[..]);
            if !was_used(&first.missing) && !was_used(&first.made) {
                self.take_host_file(&path);
            }
        }
    }

    /// The interpreter of a program, if the program names it by an absolute path.
    fn interpreter_of(&self, path: &[u8]) -> Option<Vec<u8>> {
        let head = self.head(path)?;
        let named = executable::interpreter(&head).filter(|path| path.starts_with(b"/"));
        named.map(Into::into)
    }

    /// The first bytes of the planned file at a path.
    fn head(&self, path: &[u8]) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        match &self.entries.get(path)?.what {
            EntrySource::Stored(digest) | EntrySource::StoredPart(digest, _) => {
                let object = self.contents.as_ref()?.read(&Digest(*digest)).ok()?;
                object
                    .take(executable::HEAD as u64)
                    .read_to_end(&mut head)
                    .ok()?;
            }
            EntrySource::Mounted(from) | EntrySource::Copied(from) => {
                let file = regular::open(to_path(from)).ok()?;
                file.take(executable::HEAD as u64)
                    .read_to_end(&mut head)
                    .ok()?;
            }
            _ => return None,
        }
        Some(head)
    }

    /// Adds this machine's file, and the links that lead to it, unless the path has an entry.
    fn take_host_file(&mut self, path: &[u8]) {
        for _ in 0..MOST_LINKS {
            let real = self.real(path);
            if self
                .entries
                .get(&real)
                .is_some_and(|entry| entry.what != EntrySource::Directory)
            {
                return;
            }
            let link = (1..=real.len())
                .filter(|&end| end == real.len() || real[end] == b'/')
                .find(|&end| {
                    !self.entries.contains_key(&real[..end])
                        && fs::read_link(to_path(&real[..end])).is_ok()
                });
            match link.and_then(|end| Some((end, fs::read_link(to_path(&real[..end])).ok()?))) {
                Some((end, target)) => {
                    self.put(
                        &real[..end],
                        EntrySource::Link(target.as_os_str().as_bytes().to_vec()),
                        0o777,
                        0,
                    );
                }
                None => {
                    if let Ok(meta) = fs::metadata(to_path(&real)) {
                        self.directories_to(
                            &real[..real.iter().rposition(|&byte| byte == b'/').unwrap_or(0)],
                        );
                        self.put(
                            &real,
                            EntrySource::Mounted(without_links(&real)),
                            meta.mode() & 0o7777,
                            0,
                        );
                    }
                    return;
                }
            }
        }
    }

    /// Adds this machine's links between a path and its target.
    pub(super) fn on_the_way(&mut self, path: &[u8]) {
        let mut path = path.to_vec();
        for _ in 0..MOST_LINKS {
            let Ok(target) = fs::read_link(to_path(&path)) else {
                return;
            };
            self.put(
                &path,
                EntrySource::Link(target.as_os_str().as_bytes().to_vec()),
                0o777,
                0,
            );
            path = self.real(&path);
        }
    }

    /// Adds unused names of a listed directory: a program that processes all names sees them.
    pub(super) fn listed(&mut self, before: &InitialPath, first: &InitialState) {
        let touched: BTreeSet<&[u8]> = first
            .made
            .iter()
            .chain(&first.missing)
            .map(|path| &**path)
            .into_tree();
        let real = self.real(&before.path);
        if let Some(entries) = first.listings.get(&*real) {
            for entry in entries {
                self.named(
                    &[&real, &b"/"[..], &entry.name].concat(),
                    entry.kind,
                    &touched,
                );
            }
            let shared = entries.iter().filter(|entry| entry.shared != 0);
            let named =
                shared.map(|entry| (entry.shared, [&real, &b"/"[..], &entry.name].concat()));
            self.shared.extend(named);
            let names = entries.iter().map(|entry| entry.name.to_vec()).collect();
            self.orders.push((real, names));
            return;
        }
        if is_tool(&before.path) {
            return;
        }
        let Ok(entries) = fs::read_dir(to_path(&before.path)) else {
            return;
        };
        for entry in entries.flatten().take(LISTED) {
            let path = [&before.path, &b"/"[..], entry.file_name().as_bytes()].concat();
            if let Ok(meta) = entry.metadata() {
                self.named(&path, meta.mode(), &touched);
            }
        }
    }

    /// Joins names in listed directories that were hard links of one file: copying and packing
    /// programs look for hard links. Only files that were not read, or have the same content, are
    /// joined.
    pub(super) fn join_names(&mut self) {
        let mut first: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let is_blank = |what: &EntrySource| matches!(what, EntrySource::Zeros(_));
        let mut shared = std::mem::take(&mut self.shared);
        shared.retain(|(_, path)| self.entries.contains_key(path));
        // Names with content come first.
        shared.sort_small_by_key(|(_, path)| is_blank(&self.entries[path].what));
        for (inode, path) in shared {
            let Some(of) = first.get(&inode) else {
                first.insert(inode, path);
                continue;
            };
            let (other, own) = (&self.entries[of].what, &self.entries[&path].what);
            if !matches!(own, EntrySource::Zeros(_) | EntrySource::Stored(_))
                || !is_blank(own) && own != other
            {
                continue;
            }
            self.entries.remove(&path);
            self.also.push(PlanEntry {
                path,
                what: EntrySource::HardLink(of.clone()),
                mode: 0,
                mtime: 0,
            });
        }
    }

    /// Adds an entry that a listing named.
    fn named(&mut self, path: &[u8], mode: u32, touched: &BTreeSet<&[u8]>) {
        if self.entries.contains_key(&self.real(path))
            || self.entries.contains_key(path)
            || touched.contains(path)
        {
            return;
        }
        let now = fs::symlink_metadata(to_path(path)).ok();
        let mtime = now
            .as_ref()
            .map_or(0, |now| now.mtime() * 1_000_000_000 + now.mtime_nsec());
        let bits = now.as_ref().map_or(mode, MetadataExt::mode) & 0o7777;
        let bits = |other| if bits == 0 { other } else { bits };
        match mode & 0o170_000 {
            0o040_000 => self.put(path, EntrySource::Directory, bits(0o755), mtime),
            0o120_000 => {
                // No process looked at its target.
                let target = fs::read_link(to_path(path))
                    .map_or(b"nowhere".to_vec(), |to| to.into_os_string().into_vec());
                self.put(path, EntrySource::Link(target), 0o777, mtime);
            }
            0o100_000 => {
                let size = now.filter(fs::Metadata::is_file).map_or(0, |now| now.len());
                self.put(path, EntrySource::Zeros(size), bits(0o644), mtime);
            }
            _ => {}
        }
    }
}
