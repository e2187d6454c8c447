//! Joins the commands of a pipeline, and the names of a file that was renamed.

use super::FlowBuilder;
use super::results::whole;
use backstory_graph::model::{EntityKind, Relation};
use backstory_query::answer::Flow;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

impl FlowBuilder<'_> {
    /// Joins commands to pipelines.
    pub(super) fn join_pipes(&mut self) {
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
    pub(super) fn join_renames(&mut self) {
        let mut makers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
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
    pub(super) fn renamed(&self) -> FxHashMap<usize, usize> {
        let links = &self.lineage.links;
        let renames: FxHashSet<usize> = links
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
    pub(super) fn whole(&self, command: usize) -> usize {
        whole(&self.commands, command)
    }

    pub(super) fn is_file(&self, node: usize) -> bool {
        self.nodes.is(node, EntityKind::File)
    }

    pub(super) fn is_pipe(&self, node: usize) -> bool {
        self.nodes.is(node, EntityKind::Pipe)
    }
}
