//! The account of a file: plain data, without a store behind it.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::lineage::named_devices;
use backstory_graph::marks::StatedRecord;
use backstory_graph::model::EntityKind;
use backstory_query::answer::RunDetails;
use backstory_query::is_network_peer;
use backstory_workflow::paths::is_of_kernel;
use backstory_workflow::steps::Line;

use crate::Direction;
use crate::named_files::NamedFiles;

/// How a file came to be, or what came from it.
#[derive(Debug)]
pub struct Account {
    /// Towards the sources or towards the results.
    pub direction: Direction,
    /// The subject: indexes of files. Several if several runs know the file.
    pub roots: Vec<usize>,
    /// The files on the way.
    pub files: Vec<PathNode>,
    /// All commands of the lineage.
    pub commands: Vec<Command>,
    /// The commands through which content flowed between the subject and the other ends, those
    /// nearest to the subject first.
    pub chain: Vec<usize>,
    /// The commands of the chain that the user's own files concern, and the parts that programs
    /// named.
    pub own: std::collections::BTreeSet<usize>,
    /// The commands that started these, such as `make`, the nearest first.
    pub drivers: Vec<usize>,
    /// The runs, oldest first.
    pub runs: Vec<AccountRun>,
    /// The number of links between commands and files that are only possible, and that the answer
    /// does not follow.
    pub uncounted: usize,
    /// True if the lineage was cut at the requested depth.
    pub cut: bool,
    /// For each command the files that its words name.
    pub(crate) named: Vec<NamedFiles>,
}

/// A run of an account.
#[derive(Debug)]
pub struct AccountRun {
    /// The facts about it. Peers and unknown look-ups are absent.
    pub details: RunDetails,
}

/// A file, a thing that a program named, or a pipe between commands.
#[derive(Debug, Clone, PartialEq)]
pub struct PathNode {
    /// Its absolute path; the name of a thing; a descriptive name for a pipe.
    pub path: Bytes,
    /// The kind of thing.
    pub kind: EntityKind,
    /// The id of the version in the store.
    pub entity: u64,
    /// The last modification, if it is known.
    pub modified: Option<Time>,
    /// The size in bytes, if it is known.
    pub size: Option<i64>,
    /// The commands that made it.
    pub makers: Vec<usize>,
    /// The commands that used it.
    pub users: Vec<usize>,
    /// It is the user's own, and not of a package or of the system.
    pub own: bool,
    /// It is joined to another version by content alone.
    pub by_content: bool,
    /// A run made this version, and from no other version.
    pub begun: bool,
    /// A program can make it again, and what it has leads nowhere.
    pub cache: bool,
}

impl PathNode {
    /// True for a file, and for a thing that a program named, such as a table.
    pub fn is_content(&self) -> bool {
        matches!(self.kind, EntityKind::File | EntityKind::Resource)
    }

    /// True for a connection through which content can come or go.
    pub fn is_peer(&self) -> bool {
        self.kind == EntityKind::Socket && is_network_peer(&self.path)
    }
}

/// A command with its flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The index of its run.
    pub run: usize,
    /// The id of its first program in the store.
    pub activity: u64,
    /// The command as a person would have written it.
    pub line: Line,
    /// The begin of its program.
    pub start: Time,
    /// The end of its program.
    pub end: Time,
    /// The files and pipes that it used and did not make; sorted indexes.
    pub reads: Vec<usize>,
    /// The programs that it executed; sorted indexes.
    pub executes: Vec<usize>,
    /// When it first read a file of the lineage. `None` if it read none.
    pub first_read: Option<Time>,
    /// The files and pipes that it made; sorted indexes.
    pub writes: Vec<usize>,
    /// The commands that started it, the nearest first.
    pub drivers: Vec<usize>,
    /// The ids of its programs on the lineage in the store.
    pub programs: Vec<u64>,
    /// It is a part of a program's work that the program named, and no command for a shell.
    pub is_part: bool,
    /// Attributes that the program gave to this work: names and values.
    pub attributes: BTreeMap<Bytes, Bytes>,
    /// Extended records that the program added to this work.
    pub records: Vec<StatedRecord>,
}

/// The first line of an answer: who made the subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Heading {
    /// The index of the run.
    pub run: usize,
    /// When the subject was made.
    pub time: Time,
}

impl Account {
    /// The run that made the first subject. `None` if no recorded command made it.
    pub fn heading(&self) -> Option<Heading> {
        let subject = &self.files[*self.roots.first()?];
        let maker = subject
            .makers
            .iter()
            .max_by_key(|&&at| self.commands[at].end)?;
        let command = &self.commands[*maker];
        Some(Heading {
            run: command.run,
            time: subject.modified.unwrap_or(command.end),
        })
    }

    /// The files that the chain and its drivers used, that no recorded command made, and that are
    /// not the user's own; sorted by their paths. Files of the kernel are left out. A compiled
    /// module is there even if a run made it, because it stands for a module of a package.
    pub fn packaged(&self) -> Vec<usize> {
        let commands = self.chain.iter().chain(&self.drivers);
        let files = commands.flat_map(|&at| &self.commands[at].reads);
        // Each command of a build read the same headers.
        let mut seen = vec![false; self.files.len()];
        let is_new = |file: &usize| !std::mem::replace(&mut seen[*file], true);
        let counts = |file: &usize| {
            let node = &self.files[*file];
            let is_compiled = node.cache && node.kind == EntityKind::File;
            let is_of_package = is_compiled || self.is_source(*file);
            is_of_package && !node.own && !is_of_kernel(&node.path)
        };
        let mut found: Vec<usize> = files.copied().filter(is_new).filter(counts).collect();
        found.sort_small_by(|&a, &b| self.files[a].path.cmp(&self.files[b].path));
        found
    }

    /// The devices that stand for hardware or a driver, and that the chain and its drivers used;
    /// sorted by path.
    pub fn devices(&self) -> Vec<&[u8]> {
        let commands = self.chain.iter().chain(&self.drivers);
        let files = commands
            .flat_map(|&at| &self.commands[at].reads)
            .map(|&file| &self.files[file]);
        named_devices(files.map(|file| (file.kind, &*file.path)))
    }

    /// The user's own files, and the connections, that a command used and that are sources.
    pub fn sources(&self, command: usize) -> impl Iterator<Item = usize> {
        let reads = self.commands[command].reads.iter().copied();
        reads.filter(|&file| self.is_source(file) && self.files[file].own)
    }

    /// True if no recorded command made the file, or sent what came through the connection.
    pub fn is_source(&self, file: usize) -> bool {
        let file = &self.files[file];
        let is_kept = matches!(
            file.kind,
            EntityKind::File | EntityKind::Symlink | EntityKind::Resource
        );
        file.makers.is_empty() && (is_kept && !file.begun || file.is_peer())
    }

    /// True for a command that brought content of the user or of the network to the subject,
    /// or made a file of the user. All others used files of tools and of the system only.
    pub fn concerns(&self, command: usize) -> bool {
        self.own.contains(&command)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use backstory_workflow::steps::Line;

    /// Files of the system at these paths, and commands that read files by their numbers.
    pub(crate) fn account(paths: &[&str], commands: &[&[usize]]) -> Account {
        let file = |(at, path): (u64, &&str)| PathNode {
            path: path.as_bytes().into(),
            kind: EntityKind::File,
            entity: at,
            modified: Some(0),
            size: None,
            makers: Vec::new(),
            users: Vec::new(),
            own: false,
            by_content: false,
            begun: false,
            cache: false,
        };
        let command = |(at, reads): (u64, &&[usize])| Command {
            run: 0,
            activity: at,
            line: Line {
                cwd: b"/w".as_slice().into(),
                words: Vec::new(),
                exit: 0,
            },
            start: 0,
            end: 0,
            reads: reads.to_vec(),
            executes: Vec::new(),
            first_read: None,
            writes: Vec::new(),
            drivers: Vec::new(),
            programs: Vec::new(),
            is_part: false,
            attributes: BTreeMap::new(),
            records: Vec::new(),
        };
        Account {
            direction: Direction::Back,
            roots: Vec::new(),
            files: (0..).zip(paths).map(file).collect(),
            commands: (0..).zip(commands).map(command).collect(),
            chain: (0..commands.len()).collect(),
            own: Default::default(),
            drivers: Vec::new(),
            runs: Vec::new(),
            uncounted: 0,
            cut: false,
            named: vec![NamedFiles::new(); commands.len()],
        }
    }

    /// Two runs know the file at one path, and each has a file of its own for it.
    #[test]
    fn a_file_that_several_commands_read_in_turn_is_packaged_once() {
        let account = account(
            &["/usr/include/b.h", "/usr/include/a.h", "/usr/include/b.h"],
            &[&[0, 1, 2], &[2, 0], &[0, 2]],
        );
        assert_eq!(account.packaged(), [1, 0, 2]);
    }
}
