//! ReproZip's pack (format version 2): the files, the start of the run, and the trace, for
//! `reprounzip`.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Relation;
use backstory_query::answer::Flow;
use flate2::Compression;
use flate2::write::GzEncoder;
use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::notation::text;
use crate::family::Family;
use crate::format::{Format, Target};
use crate::image_tree::{ImageTree, TreeNode};
use crate::unfinished::ScratchDirectory;
use crate::view::{Endpoint, Level};
use crate::{Error, Result, View};

/// `reprozip`
pub struct ReproZip;

impl Format for ReproZip {
    fn name(&self) -> &'static str {
        "reprozip"
    }
    fn about(&self) -> &'static str {
        "a ReproZip pack (.rpz)"
    }
    fn family(&self) -> Family {
        Family::Container
    }
    fn proven_by(&self) -> &'static str {
        "reprounzip"
    }
    fn needs_contents(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("reprounzip directory setup OUT DIR; reprounzip directory run DIR")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let tree = ImageTree::of(view, self.name())?;
        let directory = ScratchDirectory::anywhere()?;
        let trace = directory.path().join("trace.sqlite3");
        write_trace(view, &trace)?;
        let data = directory.path().join("DATA.tar.gz");
        let packed = GzEncoder::new(std::fs::File::create(&data)?, Compression::fast());
        tree.expect();
        tree.archive(packed, "DATA/", |_, _| true)?;
        // JSON is YAML.
        let config = serde_json::to_vec_pretty(&config(view, &tree)?).map_err(io::Error::from)?;
        let mut tar = super::container::deterministic(target.stream());
        let mut put = |name: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes)
        };
        put("METADATA/version", b"REPROZIP VERSION 2\n")?;
        put("METADATA/config.yml", &config)?;
        tar.append_path_with_name(&trace, "METADATA/trace.sqlite3")?;
        tar.append_path_with_name(&data, "DATA.tar.gz")?;
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

/// The start of the run, as `reprounzip` reads it.
fn config(view: &View, tree: &ImageTree<'_>) -> Result<Value> {
    let run = tree.run;
    let first = view.programs.first().ok_or_else(|| Error::Nothing {
        subject: view.subject.clone(),
        what: "program that ran",
        advice: "a pack runs one",
    })?;
    let environment: Map<String, Value> = run
        .environment
        .iter()
        .filter_map(|variable| {
            let (name, value) = split(variable)?;
            Some((name, Value::from(value)))
        })
        .collect();
    let files: Vec<String> = tree
        .nodes
        .iter()
        .filter(|(_, node)| !matches!(node, TreeNode::Directory(_)))
        .map(|(path, _)| text(path))
        .collect();
    let mut named = Vec::new();
    for step in &view.workflow.steps {
        for (paths, side) in [
            (&step.inputs, "read_by_runs"),
            (&step.outputs, "written_by_runs"),
        ] {
            for path in paths {
                named.push(json!({"name": format!("{}_{}", text(backstory_workflow::paths::base_name(path)), named.len()), "path": text(path), side: [0]}));
            }
        }
    }
    Ok(json!({
        "version": "0.8",
        "runs": [{
            "id": "run0", "architecture": std::env::consts::ARCH,
            "argv": first.argv.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "binary": text(first.path.as_ref().unwrap_or(&first.argv[0])), "distribution": distribution(&run.machine.distribution),
            "environ": environment, "exitcode": run.summary.exit.unwrap_or(0), "uid": 0, "gid": 0,
            "hostname": run.machine.host, "system": ["Linux", run.machine.kernel], "workingdir": text(&run.summary.cwd),
        }],
        "inputs_outputs": named,
        "packages": [],
        "other_files": files,
    }))
}

fn split(variable: &Bytes) -> Option<(String, String)> {
    let text = text(variable);
    let (name, value) = text.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

/// `Debian GNU/Linux 12 (bookworm)` as name and version.
fn distribution(name: &str) -> [String; 2] {
    let version = name
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let name = name.split_whitespace().next().unwrap_or("Linux");
    [name.to_owned(), version.unwrap_or_default().to_owned()]
}

/// Fills ReproZip's tables from the view. At the level of commands, the files of a process are
/// those of the step.
fn write_trace(view: &View, path: &Path) -> Result<()> {
    let mut database = Connection::open(path)?;
    database.execute_batch(
        "CREATE TABLE processes(id INTEGER NOT NULL PRIMARY KEY, run_id INTEGER NOT NULL, parent INTEGER,
            timestamp INTEGER NOT NULL, is_thread BOOLEAN NOT NULL, exitcode INTEGER);
         CREATE TABLE opened_files(id INTEGER NOT NULL PRIMARY KEY, run_id INTEGER NOT NULL, name TEXT NOT NULL,
            timestamp INTEGER NOT NULL, mode INTEGER NOT NULL, is_directory BOOLEAN NOT NULL, process INTEGER NOT NULL);
         CREATE TABLE executed_files(id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, run_id INTEGER NOT NULL,
            timestamp INTEGER NOT NULL, process INTEGER NOT NULL, argv TEXT NOT NULL, envp TEXT NOT NULL, workingdir TEXT NOT NULL);
         CREATE INDEX proc_parent_idx ON processes(parent);
         CREATE INDEX open_proc_idx ON opened_files(process);
         CREATE INDEX exec_proc_idx ON executed_files(process);",
    )?;
    let all = database.transaction()?;
    for (at, activity) in view.activities.iter().enumerate() {
        all.execute(
            "INSERT INTO processes(id, run_id, parent, timestamp, is_thread, exitcode) VALUES(?, 0, ?, ?, 0, ?)",
            params![number(at), activity.parent.map(number), activity.interval.start, activity.exit],
        )?;
        if let Some(program) = activity
            .program
            .as_ref()
            .filter(|_| view.level != Level::Command)
        {
            let ended = |words: &[Bytes]| {
                words
                    .iter()
                    .map(|word| format!("{}\0", text(word)))
                    .collect::<String>()
            };
            all.execute(
                "INSERT INTO executed_files(name, run_id, timestamp, process, argv, envp, workingdir) VALUES(?, 0, ?, ?, ?, ?, ?)",
                params![
                    text(program),
                    activity.interval.start,
                    number(at),
                    ended(&activity.argv),
                    ended(&activity.env_set),
                    text(&activity.cwd)
                ],
            )?;
        }
    }
    for file in opened_files(view) {
        all.execute(
            "INSERT INTO opened_files(run_id, name, timestamp, mode, is_directory, process) VALUES(0, ?, ?, ?, 0, ?)",
            params![text(&view.entities[file.entity].path), file.time, file.mode, number(file.activity)],
        )?;
    }
    all.commit()?;
    Ok(())
}

/// A row of `opened_files`.
struct OpenedFile {
    time: i64,
    /// ReproZip's bits: 1 read, 2 written.
    mode: u8,
    activity: usize,
    entity: usize,
}

/// The opened files of the view, in the order of time, as ReproZip writes them. A process that
/// renames, links or copies a file opens the old one for reading, and the new one for writing. A
/// pipe is a file with its name.
fn opened_files(view: &View) -> Vec<OpenedFile> {
    let mut sources: HashMap<usize, Vec<usize>> = HashMap::new();
    for link in &view.links {
        if let (Endpoint::Entity(from), Endpoint::Entity(to), Flow::Derived) =
            (link.from, link.to, link.flow)
        {
            sources.entry(to).or_default().push(from);
        }
    }
    let mut all = Vec::new();
    for link in &view.links {
        let time = link.interval.start;
        let mut open = |activity, entity, mode| {
            all.push(OpenedFile {
                time,
                mode,
                activity,
                entity,
            });
        };
        use Relation::{Make, Read, Rename, Write};
        match (link.from, link.to, link.flow) {
            (Endpoint::Entity(entity), Endpoint::Activity(activity), Flow::Used(Read)) => {
                open(activity, entity, 1);
            }
            (Endpoint::Activity(activity), Endpoint::Entity(entity), Flow::Generated(how))
                if how == Write
                    || matches!(how, Make | Rename) && sources.contains_key(&entity) =>
            {
                for source in sources.get(&entity).into_iter().flatten() {
                    open(activity, *source, 1);
                }
                open(activity, entity, 2);
            }
            _ => {}
        }
    }
    all.sort_by_key(|file| file.time);
    all
}

/// Rows are numbered from 1.
fn number(at: usize) -> i64 {
    i64::try_from(at).map_or(i64::MAX, |at| at + 1)
}
