//! Delivers the graphs of runs to further stores, after they entered the user's own.
//!
//! In: the runs of the store, as filters left them, and `[[store]]` of `config.toml`. Out: the same
//! runs in the further stores. A journal in the store's directory has the runs that were
//! delivered. So each is delivered once, and a delivery that failed goes on at the next run.
//!
//! Invariant: no recording and no question waits for a further store. The background indexer alone
//! delivers. Absent: logs and contents (`backstory store push` sends them).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use backstory_files::regular;
use backstory_store::{self as store, Home, Store, copy_run, open_store};

use sha2::{Digest, Sha256};

use crate::error::{Failure, chain};
use crate::index::{Busy, take_lock};
use crate::pipeline_file::{FurtherStore, PipelineFiles};

/// Delivers all runs that a further store lacks. Returns one line for each store that failed.
pub fn deliver(home: &Home, from: &dyn Store, busy: Busy) -> Result<Vec<String>, Failure> {
    let stores = PipelineFiles::load(home).stores;
    if stores.is_empty() {
        return Ok(Vec::new());
    }
    let waiting = "waiting for another backstory process to deliver runs";
    let lock = take_lock(home.dir().join("delivery.lock"), busy, waiting);
    let Some(_lock) = lock.map_err(|error| Failure::not_found(chain(&error)))? else {
        return Ok(Vec::new());
    };
    let mut failures = Vec::new();
    for further in &stores {
        let failure = match deliver_to(home, from, further) {
            Ok(()) => None,
            Err(why) => Some(format!(
                "runs are not delivered to store {} yet: {why}; the next run tries it again",
                further.name
            )),
        };
        remember_failure(home, further, failure.as_deref());
        failures.extend(failure);
    }
    Ok(failures)
}

/// The runs that a store does not have yet, the oldest first.
pub fn pending(home: &Home, from: &dyn Store, to: &FurtherStore) -> Result<Vec<String>, Failure> {
    let done = delivered(home, to);
    let runs = from.runs()?.into_iter().rev();
    let ids = runs.map(|run| run.header.id);
    Ok(ids.filter(|id| !done.contains(id)).collect())
}

/// Why the last delivery failed.
pub fn last_failure(home: &Home, to: &FurtherStore) -> Option<String> {
    let text = regular::read(beside(home, to, "failure")).ok()?;
    Some(String::from_utf8_lossy(&text).trim_end().to_owned())
}

fn deliver_to(home: &Home, from: &dyn Store, further: &FurtherStore) -> Result<(), String> {
    let pending = pending(home, from, further).map_err(|failure| failure.line)?;
    if pending.is_empty() {
        return Ok(());
    }
    let told = |error: store::Error| chain(&error);
    // A directory that is not there can be a file system that is not mounted.
    if !further.directory.is_dir() {
        let directory = further.directory.display();
        return Err(format!(
            "the directory {directory} does not exist; make it if it is new"
        ));
    }
    let target = Home::open(&further.directory).map_err(told)?;
    if same_directory(home, &target) {
        return Err("it is the store itself".to_owned());
    }
    let mut to = open_store(&target).map_err(told)?;
    let there = to.run_ids().map_err(told)?;
    let file = journal(home, further);
    let mut journal = file.map_err(|error| format!("its journal cannot be written: {error}"))?;
    for id in pending {
        let Some(run) = from.run(&id).map_err(told)? else {
            continue;
        };
        if !there.contains(&id) {
            match copy_run(from, &run, &mut *to) {
                Ok(()) | Err(store::Error::Exists(_)) => {}
                Err(error) => return Err(chain(&error)),
            }
        }
        writeln!(journal, "{id}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn same_directory(one: &Home, other: &Home) -> bool {
    let real = |home: &Home| fs::canonicalize(home.dir()).ok();
    real(one) == real(other)
}

/// The runs that were delivered. A run that its owner removed there is not delivered again.
fn delivered(home: &Home, to: &FurtherStore) -> HashSet<String> {
    let text = regular::read(beside(home, to, "runs")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(str::to_owned).collect()
}

fn journal(home: &Home, to: &FurtherStore) -> io::Result<File> {
    let path = beside(home, to, "runs");
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    File::options().create(true).append(true).open(path)
}

fn remember_failure(home: &Home, to: &FurtherStore, failure: Option<&str>) {
    let path = beside(home, to, "failure");
    match failure {
        Some(failure) => {
            let _ = fs::create_dir_all(path.parent().unwrap_or(&path));
            let _ = fs::write(path, failure);
        }
        None => drop(fs::remove_file(path)),
    }
}

/// A file about a further store: its name is the digest of the directory.
fn beside(home: &Home, to: &FurtherStore, what: &str) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let digest = Sha256::digest(to.directory.as_os_str().as_bytes());
    let name: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    home.dir().join("deliveries").join(format!("{name}.{what}"))
}
