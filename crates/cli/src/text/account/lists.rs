//! The other forms of an account: its sources, its packages, all commands, the way to one file.

use backstory_ordering::SmallSort;
use std::io::{self, Write};

use backstory_account::{Account, Direction, WayStep};
use backstory_packages::PackageTally;
use backstory_workflow::steps::Line;

use super::Sheet;
use super::step::{StepWriter, name};
use super::tail::wrapped;
use crate::text::line::{excerpt, printable};
use crate::text::shell::quote;
use crate::text::style::Role;
use crate::text::when;
use crate::text::words::counted;

/// Writes the files that no recorded step made: the user's own, then those of packages. If the
/// user's own do not fit a screen, those of one directory and ending are one line. `files` lists
/// all. `deciding`: the lines of files that decided on the subject.
pub fn inputs(
    account: &Account,
    (packages, deciding): (&PackageTally, &[String]),
    files: bool,
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let commands = account.chain.iter().chain(&account.drivers);
    let mut own: Vec<usize> = commands.flat_map(|&at| account.sources(at)).collect();
    own.sort_small_by(|&a, &b| account.files[a].path.cmp(&account.files[b].path));
    // Several runs know a file that none of them made.
    own.dedup_by(|a, b| account.files[*a].path == account.files[*b].path);
    let tail: Vec<String> = packages
        .lines(NAMED)
        .iter()
        .flat_map(|line| wrapped("(packages) ", line, sheet.width))
        .collect();
    let beside = deciding.len().min(sheet.height / 4) + tail.len();
    if !files && own.len() + beside > sheet.height {
        let paths: Vec<&[u8]> = own.iter().map(|&at| &*account.files[at].path).collect();
        for group in StepWriter::new(account, sheet).groups(&paths, sheet.here, usize::MAX) {
            writeln!(out, "{group}")?;
        }
        let text = format!(
            "({} in all; --files lists them)",
            counted(own.len(), "file", "files")
        );
        writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
    } else {
        for file in own {
            writeln!(out, "{}", name(&account.files[file].path, sheet))?;
        }
    }
    match files || deciding.len() <= sheet.height / 4 {
        true => deciding
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))?,
        false => {
            let count = counted(deciding.len(), "more file", "more files");
            let text = format!("({count} decided or came through commands; --files lists them)");
            writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
        }
    }
    if files {
        let packaged = account.packaged().into_iter();
        // A compiled module stands for its package, and may be of the user's own.
        for file in packaged.filter(|&file| !account.files[file].cache) {
            let text = name(&account.files[file].path, sheet);
            writeln!(out, "{}", sheet.style.paint(Role::Dim, &text))?;
        }
        return Ok(());
    }
    for line in tail {
        writeln!(out, "{}", sheet.style.paint(Role::Dim, &line))?;
    }
    Ok(())
}

/// The packages that the list of sources names.
const NAMED: usize = 20;

/// Writes one line for each package. Those with the fewest files stand together if there are more
/// packages than a screen has lines.
pub fn package_list(
    packages: &PackageTally,
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = &packages.packages;
    let alone = match all.len() < sheet.height {
        true => all.len(),
        false => sheet.height / 2,
    };
    for count in &all[..alone] {
        writeln!(
            out,
            "{}: {}",
            count.package,
            counted(count.files, "file", "files")
        )?;
    }
    if alone < all.len() {
        let rest: Vec<String> = all[alone..]
            .iter()
            .map(|one| one.package.to_string())
            .collect();
        let lead = format!("and {} more: ", all.len() - alone);
        for line in wrapped(&lead, &rest.join(", "), sheet.width) {
            writeln!(out, "{line}")?;
        }
    }
    match packages.others.len() {
        0 => Ok(()),
        many => writeln!(out, "no package: {}", counted(many, "file", "files")),
    }
}

/// Writes all commands in the order in which they began.
pub fn script(account: &Account, sheet: Sheet<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut order = account.chain.clone();
    order.sort_small_by_key(|&at| (account.commands[at].start, at));
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
        let text = printable_lines(&command.line);
        match command.is_part {
            // It ran inside of a program: a shell cannot run it.
            true => text
                .lines()
                .try_for_each(|line| writeln!(out, "# {line}"))?,
            false => writeln!(out, "{text}")?,
        }
    }
    Ok(())
}

/// A command in full. Its text may have several lines.
fn printable_lines(line: &Line) -> String {
    let text = line.command();
    let lines: Vec<String> = text
        .split('\n')
        .map(|text| printable(text.as_bytes()))
        .collect();
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
        let text = excerpt(&command.line.command(), room);
        let text = sheet.style.paint(Role::Command, &text);
        let word = if back { "made by" } else { "used by" };
        writeln!(out, "  {word} {text}")?;
        if let Some(starter) = step.starter {
            let line = &account.commands[starter].line;
            let starter = sheet
                .style
                .paint(Role::Command, &excerpt(&line.command(), room));
            writeln!(out, "  started by {starter}")?;
        }
        let word = match (back, account.files[step.far].is_peer()) {
            (true, _) => "from",
            (false, true) => "which sent to",
            (false, false) => "which made",
        };
        writeln!(out, "  {word} {}", named(step.far))?;
    }
    Ok(())
}
