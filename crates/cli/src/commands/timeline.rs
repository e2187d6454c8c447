//! `timeline`: what happened, in the order of time.

mod forms;

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use backstory_hunt::{FoundStep, Operation, RunFilter, RunGraph, step};
use backstory_query::Asked;
use backstory_scene::PeerPattern;
use backstory_store::{GraphStore, RunKey};

use super::{Outcome, answer};
use crate::args::hunt::TimelineArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json;
use crate::lake_graphs::{LakePlace, LakeRequest};
use crate::subject::{PathNotation, notation};
use crate::text::paths::{is_system, shown};

/// How much an event matters to a reader, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A change of an own file, or a use of the network.
    Change,
    /// The start of a program.
    Program,
    /// A read of an own file.
    Read,
    /// Such an event that was not observed, and may not have happened.
    Possible,
    /// An operation on a system file, or a look-up.
    Noise,
}

/// An operation of a run, for a reader.
struct Event {
    run: String,
    /// The machine, in a lake.
    place: Option<LakePlace>,
    step: FoundStep,
    weight: Weight,
}

/// The subject of a timeline.
enum Subject {
    Run(String),
    /// A file or directory by its names, as it may have been recorded.
    Paths(Vec<Vec<u8>>),
    Peer(PeerPattern),
}

/// Prints the events.
pub fn run(args: &TimelineArgs, store: Option<&Path>) -> Outcome {
    let mut events = match (&args.lake, &args.subject) {
        (Some(lake), Some(subject)) => in_lake(lake, subject, args)?,
        _ => in_store(args, store)?,
    };
    // A store and a lake give the events of one moment in different orders.
    events.sort_by(|a, b| {
        let place = |event: &Event| (event.step.time, event.step.is_possible, event.weight);
        let rest = |event: &Event| {
            let step = &event.step;
            (
                step.program.pid,
                step.operation,
                step.target.clone(),
                event.run.clone(),
            )
        };
        place(a).cmp(&place(b)).then_with(|| rest(a).cmp(&rest(b)))
    });
    answer(|out| match (args.json, args.csv) {
        (true, _) => json::lines(out, events.iter().map(forms::object)),
        (_, true) => forms::rows(&events, out),
        _ => forms::write(&events, args.all, out),
    })?;
    Ok(u8::from(events.is_empty()))
}

fn in_store(args: &TimelineArgs, store: Option<&Path>) -> Result<Vec<Event>, Failure> {
    let current = CurrentStore::open(store)?;
    current.tell_left_running();
    let subject = subject(&current, args.subject.as_deref())?;
    let mut events = Vec::new();
    for (key, run) in runs(&current, &subject)? {
        match RunGraph::of_store(&current.store, key, args.size.most)? {
            Some(graph) => add(&graph, &run, None, &subject, args, &mut events),
            None => args.size.tell_left_out(&run),
        }
    }
    Ok(events)
}

fn in_lake(lake: &OsStr, given: &OsStr, args: &TimelineArgs) -> Result<Vec<Event>, Failure> {
    let subject = subject_of_lake(given)?;
    let (filter, run) = match &subject {
        Subject::Run(run) => (RunFilter::all(), std::slice::from_ref(run)),
        Subject::Paths(paths) => (RunFilter::at_path(&paths[0]), &[][..]),
        Subject::Peer(_) => (RunFilter::with_connection(), &[][..]),
    };
    let request = LakeRequest {
        lake,
        runs: run,
        hosts: &[],
        // A run that began before the last moment can have events up to it.
        begun: (None, args.to),
        filter: &filter,
        compares: false,
        most: args.size.most,
        bounds: args.bounds.sql,
    };
    let mut events = Vec::new();
    request.each(&mut |run| {
        match &run.graph {
            Some(graph) => {
                let place = Some(run.place);
                add(graph, &run.id, place, &subject, args, &mut events);
            }
            None => args.size.tell_left_out(&run.id),
        }
        Ok(())
    })?;
    Ok(events)
}

/// An address, else a path, which has a slash, else a run. A file here can have a run's name.
fn subject_of_lake(given: &OsStr) -> Result<Subject, Failure> {
    if let Some(peer) = given.to_str().and_then(PeerPattern::parse) {
        return Ok(Subject::Peer(peer));
    }
    let path = Path::new(given);
    let is_path = given.as_encoded_bytes().contains(&b'/');
    match given.to_str() {
        Some(run) if !is_path => Ok(Subject::Run(run.to_owned())),
        // Its other names here say nothing of other machines.
        _ => {
            let path = Asked::new(path)?.absolute;
            Ok(Subject::Paths(vec![path.into_os_string().into_vec()]))
        }
    }
}

/// A run, else a file that exists or was recorded, else an address.
fn subject(current: &CurrentStore, given: Option<&OsStr>) -> Result<Subject, Failure> {
    let Some(given) = given else {
        return Ok(Subject::Run(current.run(None)?));
    };
    let words = given.to_str();
    let run = words.map(|words| backstory_query::resolve(&current.store, Some(words)));
    if let Some(Ok(run)) = run {
        return Ok(Subject::Run(run));
    }
    let path = match notation(current, given)? {
        PathNotation::Plain(path) | PathNotation::OfRun(path, _) => path,
        PathNotation::AtMoment(path, _) => path,
    };
    let asked = Asked::new(&path)?;
    let mut is_known = path.symlink_metadata().is_ok();
    for name in asked.names() {
        is_known = is_known || !current.store.at_path(name)?.is_empty();
    }
    if is_known {
        let names = asked.names().into_iter().map(<[u8]>::to_vec);
        return Ok(Subject::Paths(names.collect()));
    }
    match words.and_then(PeerPattern::parse) {
        Some(peer) => Ok(Subject::Peer(peer)),
        None => Err(Failure::not_found(format!(
            "{} is neither a run, nor a recorded file, nor an address",
            shown(given.as_encoded_bytes())
        ))),
    }
}

/// The runs that can have events.
fn runs(current: &CurrentStore, subject: &Subject) -> Result<Vec<(RunKey, String)>, Failure> {
    let all = current.store.runs()?.into_iter();
    let all = all.map(|run| (run.key, run.header.id));
    Ok(match subject {
        Subject::Run(wanted) => all.filter(|(_, run)| run == wanted).collect(),
        Subject::Paths(paths) if !Path::new(OsStr::from_bytes(&paths[0])).is_dir() => {
            let mut keys = Vec::new();
            for path in paths {
                keys.extend(current.store.at_path(path)?);
            }
            all.filter(|(run, _)| keys.iter().any(|key| key.run() == *run))
                .collect()
        }
        _ => all.collect(),
    })
}

fn add(
    graph: &RunGraph,
    run: &str,
    place: Option<LakePlace>,
    subject: &Subject,
    args: &TimelineArgs,
    events: &mut Vec<Event>,
) {
    for fact in graph.facts() {
        let after = args.from.is_none_or(|from| fact.end >= from);
        let before = args.to.is_none_or(|to| fact.start <= to);
        if !after || !before {
            continue;
        }
        let step = step(graph, &fact);
        let target = step.target.as_deref();
        let is_about = match subject {
            Subject::Run(_) => true,
            Subject::Paths(paths) => [target, step.source.as_deref()]
                .into_iter()
                .flatten()
                .any(|file| paths.iter().any(|path| is_below(file, path))),
            Subject::Peer(peer) => target
                .and_then(|target| std::str::from_utf8(target).ok())
                .is_some_and(|target| peer.accepts(target)),
        };
        if is_about {
            let weight = match weight(fact.operation, target) {
                Weight::Noise => Weight::Noise,
                _ if step.is_possible => Weight::Possible,
                weight => weight,
            };
            events.push(Event {
                run: run.to_owned(),
                place: place.clone(),
                step,
                weight,
            });
        }
    }
}

fn is_below(file: &[u8], path: &[u8]) -> bool {
    let rest = file.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || path.ends_with(b"/"))
}

fn weight(operation: Operation, target: Option<&[u8]>) -> Weight {
    let is_own = target.is_some_and(|target| target.starts_with(b"/") && !is_system(target));
    match operation {
        Operation::Start => Weight::Program,
        Operation::Send | Operation::Receive => Weight::Change,
        Operation::On(_) if !is_own => Weight::Noise,
        Operation::On(relation) => match relation.words().word {
            "read" => Weight::Read,
            "write" | "make" | "rename" | "delete" | "meta" => Weight::Change,
            _ => Weight::Noise,
        },
    }
}
