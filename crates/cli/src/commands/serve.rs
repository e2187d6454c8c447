//! `serve`: the page in the browser.

use std::ffi::OsStr;
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use backstory_bytes::{FlowKind, RangeSet};
use backstory_eventlog::event::Bytes;
use backstory_inspection::Answer;
use backstory_query::subject as versions;
use backstory_serve::{
    self as server, AccessToken, ByteOrigins, ByteSource, ByteWriter, Hooks, InsideChange, Setup,
    Start, WritingFunction,
};
use backstory_session as session;
use backstory_store::{self as store, EngineControl, Home, open_store};
use backstory_workflow::paths::absolute;
use tempfile::NamedTempFile;

use super::byte_origins::{self, WrittenBytes};
use super::{Outcome, here};
use crate::args::serve::ServeArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::file_inspector::{self, FileInspector};
use crate::index::{self, Busy};
use crate::scope::ProjectScope;
use crate::text::paths::shown;
use crate::version_change;

/// Serves the page until the process is ended.
pub fn run(args: ServeArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let start = match &args.subject {
        Some(subject) => start(&current, subject)?,
        None => Start::Home,
    };
    let home = current.home.clone();
    drop(current);
    let program = std::env::current_exe().map_err(|error| {
        Failure::not_found(format!("cannot find this program's own file: {error}"))
    })?;
    let token = AccessToken::random().map_err(|error| {
        Failure::not_found(format!("the kernel gives no random numbers: {error}"))
    })?;
    let scope = ProjectScope::new(&args.scope)?;
    let setup = Setup {
        hooks: Hooks {
            refresh: Arc::new({
                let home = home.clone();
                move || refresh(&home).map_err(|failure| failure.line)
            }),
            is_recording: session::is_recording,
            inside: Arc::new({
                let store = home.dir().to_owned();
                move |name, old, new| inside(&store, name, old, new)
            }),
            stated: Arc::new({
                let store = home.dir().to_owned();
                move |name, contents, compared| {
                    let inspector = FileInspector::new(Some(&store));
                    let stated = inspector.stated(name, contents, compared)?;
                    Some(stated.map(change).map_err(|trouble| trouble.to_string()))
                }
            }),
            bytes: Arc::new({
                let store = home.dir().to_owned();
                move |run, path, range| bytes(&store, run, path, range).map_err(|f| f.line)
            }),
            program,
        },
        home,
        port: args.port,
        token,
        allow_rerun: args.allow_rerun,
        start,
        project: scope.directory().map(Path::to_owned),
        keys: file_inspector::table_keys(),
    };
    if !server::has_page() {
        complain(
            "this program was built without the page, so the address answers with JSON only; \
             install Node 20 and build it with `make build`",
        );
    }
    // Keeps the file of the address until the server ends.
    let mut opened = None;
    let served = server::serve(setup, |address| {
        let mut out = std::io::stdout().lock();
        // Without a reader of the address, the server is still there for the browser.
        let _ = writeln!(out, "{address}").and_then(|()| out.flush());
        if args.open {
            opened = open(address);
        }
    });
    drop(opened);
    match served {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::not_found(chain(&error))),
    }
}

/// A file if one exists or was recorded at the path, else a run.
fn start(current: &CurrentStore, subject: &OsStr) -> Result<Start, Failure> {
    let path = absolute(subject.as_bytes(), &here());
    let file = Path::new(subject);
    let is_file =
        file.symlink_metadata().is_ok() || versions::newest(&current.store, file, None).is_ok();
    if is_file {
        return Ok(Start::File(path));
    }
    let run = subject.to_str().map(|name| current.run(Some(name)));
    match run {
        Some(Ok(run)) => Ok(Start::Run(run)),
        _ => Err(Failure::not_found(format!(
            "{} is neither a recorded file nor a run; `backstory log` lists the runs",
            shown(subject.as_bytes())
        ))),
    }
}

/// An inspector's sentences about the changes between two contents.
fn inside(store: &Path, name: &[u8], old: &[u8], new: &[u8]) -> Option<InsideChange> {
    version_change::changes(store, name, old, new).map(change)
}

fn change(answer: Answer) -> InsideChange {
    InsideChange {
        inspector: answer.inspector,
        sentences: answer.sentences,
    }
}

/// The sources of a range of bytes of a file that a run wrote.
fn bytes(
    store: &Path,
    run: &str,
    path: &[u8],
    range: Range<u64>,
) -> Result<Option<ByteOrigins>, Failure> {
    let current = CurrentStore::open(Some(store))?;
    let mut refined = byte_origins::refined_runs(&current);
    if !refined.has(run) {
        return Ok(None);
    }
    let Some(found) = refined.origins(run, path, &[range])? else {
        return Ok(None);
    };
    let sources = found.sources.iter().map(|source| ByteSource {
        kind: byte_origins::kind_word(source.entity.kind),
        path: source.entity.path.clone(),
        run: source.run.clone(),
        copied: pairs(&source.of(FlowKind::Copied)),
        computed: pairs(&source.of(FlowKind::Computed)),
        implicit: pairs(&source.of(FlowKind::Implicit)),
    });
    let writers = byte_origins::written_bytes(&current, run, path, &found.first);
    let possible = found.possible.iter();
    Ok(Some(ByteOrigins {
        sources: sources.collect(),
        writers: writers.iter().map(byte_writer).collect(),
        constant: pairs(&found.first.constant),
        possible: possible
            .map(|why| String::from_utf8_lossy(why).into_owned())
            .collect(),
        coarse: found.coarse,
    }))
}

/// The functions that wrote some bytes, as the page has them.
fn byte_writer(writer: &WrittenBytes) -> ByteWriter {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let functions = writer.functions.iter().map(|function| WritingFunction {
        name: text(&function.name),
        file: text(&function.file),
        line: (function.line > 0).then_some(function.line),
    });
    let words = |call: &Vec<Bytes>| call.iter().map(|word| text(word)).collect::<Vec<_>>();
    ByteWriter {
        ranges: pairs(&writer.bytes),
        functions: functions.collect(),
        calls: writer
            .calls
            .iter()
            .map(|call| words(call).join(" "))
            .collect(),
        how: writer.how(),
    }
}

/// The ranges of a set. Their ends are behind the last byte.
fn pairs(set: &RangeSet) -> Vec<(u64, u64)> {
    set.iter().map(|range| (range.start, range.end)).collect()
}

/// Adds what was recorded since to the store.
fn refresh(home: &Home) -> Result<(), Failure> {
    let mut store = open_store(home)?;
    store.leave_log()?;
    // A log that cannot be indexed is marked, and `log` reports it.
    index::bring_up_to_date(home, &mut store, Busy::Leave, false)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    store::catch_up(home, &mut store)?;
    store::catch_up_annotations(home, &mut store)?;
    Ok(())
}

/// Opens the address in the user's browser. Other users can read the arguments of a process.
/// Therefore the browser gets a file that leads to the address and that only this user can read.
fn open(address: &str) -> Option<NamedTempFile> {
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>backstory</title>"
    );
    let written = tempfile::Builder::new()
        .prefix("backstory-")
        .suffix(".html")
        .tempfile()
        .and_then(|mut file| file.write_all(page.as_bytes()).map(|()| file));
    let started = written.and_then(|file| {
        Command::new("xdg-open")
            .arg(file.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(|mut child| {
                // It ends when the browser has the file. Nobody needs its status.
                std::thread::spawn(move || child.wait());
                file
            })
    });
    match started {
        Ok(file) => Some(file),
        Err(error) => {
            complain(&format!(
                "cannot open a browser with xdg-open ({error}); open the address yourself"
            ));
            None
        }
    }
}
