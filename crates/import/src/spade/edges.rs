//! The edges. In SPADE each leads from an effect to its cause: `Used` from the process to the
//! artifact, `WasGeneratedBy` from the artifact to the process.

use super::statement::{Statement, Vertex, moment};
use crate::description::{Description, DescriptionGaps, Flow, Span};
use backstory_graph::model::{Informed, Relation};
use std::collections::HashMap;

/// An edge whose vertices may not be known yet.
#[derive(Debug)]
pub(super) struct Edge {
    sort: EdgeSort,
    from: Vec<u8>,
    to: Vec<u8>,
    operation: Vec<u8>,
    time: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    is_certain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeSort {
    Used,
    Generated,
    Informed,
    Derived,
    Controlled,
}

impl Edge {
    /// The edge of a line. `None` if SPADE does not have its type, or an end lacks.
    pub(super) fn of(sort: &str, mut stated: Statement) -> Option<Edge> {
        let sort = match sort {
            "used" => EdgeSort::Used,
            "wasgeneratedby" => EdgeSort::Generated,
            "wastriggeredby" | "wasinformedby" => EdgeSort::Informed,
            "wasderivedfrom" => EdgeSort::Derived,
            "wascontrolledby" | "wasassociatedwith" | "wasattributedto" => EdgeSort::Controlled,
            _ => return None,
        };
        let certainty = stated.take(&[b"certainty"]);
        Some(Edge {
            sort,
            operation: stated.take(&[b"operation"]).unwrap_or_default(),
            time: stated.take(&[b"time", b"start time", b"datetime"]),
            end: stated.take(&[b"end time"]),
            is_certain: certainty.as_deref() != Some(b"possible"),
            from: stated.from?,
            to: stated.to?,
        })
    }

    /// Adds the edge to the description, or counts it.
    pub(super) fn place(
        self,
        vertices: &HashMap<Box<[u8]>, Vertex>,
        agents: &[Vec<u8>],
        description: &mut Description,
        gaps: &mut DescriptionGaps,
    ) {
        let vertex = |id: &[u8]| vertices.get(id).copied();
        let (Some(from), Some(to)) = (vertex(&self.from), vertex(&self.to)) else {
            gaps.unplaced("edges of vertices without a line");
            return;
        };
        let start = moment(self.time, gaps);
        let end = moment(self.end, gaps).or(start);
        let flow = |activity, entity, relation| Flow {
            activity,
            entity,
            relation,
            is_certain: self.is_certain,
            span: Span { start, end },
        };
        use Vertex::{Activity, Agent, Entity};
        match (self.sort, from, to) {
            (EdgeSort::Used, Activity(activity), Entity(entity)) => {
                description.flow(flow(activity, entity, use_of(&self.operation)));
            }
            (EdgeSort::Generated, Entity(entity), Activity(activity)) => {
                description.flow(flow(activity, entity, generation_of(&self.operation)));
            }
            (EdgeSort::Informed, Activity(child), Activity(parent)) => {
                description.inform(parent, child, informing_of(&self.operation), start);
            }
            (EdgeSort::Derived, Entity(new), Entity(old)) => {
                description.derive(new, old, None, start);
            }
            (EdgeSort::Controlled, Activity(activity), Agent(agent)) => {
                let notes = &mut description.activity_mut(activity).notes;
                notes.push((b"agent".to_vec(), agents[agent].clone()));
            }
            (EdgeSort::Controlled, Entity(_), Agent(_)) => {
                gaps.unplaced("attributions of things to agents");
            }
            _ => gaps.unplaced("edges between vertices of other types"),
        }
    }
}

/// The use that an operation is: a word of backstory, or a call as SPADE's reporters name it.
fn use_of(operation: &[u8]) -> Relation {
    let is = |part: &str| memchr::memmem::find(operation, part.as_bytes()).is_some();
    match own(operation) {
        Some(relation) if relation.is_use() => relation,
        _ if is("readlink") => Relation::Link,
        _ if is("stat") => Relation::Stat,
        _ if is("getdents") => Relation::List,
        _ if is("exec") || is("load") => Relation::Execute,
        _ => Relation::Read,
    }
}

fn generation_of(operation: &[u8]) -> Relation {
    let is = |part: &str| memchr::memmem::find(operation, part.as_bytes()).is_some();
    match own(operation) {
        Some(relation) if !relation.is_use() => relation,
        _ if is("unlink") || is("rmdir") => Relation::Delete,
        _ if is("rename") => Relation::Rename,
        _ if is("chmod") || is("chown") || is("utime") => Relation::Meta,
        _ if is("mkdir") || is("mknod") || is("symlink") => Relation::Make,
        _ => Relation::Write,
    }
}

fn own(operation: &[u8]) -> Option<Relation> {
    let mut all = Relation::ALL.into_iter();
    all.find(|relation| relation.words().word.as_bytes() == operation)
}

fn informing_of(operation: &[u8]) -> Informed {
    let mut all = Informed::ALL.into_iter();
    match operation {
        b"execve" | b"execveat" => Informed::Exec,
        b"exit" => Informed::Wait,
        b"kill" => Informed::Signal,
        _ => all
            .find(|why| why.words().word.as_bytes() == operation)
            .unwrap_or(Informed::Fork),
    }
}
