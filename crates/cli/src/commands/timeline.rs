//! `timeline`: what happened, in the order of time.
//!
//! A text has one screen. It keeps changes of the user's own files and network operations first,
//! then programs, then reads. It counts the others.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::Time;
use backstory_hunt::{FoundStep, Operation, RunGraph, step};
use backstory_scene::PeerPattern;
use backstory_store::{GraphStore, RunKey};
use backstory_workflow::shell;

use super::{Outcome, answer};
use crate::args::hunt::TimelineArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::subject::{PathNotation, notation};
use crate::text::csv;
use crate::text::paths::{is_system, shown};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Most edges of a run in memory.
const MOST: usize = 5_000_000;
/// Events that a text shows.
const SCREEN: usize = 40;
/// Columns of a command.
const COLUMNS: usize = 40;

/// How much an event matters to a reader, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A change of an own file, or a use of the network.
    Change,
    /// The start of a program.
    Program,
    /// A read of an own file.
    Read,
    /// An operation on a system file, or a look-up.
    Noise,
}

struct Event {
    run: String,
    step: FoundStep,
    weight: Weight,
}

/// The subject of a timeline.
enum Subject {
    Run(String),
    Path(Vec<u8>),
    Peer(PeerPattern),
}

/// Prints the events.
pub fn run(args: &TimelineArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    current.tell_left_running();
    let subject = subject(&current, args.subject.as_deref())?;
    let mut events = Vec::new();
    for (key, run) in runs(&current, &subject)? {
        match RunGraph::of_store(&current.store, key, MOST)? {
            Some(graph) => add(&graph, &run, &subject, args, &mut events),
            None => complain(&format!(
                "run {run} is left out: it has more than 5 million edges"
            )),
        }
    }
    events.sort_by_key(|event| (event.step.time, event.weight));
    answer(|out| match (args.json, args.csv) {
        (true, _) => json::lines(out, events.iter().map(object)),
        (_, true) => rows(&events, out),
        _ => write(&events, args.all, out),
    })?;
    Ok(u8::from(events.is_empty()))
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
    let bytes = path.as_os_str().as_encoded_bytes().to_vec();
    if path.symlink_metadata().is_ok() || !current.store.at_path(&bytes)?.is_empty() {
        return Ok(Subject::Path(bytes));
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
        Subject::Path(path) if !Path::new(OsStr::from_bytes(path)).is_dir() => {
            let keys = current.store.at_path(path)?;
            all.filter(|(run, _)| keys.iter().any(|key| key.run() == *run))
                .collect()
        }
        _ => all.collect(),
    })
}

fn add(
    graph: &RunGraph,
    run: &str,
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
            Subject::Path(path) => [target, step.source.as_deref()]
                .iter()
                .flatten()
                .any(|file| is_below(file, path)),
            Subject::Peer(peer) => target
                .and_then(|target| std::str::from_utf8(target).ok())
                .is_some_and(|target| peer.accepts(target)),
        };
        if is_about {
            let weight = weight(fact.operation, target);
            events.push(Event {
                run: run.to_owned(),
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

fn write(events: &[Event], all: bool, out: &mut impl Write) -> io::Result<()> {
    let style = Style::of_stdout();
    if events.is_empty() {
        return writeln!(out, "no events");
    }
    let shown_weights = |weight: Weight| match all {
        true => true,
        false => {
            let as_heavy = events.iter().filter(|event| event.weight <= weight).count();
            weight == Weight::Change || weight < Weight::Noise && as_heavy <= SCREEN
        }
    };
    let weights = [Weight::Change, Weight::Program, Weight::Read, Weight::Noise];
    let kept: Vec<Weight> = weights
        .into_iter()
        .filter(|weight| shown_weights(*weight))
        .collect();
    let mut kept: Vec<&Event> = events
        .iter()
        .filter(|event| kept.contains(&event.weight))
        .collect();
    if !all && kept.len() > SCREEN {
        // The begin and the end.
        kept.drain(SCREEN / 2..kept.len() - SCREEN / 2);
    }
    let mut last = (Time::MIN, "");
    for event in &kept {
        if event.run != last.1 {
            let heading = format!("run {}, {}", event.run, when::moment(event.step.time));
            writeln!(out, "{}", style.paint(Role::Subject, &heading))?;
            last = (event.step.time, &event.run);
        }
        writeln!(out, "{}", line(event, last.0, style))?;
    }
    let rest = events.len() - kept.len();
    if rest > 0 {
        let line = format!(
            "{} left out: --all",
            counted(rest, "other event", "other events")
        );
        writeln!(out, "{}", style.paint(Role::Dim, &line))?;
    }
    Ok(())
}

/// An event with the seconds since the first one of its run.
fn line(event: &Event, begin: Time, style: Style) -> String {
    let step = &event.step;
    let seconds = step.time.saturating_sub(begin) as f64 / 1e9;
    let mut what = match &step.target {
        Some(target) => shown(target),
        None => String::new(),
    };
    if let Some(source) = step.source.as_ref().filter(|_| step.operation == "rename") {
        what.push_str(&format!(" from {}", shown(source)));
    }
    if step.is_possible {
        what.push_str(" (possibly)");
    }
    let command = one_line(&shell::line(&step.program.argv));
    let is_start = step.operation == "start";
    let command = match !is_start && command.chars().count() > COLUMNS {
        true => command.chars().take(COLUMNS - 1).chain(['…']).collect(),
        false => command,
    };
    let by = match is_start {
        true => command,
        false => style.paint(Role::Dim, &format!("  {command}")),
    };
    format!("{seconds:>9.3} s  {:<8} {what}{by}", step.operation)
}

fn object(event: &Event) -> Value {
    let step = &event.step;
    let words = step.program.argv.iter().map(|word| &**word);
    Value::Object(vec![
        ("time", Value::Time(step.time)),
        ("run", (&event.run).into()),
        ("operation", step.operation.into()),
        ("target", Value::from(step.target.as_deref())),
        ("source", Value::from(step.source.as_deref())),
        ("certainty", certainty(step).into()),
        ("pid", step.program.pid.into()),
        ("argv", Value::array(words)),
    ])
}

fn certainty(step: &FoundStep) -> &'static str {
    if step.is_possible { "possible" } else { "seen" }
}

fn rows(events: &[Event], out: &mut impl Write) -> io::Result<()> {
    let names = [
        "time",
        "run",
        "operation",
        "target",
        "source",
        "certainty",
        "pid",
        "command",
    ];
    csv::row(names, out)?;
    for event in events {
        let step = &event.step;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let target = step.target.as_deref().unwrap_or_default().to_vec();
        let source = step.source.as_deref().unwrap_or_default().to_vec();
        let cells = [
            bytes(&when::moment(step.time)),
            bytes(&event.run),
            bytes(step.operation),
            target,
            source,
            bytes(certainty(step)),
            bytes(&step.program.pid.to_string()),
            bytes(&shell::line(&step.program.argv)),
        ];
        csv::row(cells, out)?;
    }
    Ok(())
}
