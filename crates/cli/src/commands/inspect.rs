//! `inspect`: what is inside of a file of a known format, or what changed between two.

mod log_rows;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use backstory_files::regular;
use backstory_inspection::{Answer, Trouble, table_keys};
use backstory_query::subject as versions;
use backstory_store::Home;
use serde_json::{Map, Value as Fact};

use super::contents::{store_contents, why_absent};
use super::{Outcome, answer};
use crate::args::inspect::InspectArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::file_inspector::{FileInspector, json_map};
use crate::json::{self, Value};
use crate::subject::{self, PathNotation};
use crate::text::line::{cut, printable};
use crate::text::paths::shown;
use crate::text::style::{Role, Style};
use crate::version_contents::VersionContents;

/// The most parts of a list that are printed without `--full`.
pub const LISTED: usize = 20;

/// The width of a printed part.
const WIDTH: usize = 110;

/// Prints facts, or changes. With two files the status is 1 if they differ.
pub fn run(args: InspectArgs, store: Option<&Path>) -> Outcome {
    let names = std::iter::once(&args.path).chain(&args.other);
    // A file as it is now needs no store.
    let mut current = match names.clone().all(|name| Path::new(name).exists()) {
        true => CurrentStore::open(store).ok(),
        false => Some(CurrentStore::open(store)?),
    };
    let mut contents = Vec::new();
    for name in names {
        contents.push(content(current.as_mut(), name)?);
    }
    let directory = Home::directory(store).ok().filter(|_| current.is_some());
    let inspector = FileInspector::new(directory.as_deref()).by_key(&args.key);
    let (path, first) = &contents[0];
    let second = contents.get(1);
    let (name, newest) = second.unwrap_or(&contents[0]);
    let entry = inspector.entry(name, newest).ok_or_else(|| {
        Failure::not_found(format!("no inspector knows the format of {}", shown(name)))
    })?;
    if !args.key.is_empty() && !table_keys::has_columns(&entry.name) {
        return Err(no_columns(name));
    }
    let found = inspector
        .ask(entry, name, first, second.map(|(_, content)| &content[..]))
        .map_err(|trouble| {
            let is_unreadable = matches!(trouble, Trouble::Unreadable { .. });
            let other = second.filter(|_| is_unreadable);
            let other = other.and_then(|_| inspector.entry(path, first));
            match other.filter(|other| other.name != entry.name) {
                Some(other) => Failure::not_found(format!(
                    "{} is read as {}, and {} as {}: give two contents of one format",
                    shown(path),
                    other.name,
                    shown(name),
                    entry.name
                )),
                None => Failure::not_found(trouble),
            }
        })?;
    let is_same = second.is_none_or(|(_, content)| content == first);
    let rows = match second {
        None if is_present(&args.path) => log_rows::of_files(&entry.name, path, first),
        _ => None,
    };
    answer(|out| match (args.json, second) {
        (true, _) => {
            let mut fields = fields(&found, path, second.map(|(name, _)| &name[..]));
            fields.extend(rows.as_ref().map(|rows| ("rows", log_rows::json(rows))));
            json::object(out, fields)
        }
        (false, None) => {
            facts(&found, path, args.full, out)?;
            rows.map_or(Ok(()), |rows| log_rows::write(&rows, args.full, out))
        }
        (false, Some(_)) if is_same => writeln!(out, "no difference"),
        (false, Some(_)) => sentences(&found, out),
    })?;
    Ok(u8::from(!is_same))
}

/// The option `--key` was given for a file without columns.
pub fn no_columns(name: &[u8]) -> Failure {
    Failure::misuse(format!(
        "--key is for tables with columns (CSV, TSV, Parquet, Arrow), and {} is none",
        shown(name)
    ))
}

fn is_present(name: &OsStr) -> bool {
    Path::new(name).is_file()
}

/// A file's path and content: as it is now, or else a recorded version's.
fn content(
    current: Option<&mut CurrentStore>,
    wanted: &OsStr,
) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let path = Path::new(wanted);
    if path.is_dir() {
        return Err(Failure::not_found(format!(
            "{} is a directory, and `inspect` reads files",
            shown(&bytes(path))
        )));
    }
    if is_present(wanted) {
        let read = regular::read(path);
        let read = read.map_err(|error| {
            Failure::not_found(format!("cannot read {}: {error}", path.display()))
        })?;
        return Ok((bytes(path), read));
    }
    let Some(current) = current else {
        return Err(Failure::not_found(format!(
            "{} is not there",
            path.display()
        )));
    };
    store_contents(current);
    let (path, version) = match subject::notation(current, wanted)? {
        PathNotation::Plain(path) => {
            let version = versions::newest(&current.store, &path, None)?;
            (path, version)
        }
        PathNotation::OfRun(path, run) => {
            let version = versions::newest(&current.store, &path, Some(&run))?;
            (path, version)
        }
        PathNotation::AtMoment(path, time) => {
            let version = subject::event_at(current, &path, time)?.version;
            let Some(version) = version else {
                return content(None, path.as_os_str());
            };
            (path, version)
        }
    };
    let content = VersionContents::new(current).read(version)?;
    match content {
        Some(content) => Ok((bytes(&path), content)),
        None => {
            let (why, help) = why_absent(current, version, &shown(&bytes(&path)));
            Err(Failure::not_found(format!("{why}{help}")))
        }
    }
}

fn fields(found: &Answer, path: &[u8], other: Option<&[u8]>) -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        ("path", path.into()),
        ("inspector", found.inspector.as_str().into()),
        ("version", found.version.into()),
    ];
    match other {
        None => fields.push(("facts", json_map(&found.facts))),
        Some(other) => {
            fields.insert(1, ("other", other.into()));
            fields.push(("sentences", Value::array(&found.sentences)));
            fields.push(("changes", json_map(&found.changes)));
        }
    }
    fields
}

fn sentences(found: &Answer, out: &mut impl Write) -> io::Result<()> {
    if found.sentences.is_empty() {
        let inspector = &found.inspector;
        return writeln!(
            out,
            "the bytes differ, but nothing that inspector {inspector} knows of"
        );
    }
    for sentence in &found.sentences {
        writeln!(out, "{}", printable(sentence.as_bytes()))?;
    }
    Ok(())
}

/// Prints values first, then lists.
fn facts(found: &Answer, path: &[u8], full: bool, out: &mut impl Write) -> io::Result<()> {
    let style = Style::of_stdout();
    writeln!(
        out,
        "{}  {}",
        style.paint(Role::Subject, &shown(path)),
        style.paint(Role::Dim, &format!("inspector {}", found.inspector))
    )?;
    let words = |name: &str| printable(name.replace('_', " ").as_bytes());
    let is_list = |value: &Fact| matches!(value, Fact::Array(values) if values.iter().any(Fact::is_object) || values.len() > 8);
    let is_number = |name: &str| {
        let list = name.strip_suffix("_number");
        list.is_some_and(|list| found.facts.contains_key(list))
    };
    for (name, value) in &found.facts {
        if !is_list(value) && !is_number(name) {
            writeln!(out, "  {}  {}", words(name), flat(value))?;
        }
    }
    for (name, value) in &found.facts {
        let Fact::Array(parts) = value else { continue };
        if !is_list(value) {
            continue;
        }
        let number = found.facts.get(&format!("{name}_number"));
        let number = number.map_or(parts.len() as u64, |number| number.as_u64().unwrap_or(0));
        writeln!(out, "  {} ({number})", words(name))?;
        let most = if full { usize::MAX } else { LISTED };
        for part in parts.iter().take(most) {
            let line = match part {
                Fact::Object(fields) => of_part(fields),
                value => flat(value),
            };
            writeln!(out, "    {}", if full { line } else { cut(&line, WIDTH) })?;
        }
        let left = (number as usize).saturating_sub(parts.len().min(most));
        if left > 0 {
            let more = format!("… {left} more{}", if full { "" } else { " (--full)" });
            writeln!(out, "    {}", style.paint(Role::Dim, &more))?;
        }
    }
    Ok(())
}

/// A part in one line: its name, then its fields.
fn of_part(fields: &Map<String, Fact>) -> String {
    let name = fields.get("name").map(flat).unwrap_or_default();
    let rest = fields
        .iter()
        .filter(|(field, value)| *field != "name" && !value.is_null());
    let rest = rest.map(|(field, value)| match field.as_str() {
        "value" => flat(value),
        field => format!("{} {}", printable(field.as_bytes()), flat(value)),
    });
    let rest: Vec<String> = rest.collect();
    match rest.is_empty() {
        true => name,
        false => format!("{name}  {}", rest.join(", ")),
    }
}

/// A value in one line.
fn flat(value: &Fact) -> String {
    match value {
        Fact::String(text) => printable(text.as_bytes()),
        Fact::Array(values) => values.iter().map(flat).collect::<Vec<_>>().join(", "),
        Fact::Object(fields) => {
            let all = fields.iter();
            let all =
                all.map(|(name, value)| format!("{} {}", printable(name.as_bytes()), flat(value)));
            all.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
