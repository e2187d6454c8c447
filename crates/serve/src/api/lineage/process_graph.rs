//! The graph of processes and versions. In: a lineage from `query`. Out: a draft.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_query::answer::{Flow, Lineage, Link, Node};
use backstory_store::{ActivityKey, EntityKey};
use backstory_vocabulary::Word;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::shell;

use super::draft::GraphDraft;
use super::graph_rows::{FileNode, GraphLink, GraphNode, ProcessNode};
use crate::api::ids;
use crate::api::run_row::seconds;

/// The draft of a lineage.
pub fn draft(lineage: &Lineage, owners: &mut Ownership) -> GraphDraft {
    let mut made = vec![false; lineage.nodes.len()];
    for link in &lineage.links {
        made[link.to] = true;
    }
    let mut draft = GraphDraft::default();
    for (at, node) in lineage.nodes.iter().enumerate() {
        let reach = lineage.reach.get(at).map(|time| time.to_string());
        let node = graph_node(node, reach, !made[at], owners);
        let noise = matches!(&node, GraphNode::File(file) if !file.own && is_of_path(&file.path.0));
        draft.push(node, noise);
    }
    for link in &lineage.links {
        let name = |at: usize| draft.nodes[at].id().to_owned();
        let row = link_row(link, name(link.from), name(link.to));
        draft.links.push((link.from, link.to, row));
    }
    draft.roots = (0..lineage.roots).into_tree::<BTreeSet<_>>();
    draft
}

fn graph_node(
    node: &Node,
    reach: Option<String>,
    source: bool,
    owners: &mut Ownership,
) -> GraphNode {
    match node {
        Node::Entity {
            id,
            run,
            kind,
            path,
            version,
            ident,
            digest,
            kept,
        } => GraphNode::File(FileNode {
            id: ids::of_version(EntityKey(*id)),
            run: run.clone(),
            own: owners.is_own(path),
            path: path.into(),
            kind: kind.word(),
            version: *version,
            size: ident.map(|ident| ident.size),
            modified: ident.map(|ident| seconds(ident.mtime)),
            digest: digest.map(|digest| digest.to_string()),
            kept: *kept,
            source,
            no_byte_of: Vec::new(),
            reach,
        }),
        Node::Activity {
            id,
            run,
            pid,
            epoch,
            exec_path,
            argv,
            cwd,
            interval,
            ..
        } => GraphNode::Process(ProcessNode {
            id: ids::of_process(ActivityKey(*id)),
            run: run.clone(),
            pid: *pid,
            epoch: *epoch,
            program: exec_path.as_ref().map(Into::into),
            line: shell::line(argv),
            cwd: cwd.into(),
            start: seconds(interval.start),
            end: seconds(interval.end),
            reach,
        }),
    }
}

fn link_row(link: &Link, from: String, to: String) -> GraphLink {
    let (flow, relation) = match link.flow {
        Flow::Used(relation) => ("used", Some(relation.words().word)),
        Flow::Generated(relation) => ("generated", Some(relation.words().word)),
        Flow::Derived => ("derived", None),
        Flow::Same => ("same", None),
        Flow::Alike => ("alike", None),
        Flow::Informed(why) => ("informed", Some(why.words().word)),
    };
    GraphLink {
        from,
        to,
        flow,
        relation,
        certainty: link.certainty.word(),
        start: seconds(link.interval.start),
        end: seconds(link.interval.end),
        bytes: None,
    }
}

/// True for a path, as opposed to the name of a pipe or socket.
fn is_of_path(name: &[u8]) -> bool {
    name.first() == Some(&b'/')
}
