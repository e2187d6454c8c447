//! Joins the processes of a lineage to commands, and finds the files that flow between them.
//!
//! In: a [`Lineage`] and the store that it came from. Out: an [`Account`].
//!
//! - A version that several runs know is one file.
//! - Commands that a pipe joins are one command, if it is the standard output of one and the
//!   standard input of the other.
//! - A link that is only possible counts in two cases. A possible writer counts if the version has
//!   no observed one. A possible use of a pipe counts if the pipe is a standard descriptor.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Time;
use backstory_graph::model::{ActivityId, Certainty, EntityId, EntityKind, Relation};
use backstory_query::answer::{Flow, Lineage, Link, Node};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::recording::{ExcerptIds, Recording};
use backstory_workflow::steps::{call, names_shell, outside, program};

use crate::account::{Account, AccountRun, Command, PathNode};
use crate::commands::commands;
use crate::{Direction, Result, chain};

/// One run's part of a lineage.
struct RunPart {
    recording: Recording,
    ids: ExcerptIds,
    /// The standard input, output and errors of the run's command.
    outside: HashSet<EntityId>,
    /// The program of each activity's command.
    commands: Vec<usize>,
}

impl Account {
    /// The account of a lineage. `possible`: links that are only possible count like others.
    /// `ownership` decides which files are the user's own.
    ///
    /// # Errors
    ///
    /// If the store fails, or does not have the runs of the lineage.
    pub fn new(
        store: &dyn Store,
        lineage: &Lineage,
        direction: Direction,
        possible: bool,
        ownership: &mut Ownership,
    ) -> Result<Account> {
        let _one_state = store.reading()?;
        let parts = parts(store, lineage)?;
        let mut builder = FlowBuilder {
            lineage,
            parts: &parts,
            possible,
            hidden: 0,
            class: classes(lineage),
            numbers: HashMap::new(),
            commands: Vec::new(),
        };
        builder.read_links();
        builder.join_pipes();
        builder.join_renames();
        Ok(builder.finish(direction, ownership))
    }
}

/// Reads the parts of the runs on a lineage, oldest run first.
fn parts(store: &dyn Store, lineage: &Lineage) -> Result<Vec<RunPart>> {
    let mut wanted: BTreeMap<RunKey, (Vec<ActivityId>, HashSet<EntityId>)> = BTreeMap::new();
    for node in &lineage.nodes {
        match node {
            Node::Activity { id, .. } => {
                let key = ActivityKey(*id);
                wanted.entry(key.run()).or_default().0.push(key.local());
            }
            Node::Entity { id, .. } => {
                let key = EntityKey(*id);
                wanted.entry(key.run()).or_default().1.insert(key.local());
            }
        }
    }
    let mut parts = Vec::new();
    for (run, (activities, entities)) in wanted {
        let (recording, ids) =
            Recording::excerpt(store, run, &activities, &|id| entities.contains(&id))?;
        let outside = outside(&recording);
        let commands = commands(&recording, &outside);
        parts.push(RunPart {
            outside,
            recording,
            ids,
            commands,
        });
    }
    parts.sort_by_key(|part| part.recording.details.summary.started);
    Ok(parts)
}

/// For each node the node that stands for the same version: the one in the run that made it.
fn classes(lineage: &Lineage) -> Vec<usize> {
    let mut class: Vec<usize> = (0..lineage.nodes.len()).collect();
    let same = |link: &&Link| matches!(link.flow, Flow::Same | Flow::Alike);
    for link in lineage.links.iter().filter(same) {
        class[link.to] = link.from;
    }
    for at in 0..class.len() {
        let mut top = at;
        // The count bounds the walk in case two runs have a version from each other.
        for _ in 0..class.len() {
            if class[top] == top {
                break;
            }
            top = class[top];
        }
        class[at] = top;
    }
    class
}

/// A command while its flow is collected.
#[derive(Debug, Default)]
struct Draft {
    run: usize,
    /// The programs of a pipeline, in the order in which data flows.
    stages: Vec<usize>,
    reads: BTreeSet<usize>,
    executes: BTreeSet<usize>,
    first_read: Option<Time>,
    writes: BTreeSet<usize>,
    members: BTreeSet<usize>,
    /// The pipeline that it is part of.
    joined: Option<usize>,
}

struct FlowBuilder<'a> {
    lineage: &'a Lineage,
    parts: &'a [RunPart],
    possible: bool,
    hidden: usize,
    class: Vec<usize>,
    /// The command of a run's program.
    numbers: HashMap<(usize, usize), usize>,
    commands: Vec<Draft>,
}

impl FlowBuilder<'_> {
    fn part(&self, run: RunKey) -> Option<usize> {
        self.parts.iter().position(|part| part.recording.key == run)
    }

    /// The run's number and the activity's index in its part.
    fn activity(&self, node: usize) -> Option<(usize, usize)> {
        let Node::Activity { id, .. } = &self.lineage.nodes[node] else {
            return None;
        };
        let key = ActivityKey(*id);
        let run = self.part(key.run())?;
        let at = *self.parts[run].ids.activities.get(&key.local())?;
        Some((run, at))
    }

    /// The command with this program.
    fn command(&mut self, run: usize, root: usize) -> usize {
        let next = self.commands.len();
        let number = *self.numbers.entry((run, root)).or_insert(next);
        if number == next {
            self.commands.push(Draft {
                run,
                stages: vec![root],
                ..Draft::default()
            });
        }
        number
    }

    fn command_of(&mut self, node: usize) -> Option<usize> {
        let (run, at) = self.activity(node)?;
        let command = self.command(run, self.parts[run].commands[at]);
        self.commands[command].members.insert(at);
        Some(command)
    }

    fn read_links(&mut self) {
        let lineage = self.lineage;
        let certain: HashSet<usize> = lineage
            .links
            .iter()
            .filter(|link| {
                matches!(link.flow, Flow::Generated(_)) && link.certainty == Certainty::Seen
            })
            .map(|link| link.to)
            .collect();
        let mut makers: HashMap<usize, usize> = HashMap::new();
        for link in &lineage.links {
            if matches!(link.flow, Flow::Generated(_)) {
                *makers.entry(link.to).or_default() += 1;
            }
        }
        for link in &lineage.links {
            match link.flow {
                Flow::Used(relation) if self.counts(link, link.from, link.to) => {
                    if self.opened_as_input(link) {
                        continue;
                    }
                    if let Some(command) = self.command_of(link.to) {
                        let file = self.class[link.from];
                        self.commands[command].reads.insert(file);
                        if self.is_file(link.from) {
                            let first = &mut self.commands[command].first_read;
                            let time = link.interval.start;
                            *first = Some(first.map_or(time, |first| first.min(time)));
                        }
                        if relation == Relation::Execute {
                            self.commands[command].executes.insert(file);
                        }
                    }
                }
                Flow::Generated(_)
                    if self.counts(link, link.to, link.from)
                        || !certain.contains(&link.to) && self.is_new(link.to) =>
                {
                    let makers = makers.get(&link.to).copied().unwrap_or_default();
                    if makers > 1 && self.only_opened(link) || self.is_shown(link.to) {
                        continue;
                    }
                    if let Some(command) = self.command_of(link.from) {
                        self.commands[command].writes.insert(self.class[link.to]);
                    }
                }
                Flow::Used(_) | Flow::Generated(_) => self.hidden += 1,
                Flow::Informed(_) => {
                    self.command_of(link.from);
                    self.command_of(link.to);
                }
                Flow::Derived | Flow::Same | Flow::Alike => {}
            }
        }
        self.read_derivations();
    }

    /// A version that was renamed, appended to or changed in place came from the version before.
    fn read_derivations(&mut self) {
        let mut makers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, draft) in self.commands.iter().enumerate() {
            for &file in &draft.writes {
                makers.entry(file).or_default().push(at);
            }
        }
        let derived = |link: &&Link| link.flow == Flow::Derived;
        for link in self.lineage.links.iter().filter(derived) {
            let (from, to) = (self.class[link.from], self.class[link.to]);
            for &command in makers.get(&to).into_iter().flatten() {
                self.commands[command].reads.insert(from);
            }
        }
    }

    /// True if an activity opened a file for the programs that it started, and was not seen to
    /// write to it.
    fn only_opened(&self, link: &Link) -> bool {
        let Some((run, at)) = self.activity(link.from) else {
            return false;
        };
        let entity = self.excerpt_entity(link.to, run);
        entity.is_some_and(|id| self.parts[run].recording.given.contains(&(at, id)))
    }

    /// True if a link between an entity and an activity counts.
    fn counts(&self, link: &Link, entity: usize, activity: usize) -> bool {
        self.possible
            || link.certainty == Certainty::Seen
            || self.is_standard(entity, activity, matches!(link.flow, Flow::Used(_)))
    }

    /// True if a pipe is the standard input of an activity, or its standard output or errors.
    fn is_standard(&self, entity: usize, activity: usize, input: bool) -> bool {
        let Some((run, at)) = self.activity(activity) else {
            return false;
        };
        let Some(id) = self.excerpt_entity(entity, run) else {
            return false;
        };
        let part = &self.parts[run].recording;
        let standard = part.standard[at];
        let ends = match input {
            true => [standard.input, None],
            false => [standard.output, standard.error],
        };
        part.entity(id).kind == EntityKind::Pipe
            && ends.into_iter().flatten().any(|end| end.entity == id)
    }

    /// True if an activity opened a file as the standard input of a program that it started.
    fn opened_as_input(&self, link: &Link) -> bool {
        let Some((run, at)) = self.activity(link.to) else {
            return false;
        };
        let Some(id) = self.excerpt_entity(link.from, run) else {
            return false;
        };
        let recording = &self.parts[run].recording;
        let shell = names_shell(program(recording, at));
        let mut children = recording.children[at].iter();
        let input = |child: &usize| recording.standard[*child].input;
        let own = recording.standard[at]
            .input
            .is_some_and(|end| end.entity == id);
        shell && !own && children.any(|child| input(child).is_some_and(|end| end.entity == id))
    }

    /// True for the standard output and errors of a run's command. Printed text is no result,
    /// unless the question is about that file.
    fn is_shown(&self, node: usize) -> bool {
        let shown = |(run, part): (usize, &RunPart)| {
            let id = self.excerpt_entity(node, run);
            id.is_some_and(|id| part.outside.contains(&id))
        };
        node >= self.lineage.roots && self.parts.iter().enumerate().any(shown)
    }

    /// The entity of a node in a run's part.
    fn excerpt_entity(&self, node: usize, run: usize) -> Option<EntityId> {
        let Node::Entity { id, .. } = &self.lineage.nodes[node] else {
            return None;
        };
        let key = EntityKey(*id);
        let part = &self.parts[run];
        let found = part.ids.entities.get(&key.local()).copied();
        found.filter(|_| part.recording.key == key.run())
    }

    /// True for a version that its run made.
    fn is_new(&self, node: usize) -> bool {
        matches!(&self.lineage.nodes[node], Node::Entity { version, .. } if *version > 0)
    }

    /// Joins commands to pipelines.
    fn join_pipes(&mut self) {
        let mut next: BTreeMap<usize, usize> = BTreeMap::new();
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        let mut ends: BTreeMap<usize, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, draft) in self.commands.iter().enumerate() {
            for &file in draft.writes.iter().filter(|&&file| self.is_pipe(file)) {
                ends.entry(file).or_default().0.push(at);
            }
            for &file in draft.reads.iter().filter(|&&file| self.is_pipe(file)) {
                ends.entry(file).or_default().1.push(at);
            }
        }
        for (pipe, (writers, readers)) in ends {
            let ([from], [to]) = (writers.as_slice(), readers.as_slice()) else {
                continue;
            };
            let (writer, reader) = (&self.commands[*from], &self.commands[*to]);
            if from == to || writer.run != reader.run {
                continue;
            }
            let Some(id) = self.excerpt_entity(pipe, writer.run) else {
                continue;
            };
            let standard = &self.parts[writer.run].recording.standard;
            let (out, input) = (standard[writer.stages[0]], standard[reader.stages[0]]);
            let plain = out.output.is_some_and(|end| end.entity == id)
                && input.input.is_some_and(|end| end.entity == id);
            if plain && !next.contains_key(from) && !before.contains_key(to) {
                next.insert(*from, *to);
                before.insert(*to, *from);
            }
        }
        for first in 0..self.commands.len() {
            if before.contains_key(&first) {
                continue;
            }
            let mut at = first;
            while let Some(&stage) = next.get(&at) {
                let draft = std::mem::take(&mut self.commands[stage]);
                let whole = &mut self.commands[first];
                whole.stages.extend(draft.stages);
                whole.reads.extend(draft.reads);
                whole.executes.extend(draft.executes);
                whole.writes.extend(draft.writes);
                whole.members.extend(draft.members);
                self.commands[stage].joined = Some(first);
                at = stage;
            }
        }
    }

    /// A command that only renamed what one other command made is part of that command.
    fn join_renames(&mut self) {
        let mut makers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, draft) in self.commands.iter().enumerate() {
            for &file in &draft.writes {
                makers.entry(file).or_default().push(at);
            }
        }
        let named = self.renamed();
        for at in 0..self.commands.len() {
            let draft = &self.commands[at];
            let mut origins = draft.writes.iter().map(|file| {
                let makers = makers.get(named.get(file)?)?;
                let [maker] = makers.as_slice() else {
                    return None;
                };
                Some(self.whole(*maker))
            });
            let Some(Some(maker)) = origins.next() else {
                continue;
            };
            if origins.any(|other| other != Some(maker)) || maker == at {
                continue;
            }
            if self.commands[maker].run == draft.run {
                let draft = std::mem::take(&mut self.commands[at]);
                self.commands[maker].writes.extend(draft.writes);
                self.commands[maker].members.extend(draft.members);
                let former = draft.reads.into_iter();
                let own: Vec<usize> = former
                    .filter(|file| self.commands[maker].writes.contains(file))
                    .collect();
                self.commands[maker].reads.extend(own);
                self.commands[at].joined = Some(maker);
            }
        }
    }

    /// The former name of each file that a rename made.
    fn renamed(&self) -> HashMap<usize, usize> {
        let links = &self.lineage.links;
        let renames: HashSet<usize> = links
            .iter()
            .filter(|link| link.flow == Flow::Generated(Relation::Rename))
            .map(|link| link.to)
            .collect();
        links
            .iter()
            .filter(|link| link.flow == Flow::Derived && renames.contains(&link.to))
            .map(|link| (self.class[link.to], self.class[link.from]))
            .collect()
    }

    /// The command that a command is part of, or itself.
    fn whole(&self, command: usize) -> usize {
        whole(&self.commands, command)
    }

    fn is_file(&self, node: usize) -> bool {
        matches!(
            &self.lineage.nodes[node],
            Node::Entity {
                kind: EntityKind::File,
                ..
            }
        )
    }

    fn is_pipe(&self, node: usize) -> bool {
        matches!(
            &self.lineage.nodes[node],
            Node::Entity {
                kind: EntityKind::Pipe,
                ..
            }
        )
    }

    fn finish(mut self, direction: Direction, ownership: &mut Ownership) -> Account {
        let mut files = Files {
            lineage: self.lineage,
            numbers: HashMap::new(),
            files: Vec::new(),
        };
        let mut roots: Vec<usize> = (0..self.lineage.roots)
            .map(|root| files.number(self.class[root]))
            .collect();
        roots.dedup();
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
            file.own = ownership.is_own(&file.path);
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
            cut: self.lineage.cut,
            possible: self.hidden,
        };
        chain::find(&mut account);
        account
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
        executes.sort_unstable();
        let mut writes: Vec<usize> = draft
            .writes
            .iter()
            .filter(outer)
            .map(|&file| files.number(file))
            .collect();
        reads.sort_unstable();
        writes.sort_unstable();
        Command {
            run: draft.run,
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
            programs: draft.members.len(),
        }
    }

    /// Writes the commands in order of time, so that an output that was begun is continued.
    fn write_lines(&self, drafts: &[Draft], place: &[usize], commands: &mut [Command]) {
        let mut order: Vec<usize> = (0..drafts.len())
            .filter(|&at| drafts[at].joined.is_none())
            .collect();
        order.sort_by_key(|&at| commands[place[at]].start);
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
fn whole(drafts: &[Draft], at: usize) -> usize {
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
            });
        }
        number
    }
}
