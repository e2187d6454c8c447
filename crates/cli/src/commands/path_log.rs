//! `log -- PATH`: what happened to a file, one line for each run.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_query as query;
use backstory_query::{PathChange, PathEvent, RunFilter};
use backstory_store::GraphStore;

use super::{Outcome, answer, here};
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::{self, Value};
use crate::mounted_paths::unseen;
use crate::text::line::{Line, columns};
use crate::text::paths::shown;
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::undo_note::is_put_back;

/// Prints the history of a path, newest first.
pub fn run(path: &Path, filter: RunFilter, as_json: bool, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    current.tell_left_running();
    let events = query::history(&current.store, path);
    let mut events = events.map_err(|error| unseen(&current, path, error))?;
    let most = filter.most;
    let filter = RunFilter {
        most: None,
        ..filter
    };
    if !filter.is_empty() {
        let runs = query::runs_where(&current.store, &filter)?;
        let ids: HashSet<String> = runs.into_iter().map(|run| run.id).collect();
        let mut wanted = Vec::new();
        for event in events {
            if run_of(&current, &event)?.is_some_and(|run| ids.contains(&run)) {
                wanted.push(event);
            }
        }
        events = wanted;
    }
    events.reverse();
    let mut lines = Vec::new();
    for events in events.chunk_by(is_one_line) {
        lines.push(HistoryLine::of(&current, events)?);
    }
    lines.truncate(most.unwrap_or(usize::MAX));
    answer(|out| match as_json {
        true => json::lines(out, lines.iter().map(HistoryLine::json)),
        false => text(&lines, out),
    })
}

/// True if two events, which follow each other, belong to one line.
fn is_one_line(a: &PathEvent, b: &PathEvent) -> bool {
    let recorded = a.activity.is_some() && b.activity.is_some();
    recorded && a.run == b.run && a.path == b.path
}

/// The id of the run that recorded an event or first met its result.
pub fn run_of(current: &CurrentStore, event: &PathEvent) -> Result<Option<String>, Failure> {
    Ok(match event.run {
        Some(run) => current.store.run_id(run)?,
        None => None,
    })
}

/// A line of the answer: the changes by one run, or an inferred change.
struct HistoryLine {
    run: Option<String>,
    /// The events, oldest first.
    events: Vec<PathEvent>,
    /// The file is as `undo` or `redo` put it back.
    is_put_back: bool,
    /// The arguments of the program that did the last of them.
    argv: Vec<backstory_eventlog::event::Bytes>,
}

impl HistoryLine {
    /// `events`: newest first.
    fn of(current: &CurrentStore, events: &[PathEvent]) -> Result<HistoryLine, Failure> {
        let newest = &events[0];
        let argv = match newest.activity {
            Some(activity) => current.store.activity(activity)?.argv,
            None => Vec::new(),
        };
        // Only the present file has a version that no run knows.
        let is_present = newest.version.is_none() && newest.change.leaves_file();
        let path = Path::new(OsStr::from_bytes(&newest.path));
        Ok(HistoryLine {
            run: run_of(current, newest)?,
            is_put_back: is_present && is_put_back(current.home.dir(), path),
            events: events.iter().rev().cloned().collect(),
            argv,
        })
    }

    /// The changes in words, each once.
    fn words(&self) -> String {
        if self.is_put_back {
            return "put back by `backstory undo` or `redo`".to_owned();
        }
        let content = |change: &PathChange| {
            matches!(
                change,
                PathChange::Made | PathChange::Changed | PathChange::RenamedFrom(_)
            )
        };
        let changed = self.events.iter().any(|event| content(&event.change));
        let mut words: Vec<String> = Vec::new();
        for event in &self.events {
            // A program that writes a file often sets its mode and times, too.
            if changed && event.change == PathChange::Metadata {
                continue;
            }
            let word = word(&event.change);
            let said =
                words.contains(&word) || event.change == PathChange::Changed && !words.is_empty();
            if !said {
                words.push(word);
            }
        }
        words.join(", ")
    }

    fn json(&self) -> Value {
        let events = self.events.iter().map(|event| {
            let other = match &event.change {
                PathChange::RenamedFrom(path)
                | PathChange::RenamedTo(path)
                | PathChange::MovedUnseen { from: path, .. } => Value::from(path),
                _ => Value::Null,
            };
            Value::Object(vec![
                (
                    "change",
                    match self.is_put_back {
                        true => "put-back".into(),
                        false => name(&event.change).into(),
                    },
                ),
                ("time", Value::Time(event.time)),
                ("other_path", other),
            ])
        });
        let newest = self.events.last();
        Value::Object(vec![
            ("path", newest.map(|event| &*event.path).into()),
            ("run", self.run.as_deref().into()),
            (
                "time",
                newest.map_or(Value::Null, |event| Value::Time(event.time)),
            ),
            ("events", Value::Array(events.collect())),
            (
                "inferred",
                (!self.is_put_back && newest.is_some_and(|event| event.change.is_inferred()))
                    .into(),
            ),
            ("argv", Value::array(&self.argv)),
        ])
    }
}

/// The word of a change in JSON.
fn name(change: &PathChange) -> &'static str {
    match change {
        PathChange::Made => "made",
        PathChange::Changed => "changed",
        PathChange::RenamedFrom(_) => "renamed-from",
        PathChange::RenamedTo(_) => "renamed-to",
        PathChange::Deleted => "deleted",
        PathChange::Metadata => "metadata",
        PathChange::Found => "found",
        PathChange::ChangedUnseen => "changed-unrecorded",
        PathChange::MovedUnseen { .. } => "moved-unrecorded",
        PathChange::GoneUnseen => "gone-unrecorded",
    }
}

/// A change in words for people.
pub fn word(change: &PathChange) -> String {
    match change {
        PathChange::Made => "made".to_owned(),
        PathChange::Changed => "changed".to_owned(),
        PathChange::RenamedFrom(from) => format!("renamed from {}", shown(from)),
        PathChange::RenamedTo(to) => format!("renamed to {}", shown(to)),
        PathChange::Deleted => "deleted".to_owned(),
        PathChange::Metadata => "mode, owner or times changed".to_owned(),
        PathChange::Found => "was there already; no recorded run made it".to_owned(),
        PathChange::ChangedUnseen => "changed outside of recorded runs (inferred)".to_owned(),
        PathChange::MovedUnseen {
            from,
            same_inode: true,
        } => format!(
            "moved from {} outside of recorded runs (inferred: same inode)",
            shown(from)
        ),
        PathChange::MovedUnseen { from, .. } => {
            format!(
                "moved from {} outside of recorded runs (inferred: same content)",
                shown(from)
            )
        }
        PathChange::GoneUnseen => "deleted or moved outside of recorded runs (inferred)".to_owned(),
    }
}

fn text(lines: &[HistoryLine], out: &mut impl Write) -> io::Result<()> {
    let (style, columns, here) = (Style::of_stdout(), columns(), here());
    let newest = lines.first().and_then(|line| line.events.last());
    let subject = newest.map(|event| event.path.clone());
    let mut path = subject.clone();
    for one in lines {
        let Some(event) = one.events.last() else {
            continue;
        };
        if Some(&event.path) != path.as_ref() {
            path = Some(event.path.clone());
            let name = backstory_workflow::paths::relative(&event.path, &here);
            writeln!(out, "as {}", style.paint(Role::Subject, &shown(name)))?;
        }
        // An inferred event belongs to no run. The run that met its result is no cause of it.
        let run = one.run.as_deref().filter(|_| event.activity.is_some());
        let time = match event.change {
            PathChange::GoneUnseen => "sometime later".to_owned(),
            _ => when::moment(event.time),
        };
        let mut line = Line::default();
        line.add(None, format!("{:<8}  ", run.unwrap_or("–")));
        line.add(Role::Dim, format!("{time:<19}  "));
        let bad = !event.change.leaves_file();
        let role = if bad { Role::Bad } else { Role::Good };
        line.add(role, one.words());
        if !one.argv.is_empty() {
            line.add(None, "  ");
            let command = shell::words(one.argv.iter().map(|word| &word[..]));
            line.add_flexible(Role::Command, &command);
        }
        writeln!(out, "{}", line.text(style, columns))?;
    }
    Ok(())
}
