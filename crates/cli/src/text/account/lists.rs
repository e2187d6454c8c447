//! The other forms of an account: its sources, its packages, all commands, the way to one file.

use std::io::{self, Write};

use backstory_account::{Account, Direction, WayStep};
use backstory_packages::PackageTally;
use backstory_workflow::steps::Line;

use super::step::name;
use super::{Sheet, counted};
use crate::text::command::{cut, printable};
use crate::text::shell::quote;
use crate::text::style::Role;
use crate::text::when;

/// Writes the files that no recorded step made: the user's own, then those of packages.
pub fn inputs(
    account: &Account,
    packages: &PackageTally,
    files: bool,
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let commands = account.chain.iter().chain(&account.drivers);
    let mut own: Vec<usize> = commands.flat_map(|&at| account.sources(at)).collect();
    own.sort_by(|&a, &b| account.files[a].path.cmp(&account.files[b].path));
    own.dedup();
    for file in own {
        writeln!(out, "{}", name(&account.files[file].path, sheet))?;
    }
    if files {
        for file in account.packaged() {
            let text = name(&account.files[file].path, sheet);
            writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
        }
        return Ok(());
    }
    for line in packages.lines(usize::MAX) {
        let text = cut(&format!("(packages) {line}"), 2 * sheet.width);
        writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
    }
    Ok(())
}

/// Writes one line for each package.
pub fn package_list(packages: &PackageTally, out: &mut impl Write) -> io::Result<()> {
    for count in &packages.packages {
        writeln!(out, "{}: {}", count.package, counted(count.files, "file"))?;
    }
    match packages.others.len() {
        0 => Ok(()),
        many => writeln!(out, "no package: {}", counted(many, "file")),
    }
}

/// Writes all commands in the order in which they began.
pub fn script(account: &Account, sheet: Sheet<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut order = account.chain.clone();
    order.sort_by_key(|&at| (account.commands[at].start, at));
    let (mut run, mut directory) = (usize::MAX, sheet.here.to_vec());
    for at in order {
        let command = &account.commands[at];
        if command.run != run {
            run = command.run;
            let summary = &account.runs[run].details.summary;
            let text = format!("# run {}, {}", summary.id, when::moment(summary.started));
            writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
        }
        if *command.line.cwd != *directory {
            directory = command.line.cwd.to_vec();
            writeln!(out, "cd {}", quote(&directory))?;
        }
        writeln!(out, "{}", printable_lines(&command.line))?;
    }
    Ok(())
}

/// A command in full. Its text may have several lines.
fn printable_lines(line: &Line) -> String {
    let text = line.command();
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Writes the way from the subject to another file.
pub fn way(
    account: &Account,
    way: &[WayStep],
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let named = |file: usize| {
        sheet
            .style
            .paint(Role::Subject, &name(&account.files[file].path, sheet))
    };
    let back = account.direction == Direction::Back;
    if let Some(first) = way.first() {
        writeln!(out, "{}", named(first.near))?;
    }
    for step in way {
        let command = &account.commands[step.command];
        let room = sheet.width.saturating_sub(12);
        let text = cut(&command.line.command(), room);
        let text = sheet.style.paint(Role::Command, &text);
        let word = if back { "made by" } else { "used by" };
        writeln!(out, "  {word} {text}")?;
        if let Some(starter) = step.starter {
            let line = &account.commands[starter].line;
            let starter = sheet
                .style
                .paint(Role::Command, &cut(&line.command(), room));
            writeln!(out, "  started by {starter}")?;
        }
        let word = if back { "from" } else { "which made" };
        writeln!(out, "  {word} {}", named(step.far))?;
    }
    Ok(())
}
