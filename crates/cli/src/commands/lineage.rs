//! `of` and `uses`: print the lineage of a file in either direction, as a tree, for Graphviz or as
//! JSON.

use std::io::{self, Write};
use std::path::Path;

use backstory_files::Ident;
use backstory_graph::model::EntityKind;
use backstory_query as query;
use backstory_query::answer::{Flow, Lineage, Link, Node, Scope};
use backstory_store::{ActivityKey, EntityKey, Store};
use backstory_vocabulary::Word;

use super::account::AskedAccount;
use super::byte_origins::FileBytes;
use super::database_history::{DatabaseHistory, table_subject};
use super::{Outcome, account, answer, here, open_watches};
use crate::args::lineage::{Level, LineageArgs, SourceList};
use crate::current_store::CurrentStore;
use crate::error::{Failure, Status, complain};
use crate::json::{self, Fields};
use crate::present_file::ChangedFile;
use crate::subject::{self, FileSubject, PathNotation, Reach};
use crate::text::dot;
use crate::text::style::{Role, Style};
use crate::text::tree::{self, Drawing};
use crate::text::words::Direction;
use crate::version_change::VersionChange;

/// If more processes touched a file, `uses` shows the newest runs only, unless it is asked for all.
/// So many processes, with all that they made, are found in about a tenth of a second.
const SCREEN: usize = 100;

/// Prints the lineage of a file.
pub fn run(
    args: LineageArgs,
    list: Option<SourceList>,
    direction: Direction,
    store: Option<&Path>,
) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    current.tell_left_running();
    let run = match &args.run {
        Some(run) => Some(current.run(Some(run))?),
        None => None,
    };
    let level = match list {
        Some(_) => Level::Step,
        None => args.level(),
    };
    let mut scope = Scope {
        possible: !args.no_possible,
        lookups: args.lookups,
        // At the level of steps, the depth counts steps.
        depth: args.depth.filter(|_| level != Level::Step),
        run,
        exclude: args.exclude.clone(),
        ..Scope::default()
    };
    let run = scope.run.as_deref();
    let way = (direction, reach(direction));
    let (mut found, history) = subject_of(&mut current, &args, run, way)?;
    found.notes.iter().for_each(|note| complain(note));
    let changed = match history {
        None => changed_file(&current, &args, &found)?,
        Some(_) => None,
    };
    if let (Direction::Of, Some(version)) = (
        direction,
        changed.as_ref().and_then(ChangedFile::brought_back),
    ) {
        found.versions = vec![version];
    }
    let shortened = match direction {
        Direction::Uses if level == Level::Step && args.is_for_a_screen() => {
            query::newest_runs(&current.store, &found.versions, SCREEN)?
        }
        _ => None,
    };
    let runs = shortened.as_ref().map(|shortened| shortened.all);
    if let Some(shortened) = shortened {
        scope.since = Some(shortened.since);
        found.versions = shortened.versions;
    }
    let lineage = search(&current.store, &found.versions, direction, &scope)?;
    if args.table.is_none() {
        current.tell_open_sources(|header| open_watches::is_missed(&lineage, header));
    }
    // Steps are commands. A transaction of a database is not a command.
    let is_screen = list.is_none() && args.is_for_a_screen();
    let level = match level {
        Level::Step
            if is_screen
                && (history.is_some() || leads_through_database(&current.store, &lineage)?) =>
        {
            Level::Process
        }
        other => other,
    };
    let tells_change =
        direction == Direction::Of && list.is_none() && history.is_none() && args.tells_change();
    let newest = found.versions.first().filter(|_| tells_change);
    let change = newest.and_then(|&version| VersionChange::into_version(&current, version));
    if level == Level::Step {
        let bytes = newest.and_then(|&version| FileBytes::of_version(&current, version));
        let asked = AskedAccount {
            list,
            all_runs: runs,
            change: change.as_ref(),
            bytes: bytes.as_ref(),
            tells_used_bytes: direction == Direction::Uses && list.is_none(),
            versions: &found.versions,
            changed: changed.as_ref(),
        };
        let done = account::print(&current, &lineage, &args, asked, direction);
        std::mem::forget(lineage);
        current.end();
        return done;
    }
    let beside = BesideGraph {
        history,
        change,
        changed,
    };
    let done = graph(&lineage, &args, level, direction, &beside);
    std::mem::forget(lineage);
    current.end();
    done
}

/// The change of the file of the question since the newest version of its path. `None` if the
/// question names a version.
fn changed_file(
    current: &CurrentStore,
    args: &LineageArgs,
    found: &FileSubject,
) -> Result<Option<ChangedFile>, Failure> {
    let (Some(path), Some(&version)) = (&args.path, found.versions.first()) else {
        return Ok(None);
    };
    // A note says by what else than its path the file was found.
    let is_asked = args.run.is_none() && found.notes.is_empty();
    let is_plain = is_asked
        && matches!(
            subject::notation(current, path.as_os_str())?,
            PathNotation::Plain(_)
        );
    match is_plain {
        true => ChangedFile::since(current, version),
        false => Ok(None),
    }
}

/// The facts beside a graph.
struct BesideGraph {
    history: Option<DatabaseHistory>,
    change: Option<VersionChange>,
    changed: Option<ChangedFile>,
}

/// Prints a lineage as a graph: as JSON, for Graphviz, or as a tree.
fn graph(
    lineage: &Lineage,
    args: &LineageArgs,
    level: Level,
    direction: Direction,
    beside: &BesideGraph,
) -> Outcome {
    let all = level == Level::All;
    let BesideGraph {
        history,
        change,
        changed,
    } = beside;
    answer(|out| match (args.json, args.dot) {
        (true, _) => object(
            lineage,
            history.as_ref(),
            (change.as_ref(), changed.as_ref()),
            out,
        ),
        (_, true) => dot::draw(lineage, direction, all, out),
        _ => {
            let drawing = Drawing {
                direction,
                all,
                possible: args.possible,
                here: &here(),
                style: Style::of_stdout(),
            };
            if let Some(changed) = &changed {
                writeln!(out, "{}", changed.line(args.path_text()))?;
            }
            if let Some(change) = &change {
                writeln!(out, "{}", drawing.style.paint(Role::Dim, &change.line()))?;
            }
            if let Some(history) = &history {
                history.write(args, drawing, out)?;
            }
            if args.column.is_some() {
                return Ok(());
            }
            tree::draw(lineage, drawing, out)
        }
    })
}

/// The versions that a question means: of a row or a table with its history, or of a file.
fn subject_of(
    current: &mut CurrentStore,
    args: &LineageArgs,
    run: Option<&str>,
    (direction, reach): (Direction, Reach),
) -> Result<(FileSubject, Option<DatabaseHistory>), Failure> {
    if let Some(table) = &args.table {
        current.tell_open_sources(|header| header.database.is_some());
        return table_subject(current, (table, args), run, (direction, reach));
    }
    let path = args.path.as_deref().unwrap_or(Path::new(""));
    let found = subject::find(current, path.as_os_str(), run, reach);
    let found = found.inspect_err(|failure| {
        if failure.status == Status::NotFound {
            current.tell_open_sources(|header| header.database.is_none());
        }
    })?;
    Ok((found, None))
}

/// The versions of a file that a question in this direction means.
pub fn reach(direction: Direction) -> Reach {
    match direction {
        Direction::Of => Reach::Newest,
        Direction::Uses => Reach::EveryVersion,
    }
}

/// The lineage of versions in this direction.
pub fn search(
    store: &dyn Store,
    versions: &[EntityKey],
    direction: Direction,
    scope: &Scope,
) -> query::Result<Lineage> {
    let (lineage, way) = match direction {
        Direction::Of => (
            query::ancestry_of(store, versions, scope)?,
            query::Direction::Back,
        ),
        Direction::Uses => (
            query::influence_of(store, versions, scope)?,
            query::Direction::Forth,
        ),
    };
    query::keep_copies_apart(store, lineage, way)
}

/// True if the way leads through tables or transactions of a database, which are no commands.
fn leads_through_database(store: &dyn Store, lineage: &Lineage) -> query::Result<bool> {
    for node in &lineage.nodes {
        let is_of_database = match node {
            Node::Entity { kind, path, .. } => {
                *kind == EntityKind::Resource && query::is_of_database(path)
            }
            Node::Activity { id, pid, .. } => {
                query::is_transaction(store, ActivityKey(*id).run(), *pid)?
            }
        };
        if is_of_database {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the whole graph: nodes and links by index, roots first. For a row or table, also its
/// history. For a file whose former content is stored, also what changed inside of it. For a file
/// that changed since, also how.
fn object(
    lineage: &Lineage,
    history: Option<&DatabaseHistory>,
    (change, changed): (Option<&VersionChange>, Option<&ChangedFile>),
    out: &mut impl Write,
) -> io::Result<()> {
    write!(
        out,
        "{{\n\"roots\": {},\n\"cut\": {},\n\"nodes\": ",
        lineage.roots, lineage.cut
    )?;
    json::objects(out, &lineage.nodes, node)?;
    write!(out, ",\n\"links\": ")?;
    json::objects(out, &lineage.links, link)?;
    if let Some(history) = history {
        write!(out, ",\n\"history\": ")?;
        history.objects(out)?;
    }
    if let Some(change) = change {
        write!(out, ",\n\"inside\": ")?;
        change.json().write(out)?;
    }
    if let Some(changed) = changed {
        write!(out, ",\n\"changed_since\": ")?;
        changed.json().write(out)?;
    }
    writeln!(out, "}}")
}

fn node(node: &Node, fields: &mut Fields<'_>) {
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
        } => {
            fields.bytes("type", Some("entity"));
            fields.number("id", *id);
            fields.bytes("run", Some(run));
            fields.bytes("kind", Some(kind.word()));
            fields.bytes("path", Some(path));
            fields.number("version", *version);
            match ident {
                Some(ident) => fields.object("identity", |fields| identity(ident, fields)),
                None => fields.null("identity"),
            }
            fields.bytes("digest", digest.map(|digest| digest.to_string()));
            fields.bool("kept", *kept);
        }
        Node::Activity {
            id,
            run,
            pid,
            epoch,
            exec_path,
            argv,
            cwd,
            interval,
            env_set,
            env_unset,
        } => {
            fields.bytes("type", Some("activity"));
            fields.number("id", *id);
            fields.bytes("run", Some(run));
            fields.number("pid", *pid);
            fields.number("epoch", *epoch);
            fields.bytes("exec_path", exec_path.as_ref());
            fields.list("argv", argv);
            fields.bytes("cwd", Some(cwd));
            fields.list("env_set", env_set);
            fields.list("env_unset", env_unset);
            fields.time("start", interval.start);
            fields.time("end", interval.end);
        }
    }
}

fn identity(ident: &Ident, fields: &mut Fields<'_>) {
    fields.number("dev", ident.dev);
    fields.number("ino", ident.ino);
    fields.number("size", ident.size);
    fields.time("mtime", ident.mtime);
    fields.time("ctime", ident.ctime);
    match ident.birth {
        0 => fields.null("birth"),
        birth => fields.time("birth", birth),
    }
    fields.number("mode", ident.mode);
}

fn link(link: &Link, fields: &mut Fields<'_>) {
    let (flow, how) = match &link.flow {
        Flow::Used(relation) => ("used", Some(relation.words().word)),
        Flow::Generated(relation) => ("generated", Some(relation.words().word)),
        Flow::Derived => ("derived", None),
        Flow::Same => ("same", None),
        Flow::Alike => ("same", Some("content")),
        Flow::Informed(how) => ("informed", Some(how.words().word)),
    };
    fields.number("from", link.from);
    fields.number("to", link.to);
    fields.bytes("flow", Some(flow));
    fields.bytes("how", how);
    fields.bytes("certainty", Some(link.certainty.word()));
    fields.time("start", link.interval.start);
    fields.time("end", link.interval.end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tree::tests::{command, file, link as flow};
    use backstory_graph::model::Relation;

    #[test]
    fn the_json_form_is_one_object_with_nodes_and_links() {
        let nodes = vec![file("/w/a", 1), command("x", 1)];
        let links = vec![flow(1, 0, Flow::Generated(Relation::Write))];
        let mut out = Vec::new();
        object(
            &Lineage {
                nodes,
                roots: 1,
                links,
                cut: false,
                reach: Vec::new(),
            },
            None,
            (None, None),
            &mut out,
        )
        .unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["nodes"][0]["path"], "/w/a");
        assert_eq!(read["links"][0]["how"], "write");
        assert_eq!(read["roots"], 1);
    }
}
