//! The answer of `diff` for people: the causes that explain the difference, the outputs with their
//! changes, and the rest, folded with counts.
//!
//! Invariant: every difference is printed or counted.

use backstory_ordering::SmallSort;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};

use backstory_query::answer::RunDetails;
use backstory_replay::diff::{DiffVerdict, Difference, DifferenceKind, DifferenceWeight};
use backstory_workflow::paths::relative;

use super::changes;
use super::sides::{ComparedSide, ComparedVersion};
use super::{Answered, ComparedContent, content_of};
use crate::file_inspector::FileInspector;
use crate::text::line::{cut, printable};
use crate::text::paths::shown;
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;
use crate::version_contents::VersionContents;
use backstory_inspection::Trouble;

/// The most causes, and the most outputs, that are listed.
pub(super) const LISTED: usize = 8;

/// The most lines of a content's difference.
const LINES: usize = 12;

/// The most lines of all differences of contents together.
const ALL_LINES: usize = 40;

/// The most names in a folded line.
pub(super) const NAMED: usize = 3;

/// The width of a command line or a value.
const WIDTH: usize = 100;

/// Prints an answer.
pub struct Printer<'d> {
    /// The answer.
    pub answered: &'d Answered,
    /// Reads contents of files.
    pub contents: &'d VersionContents<'d>,
    /// Asks inspectors.
    pub inspector: &'d FileInspector,
    /// Whether to use colours.
    pub style: Style,
    /// Print everything.
    pub full: bool,
    /// The current directory.
    pub here: &'d [u8],
    /// The answer says that the reader of formats is not installed.
    pub said_no_worker: Cell<bool>,
}

impl Printer<'_> {
    /// Prints the answer.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        self.side("a", &self.answered.a, &self.answered.diff.a, out)?;
        self.side("b", &self.answered.b, &self.answered.diff.b, out)?;
        let diff = &self.answered.diff;
        let mut left = if self.full { usize::MAX } else { ALL_LINES };
        match &self.answered.content {
            Some(Ok(content)) => self.named_content(content, &mut left, out)?,
            Some(Err(why)) => {
                self.heading("The contents were not compared", out)?;
                writeln!(out, "  {}", printable(why.as_bytes()))?;
            }
            None => {}
        }
        if diff.differences.is_empty() {
            match (self.answered.verdict, &self.answered.content) {
                (DiffVerdict::Same, None) => {
                    let word = self.style.paint(Role::Good, "no difference");
                    writeln!(out, "{word}")?;
                }
                (DiffVerdict::Unknown, _) if !diff.unknown.is_empty() => {
                    self.heading("It cannot be told whether these are the same", out)?;
                    self.names(&diff.unknown, out)?;
                }
                _ => {}
            }
            return self.footer(&[], out);
        }
        let mut folded = self.causes(&mut left, out)?;
        self.ends(out)?;
        folded.extend(self.outputs(&mut left, out)?);
        self.footer(&folded, out)
    }

    pub(super) fn heading(&self, text: &str, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n{}", self.style.paint(Role::Subject, text))
    }

    /// The head of a side: its runs, and the version if the user named one.
    fn side(
        &self,
        letter: &str,
        side: &ComparedSide,
        runs: &[RunDetails],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut head = letter.to_owned();
        if let ComparedSide::Version(version) = side {
            head = format!("{letter}  {}", shown(&version.name));
            if version.version.is_none() {
                let now = self.style.paint(Role::Dim, version.now());
                return writeln!(out, "{head}  {now}");
            }
        }
        // The newest run made the version; the others made its inputs.
        let own = side.run();
        let own = runs.iter().find(|run| Some(run.summary.id.as_str()) == own);
        let Some(run) = own.or(runs.last()) else {
            return writeln!(out, "{head}");
        };
        let run = &run.summary;
        let words = shell::words(run.command.iter().map(|word| &word[..]));
        let name = run
            .name
            .as_ref()
            .map_or(String::new(), |name| format!("{name}  "));
        let when = format!("run {}  {name}{}", run.id, when::moment(run.started));
        let more = match runs.len() {
            0 | 1 => String::new(),
            many => format!(
                "  (and {})",
                counted(many - 1, "earlier run", "earlier runs")
            ),
        };
        writeln!(
            out,
            "{head}  {}  {}{more}",
            self.style.paint(Role::Dim, &when),
            self.style.paint(Role::Command, &cut(&words, WIDTH))
        )
    }

    /// The contents of the two versions that the user named.
    fn named_content(
        &self,
        content: &ComparedContent,
        left: &mut usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let name = match &self.answered.b {
            ComparedSide::Version(ComparedVersion { name, .. }) => shown(name),
            ComparedSide::Run(_) => String::new(),
        };
        self.heading(&format!("{name}: {}", content.summary()), out)?;
        self.not_read(content, out)?;
        if content.has_readable_lines() {
            *left -= changes::body(&content.difference, *left, self.style, out)?.min(*left);
        }
        Ok(())
    }

    /// Says why the format of a content was not read. A missing worker is named once.
    pub(super) fn not_read(
        &self,
        content: &ComparedContent,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(trouble) = content.why_not_read() else {
            return Ok(());
        };
        if matches!(trouble, Trouble::NoWorker { .. }) && self.said_no_worker.replace(true) {
            return Ok(());
        }
        let trouble = printable(trouble.to_string().as_bytes());
        writeln!(out, "      {}", self.style.paint(Role::Dim, &trouble))
    }

    pub(super) fn of(&self, weight: DifferenceWeight) -> Vec<(usize, &Difference)> {
        let all = self.answered.diff.differences.iter().enumerate();
        all.filter(|(_, difference)| difference.weight == weight)
            .collect()
    }

    /// Prints names of files, one a line.
    fn names(&self, names: &[Vec<u8>], out: &mut impl Write) -> io::Result<()> {
        let most = if self.full { usize::MAX } else { LISTED };
        for name in names.iter().take(most) {
            let name = self.style.paint(Role::Subject, &self.name(name));
            writeln!(out, "  {name}")?;
        }
        match names.len().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(
                out,
                "  … and {}",
                counted(more, "other file", "other files")
            ),
        }
    }

    /// Prints the causes. Returns what is folded.
    fn causes(&self, left: &mut usize, out: &mut impl Write) -> io::Result<Vec<String>> {
        use DifferenceWeight::*;
        let groups = [Own, Command, System, Noise];
        let possible = &self.answered.diff.unknown_causes;
        if !possible.is_empty() {
            let one = "Not compared, so it may be the cause";
            let many = "Not compared, so each may be the cause";
            self.heading(if possible.len() == 1 { one } else { many }, out)?;
            self.names(possible, out)?;
        }
        let has = |weight: &DifferenceWeight| !self.of(*weight).is_empty();
        let Some(first) = groups.iter().position(has) else {
            let unknown = &self.answered.diff.unknown;
            if !possible.is_empty() {
                return Ok(Vec::new());
            }
            if self.has_outputs() && !unknown.is_empty() {
                let names: Vec<String> = unknown.iter().map(|name| self.name(name)).collect();
                self.heading("No known cause differs", out)?;
                writeln!(
                    out,
                    "  Not compared, so each may be the cause: {}",
                    listed(&names)
                )?;
            } else if self.has_outputs() {
                self.heading("No recorded cause differs", out)?;
                writeln!(
                    out,
                    "  The outputs depend on something that is not recorded: the time, random numbers,\n  process numbers, the network, or a race between processes."
                )?;
            }
            return Ok(Vec::new());
        };
        use DifferenceKind::{Input, Library, Program};
        // The user's own files that a run made weigh as much as commands.
        let of_command = self.of(Command).into_iter();
        let mut kinds = of_command.map(|(_, cause)| cause.kind);
        let heading = match groups[first] {
            // A cause that may be there beside a known one is not denied.
            Noise if !possible.is_empty() => "These differ, too",
            _ if !possible.is_empty() => "These differ, and may be the cause, too",
            Own => "Causes",
            Command if kinds.any(|kind| matches!(kind, Input | Library | Program)) => "Causes",
            Command => "Causes (no file of your own differs)",
            System => "Causes (no file of your own differs, nor a command or variable)",
            _ => "No likely cause differs; these do",
        };
        self.heading(heading, out)?;
        let mut causes = self.of(groups[first]);
        // The cause of more outputs comes first, and of two such causes the earlier one.
        causes.sort_small_by_key(|&(at, _)| (std::cmp::Reverse(self.effects(at).0.len()), at));
        let most = if self.full { usize::MAX } else { LISTED };
        let mut folded = Vec::new();
        self.package_changes(&mut causes, out)?;
        for &(at, cause) in causes.iter().take(most) {
            self.cause(at, cause, left, out)?;
        }
        if causes.len() > most {
            let rest: Vec<_> = causes[most..].iter().map(|(_, cause)| *cause).collect();
            writeln!(out, "  {}", self.folded(&rest).join(", "))?;
        }
        for weight in &groups[first + 1..] {
            let others: Vec<_> = self
                .of(*weight)
                .into_iter()
                .map(|(_, other)| other)
                .collect();
            if self.full && *weight == Command {
                for (at, cause) in self.of(*weight) {
                    self.cause(at, cause, left, out)?;
                }
            } else {
                folded.extend(self.folded(&others));
            }
        }
        Ok(folded)
    }

    /// Prints the packages that differ in their versions, and takes their files out of the causes.
    /// A version says more than the bytes of compiled modules.
    fn package_changes(
        &self,
        causes: &mut Vec<(usize, &Difference)>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut changes: BTreeMap<(&str, [&str; 2]), Vec<usize>> = BTreeMap::new();
        for (at, cause) in causes.iter() {
            if let Some(change) = cause.package_change() {
                changes.entry(change).or_default().push(*at);
            }
        }
        for ((name, [a, b]), files) in &changes {
            let name = self.style.paint(Role::Subject, name);
            let effect = files.first().map_or(String::new(), |at| self.effect(*at));
            let number = counted(files.len(), "file", "files");
            writeln!(out, "  package {name}  {a} → {b}  ({number}){effect}")?;
        }
        causes.retain(|(_, cause)| self.full || cause.package_change().is_none());
        Ok(())
    }

    pub(super) fn has_outputs(&self) -> bool {
        let mut all = self.answered.diff.differences.iter();
        all.any(|difference| difference.kind == DifferenceKind::Output)
    }

    /// The outputs that a difference may explain: the results if there are any, else what is
    /// between.
    fn explained(&self, at: usize) -> Vec<(usize, &Difference)> {
        let all = self.answered.diff.differences.iter().enumerate();
        let mut found: Vec<(usize, &Difference)> = all
            .filter(|(_, output)| output.fed_by.contains(&at))
            .filter(|(_, output)| output.a.is_some() && output.b.is_some())
            .collect();
        // The result of a build is made last.
        found.sort_small_by_key(|(_, output)| std::cmp::Reverse(output.at));
        if found.iter().any(|(_, output)| !output.is_intermediate) {
            found.retain(|(_, output)| !output.is_intermediate);
        }
        found
    }

    /// The names of these outputs: those that can have bytes of the difference, and the others.
    fn effects(&self, at: usize) -> (Vec<String>, Vec<String>) {
        let outputs = self.explained(at).into_iter();
        let (unused, used): (Vec<_>, Vec<_>) =
            outputs.partition(|(output, _)| self.answered.unused.has(*output, at));
        let names = |outputs: Vec<(usize, &Difference)>| {
            let names = outputs.iter().map(|(_, output)| self.name(&output.of));
            names.collect()
        };
        (names(used), names(unused))
    }

    fn cause(
        &self,
        at: usize,
        cause: &Difference,
        left: &mut usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let content = content_of(cause, self.contents, self.inspector);
        let what = self.style.paint(Role::Subject, &self.name(&cause.of));
        let effect = self.effect(at);
        match cause.kind {
            DifferenceKind::Program | DifferenceKind::Library | DifferenceKind::Input => {
                let change = match (&content, &cause.a, &cause.b) {
                    (Some(content), ..) => content.summary(),
                    (None, Some(a), Some(b)) => format!("{} → {}", printable(a), printable(b)),
                    (None, None, _) => "used by b only".to_owned(),
                    (None, _, None) => "used by a only".to_owned(),
                };
                writeln!(out, "  {what}  {change}{effect}")?;
            }
            DifferenceKind::Listing => {
                let names = |names: &Option<Vec<u8>>, side: &str| {
                    let names = names.as_ref()?;
                    Some(format!(
                        "only {side}: {}",
                        cut(&printable(names), WIDTH / 2)
                    ))
                };
                let parts = [names(&cause.a, "a"), names(&cause.b, "b")];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                writeln!(out, "  directory {what}  {}{effect}", parts.join("; "))?;
            }
            DifferenceKind::Command => {
                let (side, line) = match (&cause.a, &cause.b) {
                    (Some(line), _) => ("a", line),
                    (None, line) => ("b", line.as_ref().unwrap_or(&cause.of)),
                };
                let line = self
                    .style
                    .paint(Role::Command, &cut(&printable(line), WIDTH));
                writeln!(out, "  command of {side} only: {line}{effect}")?;
            }
            kind => {
                let word = match kind {
                    DifferenceKind::Environment => "variable",
                    DifferenceKind::Arguments => "command",
                    kind => kind.word(),
                };
                let none = b"(not set)".to_vec();
                let [a, b] = [&cause.a, &cause.b].map(|side| side.as_ref().unwrap_or(&none));
                let (a, b) = differing_words(a, b);
                match a.chars().count() + b.chars().count() {
                    0..60 => writeln!(out, "  {word} {what}  {a} → {b}{effect}")?,
                    _ => {
                        writeln!(out, "  {word} {what}{effect}")?;
                        writeln!(
                            out,
                            "      a {}",
                            self.style.paint(Role::Bad, &cut(&a, WIDTH))
                        )?;
                        writeln!(
                            out,
                            "      b {}",
                            self.style.paint(Role::Good, &cut(&b, WIDTH))
                        )?;
                    }
                }
            }
        }
        if let Some(content) = content {
            self.difference(&content, left, out)?;
        }
        Ok(())
    }

    /// `  ⇒ app, lib.a and 3 more; no byte in log`
    fn effect(&self, at: usize) -> String {
        let (used, unused) = self.effects(at);
        let unused = match unused.is_empty() {
            true => String::new(),
            // A branch may have depended on it.
            false => format!("no byte in {}, apart from decisions", listed(&unused)),
        };
        let text = match (used.is_empty(), unused.is_empty()) {
            (true, true) => return String::new(),
            (true, false) => format!("  ({unused})"),
            (false, true) => format!("  ⇒ {}", listed(&used)),
            (false, false) => format!("  ⇒ {}; {unused}", listed(&used)),
        };
        self.style.paint(Role::Dim, &text)
    }

    /// The lines below the name of a file: why its format was not read, and what differs.
    pub(super) fn difference(
        &self,
        content: &ComparedContent,
        left: &mut usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.not_read(content, out)?;
        let most = match self.full {
            true => usize::MAX,
            false => LINES.min(*left),
        };
        if most > 0 && content.has_readable_lines() {
            *left -= changes::body(&content.difference, most, self.style, out)?.min(*left);
        }
        Ok(())
    }

    pub(super) fn name(&self, name: &[u8]) -> String {
        shown(relative(name, self.here))
    }
}

/// `a, b, c and 4 more`
pub(super) fn listed(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The two lines without the words with which both begin and end.
fn differing_words(a: &[u8], b: &[u8]) -> (String, String) {
    let (a, b) = (printable(a), printable(b));
    if a.len() + b.len() < 60 {
        return (a, b);
    }
    let (x, y): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let least = x.len().min(y.len());
    let start = x.iter().zip(&y).take_while(same).count();
    let end = x.iter().rev().zip(y.iter().rev()).take_while(same).count();
    let end = end.min(least - start);
    let part = |words: &[&str]| {
        let before = if start > 0 { "… " } else { "" };
        let after = if end > 0 { " …" } else { "" };
        format!(
            "{before}{}{after}",
            words[start..words.len() - end].join(" ")
        )
    };
    (part(&x), part(&y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_reduced_to_the_words_that_differ() {
        let long = "gcc -Wall -Wextra -Wpedantic -c source/main.c";
        let (a, b) = differing_words(
            format!("{long} -O0 -o main.o").as_bytes(),
            format!("{long} -O2 -g -o main.o").as_bytes(),
        );
        assert_eq!((a.as_str(), b.as_str()), ("… -O0 …", "… -O2 -g …"));
        let (a, b) = differing_words(b"sort -n in", b"sort -r in");
        assert_eq!((a.as_str(), b.as_str()), ("sort -n in", "sort -r in"));
    }

    #[test]
    fn long_lists_end_with_a_count() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(listed(&names), "a, b, c and 2 more");
        assert_eq!(listed(&names[..3]), "a, b, c");
    }
}
