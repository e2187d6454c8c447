//! The plan as text: file, step and reason, one line for each step.

use std::io::{self, Write};

use backstory_eventlog::event::Bytes;
use backstory_replay::rerun::hazards::Hazard;
use backstory_replay::rerun::work_list::Standing;
use backstory_replay::rerun::{PlannedStep, Reason};

use super::refusal_text::command;
use super::{Plan, refusal_text};
use crate::commands;
use crate::error::one_line;
use crate::text::line::{columns, cut, cut_before_name, width};
use crate::text::paths::shown;
use crate::text::style::{Role, Style};
use crate::text::words::counted;

/// The most columns of a file's name, of a step's command, and of a path in a reason.
const FILE: usize = 32;
const STEP: usize = 48;
const PATH: usize = 40;

/// The least columns of a step's command and of a reason on a narrow terminal.
const LEAST: usize = 16;
const LEAST_REASON: usize = 28;

/// How many subjects of a kind of hazard are named.
const NAMED: usize = 3;

/// Prints the plan.
pub fn print(plan: &Plan<'_>, style: Style, out: &mut impl Write) -> io::Result<()> {
    let runs = plan.work.with(&[Standing::Stale, Standing::Waits]);
    let outside = plan.work.with(&[Standing::Outside]);
    let (files, are) = subject(plan);
    for file in plan.kept {
        writeln!(out, "note: {}", refusal_text::kept(file))?;
    }
    if runs.is_empty() && outside.is_empty() && !plan.has_stale_edit() {
        let count = plan.work.steps.len();
        return writeln!(
            out,
            "{files} {are} up to date: {}",
            counted(count, "step", "steps")
        );
    }
    table(plan, &runs, style, out)?;
    if !outside.is_empty() {
        let directory = plan.scope.directory().unwrap_or_else(|| "/".as_ref());
        let directory = shown(directory.as_os_str().as_encoded_bytes());
        let before = if runs.is_empty() { "" } else { "\n" };
        writeln!(
            out,
            "{before}Not run, because the files are outside {directory} (--outside runs them):"
        )?;
        table(plan, &outside, style, out)?;
    }
    if !plan.refusals.is_empty() {
        writeln!(out, "\nrerun refuses to run them:")?;
        for (at, refusal) in &plan.refusals {
            let line = refusal_text::sentence(&plan.work.steps[*at], refusal);
            writeln!(out, "  {}", style.paint(Role::Bad, &line))?;
        }
    }
    let asked: Vec<String> = kinds(plan);
    if !asked.is_empty() {
        writeln!(out, "\nrerun asks before it runs them:")?;
        for line in asked {
            writeln!(out, "  {}", style.paint(Role::Bad, &line))?;
        }
    }
    let stale = plan.work.with(&[Standing::Stale]).len();
    let waits = plan.work.with(&[Standing::Waits]).len();
    let current = plan.work.with(&[Standing::Current]).len();
    let may = match waits {
        0 => String::new(),
        1 => ", 1 more only if its input changes".to_owned(),
        several => format!(", {several} more only if their inputs change"),
    };
    writeln!(
        out,
        "\n{files}: {} to run{may}; {current} current",
        counted(stale, "step", "steps")
    )
}

/// The files that the plan is for, and their verb.
pub fn subject(plan: &Plan<'_>) -> (String, &'static str) {
    let names = plan.paths.iter();
    let names = names.map(|path| shown(path.as_os_str().as_encoded_bytes()));
    match &names.collect::<Vec<_>>()[..] {
        [one] => (one.clone(), "is"),
        [one, two] => (format!("{one} and {two}"), "are"),
        all => (counted(all.len(), "file", "files"), "are"),
    }
}

fn table(plan: &Plan<'_>, which: &[usize], style: Style, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<[String; 3]> = which
        .iter()
        .map(|&at| {
            [
                file(&plan.work.steps[at]),
                command(&plan.work.steps[at]),
                reason(plan, at),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let widest = |column: usize, most: usize| {
        let widths = rows.iter().map(|row| width(&row[column]));
        widths.max().unwrap_or(0).clamp(4, most)
    };
    let first = widest(0, FILE);
    let mut second = widest(1, STEP);
    if let Some(all) = columns() {
        // The reason matters more than the end of a long command.
        let reasons = widest(2, usize::MAX).min(LEAST_REASON);
        second = second.min(all.saturating_sub(first + reasons + 4).max(LEAST));
    }
    let mut line = |row: [&str; 3], roles: [Role; 3]| {
        let [file, step, reason] = row;
        let third = columns().map_or(usize::MAX, |all| {
            all.saturating_sub(first + second + 4).max(LEAST)
        });
        writeln!(
            out,
            "{}  {}  {}",
            style.paint(roles[0], &padded(cut_before_name(file, first), first)),
            style.paint(roles[1], &padded(cut(step, second), second)),
            style.paint(roles[2], &cut(reason, third)),
        )
    };
    line(["FILE", "STEP", "REASON"], [Role::Dim; 3])?;
    for [file, step, reason] in &rows {
        let roles = [Role::Subject, Role::Command, Role::Dim];
        line([file, step, reason], roles)?;
    }
    Ok(())
}

fn padded(text: String, columns: usize) -> String {
    let missing = columns.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(missing))
}

/// The first output of a step, and the number of others.
pub fn file(step: &PlannedStep) -> String {
    match step.outputs.split_first() {
        None => step.name.clone(),
        Some(((path, _), [])) => commands::near(path),
        Some(((path, _), more)) => format!("{} (+{})", commands::near(path), more.len()),
    }
}

/// The reason why a step runs.
fn reason(plan: &Plan<'_>, at: usize) -> String {
    let step = &plan.work.steps[at];
    let most = columns().map_or(usize::MAX, |_| PATH);
    let near = |path: &[u8]| cut_before_name(&commands::near(path), most);
    let mut reasons = step.reasons.iter();
    if let Some(first) = reasons.next() {
        let more = match reasons.len() {
            0 => String::new(),
            more => format!(" (and {})", counted(more, "more reason", "more reasons")),
        };
        return format!("{}{more}", words(first, step, most));
    }
    if let Some(path) = plan.work.differing(at) {
        return format!("{} has changed", near(path));
    }
    if plan.work.is_forced(at) {
        return "forced".to_owned();
    }
    let open = |&&(from, _): &&(usize, Bytes)| plan.work.standing(from) != Standing::Current;
    match step.fed_by.iter().find(open) {
        Some((_, path)) => format!("if {} becomes different", near(path)),
        None => String::new(),
    }
}

/// A reason in words. Paths of more than `most` columns are cut before their names.
pub fn words(reason: &Reason, step: &PlannedStep, most: usize) -> String {
    let near = |path: &[u8]| cut_before_name(&commands::near(path), most);
    let single = step.outputs.len() == 1;
    match reason {
        Reason::OutputGone(_) if single => "it is missing".to_owned(),
        Reason::OutputGone(path) => format!("{} is missing", near(path)),
        Reason::OutputChanged(_) if single => "it was changed since".to_owned(),
        Reason::OutputChanged(path) => format!("{} was changed since", near(path)),
        Reason::InputGone(path) => format!("{} does not exist any more", near(path)),
        Reason::InputChanged(path) => format!("{} has changed", near(path)),
        Reason::ToolChanged(path) => format!("the program or library {} has changed", near(path)),
        Reason::ScriptChanged(path) => {
            format!("the script {} changed since it was recorded", near(path))
        }
        Reason::Appeared(path) => format!("{} was not there and is now", near(path)),
        Reason::DirectoryChanged(path) => format!("names in {} have changed", near(path)),
        Reason::GuideChanged(path) => {
            format!("{} has changed, which decides on the commands", near(path))
        }
        other => format!("{}: {}", near(other.subject()), other.words()),
    }
}

/// The hazards of all steps that may run: a line for each step and kind.
pub fn kinds(plan: &Plan<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (step, hazards) in plan.work.steps.iter().zip(&plan.hazards) {
        let mut rest = &hazards[..];
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|other| other.word() == first.word());
            let (these, others) = rest.split_at(alike.count());
            lines.push(format!("{}: {}", file(step), sentence(plan, first, these)));
            rest = others;
        }
    }
    lines
}

fn sentence(plan: &Plan<'_>, kind: &Hazard, these: &[Hazard]) -> String {
    let subjects = these.iter().take(NAMED).map(|hazard| match hazard {
        Hazard::AsRoot(_) => one_line(&String::from_utf8_lossy(&hazard.subject())),
        _ => commands::near(&hazard.subject()),
    });
    let mut list = subjects.collect::<Vec<_>>().join(", ");
    if these.len() > NAMED {
        list = format!("{list} and {} more", these.len() - NAMED);
    }
    match kind {
        Hazard::WritesOutside(_) => {
            let directory = plan.scope.directory().unwrap_or_else(|| "/".as_ref());
            format!("writes outside {}: {list}", directory.display())
        }
        Hazard::Deletes(_) => format!("deletes {list}"),
        Hazard::Network(_) => format!("uses the network: {list}"),
        Hazard::Privilege(_) => format!("takes privilege: {list}"),
        Hazard::AsRoot(_) => format!("was run by {list}, and root would run it now"),
    }
}
