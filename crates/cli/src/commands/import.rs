//! `import`: makes a run of what another tool recorded.
//!
//! The id of the run comes from the digests of the log's files. So a second import finds the run,
//! and stores that exchange runs agree about it.

mod copies;
mod pipe;
mod pipe_importer;

use std::io::Write;
use std::path::{Path, PathBuf};

use backstory_eventlog::Log;
use backstory_export::unfinished::CleanupPath;
use backstory_import::{
    self as import, FORMATS, ImportFormat, ImportOptions, ImportedRun, LogFiles,
};
use backstory_session::RecordingResult;
use backstory_store::{Home, open_store, run_id_of};

use super::record::check_name;
use super::{Outcome, answer};
use crate::args::import::ImportArgs;
use crate::ending::{self, Workers};
use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy};
use crate::json::{self, Value};
use crate::text::progress::{Progress, Unit};

/// Imports a log, or lists the formats.
pub fn run(args: ImportArgs, store: Option<&Path>) -> Outcome {
    let Some(name) = &args.format else {
        return list(args.json);
    };
    let format = import::format(name).ok_or_else(|| unknown_format(name))?;
    if args.print_script {
        return print_script(format);
    }
    if args.files.is_empty() && args.pipe.is_none() {
        return Err(Failure::misuse(format!(
            "the file is missing: backstory import {name} FILE"
        )));
    }
    if args.one_run && !format.is_of_lines() {
        return Err(Failure::misuse(format!(
            "logs of the format {name} cannot be joined; leave out --one-run: each becomes a run"
        )));
    }
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let (cwd, root) = (
        recorded_directory(args.cwd.as_deref())?,
        absolute(args.root.as_deref())?,
    );
    let import = Import {
        format,
        home,
        cwd,
        root,
        args: &args,
    };
    if let Some(pipe) = &args.pipe {
        return pipe::import_all(&import, pipe);
    }
    // A signal that ends the program removes what it has written.
    ending::watch(Workers::Killed);
    import.import(&read(format, &args.files)?)
}

/// How logs are imported.
struct Import<'a> {
    format: &'static dyn ImportFormat,
    home: Home,
    cwd: Option<PathBuf>,
    root: Option<PathBuf>,
    args: &'a ImportArgs,
}

impl Import<'_> {
    /// Imports a log, unless the store has it.
    fn import(&self, files: &LogFiles) -> Outcome {
        let id = self.run_id(files);
        let run = self.store(files, &id)?;
        report(self.args, &id.id, run, false)
    }

    /// The run that a log becomes.
    fn run_id(&self, files: &LogFiles) -> ImportedId {
        let (cwd, root) = (self.cwd.as_ref(), self.root.as_ref());
        let options = import::options_number(cwd, root, self.args.machine);
        let number = files.number(self.format.name(), &options);
        run_id(&self.home, number.as_bytes())
    }

    /// Writes the run of a log, and brings the store up to date. `None` if the store has the run.
    fn store(&self, files: &LogFiles, id: &ImportedId) -> Result<Option<ImportedRun>, Failure> {
        let Import { home, args, .. } = self;
        let run = match id.is_known {
            true => None,
            false => write(
                self.format,
                files,
                ImportOptions {
                    log: home.log_path(&id.id),
                    id: id.id.clone(),
                    name: args.name.clone(),
                    cwd: self.cwd.clone(),
                    root: self.root.clone(),
                    machine: args.machine,
                    redact: args.redact.clone(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                },
            )?,
        };
        let mut database = open_store(home)?;
        index::bring_up_to_date(home, &mut database, Busy::Wait, false)
            .map_err(|error| Failure::not_found(chain(&error)))?;
        Ok(run)
    }
}

/// The id of an imported run.
struct ImportedId {
    id: String,
    /// The store has the run.
    is_known: bool,
}

/// Lists the formats.
fn list(as_json: bool) -> Outcome {
    answer(|out| match as_json {
        true => {
            let one = |format: &&dyn ImportFormat| {
                Value::Object(vec![
                    ("format", format.name().into()),
                    ("about", format.about().into()),
                ])
            };
            json::object(
                out,
                vec![("formats", Value::Array(FORMATS.iter().map(one).collect()))],
            )
        }
        false => {
            for format in FORMATS {
                writeln!(out, "{:<12} {}", format.name(), format.about())?;
            }
            Ok(())
        }
    })
}

fn print_script(format: &dyn ImportFormat) -> Outcome {
    let script = format
        .script()
        .ok_or_else(|| Failure::misuse(format!("{} needs no script", format.name())))?;
    answer(|out| out.write_all(script.as_bytes()))
}

fn unknown_format(name: &str) -> Failure {
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    Failure::misuse(format!(
        "there is no import format {name:?}; the formats are: {}",
        known.join(", ")
    ))
}

/// The directory in which a command was recorded. That of another machine need not exist here.
fn recorded_directory(path: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    match path.filter(|path| path.is_absolute() && !path.exists()) {
        Some(path) => Ok(Some(path.to_owned())),
        None => absolute(path),
    }
}

fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let fail = |path: &Path, error| {
        Failure::not_found(format!("cannot tell where {} is: {error}", path.display()))
    };
    path.map(|path| path.canonicalize().map_err(|error| fail(path, error)))
        .transpose()
}

/// Reads the files for their digests.
fn read(format: &dyn ImportFormat, paths: &[PathBuf]) -> Result<LogFiles, Failure> {
    let bytes = paths.iter().filter_map(|path| path.metadata().ok());
    let bytes = bytes.map(|meta| meta.len()).sum();
    let progress = Progress::of("reading the log", bytes, Unit::Bytes);
    let read = LogFiles::read(paths, &|bytes| progress.done.add(bytes));
    progress.end();
    read.map_err(|error| refused(format, &error))
}

/// The message about a file that was refused: why, and what to do.
fn refused(format: &dyn ImportFormat, error: &import::Error) -> Failure {
    Failure::not_found(match import::remedy(format, error) {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    })
}

/// Examines the log and writes the run.
fn write(
    format: &dyn ImportFormat,
    files: &LogFiles,
    options: ImportOptions,
) -> Result<Option<ImportedRun>, Failure> {
    let unfinished = import::unfinished_paths(&options.log);
    let _cleanup = unfinished.each_ref().map(|path| CleanupPath::at(path));
    // Each byte is read twice: to examine the log, and to write the records.
    let progress = Progress::of("importing the log", 2 * files.bytes(), Unit::Bytes);
    let done = import::import(format, files, &options, &|bytes| progress.done.add(bytes));
    progress.end();
    done.map_err(|error| refused(format, &error))
}

/// The id of a run. Two logs whose digests begin alike get different ids.
fn run_id(home: &Home, number: &[u8; 32]) -> ImportedId {
    let mut id = String::new();
    for part in number.chunks_exact(8) {
        let mut bits = [0; 8];
        bits.copy_from_slice(part);
        id = run_id_of(u64::from_be_bytes(bits));
        match Log::open(home.log_path(&id)) {
            Ok(log) if log.header().imported.is_some() => {
                return ImportedId { id, is_known: true };
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    ImportedId {
        id,
        is_known: false,
    }
}

/// Says which run a log became. Of a part of a log, it is known that it is not complete.
fn report(args: &ImportArgs, id: &str, run: Option<ImportedRun>, is_part: bool) -> Outcome {
    let is_new = run.is_some();
    let run = run.unwrap_or(ImportedRun {
        incomplete_because: Vec::new(),
        warnings: Vec::new(),
        is_of_this_machine: false,
    });
    let recorded = RecordingResult {
        run: id.to_owned(),
        complete: Some(run.incomplete_because.is_empty()),
        reasons: run.incomplete_because,
        warnings: run.warnings,
        ..RecordingResult::default()
    };
    if let Some(line) = recorded.warning().filter(|_| !is_part) {
        complain(&line);
    }
    answer(|out| match (args.json, is_new) {
        (true, _) => {
            let mut fields = vec![("run", id.into()), ("new", is_new.into())];
            if is_part {
                // The run of the longer part replaces it.
                fields.push(("part", true.into()));
            }
            json::object(out, fields)
        }
        (false, _) if is_part => writeln!(out, "imported the log so far as run {id}"),
        (false, true) => writeln!(out, "imported as run {id}"),
        (false, false) => writeln!(out, "in the store already: run {id}"),
    })
}
