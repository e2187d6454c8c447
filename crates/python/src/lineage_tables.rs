//! The answer of `of` and `uses`: nodes and links as tables, with the fields of `--json`.

use std::path::PathBuf;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_query::Direction;
use backstory_query::answer::{Flow, Lineage, Link, Node};
use backstory_vocabulary::Word;
use pyo3::prelude::*;

use crate::columns::Columns;
use crate::failure::Failure;
use crate::step_tables;
use crate::table::Table;

/// A lineage. Its tables are made when they are asked for.
#[pyclass(frozen, module = "backstory._core")]
pub struct LineageAnswer {
    lineage: Lineage,
    direction: Direction,
    directory: PathBuf,
}

impl LineageAnswer {
    /// The answer to a question about the store in this directory.
    pub fn new(lineage: Lineage, direction: Direction, directory: PathBuf) -> Self {
        LineageAnswer {
            lineage,
            direction,
            directory,
        }
    }
}

#[pymethods]
impl LineageAnswer {
    /// The number of nodes that are the subject of the question: the first ones.
    #[getter]
    fn roots(&self) -> usize {
        self.lineage.roots
    }

    /// True if the answer was cut at the requested depth.
    #[getter]
    fn cut(&self) -> bool {
        self.lineage.cut
    }

    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(py.detach(|| nodes(&self.lineage.nodes))?)
    }

    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(py.detach(|| links(&self.lineage.links))?)
    }

    /// The lineage in the commands that a person would have written. In this order: the files, the
    /// commands between them, the commands that started these, and the subject's files by index.
    fn steps(&self, py: Python<'_>) -> PyResult<(Table, Table, Table, Vec<u32>)> {
        let made =
            py.detach(|| step_tables::steps(&self.directory, &self.lineage, self.direction))?;
        Ok((made.files, made.steps, made.drivers, made.roots))
    }
}

/// The fields that only entities have.
struct EntityFields<'n> {
    version: u32,
    ident: Option<&'n Ident>,
    digest: Option<String>,
    kept: bool,
}

fn entity(node: &Node) -> Option<EntityFields<'_>> {
    match node {
        Node::Activity { .. } => None,
        Node::Entity {
            version,
            ident,
            digest,
            kept,
            ..
        } => Some(EntityFields {
            version: *version,
            ident: ident.as_ref(),
            digest: digest.map(|digest| digest.to_string()),
            kept: *kept,
        }),
    }
}

/// The fields that only activities have.
struct ActivityFields<'n> {
    pid: u32,
    epoch: u32,
    exec_path: Option<&'n Bytes>,
    argv: &'n [Bytes],
    cwd: &'n Bytes,
    start: Time,
    end: Time,
}

fn activity(node: &Node) -> Option<ActivityFields<'_>> {
    match node {
        Node::Entity { .. } => None,
        Node::Activity {
            pid,
            epoch,
            exec_path,
            argv,
            cwd,
            interval,
            ..
        } => Some(ActivityFields {
            pid: *pid,
            epoch: *epoch,
            exec_path: exec_path.as_ref(),
            argv,
            cwd,
            start: interval.start,
            end: interval.end,
        }),
    }
}

fn nodes(nodes: &[Node]) -> Result<Table, Failure> {
    let mut columns = Columns::default();
    let all = || nodes.iter();
    let entities = || nodes.iter().map(entity);
    let activities = || nodes.iter().map(activity);
    let ident = |number: fn(&Ident) -> i64| {
        entities().map(move |one| one.and_then(|one| one.ident.map(number)))
    };
    let (kinds, ids): (Vec<&str>, Vec<(u64, &str)>) = all()
        .map(|node| match node {
            Node::Entity { id, run, .. } => ("entity", (*id, run.as_str())),
            Node::Activity { id, run, .. } => ("activity", (*id, run.as_str())),
        })
        .unzip();
    columns.labels("type", kinds.iter().map(Some));
    columns.numbers::<UInt64Type>("id", ids.iter().map(|(id, _)| *id));
    columns.labels("run", ids.iter().map(|(_, run)| Some(run)));
    columns.labels(
        "kind",
        all().map(|node| match node {
            Node::Entity { kind, .. } => Some(kind.word()),
            Node::Activity { .. } => None,
        }),
    );
    columns.paths(
        "path",
        all().map(|node| match node {
            Node::Entity { path, .. } => Some(path),
            Node::Activity { .. } => None,
        }),
    );
    columns.optional::<UInt32Type>("version", entities().map(|one| Some(one?.version)));
    columns.text("digest", entities().map(|one| one?.digest));
    columns.bools("kept", entities().map(|one| Some(one?.kept)));
    columns.optional::<UInt64Type>("dev", entities().map(|one| Some(one?.ident?.dev)));
    columns.optional::<UInt64Type>("ino", entities().map(|one| Some(one?.ident?.ino)));
    columns.optional::<Int64Type>("size", ident(|ident| ident.size));
    columns.times("mtime", ident(|ident| ident.mtime));
    columns.times("ctime", ident(|ident| ident.ctime));
    let birth = |one: Option<EntityFields<'_>>| Some(one?.ident?.birth).filter(|&time| time != 0);
    columns.times("birth", entities().map(birth));
    columns.optional::<UInt32Type>("mode", entities().map(|one| Some(one?.ident?.mode)));
    columns.optional::<UInt32Type>("pid", activities().map(|one| Some(one?.pid)));
    columns.optional::<UInt32Type>("epoch", activities().map(|one| Some(one?.epoch)));
    columns.text("exec_path", activities().map(|one| one?.exec_path));
    columns.lists(
        "argv",
        activities().map(|one| one.map_or(&[][..], |one| one.argv)),
    );
    columns.text("cwd", activities().map(|one| Some(one?.cwd)));
    columns.times("start", activities().map(|one| Some(one?.start)));
    columns.times("end", activities().map(|one| Some(one?.end)));
    Ok(columns.table()?)
}

fn links(links: &[Link]) -> Result<Table, Failure> {
    let mut columns = Columns::default();
    let all = || links.iter();
    // A lineage has less than 2^32 nodes: a store numbers the entities of a run with 32 bits.
    columns.numbers::<UInt32Type>("from", all().map(|link| link.from as u32));
    columns.numbers::<UInt32Type>("to", all().map(|link| link.to as u32));
    columns.labels("flow", all().map(|link| Some(flow(&link.flow).0)));
    columns.labels("how", all().map(|link| flow(&link.flow).1));
    columns.labels("certainty", all().map(|link| Some(link.certainty.word())));
    columns.times("start", all().map(|link| Some(link.interval.start)));
    columns.times("end", all().map(|link| Some(link.interval.end)));
    Ok(columns.table()?)
}

/// The words of a flow.
fn flow(flow: &Flow) -> (&'static str, Option<&'static str>) {
    match flow {
        Flow::Used(relation) => ("used", Some(relation.words().word)),
        Flow::Generated(relation) => ("generated", Some(relation.words().word)),
        Flow::Derived => ("derived", None),
        Flow::Same => ("same", None),
        Flow::Alike => ("same", Some("content")),
        Flow::Informed(how) => ("informed", Some(how.words().word)),
    }
}
