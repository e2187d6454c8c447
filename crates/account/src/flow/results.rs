//! Writes the account: the commands that stay, their files and their lines.

use super::{Draft, FlowBuilder};
use crate::account::{Account, AccountRun, Command, PathNode};
use crate::{Direction, chain};
use backstory_graph::model::EntityKind;
use backstory_ordering::SmallSort;
use backstory_query::answer::{Flow, Lineage, Node};
use backstory_workflow::ownership::{FileOwner, Ownership};
use backstory_workflow::paths::is_cache;
use backstory_workflow::steps::call;
use std::collections::{HashMap, HashSet};

impl FlowBuilder<'_> {
    pub(super) fn finish(mut self, direction: Direction, ownership: &mut Ownership) -> Account {
        let mut files = Files {
            lineage: self.lineage,
            derived: (self.lineage.links.iter())
                .filter(|link| link.flow == Flow::Derived)
                .map(|link| self.class[link.to])
                .collect(),
            numbers: HashMap::new(),
            files: Vec::new(),
        };
        let mut roots: Vec<usize> = (0..self.lineage.roots)
            .map(|root| files.number(self.class[root]))
            .collect();
        roots.dedup();
        let uncounted = self.uncounted();
        let drafts = std::mem::take(&mut self.commands);
        let place: Vec<usize> = places(&drafts);
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, draft) in drafts.iter().enumerate() {
            for &file in &draft.reads {
                readers.entry(file).or_default().push(whole(&drafts, at));
            }
        }
        let root = |file: usize| (0..self.lineage.roots).any(|root| self.class[root] == file);
        // Temporary files and the pipes of a pipeline are of no interest: only their maker reads
        // them. Towards the results, a file without a reader is a result.
        let inner = |draft: usize, file: usize| {
            let all = readers.get(&file).map(Vec::as_slice).unwrap_or_default();
            let result = direction == Direction::Forth && all.is_empty();
            !root(file) && !result && all.iter().all(|&reader| reader == draft)
        };
        let mut commands = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            if draft.joined.is_none() {
                let inner = |file| inner(at, file);
                commands.push(self.written(draft, &drafts, &place, &mut files, &inner));
            }
        }
        self.write_lines(&drafts, &place, &mut commands);
        for (at, command) in commands.iter().enumerate() {
            for &file in &command.writes {
                files.files[file].makers.push(at);
            }
            for &file in &command.reads {
                files.files[file].users.push(at);
            }
        }
        for link in self
            .lineage
            .links
            .iter()
            .filter(|link| link.flow == Flow::Alike)
        {
            let file = files.number(self.class[link.from]);
            files.files[file].by_content = true;
        }
        for file in &mut files.files {
            // Without an identity, the file was gone when the run ended.
            file.own = match file.modified {
                // A program named it for a reader.
                _ if file.kind == EntityKind::Resource => true,
                _ if file.kind == EntityKind::Socket => file.is_peer(),
                None => ownership.owner_of_removed(&file.path) == FileOwner::User,
                Some(_) => ownership.is_own(&file.path),
            };
        }
        let runs = self.parts.iter().map(|part| AccountRun {
            details: part.recording.details.clone(),
        });
        let mut account = Account {
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

/// The files of an account, by the node that stands for them.
struct Files<'l> {
    lineage: &'l Lineage,
    /// The nodes of versions that came from other versions.
    derived: HashSet<usize>,
    numbers: HashMap<usize, usize>,
    files: Vec<PathNode>,
}

impl Files<'_> {
    fn number(&mut self, node: usize) -> usize {
        let next = self.files.len();
        let number = *self.numbers.entry(node).or_insert(next);
        if number == next
            && let Node::Entity {
                id,
                path,
                kind,
                ident,
                version,
                ..
            } = &self.lineage.nodes[node]
        {
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
                begun: *version > 0 && !self.derived.contains(&node),
                cache: is_cache(path),
            });
        }
        number
    }
}
