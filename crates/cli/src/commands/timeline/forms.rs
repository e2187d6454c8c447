//! The forms of a timeline: text, JSON, comma-separated values.
//!
//! A text has one screen. It keeps changes of the user's own files and network operations first,
//! then programs, then reads, then what is only possible. It counts the others.

use std::io::{self, Write};

use backstory_eventlog::event::Time;
use backstory_hunt::FoundStep;
use backstory_workflow::shell;

use super::{Event, Weight};
use crate::error::one_line;
use crate::json::Value;
use crate::text::command::program_line;
use crate::text::csv;
use crate::text::paths::shown;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Events that a text shows.
const SCREEN: usize = 40;
/// Columns of a command.
const COLUMNS: usize = 40;

/// The events as text, on one screen unless `all` are wanted.
pub fn write(events: &[Event], all: bool, out: &mut impl Write) -> io::Result<()> {
    let style = Style::of_stdout();
    if events.is_empty() {
        return writeln!(out, "no events");
    }
    let first = events.iter().map(|event| event.weight).min();
    // The largest weight that is shown. Of the first one, a part is shown.
    let fits = |weight: &Weight| {
        let as_heavy = events
            .iter()
            .filter(|event| event.weight <= *weight)
            .count();
        as_heavy <= SCREEN || Some(*weight) == first
    };
    let weights = [
        Weight::Change,
        Weight::Program,
        Weight::Read,
        Weight::Possible,
    ];
    let last = weights.into_iter().take_while(fits).last();
    let is_shown = |event: &&Event| all || Some(event.weight) <= last;
    let mut kept: Vec<&Event> = events.iter().filter(is_shown).collect();
    if !all && kept.len() > SCREEN {
        // The begin and the end.
        kept.drain(SCREEN / 2..kept.len() - SCREEN / 2);
    }
    let mut last = (Time::MIN, "");
    for event in &kept {
        if event.run != last.1 {
            let place = event
                .place
                .as_ref()
                .map(|place| format!(" of {}", place.text()));
            let (run, place) = (&event.run, place.unwrap_or_default());
            let heading = format!("run {run}{place}, {}", when::moment(event.step.time));
            writeln!(out, "{}", style.paint(Role::Subject, &heading))?;
            last = (event.step.time, &event.run);
        }
        writeln!(out, "{}", line(event, last.0, style))?;
    }
    let rest = events.len() - kept.len();
    if rest > 0 {
        let is_possible = |event: &&&Event| event.weight == Weight::Possible;
        let doubts = events.iter().filter(|event| is_possible(&event)).count();
        let doubts = doubts - kept.iter().filter(is_possible).count();
        let possible = match doubts {
            0 => String::new(),
            _ => format!(" ({doubts} only possible)"),
        };
        let others = counted(rest, "other event", "other events");
        let line = format!("{others}{possible} left out: --all");
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
    let is_start = step.operation == "start";
    let command = match is_start {
        true => one_line(&shell::line(&step.program.argv)),
        false => program_line(&step.program.argv, COLUMNS),
    };
    let by = match is_start {
        true => command,
        false => style.paint(Role::Dim, &format!("  {command}")),
    };
    format!("{seconds:>9.3} s  {:<8} {what}{by}", step.operation)
}

/// An event as JSON.
pub fn object(event: &Event) -> Value {
    let step = &event.step;
    let words = step.program.argv.iter().map(|word| &**word);
    let mut object = vec![
        ("time", Value::Time(step.time)),
        ("run", (&event.run).into()),
    ];
    if let Some(place) = &event.place {
        object.push(("host", (&place.host).into()));
        object.push(("machine", (&place.machine).into()));
    }
    object.extend([
        ("operation", step.operation.into()),
        ("target", Value::from(step.target.as_deref())),
        ("source", Value::from(step.source.as_deref())),
        ("certainty", certainty(step).into()),
        ("pid", step.program.pid.into()),
        ("argv", Value::array(words)),
    ]);
    Value::Object(object)
}

fn certainty(step: &FoundStep) -> &'static str {
    if step.is_possible { "possible" } else { "seen" }
}

/// The events as comma-separated values.
pub fn rows(events: &[Event], out: &mut impl Write) -> io::Result<()> {
    let mut names = vec![
        "time",
        "run",
        "operation",
        "target",
        "source",
        "certainty",
        "pid",
        "command",
    ];
    if events.iter().any(|event| event.place.is_some()) {
        names.extend(["host", "machine"]);
    }
    csv::row(names, out)?;
    for event in events {
        let step = &event.step;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let target = step.target.as_deref().unwrap_or_default().to_vec();
        let source = step.source.as_deref().unwrap_or_default().to_vec();
        let mut cells = vec![
            bytes(&when::exact_moment(step.time)),
            bytes(&event.run),
            bytes(step.operation),
            target,
            source,
            bytes(certainty(step)),
            bytes(&step.program.pid.to_string()),
            bytes(&shell::line(&step.program.argv)),
        ];
        if let Some(place) = &event.place {
            cells.extend([bytes(&place.host), bytes(&place.machine)]);
        }
        csv::row(cells, out)?;
    }
    Ok(())
}
