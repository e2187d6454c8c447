//! `diff --level process`: every difference between two sides, in order of time.

use std::io::{self, Write};

use backstory_replay::diff::{DiffVerdict, Difference, DifferenceKind};

use super::{Answered, not_compared};
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Prints all differences.
pub fn text(answered: &Answered, style: Style, out: &mut impl Write) -> io::Result<()> {
    let diff = &answered.diff;
    for (side, runs) in [("a", &diff.a), ("b", &diff.b)] {
        for run in runs {
            let run = &run.summary;
            let command: Vec<String> = run.command.iter().map(|arg| shell::quote(arg)).collect();
            let head = format!("{side}  run {}  {}", run.id, when::moment(run.started));
            writeln!(
                out,
                "{}  {}",
                style.paint(Role::Dim, &head),
                style.paint(Role::Command, &command.join(" "))
            )?;
        }
    }
    if let (Some(first), false) = (diff.unknown_causes.first(), diff.differences.is_empty()) {
        let more = match diff.unknown_causes.len() {
            1 => String::new(),
            many => format!(" and {}", counted(many - 1, "other file", "other files")),
        };
        let name = shell::quote(first);
        writeln!(
            out,
            "\n{name}{more} could not be compared, and may differ first"
        )?;
    }
    match diff.differences.split_first() {
        None if answered.verdict == DiffVerdict::Unknown => {
            let words = "it cannot be told whether these are the same";
            writeln!(out, "{words}")?;
        }
        None => writeln!(out, "{}", style.paint(Role::Good, "no difference"))?,
        Some((first, rest)) => {
            writeln!(out, "\n{}", style.paint(Role::Subject, "differs first in"))?;
            lines(answered, 0, first, style, out)?;
            if !rest.is_empty() {
                writeln!(out, "{}", style.paint(Role::Subject, "then in"))?;
            }
            for (at, difference) in (1..).zip(rest) {
                lines(answered, at, difference, style, out)?;
            }
        }
    }
    if !diff.same_outputs.is_empty() {
        match diff.same_outputs.len() {
            1 => writeln!(out, "1 output is the same")?,
            many => writeln!(out, "{many} outputs are the same")?,
        }
    }
    if let Some(first) = diff.unknown.first() {
        writeln!(out, "{}", not_compared(diff, &shell::quote(first)))?;
    }
    Ok(())
}

fn lines(
    answered: &Answered,
    at: usize,
    difference: &Difference,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let of = shell::quote(&difference.of);
    writeln!(
        out,
        "  {} {of}",
        style.paint(Role::Dim, &format!("{:<11}", difference.kind.word()))
    )?;
    for (side, role, value) in [
        ("a", Role::Bad, &difference.a),
        ("b", Role::Good, &difference.b),
    ] {
        let shown = value
            .as_ref()
            .map_or("–".to_owned(), |value| shell::quote(value));
        writeln!(
            out,
            "    {side} {}",
            style.paint(role, shown.trim_matches('\''))
        )?;
    }
    if difference.kind == DifferenceKind::Output {
        let all = &answered.diff.differences;
        let named = |&cause: &usize| {
            let from = &all[cause];
            let unused = match answered.unused.has(at, cause) {
                // A branch may have depended on it.
                true => " (no byte, apart from decisions)",
                false => "",
            };
            format!("{} {}{unused}", from.kind.word(), shell::quote(&from.of))
        };
        let mut fed: Vec<String> = difference.fed_by.iter().take(5).map(named).collect();
        match difference.fed_by.len() {
            0 if all.iter().any(Difference::is_general) => {
                fed.push(
                    "no recorded input: the environment, the machine, the time or random numbers"
                        .to_owned(),
                );
            }
            0 => fed
                .push("no recorded input: the time, random numbers or a process number".to_owned()),
            more if more > 5 => fed.push(format!("{} more", more - 5)),
            _ => {}
        }
        writeln!(
            out,
            "    {} {}",
            style.paint(Role::Dim, "fed by"),
            fed.join(", ")
        )?;
    }
    Ok(())
}
