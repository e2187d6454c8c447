//! `schema`: registers the schemas of extended records.

use std::io::Write;
use std::path::Path;

use backstory_store::Home;
use serde_json::Value as Document;

use super::{Outcome, answer};
use crate::args::schema::{SchemaAddArgs, SchemaCommand, SchemaListArgs, SchemaNameArgs};
use crate::error::Failure;
use crate::json::{self, Value};
use crate::record_judging::mistake;
use crate::schema_registry::{SchemaName, SchemaRegistry, parse, read_source};

/// Does what the command says.
pub fn run(command: SchemaCommand, store: Option<&Path>) -> Outcome {
    match command {
        SchemaCommand::Add(args) => add(&args, store),
        SchemaCommand::List(args) => list(&args, store),
        SchemaCommand::Show(args) => show(&args, store),
        SchemaCommand::Remove(args) => remove(&args, store),
    }
}

fn registry(home: &Home) -> Result<SchemaRegistry, Failure> {
    SchemaRegistry::load(home).map_err(|error| {
        let directory = home.dir().join("schemas");
        Failure::not_found(format!("cannot read {}: {error}", directory.display()))
    })
}

fn named(text: &str) -> Result<(String, Option<u32>), Failure> {
    parse(text).ok_or_else(|| {
        Failure::misuse(format!(
            "{text}: the type of a record is words with dots between them, as org.example.metric, \
             perhaps with a version, as org.example.metric@2"
        ))
    })
}

/// The text of a file that has a schema.
fn schema_text(path: &Path) -> Result<String, Failure> {
    let file = path.display();
    let text = read_source(path)
        .map_err(|error| Failure::misuse(format!("cannot read {file}: {error}")))?;
    let schema: Document = serde_json::from_str(&text)
        .map_err(|error| Failure::misuse(format!("{file} is not JSON: {error}")))?;
    if !schema.is_object() && !schema.is_boolean() {
        let why = format!("{file} is not a JSON Schema: it is no object");
        return Err(Failure::misuse(why));
    }
    match mistake(&schema) {
        Some(why) => Err(Failure::misuse(format!("{file}: {why}"))),
        None => Ok(text),
    }
}

fn add(args: &SchemaAddArgs, store: Option<&Path>) -> Outcome {
    let (kind, version) = named(&args.name)?;
    let text = schema_text(&args.file)?;
    let registry = registry(&Home::locate(store)?)?;
    let newest = registry.versions(&kind).last().copied();
    let name_of = |version| SchemaName {
        kind: kind.clone(),
        version,
    };
    // The same schema again is no new version.
    let asked = version.or(newest).map(name_of);
    if let Some(name) = asked.filter(|name| registry.text(name).is_ok_and(|known| known == text)) {
        return answer(|out| writeln!(out, "{name} is registered already"));
    }
    let name = name_of(version.unwrap_or(newest.map_or(1, |last| last.saturating_add(1))));
    if registry.versions(&kind).contains(&name.version) {
        return Err(Failure::misuse(format!(
            "{name} is registered with another schema: add the next version, or remove this one"
        )));
    }
    registry.add(&name, &text).map_err(|error| {
        let path = registry.path(&name);
        Failure::not_found(format!("cannot write {}: {error}", path.display()))
    })?;
    answer(|out| writeln!(out, "registered {name}"))
}

fn list(args: &SchemaListArgs, store: Option<&Path>) -> Outcome {
    let registry = registry(&Home::locate(store)?)?;
    answer(|out| {
        if args.json {
            let rows = registry.names().map(|name| {
                Value::Object(vec![
                    ("type", name.kind.as_str().into()),
                    ("version", u64::from(name.version).into()),
                ])
            });
            let rows = Value::Array(rows.collect());
            return json::object(out, vec![("schemas", rows)]);
        }
        if registry.is_empty() {
            return writeln!(out, "no schema is registered");
        }
        registry
            .names()
            .try_for_each(|name| writeln!(out, "{name}"))
    })
}

/// The schemas of a name: one version, or all of the type.
fn known(registry: &SchemaRegistry, text: &str) -> Result<Vec<SchemaName>, Failure> {
    let (kind, version) = named(text)?;
    let versions = registry.versions(&kind).iter();
    let chosen = versions.filter(|&&known| version.is_none_or(|version| version == known));
    let names: Vec<SchemaName> = chosen
        .map(|&version| SchemaName {
            kind: kind.clone(),
            version,
        })
        .collect();
    match names.is_empty() {
        true => Err(Failure::not_found(format!(
            "{text} has no schema: `backstory schema list` prints those that there are"
        ))),
        false => Ok(names),
    }
}

fn show(args: &SchemaNameArgs, store: Option<&Path>) -> Outcome {
    let registry = registry(&Home::locate(store)?)?;
    let names = known(&registry, &args.name)?;
    let text = names.last().map(|name| registry.text(name)).transpose();
    let text = text.map_err(|error| Failure::not_found(format!("cannot read it: {error}")))?;
    let text = text.unwrap_or_default();
    answer(|out| writeln!(out, "{}", text.trim_end()))
}

fn remove(args: &SchemaNameArgs, store: Option<&Path>) -> Outcome {
    let registry = registry(&Home::locate(store)?)?;
    let names = known(&registry, &args.name)?;
    for name in &names {
        registry.remove(name).map_err(|error| {
            let path = registry.path(name);
            Failure::not_found(format!("cannot remove {}: {error}", path.display()))
        })?;
    }
    answer(|out| {
        names
            .iter()
            .try_for_each(|name| writeln!(out, "removed {name}"))
    })
}
