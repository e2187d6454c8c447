//! `pipeline add` and `pipeline remove`: change `config.toml`, and leave all else in it as it was.
//!
//! Invariant: a file is replaced by one rename, and only by a text without a new mistake.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_pipeline::configuration::Owner;
use backstory_store::Home;
use toml::de::{DeTable, DeValue};

use super::{Outcome, answer};
use crate::args::pipeline::{PipelineAddArgs, PipelineRemoveArgs};
use crate::error::Failure;
use crate::pipeline_file::{FILE, PipelineFiles, paths};
use crate::tool_file::in_configuration;

/// Adds a table at the end of a file.
pub fn add(args: PipelineAddArgs, store: Option<&Path>) -> Outcome {
    let path = match args.in_store {
        true => Home::locate(store)?.dir().join(FILE),
        false => in_configuration(FILE)
            .ok_or_else(|| Failure::not_found("there is no home directory"))?,
    };
    let owner = match args.in_store {
        true => Owner::Store,
        false => Owner::User,
    };
    let before = read(&path)?;
    if let Some(name) = &args.name {
        let known = PipelineFiles::parse(&before, &path, owner);
        let filters = known.filters().iter().map(|filter| &filter.name);
        let mut names = filters.chain(known.stores.iter().map(|store| &store.name));
        if names.any(|known| known == name) {
            let line = format!("{} has a filter or store {name} already", path.display());
            return Err(Failure::misuse(line));
        }
    }
    let next = match args.action.as_str() {
        "store" => "`backstory index --wait` delivers all runs now",
        _ => "`backstory pipeline test` shows the effect on the latest run",
    };
    let table = table(args);
    let gap = match before.is_empty() || before.ends_with("\n\n") {
        true => "",
        false if before.ends_with('\n') => "\n",
        false => "\n\n",
    };
    let after = format!("{before}{gap}{table}");
    let known = PipelineFiles::parse(&before, &path, owner).warnings;
    let now = PipelineFiles::parse(&after, &path, owner);
    let mut mistakes = now
        .warnings
        .iter()
        .filter(|mistake| !known.contains(mistake))
        .cloned();
    let in_expression = || {
        let pipeline = now.pipeline.as_ref()?;
        let known = PipelineFiles::parse(&before, &path, owner).pipeline;
        let known = known
            .map(|known| known.mistakes_in_expressions())
            .unwrap_or_default();
        let mut found = pipeline.mistakes_in_expressions().into_iter();
        found.find(|mistake| !known.contains(mistake))
    };
    if let Some(mistake) = mistakes.next().or_else(in_expression) {
        return Err(Failure::misuse(format!("nothing is added: {mistake}")));
    }
    write(&path, &after)?;
    answer(|out| {
        writeln!(out, "added to {}:\n\n{table}", path.display())?;
        writeln!(out, "{next}")
    })
}

/// The text of the new table.
fn table(args: PipelineAddArgs) -> String {
    let is_store = args.action == "store";
    let mut text = String::from(if is_store {
        "[[store]]\n"
    } else {
        "[[filter]]\n"
    });
    let mut put = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
    let path = |path: PathBuf| {
        let absolute = std::path::absolute(&path).unwrap_or(path);
        absolute.to_string_lossy().into_owned()
    };
    let list = |values: Vec<String>| match <[String; 1]>::try_from(values) {
        Ok([one]) => quoted(&one),
        Err(values) => array(&values),
    };
    if let Some(name) = args.name {
        put("name", quoted(&name));
    }
    if !is_store {
        put("action", quoted(&args.action));
    }
    let lists = [
        ("path", args.path),
        ("kind", args.kind),
        ("program", args.program),
        ("relation", args.relation),
    ];
    for (key, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
        put(key, list(values));
    }
    let texts = [
        ("on", args.on),
        ("when", args.when),
        ("text", args.text),
        ("to", args.to),
        ("failure", args.failure),
        ("component", args.component.map(path)),
        ("directory", args.directory.map(path)),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            put(key, quoted(&value));
        }
    }
    if let Some(keep) = args.keep {
        put("keep", format!("{keep:?}"));
    }
    if !args.command.is_empty() {
        put("command", array(&args.command));
    }
    text
}

fn array(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// A TOML string. A pattern is easier to read without escapes.
fn quoted(text: &str) -> String {
    if !text.contains('\'') && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => quoted.push_str(&format!("\\u{:04X}", char as u32)),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// Removes the table of a filter or store.
pub fn remove(args: &PipelineRemoveArgs, store: Option<&Path>) -> Outcome {
    let home = Home::locate(store)?;
    for (path, _) in paths(&home) {
        let text = read(&path)?;
        if let Some(after) = without(&text, &path, &args.name) {
            write(&path, &after)?;
            return answer(|out| writeln!(out, "removed {} from {}", args.name, path.display()));
        }
    }
    Err(Failure::not_found(format!(
        "there is no filter or store {}; `backstory pipeline show` lists them",
        args.name
    )))
}

/// The text without the table of a name. `None` if it has no such table.
fn without(text: &str, path: &Path, name: &str) -> Option<String> {
    let known = PipelineFiles::parse(text, path, Owner::User);
    let filter = known
        .filters()
        .iter()
        .position(|filter| filter.name == name);
    let store = || known.stores.iter().find(|store| store.name == name);
    let file = DeTable::parse(text).ok()?;
    let tables = |key: &str| match file.get_ref().get(key)?.get_ref() {
        DeValue::Array(tables) => Some(tables.clone()),
        _ => None,
    };
    let table = match filter {
        Some(number) => tables("filter")?.get(number)?.clone(),
        None => {
            let directory = &store()?.directory;
            let tables = tables("store")?;
            let is_meant = |table: &&toml::Spanned<DeValue<'_>>| {
                let value = table
                    .get_ref()
                    .get("directory")
                    .map(|value| value.get_ref());
                matches!(value, Some(DeValue::String(text)) if directory.ends_with(text.trim_start_matches("~/")))
            };
            tables.iter().find(is_meant)?.clone()
        }
    };
    let DeValue::Table(keys) = table.get_ref() else {
        return None;
    };
    let end = keys.values().map(|value| value.span().end).max()?;
    let start = text[..=table.span().start.min(text.len() - 1)]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let rest = text[end..].strip_prefix('\n').unwrap_or(&text[end..]);
    Some(format!("{}{rest}", &text[..start]))
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    match regular::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("read", path, &error)),
        _ => Ok(text),
    }
}

/// Replaces a file. A symbolic link stays: the file that it names is replaced.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error: io::Error| failed("write", path, &error);
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(fail)?;
    let mode = fs::metadata(&path).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(fail)?;
    new.write_all(text.as_bytes()).map_err(fail)?;
    let permissions = fs::Permissions::from_mode(mode);
    new.as_file().set_permissions(permissions).map_err(fail)?;
    new.as_file().sync_all().map_err(fail)?;
    new.persist(&path).map_err(|error| fail(error.error))?;
    Ok(())
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::not_found(format!("cannot {what} {}: {error}", path.display()))
}
