//! Runs, and the processes of one run.

use backstory_ordering::SmallSort;
use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunHeader;
use backstory_graph::lineage::named_devices;
use backstory_graph::marks::{self, Notes};
use backstory_graph::model::{Activity, ActivityId, Entity, EntityKind};
use backstory_graph::{described_rank, nested, processor_time};
use backstory_store::{
    ActivityKey, AnnotationKind, EntityKey, RunKey, RunRecord, Store, records_newest_first,
};

use crate::answer::{Lineage, ProcessLine, RunDetails, RunSummary};
use crate::file_pattern::FileUsers;
use crate::recorded_database::recorded_database;
use crate::run_filter::RunFilter;
use crate::{Error, Result, job_ranks, remote_runs};

/// The runs that a filter accepts, newest first.
pub fn runs_where(store: &dyn Store, filter: &RunFilter) -> Result<Vec<RunSummary>> {
    let _one_state = store.reading()?;
    let users = filter.file.as_ref().map(|file| file.users(store));
    let users = users.transpose()?;
    let at_commit = filter.commit.as_deref();
    let at_commit = at_commit.map(|commit| crate::runs_at_commit(store, commit));
    let at_commit = at_commit.transpose()?;
    let mut tags = tags_by_run(store)?;
    let mut absent = remote_runs::reasons(store)?;
    let mut found = Vec::new();
    for record in records_newest_first(store)? {
        if filter.most.is_some_and(|most| found.len() >= most) {
            break;
        }
        let record = record?;
        let mut run = summary(&record);
        run.tags = tags.remove(&run.id).unwrap_or_default();
        run.add_reasons(absent.remove(&run.id).unwrap_or_default());
        if at_commit
            .as_ref()
            .is_some_and(|runs| !runs.contains(&run.id))
        {
            continue;
        }
        let uses = |users: &FileUsers| users.include(store, record.key);
        if filter.accepts(&run) && users.as_ref().map_or(Ok(true), uses)? {
            found.push(run);
        }
    }
    Ok(found)
}

/// The tags of all runs that have any.
fn tags_by_run(store: &dyn Store) -> Result<HashMap<String, Vec<(String, String)>>> {
    let mut by_run: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for tag in store.annotations_of(AnnotationKind::Tag, None)? {
        let value = tag.value.unwrap_or_default();
        by_run.entry(tag.run).or_default().push((tag.key, value));
    }
    Ok(by_run)
}

/// All runs, newest first.
pub fn runs(store: &dyn Store) -> Result<Vec<RunSummary>> {
    let _one_state = store.reading()?;
    records_newest_first(store)?
        .map(|record| Ok(summary(&record?)))
        .collect()
}

/// The id of the run that `wanted` means: an id, a name (its newest run), or an unambiguous
/// beginning of an id. `None` means the latest run.
pub fn resolve(store: &dyn Store, wanted: Option<&str>) -> Result<String> {
    let Some(wanted) = wanted else {
        let newest = store.newest_run()?;
        return newest.map(|run| run.header.id).ok_or(Error::NoRuns);
    };
    if let Some(record) = store.run(wanted)? {
        return Ok(record.header.id);
    }
    if let Some(record) = store.runs_named(wanted)?.into_iter().next() {
        return Ok(record.header.id);
    }
    let mut begins: Vec<String> = store
        .run_ids()?
        .into_iter()
        .filter(|id| id.starts_with(wanted))
        .collect();
    begins.sort_small();
    match begins.len() {
        1 if !wanted.is_empty() => Ok(begins.remove(0)),
        0 | 1 => Err(Error::NoRun(wanted.to_owned())),
        _ if wanted.is_empty() => Err(Error::NoRun(wanted.to_owned())),
        _ => Err(Error::Ambiguous(wanted.to_owned(), begins.join(", "))),
    }
}

/// The directories in which the runs of a lineage were started: the user's projects.
pub fn projects(store: &dyn Store, lineage: &Lineage) -> Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    for run in lineage.runs() {
        found.extend(store.run(run)?.map(|record| record.header.cwd));
    }
    Ok(found)
}

/// The record of a run by its id.
pub(crate) fn record(store: &dyn Store, run: &str) -> Result<RunRecord> {
    store.run(run)?.ok_or_else(|| Error::NoRun(run.to_owned()))
}

/// Everything about a run except its files and processes.
pub fn details(store: &dyn Store, run: &str) -> Result<RunDetails> {
    let _one_state = store.reading()?;
    let record = record(store, run)?;
    let activities = store.activities(record.key)?;
    let entities = store.entities(record.key)?;
    let kinds = entities.iter().map(|entity| (entity.kind, &*entity.path));
    let devices = named_devices(kinds).into_iter().map(Bytes::from).collect();
    let (ssh, peers) = peers(store, record.key, &entities)?
        .into_iter()
        .partition(|peer| peer.starts_with(remote_runs::SSH));
    let remote = remote_runs::ends(store, &record, ssh)?;
    let jobs = job_ranks::jobs(store, &record, &activities)?;
    let database = recorded_database(&record.header, &activities, &entities);
    let mut unknown = Vec::new();
    for activity in activities {
        // Between fork and exec a process is an image of its parent, and what is known of the
        // parent holds for it.
        if !activity.lookups_known && activity.epoch > 0 {
            unknown.push((
                ActivityKey::new(record.key, activity.id).0,
                activity.exec_path,
            ));
        }
    }
    let annotations = store.annotations(run)?;
    let mut stated = stated(&record);
    for annotation in &annotations {
        if annotation.kind == AnnotationKind::Remote {
            let reason = remote_runs::reason(store, annotation)?;
            stated.summary.add_reasons(reason);
        }
    }
    let tags = annotations
        .iter()
        .filter(|one| one.kind == AnnotationKind::Tag);
    stated.summary.tags = tags
        .map(|tag| (tag.key.clone(), tag.value.clone().unwrap_or_default()))
        .collect();
    Ok(RunDetails {
        peers,
        remote,
        jobs,
        lookups_unknown: unknown,
        annotations,
        devices,
        database,
        ..stated
    })
}

/// The facts about a run that its record alone has: [`details`] without `peers`, `devices`, `jobs`,
/// `lookups_unknown` and `database`, which are empty.
pub fn facts(store: &dyn Store, run: &str) -> Result<RunDetails> {
    Ok(stated(&record(store, run)?))
}

fn stated(record: &RunRecord) -> RunDetails {
    let environment = record.header.environment.iter();
    RunDetails {
        summary: summary(record),
        annotations: Vec::new(),
        warnings: record.end.warnings.clone(),
        machine: record.header.machine.clone(),
        imported: record.header.imported.clone(),
        modes: record.header.modes.clone(),
        environment: environment.map(|v| v.as_slice().into()).collect(),
        peers: Vec::new(),
        devices: Vec::new(),
        remote: Vec::new(),
        jobs: Vec::new(),
        lookups_unknown: Vec::new(),
        usage: record.end.usage,
        log_bytes: record.log_bytes,
        database: None,
    }
}

/// Addresses of sockets whose other end is outside the run: one side of the conversation is
/// missing. The two directions of a connection are two entities.
fn peers(store: &dyn Store, run: RunKey, entities: &[Entity]) -> Result<Vec<String>> {
    let sockets = entities
        .iter()
        .filter(|entity| entity.kind == EntityKind::Socket && is_address(&entity.path));
    let mut names = BTreeSet::new();
    for socket in sockets {
        let touching = store.touching(EntityKey::new(run, socket.id))?;
        let has_side = |side: bool| touching.iter().any(|(_, generated)| *generated == side);
        if !(has_side(true) && has_side(false)) {
            names.insert(address(&socket.path));
        }
    }
    // libc connects a datagram socket without using it, to find the best of several addresses.
    let is_probe = |name: &str| {
        let rest = name.strip_prefix("udp:");
        rest.is_some_and(|rest| names.contains(&format!("tcp:{rest}")))
    };
    Ok(names
        .iter()
        .filter(|name| !is_probe(name))
        .cloned()
        .collect())
}

/// False for `socket:` and a number, sockets without an address: pairs, and inherited ones. False
/// also for the path of a bound socket (`unix(7)`), which is no end of a conversation.
fn is_address(name: &[u8]) -> bool {
    !name.starts_with(b"socket:") && !name.starts_with(b"/")
}

fn address(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.strip_suffix(" (reply)").unwrap_or(&name).to_owned()
}

impl RunSummary {
    /// Adds reasons that are not in the run's own record.
    fn add_reasons(&mut self, reasons: impl IntoIterator<Item = String>) {
        self.incomplete_because.extend(reasons);
        self.complete &= self.incomplete_because.is_empty();
    }
}

/// Returns the summary of a run from its own record alone.
pub fn summary(record: &RunRecord) -> RunSummary {
    let end = &record.end;
    let mut because = end.incomplete_because.clone();
    because.extend(
        record
            .unknown
            .iter()
            .filter(|reason| !end.incomplete_because.contains(reason))
            .cloned(),
    );
    RunSummary {
        id: record.header.id.clone(),
        name: record.name.clone(),
        note: record.note.clone(),
        repeats: record.header.repeats.clone(),
        line: record.header.line.clone(),
        is_imported: record.header.imported.is_some(),
        command: record
            .header
            .command
            .iter()
            .map(|arg| arg.as_slice().into())
            .collect(),
        cwd: record.header.cwd.as_slice().into(),
        started: record.header.started,
        ended: (end.command_ended != 0).then_some(end.command_ended),
        exit: end.exit,
        signal: end.signal,
        complete: because.is_empty() && end.lost == 0,
        lost: end.lost,
        incomplete_because: because,
        processes: record.counts.activities,
        files_read: record.counts.files_read,
        files_written: record.counts.files_written,
        host: record.header.machine.host.clone(),
        ssh_connection: record.header.ssh_connection.clone(),
        job_rank: record.header.job_rank.clone(),
        tags: Vec::new(),
        running: false,
    }
}

/// A run that is being recorded. The store does not have it yet, and its log only has the header.
pub fn running(header: &RunHeader) -> RunSummary {
    RunSummary {
        id: header.id.clone(),
        name: header.name.clone(),
        note: None,
        repeats: header.repeats.clone(),
        is_imported: header.imported.is_some(),
        line: header.line.clone(),
        command: header
            .command
            .iter()
            .map(|arg| arg.as_slice().into())
            .collect(),
        cwd: header.cwd.as_slice().into(),
        started: header.started,
        ended: None,
        exit: None,
        signal: None,
        complete: false,
        lost: 0,
        incomplete_because: Vec::new(),
        processes: 0,
        files_read: 0,
        files_written: 0,
        host: header.machine.host.clone(),
        ssh_connection: header.ssh_connection.clone(),
        job_rank: header.job_rank.clone(),
        tags: Vec::new(),
        running: true,
    }
}

/// The exec epochs of a run, in the order of their start.
pub fn processes(store: &dyn Store, run: &str) -> Result<Vec<ProcessLine>> {
    let _one_state = store.reading()?;
    let record = record(store, run)?;
    let (key, header) = (record.key, record.header);
    let mut activities = store.activities(key)?;
    for activity in &mut activities {
        activity.via = header.observer(activity.via);
    }
    let mut marked = HashSet::new();
    let mut processor_times = HashMap::new();
    let mut notes: HashMap<ActivityId, Notes> = HashMap::new();
    let mut ranks = HashMap::new();
    let mut transactions = HashMap::new();
    for (activity, _, kind, payload) in store.extended(key)? {
        if *kind == *nested::KIND {
            marked.insert(activity);
        } else if let Some(time) = processor_time::decode(&kind, &payload) {
            processor_times.insert(activity, time);
        } else if let Some(rank) = described_rank::decode(&kind, &payload) {
            ranks.insert(activity, rank);
        } else if marks::is_transaction_fact(&kind) {
            transactions.insert(activity, payload);
        } else {
            notes.entry(activity).or_default().add(&kind, &payload);
        }
    }
    let mut lines: Vec<ProcessLine> = activities
        .iter()
        .map(|activity| ProcessLine {
            id: ActivityKey::new(key, activity.id).0,
            parent_id: activity
                .parent
                .map(|parent| ActivityKey::new(key, parent).0),
            parent_pid: parent_pid(&activities, activity),
            marked: marked.contains(&activity.id),
            processor_time: processor_times.get(&activity.id).copied(),
            notes: notes.remove(&activity.id).unwrap_or_default(),
            transaction: transactions.remove(&activity.id),
            job_rank: job_ranks::rank_of(activity).or_else(|| ranks.remove(&activity.id)),
            activity: activity.clone(),
        })
        .collect();
    lines.sort_small_by_key(|line| (line.activity.interval.start, line.id));
    Ok(lines)
}

/// The parent's process id. The parent of an epoch may be the former epoch of the same process. The
/// parent process is the first other one above it.
fn parent_pid(activities: &[Activity], activity: &Activity) -> Option<u32> {
    let at = |id: ActivityId| activities.get(id.0 as usize);
    let mut above = activity.parent.and_then(at);
    // Bounded by the number of activities, in case the parents form a ring.
    for _ in 0..activities.len() {
        match above {
            Some(parent) if parent.pid == activity.pid => above = parent.parent.and_then(at),
            other => return other.map(|parent| parent.pid),
        }
    }
    None
}

/// True for a path, as opposed to the name of a pipe or socket.
pub(crate) fn is_path(path: &Bytes) -> bool {
    path.first() == Some(&b'/')
}
