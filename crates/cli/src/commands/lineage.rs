//! `of` and `uses`: lineage in either direction, as a tree, as Graphviz's language, as JSON.

use std::io::{self, Write};
use std::path::Path;

use backstory_eventlog::event::Ident;
use backstory_graph::model::{EntityKind, Informed, Relation};
use backstory_query as query;
use backstory_query::answer::{Flow, Lineage, Link, Node, Scope};

use super::files::certainty;
use super::{Outcome, answer, here};
use crate::args::LineageArgs;
use crate::ask::Asked;
use crate::json::Value;
use crate::text::dot;
use crate::text::style::Style;
use crate::text::tree::{self, Drawing};
use crate::text::words::Direction;

/// Prints the lineage of a file.
pub fn run(args: LineageArgs, direction: Direction, store: Option<&Path>) -> Outcome {
    let asked = Asked::open(store)?;
    let run = match &args.run {
        Some(run) => Some(asked.run(Some(run))?),
        None => None,
    };
    let scope = Scope {
        possible: !args.no_possible,
        lookups: args.lookups,
        depth: args.depth,
        run,
        exclude: args.exclude,
    };
    let lineage = match direction {
        Direction::Of => query::ancestry(&asked.store, &args.path, &scope)?,
        Direction::Uses => query::influence(&asked.store, &args.path, &scope)?,
    };
    answer(|out| match (args.json, args.dot) {
        (true, _) => json(&lineage, out),
        (_, true) => dot::draw(&lineage, direction, args.all, out),
        _ => {
            let drawing = Drawing {
                direction,
                all: args.all,
                possible: args.possible,
                here: &here(),
                style: Style::of_stdout(),
            };
            tree::draw(&lineage, drawing, out)
        }
    })
}

/// The whole graph: nodes and links by index, roots first.
fn json(lineage: &Lineage, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "{{\n\"roots\": {},\n\"cut\": {},\n\"nodes\": ",
        lineage.roots, lineage.cut
    )?;
    crate::json::lines(out, lineage.nodes.iter().map(node))?;
    write!(out, ",\n\"links\": ")?;
    crate::json::lines(out, lineage.links.iter().map(link))?;
    writeln!(out, "}}")
}

fn node(node: &Node) -> Value {
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
        } => Value::Object(vec![
            ("type", "entity".into()),
            ("id", (*id).into()),
            ("run", run.into()),
            ("kind", kind_word(*kind).into()),
            ("path", path.into()),
            ("version", (*version).into()),
            ("identity", ident.as_ref().map_or(Value::Null, identity)),
            ("digest", digest.map(|digest| digest.to_string()).as_ref().into()),
            ("kept", (*kept).into()),
        ]),
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
        } => Value::Object(vec![
            ("type", "activity".into()),
            ("id", (*id).into()),
            ("run", run.into()),
            ("pid", (*pid).into()),
            ("epoch", (*epoch).into()),
            ("exec_path", exec_path.as_ref().into()),
            ("argv", Value::array(argv)),
            ("cwd", cwd.into()),
            ("env_set", Value::array(env_set)),
            ("env_unset", Value::array(env_unset)),
            ("start", Value::Time(interval.start)),
            ("end", Value::Time(interval.end)),
        ]),
    }
}

fn identity(ident: &Ident) -> Value {
    Value::Object(vec![
        ("dev", ident.dev.into()),
        ("ino", ident.ino.into()),
        ("size", ident.size.into()),
        ("mtime", Value::Time(ident.mtime)),
        ("ctime", Value::Time(ident.ctime)),
        (
            "birth",
            if ident.birth == 0 {
                Value::Null
            } else {
                Value::Time(ident.birth)
            },
        ),
        ("mode", ident.mode.into()),
    ])
}

fn link(link: &Link) -> Value {
    let (flow, how) = match &link.flow {
        Flow::Used(relation) => ("used", Some(relation_word(*relation))),
        Flow::Generated(relation) => ("generated", Some(relation_word(*relation))),
        Flow::Derived => ("derived", None),
        Flow::Same => ("same", None),
        Flow::Alike => ("same", Some("content")),
        Flow::Informed(how) => ("informed", Some(informed_word(*how))),
    };
    Value::Object(vec![
        ("from", link.from.into()),
        ("to", link.to.into()),
        ("flow", flow.into()),
        ("how", how.into()),
        ("certainty", certainty(link.certainty).into()),
        ("start", Value::Time(link.interval.start)),
        ("end", Value::Time(link.interval.end)),
    ])
}

fn kind_word(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::File => "file",
        EntityKind::Directory => "directory",
        EntityKind::Symlink => "symlink",
        EntityKind::Pipe => "pipe",
        EntityKind::Socket => "socket",
        EntityKind::Missing => "missing",
        EntityKind::Device => "device",
        EntityKind::Memory => "memory",
    }
}

fn relation_word(relation: Relation) -> &'static str {
    match relation {
        Relation::Read => "read",
        Relation::Execute => "exec",
        Relation::Stat => "stat",
        Relation::List => "dir",
        Relation::Missing => "missing",
        Relation::Link => "link",
        Relation::Write => "write",
        Relation::Delete => "delete",
        Relation::Rename => "rename",
        Relation::Meta => "meta",
        Relation::Make => "make",
    }
}

fn informed_word(how: Informed) -> &'static str {
    match how {
        Informed::Fork => "fork",
        Informed::Exec => "exec",
        Informed::Wait => "wait",
        Informed::Signal => "signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tree::tests::{command, file, link as flow};

    #[test]
    fn the_json_form_is_one_object_with_nodes_and_links() {
        let nodes = vec![file("/w/a", 1), command("x", 1)];
        let links = vec![flow(1, 0, Flow::Generated(Relation::Write))];
        let mut out = Vec::new();
        json(
            &Lineage {
                nodes,
                roots: 1,
                links,
                cut: false,
            },
            &mut out,
        )
        .unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["nodes"][0]["path"], "/w/a");
        assert_eq!(read["links"][0]["how"], "write");
        assert_eq!(read["roots"], 1);
    }
}
