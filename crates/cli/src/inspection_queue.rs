//! Asks the inspectors about the files of each run after it was indexed, if the user wants it.
//!
//! In: the table `[inspection]` of the user's `config.toml`, and the runs of a store. Out: kept
//! answers. `query` then has the facts at once, also those of contents that are no longer stored.
//! Invariants: the work is that of a background indexer, which comes last for processors and disks.
//! One process looks at a run; the files of a run are limited to [`MOST`].

use std::fs;

use backstory_graph::model::EntityKind;
use backstory_sql::Inspections;
use backstory_store::{EntityKey, GraphStore, Home, RunKey, Store};

use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::file_inspector::kept_answers;
use crate::index::{Busy, take_lock};
use crate::shell_policy::ShellPolicy;
use crate::version_inspections::VersionInspections;

/// The most files of a run. A question about the others asks the inspectors itself.
const MOST: usize = 1000;

const WAITING: &str = "waiting for another backstory process to inspect the newest runs";

/// Looks at the runs that were indexed since the last time. The first time, at the newest run.
pub fn look_at_new_runs(
    home: &Home,
    mut store: Box<dyn Store>,
    policy: &ShellPolicy,
    busy: Busy,
) -> Result<(), Failure> {
    if !policy.inspects_each_run {
        return Ok(());
    }
    // Another process that stores contents looks at their runs afterwards.
    let waiting = contents_writer::waiting(home, &*store);
    if !waiting.is_ok_and(|runs| runs.is_empty()) {
        return Ok(());
    }
    backstory_store::catch_up(home, &mut store)?;
    let directory = kept_answers(home.dir());
    let made = fs::create_dir_all(&directory);
    let lock = made
        .ok()
        .map(|()| take_lock(directory.join("lock"), busy, WAITING));
    // A store that cannot be written to keeps no answers.
    let Some(Ok(Some(_lock))) = lock else {
        return Ok(());
    };
    let current = CurrentStore {
        home: home.clone(),
        store,
    };
    let mark = directory.join("through");
    let last = match fs::read_to_string(&mark) {
        Ok(run) => current.store.run(&run)?.map(|run| run.key),
        Err(_) => None,
    };
    let mut runs = current.store.runs_in_order()?;
    runs.sort_unstable();
    let new = match last {
        Some(last) => runs.partition_point(|run| *run <= last),
        None => runs.len().saturating_sub(1),
    };
    let inspections = VersionInspections::new(&current);
    for run in &runs[new..] {
        look_at(&current, &inspections, *run)?;
        let id = current.store.run_id(*run)?.unwrap_or_default();
        // Without the mark, the run is looked at again, and the answers are there.
        let _ = fs::write(&mark, id);
    }
    Ok(())
}

/// Asks about the files that a run left.
fn look_at(
    current: &CurrentStore,
    inspections: &VersionInspections<'_>,
    run: RunKey,
) -> Result<(), Failure> {
    let made = current
        .store
        .entities(run)?
        .into_iter()
        .filter(|one| one.kind == EntityKind::File && one.last && one.version > 0);
    for one in made.take(MOST) {
        let key = EntityKey::new(run, one.id);
        // Without the worker there is nothing to keep. A question says so.
        if inspections
            .facts(key)
            .and_then(|_| inspections.changes(key))
            .is_err()
        {
            break;
        }
    }
    Ok(())
}
