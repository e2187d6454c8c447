//! Makes relations of operations.
//!
//! PROBE logs no reads and no writes. A file that was opened for reading counts as read. A write is
//! possible, and certain if the open emptied the file. A program has possibly used the files of its
//! standard streams, which another program opened.
//!
//! Only an open tells whether it succeeded. So all other operations are possible.

use super::archive::{ArchiveDamage, ExecEpoch};
use super::operation::{FileType, Inode, Operation, OperationData, PathArgument};
use super::processes::{FileNumber, KnownProcesses, KnownProgram, regular};
use crate::description::{ActivityNumber, Description, DescriptionGaps, Locations, NamedStates};
use backstory_graph::model::{EntityKind, Relation};
use backstory_vocabulary::counted;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most paths that one file is remembered by.
const MOST_NAMES: usize = 16;

/// Collects the relations of a log.
pub(super) struct UseReader {
    description: Description,
    programs: BTreeMap<ExecEpoch, KnownProgram>,
    locations: Locations,
    states: NamedStates,
    /// The paths by which each file was opened.
    opened: HashMap<FileNumber, BTreeSet<Vec<u8>>>,
    /// Operations that became relations.
    uses: usize,
    /// Operations with a name in a directory that the log does not tell.
    elsewhere: usize,
    /// Operations of programs whose beginning is not in the log.
    strangers: usize,
    gaps: DescriptionGaps,
}

impl UseReader {
    pub(super) fn new(known: KnownProcesses) -> UseReader {
        UseReader {
            description: known.description,
            programs: known.programs,
            locations: known.locations,
            states: NamedStates::default(),
            opened: HashMap::new(),
            uses: 0,
            elsewhere: 0,
            strangers: 0,
            gaps: DescriptionGaps::default(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full() || self.uses > crate::description::MOST
    }

    pub(super) fn operation(&mut self, epoch: ExecEpoch, operation: Operation) {
        let Some(activity) = self.programs.get(&epoch).map(|program| program.activity) else {
            self.strangers += 1;
            return;
        };
        match &operation.data {
            OperationData::Open { path, inode, flags } => {
                if let Some(path) = self.path(epoch, path) {
                    self.open(activity, path, *inode, *flags);
                }
            }
            OperationData::Access { path } | OperationData::Stat { path } => {
                self.used(epoch, path, Relation::Stat, EntityKind::File);
            }
            OperationData::ReadLink { linkpath: path } => {
                self.used(epoch, path, Relation::Link, EntityKind::Symlink);
            }
            OperationData::Readdir { dir } => {
                self.used(epoch, dir, Relation::List, EntityKind::Directory);
            }
            OperationData::Unlink { path } => {
                self.used(epoch, path, Relation::Delete, EntityKind::File);
            }
            OperationData::UpdateMetadata { path } => {
                self.used(epoch, path, Relation::Meta, EntityKind::File);
            }
            OperationData::SymbolicLink { new } => self.made(epoch, new, EntityKind::Symlink),
            OperationData::MkFile { path, file_type } => {
                let kind = match file_type {
                    FileType::Dir => EntityKind::Directory,
                    FileType::Pipe | FileType::Node => EntityKind::Pipe,
                };
                self.made(epoch, path, kind);
            }
            OperationData::HardLink { old, new } => {
                self.moved(epoch, [old, new], Relation::Make);
            }
            OperationData::Rename { src, dst } => {
                self.moved(epoch, [src, dst], Relation::Rename);
            }
            _ => {}
        }
    }

    /// The path of an argument. `None` if the log does not tell it.
    fn path(&mut self, epoch: ExecEpoch, path: &PathArgument) -> Option<Vec<u8>> {
        // An argument without a name is a descriptor, whose open has the name.
        let name = path.name.as_ref().filter(|name| !name.0.is_empty())?;
        if path.directory.value != 0 && !name.0.starts_with(b"/") {
            self.elsewhere += 1;
            return None;
        }
        let program = self.programs.get_mut(&epoch)?;
        let found = program.locations.path(&name.0);
        self.locations.has_relative |= program.locations.has_relative;
        self.uses += usize::from(found.is_some());
        found
    }

    fn open(&mut self, activity: ActivityNumber, path: Vec<u8>, inode: Inode, flags: i32) {
        let UseReader {
            states,
            description,
            ..
        } = self;
        let Some(file_type) = inode.file_type() else {
            // Nothing was opened.
            let looked = (Relation::Stat, false);
            states.used(activity, looked, &path, EntityKind::File);
            return;
        };
        let kind = match file_type {
            libc::S_IFDIR => EntityKind::Directory,
            libc::S_IFREG => EntityKind::File,
            libc::S_IFIFO => EntityKind::Pipe,
            _ => EntityKind::Device,
        };
        if kind == EntityKind::Directory || flags & libc::O_PATH != 0 {
            states.used(activity, (Relation::Stat, true), &path, kind);
            return;
        }
        let access = flags & libc::O_ACCMODE;
        if access != libc::O_WRONLY {
            states.used(activity, (Relation::Read, true), &path, kind);
        }
        if access != libc::O_RDONLY {
            let is_certain = kind == EntityKind::File && flags & libc::O_TRUNC != 0;
            let write = (Relation::Write, is_certain);
            states.changed(description, activity, write, &path, kind);
        }
        if let Some(number) = regular(inode) {
            let names = self.opened.entry(number).or_default();
            if names.len() < MOST_NAMES {
                names.insert(path);
            }
        }
    }

    /// A use, or a removal, that has possibly happened.
    fn used(
        &mut self,
        epoch: ExecEpoch,
        path: &PathArgument,
        relation: Relation,
        kind: EntityKind,
    ) {
        if let Some(path) = self.path(epoch, path) {
            let activity = self.programs[&epoch].activity;
            self.states.used(activity, (relation, false), &path, kind);
        }
    }

    fn made(&mut self, epoch: ExecEpoch, path: &PathArgument, kind: EntityKind) {
        if let Some(path) = self.path(epoch, path) {
            let activity = self.programs[&epoch].activity;
            let made = (Relation::Make, false);
            self.states
                .changed(&mut self.description, activity, made, &path, kind);
        }
    }

    /// A file possibly got a further name, or another one.
    fn moved(&mut self, epoch: ExecEpoch, [old, new]: [&PathArgument; 2], relation: Relation) {
        let (old, new) = (self.path(epoch, old), self.path(epoch, new));
        let (Some(old), Some(new)) = (old, new) else {
            return;
        };
        let (activity, kind) = (self.programs[&epoch].activity, EntityKind::File);
        let description = &mut self.description;
        let entity = self
            .states
            .changed(description, activity, (relation, false), &new, kind);
        self.states.moved(activity, &old, kind, entity);
    }

    /// Adds the files of standard streams.
    fn streams(&mut self) {
        for program in self.programs.values() {
            for (at, number) in program.streams.iter().enumerate() {
                let names = number.and_then(|number| self.opened.get(&number));
                for path in names.into_iter().flatten() {
                    let (activity, kind) = (program.activity, EntityKind::File);
                    if at == 0 {
                        let read = (Relation::Read, false);
                        self.states.used(activity, read, path, kind);
                    } else {
                        let write = (Relation::Write, false);
                        let description = &mut self.description;
                        self.states
                            .changed(description, activity, write, path, kind);
                    }
                }
            }
        }
    }

    /// All that was collected.
    pub(super) fn finish(
        mut self,
        damage: ArchiveDamage,
    ) -> (Description, Locations, DescriptionGaps) {
        self.streams();
        self.states.finish(&mut self.description);
        let gaps = &mut self.gaps.gaps;
        gaps.push(
            "PROBE logs opens of files, but no reads, writes, pipes or sockets, and not which \
             other operations failed"
                .to_owned(),
        );
        gaps.push(
            "the log has no times, so the order of operations of different programs is unknown"
                .to_owned(),
        );
        gaps.push(
            "the log does not have the directories of programs: relative names are taken to begin \
             at PWD of their environments"
                .to_owned(),
        );
        let counts = [
            (
                self.elsewhere,
                "with a name in a directory that the log does not tell",
            ),
            (
                self.strangers,
                "of programs whose beginning is not in the log",
            ),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            gaps.push(format!(
                "{} {what}",
                counted(count, "operation", "operations")
            ));
        }
        if damage.undecoded > 0 {
            let logs = counted(damage.undecoded, "thread", "threads");
            gaps.push(format!(
                "the logs of {logs} cannot be decoded to their ends"
            ));
        }
        if damage.is_cut {
            gaps.push("the archive ends early".to_owned());
        }
        (self.description, self.locations, self.gaps)
    }
}
