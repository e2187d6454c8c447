//! The graph of commands and files. In: an account. Out: a draft. Commands that differ in the names
//! of files only are one node.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstory_account::{Account, Siblings, siblings};
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Certainty, EntityKind};
use backstory_query::answer::{Lineage, Node};
use backstory_store::{ActivityKey, EntityKey};
use backstory_vocabulary::Word as _;
use backstory_workflow::steps::Word;

use super::draft::GraphDraft;
use super::graph_rows::{CommandNode, FileNode, GraphLink, GraphNode};
use crate::api::ids;
use crate::api::run_row::seconds;

/// The draft of an account of this lineage.
pub fn draft(account: &Account, lineage: &Lineage) -> GraphDraft {
    let mut builder = Builder {
        account,
        facts: lineage
            .nodes
            .iter()
            .filter_map(|node| match node {
                Node::Entity { id, .. } => Some((*id, node)),
                Node::Activity { .. } => None,
            })
            .collect(),
        places: BTreeMap::new(),
        draft: GraphDraft::default(),
    };
    for &root in &account.roots {
        let at = builder.file(root);
        builder.draft.roots.insert(at);
    }
    for step in siblings(account, &account.chain) {
        builder.step(&step);
    }
    builder.draft
}

struct Builder<'a> {
    account: &'a Account,
    facts: HashMap<u64, &'a Node>,
    /// The nodes of the files.
    places: BTreeMap<usize, usize>,
    draft: GraphDraft,
}

impl Builder<'_> {
    fn step(&mut self, step: &Siblings) {
        let node = self.command(step);
        let id = node.id.clone();
        let (start, end) = (node.start, node.end);
        let at = self.draft.push(GraphNode::Command(node), false);
        let commands = step.commands.iter().map(|&one| &self.account.commands[one]);
        let mut reads = BTreeSet::new();
        let mut executes = BTreeSet::new();
        let mut writes = BTreeSet::new();
        for command in commands {
            reads.extend(command.reads.iter().copied());
            executes.extend(command.executes.iter().copied());
            writes.extend(command.writes.iter().copied());
        }
        let link = |from: String, to: String, flow, relation| GraphLink {
            from,
            to,
            flow,
            relation: Some(relation),
            certainty: Certainty::Seen.word(),
            start,
            end,
            bytes: None,
        };
        for &file in &reads {
            let other = self.file(file);
            let name = self.draft.nodes[other].id().to_owned();
            let relation = if executes.contains(&file) {
                "exec"
            } else {
                "read"
            };
            let link = link(name, id.clone(), "used", relation);
            self.draft.links.push((other, at, link));
        }
        for &file in &writes {
            let other = self.file(file);
            let name = self.draft.nodes[other].id().to_owned();
            let link = link(id.clone(), name, "generated", "write");
            self.draft.links.push((at, other, link));
        }
    }

    fn command(&self, step: &Siblings) -> CommandNode {
        let commands = || step.commands.iter().map(|&one| &self.account.commands[one]);
        let first = step
            .commands
            .first()
            .map(|&one| &self.account.commands[one]);
        let words: Vec<&str> = step.words.iter().map(|word| word.text.as_str()).collect();
        let line = match first {
            Some(first) if step.commands.len() == 1 => first.line.command(),
            _ => words.join(" "),
        };
        let program = first.and_then(|first| {
            first.line.words.iter().find_map(|word| match word {
                Word::Program(name) => Some(name.into()),
                _ => None,
            })
        });
        let run = first.map(|first| &self.account.runs[first.run].details.summary.id);
        CommandNode {
            id: ids::of_commands(commands().map(|one| ActivityKey(one.activity))),
            run: run.cloned().unwrap_or_default(),
            line,
            program,
            cwd: (&step.cwd).into(),
            start: seconds(commands().map(|one| one.start).min().unwrap_or_default()),
            end: seconds(commands().map(|one| one.end).max().unwrap_or_default()),
            processes: commands().map(|one| one.programs.len()).sum(),
            commands: step.commands.len(),
            own: step.commands.iter().any(|&one| self.account.concerns(one)),
        }
    }

    /// The node of a file. A file of a package, of the system or of a cache is noise, also if a
    /// command of the lineage made it.
    fn file(&mut self, file: usize) -> usize {
        if let Some(known) = self.places.get(&file) {
            return *known;
        }
        let path = &self.account.files[file];
        let is_file = matches!(path.kind, EntityKind::File | EntityKind::Symlink);
        let noise = is_file && !path.own || path.kind == EntityKind::Directory;
        let node = GraphNode::File(self.file_node(file));
        let at = self.draft.push(node, noise);
        self.places.insert(file, at);
        at
    }

    fn file_node(&self, file: usize) -> FileNode {
        let path = &self.account.files[file];
        let fact = self.facts.get(&path.entity);
        let (run, version, digest, kept) = match fact {
            Some(Node::Entity {
                run,
                version,
                digest,
                kept,
                ..
            }) => (run.clone(), *version, *digest, *kept),
            _ => Default::default(),
        };
        FileNode {
            id: ids::of_version(EntityKey(path.entity)),
            run,
            path: (&path.path as &Bytes).into(),
            kind: path.kind.word(),
            version,
            size: path.size,
            modified: path.modified.map(seconds),
            digest: digest.map(|digest| digest.to_string()),
            kept,
            own: path.own,
            source: self.account.is_source(file),
            no_byte_of: Vec::new(),
            reach: None,
        }
    }
}
