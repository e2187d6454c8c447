//! `files`: lists the files that a run used, and how it used them.

use std::path::Path;

use backstory_eventlog::event::Via;
use backstory_graph::model::Certainty;
use backstory_query as query;
use backstory_query::answer::{Access, FileUse};

use super::stored_contents::Versions;
use super::{Outcome, answer};
use crate::args::search::FilesArgs;
use crate::current_store::CurrentStore;
use crate::json::{self, Value};
use crate::text::paths::{Groups, is_system, shown};
use crate::text::style::{Role, Style};

/// Prints the files of a run.
pub fn run(args: FilesArgs, store: Option<&Path>) -> Outcome {
    let exclude = query::Globs::new(&args.exclude)?;
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.run.as_deref())?;
    let mut files = query::files(&current.store, &run)?;
    files.retain(|file| !exclude.matches(&file.path));
    let versions = match args.run.json {
        true => Some(Versions::of_run(&current.store, &run)?),
        false => None,
    };
    answer(|out| match &versions {
        Some(versions) => json::lines(
            out,
            files
                .iter()
                .map(|file| json(file, versions.json(&file.path))),
        ),
        None => table(&files, args.all, Style::of_stdout(), out),
    })
}

fn json(file: &FileUse, versions: Value) -> Value {
    Value::Object(vec![
        ("path", (&file.path).into()),
        (
            "access",
            Value::array(file.access.iter().map(|&access| word(access))),
        ),
        ("via", via(file.via).into()),
        ("certainty", certainty(file.certainty).into()),
        ("versions", versions),
    ])
}

/// The word of an access.
fn word(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Delete => "delete",
        Access::Rename => "rename",
        Access::Exec => "exec",
        Access::Stat => "stat",
        Access::Dir => "dir",
        Access::Missing => "missing",
        Access::Link => "link",
        Access::Meta => "meta",
    }
}

/// The word of an observer.
pub fn via(via: Via) -> &'static str {
    match via {
        Via::Library => "library",
        Via::Kernel => "kernel",
    }
}

/// The word of a certainty.
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Seen => "seen",
        Certainty::Possible => "possible",
    }
}

/// Prints one line for each path. Without `--all`, two kinds of paths are only counted: system
/// files that were not changed, and paths that were only looked up.
fn table(
    files: &[FileUse],
    all: bool,
    style: Style,
    out: &mut impl std::io::Write,
) -> std::io::Result<()> {
    let mut groups = Groups::default();
    let mut looked_at = 0;
    for file in files {
        let only = |harmless: fn(&Access) -> bool| !all && file.access.iter().all(harmless);
        if is_system(&file.path) && only(|access| !is_change(access)) {
            groups.add(&file.path);
        } else if only(|access| {
            matches!(
                access,
                Access::Stat | Access::Dir | Access::Missing | Access::Link
            )
        }) {
            looked_at += 1;
        } else {
            let words: Vec<&str> = file.access.iter().map(|&access| word(access)).collect();
            let maybe = if file.certainty == Certainty::Possible {
                " (possible)"
            } else {
                ""
            };
            let words = format!("{:<16}", format!("{}{maybe}", words.join(",")));
            writeln!(
                out,
                "{}  {}",
                style.paint(Role::Dim, &words),
                shown(&file.path)
            )?;
        }
    }
    let mut notes = Vec::new();
    if !groups.is_empty() {
        notes.push(groups.text());
    }
    if looked_at > 0 {
        notes.push(format!("{looked_at} paths that were only looked up"));
    }
    if !notes.is_empty() {
        let note = format!("… and {} (--all lists them)", notes.join("; "));
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    Ok(())
}

/// True if it changes something.
fn is_change(access: &Access) -> bool {
    matches!(
        access,
        Access::Write | Access::Delete | Access::Rename | Access::Meta
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, access: &[Access]) -> FileUse {
        let path = path.as_bytes().into();
        FileUse {
            path,
            access: access.to_vec(),
            via: Via::Library,
            certainty: Certainty::Seen,
        }
    }

    fn text(files: &[FileUse], all: bool) -> String {
        let mut out = Vec::new();
        table(files, all, Style::PLAIN, &mut out).unwrap();
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
        let wanted = "{\"path\": \"/a\u{e9}\", \"access\": [\"read\", \"stat\"], \"via\": \"library\", \"certainty\": \"seen\", \"versions\": []}";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
