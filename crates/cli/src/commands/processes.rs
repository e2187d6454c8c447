//! `processes`: prints the programs that a run executed, as a tree.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use backstory_query as query;
use backstory_query::answer::ProcessLine;

use super::files::via;
use super::{Outcome, answer, here};
use crate::args::runs::RunArgs;
use crate::current_store::CurrentStore;
use crate::json::{self, Value};
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints the processes of a run.
pub fn run(args: RunArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.as_deref())?;
    let processes = query::processes(&current.store, &run)?;
    answer(|out| match args.json {
        true => json::lines(out, processes.iter().map(json)),
        false => tree(&processes, &here(), Style::of_stdout(), out),
    })
}

fn json(line: &ProcessLine) -> Value {
    let activity = &line.activity;
    Value::Object(vec![
        ("id", line.id.into()),
        ("parent_id", line.parent_id.into()),
        ("pid", activity.pid.into()),
        ("epoch", activity.epoch.into()),
        ("parent", line.parent_pid.into()),
        ("exec_path", activity.exec_path.as_ref().into()),
        ("argv", Value::array(&activity.argv)),
        ("cwd", (&activity.cwd).into()),
        ("env_set", Value::array(&activity.env_set)),
        ("env_unset", Value::array(&activity.env_unset)),
        ("exit", activity.exit.into()),
        ("signal", activity.signal.into()),
        ("execed", activity.execed.into()),
        ("start", Value::Time(activity.interval.start)),
        ("end", Value::Time(activity.interval.end)),
        ("via", via(activity.via).into()),
        ("lookups_known", activity.lookups_known.into()),
    ])
}

/// Draws children below the exec epoch that started them, in order of their start.
fn tree(lines: &[ProcessLine], here: &[u8], style: Style, out: &mut impl Write) -> io::Result<()> {
    let index: HashMap<u64, usize> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (line.id, at))
        .collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    let mut roots = Vec::new();
    for at in 0..lines.len() {
        match parent_of(lines, &index, at) {
            _ if is_part(&lines[at]) => {}
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let start = |at: &usize| lines[*at].activity.interval.start;
    roots.sort_by_key(start);
    children
        .iter_mut()
        .for_each(|group| group.sort_by_key(start));
    let mut stack: Vec<(usize, usize)> = roots.into_iter().rev().map(|at| (at, 0)).collect();
    while let Some((at, depth)) = stack.pop() {
        let line = &lines[at];
        let from = parent_of(lines, &index, at).map_or(here, |parent| &lines[parent].activity.cwd);
        let lead = "  ".repeat(depth.min(40));
        writeln!(
            out,
            "{lead}{}{}",
            style.paint(Role::Command, &command(line, from)),
            outcome(line, style)
        )?;
        stack.extend(children[at].iter().rev().map(|&child| (child, depth + 1)));
    }
    Ok(())
}

/// True for an epoch between fork and exec, which belongs to the command that the shell starts.
fn is_part(line: &ProcessLine) -> bool {
    line.activity.epoch == 0 && line.activity.execed
}

/// The nearest ancestor that has a line of its own. The search is bounded, because damaged data may
/// have a cycle.
fn parent_of(lines: &[ProcessLine], index: &HashMap<u64, usize>, of: usize) -> Option<usize> {
    let mut at = of;
    for _ in 0..lines.len() {
        at = *index.get(&lines[at].parent_id?)?;
        if at != of && !is_part(&lines[at]) {
            return Some(at);
        }
    }
    None
}

fn command(line: &ProcessLine, from: &[u8]) -> String {
    let activity = &line.activity;
    let call = Call {
        exec_path: activity.exec_path.as_deref(),
        argv: &activity.argv,
        cwd: &activity.cwd,
        env_set: &activity.env_set,
        env_unset: &activity.env_unset,
    };
    let (line, left_out) = call.line(from, SHORT);
    match (activity.epoch, left_out) {
        (0, _) => format!("{line}  (forked, no exec)"),
        (_, 0) => line,
        (_, count) => format!("{line}  ({count} variables differ: see --json)"),
    }
}

/// How long the epoch took, and how it ended unless it succeeded.
fn outcome(line: &ProcessLine, style: Style) -> String {
    let activity = &line.activity;
    let took = when::duration(activity.interval.end - activity.interval.start);
    let ended = match (activity.exit, activity.signal, activity.execed) {
        (Some(0), ..) => String::new(),
        (Some(code), ..) => format!(", {}", style.paint(Role::Bad, &format!("exit {code}"))),
        (None, Some(signal), _) => {
            format!(", {}", style.paint(Role::Bad, &format!("signal {signal}")))
        }
        (None, None, true) => ", then exec".to_owned(),
        (None, None, false) => ", end not observed".to_owned(),
    };
    format!("  [pid {}, {took}{ended}]", activity.pid)
}
