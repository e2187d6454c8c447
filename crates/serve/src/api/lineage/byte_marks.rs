//! Marks the links of a draft by bytes, where the byte engine followed a run.

use std::collections::BTreeSet;

use backstory_query::{ByteLink, ByteMarks, ByteNode, LinkKind, RefinedRuns};
use backstory_store::EntityKey;
use backstory_vocabulary::Word;

use super::draft::GraphDraft;
use super::graph_rows::GraphNode;
use crate::api::ids;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::readers::Reading;

/// The most results whose bytes are looked up.
const MOST: usize = 64;

/// Marks the inputs that gave the results of the draft no byte, and those that gave them some.
/// Returns why results of a refined run have no marks.
pub fn mark(draft: &mut GraphDraft, reading: &Reading<'_>) -> Answer<BTreeSet<String>> {
    let mut runs = RefinedRuns::of(reading.store, &reading.home.bytes_dir(""));
    if runs.is_empty() {
        return Ok(BTreeSet::new());
    }
    reading.check()?;
    let versions: Vec<Option<EntityKey>> = draft
        .nodes
        .iter()
        .map(|node| match node {
            GraphNode::File(file) if file.own && file.kind == "file" => ids::key_of(&file.id),
            _ => None,
        })
        .collect();
    let nodes: Vec<ByteNode<'_>> = draft
        .nodes
        .iter()
        .zip(&versions)
        .map(|(node, version)| match (node, version) {
            (GraphNode::File(file), Some(version)) => ByteNode::File(*version, &file.path.0),
            (GraphNode::Process(_) | GraphNode::Command(_), _) => ByteNode::Activity,
            _ => ByteNode::Other,
        })
        .collect();
    let links = draft.links.iter().map(|(from, to, link)| ByteLink {
        from: *from,
        to: *to,
        kind: match (link.flow, link.relation) {
            ("used", Some("read")) => LinkKind::Read,
            ("used", Some("exec")) => LinkKind::Execute,
            ("informed", Some("wait" | "signal")) => LinkKind::Signal,
            _ => LinkKind::Other,
        },
    });
    let links: Vec<ByteLink> = links.collect();
    let marks = ByteMarks::of(&mut runs, &nodes, &links, MOST)?;
    let paths: Vec<Vec<PathText>> = marks
        .none_of
        .iter()
        .map(|inputs| inputs.iter().filter_map(|&at| path_of(&draft.nodes[at])))
        .map(Iterator::collect)
        .collect();
    for (node, none_of) in draft.nodes.iter_mut().zip(paths) {
        if let GraphNode::File(file) = node {
            file.no_byte_of = none_of;
        }
    }
    for ((.., link), bytes) in draft.links.iter_mut().zip(marks.uses) {
        link.bytes = bytes.map(|bytes| bytes.word());
    }
    Ok(marks.unreadable)
}

fn path_of(node: &GraphNode) -> Option<PathText> {
    match node {
        GraphNode::File(file) => Some(file.path.clone()),
        _ => None,
    }
}
