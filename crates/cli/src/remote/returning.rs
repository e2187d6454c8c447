//! Fetches the runs of other machines into the store, and says in the run here which did not come.
//!
//! In: the files of [`super::pending`]. Out: runs in the store, and annotations of the runs that
//! started them.
//!
//! Invariant: one process of a store fetches at a time. A run that cannot be fetched now stays
//! pending; after a week it is given up.

use std::path::Path;
use std::time::Duration;

use backstory_contents::WorkMeter;
use backstory_exchange::{
    Direction, RemoteAddress, RemoteProcess, RemoteProgram, StorePeer, Transfer,
};
use backstory_query::{self as query, RemoteRun};
use backstory_store::annotations::{self, Annotation, AnnotationRecord};
use backstory_store::{AnnotationKind, Home, catch_up_annotations, open_store};

use super::pending::{self, PendingRun};
use crate::commands::store::{PROGRAM, Selector};
use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy, take_lock};

/// A pending run is given up after this time.
const GIVEN_UP: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time before the second attempt in the background. It doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Attempts in a row, while the other side ends its recording.
const ATTEMPTS: u32 = 5;

/// Fetches what can be fetched now. With [`Busy::Wait`], runs whose last attempt was moments ago
/// are tried again.
pub fn fetch(home: &Home, busy: Busy) -> Result<(), Failure> {
    if pending::all(home.dir()).is_empty() {
        return Ok(());
    }
    let what = "waiting for another backstory process to fetch runs of other machines";
    let lock = take_lock(pending::lock_path(home.dir()), busy, what);
    let lock = lock.map_err(|error| Failure::not_found(chain(&error)))?;
    if lock.is_none() {
        return Ok(());
    }
    for mut run in pending::all(home.dir()) {
        if run.is_connected() || (busy == Busy::Leave && is_too_early(&run, home.dir())) {
            continue;
        }
        let fetched = fetch_one(home, &run);
        let absent = fetched.err();
        note(home, &run, absent.as_deref())?;
        match absent {
            None => run.remove(home.dir()),
            Some(_) if is_given_up(&run) => run.remove(home.dir()),
            Some(_) => {
                run.tried += 1;
                let written = run.write(home.dir());
                written.map_err(|error| Failure::not_found(error.to_string()))?;
            }
        }
    }
    Ok(())
}

/// Fetches what came since the last question of the user's. Costs one look into a directory where
/// nothing is pending. The question itself reports a store that it cannot open.
pub fn fetch_before_question(store: Option<&Path>) {
    let home = Home::directory(store).and_then(|directory| Home::open_to_read(&directory));
    if let Ok(home) = home
        && let Err(failure) = fetch(&home, Busy::Leave)
    {
        complain(&failure.line);
    }
}

fn is_too_early(run: &PendingRun, store: &Path) -> bool {
    let pause = match run.tried {
        0 => return false,
        tried => FIRST_PAUSE * 2_u32.pow(tried.min(12) - 1),
    };
    let since = run.tried_at(store).and_then(|at| at.elapsed().ok());
    since.is_some_and(|since| since < pause)
}

/// The pauses of the attempts add up to more than a week.
fn is_given_up(run: &PendingRun) -> bool {
    let tried = run.tried.min(20);
    FIRST_PAUSE * 2_u32.pow(tried) > GIVEN_UP
}

/// Fetches a run. The error is a clause for the user.
fn fetch_one(home: &Home, run: &PendingRun) -> Result<(), String> {
    let mut why = String::new();
    for attempt in 0..ATTEMPTS {
        match pull(home, run) {
            Ok(()) => return Ok(()),
            Err(error) => why = error,
        }
        // The recording there ends moments after its command.
        if !why.contains("no run") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50 << attempt));
    }
    Err(why)
}

fn pull(home: &Home, run: &PendingRun) -> Result<(), String> {
    let error = |error: backstory_exchange::Error| chain(&error);
    let store = open_store(home).map_err(|error| chain(&error))?;
    let local = StorePeer::new(home.clone(), store, Selector);
    let mut local = local.receiving(None).map_err(error)?;
    let address = RemoteAddress::Host {
        host: run.machine.clone(),
        directory: String::new(),
    };
    let mut process = RemoteProcess::start(&address, &program(run)?, true).map_err(error)?;
    let select = [format!("--run={}", run.run)];
    let done = process.connect(PROGRAM, &select).and_then(|mut remote| {
        let mut transfer = Transfer {
            local: &mut local,
            remote: &mut remote,
            direction: Direction::Pull,
            meter: WorkMeter::default(),
        };
        transfer.run(&mut |_, _| ())
    });
    let done = match done {
        Ok(done) => done,
        Err(failed) => return Err(error(process.explain(failed))),
    };
    process.wait();
    match done.refused.into_iter().next() {
        Some((_, why)) => Err(why),
        None if done.runs.is_empty() && done.known == 0 => Err("no run came".to_owned()),
        None => Ok(()),
    }
}

/// The connection begins in the directory of the user's ssh, because paths of keys may be relative.
/// The messages of ssh are left out: the reason of the run says the same.
fn program(run: &PendingRun) -> Result<RemoteProgram, String> {
    let directory = run.directory.to_str().ok_or("its directory is not UTF-8")?;
    let shell = [
        "/bin/sh",
        "-c",
        "cd \"$0\" && exec \"$@\" 2>/dev/null",
        directory,
    ];
    let words = shell.into_iter().chain(run.ssh.iter().map(String::as_str));
    Ok(RemoteProgram {
        ssh: words.map(str::to_owned).collect(),
        remote: run.program.clone(),
        own: std::env::current_exe().map_err(|error| error.to_string())?,
    })
}

/// Says in the run here that the run there is absent, or no longer is.
fn note(home: &Home, run: &PendingRun, absent: Option<&str>) -> Result<(), Failure> {
    let mut store = open_store(home)?;
    index::bring_up_to_date(home, &mut store, Busy::Wait, false)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let Some(here) = query::starter(&store, &run.connection)? else {
        return Ok(());
    };
    let value = absent.map(|why| {
        let machine = run.machine.clone();
        let why = why.to_owned();
        RemoteRun { machine, why }.to_json()
    });
    let known = store.annotations(&here)?;
    let known = known
        .iter()
        .find(|one| one.kind == AnnotationKind::Remote && one.key == run.run);
    if known.and_then(|one| one.value.clone()) == value {
        return Ok(());
    }
    let record = AnnotationRecord::Set(Annotation {
        run: here,
        kind: AnnotationKind::Remote,
        key: run.run.clone(),
        value,
    });
    annotations::append(home, &[record])?;
    Ok(catch_up_annotations(home, &mut store)?)
}
