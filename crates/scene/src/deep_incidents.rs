//! Incidents of a run with a deep log.
//!
//! In: the acts or requests that are meant. Out: one incident for each, with all that its calls
//! did. The deep log is read once more for all of them. Names of programs and their arguments come
//! from the graph, where secrets among them are replaced.

use std::collections::{BTreeSet, HashMap};

use backstory_deep::Part;

use crate::deeds::Deeds;
use crate::deep_files::DeepFiles;
use crate::deep_limits::{Found, limits};
use crate::deep_run::{CLOCKS_DIFFER, DeepRun, Meant};
use crate::error::Result;
use crate::excerpt::Collected;
use crate::left::{self, MOST_FILES};
use crate::model::{Incident, SceneProcess, SceneRequest};
use crate::recorded_incidents::{self as recorded, Period};

/// The incidents of what is meant, in the same order. Several acts of one request are one incident.
pub fn incidents(run: &DeepRun<'_>, mut meant: Vec<Meant>) -> Result<Vec<Incident>> {
    let mut seen = BTreeSet::new();
    meant.retain(|one| one.request.is_none_or(|request| seen.insert(request)));
    let of_request: HashMap<usize, usize> = meant
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some((one.request?, at)))
        .collect();
    let of_process: HashMap<u64, usize> = meant
        .iter()
        .enumerate()
        .filter(|(_, one)| one.request.is_none())
        .map(|(at, one)| (one.epoch, at))
        .collect();
    let mut deeds: Vec<Deeds> = meant.iter().map(|_| Deeds::default()).collect();
    let mut files = DeepFiles::default();
    run.log.walk_requests(|process, call, belongs| {
        let used = files.take(process, call);
        let at = match belongs {
            Some((request, _)) => of_request.get(&request),
            None => of_process.get(&process.epoch),
        };
        let Some(deeds) = at.and_then(|at| deeds.get_mut(*at)) else {
            return;
        };
        let part = belongs.map_or(Part::Other, |(_, part)| part);
        deeds.take(&run.log, process, call, part);
        if let Some(used) = used {
            if let Some(formerly) = used.formerly {
                deeds.files.remove(&formerly);
            }
            left::add(&mut deeds.files, &used.path, used.act);
        }
    });
    let all = meant.into_iter().zip(deeds);
    all.map(|(meant, deeds)| incident(run, meant, deeds))
        .collect()
}

fn incident(run: &DeepRun<'_>, meant: Meant, deeds: Deeds) -> Result<Incident> {
    let (from, to) = deeds.period.unwrap_or((meant.time, meant.time));
    let period = Period {
        from: from - CLOCKS_DIFFER,
        to: to + CLOCKS_DIFFER,
    };
    let mut files = deeds.files;
    for act in &meant.acts {
        if let Some(path) = &meant.file {
            left::add(&mut files, path, *act);
        }
    }
    // Renames and removals are in the graph only.
    let of_graph =
        recorded::changes_within(run.store, &run.run.id, &run.processes, &deeds.pids, period)?;
    let names_of_graph = of_graph.iter().any(|(path, _)| !files.contains_key(path));
    for (path, act) in of_graph {
        left::add(&mut files, &path, act);
    }
    let shallow = recorded::shallow_children(&run.processes, &deeds.pids, period, &run.log);
    let request = request(run, &meant, deeds.received, deeds.sent);
    let found = Found {
        names_of_graph,
        many_files: files.len() >= MOST_FILES,
        shallow_programs: !shallow.is_empty(),
    };
    let limits = limits(run, &meant, request.as_ref(), &found);
    let process_at = |pid, time| recorded::process_at(&run.processes, pid, time + CLOCKS_DIFFER);
    let begun = deeds.started.iter();
    let mut started: Vec<SceneProcess> = begun.map(|(pid, time)| process_at(*pid, *time)).collect();
    started.extend(shallow);
    Ok(Incident {
        process: process_at(meant.pid, meant.time),
        time: meant.time,
        acts: meant.acts,
        precision: meant.precision,
        files: left::files(run.store, &run.run.id, &run.directory, files)?,
        started,
        connections: deeds.connections,
        reconstruct: command(run, request.as_ref(), meant.epoch),
        request,
        limits,
        run: run.run.clone(),
    })
}

/// The request that is meant, with the beginning of its bytes.
fn request(
    run: &DeepRun<'_>,
    meant: &Meant,
    received: Collected,
    sent: Collected,
) -> Option<SceneRequest> {
    let mut all = run.requests.iter();
    let at = all.position(|one| Some(one.id) == meant.request)?;
    let request = run.requests.get(at)?;
    Some(SceneRequest {
        number: at + 1,
        is_served: request.connection.is_some(),
        peer: request.peer.clone(),
        pid: request.pid,
        connection: request.connection,
        began: run.log.time_of(request.began),
        ended: run.log.time_of(request.ended),
        received: received.excerpt(),
        sent: sent.excerpt(),
    })
}

/// The command that runs the request again, or else the process. The replay of a request that the
/// program made itself ends behind that request. It names the process if the command of the run is
/// another program, as a shell: gdb debugs the program with which the replay starts.
fn command(run: &DeepRun<'_>, request: Option<&SceneRequest>, epoch: u64) -> String {
    let id = &run.run.id;
    let process = run
        .log
        .processes()
        .iter()
        .find(|process| process.epoch == epoch);
    match (request, process) {
        (Some(request), _) => {
            let number = request.number;
            let own = number.checked_sub(1).and_then(|at| run.requests.get(at));
            let starter = own.and_then(|own| run.log.starter(own.epoch));
            let process = starter.map_or(String::new(), |pid| format!(" --process {pid}"));
            format!("backstory replay --deep {id} --request {number}{process} --with gdb")
        }
        (None, Some(process)) => {
            let pid = process.own_pid;
            format!("backstory replay --deep {id} --process {pid} --with gdb")
        }
        (None, None) => format!("backstory replay --deep {id} --with gdb"),
    }
}
