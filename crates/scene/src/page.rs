//! Arranges a scene for people: the same page at the terminal, in Markdown and in HTML.
//!
//! In: a scene. Out: a title, and one section for each incident. Every text is escaped: it has no
//! control character. Without `all`, a section fits on a screen, and counts what it leaves out.

use backstory_eventlog::event::Time;
use backstory_workflow::paths::relative;
use backstory_workflow::shell::line;
use backstory_workflow::shell::quote;

use crate::excerpt::Excerpt;
use crate::model::{FileAct, Incident, LeftState, Scene, SceneFile, SceneProcess, SceneRequest};
use crate::question::Question;
use crate::words::{counted, size};

/// Lines of each kind that fit on a screen.
const RECEIVED: usize = 8;
const SENT: usize = 3;
const FILES: usize = 6;
const OTHERS: usize = 3;
/// Longest line of bytes on a screen.
const WIDE: usize = 100;

/// How much is shown, and how times and paths are written.
pub struct Layout<'l> {
    /// Everything, and not only what fits on a screen.
    pub all: bool,
    /// Paths below this directory are relative to it. Empty: all are absolute.
    pub here: &'l [u8],
    /// A moment as text.
    pub moment: &'l dyn Fn(Time) -> String,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The title.
    pub title: String,
    /// Sentences about the whole.
    pub notes: Vec<String>,
    /// One for each incident.
    pub sections: Vec<Section>,
}

/// An incident on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The lines.
    pub lines: Vec<PageLine>,
}

/// A line, or some lines, of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageLine {
    /// A name and its value.
    Fact(&'static str, String),
    /// Something in the list under the last fact.
    Item(String),
    /// Bytes of a connection, line by line.
    Bytes(Vec<String>),
    /// A command to run.
    Command(&'static str, String),
    /// A sentence about what is not known.
    Limit(String),
}

/// Arranges a scene.
pub fn page(scene: &Scene, layout: &Layout<'_>) -> Page {
    let mut notes = scene.notes.clone();
    let shown = match layout.all {
        true => scene.incidents.len(),
        false => 1,
    };
    let mut sections = Vec::new();
    for (at, incident) in scene.incidents.iter().enumerate() {
        sections.push(match at < shown {
            true => section(incident, layout),
            false => Section {
                heading: heading(incident),
                lines: vec![
                    PageLine::Fact("time", (layout.moment)(incident.time)),
                    PageLine::Fact("process", process(&incident.process)),
                ],
            },
        });
    }
    if scene.incidents.len() > shown {
        notes.push("The newest comes first. --all shows all of them in full.".to_owned());
    }
    if scene.left_out > 0 {
        let older = counted(scene.left_out, "older act is", "older acts are");
        notes.push(format!("{older} left out. --most N shows more."));
    }
    Page {
        title: title(&scene.question, layout),
        notes,
        sections,
    }
}

fn title(question: &Question, layout: &Layout<'_>) -> String {
    match question {
        Question::File { path, reads } => {
            use std::os::unix::ffi::OsStrExt;
            let path = shown_path(path.as_os_str().as_bytes(), layout);
            let verb = if *reads { "used" } else { "changed" };
            format!("What {verb} {path}")
        }
        Question::Address(peer) => format!("Requests of {}", peer.text()),
        Question::Moment(moment) => format!("Requests at {}", (layout.moment)(*moment)),
    }
}

fn shown_path(path: &[u8], layout: &Layout<'_>) -> String {
    quote(relative(path, layout.here))
}

fn heading(incident: &Incident) -> String {
    let run = &incident.run.id;
    match &incident.request {
        Some(request) => {
            let peer = match request.peer.as_str() {
                "" => "an unknown peer".to_owned(),
                peer => crate::escaped(peer.as_bytes()),
            };
            let end = if request.is_served { "from" } else { "to" };
            format!("Request {} of run {run}, {end} {peer}", request.number)
        }
        None => format!("Process {} of run {run}", incident.process.pid),
    }
}

fn section(incident: &Incident, layout: &Layout<'_>) -> Section {
    let mut lines = vec![
        PageLine::Fact("time", (layout.moment)(incident.time)),
        PageLine::Fact("run", line(&incident.run.command)),
        PageLine::Fact("process", process(&incident.process)),
    ];
    if let Some(request) = &incident.request {
        served_by(request, incident, &mut lines);
        direction("received", &request.received, RECEIVED, layout, &mut lines);
        direction("sent", &request.sent, SENT, layout, &mut lines);
    }
    files(incident, layout, &mut lines);
    let most = if layout.all { usize::MAX } else { OTHERS };
    let started = incident.started.iter().map(process);
    list("started", "program", started.collect(), most, &mut lines);
    let connections = incident.connections.iter().map(|one| {
        let how = match (one.serves, one.connected) {
            (true, _) => "served",
            (false, Some(false)) => "failed",
            (false, _) => "to",
        };
        let address = crate::escaped(one.address.as_bytes());
        format!("{how} {address} (process {})", one.pid)
    });
    list(
        "connections",
        "connection",
        connections.collect(),
        most,
        &mut lines,
    );
    lines.push(PageLine::Command("again", incident.reconstruct.clone()));
    lines.extend(incident.limits.iter().cloned().map(PageLine::Limit));
    Section {
        heading: heading(incident),
        lines,
    }
}

/// The process that the connection belongs to, if another one acted.
fn served_by(request: &SceneRequest, incident: &Incident, lines: &mut Vec<PageLine>) {
    if request.pid != incident.process.pid {
        let verb = if request.is_served {
            "accepted"
        } else {
            "made"
        };
        let text = format!("{verb} by process {}", request.pid);
        lines.push(PageLine::Fact("connection", text));
    }
}

fn process(process: &SceneProcess) -> String {
    format!("{} {}", process.pid, process_line(process))
}

/// The arguments of a process as a shell line, or its program.
pub fn process_line(process: &SceneProcess) -> String {
    match (process.arguments.is_empty(), &process.program) {
        (true, Some(program)) => quote(program),
        (true, None) => "an unknown program".to_owned(),
        (false, _) => line(&process.arguments),
    }
}

fn direction(
    name: &'static str,
    excerpt: &Excerpt,
    most: usize,
    layout: &Layout<'_>,
    lines: &mut Vec<PageLine>,
) {
    let all = excerpt.lines();
    let shown = if layout.all {
        all.len()
    } else {
        all.len().min(most)
    };
    let cut = |text: &String| match text.char_indices().nth(WIDE) {
        Some((at, _)) if !layout.all => format!("{}…", &text[..at]),
        _ => text.clone(),
    };
    let mut rest = String::new();
    if shown < all.len() {
        rest = format!(", {} more", counted(all.len() - shown, "line", "lines"));
    } else if excerpt.is_cut && !all.is_empty() {
        rest = ", the beginning".to_owned();
    }
    lines.push(PageLine::Fact(
        name,
        format!("{}{rest}", size(excerpt.length)),
    ));
    if shown > 0 {
        lines.push(PageLine::Bytes(all[..shown].iter().map(cut).collect()));
    }
}

fn files(incident: &Incident, layout: &Layout<'_>, lines: &mut Vec<PageLine>) {
    let most = if layout.all { usize::MAX } else { FILES };
    let is_shown = |file: &&SceneFile| file.is_own || layout.all;
    let shown: Vec<&SceneFile> = incident.files.iter().filter(is_shown).take(most).collect();
    let rest = incident.files.len() - shown.len();
    if incident.files.is_empty() {
        return;
    }
    let own = incident.files.iter().filter(|file| file.is_own).count();
    let of_system = incident.files.len() - own;
    let mut count = counted(own, "file of the user", "files of the user");
    if of_system > 0 {
        count = format!("{count}, {of_system} of the system");
    }
    if rest > 0 && !layout.all {
        count.push_str(" (--all lists them)");
    }
    lines.push(PageLine::Fact("files", count));
    lines.extend(
        shown
            .into_iter()
            .map(|file| PageLine::Item(file_line(file, layout))),
    );
}

fn file_line(file: &SceneFile, layout: &Layout<'_>) -> String {
    let acts: Vec<&str> = file.acts.iter().map(|act| past(*act)).collect();
    let path = shown_path(&file.path, layout);
    let mut text = format!("{} {path}", acts.join(", "));
    if let Some(state) = file.state {
        let now = match state {
            LeftState::Unchanged => "is there, as the run left it",
            LeftState::Changed => "is there, changed since",
            LeftState::There => "is there",
            LeftState::Gone => "is gone",
        };
        text.push_str(&format!(": {now}"));
        if let Some(digest) = file.digest {
            let mut digits = digest.to_string();
            if !layout.all {
                digits.truncate(16);
                digits.push('…');
            }
            text.push_str(&format!(" (blake3:{digits})"));
        }
    }
    text
}

/// The act as a word of a report.
fn past(act: FileAct) -> &'static str {
    match act {
        FileAct::Write => "wrote",
        FileAct::Rename => "renamed",
        FileAct::Delete => "deleted",
        FileAct::Meta => "changed the metadata of",
        FileAct::Execute => "executed",
        FileAct::Read => "read",
    }
}

fn list(name: &'static str, one: &str, items: Vec<String>, most: usize, lines: &mut Vec<PageLine>) {
    if items.is_empty() {
        return;
    }
    let mut count = counted(items.len(), one, &format!("{one}s"));
    if items.len() > most {
        count.push_str(" (--all lists them)");
    }
    lines.push(PageLine::Fact(name, count));
    lines.extend(items.into_iter().take(most).map(PageLine::Item));
}
