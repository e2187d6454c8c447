//! Runs that a run started on other machines through ssh.
//!
//! Both runs know the connection by one name, which has the id of the started run. An annotation of
//! the starting run says why the other one is not in the store. It goes when the run comes. A run
//! that came by another route counts, too.

use std::collections::HashMap;

use backstory_eventlog::Reason;
use backstory_store::{Annotation, AnnotationKind, RunRecord, Store};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The value of the annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRun {
    /// `[USER@]HOST`
    pub machine: String,
    /// Why the run is absent: a clause for the user.
    pub why: String,
}

impl RemoteRun {
    /// The value as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Names of connections of ssh begin so.
pub(crate) const SSH: &str = "ssh:";

/// The run at the other end of a connection of ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteEnd {
    /// The machine that ssh connected to, as the user named it.
    pub machine: String,
    /// The other run. `None` if the store does not have it.
    pub run: Option<String>,
    /// The other run was started by this one, and not this one by the other.
    pub is_started: bool,
}

/// The other ends of connections, whose names are those of entities.
pub(crate) fn ends(
    store: &dyn Store,
    record: &RunRecord,
    names: Vec<String>,
) -> Result<Vec<RemoteEnd>> {
    let mut found = Vec::new();
    for name in names {
        let connection = name.strip_prefix(SSH).unwrap_or(&name);
        let Some((machine, started)) = connection.rsplit_once('/') else {
            continue;
        };
        let is_started = started != record.header.id;
        let run = match is_started {
            true => store.run(started)?.map(|run| run.header.id),
            false => starter(store, connection)?,
        };
        found.push(RemoteEnd {
            machine: machine.to_owned(),
            run,
            is_started,
        });
    }
    Ok(found)
}

/// The run that started another one through the connection.
pub fn starter(store: &dyn Store, connection: &str) -> Result<Option<String>> {
    let started = connection.rsplit('/').next().unwrap_or_default();
    for entity in store.at_path(format!("{SSH}{connection}").as_bytes())? {
        let record = store.run_by_key(entity.run())?;
        let run = record.map(|record| record.header.id);
        if run.as_ref().is_some_and(|run| run != started) {
            return Ok(run);
        }
    }
    Ok(None)
}

/// The reason that an annotation gives, if the run is absent.
pub(crate) fn reason(store: &dyn Store, annotation: &Annotation) -> Result<Option<String>> {
    let value = annotation.value.as_deref().unwrap_or_default();
    let Ok(RemoteRun { machine, why }) = serde_json::from_str(value) else {
        return Ok(None);
    };
    let run = annotation.key.clone();
    let is_here = store.run(&run)?.is_some();
    Ok((!is_here).then(|| Reason::RemoteAbsent { run, machine, why }.to_string()))
}

/// The reasons of all runs.
pub(crate) fn reasons(store: &dyn Store) -> Result<HashMap<String, Vec<String>>> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for annotation in store.annotations_of(AnnotationKind::Remote, None)? {
        if let Some(reason) = reason(store, &annotation)? {
            found.entry(annotation.run).or_default().push(reason);
        }
    }
    Ok(found)
}
