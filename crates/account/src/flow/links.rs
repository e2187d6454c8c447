//! Reads the links of a lineage: what each command read, executed and wrote.

use super::FlowBuilder;
use backstory_graph::model::{Certainty, EntityId, EntityKind, Relation};
use backstory_query::answer::{Flow, Link, Node};
use backstory_store::EntityKey;
use backstory_workflow::steps::{is_plan, is_read_by_builder, names_shell, program};
use rustc_hash::FxHashMap;

impl FlowBuilder<'_> {
    pub(super) fn read_links(&mut self) {
        let lineage = self.lineage;
        // For each node: whether its maker was seen, and the number of links from makers.
        let mut certain = vec![false; self.nodes.len()];
        let mut makers = vec![0_usize; self.nodes.len()];
        for link in &lineage.links {
            if matches!(link.flow, Flow::Generated(_)) {
                certain[link.to] |= link.certainty == Certainty::Seen;
                makers[link.to] += 1;
            }
        }
        for link in &lineage.links {
            match link.flow {
                Flow::Used(relation) if self.counts(link, link.from, link.to) => {
                    if self.opened_as_input(link) || self.is_bookkeeping(link) {
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
                        || !certain[link.to] && self.is_new(link.to) =>
                {
                    let has_more = makers[link.to] > 1;
                    if has_more && self.only_opened(link) || self.is_shown(link.to) {
                        continue;
                    }
                    if let Some(command) = self.command_of(link.from) {
                        self.commands[command].writes.insert(self.class[link.to]);
                    }
                }
                Flow::Informed(_) => {
                    self.command_of(link.from);
                    self.command_of(link.to);
                }
                // The others are only possible.
                Flow::Used(_) => self.doubt(link.to, link.from),
                Flow::Generated(_) => self.doubt(link.from, link.to),
                Flow::Derived | Flow::Same | Flow::Alike => {}
            }
        }
        self.read_derivations();
        self.read_moves();
    }

    /// Notes a link that is only possible and is not followed.
    fn doubt(&mut self, activity: usize, entity: usize) {
        if let Some((run, at)) = self.nodes.activity(activity) {
            let command = (run, self.parts[run].commands[at]);
            self.doubts.insert((command, self.class[entity]));
        }
    }

    /// A version that has no maker because a directory above it was renamed: the maker of the file
    /// under its former name made it.
    pub(super) fn read_moves(&mut self) {
        let mut made = vec![false; self.nodes.len()];
        let generated = |link: &&Link| matches!(link.flow, Flow::Generated(_));
        for link in self.lineage.links.iter().filter(generated) {
            made[self.class[link.to]] = true;
        }
        let derived = |link: &&Link| link.flow == Flow::Derived;
        let former: FxHashMap<usize, usize> = (self.lineage.links.iter().filter(derived))
            .map(|link| (self.class[link.to], self.class[link.from]))
            .filter(|(to, _)| !made[*to])
            .collect();
        let mut later: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for &name in former.keys() {
            // The number of names bounds the walk.
            let mut names = std::iter::successors(Some(name), |name| former.get(name).copied());
            if let Some(first) = names.by_ref().take(former.len() + 1).last() {
                later.entry(first).or_default().push(name);
            }
        }
        for draft in &mut self.commands {
            let moved: Vec<usize> = (draft.writes.iter())
                .filter_map(|file| later.get(file))
                .flatten()
                .copied()
                .collect();
            draft.writes.extend(moved);
        }
    }

    /// A version that was renamed, appended to or changed in place came from the version before.
    pub(super) fn read_derivations(&mut self) {
        let mut makers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (at, draft) in self.commands.iter().enumerate() {
            for &file in &draft.writes {
                makers.entry(file).or_default().push(at);
            }
        }
        let lineage = self.lineage;
        let derived = |link: &&Link| link.flow == Flow::Derived;
        for link in lineage.links.iter().filter(derived) {
            let (from, to) = (self.class[link.from], self.class[link.to]);
            let unknown = self.is_unstated(link.from) && !makers.contains_key(&from);
            if unknown || self.was_empty(link.from) {
                continue;
            }
            for &command in makers.get(&to).into_iter().flatten() {
                self.commands[command].reads.insert(from);
            }
        }
    }

    /// True for the state before the run of a file that a shell emptied for the command's output:
    /// nothing came from it.
    fn was_empty(&self, node: usize) -> bool {
        let Node::Entity {
            id,
            path,
            version: 0,
            ..
        } = &self.lineage.nodes[node]
        else {
            return false;
        };
        let part = self.nodes.part(EntityKey(*id).run());
        part.is_some_and(|run| self.parts[run].emptied.iter().any(|file| **file == **path))
    }

    /// True for the state of a thing before the run. A program that writes a part of a thing does
    /// not say that the thing existed.
    fn is_unstated(&self, node: usize) -> bool {
        matches!(
            self.lineage.nodes[node],
            Node::Entity {
                kind: EntityKind::Resource,
                version: 0,
                ..
            }
        )
    }

    /// True if an activity opened a file for the programs that it started, and was not seen to
    /// write to it.
    pub(super) fn only_opened(&self, link: &Link) -> bool {
        let Some((run, at)) = self.nodes.activity(link.from) else {
            return false;
        };
        let entity = self.excerpt_entity(link.to, run);
        entity.is_some_and(|id| self.parts[run].recording.given.contains(&(at, id)))
    }

    /// True if a link between an entity and an activity counts.
    pub(super) fn counts(&self, link: &Link, entity: usize, activity: usize) -> bool {
        self.possible
            || link.certainty == Certainty::Seen
            || self.is_standard(entity, activity, matches!(link.flow, Flow::Used(_)))
    }

    /// True if a pipe is the standard input of an activity, or its standard output or errors.
    pub(super) fn is_standard(&self, entity: usize, activity: usize, input: bool) -> bool {
        let Some((run, at)) = self.nodes.activity(activity) else {
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

    /// True if an activity read the file only to find out or plan which commands must run.
    fn is_bookkeeping(&self, link: &Link) -> bool {
        let Some((run, at)) = self.nodes.activity(link.to) else {
            return false;
        };
        let Some(path) = self.nodes.path(link.from) else {
            return false;
        };
        let recording = &self.parts[run].recording;
        let entity = self.excerpt_entity(link.from, run);
        self.nodes.is_record(link.from)
            || is_read_by_builder(recording, at, path)
            || entity.is_some_and(|id| is_plan(recording, at, id))
    }

    /// True if an activity opened a file as the standard input of a program that it started.
    pub(super) fn opened_as_input(&self, link: &Link) -> bool {
        let Some((run, at)) = self.nodes.activity(link.to) else {
            return false;
        };
        let Some(id) = self.excerpt_entity(link.from, run) else {
            return false;
        };
        let recording = &self.parts[run].recording;
        let is_input = |activity: usize| {
            let input = recording.standard[activity].input;
            input.is_some_and(|end| end.entity == id)
        };
        let mut children = recording.children[at].iter();
        !is_input(at)
            && children.any(|&child| is_input(child))
            && names_shell(program(recording, at))
    }

    /// True for the standard output and errors of a run's command. Printed text is no result,
    /// unless the question is about that file.
    pub(super) fn is_shown(&self, node: usize) -> bool {
        let is_outside = |(run, id): (usize, EntityId)| self.parts[run].outside.contains(&id);
        node >= self.lineage.roots && self.nodes.entity(node).is_some_and(is_outside)
    }

    /// The entity of a node in a run's part.
    pub(super) fn excerpt_entity(&self, node: usize, run: usize) -> Option<EntityId> {
        let place = self.nodes.entity(node);
        place
            .filter(|(part, _)| *part == run)
            .map(|(_, entity)| entity)
    }

    /// True for a version that its run made.
    pub(super) fn is_new(&self, node: usize) -> bool {
        matches!(&self.lineage.nodes[node], Node::Entity { version, .. } if *version > 0)
    }
}
