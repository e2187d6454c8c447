//! `files`: lists the files that a run used, and how it used them.

use backstory_ordering::SmallSort;
use std::path::Path;

use backstory_graph::model::Certainty;
use backstory_query as query;
use backstory_query::answer::{Access, FileUse};
use backstory_vocabulary::Word;

use super::file_choice::{self, Hiding, OwnFilter};
use super::step_files::StepFiles;
use super::stored_contents::Versions;
use super::{Outcome, answer, here};
use crate::args::lineage::Level;
use crate::args::search::{FilesArgs, SortKey};
use crate::current_store::CurrentStore;
use crate::json::{self, Value};
use crate::text::paths::{Groups, is_system, shown};
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints the files of a run.
pub fn run(args: FilesArgs, store: Option<&Path>) -> Outcome {
    let mut filter = file_choice::filter(&args.which)?;
    filter.exclude = query::Globs::new(&args.exclude)?;
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.run.as_deref())?;
    let filter_own = OwnFilter::of(&current, &run)?;
    let level = args.level();
    let hiding = match level {
        Level::All => Hiding::Nothing,
        _ => file_choice::hiding(&args.which),
    };
    if level == Level::Step {
        let answered = StepFiles {
            files: &backstory_account::run_files(&current.store, &run, &filter)?,
            own: &filter_own,
            hiding: match args.run.json && !args.which.own {
                true => Hiding::Nothing,
                false => hiding,
            },
            sort: args.sort,
            here: &here(),
        };
        return answer(|out| match args.run.json {
            true => json::lines(out, answered.json()),
            false => answered.print(Style::of_stdout(), out),
        });
    }
    let mut files = query::files_where(&current.store, &run, &filter)?;
    match args.sort {
        SortKey::Path => {}
        SortKey::Size => files.sort_small_by_key(|file| std::cmp::Reverse(size(file))),
        SortKey::Time => files.sort_small_by_key(|file| std::cmp::Reverse(file.last)),
    }
    let own = |file: &FileUse| filter_own.is_own(&file.path, &file.access);
    if args.run.json {
        if args.which.own {
            files.retain(own);
        }
        let versions = Versions::of_run(&current.store, &run)?;
        return answer(|out| {
            let lines = files
                .iter()
                .map(|file| json(file, versions.json(&file.path)));
            json::lines(out, lines)
        });
    }
    let mut table = Table::new(&hiding, args.sort, &filter.access);
    for file in &files {
        let own = hiding != Hiding::NotOwn || own(file);
        table.add(file, own);
    }
    answer(|out| table.print(Style::of_stdout(), out))
}

fn size(file: &FileUse) -> Option<i64> {
    file.ident.map(|ident| ident.size)
}

fn json(file: &FileUse, versions: Value) -> Value {
    Value::Object(vec![
        ("path", (&file.path).into()),
        (
            "access",
            Value::array(file.access.iter().map(|access| access.word())),
        ),
        ("via", file.via.word().into()),
        ("certainty", file.certainty.word().into()),
        ("versions", versions),
        ("size", size(file).into()),
        ("last_used", Value::Time(file.last)),
    ])
}

/// The lines of the answer, and what is only counted.
struct Table<'f> {
    hiding: &'f Hiding,
    sort: SortKey,
    /// True if the user asked for look-ups.
    lookups: bool,
    lines: Vec<&'f FileUse>,
    hidden: Groups,
    looked_at: usize,
}

impl<'f> Table<'f> {
    fn new(hiding: &'f Hiding, sort: SortKey, access: &[Access]) -> Table<'f> {
        Table {
            hiding,
            sort,
            lookups: access.contains(&Access::Stat),
            lines: Vec::new(),
            hidden: Groups::default(),
            looked_at: 0,
        }
    }

    /// Adds a path, or counts it. Two kinds of paths are only counted: those that are hidden, and
    /// those that were only looked up, unless the user asked for them.
    fn add(&mut self, file: &'f FileUse, own: bool) {
        let unchanged = !file.access.iter().any(file_choice::is_change);
        let hidden = match self.hiding {
            Hiding::Nothing => false,
            Hiding::System => is_system(&file.path) && unchanged,
            Hiding::NotOwn => !own,
        };
        let looks = file.access.iter().all(is_lookup);
        if looks && !self.lookups && *self.hiding != Hiding::Nothing && !hidden {
            self.looked_at += 1;
        } else if hidden {
            self.hidden.add(&file.path);
        } else {
            self.lines.push(file);
        }
    }

    fn print(&self, style: Style, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let key = |file: &FileUse| match self.sort {
            SortKey::Path => String::new(),
            SortKey::Size => {
                let size = size(file).map(|size| when::size(size.max(0) as u64));
                format!("{:>9}  ", size.unwrap_or_default())
            }
            SortKey::Time => format!("{}  ", when::moment(file.last)),
        };
        for file in &self.lines {
            let words: Vec<&str> = file.access.iter().map(|access| access.word()).collect();
            let maybe = if file.certainty == Certainty::Possible {
                " (possible)"
            } else {
                ""
            };
            let words = format!("{:<16}", format!("{}{maybe}", words.join(",")));
            let lead = style.paint(Role::Dim, &format!("{}{words}", key(file)));
            writeln!(out, "{lead}  {}", shown(&file.path))?;
        }
        let mut notes = Vec::new();
        if !self.hidden.is_empty() {
            notes.push(self.hidden.text());
        }
        if self.looked_at > 0 {
            notes.push(format!("{} paths that were only looked up", self.looked_at));
        }
        if !notes.is_empty() {
            let note = format!("… and {} (--all lists them)", notes.join("; "));
            writeln!(out, "{}", style.paint(Role::Dim, &note))?;
        }
        Ok(())
    }
}

/// True if it only looks a path up.
fn is_lookup(access: &Access) -> bool {
    matches!(
        access,
        Access::Stat | Access::Dir | Access::Missing | Access::Link
    )
}

#[cfg(test)]
mod tests {
    use backstory_eventlog::event::Via;

    use super::*;

    fn file(path: &str, access: &[Access]) -> FileUse {
        let path = path.as_bytes().into();
        FileUse {
            path,
            access: access.to_vec(),
            via: Via::Library,
            certainty: Certainty::Seen,
            last: 1_500_000_000,
            ident: None,
        }
    }

    fn text(files: &[FileUse], all: bool) -> String {
        let hiding = if all { Hiding::Nothing } else { Hiding::System };
        let mut table = Table::new(&hiding, SortKey::Path, &[]);
        files.iter().for_each(|file| table.add(file, true));
        let mut out = Vec::new();
        table.print(Style::PLAIN, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn changed_system_files_are_always_listed() {
        let files = [
            file("/etc/hosts", &[Access::Read]),
            file("/etc/new", &[Access::Write]),
        ];
        assert_eq!(
            text(&files, false),
            "write             /etc/new\n… and 1 file under /etc (--all lists them)\n"
        );
        assert_eq!(text(&files, true).lines().count(), 2);
    }

    #[test]
    fn the_json_form_has_the_promised_keys() {
        let mut out = Vec::new();
        json(
            &file("/a\u{e9}", &[Access::Read, Access::Stat]),
            Value::Array(Vec::new()),
        )
        .write(&mut out)
        .unwrap();
        let wanted = "{\"path\": \"/a\u{e9}\", \"access\": [\"read\", \"stat\"], \"via\": \"library\", \"certainty\": \"seen\", \"versions\": [], \"size\": null, \"last_used\": 1.500000000}";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
