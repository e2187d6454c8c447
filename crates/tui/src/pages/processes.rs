//! The processes of a run as a tree.

use std::collections::HashMap;

use backstory_query::JoinedLines;
use backstory_query::answer::ProcessLine;
use backstory_query::processes;
use backstory_store::Store;
use backstory_vocabulary::Tone;
use backstory_workflow::shell::line;
use backstory_workflow::shell::quote;

use super::run::title_and_facts;
use crate::Result;
use crate::moments::duration;
use crate::page::{Cell, Page, Row};

pub fn page(store: &dyn Store, run: &str) -> Result<Page> {
    let (_, title, facts) = title_and_facts(store, run)?;
    let all = JoinedLines::of(processes(store, run)?);
    Ok(Page {
        title,
        facts,
        columns: vec!["pid", "ended", "duration", "command"],
        rows: tree(&all)
            .map(|(process, depth)| row(process, depth))
            .collect(),
    })
}

/// Each process after its parent, with its depth.
fn tree(all: &JoinedLines) -> impl Iterator<Item = (&ProcessLine, usize)> {
    let mut children: HashMap<Option<u64>, Vec<&ProcessLine>> = HashMap::new();
    for process in &all.lines {
        let parent = process.parent_id.filter(|id| all.places.contains_key(id));
        children.entry(parent).or_default().push(process);
    }
    let first = children.remove(&None).unwrap_or_default();
    let mut open: Vec<(&ProcessLine, usize)> =
        first.into_iter().rev().map(|one| (one, 0)).collect();
    std::iter::from_fn(move || {
        let (process, depth) = open.pop()?;
        let below = children.remove(&Some(process.id)).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
        Some((process, depth))
    })
}

fn row(process: &ProcessLine, depth: usize) -> Row {
    let activity = &process.activity;
    let end = match (activity.exit, activity.signal) {
        (Some(0), _) => Cell::new(Tone::Good, "ok"),
        (Some(status), _) => Cell::new(Tone::Bad, format!("exit {status}")),
        (None, Some(signal)) => Cell::new(Tone::Bad, format!("signal {signal}")),
        (None, None) => Cell::new(Tone::Quiet, ""),
    };
    let command = match activity.argv.is_empty() {
        true => activity
            .exec_path
            .as_ref()
            .map_or_else(String::new, |path| quote(path)),
        false => line(&activity.argv),
    };
    Row {
        cells: vec![
            Cell::new(Tone::Quiet, activity.pid.to_string()),
            end,
            Cell::new(
                Tone::Quiet,
                duration(activity.interval.end - activity.interval.start),
            ),
            Cell::new(Tone::Step, format!("{}{command}", "  ".repeat(depth))),
        ],
        opens: None,
    }
}
