//! `scene`: tells of a file, an address or a time which request did what, and what it left.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backstory_deep::ReadMeter;
use backstory_query as query;
use backstory_scene::{
    self as scene, Asked, Incident, Layout, Page, PageLine, PeerPattern, Question, Scene,
    SceneConnection, SceneFile, SceneProcess, SceneRequest,
};

use super::{Outcome, answer, here};
use crate::args::scene::SceneArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::subject::{PathNotation, notation};
use crate::text::progress::Progress;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::when as date;

/// Width of the names of facts.
const NAMES: usize = 12;

/// Prints the scene.
pub fn run(args: SceneArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    current.tell_left_running();
    let (question, of_run) = question(&current, &args)?;
    let run = match (&args.run, of_run) {
        (Some(run), _) => Some(current.run(Some(run))?),
        (None, found) => found,
    };
    let asked = Asked {
        run,
        most: args.most.max(1),
        meter: ReadMeter::default(),
    };
    let progress = Progress::reading("looking for the requests", &asked.meter);
    let scene = scene::scene(&current.store, &current.home, question, &asked);
    progress.end();
    let scene = scene?;
    let is_page = args.markdown || args.html;
    let layout = Layout {
        all: args.all || is_page,
        here: if is_page { b"" } else { &here() },
        moment: &when::moment,
    };
    answer(|out| {
        if args.json {
            return json::object(out, fields(&scene));
        }
        let page = scene::page(&scene, &layout);
        match (args.markdown, args.html) {
            (true, _) => out.write_all(scene::markdown(&page).as_bytes()),
            (_, true) => out.write_all(scene::html(&page).as_bytes()),
            _ => text(&page, Style::of_stdout(), out),
        }
    })
}

/// The question: a file that exists or was recorded, else an address, else a time. Also the run of
/// `PATH@RUN`.
fn question(
    current: &CurrentStore,
    args: &SceneArgs,
) -> Result<(Question, Option<String>), Failure> {
    let subject = args.subject.as_os_str();
    let file = |path: PathBuf| Question::File {
        path,
        reads: args.reads,
    };
    let words = subject.to_str();
    let is_file = is_known(current, subject)?;
    if !is_file && let Some(peer) = words.and_then(PeerPattern::parse) {
        return Ok((Question::Address(peer), None));
    }
    if !is_file && let Some(moment) = words.and_then(|words| date::parse(words).ok()) {
        return Ok((Question::Moment(moment), None));
    }
    match notation(current, subject)? {
        PathNotation::Plain(path) => Ok((file(path), None)),
        PathNotation::OfRun(path, run) => Ok((file(path), Some(run))),
        PathNotation::AtMoment(path, _) => {
            complain("the time is not used: the newest requests come first");
            Ok((file(path), None))
        }
    }
}

/// True if a file of this name exists or was recorded.
fn is_known(current: &CurrentStore, name: &OsStr) -> Result<bool, Failure> {
    let path = Path::new(name);
    if path.symlink_metadata().is_ok() {
        return Ok(true);
    }
    match query::subject::newest(&current.store, path, None) {
        Ok(_) => Ok(true),
        Err(query::Error::Store(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

fn text(page: &Page, style: Style, out: &mut impl Write) -> io::Result<()> {
    for (at, section) in page.sections.iter().enumerate() {
        if at > 0 && section.lines.len() > 1 {
            writeln!(out)?;
        }
        writeln!(out, "{}", style.paint(Role::Subject, &section.heading))?;
        for line in &section.lines {
            match line {
                PageLine::Fact(name, value) => {
                    let name = style.paint(Role::Dim, &format!("  {name:<NAMES$}"));
                    writeln!(out, "{name}{value}")?;
                }
                PageLine::Item(text) => writeln!(out, "  {:NAMES$}- {text}", "")?,
                PageLine::Bytes(lines) => {
                    for line in lines {
                        let bar = style.paint(Role::Dim, "  |");
                        writeln!(out, "{bar} {line}")?;
                    }
                }
                PageLine::Command(name, command) => {
                    let name = style.paint(Role::Dim, &format!("  {name:<NAMES$}"));
                    writeln!(out, "{name}{}", style.paint(Role::Command, command))?;
                }
                PageLine::Limit(sentence) => {
                    writeln!(out, "  {}", style.paint(Role::Dim, sentence))?;
                }
            }
        }
    }
    for note in &page.notes {
        writeln!(out, "{}", style.paint(Role::Dim, note))?;
    }
    Ok(())
}

fn fields(scene: &Scene) -> Vec<(&'static str, Value)> {
    let incidents = scene.incidents.iter().map(incident);
    vec![
        ("incidents", Value::Array(incidents.collect())),
        ("left_out", scene.left_out.into()),
        ("notes", Value::array(&scene.notes)),
    ]
}

fn incident(incident: &Incident) -> Value {
    let acts = incident.acts.iter().map(|act| act.word());
    let files = incident.files.iter().map(file);
    let started = incident.started.iter().map(process);
    let connections = incident.connections.iter().map(connection);
    let request = incident.request.as_ref();
    Value::Object(vec![
        ("run", (&incident.run.id).into()),
        ("deep", incident.run.is_deep.into()),
        (
            "command",
            Value::array(incident.run.command.iter().map(Vec::as_slice)),
        ),
        ("time", Value::Time(incident.time)),
        ("acts", Value::array(acts)),
        ("found_by", incident.precision.word().into()),
        ("process", process(&incident.process)),
        ("request", request.map_or(Value::Null, request_value)),
        ("files", Value::Array(files.collect())),
        ("started", Value::Array(started.collect())),
        ("connections", Value::Array(connections.collect())),
        ("reconstruct", (&incident.reconstruct).into()),
        ("limits", Value::array(&incident.limits)),
    ])
}

fn process(process: &SceneProcess) -> Value {
    let program = process.program.as_deref();
    Value::Object(vec![
        ("pid", process.pid.into()),
        ("exec_path", program.into()),
        (
            "argv",
            Value::array(process.arguments.iter().map(Vec::as_slice)),
        ),
    ])
}

fn request_value(request: &SceneRequest) -> Value {
    let bytes = |excerpt: &scene::Excerpt| {
        Value::Object(vec![
            ("bytes", excerpt.length.into()),
            ("text", Value::Bytes(excerpt.text().into_bytes())),
            ("cut", excerpt.is_cut.into()),
        ])
    };
    Value::Object(vec![
        ("number", request.number.into()),
        (
            "role",
            if request.is_served {
                "server"
            } else {
                "client"
            }
            .into(),
        ),
        ("peer", (&request.peer).into()),
        ("pid", request.pid.into()),
        ("connection", request.connection.into()),
        ("start", Value::Time(request.began)),
        ("end", Value::Time(request.ended)),
        ("received", bytes(&request.received)),
        ("sent", bytes(&request.sent)),
    ])
}

fn file(file: &SceneFile) -> Value {
    Value::Object(vec![
        ("path", file.path.as_slice().into()),
        ("acts", Value::array(file.acts.iter().map(|act| act.word()))),
        ("own", file.is_own.into()),
        ("digest", file.digest.into()),
        ("now", file.state.map(|state| state.word()).into()),
    ])
}

fn connection(connection: &SceneConnection) -> Value {
    Value::Object(vec![
        ("address", (&connection.address).into()),
        ("pid", connection.pid.into()),
        (
            "role",
            if connection.serves {
                "server"
            } else {
                "client"
            }
            .into(),
        ),
        ("connected", connection.connected.into()),
    ])
}
