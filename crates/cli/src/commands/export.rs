//! `export`: writes a run, or all that a file came from, in a format of other tools.

use std::io::Write;
use std::path::Path;

use backstory_export::hermeticity::Hermeticity;
use backstory_export::inventory::Inventory;
use backstory_export::{self as export, Error, Format, Request, Shape, Subject, View};
use backstory_graph::model::EntityKind;
use backstory_store::GraphStore;

use super::Outcome;
use super::contents::store_contents;
use super::store::sealing;
use super::undeclared_inputs;
use crate::args::export::{ExportArgs, Level};
use crate::current_store::CurrentStore;
use crate::ending::{self, Workers};
use crate::error::{Failure, chain, complain};
use crate::text::progress::{Progress, Unit};
use crate::text::similar::suggestion;
use signed_statement::SignedStatement;

mod signed_statement;

/// Writes the export.
pub fn run(args: ExportArgs, store: Option<&Path>) -> Outcome {
    let Some(name) = &args.format else {
        return list();
    };
    let format = export::find(name)?;
    let to_stdout = args.output.as_os_str() == "-";
    if to_stdout && format.shape() == Shape::Directory {
        return Err(Error::NotAStream(format.name()).into());
    }
    refuse_options_of_others(&args, format)?;
    let signed = args.sigstore_key.as_deref().map(|key| SignedStatement {
        format,
        key,
        tsa: args.tsa.as_deref(),
    });
    ending::watch(Workers::Killed);
    let mut current = CurrentStore::open(store)?;
    if format.family().holds_contents() {
        store_contents(&mut current);
    }
    let subject = subject(&current, args.subject.as_deref())?;
    let calls = match (&subject, args.calls) {
        (_, false) => None,
        (Subject::Run(run), true) => Some(current.home.log_path(run)),
        (Subject::Path(path), true) => {
            return Err(Failure::misuse(format!(
                "--calls needs a run, and {} is a file",
                path.display()
            )));
        }
    };
    let mut request = Request::new(subject);
    request.level = match args.level {
        None => usual_level(format, &current, &request.subject),
        Some(Level::Command) => export::Level::Command,
        Some(Level::Process) => export::Level::Process,
        Some(Level::All) => export::Level::All,
    };
    request.exclude = args.exclude;
    request.generalise = !args.no_patterns;
    request.files = args.files;
    request.executed = format.is_executed();
    request.contents = Some(current.home.contents_dir());
    request.bytes = format.marks_bytes().then(|| current.home.bytes_dir(""));
    let reading = (!to_stdout).then(|| Progress::start("reading the record"));
    let mut view = View::load(&current.store, &request)?;
    drop(reading);
    view.calls = calls;
    if format.carries_evidence() {
        let runs = view.runs.iter().map(|run| run.summary.id.as_str());
        view.evidence = sealing::of_runs(&current, runs)?;
    }
    if format.judges_hermeticity() {
        // The format computes the checksums.
        let inventory = Inventory::with_sums(&view, |_| false)?;
        let mut facts = Hermeticity::of(&current.store, &view, &inventory)?;
        if args.undeclared {
            facts.undeclared = undeclared_inputs::of_view(&current, &view, &inventory)?;
        }
        view.hermeticity = Some(facts.json());
    }
    let what = format!("writing {}", format.name());
    let writing = || Progress::metered(&what, &view.contents.meter, Unit::Bytes);
    let progress = (!to_stdout).then(writing);
    let written: &dyn Format = match &signed {
        Some(signed) => signed,
        None => format,
    };
    if to_stdout {
        export::export_to(&view, written, &mut std::io::stdout().lock())?;
    } else {
        export::export(&view, written, &args.output)?;
    }
    drop(progress);
    let warnings = view.warnings_for(format.family());
    warnings
        .iter()
        .chain(&format.warnings(&view))
        .for_each(|warning| complain(warning));
    Ok(0)
}

/// Refuses options that the format does not have.
fn refuse_options_of_others(args: &ExportArgs, format: &dyn Format) -> Result<(), Failure> {
    let name = format.name();
    if args.calls && !format.writes_calls() {
        return Err(Failure::misuse(format!(
            "{name} has no calls of functions: use --calls with opm"
        )));
    }
    if args.sigstore_key.is_some() && !format.is_attestation() {
        return Err(Failure::misuse(format!(
            "{name} is no attestation: use --sigstore-key with in-toto"
        )));
    }
    if args.undeclared && !format.judges_hermeticity() {
        return Err(Failure::misuse(format!(
            "{name} does not list undeclared inputs: use --undeclared with in-toto"
        )));
    }
    Ok(())
}

/// The level of detail if none was given. Commands are shown with their files. A thing that a
/// program named, such as a table, is no file, so its programs are shown.
fn usual_level(format: &dyn Format, current: &CurrentStore, subject: &Subject) -> export::Level {
    let usual = format.default_level();
    let Subject::Path(path) = subject else {
        return usual;
    };
    let newest = backstory_query::subject::newest(&current.store, path, None);
    let entity = newest.ok().and_then(|key| current.store.entity(key).ok());
    let is_thing = entity.is_some_and(|entity| entity.kind == EntityKind::Resource);
    match usual {
        export::Level::Command if is_thing && !format.is_executed() => export::Level::Process,
        _ => usual,
    }
}

/// The subject: a run by its id or name, else a file or a thing that a program named. A word that
/// looks like a path is a path.
pub(super) fn subject(
    current: &CurrentStore,
    wanted: Option<&std::ffi::OsStr>,
) -> Result<Subject, Failure> {
    let Some(wanted) = wanted else {
        return Ok(Subject::Run(current.run(None)?));
    };
    let path = Path::new(wanted);
    let name = wanted.to_str().filter(|name| !name.contains('/'));
    match name.map(|name| current.run(Some(name))) {
        Some(Ok(run)) => Ok(Subject::Run(run)),
        Some(Err(failure)) if !path.exists() && path.extension().is_none() => {
            match backstory_query::subject::newest(&current.store, path, None) {
                Ok(_) => Ok(Subject::Path(path.to_owned())),
                Err(_) => Err(failure),
            }
        }
        _ => Ok(Subject::Path(path.to_owned())),
    }
}

/// Lists the formats.
fn list() -> Outcome {
    super::answer(|out| {
        for format in export::ALL {
            let (name, about) = (format.name(), about(*format));
            writeln!(out, "{name:<17} {about}")?;
        }
        Ok(())
    })
}

fn about(format: &dyn Format) -> String {
    let hint = format
        .hint()
        .map(|hint| format!("; {hint}"))
        .unwrap_or_default();
    let directory = if format.shape() == Shape::Directory {
        " (a directory)"
    } else {
        ""
    };
    format!("{}{directory}{hint}", format.about())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let line = chain(&error);
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Workflow(error) => error.into(),
            Error::Currency(error) => error.into(),
            Error::Stream(error) => error.into(),
            Error::NoFormat { name, .. } => {
                let known = export::ALL.iter().map(|format| format.name());
                let meant = suggestion(&name, known);
                Failure::misuse(match meant.as_str() {
                    "" => line,
                    _ => {
                        format!("there is no format '{name}'{meant}; `backstory export` lists all")
                    }
                })
            }
            Error::NotAStream(_) | Error::InTheWay { .. } => Failure::misuse(line),
            _ => Failure::not_found(line),
        }
    }
}
