//! From an act on a file to the request that is meant.
//!
//! In: acts of the deep log, and touches of the graph. Out: [`Meant`], with how it was found.

use std::collections::BTreeSet;

use backstory_deep::Request;
use backstory_eventlog::event::Time;
use backstory_ordering::SmallSort;
use backstory_query::answer::{Access, FileTouch};

use crate::deep_run::{DeepRun, Meant};
use crate::deep_search::FoundAct;
use crate::model::{FileAct, Precision};

/// A request that is meant itself.
pub fn served(run: &DeepRun<'_>, request: &Request) -> Meant {
    Meant {
        request: Some(request.id),
        epoch: request.epoch,
        pid: request.pid,
        time: run.log.time_of(request.began),
        file: None,
        acts: Vec::new(),
        precision: Precision::Request,
        others: BTreeSet::new(),
    }
}

/// The request that a process served at a moment: the one that began last.
fn served_by_process(run: &DeepRun<'_>, pid: u32, time: Time) -> Option<Meant> {
    let own = run.requests.iter().filter(|request| request.pid == pid);
    let request = own.rev().find(|request| run.is_served_at(request, time))?;
    Some(Meant {
        time,
        precision: Precision::Time,
        ..served(run, request)
    })
}

/// The request that the process of a touch served when the touch ended.
pub fn served_during(run: &DeepRun<'_>, touch: &FileTouch) -> Option<Meant> {
    let found = served_by_process(run, touch.activity.pid, touch.interval.end)?;
    Some(Meant {
        acts: acts(touch),
        file: Some(touch.path.to_vec()),
        ..found
    })
}

/// The request of an act. A thread that works on no connection may act for a request that another
/// thread of its process received. One that has read several requests may act for each of them.
pub fn meant_by(run: &DeepRun<'_>, act: FoundAct) -> Meant {
    let meant = Meant {
        request: act.request,
        epoch: act.epoch,
        pid: act.pid,
        time: act.time,
        file: Some(act.path),
        acts: act.acts,
        precision: match act.others.is_empty() {
            true => Precision::Request,
            false => Precision::Time,
        },
        others: act.others,
    };
    let other = match meant.request {
        Some(_) => None,
        None => served_by_process(run, meant.pid, meant.time),
    };
    match other {
        Some(other) => Meant {
            request: other.request,
            precision: other.precision,
            ..meant
        },
        None => meant,
    }
}

/// The names that the file, or its content, had in the run.
pub fn names(touches: &[FileTouch]) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for touch in touches {
        let others = touch.from.iter().chain(&touch.to).map(|(_, path)| path);
        for path in std::iter::once(&touch.path).chain(others) {
            if !names.iter().any(|known| **known == **path) {
                names.push(path.to_vec());
            }
        }
    }
    names
}

/// True if the process changed the file.
pub fn is_change(touch: &FileTouch) -> bool {
    acts(touch).iter().any(|act| act.is_change())
}

/// The acts of a process on the file.
pub fn acts(touch: &FileTouch) -> Vec<FileAct> {
    let mut acts: Vec<FileAct> = touch
        .access
        .iter()
        .filter_map(|access| {
            Some(match access {
                Access::Read => FileAct::Read,
                Access::Exec => FileAct::Execute,
                Access::Write => FileAct::Write,
                Access::Rename => FileAct::Rename,
                Access::Delete => FileAct::Delete,
                Access::Meta => FileAct::Meta,
                _ => return None,
            })
        })
        .collect();
    acts.sort_small();
    acts
}
