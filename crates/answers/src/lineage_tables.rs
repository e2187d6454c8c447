//! The answer of `of` and `uses`: nodes and links as tables, with the fields of `--json`.

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_query::answer::{Flow, Link, Node};
use backstory_vocabulary::Word;

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;

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

/// The nodes of a lineage.
pub fn nodes(nodes: &[Node]) -> Result<AnswerTable, Failure> {
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
    columns.numbers::<u64>("id", ids.iter().map(|(id, _)| *id));
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
    columns.optional::<u32>("version", entities().map(|one| Some(one?.version)));
    columns.text("digest", entities().map(|one| one?.digest));
    columns.bools("kept", entities().map(|one| Some(one?.kept)));
    columns.optional::<u64>("dev", entities().map(|one| Some(one?.ident?.dev)));
    columns.optional::<u64>("ino", entities().map(|one| Some(one?.ident?.ino)));
    columns.optional::<i64>("size", ident(|ident| ident.size));
    columns.times("mtime", ident(|ident| ident.mtime));
    columns.times("ctime", ident(|ident| ident.ctime));
    let birth = |one: Option<EntityFields<'_>>| Some(one?.ident?.birth).filter(|&time| time != 0);
    columns.times("birth", entities().map(birth));
    columns.optional::<u32>("mode", entities().map(|one| Some(one?.ident?.mode)));
    columns.optional::<u32>("pid", activities().map(|one| Some(one?.pid)));
    columns.optional::<u32>("epoch", activities().map(|one| Some(one?.epoch)));
    columns.text("exec_path", activities().map(|one| one?.exec_path));
    columns.lists(
        "argv",
        activities().map(|one| one.map_or(&[][..], |one| one.argv)),
    );
    columns.text("cwd", activities().map(|one| Some(one?.cwd)));
    columns.times("start", activities().map(|one| Some(one?.start)));
    columns.times("end", activities().map(|one| Some(one?.end)));
    Ok(columns.table())
}

/// The links between them.
pub fn links(links: &[Link]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || links.iter();
    // A lineage has less than 2^32 nodes: a store numbers the entities of a run with 32 bits.
    columns.numbers::<u32>("from", all().map(|link| link.from as u32));
    columns.numbers::<u32>("to", all().map(|link| link.to as u32));
    columns.labels("flow", all().map(|link| Some(flow(&link.flow).0)));
    columns.labels("how", all().map(|link| flow(&link.flow).1));
    columns.labels("certainty", all().map(|link| Some(link.certainty.word())));
    columns.times("start", all().map(|link| Some(link.interval.start)));
    columns.times("end", all().map(|link| Some(link.interval.end)));
    Ok(columns.table())
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
