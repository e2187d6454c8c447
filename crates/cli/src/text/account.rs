//! The steps behind a file, or those that used it, on one screen.
//!
//! In: an [`Account`]. Out: a heading, the steps from the file outward, the packages that they
//! used, and a line about what is uncertain. Equal siblings are one step. If the steps do not fit,
//! those that weigh least are counted.
//!
//! [`tail`] has the lines below the steps. [`lists`] has the other forms of the answer: sources,
//! packages, a script, a way.

mod lists;
mod step;
mod tail;

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use backstory_account::{Account, Direction, Siblings, siblings, weights};
use backstory_eventlog::event::Bytes;
use backstory_packages::PackageTally;
use backstory_query::Checkout;
use backstory_workflow::paths::base_name;

pub use lists::{inputs, package_list, script, way};
use step::StepWriter;
pub use step::name;
use tail::remote_start;

use super::style::{Role, Style};
use super::words::counted;
use super::{line, shell, when};

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    /// The current directory: the user's own files are named from here.
    pub here: &'a [u8],
    /// Colours.
    pub style: Style,
    /// The characters of a line.
    pub width: usize,
    /// The lines of a screen.
    pub height: usize,
    /// The number of runs that touched the subject, if the account has only the newest of them.
    pub all_runs: Option<usize>,
}

/// The columns and rows of the terminal, or of a page if stdout is not a terminal.
pub fn screen() -> (usize, usize) {
    let Some(columns) = line::columns() else {
        return (100, 50);
    };
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let rows = size.map_or(0, |size| usize::from(size.ws_row));
    (columns, if rows == 0 { 24 } else { rows })
}

/// The least rows that steps get, however much stands around them.
const LEAST: usize = 8;

/// If so many steps do the work, those that only help are counted.
const WORK: usize = 3;

/// The number of programs that a note names.
const NAMES: usize = 6;

/// The lines around the steps, beside packages and doubts.
#[derive(Debug)]
pub struct AccountTail<'a> {
    /// The change of the file since. It stands above the heading.
    pub changed: Option<String>,
    /// The change inside of the subject.
    pub change: Option<String>,
    /// The inputs whose bytes came into the subject.
    pub bytes: Option<String>,
    /// The files that decided on the subject, or on which the subject decided.
    pub deciding: Vec<String>,
    /// The git work trees.
    pub git: &'a [Checkout],
    /// The runs that ssh started.
    pub starts: &'a [RemoteStart],
}

/// Writes the account.
pub fn write(
    account: &Account,
    packages: &PackageTally,
    below: AccountTail<'_>,
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = Screen { account, sheet };
    let heading = screen.heading();
    let change = below.change.iter().chain(&below.bytes);
    let change = change.map(|change| line::excerpt(change, sheet.width));
    let mut tail: Vec<String> = change.chain(screen.starters()).collect();
    let deciding = below.deciding.iter();
    tail.extend(deciding.map(|line| line::excerpt(line, 2 * sheet.width)));
    tail.extend(
        below
            .starts
            .iter()
            .map(|start| line::excerpt(&remote_start(start), sheet.width)),
    );
    tail.extend(screen.packages(packages));
    tail.extend(screen.devices());
    tail.extend(screen.git(below.git));
    tail.extend(screen.doubts());
    let (own, others): (Vec<usize>, Vec<usize>) =
        account.chain.iter().partition(|&&at| account.concerns(at));
    let steps = siblings(account, &own);
    // Two notes and the shell's next prompt.
    let head: Vec<String> = below.changed.into_iter().chain([heading]).collect();
    let around = screen.rows(&head) + screen.rows(&tail) + 3;
    let (shown, hidden) = screen.fitting(&steps, sheet.height.saturating_sub(around).max(LEAST));
    for line in &head {
        writeln!(out, "{line}")?;
    }
    let mut writer = StepWriter::new(account, sheet);
    for step in shown {
        for line in writer.step(step) {
            writeln!(out, "{line}")?;
        }
    }
    for line in screen.folded(&hidden, &others).into_iter().chain(tail) {
        writeln!(out, "{}", screen.dim(&line))?;
    }
    Ok(())
}

/// The line about what is uncertain, or missing because a run is not complete.
pub fn doubts(account: &Account, sheet: Sheet<'_>) -> Option<String> {
    Screen { account, sheet }.doubts()
}

/// A run of another machine that ssh started.
#[derive(Debug)]
pub struct RemoteStart {
    /// Its id.
    pub run: String,
    /// The machine, as the user named it.
    pub machine: String,
    /// The run that started it, and its command. `None` if the store does not have it.
    pub starter: Option<(String, Vec<Bytes>)>,
}

/// The most frequent of these names.
fn names(all: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in all {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_small_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len() > NAMES;
    let mut text: Vec<String> = counts
        .into_iter()
        .take(NAMES)
        .map(|(name, _)| name)
        .collect();
    if more {
        text.push("…".to_owned());
    }
    text.join(", ")
}

/// The programs of steps.
fn programs<'s>(steps: impl Iterator<Item = &'s Siblings>) -> String {
    let program = |text: &str| String::from_utf8_lossy(base_name(text.as_bytes())).into_owned();
    let first = steps.filter_map(|step| step.words.first());
    names(first.map(|word| program(word.text.split(' ').next().unwrap_or_default())))
}

/// The steps that fit a screen, and the rest.
type Fitting<'s> = (Vec<&'s Siblings>, Vec<&'s Siblings>);

struct Screen<'a> {
    account: &'a Account,
    sheet: Sheet<'a>,
}

impl Screen<'_> {
    fn dim(&self, text: &str) -> String {
        self.sheet.style.paint(Role::Dim, text)
    }

    /// The rows that lines take on the screen.
    fn rows(&self, lines: &[String]) -> usize {
        let rows = lines
            .iter()
            .map(|text| line::width(text).div_ceil(self.sheet.width.max(1)));
        rows.map(|rows| rows.max(1)).sum()
    }

    fn heading(&self) -> String {
        let (account, style) = (self.account, self.sheet.style);
        let Some(&root) = account.roots.first() else {
            return String::new();
        };
        let name = style.paint(Role::Subject, &name(&account.files[root].path, self.sheet));
        if account.direction == Direction::Forth {
            let runs: BTreeSet<usize> = account
                .chain
                .iter()
                .map(|&at| account.commands[at].run)
                .into_tree();
            return match runs.len() {
                0 if self.sheet.all_runs.is_some() => {
                    format!("{name}: no step of the newest runs used it (--level step shows all)")
                }
                0 => format!("{name}: no recorded command used it"),
                many => {
                    let used = counted(many, "run", "runs");
                    let newest = self.sheet.all_runs.map_or(String::new(), |all| {
                        format!(", the newest of {all} that touched it (--level step shows all)")
                    });
                    format!("{name}: used in {used}{newest}")
                }
            };
        }
        let Some(made) = account.heading() else {
            return format!("{name}: {}", unmade(account.uncounted));
        };
        let run = &account.runs[made.run].details.summary;
        let command = shell::command_of(run);
        let complete = match run.complete {
            true => "complete",
            false => "incomplete",
        };
        format!(
            "{name}: made {} by run {} ({}), {complete}",
            when::moment(made.time),
            run.id,
            style.paint(
                Role::Command,
                &line::excerpt(&command, self.sheet.width / 2)
            ),
        )
    }

    /// The steps that fit the screen, and the rest.
    fn fitting<'s>(&self, steps: &'s [Siblings], room: usize) -> Fitting<'s> {
        let weights = weights(self.account, steps);
        let mut order: Vec<usize> = (0..steps.len()).collect();
        let rank = |at: usize| weights[at].rank();
        order.sort_small_by(|&a, &b| rank(b).total_cmp(&rank(a)).then(a.cmp(&b)));
        // Steps that only help are counted as soon as others do the work.
        let work = weights.iter().filter(|weight| !weight.helps).count();
        if work >= WORK {
            order.retain(|&at| weights[at].subject || !weights[at].helps);
        }
        // The steps, and how many lines each takes.
        let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
        for at in order {
            let mut writer = StepWriter::new(self.account, self.sheet);
            kept.insert(at, writer.height(&steps[at]));
            let lines = kept.iter();
            let lines = lines.map(|(&at, height)| height + usize::from(writer.enters(&steps[at])));
            if lines.sum::<usize>() > room && kept.len() > 1 {
                kept.remove(&at);
                break;
            }
        }
        let (mut shown, mut hidden) = (Vec::new(), Vec::new());
        for (at, step) in steps.iter().enumerate() {
            if kept.contains_key(&at) {
                &mut shown
            } else {
                &mut hidden
            }
            .push(step);
        }
        (shown, hidden)
    }

    /// Counts the steps that the screen does not show.
    fn folded(&self, hidden: &[&Siblings], others: &[usize]) -> Vec<String> {
        let mut notes = Vec::new();
        if !hidden.is_empty() {
            notes.push(format!(
                "… and {} between them (--commands shows all): {}",
                counted(hidden.len(), "step", "steps"),
                programs(hidden.iter().copied()),
            ));
        }
        if !others.is_empty() {
            notes.push(format!(
                "… and {} that used none of your own files: {}",
                counted(others.len(), "command", "commands"),
                programs(siblings(self.account, others).iter()),
            ));
        }
        let notes = notes
            .iter()
            .map(|note| line::excerpt(note, self.sheet.width));
        notes.collect()
    }
}

/// The heading of a file without a known maker. `possible`: the number of links that are only
/// possible.
fn unmade(possible: usize) -> &'static str {
    match possible {
        0 => "no recorded command made it",
        _ => "no recorded command is known for certain to have made it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_command_possibly_made_is_not_said_to_be_made_by_none() {
        assert_eq!(unmade(0), "no recorded command made it");
        assert!(unmade(1).contains("for certain"));
    }
}
