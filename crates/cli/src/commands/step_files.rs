//! `files` at the level of steps: what the commands of a run used, made and removed.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::BTreeSet;
use std::io::{self, Write};

use backstory_account::{CommandFile, RunFiles};
use backstory_workflow::paths::relative;

use super::file_choice::{Hiding, OwnFilter, is_change};
use crate::args::search::SortKey;
use crate::error::one_line;
use crate::json::Value;
use crate::text::command::text_of;
use crate::text::line::{Line, columns, cut, width};
use crate::text::paths::{Groups, is_system, shown};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// The columns of the acts, and of a line whose path is short. A path is never cut in a pipe.
const WORDS: usize = 18;
const PIPED: usize = 100;

/// The least columns of a command.
const LEAST: usize = 16;

/// The answer and how to print it.
pub struct StepFiles<'f> {
    /// The files and commands.
    pub files: &'f RunFiles,
    /// Says which files are the user's own.
    pub own: &'f OwnFilter,
    /// The files that are counted instead of listed.
    pub hiding: Hiding,
    /// The order, which decides what stands before each path.
    pub sort: SortKey,
    /// The current directory.
    pub here: &'f [u8],
}

impl StepFiles<'_> {
    /// Prints one line for each file.
    pub fn print(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        let mut hidden = Groups::default();
        let width = columns();
        for file in self.sorted() {
            match self.is_hidden(file) {
                true => hidden.add(&file.path),
                false => writeln!(out, "{}", self.line(file).text(style, width))?,
            }
        }
        let mut notes = Vec::new();
        if !hidden.is_empty() {
            notes.push(hidden.text());
        }
        if self.files.within > 0 {
            let files = counted(self.files.within, "file", "files");
            notes.push(format!("{files} that lived within one step"));
        }
        if !notes.is_empty() {
            let note = format!("… and {} (--all lists them)", notes.join("; "));
            writeln!(out, "{}", style.paint(Role::Dim, &note))?;
        }
        Ok(())
    }

    /// The files in the requested order.
    fn sorted(&self) -> Vec<&CommandFile> {
        let mut files: Vec<&CommandFile> = self.files.files.iter().collect();
        match self.sort {
            SortKey::Path => {}
            SortKey::Size => files.sort_small_by_key(|file| std::cmp::Reverse(file.size)),
            SortKey::Time => files.sort_small_by_key(|file| std::cmp::Reverse(file.last)),
        }
        files
    }

    fn is_hidden(&self, file: &CommandFile) -> bool {
        let access = file.access();
        match self.hiding {
            Hiding::Nothing => false,
            Hiding::System => is_system(&file.path) && !access.iter().any(is_change),
            Hiding::NotOwn => !self.own.is_own(&file.path, &access),
        }
    }

    /// `made, used      src/m.o  gcc -c m.c -o m.o (and 1 other command)`
    fn line(&self, file: &CommandFile) -> Line {
        let mut line = Line::default();
        match self.sort {
            SortKey::Path => {}
            SortKey::Size => {
                let size = file.size.map(|size| when::size(size.max(0) as u64));
                line.add(Role::Dim, format!("{:>9}  ", size.unwrap_or_default()));
            }
            SortKey::Time => {
                line.add(Role::Dim, format!("{}  ", when::moment(file.last)));
            }
        }
        let role = match file.made_by.is_empty() && file.changed_by.is_empty() {
            true => Role::Dim,
            false => Role::Subject,
        };
        line.add(role, format!("{:<14}  ", words(file)));
        let path = shown(relative(&file.path, self.here));
        line.add(None::<Role>, path.clone());
        let by = [
            &file.made_by,
            &file.removed_by,
            &file.changed_by,
            &file.used_by,
        ];
        let named = by.iter().find_map(|by| by.first());
        if let Some(&named) = named {
            let command = one_line(&text_of(&self.files.commands[named]));
            let all: BTreeSet<&usize> = by.into_iter().flatten().into_tree();
            let others = match all.len() {
                0 | 1 => String::new(),
                all => {
                    let others = counted(all - 1, "other command", "other commands");
                    format!("  (and {others})")
                }
            };
            line.add(None::<Role>, "  ");
            let used = width(&path) + width(&others) + WORDS;
            let room = match columns() {
                None => PIPED.saturating_sub(used).max(LEAST),
                Some(_) => usize::MAX,
            };
            line.add_flexible(Role::Command, &cut(&command, room));
            line.add(Role::Dim, others);
        }
        line
    }

    /// The files as JSON, one object for each.
    pub fn json(&self) -> Vec<Value> {
        let sorted = self.sorted().into_iter();
        let listed = sorted.filter(|file| self.hiding != Hiding::NotOwn || !self.is_hidden(file));
        listed.map(|file| self.object(file)).collect()
    }

    fn object(&self, file: &CommandFile) -> Value {
        let commands = |by: &BTreeSet<usize>| {
            let lines = by.iter().map(|&at| &self.files.commands[at]);
            Value::array(lines.map(|line| Value::from(line.command().as_str())))
        };
        Value::Object(vec![
            ("path", (&file.path).into()),
            ("made_by", commands(&file.made_by)),
            ("used_by", commands(&file.used_by)),
            ("removed_by", commands(&file.removed_by)),
            ("changed_by", commands(&file.changed_by)),
            ("remains", file.remains.into()),
            ("size", file.size.into()),
            ("last_used", Value::Time(file.last)),
        ])
    }
}

/// The acts of the commands on a file.
fn words(file: &CommandFile) -> String {
    let mut words = Vec::new();
    if !file.made_by.is_empty() {
        words.push("made");
    }
    if !file.changed_by.is_subset(&file.made_by) {
        words.push("changed");
    }
    if !file.used_by.is_subset(&file.made_by) {
        words.push("used");
    }
    if !file.removed_by.is_empty() && !file.remains {
        words.push("removed");
    }
    match words.is_empty() {
        true => "used".to_owned(),
        false => words.join(", "),
    }
}
