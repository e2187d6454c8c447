//! Writes the account: the commands that stay, their files and their lines.

use super::nodes::NodeTable;
use super::{Draft, FlowBuilder};
use crate::account::{Account, AccountRun, Command, PathNode};
use crate::named_files::NamedFiles;
use crate::{Direction, chain};
use backstory_graph::model::EntityKind;
use backstory_ordering::SmallSort;
use backstory_query::answer::{Flow, Lineage, Node};
use backstory_workflow::ownership::{FileOwner, Ownership};
use backstory_workflow::steps::call;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

impl FlowBuilder<'_> {
    pub(super) fn finish(mut self, direction: Direction, ownership: &mut Ownership) -> Account {
        let uncounted = self.uncounted();
        let drafts = std::mem::take(&mut self.commands);
        let mut files = Files::new(self.lineage, &self.nodes, &self.class);
        let mut is_root = vec![false; self.nodes.len()];
        let mut roots = Vec::new();
        for &root in &self.class[..self.lineage.roots] {
            is_root[root] = true;
            roots.push(files.number(root));
        }
        roots.dedup();
        let place: Vec<usize> = places(&drafts);
        let readers = self.readers(&drafts);
        // Temporary files and the pipes of a pipeline are of no interest: only their maker reads
        // them. Towards the results, a file without a reader is a result.
        let inner = |draft: usize, file: usize| {
            let is_inner = match readers[file] {
                Readers::None => direction == Direction::Back,
                Readers::One(reader) => reader == draft,
                Readers::Several => false,
            };
            is_inner && !is_root[file]
        };
        let mut commands = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            if draft.joined.is_none() {
                let inner = |file| inner(at, file);
                commands.push(self.written(draft, &drafts, &place, &mut files, &inner));
            }
        }
        self.write_lines(&drafts, &place, &mut commands);
        files.join(&commands);
        for link in self
            .lineage
            .links
            .iter()
            .filter(|link| link.flow == Flow::Alike)
        {
            let file = files.number(self.class[link.from]);
            files.files[file].by_content = true;
        }
        files.find_own(ownership);
        let runs = self.parts.iter().map(|part| AccountRun {
            details: part.recording.details.clone(),
        });
        let mut account = Account {
            named: vec![NamedFiles::new(); commands.len()],
            direction,
            roots,
            files: files.files,
            commands,
            chain: Vec::new(),
            own: Default::default(),
            drivers: Vec::new(),
            runs: runs.collect(),
            uncounted,
            cut: self.lineage.cut,
        };
        chain::find(&mut account);
        account
    }

    /// The commands that read each node's file.
    fn readers(&self, drafts: &[Draft]) -> Vec<Readers> {
        let mut readers = vec![Readers::None; self.nodes.len()];
        for (at, draft) in drafts.iter().enumerate() {
            let command = whole(drafts, at);
            for &file in &draft.reads {
                readers[file] = match readers[file] {
                    Readers::None => Readers::One(command),
                    Readers::One(known) if known == command => Readers::One(command),
                    _ => Readers::Several,
                };
            }
        }
        readers
    }

    /// The number of commands and files between which a link is only possible, and no other exists.
    fn uncounted(&self) -> usize {
        let linked = |command: &(usize, usize), file: &usize| {
            let number = self.numbers.get(command);
            let draft = number.map(|&number| &self.commands[self.whole(number)]);
            draft.is_some_and(|draft| draft.reads.contains(file) || draft.writes.contains(file))
        };
        let doubts = self.doubts.iter();
        doubts
            .filter(|(command, file)| !linked(command, file))
            .count()
    }

    /// The command of a draft, without its line.
    fn written(
        &self,
        draft: &Draft,
        drafts: &[Draft],
        place: &[usize],
        files: &mut Files<'_>,
        inner: &dyn Fn(usize) -> bool,
    ) -> Command {
        let recording = &self.parts[draft.run].recording;
        let mut drivers = Vec::new();
        let root = draft.stages[0];
        for above in recording.ancestors(root) {
            let program = self.parts[draft.run].commands[above];
            let Some(&number) = self.numbers.get(&(draft.run, program)) else {
                continue;
            };
            let number = place[whole(drafts, number)];
            if !draft.stages.contains(&program) && !drivers.contains(&number) {
                drivers.push(number);
            }
        }
        let ends = draft
            .stages
            .iter()
            .map(|&at| recording.activities[at].interval.end);
        let own = |file: &&usize| !draft.writes.contains(file);
        let mut reads: Vec<usize> = draft
            .reads
            .iter()
            .filter(own)
            .map(|&file| files.number(file))
            .collect();
        let outer = |file: &&usize| !inner(**file);
        let executes = draft.executes.iter();
        let mut executes: Vec<usize> = executes.map(|&file| files.number(file)).collect();
        executes.sort_small();
        let mut writes: Vec<usize> = draft
            .writes
            .iter()
            .filter(outer)
            .map(|&file| files.number(file))
            .collect();
        reads.sort_small();
        writes.sort_small();
        let notes = recording.marked.notes(root);
        let id = |&at: &usize| recording.activity_key(at).0;
        Command {
            run: draft.run,
            activity: id(&root),
            line: backstory_workflow::steps::Line {
                cwd: b"/".as_slice().into(),
                words: Vec::new(),
                exit: 0,
            },
            start: recording.activities[root].interval.start,
            end: ends.max().unwrap_or_default(),
            reads,
            executes,
            first_read: draft.first_read,
            writes,
            drivers,
            programs: draft.members.iter().map(id).collect(),
            is_part: recording.marked.is_named(root),
            attributes: notes.attributes,
            records: notes.records,
        }
    }

    /// Writes the commands in order of time, so that an output that was begun is continued.
    fn write_lines(&self, drafts: &[Draft], place: &[usize], commands: &mut [Command]) {
        let mut order: Vec<usize> = (0..drafts.len())
            .filter(|&at| drafts[at].joined.is_none())
            .collect();
        order.sort_small_by_key(|&at| commands[place[at]].start);
        let mut opened = vec![HashSet::new(); self.parts.len()];
        for at in order {
            let (draft, run) = (&drafts[at], drafts[at].run);
            let recording = &self.parts[run].recording;
            let line = call(
                recording,
                &draft.stages,
                &self.parts[run].outside,
                &mut opened[run],
            );
            commands[place[at]].line = line;
        }
    }
}

/// The draft that a draft was joined to, or itself.
pub(super) fn whole(drafts: &[Draft], at: usize) -> usize {
    std::iter::successors(Some(at), |at| drafts[*at].joined)
        .last()
        .unwrap_or(at)
}

/// The number of each draft among those that stay.
fn places(drafts: &[Draft]) -> Vec<usize> {
    let mut next = 0;
    let mut place = Vec::new();
    for draft in drafts {
        place.push(next);
        next += usize::from(draft.joined.is_none());
    }
    place
}

/// The commands that read a file.
#[derive(Debug, Clone, Copy)]
enum Readers {
    None,
    One(usize),
    Several,
}

/// The files of an account, by the node that stands for them.
struct Files<'l> {
    lineage: &'l Lineage,
    nodes: &'l NodeTable<'l>,
    /// For each node: whether its version came from another version.
    derived: Vec<bool>,
    /// The number of each node's file.
    numbers: Vec<Option<usize>>,
    files: Vec<PathNode>,
    /// The node of each file.
    of: Vec<usize>,
}

impl<'l> Files<'l> {
    /// No files yet. `class` has the node that stands for each node.
    fn new(lineage: &'l Lineage, nodes: &'l NodeTable<'l>, class: &[usize]) -> Files<'l> {
        let mut derived = vec![false; nodes.len()];
        let links = lineage.links.iter();
        for link in links.filter(|link| link.flow == Flow::Derived) {
            derived[class[link.to]] = true;
        }
        Files {
            lineage,
            nodes,
            derived,
            numbers: vec![None; nodes.len()],
            files: Vec::new(),
            of: Vec::new(),
        }
    }

    /// The number of a node's file. The first call makes the file.
    fn number(&mut self, node: usize) -> usize {
        if let Some(number) = self.numbers[node] {
            return number;
        }
        let number = self.files.len();
        self.numbers[node] = Some(number);
        if let Node::Entity {
            id,
            path,
            kind,
            ident,
            version,
            ..
        } = &self.lineage.nodes[node]
        {
            self.of.push(node);
            self.files.push(PathNode {
                path: path.clone(),
                kind: *kind,
                entity: *id,
                modified: ident.map(|ident| ident.mtime),
                size: ident.map(|ident| ident.size),
                makers: Vec::new(),
                users: Vec::new(),
                own: false,
                by_content: false,
                begun: *version > 0 && !self.derived[node],
                cache: self.nodes.is_cache(node),
            });
        }
        number
    }

    /// Notes the makers and the users of each file.
    fn join(&mut self, commands: &[Command]) {
        // Many commands use one header, and a list that grows is copied.
        let mut users = vec![0; self.files.len()];
        for &file in commands.iter().flat_map(|command| &command.reads) {
            users[file] += 1;
        }
        for (file, users) in self.files.iter_mut().zip(users) {
            file.users.reserve_exact(users);
        }
        for (at, command) in commands.iter().enumerate() {
            for &file in &command.writes {
                self.files[file].makers.push(at);
            }
            for &file in &command.reads {
                self.files[file].users.push(at);
            }
        }
    }

    /// Finds out which files are the user's own. Files at one path have one owner.
    fn find_own(&mut self, ownership: &mut Ownership) {
        let mut known: FxHashMap<(Option<usize>, bool), bool> = FxHashMap::default();
        for (file, node) in self.files.iter_mut().zip(&self.of) {
            // Without an identity, the file was gone when the run ended.
            let was_removed = file.modified.is_none();
            let mut is_own = || {
                let key = (self.nodes.path_number(*node), was_removed);
                *known.entry(key).or_insert_with(|| match was_removed {
                    true => ownership.owner_of_removed(&file.path) == FileOwner::User,
                    false => ownership.is_own(&file.path),
                })
            };
            file.own = match file.kind {
                // A program named it for a reader.
                EntityKind::Resource => true,
                EntityKind::Socket => file.is_peer(),
                _ => is_own(),
            };
        }
    }
}
