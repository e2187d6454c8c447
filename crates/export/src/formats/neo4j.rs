//! Files that `neo4j-admin database import` and Cypher's `LOAD CSV` read.
//!
//! | file | content |
//! | --- | --- |
//! | `processes.csv`, `things.csv` | nodes, with a header of `neo4j-admin` |
//! | `flows.csv` | relationships, in the direction in which information flowed |
//! | `load.cypher` | loads the files into a database that exists |
//!
//! A backslash is written twice: Neo4j's `LOAD CSV` takes one before a quote for an escape. With
//! `--legacy-style-quoting=true`, `neo4j-admin` reads the same.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use backstory_query::answer::Flow;
use backstory_vocabulary::Word;

use crate::family::Family;
use crate::format::{Format, Shape, Target};
use crate::formats::notation::seconds;
use crate::view::{Endpoint, ViewLink};
use crate::{Result, View};

/// `neo4j`
pub struct Neo4j;

const PROCESSES: &str =
    "id:ID,label,run,pid:long,exit:long,cwd,started:double,ended:double,:LABEL\n";
const THINGS: &str = "id:ID,path,kind,run,version:long,size:long,:LABEL\n";
const FLOWS: &str = ":START_ID,:END_ID,how,certainty,bytes,started:double,ended:double,:TYPE\n";

/// Commits at intervals, so that large files need no more memory.
const LOAD: &str =
    "// cypher-shell -f load.cypher, with this directory as the server's import directory
CREATE CONSTRAINT node_id IF NOT EXISTS FOR (n:Node) REQUIRE n.id IS UNIQUE;
LOAD CSV WITH HEADERS FROM 'file:///processes.csv' AS row
CALL { WITH row
CREATE (:Node:Process {id: row.`id:ID`, label: row.label, run: row.run,
  pid: toInteger(row.`pid:long`), exit: toInteger(row.`exit:long`), cwd: row.cwd,
  started: toFloat(row.`started:double`), ended: toFloat(row.`ended:double`)})
} IN TRANSACTIONS;
LOAD CSV WITH HEADERS FROM 'file:///things.csv' AS row
CALL { WITH row
CREATE (:Node:Thing {id: row.`id:ID`, path: row.path, kind: row.kind, run: row.run,
  version: toInteger(row.`version:long`), size: toInteger(row.`size:long`)})
} IN TRANSACTIONS;
";

/// The types of relationships.
const TYPES: [&str; 5] = ["USED_BY", "GENERATED", "INFORMED", "DERIVED", "SAME_AS"];

impl Format for Neo4j {
    fn name(&self) -> &'static str {
        "neo4j"
    }
    fn about(&self) -> &'static str {
        "CSV files of nodes and relationships for Neo4j, with a Cypher script that loads them"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "Neo4j and Python's csv"
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }
    fn hint(&self) -> Option<&'static str> {
        Some(
            "neo4j-admin database import full --multiline-fields=true --legacy-style-quoting=true \
             --nodes=OUT/processes.csv --nodes=OUT/things.csv --relationships=OUT/flows.csv",
        )
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let top = target.directory();
        let run = |at: usize| view.runs[at].summary.id.as_bytes();
        file(top, "processes.csv", PROCESSES, |out| {
            for (at, activity) in view.activities.iter().enumerate() {
                let exit = activity
                    .exit
                    .map(|exit| exit.to_string())
                    .unwrap_or_default();
                row(
                    out,
                    &[
                        Endpoint::Activity(at).name().as_bytes(),
                        activity.label.as_bytes(),
                        run(activity.run),
                        activity.pid.to_string().as_bytes(),
                        exit.as_bytes(),
                        &activity.cwd,
                        seconds(activity.interval.start).as_bytes(),
                        seconds(activity.interval.end).as_bytes(),
                        b"Node;Process",
                    ],
                )?;
            }
            Ok(())
        })?;
        file(top, "things.csv", THINGS, |out| {
            for (at, entity) in view.entities.iter().enumerate() {
                let size = entity
                    .ident
                    .map(|ident| ident.size.to_string())
                    .unwrap_or_default();
                row(
                    out,
                    &[
                        Endpoint::Entity(at).name().as_bytes(),
                        &entity.path,
                        entity.kind.word().as_bytes(),
                        run(entity.run),
                        entity.version.to_string().as_bytes(),
                        size.as_bytes(),
                        b"Node;Thing",
                    ],
                )?;
            }
            Ok(())
        })?;
        file(top, "flows.csv", FLOWS, |out| {
            view.links.iter().try_for_each(|link| flow(out, link))
        })?;
        file(top, "load.cypher", LOAD, |out| {
            for name in TYPES {
                writeln!(
                    out,
                    "LOAD CSV WITH HEADERS FROM 'file:///flows.csv' AS row\n\
                     WITH row WHERE row.`:TYPE` = '{name}'\n\
                     CALL {{ WITH row\n\
                     MATCH (a:Node {{id: row.`:START_ID`}}), (b:Node {{id: row.`:END_ID`}})\n\
                     CREATE (a)-[:{name} {{how: row.how, certainty: row.certainty, bytes: row.bytes,\n  \
                     started: toFloat(row.`started:double`), ended: toFloat(row.`ended:double`)}}]->(b)\n\
                     }} IN TRANSACTIONS;"
                )?;
            }
            Ok(())
        })
    }
}

fn file(
    top: &Path,
    name: &str,
    head: &str,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut out = BufWriter::new(File::create(top.join(name))?);
    out.write_all(head.as_bytes())?;
    fill(&mut out)?;
    Ok(out.flush()?)
}

fn flow(out: &mut dyn Write, link: &ViewLink) -> Result<()> {
    let (sort, how) = match link.flow {
        Flow::Used(relation) => (TYPES[0], relation.words().word),
        Flow::Generated(relation) => (TYPES[1], relation.words().word),
        Flow::Informed(why) => (TYPES[2], why.words().word),
        Flow::Derived => (TYPES[3], ""),
        Flow::Same => (TYPES[4], "version"),
        Flow::Alike => (TYPES[4], "content"),
    };
    row(
        out,
        &[
            link.from.name().as_bytes(),
            link.to.name().as_bytes(),
            how.as_bytes(),
            link.certainty.word().as_bytes(),
            link.bytes
                .map(|bytes| bytes.word())
                .unwrap_or_default()
                .as_bytes(),
            seconds(link.interval.start).as_bytes(),
            seconds(link.interval.end).as_bytes(),
            sort.as_bytes(),
        ],
    )
}

/// A row. Every field is quoted. Bytes that are no UTF-8 become U+FFFD.
fn row(out: &mut dyn Write, fields: &[&[u8]]) -> Result<()> {
    for (at, field) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let text = String::from_utf8_lossy(field);
        // An empty field is no value; a quoted one would be an empty text.
        match text.is_empty() {
            true => write!(out, "{comma}")?,
            false => {
                let text = text.replace('\\', "\\\\").replace('"', "\"\"");
                write!(out, "{comma}\"{text}\"")?;
            }
        }
    }
    Ok(out.write_all(b"\n")?)
}
