//! Incidents as the graph of a run tells them. It has processes, files and addresses, and neither
//! requests nor bytes.
//!
//! In: a process and a moment. Out: an incident that names all connections that can have caused the
//! act, and facts that the deep log lacks.

use backstory_ordering::SmallSort;
use std::collections::{BTreeSet, HashSet};

use backstory_deep::DeepLog;
use backstory_eventlog::event::Time;
use backstory_graph::model::{EntityKind, Relation};
use backstory_query as query;
use backstory_query::answer::ProcessLine;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::error::Result;
use crate::left::{self, Acts};
use crate::model::{FileAct, Incident, Precision, SceneConnection, SceneProcess, SceneRun};

/// Most programs that are listed.
const MOST: usize = 1000;

/// From when to when, inclusive.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// Its begin.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

/// The program of a process at a moment.
pub fn process_at(lines: &[ProcessLine], pid: u32, time: Time) -> SceneProcess {
    let own = lines.iter().filter(|line| line.activity.pid == pid);
    let own = own.filter(|line| line.activity.interval.start <= time);
    match own.max_by_key(|line| (line.activity.interval.start, line.id)) {
        Some(line) => scene_process(line),
        None => SceneProcess {
            pid,
            ..SceneProcess::default()
        },
    }
}

fn scene_process(line: &ProcessLine) -> SceneProcess {
    SceneProcess {
        pid: line.activity.pid,
        program: line.activity.exec_path.as_ref().map(|path| path.to_vec()),
        arguments: line
            .activity
            .argv
            .iter()
            .map(|word| word.to_vec())
            .collect(),
    }
}

/// The act of an edge of the graph.
fn act(relation: Relation) -> Option<FileAct> {
    Some(match relation {
        Relation::Read => FileAct::Read,
        Relation::Execute => FileAct::Execute,
        Relation::Write | Relation::Make => FileAct::Write,
        Relation::Delete => FileAct::Delete,
        Relation::Rename => FileAct::Rename,
        Relation::Meta => FileAct::Meta,
        _ => return None,
    })
}

/// An act of a process on a path.
struct PathAct {
    path: Vec<u8>,
    act: FileAct,
    /// It is a regular file.
    is_file: bool,
}

/// The paths that a process used within a period, with its acts.
fn used(
    store: &dyn Store,
    process: ActivityKey,
    run: RunKey,
    period: Option<Period>,
) -> Result<Vec<PathAct>> {
    let mut found = Vec::new();
    for edge in store.stream(process).map_err(query::Error::from)?.edges {
        let inside = period.is_none_or(|period| {
            edge.interval.start >= period.from && edge.interval.end <= period.to
        });
        let Some(act) = act(edge.relation).filter(|_| inside) else {
            continue;
        };
        let entity = store.entity(EntityKey::new(run, edge.entity));
        let entity = entity.map_err(query::Error::from)?;
        let has_path = matches!(
            entity.kind,
            EntityKind::File | EntityKind::Directory | EntityKind::Symlink
        );
        if has_path && entity.path.starts_with(b"/") {
            found.push(PathAct {
                path: entity.path.to_vec(),
                act,
                is_file: entity.kind == EntityKind::File,
            });
        }
    }
    Ok(found)
}

/// The changes by these processes that lie within a period as a whole. Only those that a deep log
/// does not have: changes of names, of metadata, and of directories and links.
pub fn changes_within(
    store: &dyn Store,
    run: &str,
    lines: &[ProcessLine],
    pids: &BTreeSet<u32>,
    period: Period,
) -> Result<Vec<(Vec<u8>, FileAct)>> {
    let Some(record) = store.run(run)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let own = lines
        .iter()
        .filter(|line| pids.contains(&line.activity.pid));
    for line in own.filter(|line| line.activity.interval.end >= period.from) {
        let used = used(store, ActivityKey(line.id), record.key, Some(period))?;
        let used = used.into_iter().filter(|one| one.act.is_change());
        let used = used.filter(|one| one.act != FileAct::Write || !one.is_file);
        found.extend(used.map(|one| (one.path, one.act)));
    }
    Ok(found)
}

/// Programs that these processes started within a period, and that have no deep record.
pub fn shallow_children(
    lines: &[ProcessLine],
    pids: &BTreeSet<u32>,
    period: Period,
    log: &DeepLog,
) -> Vec<SceneProcess> {
    let deep: HashSet<u32> = log.processes().iter().map(|process| process.pid).collect();
    let is_child = |line: &&ProcessLine| {
        let start = line.activity.interval.start;
        let parent = line.parent_pid.is_some_and(|pid| pids.contains(&pid));
        parent && line.activity.epoch > 0 && start >= period.from && start <= period.to
    };
    let children = lines.iter().filter(is_child);
    let children = children.filter(|line| !deep.contains(&line.activity.pid));
    children.take(MOST).map(scene_process).collect()
}

/// An incident of which only the process is known.
pub fn incident(
    store: &dyn Store,
    run: &SceneRun,
    directory: &[u8],
    process: u64,
    time: Time,
    acts: Vec<FileAct>,
) -> Result<Option<Incident>> {
    let lines = query::processes(store, &run.id)?;
    let Some(line) = lines.iter().find(|line| line.id == process) else {
        return Ok(None);
    };
    let key = ActivityKey(process);
    let mut files = Acts::new();
    for one in used(store, key, key.run(), None)? {
        left::add(&mut files, &one.path, one.act);
    }
    let started = lines
        .iter()
        .filter(|other| other.parent_id == Some(process));
    let started = started.filter(|other| other.activity.epoch > 0);
    let mut limits = vec![match run.is_deep {
        true => "The process has no deep record, so its requests and their bytes are not known."
            .to_owned(),
        false => "The run has no deep log, so requests and their bytes are not known. `backstory \
                  record --deep` records them."
            .to_owned(),
    }];
    let connections = connections(store, run, &lines, process, time)?;
    limits.push(match connections.len() {
        0 => "Neither the process nor one that led to it had a connection before the act. Data of \
             another process can have come through a pipe or a file: `backstory origin FILE` \
             follows them."
            .to_owned(),
        _ => "The connections are those that the process, and those that led to it, had before \
              the act. Any of them can have caused it."
            .to_owned(),
    });
    limits.push("The files are those of the whole life of the process.".to_owned());
    Ok(Some(Incident {
        run: run.clone(),
        process: scene_process(line),
        time,
        acts,
        precision: Precision::Process,
        request: None,
        files: left::files(store, &run.id, directory, files)?,
        started: started.take(MOST).map(scene_process).collect(),
        connections,
        reconstruct: match run.is_deep {
            true => format!("backstory replay --deep {}", run.id),
            false => format!("backstory replay {}", run.id),
        },
        limits,
    }))
}

/// The connections of a process and of those that led to it, which began before a moment.
fn connections(
    store: &dyn Store,
    run: &SceneRun,
    lines: &[ProcessLine],
    process: u64,
    time: Time,
) -> Result<Vec<SceneConnection>> {
    let mut chain = HashSet::new();
    let mut next = Some(process);
    while let Some(id) = next.filter(|id| chain.insert(*id)) {
        let line = lines.iter().find(|line| line.id == id);
        next = line.and_then(|line| line.parent_id);
    }
    let contacts = query::peers(store, &run.id)?;
    let before = contacts
        .into_iter()
        .filter(|contact| chain.contains(&contact.id) && contact.interval.start <= time);
    let mut found: Vec<SceneConnection> = Vec::new();
    for contact in before {
        let connection = SceneConnection {
            address: String::from_utf8_lossy(&contact.address).into_owned(),
            pid: contact.activity.pid,
            serves: contact.serves,
            connected: contact.connected,
        };
        if !found.contains(&connection) && found.len() < MOST {
            found.push(connection);
        }
    }
    // A connection that another process made to this one is the likeliest cause.
    found.sort_small_by_key(|connection| !connection.serves);
    Ok(found)
}
