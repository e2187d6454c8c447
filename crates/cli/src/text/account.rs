//! The steps behind a file, or those that used it, on one screen.
//!
//! In: an [`Account`]. Out: a heading, the steps from the file outward, the packages that they used,
//! and a line about what is uncertain. Equal siblings are one step. If the steps do not fit, those
//! that weigh least are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use backstory_account::{Account, Siblings, pattern_text, siblings, weights};
use backstory_graph::model::EntityKind;
use backstory_packages::PackageTally;
use backstory_workflow::paths::{absolute, base_name, parent, relative};
use backstory_workflow::steps::Word;

use super::command::{cut, shortened};
use super::paths::shown;
use super::style::{Role, Style};
use super::{shell, when};

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
}

/// The lines around the steps: heading, notes, packages.
const FRAME: usize = 7;

/// Writes the account.
pub fn write(
    account: &Account,
    packages: &PackageTally,
    sheet: Sheet<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let writer = AccountWriter { account, sheet };
    writer.heading(out)?;
    let (own, others): (Vec<usize>, Vec<usize>) =
        account.chain.iter().partition(|&&at| account.concerns(at));
    let steps = siblings(account, &own);
    let (shown, hidden) = writer.fitting(&steps);
    let mut directory = sheet.here.to_vec();
    for step in shown {
        for line in writer.step(step, &mut directory) {
            writeln!(out, "{line}")?;
        }
    }
    if account.chain.is_empty() && account.heading().is_none() {
        return Ok(());
    }
    writer.folded(&hidden, &others, out)?;
    writer.drivers(out)?;
    writer.packages(packages, out)?;
    writer.doubts(out)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The most frequent of these names.
fn names(all: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in all {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
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

/// The number of packages that a line names.
const PACKAGES: usize = 6;

/// The number of programs that a note names.
const NAMES: usize = 6;

struct AccountWriter<'a> {
    account: &'a Account,
    sheet: Sheet<'a>,
}

impl<'a> AccountWriter<'a> {
    fn dim(&self, text: &str) -> String {
        self.sheet.style.paint(Role::Dim, text)
    }

    fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        let (account, style) = (self.account, self.sheet.style);
        let Some(&root) = account.roots.first() else {
            return Ok(());
        };
        let name = style.paint(
            Role::Subject,
            &self.name(&account.files[root].path, self.sheet.here),
        );
        let Some(made) = account.heading() else {
            return writeln!(out, "{name}: no recorded command made it");
        };
        let run = &account.runs[made.run].details.summary;
        let command = shell::words(run.command.iter().map(|word| &**word));
        let complete = match run.complete {
            true => "complete",
            false => "incomplete",
        };
        writeln!(
            out,
            "{name}: made {} by run {} ({}), {complete}",
            when::moment(made.time),
            run.id,
            style.paint(Role::Command, &cut(&command, self.sheet.width / 2)),
        )
    }

    /// A path for a reader: from this directory or the current one if it lies below.
    fn name(&self, path: &[u8], directory: &[u8]) -> String {
        shown(self.near(path, directory))
    }

    fn near<'p>(&self, path: &'p [u8], directory: &[u8]) -> &'p [u8] {
        let near = relative(path, directory);
        if near.len() < path.len() {
            near
        } else {
            relative(path, self.sheet.here)
        }
    }

    /// The steps that fit the screen, and the rest.
    fn fitting<'s>(&self, steps: &'s [Siblings]) -> (Vec<&'s Siblings>, Vec<&'s Siblings>) {
        let room = self.sheet.height.saturating_sub(FRAME).max(FRAME);
        let weights = weights(self.account, steps);
        let mut order: Vec<usize> = (0..steps.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        let mut kept = BTreeSet::new();
        let mut lines = 0;
        for at in order {
            // A line may be needed for the directory.
            let mut directory = steps[at].cwd.to_vec();
            lines += self.step(&steps[at], &mut directory).len();
            if lines > room && !kept.is_empty() {
                break;
            }
            kept.insert(at);
        }
        (0..steps.len())
            .map(|at| (kept.contains(&at), &steps[at]))
            .fold(
                (Vec::new(), Vec::new()),
                |(mut shown, mut hidden), (keep, step)| {
                    if keep { &mut shown } else { &mut hidden }.push(step);
                    (shown, hidden)
                },
            )
    }

    /// A step: its command, and what the command does not say.
    fn step(&self, step: &Siblings, directory: &mut Vec<u8>) -> Vec<String> {
        let (style, mut lines) = (self.sheet.style, Vec::new());
        if *step.cwd != **directory {
            *directory = step.cwd.to_vec();
            let place = self.name(directory, self.sheet.here);
            lines.push(self.dim(&format!("in {place}:")));
        }
        let times = match step.commands.len() {
            1 => String::new(),
            many => format!("{many} × "),
        };
        let room = self.sheet.width.saturating_sub(2 + times.chars().count());
        let command = shortened(&step.words, room);
        lines.push(format!("  {times}{}", style.paint(Role::Command, &command)));
        let facts = self.facts(step);
        if !facts.is_empty() {
            let facts = cut(&facts, self.sheet.width.saturating_sub(6));
            lines.push(format!("      {}", self.dim(&facts)));
        }
        lines
    }

    /// The files of a step that its command does not name, and its sources.
    fn facts(&self, step: &Siblings) -> String {
        let account = self.account;
        let (mut made, mut from, mut sources) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for &at in &step.commands {
            let command = &account.commands[at];
            let named: BTreeSet<Vec<u8>> = command
                .line
                .words
                .iter()
                .filter_map(|word| match word {
                    Word::Text(text) => Some(absolute(text, &command.line.cwd)),
                    _ => None,
                })
                .collect();
            for &file in &command.writes {
                let file = &account.files[file];
                if !named.contains(&*file.path) && file.kind == EntityKind::File {
                    made.insert(&*file.path);
                }
            }
            for &at in &command.reads {
                let file = &account.files[at];
                if file.kind != EntityKind::File || !file.own {
                    continue;
                }
                if account.is_source(at) {
                    sources.insert(&*file.path);
                } else if !named.contains(&*file.path) {
                    from.insert(&*file.path);
                }
            }
        }
        let mut facts = Vec::new();
        let changed: BTreeSet<&[u8]> = made.intersection(&from).copied().collect();
        made.retain(|path| !changed.contains(path));
        from.retain(|path| !changed.contains(path));
        let kinds = [
            ("sources:", sources),
            ("made", made),
            ("changed", changed),
            ("from", from),
        ];
        for (word, paths) in kinds {
            if !paths.is_empty() {
                let paths: Vec<&[u8]> = paths.into_iter().collect();
                facts.push(format!("{word} {}", self.list(&paths, &step.cwd)));
            }
        }
        facts.join("; ")
    }

    /// Paths with those of one directory and ending joined.
    fn list(&self, paths: &[&[u8]], directory: &[u8]) -> String {
        let mut groups: BTreeMap<(&[u8], &[u8]), Vec<&[u8]>> = BTreeMap::new();
        for path in paths {
            let name = base_name(path);
            let dot = name.iter().rposition(|&byte| byte == b'.');
            let ending = dot.map_or(&[][..], |at| &name[at..]);
            groups.entry((parent(path), ending)).or_default().push(path);
        }
        let mut shown = Vec::new();
        for paths in groups.into_values() {
            if paths.len() <= 2 {
                shown.extend(paths.iter().map(|path| self.name(path, directory)));
                continue;
            }
            let near: Vec<&[u8]> = paths
                .iter()
                .map(|path| self.near(path, directory))
                .collect();
            shown.push(format!("{} ({})", pattern_text(&near), paths.len()));
        }
        shown.join(", ")
    }

    /// What the screen does not show.
    fn folded(
        &self,
        hidden: &[&Siblings],
        others: &[usize],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let program = |text: &str| String::from_utf8_lossy(base_name(text.as_bytes())).into_owned();
        let mut notes = Vec::new();
        if !hidden.is_empty() {
            let all = hidden.iter().filter_map(|step| step.words.first());
            notes.push(format!(
                "… and {} on the way: {} (--commands shows all)",
                counted(hidden.len(), "step"),
                names(all.map(|word| program(&word.text))),
            ));
        }
        if !others.is_empty() {
            let steps = siblings(self.account, others);
            let all = steps.iter().filter_map(|step| step.words.first());
            notes.push(format!(
                "… and {} that used none of your own files: {}",
                counted(others.len(), "command"),
                names(all.map(|word| program(&word.text))),
            ));
        }
        for note in notes {
            writeln!(out, "{}", self.dim(&cut(&note, self.sheet.width)))?;
        }
        Ok(())
    }

    fn drivers(&self, out: &mut impl Write) -> io::Result<()> {
        let account = self.account;
        let mut lines = Vec::new();
        for &at in &account.drivers {
            let command = &account.commands[at];
            let own: Vec<&[u8]> = account
                .sources(at)
                .map(|file| &*account.files[file].path)
                .collect();
            if own.is_empty() {
                continue;
            }
            let text = cut(&command.line.command(), 40);
            lines.push(format!("{text} ({})", self.list(&own, self.sheet.here)));
        }
        if !lines.is_empty() {
            let text = cut(
                &format!("started by {}", lines.join(", ")),
                self.sheet.width,
            );
            writeln!(out, "{}", self.dim(&text))?;
        }
        Ok(())
    }

    fn packages(&self, packages: &PackageTally, out: &mut impl Write) -> io::Result<()> {
        for (at, line) in packages.lines(PACKAGES).iter().enumerate() {
            let lead = if at == 0 { "packages: " } else { "          " };
            writeln!(
                out,
                "{}",
                self.dim(&cut(&format!("{lead}{line}"), 2 * self.sheet.width))
            )?;
        }
        Ok(())
    }

    /// What is uncertain, in one line.
    fn doubts(&self, out: &mut impl Write) -> io::Result<()> {
        let account = self.account;
        let mut doubts = Vec::new();
        let mut reasons: Vec<String> = Vec::new();
        for run in &account.runs {
            let summary = &run.details.summary;
            if !summary.complete {
                let because = summary.incomplete_because.join("; ");
                reasons.push(format!("run {} is incomplete: {because}", summary.id));
            }
        }
        doubts.extend(reasons);
        if account.cut {
            doubts.push("cut at --depth".to_owned());
        }
        if account.files.iter().any(|file| file.by_content) {
            doubts.push("a file is joined to its maker by its content alone".to_owned());
        }
        if doubts.is_empty() {
            return Ok(());
        }
        let text = cut(
            &format!("uncertain: {}", doubts.join("; ")),
            2 * self.sheet.width,
        );
        writeln!(out, "{}", self.dim(&text))
    }
}
