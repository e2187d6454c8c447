//! The steps behind a file, or those that used it, with the user's own files between them.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_account::{Account, PackageTally, Siblings, packages, siblings};
use backstory_graph::model::EntityKind;
use backstory_query::answer::Scope;
use backstory_query::{Direction, ancestry_of, influence_of, keep_copies_apart, projects, subject};
use backstory_vocabulary::Tone;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::shell::quote;

use super::byte_marks::without_bytes;
use crate::Result;
use crate::destination::Destination;
use crate::moments::moment;
use crate::page::{Cell, Page, Row};
use crate::viewed_store::ViewedStore;

pub fn page(viewed: &ViewedStore<'_>, path: &Path, direction: Direction) -> Result<Page> {
    let store = viewed.store;
    let scope = Scope {
        possible: true,
        ..Scope::default()
    };
    let lineage = match direction {
        Direction::Back => {
            let newest = subject::newest_everywhere(store, path, None)?;
            ancestry_of(store, &newest[..newest.len().min(1)], &scope)?
        }
        Direction::Forth => influence_of(store, &subject::all(store, path, None)?, &scope)?,
    };
    let lineage = keep_copies_apart(store, lineage, direction)?;
    let directories = projects(store, &lineage)?;
    let projects = directories.iter().map(|directory| &**directory);
    let mut ownership = Ownership::new(Path::new("/"), projects);
    let account = Account::new(store, &lineage, direction, false, &mut ownership)?;
    let (own, others): (Vec<usize>, Vec<usize>) =
        account.chain.iter().partition(|&&at| account.concerns(at));
    let without = without_bytes(&mut viewed.refined_runs(), &account);
    let mut rows = Vec::new();
    for step in siblings(&account, &own) {
        rows.extend(step_rows(&account, &step, &without));
    }
    let tally = packages(store, &account, &mut ownership)?;
    Ok(Page {
        title: quote(path.as_os_str().as_bytes()),
        facts: facts(&account, &tally, others.len()),
        columns: vec!["run", "", "steps and files"],
        rows,
    })
}

fn facts(account: &Account, tally: &PackageTally, others: usize) -> Vec<Cell> {
    let mut facts = Vec::new();
    match (account.direction, account.heading()) {
        (Direction::Back, Some(heading)) => {
            let run = &account.runs[heading.run].details.summary;
            facts.push(Cell::new(
                Tone::Ink,
                format!("made {} by run {}", moment(heading.time), run.id),
            ));
        }
        (Direction::Back, None) => {
            facts.push(Cell::new(Tone::Warn, "no recorded command made it"));
        }
        (Direction::Forth, _) => {
            let text = match account.runs.len() {
                _ if account.chain.is_empty() => {
                    "no recorded command made anything from it".to_owned()
                }
                1 => "used in 1 run".to_owned(),
                count => format!("used in {count} runs"),
            };
            facts.push(Cell::new(Tone::Ink, text));
        }
    }
    if !tally.packages.is_empty() {
        let names: Vec<String> = tally
            .packages
            .iter()
            .take(5)
            .map(|count| quote(count.package.name.as_bytes()))
            .collect();
        let more = match tally.packages.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        facts.push(Cell::new(
            Tone::System,
            format!("packages: {}{more}", names.join(", ")),
        ));
    }
    if others > 0 {
        let text = format!("{others} more steps used files of tools and of the system only");
        facts.push(Cell::new(Tone::System, text));
    }
    facts
}

/// A step, then the user's own files that it used or made. `without`: those that gave the subject
/// no byte, or have none of it.
fn step_rows(account: &Account, step: &Siblings, without: &BTreeSet<usize>) -> Vec<Row> {
    let direction = account.direction;
    let words: Vec<&str> = step.words.iter().map(|word| word.text.as_str()).collect();
    let times = match step.commands.len() {
        1 => String::new(),
        many => format!("{many} × "),
    };
    let run = step.commands.first().map(|&at| {
        let run = account.commands[at].run;
        account.runs[run].details.summary.id.clone()
    });
    let run = run.unwrap_or_default();
    // A script of `sh -c` may have several lines.
    let command: String = words
        .join(" ")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut rows = vec![Row {
        cells: vec![
            Cell::new(Tone::Quiet, &run),
            Cell::new(Tone::Quiet, "step"),
            Cell::new(Tone::Step, format!("{times}{command}")),
        ],
        opens: Some(Destination::RunFiles(run)),
    }];
    let commands = || step.commands.iter().map(|&at| &account.commands[at]);
    let reads: BTreeSet<usize> = commands()
        .flat_map(|command| &command.reads)
        .copied()
        .into_tree();
    let writes: BTreeSet<usize> = commands()
        .flat_map(|command| &command.writes)
        .copied()
        .into_tree();
    let made = writes.iter().map(|&file| (file, "made"));
    let used = reads.iter().map(|&file| (file, "used"));
    for (file, how) in made.chain(used) {
        let node = &account.files[file];
        if !node.own || !matches!(node.kind, EntityKind::File | EntityKind::Symlink) {
            continue;
        }
        let bytes = if without.contains(&file) {
            ", no byte"
        } else {
            ""
        };
        let path = Path::new(OsStr::from_bytes(&node.path)).to_owned();
        rows.push(Row {
            cells: vec![
                Cell::new(Tone::Quiet, ""),
                Cell::new(Tone::Quiet, format!("{how}{bytes}")),
                Cell::new(Tone::File, format!("  {}", quote(&node.path))),
            ],
            opens: Some(Destination::Lineage(path, direction)),
        });
    }
    rows
}
